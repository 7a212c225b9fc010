"""Compiles a plan of goals to a program over `retrieve` and `answer`.

A goal becomes a search and an answer, or an answer alone where earlier answers are all it takes. Placeholders become
variables of f-strings, so that the dataflow is the plan's and an answer goes into later queries as it is, whatever it
holds. Left out: whether the plan makes sense (`pyrag.methods.opera.goals`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyrag.agents.goals.goal import EVIDENCE, PLACEHOLDER, Goal
from pyrag.agents.goals.goal_types import is_check
from pyrag.agents.passages import given
from pyrag.agents.python_text import interpolated, literal
from pyrag.methods.opera.goals import in_code
from pyrag.methods.program_text import attempted

_ASKS_FOR_MORE = re.compile(r"(?:\w+ )?(?:who|whom|whose|what|which|when|where|how)\b", re.IGNORECASE)


def compile_goals(question: str, goals: Sequence[Goal], *, synthesis: bool = False) -> str:
    """Return the program of a plan. A last goal that only checks another one decides whether that one holds.

    Args:
        question: The question.
        goals: A plan without errors.
        synthesis: Compose the final answer from the answers of all goals, unless the last goal does so itself or is
            the question.
    """
    lines = [line for goal in goals for line in _lines(goal, goals)]
    last = goals[-1]
    if is_check(goals, last) and _ASKS_FOR_MORE.match(question):
        checked = variable(_by_step(goals)[max(last.needs)])
        otherwise = f"answer({_facts(goals, goals, question)})"
        lines += [
            f'if {variable(last)}.lower().startswith("yes"):',
            f"    final_answer = {checked}",
            "else:",
            f"    final_answer = {otherwise}",
        ]
    elif synthesis and last.search and last.type != EVIDENCE and (len(goals) > 1 or last.text != question):
        composed = f"answer({_facts(goals, goals, question)})"
        lines += [
            f"if is_known({variable(last)}):",
            f"    final_answer = {composed}",
            "else:",
            f"    final_answer = {variable(last)}",
        ]
    else:
        lines.append(f"final_answer = {variable(last)}")
    return "\n".join(lines) + "\n"


def variable(goal: Goal) -> str:
    """Return the variable of a goal's answer: `city_2`."""
    name = "_".join(re.findall(r"[a-z]+", goal.type.casefold()))[:30].strip("_")
    return f"{'answer' if name in ('', 'docs') else name}_{goal.step}"


def _lines(goal: Goal, goals: Sequence[Goal]) -> list[str]:
    names = {one.step: variable(one) for one in goals}
    if not goal.search:
        return _concluded(goal, goals, names)
    found = f"docs_{goal.step} = retrieve({_substituted(goal.search, names)})"
    if goal.type == EVIDENCE:
        return [found]
    return [found, f"{variable(goal)} = answer({_substituted(goal.text, names)}, docs_{goal.step})"]


def _concluded(goal: Goal, goals: Sequence[Goal], names: Mapping[int, str]) -> list[str]:
    """An answer from earlier answers; where one of them is lacking, from the passages that they were read from."""
    before = _before(goal, goals)
    known = " and ".join(f"is_known({names[step]})" for step in goal.needs if _by_step(goals)[step].type != EVIDENCE)
    docs = " + ".join(f"docs_{one.step}" for one in before if one.search)
    if not known:
        return [f"{variable(goal)} = answer({_substituted(goal.text, names)}, {docs})"]
    computed = in_code(goal.compute, names.__getitem__)
    from_facts = computed or f"answer({_facts(goals, before, goal.text)})"
    if not docs:
        return [f"{variable(goal)} = {from_facts}"]
    asked = f"answer({_substituted(goal.text, names)}, {docs})"
    return attempted(variable(goal), known, from_facts, asked)


def _substituted(text: str, names: Mapping[int, str]) -> str:
    """Return a text as a literal, with the variables of earlier answers in place of its placeholders."""
    return f'f"{_inner(text, names)}"' if PLACEHOLDER.search(text) else literal(text)


def _inner(text: str, names: Mapping[int, str]) -> str:
    return interpolated(text, PLACEHOLDER, lambda found: names[int(found["step"])])


def _facts(goals: Sequence[Goal], known: Sequence[Goal], ask: str) -> str:
    """Answers in the form of the aggregation prompt, each behind its question."""
    names = {one.step: variable(one) for one in goals}
    facts = "; ".join(f"{_inner(one.text, names)} {{{names[one.step]}}}" for one in known if one.type != EVIDENCE)
    return f'f"{given(facts, _inner(ask, names))}"'


def _before(goal: Goal, goals: Sequence[Goal]) -> list[Goal]:
    """All goals whose answers this one rests on, in their order."""
    steps, wanted = _by_step(goals), set(goal.needs)
    for one in reversed(goals[: goal.step - 1]):
        if one.step in wanted:
            wanted |= set(steps[one.step].needs)
    return [one for one in goals if one.step in wanted]


def _by_step(goals: Sequence[Goal]) -> dict[int, Goal]:
    return {goal.step: goal for goal in goals}
