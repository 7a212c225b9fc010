"""The experience library: what was learnt about orchestrating agents, for the next question of its kind (HERA, §3.2).

    Library.open("experience.db").retrieve(profile)     → the insights that an orchestrator is shown
    with Library.open(path, write=True).update() as draft: draft.add(profile, insight)

Left out: where insights come from and which operation one asks for, which are models' to say (`pyrag.evolve`).
"""
