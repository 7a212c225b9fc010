"""Training of the embedded reader by reward (GRPO): `python -m recipes.span_policy`, on a CPU, in minutes.

The reader is a policy over "unknown" and the spans of a question's passages. For each question, a group of these
actions is drawn, and scored like the replies of any Answer agent (`pyrag_rl.rewards.pyrag_agents`). Actions that score
above their group's mean become more likely. Rollouts, rewards and updates run in one process; for language models, verl
does this work.

    rows      training and held-out questions with passages, from the folders that the reader was trained on
    policy    distribution over the actions of a question, and the answer of an action
    start     the shipped reader as torch weights
    train     rollouts, advantages, updates, evaluation, resuming, export

Only `policy`, `start` and `train` need torch. The result is a folder for `pyrag ask --llm embedded:FOLDER`.
"""
