"""MAPGRPO (OPERA, section 3): role rewards, the pre-scored set, and the agent loop that puts candidates into groups.

Left out: verl's own trainer, which does the rest, and the order of the stages (`pyrag_rl.curriculum.stages`).
"""
