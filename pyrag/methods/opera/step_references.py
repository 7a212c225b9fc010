"""References to the answers of earlier steps in a goal's text, normalised to the form `[TYPE from step N]`.

Models write `[step 1]`, `{answer_1}`, `<result of step 1>`, `#1`, `the answer to step 1` and many other forms. The
number determines the step, and a stated type is kept. A reference without brackets counts only if it names an earlier
step, because `#1` and `step 2` also occur in titles. `goals` checks which steps a goal may use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyrag.agents.goals.goal import MAX_TYPE, PLACEHOLDER

ANSWER = "answer"  # type of a reference that states no type

_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER = rf"(?:\d{{1,3}}|{'|'.join(_WORDS)})"
_STEP = r"(?:steps?|goals?|sub[-_ ]?goals?|sub[-_ ]?quest(?:ion)?s?|quest(?:ion)?s?|tasks?|hops?)"
_BEFORE = r"(?:previous|prior|preceding)"
_OUTCOME = r"(?:answers?|ans|results?|outputs?|values?)"
_PARTICIPLE = r"(?:found|identified|obtained|determined|returned|given|named|mentioned|retrieved|discovered|resolved)"
_LINK = r"(?:from|of|in|to|by|at|for)"

# Text in a pair of brackets, which may be a reference. The bounded character classes keep matching linear.
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
_TRAILING = re.compile(rf"(?:[\s,:(–-]|\b(?:{_LINK}|{_PARTICIPLE}|the|{_OUTCOME})\b)+\Z", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:the|a|an)\s+", re.IGNORECASE)
_BEHIND = re.compile(r"[\s.:_-]*(?:'s|’s)?[\s.:_-]*(?P<type>[A-Za-z][A-Za-z _-]{0,40})\Z")

_BARE = re.compile(
    rf"(?P<lead>(?:\b(?:the\s+)?(?P<type>[A-Za-z][A-Za-z-]{{0,30}})\s+(?:that\s+was\s+)?(?:{_PARTICIPLE}\s+)?{_LINK}\s+"
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
    """Possible meanings of a goal's references.

    `step` is the goal's own number. `numbers` maps the plan's numbers to steps, and `names` maps ids that are words.
    `types` holds the type of each step's answer.
    """

    step: int
    numbers: Mapping[int, int]
    names: Mapping[str, int]
    types: Mapping[int, str]
    needs: frozenset[int] = frozenset()  # steps that the goal itself states as its needs

    def type_of(self, step: int) -> str:
        return self.types.get(step) or ANSWER

    def wanted(self, steps: list[int]) -> list[int]:
        """Return the steps of a type that may be meant: all of them, or only those that the goal says it needs."""
        return [step for step in steps if not self.needs or step in self.needs]

    def is_earlier(self, step: int | None) -> bool:
        return step is not None and 0 < step < self.step


def number_of(word: str) -> int | None:
    """Return the number that a word such as `2` or `two` stands for; None if it is not a number."""
    word = word.strip().casefold()
    if word.isdecimal() and len(word) <= 3:
        return int(word)
    return _WORDS.index(word) + 1 if word in _WORDS else None


def normalised(text: str, steps: Steps) -> str:
    """Return the text with every reference to a step in the form `[TYPE from step N]`.

    Args:
        text: Text or query of a goal. Anything that refers to no step is left unchanged.
        steps: Possible meanings of the goal's references.
    """
    text = _SPLIT.sub(r"[\g<type> from step \g<number>]", text)
    text = _BRACKETED.sub(lambda match: _bracketed(match, steps), text)
    return _outside(text, lambda part: _bare(part, steps))


def normalised_code(code: str, steps: Steps) -> str:
    """Return an expression with every reference to a step in the form `[TYPE from step N]`.

    Args:
        code: A Python expression, in which a number in brackets is an index and `#` starts a comment.
        steps: Possible meanings of the goal's references.
    """

    def bracketed(match: re.Match[str]) -> str:
        content = (match["square"] or match["curly"] or "").strip()
        meant = _of_mention(content, steps)
        return f"[{meant[0][0]} from step {meant[0][1]}]" if len(meant) == 1 else match[0]

    return _outside(
        _BRACKETED.sub(bracketed, code), lambda part: _VARIABLE.sub(lambda match: _variable(match, steps), part)
    )


def _outside(text: str, change: Callable[[str], str]) -> str:
    """Return the text with everything except its placeholders changed."""
    parts, at = [], 0
    for match in PLACEHOLDER.finditer(text):
        parts += [change(text[at : match.start()]), match[0]]
        at = match.end()
    return "".join([*parts, change(text[at:])])


def _bracketed(match: re.Match[str], steps: Steps) -> str:
    kind = str(match.lastgroup)
    content = match[kind].strip()
    meant = _of_mention(content, steps)
    if kind == "round":  # parentheses are common in prose: they count only if they name an earlier step
        meant = [reference for reference in meant if steps.is_earlier(reference[1]) and _SAYS_STEP.search(content)]
    elif not meant:
        meant = _of_name(content, steps) or _of_number(content, steps)
    return " and ".join(f"[{type_} from step {step}]" for type_, step in meant) or match[0]


def _of_mention(content: str, steps: Steps) -> list[tuple[str, int]]:
    """Return the references, as (type, step), in a text with "step". Keep the written number if no step has it."""
    content = content.replace("_", " ")
    match = _MENTION.search(content)
    if match is None:
        return []
    if match["before"]:
        numbers = [steps.step - 1]
    else:
        words = re.findall(_NUMBER, match["numbers"] or match["lettered"], re.IGNORECASE)
        numbers = [_step(number_of(word), steps) for word in words]
    type_ = _type_before(content[: match.start()]) or _type_behind(content[match.end() :])
    return [(type_ or steps.type_of(number), number) for number in numbers]


def _of_name(content: str, steps: Steps) -> list[tuple[str, int]]:
    """Return the reference for a word that is an id or an earlier step's type: `director`, `person from director`."""
    head, link, tail = content.rpartition(" from ")
    for name in (content, tail if link else "", content.partition(".")[0]):
        if step := steps.names.get(name.strip().casefold()):
            return [(_type_before(head) or steps.type_of(step), step)]
    wanted_type = _clean(content).casefold()
    typed = steps.wanted(
        [step for step, type_ in steps.types.items() if wanted_type and step < steps.step and type_ == wanted_type]
    )
    return [(wanted_type, typed[-1])] if typed else []


