"""Definitions of tools: accepted functions, their text for the planner, and single calls."""

from __future__ import annotations

import asyncio
import datetime as dt
import functools
import pickle
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest

from pyrag import PyRAG
from pyrag.errors import ConfigError, UsageError
from pyrag.tools import Sourced, Tool, ToolError, tool
from pyrag.tools.calls import MAX_RESULT_BYTES, call_tool
from pyrag.tools.tool import MAX_DESCRIPTION, as_tools, describe
from pyrag.trace.model import Passage


@dataclass
class Town:
    name: str
    founded: dt.date


class Size(TypedDict):
    width: int
    height: float


def survey(
    town: Town, kind: Literal["big", "small"] = "big", size: Size | None = None, limits: tuple[int, float] = (1, 2.0)
) -> list[Town]:
    """Survey a town.

    Slow in winter.
    """
    return [town]


@tool(timeout=2)
def named(name: str) -> str:
    """Return the name."""
    return name


class Unusual(BaseException):
    """As some libraries have it."""


def test_description_holds_signature_docstring_and_types() -> None:
    assert describe(as_tools([survey])) == (
        "- survey(town: Town, kind: Literal['big', 'small'] = 'big', size: Size | None = None, "
        "limits: tuple[int, float] = (1, 2.0)) -> list[Town]\n"
        "  Survey a town.\n\n  Slow in winter.\n"
        '  Town: a dict {"name": str, "founded": str}\n'
        '  date: str (a date as "2024-12-31")\n'
        '  Size: a dict {"width": int, "height": float}'
    )


def test_descriptions_are_bounded() -> None:
    assert len(describe([Tool(named.function, description="x" * 20_000)])) == MAX_DESCRIPTION
    many = [Tool(named.function, name=f"f{number}", description="x" * 20_000) for number in range(6)]
    with pytest.raises(ConfigError, match=r"have 36,\d+ characters, and at most 30,000.*fewer tools"):
        describe(many)


def no_types(name) -> str:  # type: ignore[no-untyped-def]
    return str(name)


def no_result(name: str):  # type: ignore[no-untyped-def]
    return name


def many(*names: str) -> str:
    return str(names)


def keywords(**names: str) -> str:
    return str(names)


def odd(path: Path) -> str:
    return str(path)


def odd_result() -> set[str]:
    return set()


def odd_keys(table: dict[int, str]) -> str:
    return str(table)


def callback(work: functools.partial[str]) -> str:
    return work()


def both(value: Town | dict[str, str]) -> str:
    return str(value)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (no_types, "the parameter 'name' of the tool no_types has no type: annotate it, as in name: str"),
        (no_result, "no_result does not say what it returns"),
        (many, "takes any number of arguments"),
        (keywords, "takes any number of arguments"),
        (odd, "has the type Path, which no program can pass: use str, int"),
        (odd_result, "the result of the tool odd_result has the type set"),
        (odd_keys, "keys that are not text"),
        (callback, "has the type"),
        (both, "the parameter 'value' of the tool both: Type unions"),
        (3, "a tool is a function, not 3"),
        (lambda name: name, "cannot call a tool named '<lambda>'"),
    ],
)
def test_functions_that_cannot_be_tools_are_refused(function: Any, message: str) -> None:
    with pytest.raises(ConfigError, match="^(?s:.*)" + message.replace("(", r"\(").replace("[", r"\[")):
        Tool(function)


@pytest.mark.parametrize(
    "name",
    [
        "retrieve",
        "answer",
        "final_answer",
        "parse_date",
        "is_known",
        "UnknownAnswerError",
        "print",
        "open",
        "re",
        "sum",
    ],
)
def test_names_with_a_meaning_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="has a meaning in programs already"):
        tool(name=name)(survey)


@pytest.mark.parametrize("name", ["a b", "_x", "class", "1st", "ж", "x" * 41])
def test_names_that_programs_cannot_call_are_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        tool(name=name)(survey)


def test_lists_of_tools_are_checked() -> None:
    with pytest.raises(ConfigError, match="two tools have the name 'survey'"):
        as_tools([survey, survey])
    with pytest.raises(UsageError, match="tools is a list"):
        PyRAG(tools=survey)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="a tool is a function"):
        PyRAG(tools=[3])  # type: ignore[list-item]


def test_decorated_functions_stay_functions() -> None:
    assert named("x") == "x"
    assert (named.name, named.timeout, named.description) == ("named", 2, "Return the name.")
    assert pickle.loads(pickle.dumps(named)) is named
    copy = pickle.loads(pickle.dumps(Tool(survey, name="other")))
    assert (copy.name, copy.function) == ("other", survey)


