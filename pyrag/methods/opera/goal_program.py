"""Compiler of a plan of goals to a program over `retrieve` and `answer`.

A goal becomes a search and an answer, or only an answer if earlier answers suffice. Placeholders become variables in
f-strings, so the program's dataflow is the plan's, and answers enter later queries unchanged.
`pyrag.methods.opera.goals` checks plans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyrag.agents.goals.goal import EVIDENCE, PLACEHOLDER, Goal
from pyrag.agents.goals.goal_types import is_check
from pyrag.agents.passages import with_facts
from pyrag.agents.python_text import interpolated, literal
from pyrag.methods.opera.goals import in_code
from pyrag.methods.program_text import attempted

_ASKS_FOR_MORE = re.compile(r"(?:\w+ )?(?:who|whom|whose|what|which|when|where|how)\b", re.IGNORECASE)


def compile_goals(question: str, goals: Sequence[Goal], *, synthesis: bool = False) -> str:
    """Return the program of a plan. If the last goal only checks another goal, it decides whether that answer is right.

    Args:
        question: The question.
        goals: A plan without errors.
        synthesis: Whether to compose the final answer from the answers of all goals, unless the last goal already does
            so or is the question.
    """
    lines = [line for goal in goals for line in _lines(goal, goals)]
    last = goals[-1]
    if is_check(goals, last) and _ASKS_FOR_MORE.match(question):
        candidate = variable(_by_step(goals)[max(last.needs)])
        otherwise = f"answer({_facts(goals, goals, question)})"
        lines += [
            f'if {variable(last)}.lower().startswith("yes"):',
            f"    final_answer = {candidate}",
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
    """Return the variable of a goal's answer, such as `city_2`."""
    name = "_".join(re.findall(r"[a-z]+", goal.type.casefold()))[:30].strip("_")
    return f"{'answer' if name in ('', 'docs') else name}_{goal.step}"


def _lines(goal: Goal, goals: Sequence[Goal]) -> list[str]:
    names = {each.step: variable(each) for each in goals}
    if not goal.search:
        return _lines_from_answers(goal, goals, names)
    search = f"docs_{goal.step} = retrieve({_substituted(goal.search, names)})"
    if goal.type == EVIDENCE:
        return [search]
    return [search, f"{variable(goal)} = answer({_substituted(goal.text, names)}, docs_{goal.step})"]


def _lines_from_answers(goal: Goal, goals: Sequence[Goal], names: Mapping[int, str]) -> list[str]:
    """Return lines that answer from earlier answers; if one of them is unknown, from the passages of their searches."""
    before = _before(goal, goals)
    known = " and ".join(f"is_known({names[step]})" for step in goal.needs if _by_step(goals)[step].type != EVIDENCE)
    docs = " + ".join(f"docs_{earlier.step}" for earlier in before if earlier.search)
    if not known:
        return [f"{variable(goal)} = answer({_substituted(goal.text, names)}, {docs})"]
    computed = in_code(goal.compute, names.__getitem__)
    from_facts = computed or f"answer({_facts(goals, before, goal.text)})"
    if not docs:
        return [f"{variable(goal)} = {from_facts}"]
    asked = f"answer({_substituted(goal.text, names)}, {docs})"
    return attempted(variable(goal), known, from_facts, asked)


def _substituted(text: str, names: Mapping[int, str]) -> str:
    """Return a text as a literal, with its placeholders replaced by the variables of earlier answers."""
    return f'f"{_inner(text, names)}"' if PLACEHOLDER.search(text) else literal(text)


def _inner(text: str, names: Mapping[int, str]) -> str:
    return interpolated(text, PLACEHOLDER, lambda match: names[int(match["step"])])


def _facts(goals: Sequence[Goal], known: Sequence[Goal], ask: str) -> str:
    """Return known answers in the form of the aggregation prompt, each after its question."""
    names = {goal.step: variable(goal) for goal in goals}
    facts = "; ".join(f"{_inner(goal.text, names)} {{{names[goal.step]}}}" for goal in known if goal.type != EVIDENCE)
    return f'f"{with_facts(facts, _inner(ask, names))}"'


def _before(goal: Goal, goals: Sequence[Goal]) -> list[Goal]:
    """Return all goals whose answers a goal depends on, in their order."""
    steps, wanted = _by_step(goals), set(goal.needs)
    for earlier in reversed(goals[: goal.step - 1]):
        if earlier.step in wanted:
            wanted |= set(steps[earlier.step].needs)
    return [other for other in goals if other.step in wanted]


def _by_step(goals: Sequence[Goal]) -> dict[int, Goal]:
    return {goal.step: goal for goal in goals}
