"""The place of the answer in a reply: between tags, in JSON, in a box, behind a label, in bold.

One function for every agent and baseline. Each form is found by searches that go through the text once. A form's own
placeholder is passed over: it is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pyrag._io.lines import lines_of
from pyrag.agents.parsing.loose_json import values_in
from pyrag.agents.prompts import is_placeholder


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHORT = 200  # characters of an answer that stands for itself
_MAX_BOXES = 20
_MAX_LINE = 2_000  # characters of a line
_MAX_LINES = 300  # from the end, in which a label is looked for

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
_SAID = re.compile(
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
    """The answer of a reply without its thinking, as far as a form shows where it stands; None where none does.

    Args:
        rest: The reply.
        query: What was asked: words in bold that repeat it are no answer.
    """
    plain = _plain_marks(rest)
    for find in (_tagged, _from_json, boxed, _labelled):
        found = find(plain)
        if found is not None:
            return found
    return _bold(plain, query)


def is_form(text: str) -> bool:
    """True if a value is only what a form shows in its place, as "your answer here"."""
    words = re.findall(r"[^\W_]+", text.casefold())
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
    """A line without the label that it begins with."""
    text = re.sub(rf"\A{_EDGE}", "", text[:_MAX_LINE])
    return text[found.end() :] if (found := _LABEL.match(text)) else text


def _plain_marks(text: str) -> str:
    text = text.translate(_MARKS)
    for escaped, plain in _ESCAPED:
        text = text.replace(escaped, plain)
    return text


def _tagged(text: str) -> str | None:
    """The text in the last pair of tags, else behind the last tag that was opened, else before one only closed."""
    if within := [found[1] for found in _WITHIN.finditer(text) if not is_form(found[1])]:
        return within[-1]
    marks = list(_TAG.finditer(text))
    strong = [mark for mark in marks if "ans" in mark["name"].lower()]
    square = list(_SQUARE.finditer(text))
    if not marks and any(mark["slash"] for mark in square):
        strong = square
    return _between(text, strong or [mark for mark in marks if any(one["slash"] for one in marks)])


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
    """The texts of complete pairs, those behind a tag that was opened only, and before one that was closed only."""
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
    """The text of a tag that is never closed: all up to a foreign closing tag, and a paragraph of what is long."""
    found = _CLOSING.search(text)
    if found is not None and (found[1] is None or f"<{found[1]}" not in text[: found.start()]):
        text = text[: found.start()]
    return text if len(text) <= _SHORT else text.strip().split("\n\n", 1)[0]


def _from_json(text: str) -> str | None:
    if "{" not in text and not text.lstrip("` \njson").startswith("["):
        return None
    for value in reversed(list(values_in(text, "{["))):
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, dict) and (found := answer_of(value)) is not None and not is_form(found):
            return found
    stripped = text.strip().removeprefix("```json").strip("`\n ")
    if stripped.startswith("[") and stripped.endswith("]"):
        listed = next(iter(values_in(stripped, "[")), None)
        if isinstance(listed, list) and listed and all(isinstance(one, str) for one in listed):
            return ", ".join(listed)
    return None


def answer_of(value: dict[Any, Any]) -> str | None:
    """The answer that an object holds under a name for it, or as its only text; None where there is none."""
    for key, said in value.items():
        if re.sub(r"[\s_-]", "", str(key).casefold()) in _KEYS:
            return text_of(said)
    inner = [one for one in value.values() if isinstance(one, dict)]
    if len(inner) == 1 and len(value) <= 2:
        return answer_of(inner[0])
    said = next(iter(value.values())) if len(value) == 1 else None
    return said if isinstance(said, str) and len(said) <= _SHORT else None


def text_of(said: Any) -> str:
    """A value of JSON as an answer: yes or no, lists with commas, and nothing for null."""
    if said is None:
        return ""
    if isinstance(said, bool):
        return "yes" if said else "no"
    if isinstance(said, list):
        return ", ".join(filter(None, map(text_of, said)))
    if isinstance(said, dict):
        named = next((said[key] for key in _VALUE_KEYS if key in said), None)
        return answer_of(said) or "" if named is None else text_of(named)
    return str(said)


def boxed(text: str) -> str | None:
    """The content of the last box, \\boxed{…} or \\fbox{…}, as plain text; None where there is none."""
    if "box" not in text:
        return None
    boxes = [found for found in _BOX.finditer(text) if found["brace"] or found[0].startswith("\\")]
    for found in reversed(boxes[-_MAX_BOXES:]):
        inner = _box_from(text, found)
        if inner and not is_form(inner):
            return inner
    return None


def _box_from(text: str, found: re.Match[str]) -> str:
    if not found["brace"]:
        return unlatexed(text[found.end() :].split("\n", 1)[0].strip(" $."))
    depth = 1
    for brace in _BRACE.finditer(text, found.end()):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return unlatexed(text[found.end() : brace.start()])
    return unlatexed(text[found.end() : found.end() + _SHORT].split("\n", 1)[0].rstrip("}$ "))


def unlatexed(text: str) -> str:
    """Text of a formula, without the commands around words."""
    for _ in range(4):
        if "{" not in text:
            break
        text = _LATEX.sub(r"\1", text)
    if found := _BOX.match(text.strip()):
        text = text.strip()[found.end() :].removesuffix("}")
    text = _LATEX_CHAR.sub(r"\1", _LATEX_SPACE.sub(" ", text)).strip(" $")
    return text[1:-1].strip() if text.startswith("{") and text.endswith("}") else text


def _labelled(text: str) -> str | None:
    """The text behind the last label on its line, on the lines below it, or behind "the answer is"."""
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
    said = list(_SAID.finditer(line))
    if label is None and said:
        yield _END.sub("", _value(line[said[-1].end() :])) or _below(lines, number)


def _value(text: str) -> str:
    """One line's answer: without emphasis, and without the sentences that explain it."""
    if not text.strip(" *_`.:："):
        return ""
    text = _EMPHASIS.sub(r"\1", text.strip())
    return first_sentence(_OPEN_END.sub("", text.strip("*_` ")))


def first_sentence(text: str) -> str:
    """The sentence that a text begins with, where further ones follow; initials and "St." end none."""
    for found in _SENTENCE.finditer(text[:1_000]):
        word = text[: found.start()].rpartition(" ")[2].strip("(\"'“")
        if len(word) > 1 and word.casefold() not in _ABBREVIATED and "." not in word and " " in text[found.end() :]:
            return text[: found.start() + 1]
    return text


def _below(lines: list[str], number: int) -> str:
    """The first line below, or the items of a list there."""
    below = [line for line in lines[number + 1 : number + 12] if line.strip("-=_*# ")]
    items: list[str] = []
    for line in below:
        if (found := _LIST_ITEM.match(line)) is None:
            break
        items.append(found[1].strip())
    return ", ".join(items) if items else _value(re.sub(rf"\A{_EDGE}", "", below[0])) if below else ""


def _bold(text: str, query: str) -> str | None:
    """The only words in bold, unless they repeat the question or are a heading."""
    found = dict.fromkeys(one[1].strip() for one in _BOLD.finditer(text))
    spans = [span for span in found if span and not span.endswith((":", "："))]
    if len(spans) != 1 or spans[0].casefold() in query.casefold() or is_form(spans[0]):
        return None
    return spans[0]
