"""Random programs: side by side, one at a time and as plain Python they cannot be told apart."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .program_maker import programs
from .program_runs import FakeHost, Result, at_random, plainly, scheduled

RICH = settings(max_examples=100, suppress_health_check=list(HealthCheck))


HAND_PICKED = """
g=(answer(q) for q in ['a','b'])
x=next(g)
y=list(g)
---
xs=[['a'],['b']]
for x in xs:
    x.append(answer(x[0]))
---
d={'a':1}
for k in d:
    d[k+'x']=answer(k)
---
xs=['a']
for q in xs:
    if len(xs)<4:
        xs.append(answer(q))
---
n=0
def f(q):
    global n
    n+=1
    return answer(q+str(n))
xs=[f(q) for q in 'abc']
---
def f(q, acc=[]):
    acc.append(answer(q))
    return len(acc)
x=[f(q) for q in 'abc']
---
def mk():
    out=[]
    def add(q):
        out.append(answer(q))
        return len(out)
    return add
add=mk()
x=[add(q) for q in 'abc']
---
def main():
    def hop(q):
        return answer(q, retrieve(q))
    return [hop(q) for q in 'ab']
x=main()
---
d={}
for q in ['a','b','a']:
    d.setdefault(q, []).append(answer(q))
---
d={'a':[], 'b':[]}
for q in ['a','b','a']:
    d[q].append(answer(q))
---
from collections import defaultdict
d=defaultdict(list)
for q in 'aba':
    d[q].append(answer(q))
x=dict(d)
---
xs=[y for q in 'abc' if (y := answer(q)) != 'zz']
z=y
---
a,*b=[answer(q) for q in 'abc']
x=[*b, answer(a)]
---
m=answer('a')
match m:
    case 'z':
        x=1
    case other:
        x=answer(other)
y=answer('k')
---
try:
    try:
        x=answer('fail')
    except Exception:
        y=answer('b')
        raise
except Exception as e:
    z=str(e)
---
try:
    x=int(answer('a'))
except ValueError as e:
    x=answer(str(e)[:5])
else:
    x=1
finally:
    w=answer('w')
---
for q in 'ab':
    x=answer(q)
else:
    y=answer('e')
---
out={}
for a in ['x','y']:
    row=[]
    for b in ['1','2']:
        row.append(answer(a+b))
    out[a]=row
---
prev='s'
xs=[]
for q in 'abc':
    cur=answer(q+prev)
    xs.append(cur)
    prev=cur
---
def f(q, n):
    if n == 0:
        return q
    return f(answer(q), n-1)
x=f('a',3)
y=f('b',3)
---
class Bad(Exception):
    pass
try:
    x=answer('a')
    raise Bad(x)
except Bad as e:
    y=str(e)
---
for a,b in zip(['a','b'], ['c','d']):
    x=answer(a+b)
    print(x)
---
def f(c):
    if c:
        v=1
    return [answer(q)+v for q in 'ab']
x=f(0)
---
for q in 'ab':
    x=answer(q)
    del x
---
sum=0
for q in 'ab':
    sum+=len(answer(q))
---
docs=[]
for q in 'ab':
    docs += retrieve(q)
x=answer('f', docs)
---
docs=[]
for q in 'ab':
    docs = docs + retrieve(q)
x=answer('f', docs)
---
xs=[answer(a) for a, b in [('a',1),('b',)]]
---
xs={answer(a): [1] for a in 'ab'}
y={[answer(a)] for a in 'ab'}
---
def f(q):
    other = s1
    return [other for s1 in q]
x=f(answer('a'))
s1=answer('b')
y=f(answer('c'))
---
s1='early'
def f(q):
    return [s1, *(s1 for s1 in q)]
x=f(answer('a'))
s1=answer('b')
y=f('cd')
---
xs=['a','b']
x=[answer(q) for q in map(answer, xs)]
---
xs=['a','b']
for q in map(answer, xs):
    x=answer(q)
---
x=[answer(q) for q in filter(lambda q: answer(q) > 'b', 'abc')]
---
xs=['a','b','fail']
x=[answer(a+b) for a, b in zip(xs, map(answer, xs))]
---
x={i: answer(q) for i, q in enumerate(answer(q) for q in 'ab')}
---
from itertools import chain
x=[answer(q) for q in chain('a', map(answer, 'bc'))]
---
def f():
    def sources(xs):
        for q in xs:
            print(q)
            yield answer(q)
    return [answer(q) for q in sources('ab')]
x=f()
---
def f(xs):
    return [answer(q) for q in xs]
x=f(map(answer, 'ab'))
---
def f(q):
    it=iter('abc')
    try:
        xs=[answer(c+q) for c in it]
    except Exception:
        xs=[]
    return [xs, list(it)]
x=[f(q) for q in ('fail', 'k')]
---
def f():
    xs=[y for q in 'abc' if (y := answer(q)) != 'zz']
    return y, xs
x=f()
---
x='k'
y={}
for q in [answer('a'), answer('b')]:
    if answer(q) < answer('hop'):
        x=answer('m')
    else:
        y={c: answer(c) for c in 'ab'}
---
d0={}
s0='ann'
s0=(d0.get(s0, s0) and '-'.join(v for v in sorted([], key=len)))
match ['a', 'b']:
    case [first, *others]:
        s0=answer(first)
        others.append(s0)
---
x=answer('a')
x=answer('b')
match 'q':
    case 'q':
        x=answer('c')
        y=x
