# ruff: noqa: E501 - a program a line
"""Calls behind a lookup and bodies of functions keep their sequential semantics; calls made ahead may be dropped."""

from __future__ import annotations

import pytest

from pyrag_sandbox import Limits, Sandbox

from .conftest import PRIMITIVES
from .program_runs import FakeHost, at_random, plainly, scheduled
from .test_dataflow_equivalence import same

PROGRAMS = {
    "append under a key": "d = {'a': [], 'b': []}\nfor q in ['a', 'b']:\n    d[q].append(answer(q))",
    "append in a defaultdict": (
        "from collections import defaultdict\nd = defaultdict(list)\nfor q in ['a', 'b', 'k']:\n    d[q].append(answer(q))"
    ),
    "add under a key": "d = {'a': 'x', 'b': 'y'}\nfor q in ['a', 'b']:\n    d[q] += answer(q)",
    "a key that is missing": "d = {'a': []}\nfor q in ['a', 'k', 'b']:\n    d[q].append(answer(q))",
    "a key that is missing, caught": "d = {}\ntry:\n    d['a'].append(answer('a'))\nexcept KeyError:\n    x = answer('b')",
    "an error in a body": "def main():\n    a = answer('a')\n    b = answer('b')\n    return int(a) + b\nmain()",
    "an error two levels down": (
        "def hop(q):\n    if q:\n        return_value = answer(q + 1)\n    return q\n\ndef main():\n    x = hop('q')\nmain()"
    ),
    "an early return": "def main(q):\n    if q:\n        return answer(q)\n    return answer('b')\nx = main('a')",
    "a name that is not bound": "def main(q):\n    if not q:\n        x = answer(q)\n    return x\nmain('a')",
    "a name in a comprehension": "def main():\n    q = answer('q')\n    xs = [answer(q) for q in 'ab']\n    return q, xs\nx = main()",
    "a lambda": "def main():\n    q = 'b'\n    f = lambda q, p=q: q + p\n    return sorted(['x', 'y'], key=lambda v: answer(v + q))\nx = main()",
    "a name outside": "q = 'a'\ndef main():\n    q = answer('b')\n    return q\nx = main()\ny = answer(q)",
    "recursion": "def main(n):\n    return main(n - 1) if n else answer('a')\nx = main(3)",
    "a handler": "def main():\n    try:\n        x = int(answer('a'))\n    except ValueError as e:\n        x = str(e)\n    return x\ny = main()",
    "what the call reads changes": "d = {'a': ['x']}\nfor q in ['a']:\n    d[q].append(answer(d[q][0]))",
}


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_nothing_else_changes(source: str) -> None:
    expected = plainly(source)
    same(scheduled(source, concurrent=False), expected)
    for seed in range(4):
        same(scheduled(source, FakeHost(at_random(seed))), expected)


async def test_calls_made_ahead_do_not_use_up_the_limit() -> None:
    """Six loops fail at their first item while five calls each are ahead: seven calls count, 31 were made at most."""
    source = (
        "n = 0\nfor attempt in range(6):\n    try:\n        for q in ['', 'b', 'c', 'd', 'e']:\n"
        "            x = echo(q)\n            y = 1 // len(x)\n    except ZeroDivisionError:\n        n += 1\n"
        "final_answer = [n, echo('end')]"
    )
    async with Sandbox(prefork=1) as sandbox:
        outcome = await sandbox.run(source, PRIMITIVES, limits=Limits(calls=7))
        assert (outcome.status, outcome.value, len(outcome.calls)) == ("ok", [6, "end"], 7)
        outcome = await sandbox.run(source, PRIMITIVES, limits=Limits(calls=6))
        assert (outcome.status, outcome.reason, len(outcome.calls)) == ("killed", "calls", 6)
