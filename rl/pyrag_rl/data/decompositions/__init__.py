"""Rows from gold decompositions: questions that people, or the makers of a data set, split into sub-questions.

    source             the file of decompositions, and the choice of questions
    qdmr               Break's noun phrases, turned into questions
    wording            sub-questions as an agent would ask them
    programs           the program of a decomposition
    faults             programs broken in the way small models break them
    program_checks     checks that a program runs over the gold answers and ends with the right one
    planned_questions  questions with sub-questions of the embedded planner
    nesting            longer questions made of shorter ones
    gold_examples      rows of the Plan and Decompose agents, with the replies to learn
    answer_examples    rows of the Answer agent, with the replies to learn

Programs are data here: they only ever run in the sandbox.
"""
