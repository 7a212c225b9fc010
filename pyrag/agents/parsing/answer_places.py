"""Place of the answer in a reply: between tags, in JSON, in a box, after a label or in bold.

All agents and baselines use `extracted`. Each form is searched for in one pass over the text. A form's own
placeholder is skipped, since it is not an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pyrag._io.lines import lines_of
from pyrag.agents.parsing.loose_json import values_in
from pyrag.agents.prompts import is_placeholder


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHORT = 200  # maximum characters of a text that may be an answer as it is
_MAX_BOXES = 20
_WORD = re.compile(r"[^\W_]+")
_MAX_LINE = 2_000  # characters of a line
_MAX_LINES = 300  # lines at the end that are searched for a label

_NAMES = r"(?:final|short|best|my|the)?[ _-]?(?:answer|ans)(?:[ _-]?(?:text|span|final))?"
_TAG = re.compile(
    rf"<\s{{0,3}}(?P<slash>/?)\s{{0,3}}(?P<name>{_NAMES}|final|response|solution|output|reply)"
    r"(?:\s[^<>\n]{0,100})?\s{0,3}(?P<own>/?)\s{0,3}>",
    re.IGNORECASE,
)
_SQUARE = re.compile(rf"\[\s?(?P<slash>/?)\s?(?P<name>{_NAMES})\s?(?P<own>/?)\]", re.IGNORECASE)
_WITHIN = re.compile(rf"<\s?{_NAMES}\s?[:=：]\s?([^<>\n]{{1,300}}?)\s?/?>", re.IGNORECASE)
_CLOSING = re.compile(r"</\s?([\w:-]{1,40})\s?>|<\||\[/\w{1,20}\]")
_MARKS = str.maketrans({"＜": "<", "＞": ">", "〈": "<", "〉": ">", "⟨": "<", "⟩": ">", "／": "/"})
_ESCAPED = (
    ("\\<", "<"),
    ("\\>", ">"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("\\u003c", "<"),
    ("\\u003e", ">"),
    ("<\\/", "</"),
)

_KEYS = _words(
    "answer answers finalanswer finalanswers shortanswer answertext answerspan bestanswer theanswer final result "
    "response output span "
    "solution "
    "antwort réponse reponse respuesta risposta resposta ответ 答案 回答 最终答案 答え"
)
_VALUE_KEYS = ("text", "value", "name", "span", "content")

_BOX = re.compile(r"\\{0,2}(?:boxed|fbox|framebox|box)\s{0,3}(?P<brace>\{)?")
_BRACE = re.compile(r"[{}]")
_LATEX = re.compile(r"\\(?:text\w{0,12}|math\w{1,12}|mbox|hbox|operatorname|emph)\s?\{([^{}]*)\}")
_LATEX_SPACE = re.compile(r"\\[ ,;:!]|~|\\\\|\\quad|\\displaystyle")
_LATEX_CHAR = re.compile(r"\\([&%$#_])")

_EDGE = r"[\s>*_#`~•\-–—=|]{0,12}"
_GOOD = r"(?:(?:final|short|best|correct|complete|direct|concise|exact|right|overall|resulting)\s{1,3}){0,2}"
_FOREIGN = (
    "最终答案|最终回答|答案|回答|答|最終的な答え|最終回答|答え|정답|답변|답|antwort|endgültige antwort|die antwort"
    "|réponse finale|la réponse|réponse|respuesta final|la respuesta|respuesta|risposta finale|la risposta|risposta"
    "|resposta final|a resposta|resposta|antwoord|окончательный ответ|ответ|відповідь|odpowiedź|odpověď|svar|cevap"
    "|jawaban"
    "|vastaus|الجواب|الإجابة|उत्तर|trả lời|đáp án"
)
_WORDS = rf"(?:(?:the|my|our|a)\s{{1,3}})?{_GOOD}(?:answer|ans|conclusion|response|result|solution|output)"
_ABOUT = r"(?:\s{1,3}(?:to|for)\s{1,3}[^.:：\n]{1,150}?)?"
_IS = r"(?:is|was|are|would be|must be|should be|will be|equals|ist|lautet|est|es|è|é|是|为|は|это)"
_LABEL = re.compile(
    rf"[\[(]?(?:{_WORDS}{_ABOUT}|{_FOREIGN}|(?-i:A))[\s*_`]{{0,6}}[\])]?(?:\(.{{0,30}}?\)\s?)?"
    r"(?:[:：=→]|\s[—–-]\s)[\s*_`]{0,6}"
    rf"|[\[(]{_WORDS}[\])]\s|\#{{1,6}}\s?{_WORDS}\b",
    re.IGNORECASE,
)
_STATEMENT = re.compile(
    rf"(?<![^\W\d_])(?:(?:answer|ans){_ABOUT}(?:\s{{1,3}}{_IS}\b(?:\s{{1,3}}that\b)?\s{{0,3}}[:：]?|\s{{0,3}}[:：=])"
    rf"|(?:{_FOREIGN})\s{{0,3}}(?:{_IS}(?!\w)\s{{0,3}}[:：]?|[:：]))[\s*_`]{{0,4}}",
    re.IGNORECASE,
)
_HEADING = re.compile(rf"(?:{_WORDS}|{_FOREIGN})[\s*_`:：]{{0,8}}\Z", re.IGNORECASE)
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*(?!\s{0,2}[:：])")
_LIST_ITEM = re.compile(r"\s{0,8}(?:[-*•]|\d{1,2}[.)])\s{1,4}(.+)")

_EMPHASIS = re.compile(r"\A[*_]{1,3}([^*_\n]{1,300})[*_]{1,3}(?!\w)")
_OPEN_END = re.compile(r"[*_`]{1,3}(?=\.\Z)")
_END = re.compile(r"(?<![A-Z.])\.(?=[*_`]{0,3}\Z)")
_SENTENCE = re.compile(r"[.!。！](?=\s+[A-Z(\[“\"]|[^\x00-\x7f])\s*")
_ABBREVIATED = _words(
    "st dr mr mrs ms jr sr prof rev gen col sgt capt lt no vol vs mt ft inc ltd co corp feat op ca etc approx"
)

_FORM_WORDS = _words(
    "your you the a an final short shortest best complete concise exact direct answer answers response span text "
    "result here "
    "goes insert put write give or unknown in few words value of question this place only actual entity name phrase to"
)
_FORM_SIGNS = _words("your here goes insert put write place or shortest")


def extracted(rest: str, query: str = "") -> str | None:
    """Return the answer in a reply if a form marks its place, otherwise None.

    Args:
        rest: Reply without its thinking.
        query: Query that was asked; words in bold that repeat it are not an answer.
    """
    plain = _plain_marks(rest)
    for find in (_tagged, _from_json, boxed, _labelled):
        answer = find(plain)
        if answer is not None:
            return answer
    return _bold(plain, query)


@lru_cache(maxsize=32)  # each answer is looked at several times
def is_form(text: str) -> bool:
    """Return True if a value is only the placeholder of a form, such as "your answer here"."""
    words = _WORD.findall(text.casefold())
    if not words:
        return False
    bracketed = text.strip()[0] + text.strip()[-1] in ("[]", "{}", "<>", "()")
    return is_placeholder(text) or (
        len(words) <= 12
        and bool({"answer", "response", "span", "result"} & set(words))
        and set(words) <= _FORM_WORDS
        and (bracketed or bool(_FORM_SIGNS & set(words)) or words in (["final", "answer"], ["short", "answer"]))
    )


def without_label(text: str) -> str:
    """Return a line without the label at its beginning."""
    text = re.sub(rf"\A{_EDGE}", "", text[:_MAX_LINE])
    return text[label.end() :] if (label := _LABEL.match(text)) else text


def _plain_marks(text: str) -> str:
    text = text.translate(_MARKS)
    for escaped, plain in _ESCAPED:
        text = text.replace(escaped, plain)
    return text


def _tagged(text: str) -> str | None:
    """Return the text in the last pair of tags, or next to the last unpaired tag."""
    if within := [match[1] for match in _WITHIN.finditer(text) if not is_form(match[1])]:
        return within[-1]
    marks = list(_TAG.finditer(text))
    strong = [mark for mark in marks if "ans" in mark["name"].lower()]
    square = list(_SQUARE.finditer(text))
    if not marks and any(mark["slash"] for mark in square):
        strong = square
    return _between(text, strong or [mark for mark in marks if any(other["slash"] for other in marks)])


def _between(text: str, marks: list[re.Match[str]]) -> str | None:
    pairs, opened, closed = _spans(text, marks)
    usable = [span for span in pairs if span.strip() and not is_form(span)]
    if usable:
        return usable[-1]
    for span in reversed(opened):
        if span.strip() and not is_form(span):
            return span
    for span in reversed(closed):
        if lines := [line for line in lines_of(span) if line.strip()]:
            return lines[-1]
    return pairs[-1] if pairs else opened[-1] if opened else None


def _spans(text: str, marks: list[re.Match[str]]) -> tuple[list[str], list[str], list[str]]:
    """Return the texts between pairs of tags, after unclosed opening tags, and before unopened closing tags."""
    pairs: list[str] = []
    opened: list[str] = []
    closed: list[str] = []
    at, start = 0, -1
    for mark in marks:
        span = text[max(start, at) : mark.start()]
        if not mark["slash"]:
            if start >= 0 and span.strip():
                opened.append(span)
            start = mark.end()
        elif start >= 0:
            pairs.append(span)
            start = -1
        else:
            closed.append(span)
        at = mark.end()
    if start >= 0:
        opened.append(_unclosed(text[start:]))
    return pairs, opened, closed


def _unclosed(text: str) -> str:
    """Return the text after a tag that is never closed, up to another closing tag (one paragraph of a long text)."""
    mark = _CLOSING.search(text)
    if mark is not None and (mark[1] is None or f"<{mark[1]}" not in text[: mark.start()]):
        text = text[: mark.start()]
    return text if len(text) <= _SHORT else text.strip().split("\n\n", 1)[0]


def _from_json(text: str) -> str | None:
    if "{" not in text and not text.lstrip("` \njson").startswith("["):
        return None
    for value in reversed(list(values_in(text, "{["))):
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, dict) and (answer := answer_of(value)) is not None and not is_form(answer):
            return answer
    stripped = text.strip().removeprefix("```json").strip("`\n ")
    if stripped.startswith("[") and stripped.endswith("]"):
        items = next(iter(values_in(stripped, "[")), None)
        if isinstance(items, list) and items and all(isinstance(item, str) for item in items):
            return ", ".join(items)
    return None


def answer_of(value: dict[Any, Any]) -> str | None:
    """Return the answer that an object holds under a known name or as its only text, otherwise None."""
    for key, field in value.items():
        if re.sub(r"[\s_-]", "", str(key).casefold()) in _KEYS:
            return text_of(field)
    inner = [inner_value for inner_value in value.values() if isinstance(inner_value, dict)]
    if len(inner) == 1 and len(value) <= 2:
        return answer_of(inner[0])
    field = next(iter(value.values())) if len(value) == 1 else None
    return field if isinstance(field, str) and len(field) <= _SHORT else None


def text_of(value: Any) -> str:
    """Convert a JSON value to an answer: yes or no, a list joined by commas, or an empty text for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(filter(None, map(text_of, value)))
    if isinstance(value, dict):
        named = next((value[key] for key in _VALUE_KEYS if key in value), None)
        return answer_of(value) or "" if named is None else text_of(named)
    return str(value)


