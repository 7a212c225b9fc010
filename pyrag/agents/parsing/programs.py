"""The program in a model's reply, and its syntax errors.

Only text is examined: the sandbox decides whether a program is allowed, and plan checks whether it makes sense.
"""

from __future__ import annotations

import bisect
import functools
import html
import re
import textwrap
import warnings
from collections.abc import Iterator
from typing import Any

from pyrag.agents.parsing.json_values import places_of
from pyrag.agents.parsing.loose_json import values_in
from pyrag.agents.parsing.thinking import MAX_REPLY, clipped, split_thinking
from pyrag.errors import BadOutputError

MAX_SOURCE = 64 * 1024  # bytes, as in the sandbox's own limit

# Possessive, here and below: a reply that repeats one character must not cost the cube of its length.
# The pattern starts with the first character, before its lookarounds, so a search skips all others quickly.
_FENCE = re.compile(
    r"([`~](?:(?<=`)(?<!``)`{2,}+|(?<=~)(?<!~~)~{2,}+))"
    r"[ \t]*+\{?([\w+-]*)\}?(?:[ \t]{1,4}\w{1,20}=[^\s()]{1,60}){0,3}[ \t]*\n"
    r"((?:(?![ \t]*+\1)[^\n]*+\n)*+(?:(?![ \t]*+\1)[^\n]++)?+)(?:[ \t]*+\1|\Z)"
)
_NOTHING = "(?!)"
_PAYLOAD = r"(?:```|~~~)\s*(?:python|py)\b"
_PRIMITIVE = re.compile(r"\b(?:retrieve|answer)\s*\(")
_RESULT = re.compile(r"^[ \t]*+final_answer\b[^=\n]*=", re.MULTILINE)
_CODE_LINE = re.compile(
    r"\s*+(?:[^\W\d]\w*+(?:\s*+:[^=\n]++|[\[.,][^=\n]*+|\s*+[-+*/|&]?)=(?!=)|import |from [\w.]+ import |#|@|print\("
    r"|retrieve\(|answer\(|try:|(?:def|for|if|while|with|class) .*:\s*(?:#.*)?$)"
)
_WRAPPED = (
    "{",
    "[",
    "'''",
    '"""',
    "python\n",
    "Python\n",
)  # a text that begins like this is not a bare program, although it may compile
_DOUBLE = "“”„‟"
_SINGLE = "‘’‚‛"
_CODE_KEYS = ("program", "code", "python", "source", "script", "plan", "answer", "content", "solution")
_TAG = re.compile(r"</?[\w|]{1,30}>|<\|\w{1,30}\|>|\[/?[A-Z]{2,20}\]")
_AROUND_CODE = re.compile(r"(?:```|~~~|\'\'\'|\"\"\")(?:[Pp]y(?:thon)?3?)?[ \t]*|[Pp]ython:?")
_ONE_LITERAL = re.compile(r'([ \t]*+\w++[ \t]*+=[ \t]*+[fF]?)"([^\n]*)"[ \t]*+')
_BARE_QUOTE, _ESCAPED_QUOTE = re.compile(r'(?<!\\)"'), r'\\"'
_PROMPT = re.compile(r"(?:>>>|\.\.\.)(?: |$)")
_MAX_OBJECTS = 10


def parse_program(text: str) -> str:
    """Return a reply's program, which may have syntax errors. Raises `BadOutputError` if the reply has no program."""
    source = _source_in(text, _PAYLOAD)
    if source.startswith(_WRAPPED) or not source.strip() or syntax_error(source) is not None:
        source = unwrapped(split_thinking(text, _PAYLOAD)[1]) or source
    if not source.strip():
        raise BadOutputError("it holds no program")
    if len(source.encode("utf-8", "replace")) > MAX_SOURCE:
        raise BadOutputError(f"its program is longer than {MAX_SOURCE // 1024} KiB")
    return repaired_quotes(source)


def unwrapped(rest: str) -> str:
    """Return a program that compiles from a wrapping other than a fence (such as tags or JSON); else an empty text."""
    programs = (
        repaired_quotes(candidate)
        for candidate in _candidates(rest)
        if len(candidate) <= MAX_SOURCE and _looks_like_code(candidate)
    )
    return next((candidate for candidate in programs if syntax_error(candidate) is None), "")


