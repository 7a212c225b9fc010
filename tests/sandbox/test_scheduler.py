"""How plans run: what is in flight together, what an error undoes, output, provenance, endings. No clocks."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest

from pyrag_sandbox.dataflow.plan import plan
from pyrag_sandbox.worker.loop_scheduler import run

from .program_runs import FakeHost, Stop, plainly, scheduled


def steady(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Results that say what they are results of."""
    if "fail" in args[0]:
        raise ValueError(args[0])
    return [f"doc of {args[0]}"] if name == "retrieve" else f"<{args[0]}>"


def fake_host(choose: Callable[..., int] = lambda ids: ids[0]) -> FakeHost:
    made = FakeHost(choose)
    made.respond = steady
    return made


def rounds(source: str, **names: Any) -> list[list[str]]:
    """The queries in flight whenever the program has nothing to do but wait."""
    host = fake_host()
    result = scheduled(source, host, **names)
    assert result.error is None
    return host.rounds


def newest(ids: list[int]) -> int:
    return ids[-1]


# Side by side


@pytest.mark.parametrize(
    "source",
    [
        "a = answer('a')\nb = answer('b')",
        "x = answer('a') + answer('b')",
        "x = [answer('a'), answer('b')]",
        "x = f\"{answer('a')} {answer('b')}\"",
        "x = [answer(q) for q in ['a', 'b']]",
        "x = sum(len(answer(q)) for q in ['a', 'b'])",
        "x = ', '.join(answer(q) for q in ['a', 'b'])",
        "x = {q: answer(q) for q in ['a', 'b']}",
        "x = {answer(q) for q in ['a', 'b']}",
        "x = [q for q in ['a', 'b'] if answer(q)]",
        "def f(q):\n    return answer(q)\nx = f('a')\ny = f('b')",
        "for q in ['a', 'b']:\n    x = answer(q)",
        "xs = []\nfor q in ['a', 'b']:\n    xs.append(answer(q))",
        "xs = {}\nfor q in ['a', 'b']:\n    xs[q] = answer(q)",
        "n = 0\nfor q in ['a', 'b']:\n    n += len(answer(q))",
        "if True:\n    x = answer('a')\n    y = answer('b')",
        "while True:\n    x = answer('a')\n    y = answer('b')\n    break",
        "try:\n    x = answer('a')\n    y = answer('b')\nexcept ValueError:\n    pass",
        "xs = []\nxs.append(answer('a'))\nxs.append(answer('b'))",
        "x = answer('a')\nx = answer('b')",
        "print(answer('a'))\nprint(answer('b'))",
    ],
)
def test_two_calls_are_in_flight(source: str) -> None:
    assert rounds(source)[0] == ["a", "b"]


def test_chains_run_beside_each_other() -> None:
    source = "x = len(answer('a', retrieve('a1'))) < len(answer('b', retrieve('b1')))"
    assert rounds(source) == [["a1", "b1"], ["b1", "a"], ["a", "b"], ["b"]]


def test_a_reused_name_does_not_hold_the_second_chain_back() -> None:
    source = "docs = retrieve('a1')\na = answer('a', docs)\ndocs = retrieve('b1')\nb = answer('b', docs)"
    assert rounds(source)[0] == ["a1", "b1"]


@pytest.mark.parametrize(
    "source",
    [
        "a = answer('a')\nb = answer(a)",
        "if answer('a'):\n    x = answer('b')",
        "x = answer('a') and answer('b')",
        "x = any(answer(q) for q in ['a', 'b'])",
        "for q in ['a', 'b']:\n    if answer(q) == 'x':\n        break",
        "while answer('a') != answer('b'):\n    break",
        "def f(q):\n    global n\n    n = 1\n    return answer(q)\nx = f('a')\ny = f('b')",
        "f = [answer]\nx = f[0]('a')\ny = f[0]('b')",
    ],
)
def test_one_call_is_in_flight(source: str) -> None:
    host = fake_host()
    scheduled(source, host)
    assert host.most == (2 if source.startswith("while") and host.rounds[0] == ["a", "b"] else 1)


def test_the_window_bounds_what_is_in_flight() -> None:
    host = fake_host()
    result = scheduled("x = [answer(str(n)) for n in range(200)]", host)
    assert host.most == 64
    assert len(result.calls) == 200