async def test_arguments_are_converted_and_results_plain() -> None:
    reply = await call_tool(Tool(survey), [{"name": "Alpha", "founded": "1200-01-02"}], {"limits": [1, 2]})
    assert reply.error == ""
    assert reply.value == [{"name": "Alpha", "founded": "1200-01-02"}]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ([{"name": "Alpha"}], {}, "Object missing required field `founded`"),
        ([{"name": "Alpha", "founded": "soon"}], {}, "Invalid RFC3339"),
        ([{"name": "A", "founded": "1200-01-02"}, "huge"], {}, "Invalid enum value 'huge'"),
        ([{"name": "A", "founded": "1200-01-02"}], {"limits": [1]}, "Expected `array` of length 2"),
        ([{"name": "A", "founded": "1200-01-02"}], {"size": {"width": "1", "height": 1}}, "Expected `int`, got `str`"),
        ([], {}, "missing a required argument: 'town'"),
    ],
)
async def test_wrong_arguments_are_type_errors(args: list[Any], kwargs: dict[str, Any], message: str) -> None:
    reply = await call_tool(Tool(survey), args, kwargs)
    assert reply.error_type == "TypeError"
    assert message in reply.error


async def test_methods_partials_and_objects_are_tools() -> None:
    class Register:
        def __init__(self) -> None:
            self.found = {"x": 1}

        def look(self, name: str) -> int | None:
            return self.found.get(name)

        async def __call__(self, name: str) -> int:
            return self.found[name]

    register = Register()
    assert (await call_tool(Tool(register.look), ["x"], {})).value == 1
    assert (await call_tool(Tool(register, name="register"), ["x"], {})).value == 1
    assert (await call_tool(Tool(functools.partial(register.look, "x"), name="x"), [], {})).value == 1


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ValueError("too big"), "ValueError", "fails() failed: too big"),
        (
            FileNotFoundError(2, "No such file", "/home/ann/secret/town.csv"),
            "ToolError",
            "fails() failed: FileNotFoundError: [Errno 2] No such file: 'town.csv'",
        ),
        (ToolError("as it is: /a/b"), "ToolError", "fails(): as it is: /a/b"),
        (RuntimeError("x" * 10_000), "ToolError", "fails() failed: RuntimeError: " + "x" * 585 + "…"),
        (SystemExit(3), "ToolError", "fails(): SystemExit: 3"),
        (KeyboardInterrupt(), "ToolError", "fails(): KeyboardInterrupt:"),
        (StopIteration("end"), "ToolError", "fails(): StopIteration: end"),
        (Unusual("odd"), "ToolError", "fails(): Unusual: odd"),
        (asyncio.CancelledError(), "ToolError", "fails(): it cancelled itself"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_exceptions_become_errors_of_the_program(
    error: BaseException, kind: str, message: str, is_async: bool
) -> None:
    def fails() -> None:
        raise error

    async def fails_later() -> None:
        raise error

    if not is_async and isinstance(error, asyncio.CancelledError):
        message = "fails(): CancelledError:"
    if is_async and isinstance(error, StopIteration):
        message = "fails() failed: RuntimeError: coroutine raised StopIteration"
    reply = await call_tool(Tool(fails_later if is_async else fails, name="fails"), [], {})
    assert (reply.error_type, reply.error) == (kind, message)


@pytest.mark.parametrize("is_async", [False, True])
async def test_calls_that_do_not_end_are_given_up(is_async: bool) -> None:
    ended = threading.Event()

    def waits() -> None:
        ended.wait()

    async def waits_too() -> None:
        await asyncio.Event().wait()

    reply = await call_tool(Tool(waits_too if is_async else waits, name="waits", timeout=0.01), [], {})
    ended.set()
    assert (reply.error_type, reply.error) == ("TimeoutError", "waits() took longer than 0.01 s: ask it for less")


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("x" * (MAX_RESULT_BYTES + 1), "too large or not plain data (a value larger than 900000 bytes cannot cross)"),
        (float("nan"), "nan cannot cross: use finite numbers"),
        (nested(60), "nested deeper than 50 levels"),
        (nested(100_000), "returned something else than it promises"),
        (Rude(), "returned something else than it promises"),
        ("\ud800", "returned something else than it promises"),
        (2**60_000, "more than 4200 digits"),
    ],
    ids=["long", "nan", "deep", "deeper", "rude", "surrogate", "digits"],
)
async def test_hostile_results_are_bounded(result: Any, message: str) -> None:
    def gives() -> Any:
        return result

    reply = await call_tool(Tool(gives), [], {})
    assert message in reply.error
    assert len(reply.error) < 1_000


async def test_results_are_checked_against_their_type() -> None:
    def counts() -> list[int]:
        return ["x"]  # type: ignore[list-item]

    reply = await call_tool(Tool(counts), [], {})
    assert reply.error == "counts() returned something else than it promises (Expected `int`, got `str` - at `$[0]`)"
    assert reply.note == f"the tool {reply.error}"


async def test_documents_are_mended_like_those_of_retrievers() -> None:
    def archive() -> list[Passage]:
        return [Passage("", "T", "half \ud800"), Passage("a", "T", "x"), Passage("a", "U", "y")]

    reply = await call_tool(Tool(archive), [], {})
    assert reply.documents
    assert len({one.id for one in reply.passages}) == 3
    assert "half a character was replaced" in reply.note


async def test_sources_come_with_the_value() -> None:
    def count() -> Sourced[tuple[int, str]]:
        return Sourced((3, "x"), (Passage("s", "Source", "text"),))

    reply = await call_tool(Tool(count), [], {})
    assert (reply.value, [one.id for one in reply.passages], reply.documents) == ([3, "x"], ["s"], False)
