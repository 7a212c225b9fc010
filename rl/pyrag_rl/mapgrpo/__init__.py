"""MAPGRPO (OPERA, section 3): role rewards, and the pre-scored set.

Left out: how candidates enter groups (`pyrag_rl.verl.loops`), and the order of stages (`pyrag_rl.curriculum.stages`).
"""
