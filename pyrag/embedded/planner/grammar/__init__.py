"""Grammar of questions: each module reads one kind of phrase or question.

A description is a noun phrase that identifies something by other things, such as "the city where Alpha died". A slot
(`{0}`) stands for a description whose step is known. In examples, "|" marks a position between words, and Alpha and
Beta are names.
"""
