"""The steps of a plan as a reply lists them: JSON in many shapes, tags, or a Markdown list.

Nothing is checked here beyond what it takes to find the steps: each becomes a mapping with plain keys, and what a plan
must keep is in `goals`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyrag._io.lines import lines_of
from pyrag.agents.parsing.json_values import parse_json, split_thinking
from pyrag.agents.parsing.spellings import first_read
from pyrag.errors import BadOutputError
from pyrag.methods.opera.step_references import number_of

TEXT_KEYS = (
    "goal", "subgoal", "sub_goal", "question", "sub_question", "subquestion", "query", "sub_query", "subquery", "task",
    "description", "objective", "instruction", "action", "content", "text",
)  # fmt: skip
LABEL_KEYS = ("step", "id", "number", "step_id", "step_number", "goal_id", "index", "no", "#", "key")
_LIST_KEYS = ("goals", "plan", "steps", "subgoals", "sub_goals", "tasks", "sub_questions", "subquestions",
              "questions", "sub_queries", "queries", "decomposition", "output", "result")  # fmt: skip
_SAID_KEYS = ("rationale", "reasoning", "explanation", "thought", "analysis")
_MAX_TEXT = 20_000  # characters of a reply without JSON that are looked at
_MAX_DEPTH = 3  # objects around the list of goals

_WORD = r"(?:step|goal|sub[-_ ]?goal|sub[-_ ]?question|question|task|hop|[gsq])"
LABEL = re.compile(rf"\W*(?:{_WORD}[\s_#.:-]{{0,3}})?(?P<number>\d{{1,3}})[\s.):\]*-]{{0,3}}\Z", re.IGNORECASE)
_PREFIX = re.compile(
    rf"[\s*_#>-]{{0,8}}(?:{_WORD}[\s_#-]{{0,2}}(?P<named>\d{{1,2}})[\s*_]{{0,3}}(?:[.):\u2013-]|\Z)"
    r"|(?P<plain>\d{1,2})[\s*_]{0,2}[.):](?!\d))[\s*_:]{0,4}",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s{0,8}[-*•]\s+")
_FIELD = re.compile(
    r"\s{0,12}[-*•]?\s{0,3}\*{0,2}(?P<key>type|needs?|deps|depends on|dependencies|search|goal|question)"
    r"\*{0,2}\s{0,3}:\*{0,2}\s{0,3}(?P<value>\S.*)",
    re.IGNORECASE,
)
_DEPENDENCIES = re.compile(
    r"\s*[\[({]\s{0,3}(?:deps?|needs?|depends?(?: on)?|dependenc(?:y|ies)|requires?)\s{0,3}:?"
    r"(?P<said>[^()\n]{0,60})[\])}]*\s*\Z",
    re.IGNORECASE,
)
_REASONING = re.compile(r"<reasoning>([^<]{1,4000})</reasoning>", re.IGNORECASE)
_TAGGED = re.compile(r"<(?:sub[_-]?)?(?:question|goal|query|step)\b[^<>]{0,60}>", re.IGNORECASE)
_NAMED = re.compile(r"[\s*_]{0,4}(?:sub-?)?(?:goal|question|query)[\s*_]{0,4}:[\s*_]{0,4}", re.IGNORECASE)
_KEYED = re.compile(r"\s{0,12}(?P<new>-\s{1,4})?[\"']?(?P<key>[A-Za-z_]{1,20})[\"']?\s?:\s*(?P<value>\S.*)")
_ASKS = re.compile(
    r"(?:[^\n]{0,600}\?\s*\Z)|(?:find|identify|determine|search|get|look|compare|list|retrieve|locate|calculate|compute"
    r"|conclude|combine|check|figure|decide|who|whom|whose|what|where|when|which|how)\b",
    re.IGNORECASE,
)
Step = dict[str, Any]


def listed_goals(text: str) -> tuple[list[Any], str]:
    """The steps of a reply as they were written, and the rationale given with them. Raises `BadOutputError`."""
    if (found := first_read(text, _steps_of)) is not None:
        reasoning = _REASONING.search(text)
        return found if found[1] or reasoning is None else (found[0], " ".join(reasoning[1].split()))
    others = [one for one in parse_json(text, "[") if one or text.strip() == "[]"]
    if not others and not any(_listed(value) is not None for value in parse_json(text, "{")):
        raise BadOutputError("it holds no JSON list of goals")
    return (others[0] if others else []), ""


def _steps_of(text: str) -> tuple[list[Any], str] | None:
    objects, lists = parse_json(text, "{"), parse_json(text, "[")
    for value in objects:
        # Braces around a placeholder such as {answer_1} are no list of steps.
        if (listed := _listed(value)) and (isinstance(value, dict) or _holds_objects(listed) or _asks(listed)):
            return listed, _said(value)
    for found in (
        next(filter(_holds_objects, lists), None),
        _each_alone(objects),
        next(filter(_asks, lists), None),
        _written(text),
    ):
        if found is not None:
            return found, ""
    return None


def _holds_objects(listed: Sequence[Any]) -> bool:
    return any(isinstance(item, dict) for item in listed)


def _asks(listed: Sequence[Any]) -> bool:
    """Return whether an item is a question or an instruction."""
    return any(isinstance(item, str) and _ASKS.match(item) for item in listed)


def plain_keys(value: Mapping[Any, Any]) -> Step:
    """A step with its keys in lower case and words joined by `_`."""
    return {re.sub(r"[\s-]+", "_", str(key).strip().casefold()): one for key, one in value.items()}


def as_step(value: Any) -> Step | None:
    """One item of a list of steps as a mapping; None where it is none."""
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        texts = [one for one in value if isinstance(one, str)]
        return _of_text(max(texts, key=len)) if texts else None
    if not isinstance(value, Mapping):
        return None
    step = plain_keys(value)
    if len(step) == 1 and LABEL.fullmatch(next(iter(step))):  # {"step 1": …}
        label, inner = next(iter(step.items()))
        found = as_step(inner)
        return None if found is None else {**found, "step": label}
    return step


def _of_text(text: str) -> Step:
    """A step from a line such as `2. Where is [company from step 1] based? {deps: [1]}`."""
    step: Step = {}
    found = _PREFIX.match(text)
    if found:
        step["step"] = int(found["named"] or found["plain"])
        text = text[found.end() :]
    text = _NAMED.sub("", text, count=1) if _NAMED.match(text) else text
    text, needs = without_dependencies(text.strip().strip("*_ ").strip())
    return {**step, "goal": text.strip("*_ "), **({"needs": needs} if needs else {})}


def without_dependencies(text: str) -> tuple[str, str]:
    """A goal's text without the dependencies written behind it, and these."""
    # Only the end of a text can hold them.
    start = max(len(text) - 100, 0)
    found = _DEPENDENCIES.search(text, start)
    return (text[: found.start()].rstrip(), found["said"]) if found else (text, "")


