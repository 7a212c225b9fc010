"""Every prompt of the project, one plain template file each: `pyrag.agents.prompts` reads it.

Beside the default prompts, each folder in `PROMPT_SETS` holds a set of other ones: `small` is for models that learned
their task from examples and need no instructions, `fast` are short instructions for the profile of that name, `paper`
has the structure of the prompts in the releases of PyRAG and OPERA, in words of our own. What a set lacks, the default
prompts have.
"""

PROMPT_SETS = ("small", "fast", "paper")
