"""What models write besides: idioms for random programs, each a few lines around expressions of the maker's."""

from __future__ import annotations

from typing import Protocol


class Words(Protocol):
    """What an idiom needs of the maker."""

    in_function: bool
    loops: int

    def pick(self, *options: str) -> str: ...
    def number(self, low: int, high: int) -> int: ...
    def string(self, depth: int = 2) -> str: ...
    def list(self, depth: int = 2) -> str: ...
    def test(self, depth: int = 1) -> str: ...


ANYWHERE = """
match {string}:
    case "k":
        {name} = answer(s1)
    case cap if {test}:
        {name} = cap
---
match {list}:
    case [first, *others]:
        {name} = answer(first)
        others.append({string})
---
if ({name} := {string}) != {string}:
    print({name})
---
got = [z for v in {list} if (z := answer(v)) != s0]
---
got = [(w1 := answer(v)) for v in {list} + [s0]]
{name} = w1
---
fn = lambda v: answer(v + s0)
got = sorted({list}, key=fn) + [fn({string})]
---
got = [answer(v) for v in map(answer, {list})]
---
got = [answer(v) for v in (answer(w) for w in {list})]
---
got = [answer(a + b) for a, b in zip({list}, map(answer, {list}))]
---
for a, b in zip({list}, filter(answer, {list})):
    {name} = answer(a + b)
---
got = dict(zip({list}, map(answer, {list})))
---
it = iter({list})
got = [answer(v) for v in it]
rest = list(it)
it = None
---
try:
    {name} = {string}
except Exception as e:
    print(e)
    {caught}
else:
    {name} = {string}
finally:
    print({name})
---
x0 = y0 = [{string}]
y0.append({string})
{name} = x0[-1]
---
x0 = y0 = {string}
{name} = x0 + y0
---
d0.setdefault("x", {string})
{name} = d0.pop({string}, {string})
---
g0["x"].append([answer(v) for v in {list}])
g0["x"].pop()
---
g0["x"][0] += "-".join(answer(v) for v in {list})
---
{name} = next((v for v in {list} if answer(v) > s0), s1)
---
*others, {name} = [{string}, {string}]
---
n0 = int({string} < answer(s1) < {string})
---
print(*[answer(v) for v in {list}], {string})
---
while {list} and n0 < {number}:
    n0 += 1
    {name} = answer({name} + str(n0))
else:
    print(n0)
---
fn = facts.append
got = list(map(fn, {list}))
{name} = answer(str(len(facts)))
---
got = sorted({list}, key=facts.append)
---
for v in iter(lambda: facts.append(s0) or ("stop" if len(facts) > 4 else "go"), "stop"):
    {name} = answer({name} + v)
---
got = [answer(v + str(len(facts))) for v in map(lambda w: facts.append(w) or w, {list})]
---
fns = [facts.append, {list}.append]
fns[0]({string})
{name} = answer(str(len(facts)))
---
got = max((answer(v + str(len(facts))) for v in {list}), key=lambda v: facts.append(v) or v)
---
list.append(facts, {string})
{name} = str(len(facts))
"""
OUTSIDE_LOOPS = """
def inner(y):
    kept = []
    def add(z):
        kept.append(answer(z))
        return len(kept)
    add(y)
    return [add(z) for z in [y, s1]], kept
got = inner({string})
---
def total(y):
    c = 0
    def up(z):
        nonlocal c
        c += len(answer(z))
        return c
    up(y)
    return up(s1)
n0 = total({string})
---
def each(xs):
    for x in xs:
        print(x)
        yield answer(x)
got = [answer(v) for v in each({list})]
---
def each(xs):
    yield from map(answer, xs)
for v in each({list}):
    {name} = answer(v)
---
def last(y):
    try:
        return answer(y)
    except ValueError:
        return s0
    finally:
        facts.append(answer(s1))
{name} = last({string})
---
class Box:
    def __init__(self, v):
        self.r = answer(v)
    def ask(self, w):
        self.r += answer(w)
        return self.r
{name} = Box({string}).ask(s1)
---
def again(x, n):
    return x if n <= 0 else again(answer(x) + s0, n - 1)
{name} = again({string}, 2)
"""


def idiom(words: Words) -> list[str]:
    fitting = ANYWHERE if words.loops or words.in_function else ANYWHERE + "---" + OUTSIDE_LOOPS
    text = words.pick(*fitting.split("---"))
    for field, make in (
        ("{name}", lambda: words.pick("s0", "s1", "s2")),
        ("{string}", lambda: words.string(1)),
        ("{list}", lambda: words.list(1)),
        ("{test}", lambda: words.test(1)),
        ("{number}", lambda: str(words.number(3, 6))),
        ("{caught}", lambda: words.pick("pass", "raise", "raise KeyError(s0) from e", "s2 = answer(str(e)[:3])")),
    ):
        while field in text:
            text = text.replace(field, make(), 1)
    return text.strip("\n").split("\n")
