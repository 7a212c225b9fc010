"""The fields of one step of a plan, read from whatever a model put into them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrag.agents.parsing.fields import worded
from pyrag.agents.parsing.spellings import line
from pyrag.errors import BadOutputError
from pyrag.methods.opera.goal_replies import LABEL, LABEL_KEYS, TEXT_KEYS, as_step, number_said, without_dependencies

_TYPE_KEYS = ("type", "answer_type", "expected_type", "kind", "output", "output_type")
_NEEDS_KEYS = ("needs", "need", "deps", "dependencies", "depends_on", "depends", "requires", "dependency")
_SEARCH_KEYS = ("search", "search_query", "needs_search")
_COMPUTE_KEYS = ("compute", "computation", "expression", "code")
_OWN_KEYS = frozenset((*_TYPE_KEYS, *_NEEDS_KEYS, *_SEARCH_KEYS, *_COMPUTE_KEYS, *LABEL_KEYS))
_NO_WORDS = frozenset(("", "false", "no", "none", "null", "n/a", "na", "-", "not needed", "not required", "nothing"))
_NUMBERS = re.compile(r"\d{1,3}")
_NAME = re.compile(r"[^\W\d]\w{0,40}")
_MAX_SHOWN = 80
_MAX_TEXT = 4_000  # characters of a field


@dataclass(slots=True)
class WrittenGoal:
    """A step as it was written. `number` is the plan's own, `name` an id that is a word.

    `needs` are numbers as the plan counts, `named` ids. `search` is None where nothing was said. `faults` are the
    fields that could not be read.
    """

    text: str
    number: int | None = None
    name: str = ""
    type: str = ""
    needs: tuple[int, ...] = ()
    named: tuple[str, ...] = ()
    search: bool | str | None = None
    compute: str = ""
    faults: list[str] = field(default_factory=list)


def written_goal_of(value: Any, place: int) -> WrittenGoal | None:
    """Return a step of a reply's list as it was written; None for an empty one.

    Args:
        value: The step, any JSON value.
        place: Its place in the list, counted from 1, for errors.

    Raises:
        BadOutputError: it is no object, or has no text.
    """
    step = as_step(value)
    if step is None:
        raise BadOutputError(f'goal {place} is no object with the keys "step", "goal", "type" and "needs"')
    if not any(step.values()) and not any(key in step for key in TEXT_KEYS):
        return None
    found, behind = without_dependencies(_text(step))
    if not worded(found):
        raise BadOutputError(f'goal {place} has no text in "goal"')
    goal = WrittenGoal(found, _number(step), _name(step))
    goal.type = _type(_first(step, _TYPE_KEYS), goal.faults)
    _read_needs(goal, _first(step, _NEEDS_KEYS) if behind == "" else behind)
    goal.search = _search(_first(step, _SEARCH_KEYS), goal.faults)
    goal.compute = _line(_first(step, _COMPUTE_KEYS))
    return goal


def _text(step: Mapping[str, Any]) -> str:
    """The question of a step: under a usual key, in the place of its number, or the longest text under another."""
    texts = [_line(step[key]) for key in TEXT_KEYS if isinstance(step.get(key), str)]
    for text in texts:
        if text and not LABEL.fullmatch(text):
            return text
    for key in LABEL_KEYS:
        if isinstance(step.get(key), str) and " " in step[key].strip() and not LABEL.fullmatch(step[key]):
            return str((as_step(step[key]) or {}).get("goal", ""))
    others = [_line(value) for key, value in step.items() if key not in _OWN_KEYS and isinstance(value, str)]
    return max((one for one in others if " " in one), key=len, default="")


def _number(step: Mapping[str, Any]) -> int | None:
    for key in (*LABEL_KEYS, *TEXT_KEYS):
        if key in step and (number := number_said(step[key])) is not None:
            return number
    return None


def _name(step: Mapping[str, Any]) -> str:
    said = next((step[key] for key in LABEL_KEYS if isinstance(step.get(key), str)), "").strip()
    return said.casefold() if _NAME.fullmatch(said) and number_said(said) is None else ""


def _type(said: Any, faults: list[str]) -> str:
    if isinstance(said, list | tuple):
        said = next((one for one in said if isinstance(one, str)), "")
    if said is not None and not isinstance(said, str):
        faults.append(f'"type" is {repr(said)[:_MAX_SHOWN]}')
    return _line(re.sub(r"\([^()]*\)", " ", said)).casefold() if isinstance(said, str) else ""


def _read_needs(goal: WrittenGoal, said: Any) -> None:
    numbers, names = [], []
    for one in _flat(said):
        if isinstance(one, bool) or one is None:
            continue
        number = number_said(one)
        if number is not None:
            numbers += [number] if number >= 0 else []
        elif isinstance(one, str) and (inside := _NUMBERS.findall(one)):
            numbers += map(int, inside[:12])
        elif isinstance(one, str) and one.strip().casefold() not in _NO_WORDS:
            names.append(one.strip().casefold())
    goal.needs, goal.named = tuple(dict.fromkeys(numbers)), tuple(dict.fromkeys(names))


def _flat(said: Any) -> list[Any]:
    """The items of a list, the values of an object, or the single value."""
    if isinstance(said, Mapping):
        said = list(said.values())
    if not isinstance(said, list | tuple | set):
        return [said]
    return [inner for one in said for inner in (one.values() if isinstance(one, Mapping) else [one])]


def _search(said: Any, faults: list[str]) -> bool | str | None:
    """False where nothing is to be searched for; a text of several words is the query."""
    if isinstance(said, Mapping):
        said = list(said.values())
    if isinstance(said, list):
        said = next((one for one in said if isinstance(one, str)), None)
    if said is None or isinstance(said, bool):
        return said
    if isinstance(said, int | float):
        return bool(said)
    if not isinstance(said, str):
        faults.append(f'"search" is {repr(said)[:_MAX_SHOWN]}')
        return None
    text = _line(said)
    if text.casefold().strip(". ") in _NO_WORDS:
        return False
    return text if " " in text else True  # a single word names a tool: "web", "true"


def _first(step: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((step[key] for key in keys if key in step), None)


def _line(said: Any) -> str:
    return line(said[:_MAX_TEXT]) if isinstance(said, str) else ""