def test_one_at_a_time_on_request() -> None:
    host = fake_host()
    scheduled(
        "a = answer('a')\nb = [answer(q) for q in 'xyz']\nfor q in 'uv':\n    c = answer(q)", host, concurrent=False
    )
    assert host.most == 1


# Errors


def test_the_first_error_in_program_order_surfaces() -> None:
    host = fake_host(newest)
    result = scheduled("a = answer('fail 1')\nb = answer('fail 2')", host)
    assert result.error == ("ValueError", "fail 1", [(1, "<module>")])
    assert [call[1] for call in result.calls] == [("fail 1",)]


def test_what_ran_ahead_of_an_error_is_undone() -> None:
    host = fake_host(newest)
    result = scheduled("b = 'old'\na = answer('fail')\nb = answer('new')\nc = answer('c')\nprint(c)", host)
    assert result.variables == {"b": "'old'"}
    assert result.output == ""
    assert len(result.calls) == 1


def test_calls_in_flight_are_cancelled() -> None:
    host = fake_host()
    scheduled("a = answer('fail')\nb = answer('b')\nc = [answer(q) for q in ['x', 'y']]", host)
    assert [host.sent[i][1][0] for i in host.cancelled] == ["y", "x", "b"]


def test_what_comes_before_an_error_still_ends() -> None:
    host = fake_host(newest)
    result = scheduled("a = answer('a')\nprint(a)\nb = answer('fail')", host)
    assert result.variables == {"a": "'<a>'"}
    assert result.output == "<a>\n"


def test_elements_before_the_failing_one_take_effect() -> None:
    source = "xs = []\nfor q in ['a', 'fail', 'b']:\n    print(q)\n    xs.append(answer(q))"
    result = scheduled(source, fake_host(newest))
    assert result.variables == {"xs": "['<a>']", "q": "'fail'"}
    assert result.output == "a\nfail\n"
    assert [call[1][0] for call in result.calls] == ["a", "fail"]


def test_a_caught_error_discards_what_ran_ahead_inside() -> None:
    source = "b = 1\ntry:\n    a = answer('fail')\n    b = answer('b')\nexcept ValueError as e:\n    c = str(e)"
    result = scheduled(source, fake_host(newest))
    assert result.variables == {"b": "1", "c": "'fail'"}
    assert [call[1][0] for call in result.calls] == ["fail"]


def test_a_consumer_that_fails_leaves_later_elements_out() -> None:
    source = "x = sum(answer(q) for q in ['a', 'b'])"
    assert len(scheduled(source, fake_host()).calls) == len(plainly(source).calls) == 1


def test_lines_of_errors_inside_blocks() -> None:
    source = "if True:\n    a = answer('x')\n    for q in ['a']:\n        b = [answer(q)\n          + 1]"
    result = scheduled(source, fake_host())
    assert result.error is not None
    assert result.error[2] == [(4, "<module>")]


def test_tracebacks_name_what_the_author_wrote() -> None:
    source = "def f(qs):\n    return [\n        answer(q) + 1\n        for q in qs]\nx = f(['a'])"
    result = scheduled(source, fake_host())
    assert result.error == plainly(source).error


# Endings


def test_a_base_exception_ends_the_run_at_once() -> None:
    host = fake_host()
    host.respond = lambda name, args, kwargs: (_ for _ in ()).throw(Stop()) if args[0] == "stop" else "x"
    source = (
        "a = answer('a')\ntry:\n    b = answer('stop')\nexcept:\n    c = answer('c')\nfinally:\n    d = answer('d')"
    )
    result = scheduled(source, host)
    assert result.execution is not None
    assert isinstance(result.execution.exception, Stop)
    assert [call[1][0] for call in host.sent] == ["a", "stop"]


def test_what_send_raises_is_raised_at_the_call() -> None:
    class Refusing(FakeHost):
        def send(self, call_id: int, name: str, *rest: Any) -> None:
            raise TypeError("cannot cross")

    result = scheduled("try:\n    a = answer('a')\nexcept TypeError as e:\n    b = str(e)", Refusing())
    assert result.variables == {"b": "'cannot cross'"}
    assert result.calls == []


def test_what_receive_raises_leaves_run() -> None:
    class Broken(FakeHost):
        def receive(self) -> tuple[int, Any]:
            raise ConnectionError

    with pytest.raises(ConnectionError):
        scheduled("a = answer('a')", Broken())


