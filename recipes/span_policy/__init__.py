"""Training of the embedded reader by reward (GRPO): `python -m recipes.span_policy`, on a CPU, in minutes.

The reader is a policy over the spans of a question's passages and "unknown". Groups of them are drawn for each
question, scored as `pyrag_rl.rewards.agents` scores any Answer agent, and made more or less likely by how they compare
within their group (GRPO; the rollouts, rewards and updates that verl makes for a language model, in one process).

    rows      training and held-out questions with passages, from the folders that the reader was trained on
    policy    from a question and its passages to the distribution over actions, and from an action to its answer
    start     the shipped reader as torch weights
    train     the loop: rollouts, advantages, updates, evaluation, resume, export

Only this needs torch. The result is a folder for `pyrag ask --llm embedded:FOLDER`.
"""