def _candidates(rest: str) -> Iterator[str]:
    """Yield texts of a reply without its thinking that may be its program, most likely first."""
    plain = rest.replace("\ufeff", "").replace("\u00a0", " ").replace("\r\n", "\n")
    yield from _in_json(plain)
    for text in dict.fromkeys((plain, html.unescape(plain))):
        lines = _code_lines(text)
        yield "\n".join(lines)
        yield "\n".join(_without_prompts(lines))


def _in_json(text: str) -> Iterator[str]:
    """Yield the texts that JSON objects hold under a key for code."""
    if "{" not in text:
        return
    for place in places_of(text):
        objects = [value for value in values_in(place, "{") if isinstance(value, dict)]
        for value in reversed(objects[-_MAX_OBJECTS:]):
            yield from _under_keys(value)


def _under_keys(value: dict[str, Any]) -> Iterator[str]:
    for key in _CODE_KEYS:
        code = value.get(key)
        if isinstance(code, list) and code and all(isinstance(line, str) for line in code):
            code = "\n".join(code)
        if isinstance(code, str):
            yield "\n".join(_code_lines(code[:MAX_SOURCE]))
    for inner in value.values():
        if isinstance(inner, dict):
            yield from _under_keys({key: code for key, code in inner.items() if not isinstance(code, dict)})


def _code_lines(text: str) -> list[str]:
    """Return lines without the tags, fences and language names around a program."""
    lines = _TAG.sub("", text).strip().strip("`").split("\n")
    return [
        _AROUND_CODE.sub("", line.lstrip(), count=1).lstrip() if _AROUND_CODE.match(line.lstrip()) else line
        for line in lines
    ]


def _without_prompts(lines: list[str]) -> list[str]:
    """Return the lines typed at an interpreter's prompts, if the lines have such prompts."""
    typed = [line.lstrip() for line in lines if _PROMPT.match(line.lstrip())]
    return [_PROMPT.sub("", line, count=1) for line in typed]


def parse_draft(text: str) -> str:
    """Return the beginning of an unfinished reply's program, in whole lines; empty until its first line ends.

    Unclosed thinking and prose without a fence are not programs.
    """
    if len(text) > MAX_REPLY:
        return ""
    if not _FENCE.search(text) and not _CODE_LINE.match(text.lstrip()):
        return ""
    source = _source_in(text, _NOTHING)
    return f"{repaired_quotes(source)}\n" if source.strip() and len(source) <= MAX_SOURCE else ""


def _source_in(text: str, payload: str) -> str:
    rest = split_thinking(clipped(text).lstrip("\ufeff").replace("\r\n", "\n"), payload)[1]
    blocks = [(fence[2].lower(), fence[3]) for fence in _FENCE.finditer(rest)]
    source = (_best(blocks) if blocks else _bare(rest)).strip("\n")
    return (textwrap.dedent(source).strip("\n") if source[:1].isspace() else source).rstrip()


def _best(blocks: list[tuple[str, str]]) -> str:
    """Return the best block: the last that sets the result, else the last that calls primitives, else the last."""
    return max(enumerate(blocks), key=lambda block: (*_rank(*block[1]), block[0]))[1][1]


def _rank(language: str, block: str) -> tuple[bool, bool, bool]:
    uses = bool(_PRIMITIVE.search(block))
    return uses and bool(_RESULT.search(block)), uses, language in ("python", "py", "python3", "")


def _bare(text: str) -> str:
    """Return a program that is not fenced, without the prose before and after it."""
    if syntax_error(text) is None and _looks_like_code(text):
        return text
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if _CODE_LINE.match(line)), None)
    if start is None or not _looks_like_code(text):
        return ""
    blocks = re.split(r"\n\s*\n", "\n".join(lines[start:]))
    while len(blocks) > 1 and _is_prose(blocks[-1]):
        blocks.pop()
    return "\n\n".join(blocks)


def _looks_like_code(text: str) -> bool:
    return bool(_PRIMITIVE.search(text) or _RESULT.search(text))


def _is_prose(block: str) -> bool:
    return not any(char in block for char in "=()[]{}#") and block.strip()[:1].isupper()