def boxed(text: str) -> str | None:
    """Return the content of the last box, \\boxed{…} or \\fbox{…}, as plain text; None without a box."""
    if "box" not in text:
        return None
    boxes = [box for box in _BOX.finditer(text) if box["brace"] or box[0].startswith("\\")]
    for box in reversed(boxes[-_MAX_BOXES:]):
        inner = _box_from(text, box)
        if inner and not is_form(inner):
            return inner
    return None


def _box_from(text: str, box: re.Match[str]) -> str:
    if not box["brace"]:
        return unlatexed(text[box.end() :].split("\n", 1)[0].strip(" $."))
    depth = 1
    for brace in _BRACE.finditer(text, box.end()):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return unlatexed(text[box.end() : brace.start()])
    return unlatexed(text[box.end() : box.end() + _SHORT].split("\n", 1)[0].rstrip("}$ "))


def unlatexed(text: str) -> str:
    """Return the text of a formula without the LaTeX commands around its words."""
    for _ in range(4):
        if "{" not in text:
            break
        text = _LATEX.sub(r"\1", text)
    if box := _BOX.match(text.strip()):
        text = text.strip()[box.end() :].removesuffix("}")
    text = _LATEX_CHAR.sub(r"\1", _LATEX_SPACE.sub(" ", text)).strip(" $")
    return text[1:-1].strip() if text.startswith("{") and text.endswith("}") else text


