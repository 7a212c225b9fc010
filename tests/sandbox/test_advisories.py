"""One test per published way out of RestrictedPython or of CPython, against what is installed."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import pytest

from pyrag_sandbox import Limits

SPOILS = "final_answer = 'got out'"


async def assert_blocked(run: Any, source: str) -> None:
    outcome = await run(f"{source}\n{SPOILS}")
    assert (outcome.status, outcome.has_value) == ("blocked", False), outcome


def test_restrictedpython_is_new_enough() -> None:
    assert int(importlib.metadata.version("RestrictedPython").split(".")[0]) >= 9


async def test_cve_2023_37271_a_generator_that_names_itself(run: Any) -> None:
    await assert_blocked(run, "g = (g.gi_frame.f_back.f_globals for x in [1])\nlist(g)")
    await assert_blocked(run, "def f():\n    yield s.gi_frame.f_back.f_back\ns = f()\nnext(s)")


async def test_cve_2023_41039_format_through_the_class(run: Any) -> None:
    await assert_blocked(run, "str.format('{0.__class__}', 1)")
    await assert_blocked(run, "str.format_map('{a.__class__}', {'a': 1})")
    await assert_blocked(run, "import string\nstring.Formatter().format('{0.__class__}', 1)")


async def test_7_2_a_str_subclass_as_attribute_name(run: Any) -> None:
    await assert_blocked(run, "class S(str):\n    def startswith(self, *a): return False\ngetattr((), S('__class__'))")
    outcome = await run("x = answer('q')\ngetattr((), x)")  # the one str subclass there is: read as plain text
    assert outcome.error.type == "AttributeError"


async def test_cve_2024_47532_attribute_error_obj(run: Any) -> None:
    await assert_blocked(run, "import math\ntry:\n    math.nothing\nexcept AttributeError as e:\n    e.obj")
    await assert_blocked(run, "try:\n    ().nothing\nexcept AttributeError as e:\n    getattr(e, 'ob' + 'j')")


async def test_cve_2025_22153_except_star(run: Any) -> None:
    await assert_blocked(run, "try:\n    1 / 0\nexcept* ZeroDivisionError:\n    pass")
    await assert_blocked(run, "class G(ExceptionGroup):\n    def split(self, *a): return ()")


async def test_cve_2026_55830_a_positional_only_parameter_shadows_a_guard(run: Any) -> None:
    await assert_blocked(run, "def f(_getattr_, /): return 'x'.format")
    await assert_blocked(run, "f = lambda _write_, /: 1")
    await assert_blocked(run, "def f(_print_=len, /, *a): print(1)")


async def test_cve_2026_76825_string_formatter_from_any_route(run: Any) -> None:
    await assert_blocked(run, "from string import Formatter")
    await assert_blocked(run, "x = ''.vformat")
    await assert_blocked(run, "getattr('', 'get_' + 'field')")


@pytest.mark.parametrize("attribute", ["ag_frame", "ag_await", "ag_code", "cr_frame", "gi_code", "gi_yieldfrom"])
async def test_8_5_asynchronous_generator_internals(run: Any, attribute: str) -> None:
    await assert_blocked(run, f"def g():\n    yield\nx = g().{attribute}")
    await assert_blocked(run, f"def g():\n    yield\nx = getattr(g(), {attribute!r})")


async def test_8_5_syntax_of_python_3_15(run: Any) -> None:
    for source in ("lazy import os", "x = [*y for y in [[1]]]", "x = {**y for y in [{}]}"):
        outcome = await run(f"{source}\n{SPOILS}")
        assert outcome.status in ("blocked", "error")
        assert not outcome.has_value


@pytest.mark.parametrize("name", ["tuple", "sorted", "zip", "bytes", "reversed"])
async def test_9_0_builtins_iterating_in_c_meet_plain_objects(run: Any, name: str) -> None:
    """We offer them: nothing of ours relies on `_getiter_`. What a program could hand in has no hook of its own."""
    await assert_blocked(run, f"class A:\n    def __iter__(self): return iter([1])\n{name}(A())")
    await assert_blocked(run, f"class A:\n    def __getitem__(self, i): return 1\n{name}(A())")


@pytest.mark.parametrize("module", ["operator", "functools", "string", "types", "inspect", "sys", "gc", "builtins"])
async def test_docs_modules_that_walk_attributes_are_not_offered(run: Any, module: str) -> None:
    await assert_blocked(run, f"import {module}")
    await assert_blocked(run, f"try:\n    from {module} import x\nexcept ImportError:\n    pass")


CRASHES = {
    "hash of a deep tuple": "t = ()\nfor _ in range(10**6): t = (t,)\nx = hash(t)",
    "nested map": "t = iter([])\nfor _ in range(10**6): t = map(int, t)\nx = list(t)",
    "nested filter": "t = iter([])\nfor _ in range(10**6): t = filter(None, t)\nx = list(t)",
    "nested zip": "t = iter([])\nfor _ in range(10**6): t = zip(t)\nx = list(t)",
    "nested enumerate": "t = iter([])\nfor _ in range(10**6): t = enumerate(t)\nx = list(t)",
}


@pytest.mark.parametrize("name", CRASHES)
async def test_interpreter_crashes_kill_one_program(run: Any, name: str) -> None:
    outcome = await run(f"{CRASHES[name]}\n{SPOILS}", limits=Limits(own_seconds=5, memory_mb=512))
    if outcome.status == "ok" or outcome.error.type == "RecursionError":  # a Python that survives it
        return
    assert outcome.status == "killed"
    assert (await run("final_answer = 1")).value == 1
