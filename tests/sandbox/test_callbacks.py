"""Callables that a program hands to whatever may call them: when they are called is the same side by side.

`program_callbacks` combines ways of naming a callable with ways of having it called. The last test tries each callable
that programs are offered and compares what it calls with the analysis' vocabulary.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag_sandbox.dataflow.analyzer import Analyzer
from pyrag_sandbox.dataflow.vocabulary import CALLED
from pyrag_sandbox.policy.offered import OFFERED_BUILTINS, OFFERED_MODULES

from .program_callbacks import CALLABLES, CALLERS, program
from .program_runs import FakeHost, at_random, plainly, scheduled
from .test_dataflow_equivalence import RICH, same

HAND_PICKED = """
work=['a','b','stop','c','stop','d']
first=list(iter(work.pop, 'stop' + str(answer('x'))[:0]))
rest=[answer(w) for w in work]
---
import json
log=[]
def note(pairs):
    log.append(len(pairs))
    return dict(pairs)
hook=note
x=json.loads('[{"a": 1}, {"b": 2}]', object_pairs_hook=hook)
y=answer(str(log))
---
work=['a']
list.append(work, answer('q'))
x=answer(str(len(work)))
---
d={}
dict.update(d, a=answer('q'))
x=answer(str(len(d)))
---
from collections import Counter, deque
c=Counter('a')
Counter.update(c, [answer('q')])
x=answer(str(len(c)))
---
import collections
q=collections.deque('abc')
collections.deque.rotate(q, len(answer('q')))
x=[answer(c) for c in q]
---
work=['a']
def same(x, acc=work):
    return acc
y=same('k')
y.append(answer('q'))
x=answer(str(len(work)))
---
def same(x, acc=[]):
    return acc
y=same('k')
y.append(answer('q'))
x=answer(str(len(same('z'))))
---
work=['a']
size=lambda x, acc=work: len(acc)
for q in 'abc':
    x=answer(q + str(size(q)))
    work.append(x)
---
work=['a']
def size(x, *, acc=work):
    return len(acc)
for q in 'abc':
    x=answer(q + str(size(q)))
    work.append(x)
---
from collections import defaultdict
d=defaultdict(list)
x='{0[k]}'.format(d) + answer('q')
y=answer(str(len(d)))
---
from collections import defaultdict
d=defaultdict(lambda: defaultdict(list))
for q in 'aba':
    d[q][answer(q)].append(answer(q + 'k'))
x=[answer(k + str(len(d))) for k in d]
---
from collections import defaultdict
log=[]
def make():
    log.append(answer('m'))
    return []
d=defaultdict(make)
x=answer(str(len(log)))
y=d['a']
z=answer(str(len(log)))
---
import collections
log=[]
kind=getattr(collections, 'default' + 'dict')
d=kind(lambda: log.append('m'))
x=answer('a')
y=d['a']
z=answer(str(len(log)) + str(len(d)))
---
log=[]
x=max((answer(v + str(len(log))) for v in 'abc'), key=lambda v: log.append(v) or v)
---
log=[]
x=sorted((answer(v + str(len(log))) for v in 'abc'), key=log.append)
---
log=[]
x=[answer(v + str(len(log))) for v in iter(lambda: log.append('i') or ('stop' if len(log) > 3 else 'go'), 'stop')]
---
work=['a','b']
ops={'take': work.pop}
for q in 'ab':
    x=answer(q + str(len(work)))
    y=ops['take']()
---
work=['a','b']
x=[(answer(str(len(work))), take()) for take in (work.pop, work.pop)]
---
def counter():
    n=0
    def up(x):
        nonlocal n
        n+=1
        return x + str(n)
    return up
up=counter()
x=sorted('cab', key=up)
y=[answer(up(q)) for q in 'ab']
---
work=['a','b','c']
def drain(take):
    return [answer(take()) for q in range(2)]
x=drain(work.pop)
y=[answer(w) for w in work]
---
def each(f, xs):
    return [f(x) for x in xs]
log=[]
x=each(lambda v: log.append(answer(v)), 'ab')
y=answer(str(log))
---
import re
log=[]
x=re.sub('[ab]', lambda m: log.append(m.group()) or answer(m.group()), 'cab')
y=answer(str(log))
---
work=['x','y']
try:
    x=[answer(v) for v in map(work.pop, [0, 5])]
except IndexError:
    y=answer(str(len(work)))