def _listed(value: Any, depth: int = _MAX_DEPTH) -> list[Any] | None:
    """The list of steps that a JSON value is or holds."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict) or not depth:
        return None
    keyed = plain_keys(value)
    for key in _LIST_KEYS:
        if key in keyed:
            inner = keyed[key]
            listed = _in_text(inner) if isinstance(inner, str) else _listed(inner, depth - 1)
            if listed is not None:
                return listed
    return _labelled(keyed)


def _labelled(keyed: Step) -> list[Any] | None:
    """The steps of an object whose keys are their numbers, in the order of these."""
    found = {int(label["number"]): (key, one) for key, one in keyed.items() if (label := LABEL.fullmatch(key))}
    steps = [{key: one} for _, (key, one) in sorted(found.items()) if isinstance(one, str | dict)]
    return steps if len(steps) > 1 else None


def _said(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    keyed = plain_keys(value)
    return next((keyed[key] for key in _SAID_KEYS if isinstance(keyed.get(key), str)), "")


def _each_alone(objects: Sequence[Any]) -> list[Any] | None:
    """The steps of a reply with an object for each, in the order in which they were written."""
    steps: list[Any] = []
    for value in objects:
        if isinstance(value, dict) and value not in steps and _is_goal(plain_keys(value)):
            steps.append(value)
    return steps[::-1] or None


def _is_goal(step: Step) -> bool:
    told = any(isinstance(step.get(key), str) and step[key].strip() for key in TEXT_KEYS)
    return told or (len(step) == 1 and LABEL.fullmatch(next(iter(step))) is not None)


def _in_text(text: str) -> list[Any] | None:
    return _written(text) if "\n" in text else None


def _written(text: str) -> list[Any] | None:
    """The steps of a reply without JSON: in tags, or as a list. None where it holds neither."""
    rest = split_thinking(text[-_MAX_TEXT:], _TAGGED.pattern)[1]
    found = _tagged(rest) or list(_table(rest)) or list(_keyed(rest)) or list(_listing(rest))
    steps = [step for step in found if step["goal"]]
    asking = all(_ASKS.match(step["goal"]) for step in steps)
    return list(steps) if steps and asking else None


def _tagged(text: str) -> list[Step]:
    pieces = _TAGGED.split(text)[1:]
    return [_of_text(" ".join(piece.partition("</")[0].split())) for piece in pieces]


def _table(text: str) -> Iterator[Step]:
    """The rows of a Markdown table whose first cell is a number."""
    for line in lines_of(text):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []
        if len(cells) > 1 and (number := number_said(cells[0])) is not None:
            yield {**_of_text(cells[1]), "step": number, "type": cells[2] if len(cells) > 2 else ""}


def _keyed(text: str) -> Iterator[Step]:
    """Steps as YAML writes them: a list of mappings of single lines."""
    step: Step = {}
    lines = [found for found in map(_KEYED.match, lines_of(text)) if found]
    for found in lines if any(one["new"] for one in lines) else ():
        if found["new"]:
            if step.get("goal"):
                yield step
            step = {}
        step[found["key"].casefold()] = found["value"].strip("\"' ")
        step.setdefault("goal", "")
        if found["key"].casefold() in TEXT_KEYS:
            step["goal"] = step[found["key"].casefold()]
    if step.get("goal") and len(step) > 2:
        yield step


def _listing(text: str) -> Iterator[Step]:
    """Numbered lines, each with the fields that stand below it; bullets where no line has a number."""
    lines = lines_of(text)
    numbered = any(_PREFIX.match(line) for line in lines)
    step: Step | None = None
    for line in lines:
        field = _FIELD.match(line) if step else None
        if step and field:
            step.setdefault(field["key"].casefold().replace(" ", "_"), field["value"].strip("*_ "))
            if not step["goal"]:
                step["goal"] = step.get("question", "")
        elif _PREFIX.match(line) if numbered else _BULLET.match(line):
            if step:
                yield step
            step = _of_text(line if numbered else _BULLET.sub("", line, count=1))
        elif step and not step["goal"] and line.strip():
            step["goal"] = _of_text(line)["goal"]
    if step:
        yield step


def number_said(value: Any) -> int | None:
    """The number that a label such as `2`, `"Step 2"`, `"two"` or `"G2"` has."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value) if float(value).is_integer() else None
    found = LABEL.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(found["number"]) if found else number_of(value) if isinstance(value, str) else None
