"""Training sets (`pyrag train data`): rows for verl, and replies to learn by heart, from data sets and from traces.

    sets      questions of data sets in the common layout, with what a retriever finds for them
    traces    questions that a run of pyrag bench answered, with what each agent did
    readings  answers to learn from gold passages
    decompositions  programs, sub-queries and answers from gold sub-questions
    replies   what an agent would have replied, in its own form
    held_out  that no question is both learnt from and measured on
    build     from a request to files

Left out: what a row is and how it is written (`pyrag_rl.data.rows`), and the wording of prompts, which is the agents'
own.
"""