z=[answer(w) for w in work]
"""


@RICH
@given(
    st.sampled_from(sorted(CALLABLES.values())),
    st.sampled_from(sorted(CALLERS.values())),
    st.integers(0, 24),
    st.booleans(),
    st.integers(0, 1000),
)
def test_callables_are_called_when_they_would_be(
    naming: str, calling: str, around: int, later: bool, seed: int
) -> None:
    source = program(naming, calling, around, later=later)
    same(scheduled(source, FakeHost(at_random(seed))), plainly(source))


@pytest.mark.parametrize("source", HAND_PICKED.split("---\n"))
def test_hand_picked_programs(source: str) -> None:
    expected = plainly(source)
    for seed in range(3):
        same(scheduled(source, FakeHost(at_random(seed))), expected)


def test_known_keys_still_overlap() -> None:
    source = (
        "xs = ['a', 'b', 'c']\nbest = max((answer(q) for q in xs), key=len)\nx = sorted(map(answer, xs), key=str.lower)"
    )
    host = FakeHost()
    scheduled(source, host)
    assert host.most >= 3


def test_a_factory_that_makes_values_keeps_the_overlap() -> None:
    for factory in ("list", "lambda: defaultdict(list)", "lambda: [0, '']", "make"):
        host = FakeHost()
        scheduled(
            "from collections import defaultdict\ndef make():\n    return {'n': []}\n"
            f"d = defaultdict({factory})\nxs = [answer(q) for q in ['a', 'b', 'c']]",
            host,
        )
        assert host.most == 3, factory


# -- what is offered, tried


class Probe:
    """A callable that notes its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return str(len(args))


SAMPLES: tuple[tuple[Any, ...], ...] = (
    (),
    (["b", "a"],),
    ("[ab]", "cab"),
    (["b", "a"], ["c", "d"]),
    ('{"a": [1, 1.5, NaN]}',),
    ({"a": {1}},),
    ("x", ["a"], 2),
    (3, 2),
    ([2.0, 3.0, 4.0], [1.0, 2.0, 4.0]),
)
KEYWORDS = sorted(
    {name for _, names in CALLED.values() for name in names} | {"cls", "default_factory", "hook", "object"}
)


def offered() -> Iterator[tuple[str, Any]]:
    for name, value in OFFERED_BUILTINS.items():
        if callable(value) and name not in ("property", "staticmethod", "classmethod"):  # of use in classes only
            yield name, value
    for module, members in OFFERED_MODULES.items():
        for member, value in members.items():
            if callable(value) and not (module == "typing" and member != "cast"):
                yield f"{module}.{member}", value


def attempts(function: Any) -> Iterator[tuple[Probe, int | str, tuple[Any, ...], dict[str, Any]]]:
    """Yield arguments with a probe at each position, and under each name that it may have."""
    try:
        names = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.POSITIONAL_ONLY]
    except (TypeError, ValueError):
        names = []
    for sample in SAMPLES:
        for position in range(len(sample) + 1):
            probe = Probe()
            yield probe, position, (*sample[:position], probe, *sample[position:]), {}
        for name in {*KEYWORDS, *names}:
            probe = Probe()
            yield probe, name, sample, {name: probe}


def use(value: Any) -> None:
    """Look at a result as far as a program that only reads it would."""
    if hasattr(value, "__next__"):
        for item in islice(value, 5):
            use(item)
    elif isinstance(value, dict):
        value["missing"]


def called_by(function: Any) -> set[int | str]:
    places: set[int | str] = set()
    for probe, place, args, kwargs in attempts(function):
        with suppress(Exception):  # most combinations are wrong
            use(function(*args, **kwargs))
        if probe.calls:
            places.add(place)
    return places


@pytest.mark.parametrize(
    ("name", "function"), list(offered()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_vocabulary_knows_what_offered_callables_call(name: str, function: Any) -> None:
    """Each argument that was called is in the vocabulary, or the analysis takes the function for anything."""
    analyzer = Analyzer(
        ast.parse("\n".join(f"import {module}" for module in OFFERED_MODULES)), frozenset(), frozenset()
    )
    last = name.rpartition(".")[2]
    if not analyzer.is_pure_function(name) or name.split(".")[0] == "typing":
        return
    positions, names = CALLED.get(last, ((), frozenset()))
    assert called_by(function) <= {*positions, *names}


def test_probes_notice_calls() -> None:
    assert called_by(sorted) == {"key"}
    assert called_by(map) == {0}
    assert called_by(iter) == {0}
    assert {"object_hook", "parse_int"} <= called_by(OFFERED_MODULES["json"]["loads"])
