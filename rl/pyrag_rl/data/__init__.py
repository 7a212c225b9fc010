"""Training sets (`pyrag train data`): rows for verl, and replies to learn, from data sets and from traces.

    sets      questions of data sets in the common layout, with the passages that a retriever finds
    traces    questions that a run of pyrag bench answered, with each agent's work
    readings  answers to learn from gold passages
    decompositions  programs, sub-queries and answers from gold sub-questions
    replies   replies of an agent, in its own form
    held_out  questions that must not be learnt from because they are measured on
    build     from a request to files

`pyrag_rl.data.rows` defines rows and their files. The wording of prompts belongs to the agents.
"""
