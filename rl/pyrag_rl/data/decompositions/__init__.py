"""Rows from gold decompositions: questions that people, or their data set's making, split into sub-questions.

    source     the file of decompositions, and which of its questions are taken
    qdmr       Break's noun phrases made into questions
    wording    sub-questions as an agent would ask them
    programs   the program of a decomposition
    faults     programs broken as small models break them
    checked    that a program runs over the gold answers and ends with the right one
    examples   rows of the agents, with the replies to learn

Programs are data here: they run in the sandbox and nowhere else.
"""