def test_late_replies_of_cancelled_calls_are_ignored() -> None:
    class Late(FakeHost):
        def cancel(self, call_id: int) -> None:
            self.cancelled.append(call_id)

    host = Late()
    host.respond = steady
    source = "try:\n    a = answer('fail')\n    b = answer('b')\nexcept ValueError:\n    c = answer('c')"
    assert scheduled(source, host).variables == {"c": "'<c>'"}


# Output


def test_output_is_in_program_order() -> None:
    source = (
        "def f(q):\n    print('in', q)\n    return answer(q)\na = f('a')\nprint(a)\nb = [f(q) for q in 'xy']\nprint(b)"
    )
    assert scheduled(source, fake_host(newest)).output == "in a\n<a>\nin x\nin y\n['<x>', '<y>']\n"


def test_output_of_what_is_next_is_emitted_at_once() -> None:
    namespace: dict[str, Any] = {"print": lambda text: namespace["%write"](text)}

    def emit(text: str) -> None:
        raise Stop(text)

    tree = ast.parse("while True:\n    print('x')")
    compile_unit = lambda unit: compile(unit, "<program>", "exec")  # noqa: E731
    execution = run(
        plan(tree, frozenset()),
        compile_unit=compile_unit,
        namespace=namespace,
        primitives=(),
        transport=fake_host(),
        emit=emit,
    )
    assert isinstance(execution.exception, Stop)


# Provenance


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        ("a = answer('a')\nb = answer('b')\nx = a", "x", {"a"}),
        ("a = answer('a')\nb = answer(a)\nx = f'{b}'", "x", {"a", "<a>"}),
        ("xs = [answer(q) for q in ['a', 'b']]\nx = xs[0]", "x", {"a"}),
        ("xs = [answer(q) for q in ['a', 'b']]\nx = xs[-1]", "x", {"b"}),
        ("xs = [answer(q) for q in ['a', 'b']]\nx, y = xs", "y", {"b"}),
        ("x, y = answer('a'), answer('b')", "x", {"a"}),
        ("xs = [answer('a'), answer('b')]\nx = xs[1]", "x", {"b"}),
        ("xs = [answer(q) for q in ['a', 'b']]\nxs.reverse()\nx = xs[0]", "x", {"a", "b"}),
        ("xs = sorted([answer(q) for q in ['a', 'b']])\nx = xs[0]", "x", {"a", "b"}),
        ("xs = []\nfor q in ['a', 'b']:\n    xs.append(answer(q))\nx = xs[0]", "x", {"a", "b"}),
        ("x = 1\nif answer('a') == 'z':\n    x = 2", "x", {"a"}),
        ("a = answer('a')\nif a:\n    x = answer('b')\n    y = answer('c')", "x", {"a", "b"}),
        ("xs = []\nys = xs\nys.append(answer('a'))\nx = xs", "x", {"a"}),
        ("a = answer('a')\ndef f():\n    return a\nx = f()", "x", {"a"}),
        ("d = {}\nd['k'] = answer('a')\nb = answer('b')\nx = d.get('k')", "x", {"a"}),
        ("a = answer('a')\nxs = []\nxs.append(answer('b'))\nxs.append(a)", "a", {"a"}),
        (
            "x = 1\ntry:\n    [y] = [q for q in ['a', 'b'] if 'a' in answer(q)]\nexcept ValueError:\n    x = 2",
            "x",
            {"a", "b"},
        ),
    ],
)
def test_provenance(source: str, name: str, expected: set[str]) -> None:
    for concurrent in (True, False):
        result = scheduled(source, fake_host(), concurrent=concurrent)
        assert result.error is None
        assert {str(result.calls[i][1][0]) for i in result.provenance[name]} == expected


def test_calls_depend_on_the_calls_in_their_arguments() -> None:
    source = "d1 = retrieve('a')\na = answer('a', d1)\nd2 = retrieve('b')\nb = answer(f'b {a}', d2)"
    assert scheduled(source, fake_host()).depends == [(), (0,), (), (1, 2)]


def test_elements_depend_on_their_own_calls() -> None:
    source = "x = [answer(q, retrieve(q)) for q in ['a', 'b']]"
    assert scheduled(source, fake_host()).depends == [(), (0,), (), (2,)]


def test_ids_count_in_dispatch_order() -> None:
    result = scheduled("a = answer('b', retrieve('a'))\nc = answer('c')", fake_host())
    assert result.execution is not None
    assert result.execution.calls == (0, 2, 1)