@functools.lru_cache(64)  # a program is parsed, checked and run, and compiling takes most of that time
def syntax_error(source: str) -> str | None:
    """Return the syntax error of a program, with line and caret as Python shows it; None if it compiles."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "<program>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return _located(error)
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        return f"SyntaxError: the program cannot be parsed ({type(error).__name__}: {error})"
    return None


def _located(error: SyntaxError) -> str:
    message = f"SyntaxError: {error.msg}" + (f" (line {error.lineno})" if error.lineno else "")
    line = (error.text or "").rstrip("\n")
    if not line.strip():
        return message
    stripped = line.lstrip()
    column = max((error.offset or 1) - 1 - (len(line) - len(stripped)), 0)
    return f"{message}\n    {stripped[:200]}\n" + (f"    {' ' * column}^" if column <= 200 else "")


def repaired_quotes(source: str) -> str:
    """Return the program with its quotes repaired, if this makes it compile; otherwise the program unchanged.

    Quotes inside the only literal of a line are escaped (`q1 = "Who wrote "Lulu"?"`), and typographic quotes outside
    literals become plain ones. Typographic quotes inside a literal belong to the text and stay.
    """
    if syntax_error(source) is None:
        return source
    plain = _plain_quotes(source) if any(char in source for char in _DOUBLE + _SINGLE) else source
    candidates = (
        candidate for candidate in dict.fromkeys((_escaped(source), plain, _escaped(plain))) if candidate != source
    )
    return next((candidate for candidate in candidates if syntax_error(candidate) is None), source)


def _escaped(source: str) -> str:
    return "\n".join(map(_escaped_line, source.split("\n")))


def _escaped_line(line: str) -> str:
    literal = _ONE_LITERAL.fullmatch(line)
    if literal is None or '"' not in literal[2] or syntax_error(line.strip()) is None:
        return line
    return f'{literal[1]}"{_BARE_QUOTE.sub(_ESCAPED_QUOTE, literal[2])}"'


def _plain_quotes(source: str) -> str:
    out: list[str] = []
    closing = {kind: [quote.start() for quote in _closing(kind).finditer(source)] for kind in (_DOUBLE, _SINGLE)}
    position = 0
    while position < len(source):
        char = source[position]
        if char == "#":
            end = _line_end(source, position)
        elif char in "'\"":
            end = _literal_end(source, position)
        elif char in _DOUBLE + _SINGLE:
            end = _typographic_end(source, position, closing[_DOUBLE if char in _DOUBLE else _SINGLE])
            out.append(_as_literal(source[position:end]))
            position = end
            continue
        else:
            end = position + 1
        out.append(source[position:end])
        position = end
    return "".join(out)


def _line_end(source: str, start: int) -> int:
    end = source.find("\n", start)
    return len(source) if end < 0 else end


def _literal_end(source: str, start: int) -> int:
    """Return the end of an ordinary string literal, or of its line if the literal is never closed."""
    quote = source[start] * 3 if source.startswith(source[start] * 3, start) else source[start]
    position = start + len(quote)
    while position < len(source):
        if source[position] == "\\":
            position += 2
        elif source.startswith(quote, position):
            return position + len(quote)
        elif source[position] == "\n" and len(quote) == 1:
            return position
        else:
            position += 1
    return len(source)


@functools.cache
def _closing(kind: str) -> re.Pattern[str]:
    """Return the pattern of quotes of a kind that are followed by code or the end of the line."""
    return re.compile(rf"[{kind}](?=[^\S\n]*+(?:[,)\]}}:+#]|$))", re.MULTILINE)


def _typographic_end(source: str, start: int, closing: list[int]) -> int:
    """Return the end of a literal in typographic quotes: the first quote of its kind followed by code, or this one."""
    following = bisect.bisect_right(closing, start)
    if following == len(closing) or source.find("\n", start, closing[following]) >= 0:
        return start + 1
    return closing[following] + 1


def _as_literal(quoted: str) -> str:
    quote = '"' if quoted[0] in _DOUBLE else "'"
    if len(quoted) == 1:
        return quote
    return quote + quoted[1:-1].replace(quote, "\\" + quote) + quote
