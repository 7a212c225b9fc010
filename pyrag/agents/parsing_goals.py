"""What a model's reply means, part four: a plan of sub-goals, and what is wrong with it.

    [{"step": 1, "goal": "Which company acquired WhatsApp?", "type": "company", "needs": []},
     {"step": 2, "goal": "Where is [company from step 1] headquartered?", "type": "city", "needs": [1]}]

A plan is strict, since nothing looks at it again before it runs: steps stand in the order in which they can be
answered, every placeholder names the step and the type of what it stands for, and every answer is used. The last goal
gives the answer. A goal with `"search": false` is drawn from the answers it needs, by a Python expression if it has one
in "compute"; a string in "search" is what is searched for. A goal of type "evidence" only collects passages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyrag.agents.parsing import parse_json
from pyrag.errors import BadOutputError
from pyrag.trace import Goal

MAX_GOALS = 12
PLACEHOLDER = re.compile(r"\[(?P<type>[^\W\d][^\[\]\n]{0,60}?) from step (?P<step>[1-9]\d?)\]", re.IGNORECASE)
YES_NO = "yes/no"
EVIDENCE = "evidence"
_QUOTABLE = re.compile(rf"(?P<quote>[\"']?){PLACEHOLDER.pattern}(?P=quote)", re.IGNORECASE)
NAMED = "answer_of_a_step"  # stands in code for whatever a placeholder names
_NEARLY = re.compile(r"\[(?=[^\[\]]*+\])[^\[\]]*\bstep\b[^\[\]]*\]", re.IGNORECASE)
_TEXT_KEYS = ("goal", "subgoal", "sub_goal", "sub-goal", "question", "query", "text")
_STEP_KEYS = ("step", "id", "number")
_TYPE_KEYS = ("type", "answer_type")
_NEEDS_KEYS = ("needs", "deps", "dependencies", "depends_on")
_LIST_KEYS = ("goals", "plan", "steps", "subgoals", "sub_goals")

_ANY = frozenset(("answer", "entity", "thing", "name", "item", "result", "value", "information", "fact"))
# Types that may stand for each other.
_KINDS: tuple[frozenset[str], ...] = tuple(
    frozenset(words.split())
    for words in (
        "person actor actress author writer director composer singer performer artist musician player athlete"
        " politician president founder father mother spouse wife husband child son daughter brother sister sibling"
        " producer screenwriter creator inventor architect painter coach manager ceo leader king queen ruler character"
        " scientist man woman",
        "place location city town village country state province county region continent nation birthplace river"
        " mountain island district area capital headquarters venue stadium building address",
        "date year day month time period century decade birthdate birthday",
        "number count amount population quantity age duration length height distance size price percentage",
        "organisation organization company club team band group label university college school agency party"
        " institution publisher studio network employer corporation firm league",
        "work film movie song album book novel series show play game poem title single episode painting",
        "yes/no boolean bool yesno yes-no verdict truth",
    )
)


def parse_goals(text: str) -> tuple[tuple[Goal, ...], str]:
    """The goals of a reply and the rationale given with them. Raises `BadOutputError` with what is wrong first."""
    listed, said = listed_goals(text)
    return checked(listed), said


def listed_goals(text: str) -> tuple[list[Any], str]:
    """The list of goals of a reply as it was written, unchecked, and the rationale. Raises `BadOutputError`."""
    for value in (*parse_json(text, "{"), *parse_json(text, "[")):
        listed = next((value[key] for key in _LIST_KEYS if key in value), None) if isinstance(value, dict) else value
        if isinstance(listed, list):
            said = value.get("rationale") if isinstance(value, dict) else ""
            return listed, said if isinstance(said, str) else ""
    raise BadOutputError("it holds no JSON list of goals")


def checked(listed: Sequence[Any]) -> tuple[Goal, ...]:
    """Goals that keep all rules."""
    if not listed:
        raise BadOutputError("the list of goals is empty")
    if len(listed) > MAX_GOALS:
        raise BadOutputError(f"it holds {len(listed)} goals; {MAX_GOALS} are the most allowed")
    goals = tuple(_goal(value, step, len(listed)) for step, value in enumerate(listed, start=1))
    goals = _typed(goals)
    for problem in problems(goals):
        raise BadOutputError(problem)
    return goals


def _goal(value: Any, step: int, steps: int) -> Goal:
    if not isinstance(value, dict):
        raise BadOutputError(f'goal {step} is no object with the keys "step", "goal", "type" and "needs"')
    text = _text(value, _TEXT_KEYS, step, "goal")
    if not text:
        raise BadOutputError(f'goal {step} has no text in "goal"')
    number = _first(value, _STEP_KEYS, step)
    if _number(number) != step:
        raise BadOutputError(f"goal {step} is numbered {number!r}: number the goals 1, 2, 3 … in order")
    searched = value.get("search", True)
    if not isinstance(searched, bool | str):
        raise BadOutputError(f'"search" of goal {step} must be false, or the text to search for')
    search = " ".join(searched.split()) if isinstance(searched, str) else text if searched else ""
    compute = _computed(value, step, searched=bool(search))
    used = placeholders(f"{text} {search} {compute}")
    declared = _first(value, _NEEDS_KEYS, None)
    needs = set(used) if declared is None else _needs(declared, step)
    for one in sorted(used | needs):
        _check_reference(one, step, steps)
    if undeclared := sorted(used - needs):
        raise BadOutputError(f'step {step} uses the answer of step {undeclared[0]}: add it to its "needs"')
    if search and (idle := sorted(needs - used)):
        raise BadOutputError(
            f"step {step} needs step {idle[0]} but does not say where: write [TYPE from step {idle[0]}] in its goal, "
            'or set "search" to false where earlier answers are all it takes'
        )
    kind = _text(value, _TYPE_KEYS, step, "type").casefold()
    return Goal(step, text, kind, tuple(sorted(needs)), search, compute)


def _computed(value: Mapping[str, Any], step: int, *, searched: bool) -> str:
    compute = _text({"compute": value.get("compute") or ""}, ("compute",), step, "compute")
    if compute and searched:
        raise BadOutputError(f'step {step} computes its answer: set its "search" to false')
    check_expression(in_code(compute, lambda _: NAMED) or "x", f"step {step}")
    return compute


def check_expression(code: str, owner: str) -> None:
    """Raises `BadOutputError` where code, with `NAMED` in its placeholders, is no expression, or has one in a text."""
    try:
        tree = ast.parse(code, mode="eval")
    except (SyntaxError, ValueError, RecursionError) as error:
        raise BadOutputError(f'"compute" of {owner} is no Python expression: {error}') from error
    if any(NAMED in str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)):
        raise BadOutputError(f'"compute" of {owner} has a placeholder inside a text: write it outside the quotes')


def in_code(compute: str, name: Callable[[int], str]) -> str:
    """An expression with names in place of its placeholders, quotes right around one left out."""
    return _QUOTABLE.sub(lambda found: name(int(found["step"])), compute)


def _first(value: Mapping[str, Any], keys: Sequence[str], default: Any) -> Any:
    return next((value[key] for key in keys if key in value), default)


def _text(value: Mapping[str, Any], keys: Sequence[str], step: int, what: str) -> str:
    text = _first(value, keys, "")
    if not isinstance(text, str):
        raise BadOutputError(f"the {what} of step {step} must be a string, not {repr(text)[:80]}")
    return " ".join(text.split())


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _needs(declared: Any, step: int) -> set[int]:
    numbers = [_number(one) for one in declared] if isinstance(declared, list) else [None]
    if None in numbers:
        raise BadOutputError(f'"needs" of step {step} must be a list of step numbers, such as [1]')
    return {number for number in numbers if number is not None}


def _check_reference(needed: int, step: int, steps: int) -> None:
    if not 1 <= needed <= steps:
        raise BadOutputError(f"step {step} needs step {needed}, which does not exist: there are {steps} steps")
    if needed == step:
        raise BadOutputError(f"step {step} needs its own answer: that is a cycle")
    if needed > step:
        raise BadOutputError(f"step {step} needs step {needed}, which comes later: put it first, or break the cycle")


def _typed(goals: tuple[Goal, ...]) -> tuple[Goal, ...]:
    """Goals without a type get that of the first placeholder that stands for them."""
    said: dict[int, str] = {}
    for goal in goals:
        for match in PLACEHOLDER.finditer(texts_of(goal)):
            said.setdefault(int(match["step"]), match["type"].casefold())
    return tuple(goal if goal.type else replace(goal, type=said.get(goal.step, "answer")) for goal in goals)


def texts_of(goal: Goal) -> str:
    return f"{goal.text} {goal.search} {goal.compute}"


def placeholders(text: str) -> set[int]:
    """The steps whose answers a text has a place for."""
    return {int(match["step"]) for match in PLACEHOLDER.finditer(text)}


def malformed(text: str) -> list[str]:
    """What looks like a placeholder in a text and is none."""
    return _NEARLY.findall(PLACEHOLDER.sub("", text))


def problems(goals: Sequence[Goal]) -> Iterator[str]:
    """What is wrong among goals whose references exist."""
    types = {goal.step: goal.type for goal in goals}
    for goal in goals:
        text = texts_of(goal)
        if left := malformed(text):
            yield f"step {goal.step} has {left[0]}, which is no placeholder: write [TYPE from step N], N a number"
        for match in PLACEHOLDER.finditer(text):
            wanted, given = match["type"].casefold(), types[int(match["step"])]
            if not same_type(wanted, given):
                yield (
                    f"step {goal.step} takes a {wanted} from step {match['step']}, which finds a {given}: "
                    f"write [{given} from step {match['step']}], or correct the type of that step"
                )
    needed = {one for goal in goals for one in goal.needs}
    for goal in goals[:-1]:
        if goal.step not in needed:
            yield (
                f"the answer of step {goal.step} is never used: use it in a later step, leave the step out, "
                'or end with a step that combines the answers ("search": false)'
            )


def same_type(one: str, other: str) -> bool:
    """Whether a value of one type may stand where the other is asked for."""
    heads = [_singular(text.split()[-1]) if text.split() else "answer" for text in (one, other)]
    if heads[0] == heads[1] or _ANY & set(heads):
        return True
    return any(set(heads) <= kind for kind in _KINDS)


def _singular(word: str) -> str:
    known = any(word in kind for kind in _KINDS)
    return word if known or not word.endswith("s") else word.removesuffix("s")


def is_check(goals: Sequence[Goal], goal: Goal) -> bool:
    """Whether a goal only asks if something found before is so."""
    return len(goals) > 1 and bool(goal.needs) and same_type(goal.type, YES_NO) and goal.type not in _ANY