def _labelled(text: str) -> str | None:
    """Return the text after the last label (on the same line or the lines below), or after "the answer is"."""
    lines = [line for line in lines_of(text) if line.strip()][-_MAX_LINES:]
    for number in range(len(lines) - 1, -1, -1):
        for value in _values_of(lines, number):
            if value and not is_form(value):
                return value
    return None


def _values_of(lines: list[str], number: int) -> Iterator[str]:
    line = lines[number][:_MAX_LINE].strip()
    stripped = re.sub(rf"\A{_EDGE}", "", line)
    label = _LABEL.match(stripped)
    if label is not None:
        yield _value(stripped[label.end() :]) or _below(lines, number)
    elif _HEADING.match(stripped):
        yield _below(lines, number)
    statements = list(_STATEMENT.finditer(line))
    if label is None and statements:
        yield _END.sub("", _value(line[statements[-1].end() :])) or _below(lines, number)


def _value(text: str) -> str:
    """Return the answer on one line, without emphasis and without sentences that explain it."""
    if not text.strip(" *_`.:："):
        return ""
    text = _EMPHASIS.sub(r"\1", text.strip())
    return first_sentence(_OPEN_END.sub("", text.strip("*_` ")))


def first_sentence(text: str) -> str:
    """Return the first sentence of a text; initials and abbreviations such as "St." do not end a sentence."""
    for end in _SENTENCE.finditer(text[:1_000]):
        word = text[: end.start()].rpartition(" ")[2].strip("(\"'“")
        if len(word) > 1 and word.casefold() not in _ABBREVIATED and "." not in word and " " in text[end.end() :]:
            return text[: end.start() + 1]
    return text


def _below(lines: list[str], number: int) -> str:
    """Return the first line below a line, or the items of a list that starts there."""
    below = [line for line in lines[number + 1 : number + 12] if line.strip("-=_*# ")]
    items: list[str] = []
    for line in below:
        if (item := _LIST_ITEM.match(line)) is None:
            break
        items.append(item[1].strip())
    return ", ".join(items) if items else _value(re.sub(rf"\A{_EDGE}", "", below[0])) if below else ""


def _bold(text: str, query: str) -> str | None:
    """Return the text in bold if there is only one, unless it repeats the query or is a heading."""
    spans = dict.fromkeys(match[1].strip() for match in _BOLD.finditer(text))
    candidates = [span for span in spans if span and not span.endswith((":", "："))]
    if len(candidates) != 1 or candidates[0].casefold() in query.casefold() or is_form(candidates[0]):
        return None
    return candidates[0]
