"""References to the answers of earlier steps in the text of a goal, rewritten to the one form `[TYPE from step N]`.

Models write `[step 1]`, `{answer_1}`, `<result of step 1>`, `#1`, `the answer to step 1` and many more. The number
decides which step is meant; the type is kept as far as it was said. A bare reference counts only where it names an
earlier step, since `#1` and `step 2` also occur in titles. Left out: which steps a goal may use (`goals`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyrag.agents.goals.goal import MAX_TYPE, PLACEHOLDER

ANSWER = "answer"  # the type of a reference that names none

_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER = rf"(?:\d{{1,3}}|{'|'.join(_WORDS)})"
_STEP = r"(?:steps?|goals?|sub[-_ ]?goals?|sub[-_ ]?quest(?:ion)?s?|quest(?:ion)?s?|tasks?|hops?)"
_BEFORE = r"(?:previous|prior|preceding)"
_OUTCOME = r"(?:answers?|ans|results?|outputs?|values?)"
_FOUND = r"(?:found|identified|obtained|determined|returned|given|named|mentioned|retrieved|discovered|resolved)"
_LINK = r"(?:from|of|in|to|by|at|for)"

# What a pair of brackets holds, with one of these inside. The character classes are bounded: time stays linear.
_BRACKETED = re.compile(
    r"\$?(?:\[{1,2}(?P<square>[^\[\]{}\n]{1,80})\]{1,2}|\{{1,2}(?P<curly>[^{}\n]{1,80})\}{1,2}"
    r"|<(?P<angle>[^<>\[\]{}\n]{1,80})>|\((?P<round>[^()\[\]{}<>\n]{1,80})\))"
)
_SPLIT = re.compile(
    rf"(?P<open>[\[{{<])(?P<type>[^\[\]{{}}<>\n]{{1,60}})[\]}}>] {_LINK} step #?(?P<number>{_NUMBER})\b", re.IGNORECASE
)
_MENTION = re.compile(
    rf"\b(?:(?P<word>{_STEP})[\s_#.:-]{{0,3}}(?P<numbers>{_NUMBER}(?:\s*(?:,|and|&|or)\s*{_NUMBER}\b){{0,5}})"
    rf"|(?:the\s+)?(?P<before>{_BEFORE}|last)\s+(?:{_STEP}|{_OUTCOME})"
    r"|(?P<letter>[gsq])(?P<lettered>\d{1,2}))(?![0-9A-Za-z])",
    re.IGNORECASE,
)
_SAYS_STEP = re.compile(r"\bsteps?\b|\bgoals? ?#?\d", re.IGNORECASE)
_NUMBERED = re.compile(rf"#?\s*(?P<number>{_NUMBER})\Z", re.IGNORECASE)
_NAMED = re.compile(r"(?P<type>[^\W\d_][A-Za-z _-]{0,40}?)[\s_#-]{0,2}(?P<number>\d{1,2})\Z")
_TRAILING = re.compile(rf"(?:[\s,:(–-]|\b(?:{_LINK}|{_FOUND}|the|{_OUTCOME})\b)+\Z", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:the|a|an)\s+", re.IGNORECASE)
_BEHIND = re.compile(r"[\s.:_-]*(?:'s|’s)?[\s.:_-]*(?P<type>[A-Za-z][A-Za-z _-]{0,40})\Z")

_BARE = re.compile(
    rf"(?P<lead>(?:\b(?:the\s+)?(?P<type>[A-Za-z][A-Za-z-]{{0,30}})\s+(?:that\s+was\s+)?(?:{_FOUND}\s+)?{_LINK}\s+"
    rf"(?:the\s+)?(?:{_OUTCOME}\s+{_LINK}\s+)?)?)"
    rf"\b(?:(?P<word>{_STEP})[\s_]{{0,2}}#?(?P<number>{_NUMBER})|(?P<before>(?:the\s+)?{_BEFORE}\s+(?:{_STEP}|{_OUTCOME})))"
    rf"\b(?P<behind>(?:'s|’s|_)?\s?{_OUTCOME}\b)?",
    re.IGNORECASE,
)
_VARIABLE = re.compile(
    rf"\$?\b(?P<type>{_OUTCOME}[\s_#]?|[a-z]{{2,20}}_)(?P<number>\d{{1,2}})\b(?!\.\d)", re.IGNORECASE
)
_HASH = re.compile(
    r"(?P<lead>(?:\b(?:the|an?|its|their|his|her|number|ranked|no\.?|at|\w+'s)\s+)?)(?<![\w&#])#(?P<number>\d{1,2})\b"
)
_CHART = re.compile(
    r"\s*(?:hits?|singles?|songs?|albums?|ranked|spot|draft|pick|best|seed|position|on\s+the)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Steps:
    """Possible meanings of the references of one goal.

    `numbers` maps the numbers that the plan uses to steps, `names` the ids that are words. `types` holds what each step
    finds; `step` is the goal's own place.
    """

    step: int
    numbers: Mapping[int, int]
    names: Mapping[str, int]
    types: Mapping[int, str]
    needs: frozenset[int] = frozenset()  # what the goal itself says that it needs

    def type_of(self, step: int) -> str:
        return self.types.get(step) or ANSWER

    def wanted(self, found: list[int]) -> list[int]:
        """Those of the steps found by their type that are meant: all, unless the goal says which ones it needs."""
        return [one for one in found if not self.needs or one in self.needs]

    def is_earlier(self, step: int | None) -> bool:
        return step is not None and 0 < step < self.step


def number_of(word: str) -> int | None:
    """The number that a word such as `2` or `two` is."""
    word = word.strip().casefold()
    if word.isdecimal() and len(word) <= 3:
        return int(word)
    return _WORDS.index(word) + 1 if word in _WORDS else None


def normalised(text: str, steps: Steps) -> str:
    """Return the text with every reference to a step in the form `[TYPE from step N]`.

    Args:
        text: A goal's text or search; what refers to no step stays as it is.
        steps: The meanings that references of this goal can have.
    """
    text = _SPLIT.sub(r"[\g<type> from step \g<number>]", text)
    text = _BRACKETED.sub(lambda found: _bracketed(found, steps), text)
    return _outside(text, lambda part: _bare(part, steps))


def normalised_code(code: str, steps: Steps) -> str:
    """Return an expression with every reference to a step in the form `[TYPE from step N]`.

    Args:
        code: A Python expression, in which a number in brackets is an index and `#` begins a comment.
        steps: The meanings that references of this goal can have.
    """

    def bracketed(found: re.Match[str]) -> str:
        content = (found["square"] or found["curly"] or "").strip()
        meant = _of_mention(content, steps)
        return f"[{meant[0][0]} from step {meant[0][1]}]" if len(meant) == 1 else found[0]

    return _outside(
        _BRACKETED.sub(bracketed, code), lambda part: _VARIABLE.sub(lambda found: _variable(found, steps), part)
    )


def _outside(text: str, change: Callable[[str], str]) -> str:
    """The text with everything but its placeholders changed."""
    parts, at = [], 0
    for found in PLACEHOLDER.finditer(text):
        parts += [change(text[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*parts, change(text[at:])])


def _bracketed(found: re.Match[str], steps: Steps) -> str:
    kind = str(found.lastgroup)
    content = found[kind].strip()
    meant = _of_mention(content, steps)
    if kind == "round":  # parentheses belong to prose: they count only where they name an earlier step
        meant = [one for one in meant if steps.is_earlier(one[1]) and _SAYS_STEP.search(content)]
    elif not meant:
        meant = _of_name(content, steps) or _of_number(content, steps)
    return " and ".join(f"[{type_} from step {step}]" for type_, step in meant) or found[0]


def _of_mention(content: str, steps: Steps) -> list[tuple[str, int]]:
    """References of a content that says "step": (type, step), the step as the plan counts it where it has none such."""
    content = content.replace("_", " ")
    found = _MENTION.search(content)
    if found is None:
        return []
    if found["before"]:
        numbers = [steps.step - 1]
    else:
        said = re.findall(_NUMBER, found["numbers"] or found["lettered"], re.IGNORECASE)
        numbers = [_step(number_of(one), steps) for one in said]
    said_type = _type_before(content[: found.start()]) or _type_behind(content[found.end() :])
    return [(said_type or steps.type_of(number), number) for number in numbers]


def _of_name(content: str, steps: Steps) -> list[tuple[str, int]]:
    """References by an id that is a word, or by the type of an earlier step: `director`, `person from director`."""
    head, link, tail = content.rpartition(" from ")
    for name in (content, tail if link else "", content.partition(".")[0]):
        if step := steps.names.get(name.strip().casefold()):
            return [(_type_before(head) or steps.type_of(step), step)]
    said = _clean(content).casefold()
    typed = steps.wanted([step for step, type_ in steps.types.items() if said and step < steps.step and type_ == said])
    return [(said, typed[-1])] if typed else []


def _of_number(content: str, steps: Steps) -> list[tuple[str, int]]:
    """References by a number alone, or by a word and a number: `1`, `#1`, `Answer1`, `person_1`."""
    plain, named = _NUMBERED.match(content), _NAMED.match(content)
    found = plain or named
    number = steps.numbers.get(number_of(found["number"]) or 0) if found else None
    if found is None or number is None or not steps.is_earlier(number):
        return []
    said = _type_before(named["type"]) or named["type"] if named and not plain else ""
    return [(_clean(said) or steps.type_of(number), number)]


def _step(number: int | None, steps: Steps) -> int:
    """The step of a number; the number itself where there is no such step, so that it can be said."""
    number = number or 0
    return steps.numbers.get(number, number)


def _type_before(text: str) -> str:
    bare = _TRAILING.sub("", text)
    said = bare or text.strip(" ,:(–-")
    if not bare:  # "answer to step 1": the outcome is all the type there is
        outcome = re.search(_OUTCOME, said, re.IGNORECASE)
        said = outcome[0] if outcome else ""
    return _clean(said)


def _type_behind(text: str) -> str:
    found = _BEHIND.match(text)
    return _clean(found["type"]) if found and re.fullmatch(_OUTCOME, found["type"], re.IGNORECASE) else ""


def _clean(said: str) -> str:
    """A type that a placeholder can hold; empty where nothing of it is left."""
    said = " ".join(_ARTICLE.sub("", re.sub(r"[\[\]{}<>_\n]", " ", said).strip(), count=1).split())
    return said[:MAX_TYPE].strip() if said[:1].isalpha() else ""


def _bare(text: str, steps: Steps) -> str:
    text = _BARE.sub(lambda found: _prose(found, steps), text)
    for pattern, read in ((_VARIABLE, _variable), (_HASH, _hash)):
        text = _outside(text, lambda part, pattern=pattern, read=read: pattern.sub(lambda one: read(one, steps), part))  # type: ignore[misc]
    return text


def _prose(found: re.Match[str], steps: Steps) -> str:
    step = steps.step - 1 if found["before"] else steps.numbers.get(number_of(found["number"]) or 0)
    if step is None or not steps.is_earlier(step):
        return found[0]
    said = _clean(found["type"] or "") or (ANSWER if found["behind"] else "")
    return f"[{said or steps.type_of(step)} from step {step}]"


def _variable(found: re.Match[str], steps: Steps) -> str:
    step = steps.numbers.get(int(found["number"]))
    if step is None or not steps.is_earlier(step):
        return found[0]
    return f"[{_clean(found['type']) or steps.type_of(step)} from step {step}]"


def _hash(found: re.Match[str], steps: Steps) -> str:
    step = steps.numbers.get(int(found["number"]))
    if found["lead"] or not steps.is_earlier(step) or _CHART.match(found.string, found.end()):
        return found[0]
    return f"[{steps.type_of(step or 0)} from step {step}]"
