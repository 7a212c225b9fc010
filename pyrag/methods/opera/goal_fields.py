"""Fields of a step of a plan, read leniently from what a model wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrag.agents.parsing.fields import worded
from pyrag.agents.parsing.spellings import line
from pyrag.errors import BadOutputError
from pyrag.methods.opera.goal_replies import LABEL, LABEL_KEYS, TEXT_KEYS, as_step, number_in, without_dependencies

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
    """Step as the model wrote it. `number` is its number in the plan, `name` an id that is a word.

    `needs` holds numbers as the plan counts them, and `named` holds ids. `search` is None if the step does not specify
    it. `faults` names the fields that could not be read.
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
    """Return a step of a reply's list as the model wrote it; None for an empty step.

    Args:
        value: The step, any JSON value.
        place: Position in the list, counted from 1, for errors.

    Raises:
        BadOutputError: The step is not an object, or has no text.
    """
    step = as_step(value)
    if step is None:
        raise BadOutputError(f'goal {place} is not an object with the keys "step", "goal", "type" and "needs"')
    if not any(step.values()) and not any(key in step for key in TEXT_KEYS):
        return None
    text, behind = without_dependencies(_text(step))
    if not worded(text):
        raise BadOutputError(f'goal {place} has no text in "goal"')
    goal = WrittenGoal(text, _number(step), _name(step))
    goal.type = _type(_first(step, _TYPE_KEYS), goal.faults)
    _read_needs(goal, _first(step, _NEEDS_KEYS) if behind == "" else behind)
    goal.search = _search(_first(step, _SEARCH_KEYS), goal.faults)
    goal.compute = _line(_first(step, _COMPUTE_KEYS))
    return goal


def _text(step: Mapping[str, Any]) -> str:
    """Return a step's text: under a usual key, in place of its number, or the longest text under any other key."""
    texts = [_line(step[key]) for key in TEXT_KEYS if isinstance(step.get(key), str)]
    for text in texts:
        if text and not LABEL.fullmatch(text):
            return text
    for key in LABEL_KEYS:
        if isinstance(step.get(key), str) and " " in step[key].strip() and not LABEL.fullmatch(step[key]):
            return str((as_step(step[key]) or {}).get("goal", ""))
    others = [_line(value) for key, value in step.items() if key not in _OWN_KEYS and isinstance(value, str)]
    return max((text for text in others if " " in text), key=len, default="")


def _number(step: Mapping[str, Any]) -> int | None:
    for key in (*LABEL_KEYS, *TEXT_KEYS):
        if key in step and (number := number_in(step[key])) is not None:
            return number
    return None


def _name(step: Mapping[str, Any]) -> str:
    label = next((step[key] for key in LABEL_KEYS if isinstance(step.get(key), str)), "").strip()
    return label.casefold() if _NAME.fullmatch(label) and number_in(label) is None else ""


def _type(value: Any, faults: list[str]) -> str:
    if isinstance(value, list | tuple):
        value = next((item for item in value if isinstance(item, str)), "")
    if value is not None and not isinstance(value, str):
        faults.append(f'"type" is {repr(value)[:_MAX_SHOWN]}')
    return _line(re.sub(r"\([^()]*\)", " ", value)).casefold() if isinstance(value, str) else ""


def _read_needs(goal: WrittenGoal, value: Any) -> None:
    numbers, names = [], []
    for item in _flat(value):
        if isinstance(item, bool) or item is None:
            continue
        number = number_in(item)
        if number is not None:
            numbers += [number] if number >= 0 else []
        elif isinstance(item, str) and (inside := _NUMBERS.findall(item)):
            numbers += map(int, inside[:12])
        elif isinstance(item, str) and item.strip().casefold() not in _NO_WORDS:
            names.append(item.strip().casefold())
    goal.needs, goal.named = tuple(dict.fromkeys(numbers)), tuple(dict.fromkeys(names))


def _flat(value: Any) -> list[Any]:
    """Return the items of a list, the values of an object, or the single value, as a list."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple | set):
        return [value]
    return [inner for item in value for inner in (item.values() if isinstance(item, Mapping) else [item])]


def _search(value: Any, faults: list[str]) -> bool | str | None:
    """Return False if the step needs no search, its query if `value` is a text of several words, and otherwise True."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        value = next((item for item in value if isinstance(item, str)), None)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return bool(value)
    if not isinstance(value, str):
        faults.append(f'"search" is {repr(value)[:_MAX_SHOWN]}')
        return None
    text = _line(value)
    if text.casefold().strip(". ") in _NO_WORDS:
        return False
    return text if " " in text else True  # a single word names a tool, as in "web", or means yes


def _first(step: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((step[key] for key in keys if key in step), None)


def _line(value: Any) -> str:
    return line(value[:_MAX_TEXT]) if isinstance(value, str) else ""
