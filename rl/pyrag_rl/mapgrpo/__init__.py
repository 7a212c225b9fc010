"""MAPGRPO (OPERA, section 3): role rewards, and the pre-scored set.

`pyrag_rl.verl.loops` adds candidates to groups, and `pyrag_rl.curriculum.stages` orders the stages.
"""