def _of_number(content: str, steps: Steps) -> list[tuple[str, int]]:
    """Return the reference for a number, with or without a word: `1`, `#1`, `Answer1`, `person_1`."""
    plain, named = _NUMBERED.match(content), _NAMED.match(content)
    match = plain or named
    number = steps.numbers.get(number_of(match["number"]) or 0) if match else None
    if match is None or number is None or not steps.is_earlier(number):
        return []
    type_ = _type_before(named["type"]) or named["type"] if named and not plain else ""
    return [(_clean(type_) or steps.type_of(number), number)]


def _step(number: int | None, steps: Steps) -> int:
    """Return the step with a number; if there is none, the number itself, for the error message."""
    number = number or 0
    return steps.numbers.get(number, number)


def _type_before(text: str) -> str:
    bare = _TRAILING.sub("", text)
    text_of_type = bare or text.strip(" ,:(–-")
    if not bare:  # "answer to step 1" states no other type than the word for the outcome
        outcome = re.search(_OUTCOME, text_of_type, re.IGNORECASE)
        text_of_type = outcome[0] if outcome else ""
    return _clean(text_of_type)


def _type_behind(text: str) -> str:
    match = _BEHIND.match(text)
    return _clean(match["type"]) if match and re.fullmatch(_OUTCOME, match["type"], re.IGNORECASE) else ""


def _clean(text: str) -> str:
    """Return a type in the form that placeholders require; empty if nothing valid remains."""
    text = " ".join(_ARTICLE.sub("", re.sub(r"[\[\]{}<>_\n]", " ", text).strip(), count=1).split())
    return text[:MAX_TYPE].strip() if text[:1].isalpha() else ""


def _bare(text: str, steps: Steps) -> str:
    text = _BARE.sub(lambda match: _prose(match, steps), text)
    text = _outside(text, lambda part: _VARIABLE.sub(lambda match: _variable(match, steps), part))
    return _outside(text, lambda part: _HASH.sub(lambda match: _hash(match, steps), part))


def _prose(match: re.Match[str], steps: Steps) -> str:
    step = steps.step - 1 if match["before"] else steps.numbers.get(number_of(match["number"]) or 0)
    if step is None or not steps.is_earlier(step):
        return match[0]
    type_ = _clean(match["type"] or "") or (ANSWER if match["behind"] else "")
    return f"[{type_ or steps.type_of(step)} from step {step}]"


def _variable(match: re.Match[str], steps: Steps) -> str:
    step = steps.numbers.get(int(match["number"]))
    if step is None or not steps.is_earlier(step):
        return match[0]
    return f"[{_clean(match['type']) or steps.type_of(step)} from step {step}]"


def _hash(match: re.Match[str], steps: Steps) -> str:
    step = steps.numbers.get(int(match["number"]))
    if match["lead"] or not steps.is_earlier(step) or _CHART.match(match.string, match.end()):
        return match[0]
    return f"[{steps.type_of(step or 0)} from step {step}]"