---
x=answer('a')
x=answer('b')
match 'q':
    case x:
        y=x
---
x=answer('a')
x=answer('b')
y=(x := answer('c')) + x
---
x=answer('a')
x=answer('b')
y=[(x := answer(q)) + x for q in 'cd']
---
x=answer('a')
x=answer('b')
y=answer(x) if (x := 'z') else x
---
x=answer('a')
x=answer('b')
print((x := 'z'), x, answer(x))
---
x=answer('a')
x=answer('b')
g=(v + x for v in 'cd')
x='z'
y=list(g)
---
x=answer('a')
x=answer('b')
def f():
    global x
    x='g'
    return 'r'
y=[f(), x]
---
x=answer('a')
x=answer('b')
def f(v):
    global x
    x=v
    return v
y=[f(v) + x for v in 'cd']
---
x=answer('a')
x=answer('b')
def f(v):
    global x
    x=answer(v)
    return x
y=[f('c'), x, f('d') + x]
---
def main():
    x=answer('a')
    x=answer('b')
    g=(v + x for v in 'cd')
    x='z'
    return list(g)
z=main()
---
x=y=['a']
y.append(answer('q'))
z=x[-1]
---
d={}
d['a']=d['b']=[]
d['a'].append(answer('q'))
z=len(d['b'])
---
def main():
    a=b=[]
    for q in 'ab':
        a.append(answer(q))
    return [len(b), b]
x=main()
---
xs=[]
ys=None
def share():
    global ys
    ys=xs
share()
ys.append(answer('a'))
x=len(xs)
---
xs=[]
try:
    raise ValueError(xs)
except ValueError as e:
    e.args[0].append(answer('k'))
x=len(xs)
---
d={'x': []}
d['x'].append([answer(q) for q in 'ab'])
d['x'].append({q: answer(q) for q in 'cd'})
---
d={'x': ['y']}
for q in 'ab':
    d['x'].append('-'.join(answer(c) for c in q))
d['x'][0] += str([answer(q) for q in 'ab'])
---
d={}
d['x'].append([answer(q) for q in 'ab'])
---
d={'x': []}
d['x'].append([answer(q) for q in ('a', 'fail', 'b')])
---
x=[answer(v) for v in (answer(w) for w in ['a','fail'])]
---
x=[answer(v) for v in map(answer, ['a','fail'])]
---
x=sum(len(answer(v)) for v in (answer(w) for w in ['a','fail']))
---
x={v: answer(v) for v in map(answer, ['a','fail'])}
---
def f():
    def g():
        yield answer('a')
        yield answer('fail')
    return [answer(v) for v in g()]
x=f()
---
x=[answer(v) for v in 5]
---
x=','.join(answer(a+b) for a, b in (answer(q) for q in ['fail']))
---
for v in (answer(q) for q in ['a','fail']):
    y=answer(v)
---
x=[answer(v) for v in (w.nope for w in 'ab')]
---
a=answer('a')
raise ValueError(a)
b=answer('b')
"""


def same(one: Result, other: Result) -> None:
    assert one.error == other.error
    assert one.calls == other.calls
    assert one.output == other.output
    assert one.variables == other.variables


def informed(before: Result, changed: int, after: Result) -> None:
    """Every variable that came out different names the call whose reply was changed."""
    if after.error:
        return
    for name, value in before.variables.items():
        if value != after.variables.get(name):
            assert changed in before.provenance[name], name


@RICH
@given(programs(), st.integers(0, 1000))
def test_concurrent_runs_equal_sequential_ones(source: str, seed: int) -> None:
    expected = plainly(source)
    one_by_one = scheduled(source, concurrent=False)
    same(one_by_one, expected)
    side_by_side = scheduled(source, FakeHost(at_random(seed)))
    same(side_by_side, expected)
    if not expected.error:  # after an error, what an unfinished loop would have decided may be missing
        assert side_by_side.provenance == one_by_one.provenance
    assert side_by_side.depends == one_by_one.depends


@RICH
@given(programs(), st.integers(0, 1000))
def test_provenance_never_misses_a_call(source: str, seed: int) -> None:
    """Change one reply: every variable that comes out different must name that call."""
    before = scheduled(source, FakeHost(at_random(seed)))
    if before.error or not before.calls:
        return
    changed = seed % len(before.calls)
    informed(before, changed, plainly(source, {changed: "ZZ"}))


@pytest.mark.parametrize("source", HAND_PICKED.split("---\n"))
def test_hand_picked_programs(source: str) -> None:
    expected = plainly(source)
    for seed in range(4):
        found = scheduled(source, FakeHost(at_random(seed)))
        same(found, expected)
        if not expected.error:
            for call in range(len(expected.calls)):
                informed(found, call, plainly(source, {call: "ZZ"}))


@pytest.mark.parametrize(
    "body",
    [
        "    a = answer(q)\n    if a != 'unknown':\n        found.append(answer(a))",
        "    a = answer(q)\n    if not a.startswith('z'):\n        b = answer(a)\n        found.append(f'{q}: {b}')",
        "    a = answer(q)\n    if a:\n        b = answer(a)\n    else:\n        b = answer('k')\n    found.append(b)",
    ],
)
def test_iterations_overlap_across_a_branch(body: str) -> None:
    source = f"found = []\nfor q in ['a', 'b', 'c']:\n{body}\n"
    host = FakeHost()
    side_by_side = scheduled(source, host)
    same(side_by_side, plainly(source))
    assert host.most >= 3
