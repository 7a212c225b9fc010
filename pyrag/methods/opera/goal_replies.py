"""Steps of a plan, found in a Plan agent's reply: JSON in many shapes, tags, or a Markdown list.

This module only finds the steps and turns each into a mapping with plain keys. `goals` checks the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyrag._io.lines import lines_of
from pyrag.agents.parsing.json_values import parse_json
from pyrag.agents.parsing.spellings import first_read
from pyrag.agents.parsing.thinking import split_thinking
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
_MAX_TEXT = 20_000  # characters of a reply without JSON that are searched
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
    r"(?P<message>[^()\n]{0,60})[\])}]*\s*\Z",
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
RawStep = dict[str, Any]


def listed_goals(text: str) -> tuple[list[Any], str]:
    """Return the steps of a reply as written, and the rationale. Raises `BadOutputError` if there is no list."""
    if (listed := first_read(text, _steps_of)) is not None:
        steps, rationale = listed
        reasoning = _REASONING.search(text)
        return steps, rationale if rationale or reasoning is None else " ".join(reasoning[1].split())
    others = [value for value in parse_json(text, "[") if value or text.strip() == "[]"]
    if not others and not any(_listed(value) is not None for value in parse_json(text, "{")):
        raise BadOutputError("it holds no JSON list of goals")
    return (others[0] if others else []), ""


def _steps_of(text: str) -> tuple[list[Any], str] | None:
    objects, lists = parse_json(text, "{"), parse_json(text, "[")
    for value in objects:
        # Braces around a placeholder such as {answer_1} are not a list of steps.
        if (listed := _listed(value)) and (isinstance(value, dict) or _holds_objects(listed) or _asks(listed)):
            return listed, _rationale_of(value)
    for steps in (
        next(filter(_holds_objects, lists), None),
        _each_alone(objects),
        next(filter(_asks, lists), None),
        _written(text),
    ):
        if steps is not None:
            return steps, ""
    return None


def _holds_objects(listed: Sequence[Any]) -> bool:
    return any(isinstance(item, dict) for item in listed)


def _asks(listed: Sequence[Any]) -> bool:
    """Return whether an item reads like a question or an instruction."""
    return any(isinstance(item, str) and _ASKS.match(item) for item in listed)


def plain_keys(value: Mapping[Any, Any]) -> RawStep:
    """Return a step with its keys in lower case and their words joined by `_`."""
    return {re.sub(r"[\s-]+", "_", str(key).strip().casefold()): item for key, item in value.items()}


def as_step(value: Any) -> RawStep | None:
    """Return an item of a list of steps as a mapping; None if it is not a step."""
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        texts = [item for item in value if isinstance(item, str)]
        return _of_text(max(texts, key=len)) if texts else None
    if not isinstance(value, Mapping):
        return None
    step = plain_keys(value)
    if len(step) == 1 and LABEL.fullmatch(next(iter(step))):  # {"step 1": …}
        label, inner = next(iter(step.items()))
        unnumbered = as_step(inner)
        return None if unnumbered is None else {**unnumbered, "step": label}
    return step


def _of_text(text: str) -> RawStep:
    """Return the step of a line such as `2. Where is [company from step 1] based? {deps: [1]}`."""
    step: RawStep = {}
    match = _PREFIX.match(text)
    if match:
        step["step"] = int(match["named"] or match["plain"])
        text = text[match.end() :]
    text = _NAMED.sub("", text, count=1) if _NAMED.match(text) else text
    text, needs = without_dependencies(text.strip().strip("*_ ").strip())
    return {**step, "goal": text.strip("*_ "), **({"needs": needs} if needs else {})}


def without_dependencies(text: str) -> tuple[str, str]:
    """Return a goal's text without the dependencies written after it, and these dependencies."""
    # Dependencies are always at the end of the text.
    start = max(len(text) - 100, 0)
    match = _DEPENDENCIES.search(text, start)
    return (text[: match.start()].rstrip(), match["message"]) if match else (text, "")


def _listed(value: Any, depth: int = _MAX_DEPTH) -> list[Any] | None:
    """Return the list of steps that a JSON value is or contains; None if there is none."""
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


def _labelled(keyed: RawStep) -> list[Any] | None:
    """Return the steps of an object whose keys are step numbers, in their order; None for any other object."""
    numbered = {
        int(label["number"]): (key, content) for key, content in keyed.items() if (label := LABEL.fullmatch(key))
    }
    steps = [{key: content} for _, (key, content) in sorted(numbered.items()) if isinstance(content, str | dict)]
    return steps if len(steps) > 1 else None


def _rationale_of(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    keyed = plain_keys(value)
    return next((keyed[key] for key in _SAID_KEYS if isinstance(keyed.get(key), str)), "")


def _each_alone(objects: Sequence[Any]) -> list[Any] | None:
    """Return the steps of a reply that has a separate object for each of them, in the order written."""
    steps: list[Any] = []
    for value in objects:
        if isinstance(value, dict) and value not in steps and _is_goal(plain_keys(value)):
            steps.append(value)
    return steps[::-1] or None


def _is_goal(step: RawStep) -> bool:
    has_text = any(isinstance(step.get(key), str) and step[key].strip() for key in TEXT_KEYS)
    return has_text or (len(step) == 1 and LABEL.fullmatch(next(iter(step))) is not None)


def _in_text(text: str) -> list[Any] | None:
    return _written(text) if "\n" in text else None


def _written(text: str) -> list[Any] | None:
    """Return the steps of a reply without JSON, written in tags or as a list; None if there are none."""
    rest = split_thinking(text[-_MAX_TEXT:], _TAGGED.pattern)[1]
    candidates = _tagged(rest) or list(_table(rest)) or list(_keyed(rest)) or list(_listing(rest))
    steps = [step for step in candidates if step["goal"]]
    asking = all(_ASKS.match(step["goal"]) for step in steps)
    return list(steps) if steps and asking else None


def _tagged(text: str) -> list[RawStep]:
    pieces = _TAGGED.split(text)[1:]
    return [_of_text(" ".join(piece.partition("</")[0].split())) for piece in pieces]


def _table(text: str) -> Iterator[RawStep]:
    """Yield the rows of a Markdown table whose first cell is a number."""
    for line in lines_of(text):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []
        if len(cells) > 1 and (number := number_in(cells[0])) is not None:
            yield {**_of_text(cells[1]), "step": number, "type": cells[2] if len(cells) > 2 else ""}


def _keyed(text: str) -> Iterator[RawStep]:
    """Yield the steps of a YAML list of mappings whose values are single lines."""
    step: RawStep = {}
    lines = [match for match in map(_KEYED.match, lines_of(text)) if match]
    for match in lines if any(other["new"] for other in lines) else ():
        if match["new"]:
            if step.get("goal"):
                yield step
            step = {}
        step[match["key"].casefold()] = match["value"].strip("\"' ")
        step.setdefault("goal", "")
        if match["key"].casefold() in TEXT_KEYS:
            step["goal"] = step[match["key"].casefold()]
    if step.get("goal") and len(step) > 2:
        yield step


def _listing(text: str) -> Iterator[RawStep]:
    """Yield the steps of numbered lines with the fields below each, or of bullets if no line has a number."""
    lines = lines_of(text)
    numbered = any(_PREFIX.match(line) for line in lines)
    step: RawStep | None = None
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


def number_in(value: Any) -> int | None:
    """Return the number that a label such as `2`, `"Step 2"`, `"two"` or `"G2"` contains; None if it has none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value) if float(value).is_integer() else None
    match = LABEL.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(match["number"]) if match else number_of(value) if isinstance(value, str) else None
