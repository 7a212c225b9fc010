# ruff: noqa: E501 - a program a line
"""Programs that hand callables to whatever may call them, for the dataflow tests.

Each is a way of naming a callable (`CALLABLES`), a way of having it called (`CALLERS`), and statements around both that
tell when the call happened: all three are combined freely.
"""

from __future__ import annotations

PREAMBLE = """
import itertools, collections, json, math, re, statistics, typing
from collections import defaultdict, deque, Counter, ChainMap
from itertools import accumulate, chain, dropwhile, filterfalse, groupby, islice, repeat, starmap, takewhile, tee
work = ["x", "y", "stop", "z", "stop", "w"]
log = ["l"]
table = {"x": ["tx"], "k": "v"}
text = '{"a": 1, "b": [1.5, NaN, {"c": "d"}]}'
xs = ["a", "b", "c"]
n = 0
"""

# What each is called with depends on the caller: some combinations raise, which must look alike too.
CALLABLES = {
    "method": "F = work.pop",
    "method of a log": "F = log.append",
    "method of a dict": "F = table.setdefault",
    "method that clears": "F = log.clear",
    "method by getattr": 'F = getattr(work, "pop")',
    "method in a list": "fs = [work.pop, log.append]\nF = fs[0]",
    "method in a dict": 'fs = {"f": work.pop}\nF = fs["f"]',
    "method of a type": "F = list.sort",
    "method by a conditional": "F = work.pop if xs else log.append",
    "method in a default": "def F(*args, take=work.pop, **more):\n    return take()",
    "method in a closure": "def make(take):\n    return lambda *args, **more: take()\nF = make(work.pop)",
    "method by an unpacking": "F, G = work.pop, log.append",
    "method by a walrus": "(F := work.pop)",
    "method by a loop": "for F in [log.append, work.pop]:\n    pass",
    "function": "def F(*args, **more):\n    log.append(str(args))\n    return work.pop() if work else 'stop'",
    "function that asks": "def F(*args, **more):\n    log.append(answer('f' + str(len(log))))\n    return len(log)",
    "function that counts": "def F(*args, **more):\n    global n\n    n += 1\n    return n",
    "function by another name": "def f(*args, **more):\n    log.append('f')\n    return work.pop(0)\nF = f",
    "function in a function": (
        "def make():\n    def F(*args, **more):\n        log.append('m')\n        return 'stop'\n    return F\nF = make()"
    ),
    "function through a function": (
        "def f(*args, **more):\n    log.append('t')\n    return 'stop'\ndef same(g):\n    return g\nF = same(f)"
    ),
    "function that is decorated": (
        "def noted(f):\n    def inner(*args, **more):\n        log.append('d')\n        return f(*args)\n    return inner\n"
        "@noted\ndef F(*args, **more):\n    return 'stop' if len(log) > 3 else 'go'"
    ),
    "function that is bound twice": (
        "def F(*args, **more):\n    return 'x'\ndef F(*args, **more):\n    log.append('t')\n    return 'stop'"
    ),
    "generator function": "def F(*args, **more):\n    log.append('g')\n    yield answer('g' + str(len(work)))",
    "function that reads": "def F(*args, **more):\n    return str(len(log)) + str(len(work))",
    "lambda": "F = lambda *args, **more: log.append(str(len(args))) or 'stop'",
    "lambda that asks": "F = lambda *args, **more: log.append(answer('l' + str(len(log)))) or 'stop'",
    "lambda in a list": "fs = [lambda *args, **more: log.append('i') or 'stop']\nF = fs[-1]",
    "primitive": "F = answer",
    "partial by hand": "def partial(f, *first):\n    return lambda *args, **more: f(*first)\nF = partial(log.append, 'p')",
}

# `F` is the callable. `got` is what comes of it; what may be an iterator is read in the end.
CALLERS = {
    "call": "got = F()",
    "call with an item": "got = F('k')",
    "iter": "got = list(islice(iter(F, 'stop'), 6))",
    "iter after a call": "got = list(islice(iter(F, 'stop' + str(answer('x'))[:0]), 6))",
    "iter, starred": "got = list(islice(iter(*[F, 'stop']), 6))",
    "iter in a loop": "got = []\nfor v in iter(F, 'stop'):\n    got.append(answer(v))\n    if len(got) > 5:\n        break",
    "iter in a comprehension": "got = [answer(v) for v in islice(iter(F, 'stop'), 4)]",
    "iter, later": "got = islice(iter(F, 'stop'), 4)",
    "map": "got = list(map(F, xs))",
    "map, starred": "got = list(map(*[F, xs]))",
    "map, partly": "got = next(iter(map(F, xs)))",
    "map in a test": "got = 'q' in map(F, xs)",
    "map, joined": "got = '-'.join(map(str, map(F, xs)))",
    "map, unpacked": "got, *others = map(F, xs)",
    "map, as arguments": "got = [*map(F, xs)]",
    "map, extended": "got = []\ngot.extend(map(F, xs))",
    "map, added": "got = []\ngot += map(F, xs)",
    "map in a loop": "got = []\nfor v in map(F, xs):\n    got.append(answer(str(v)[:9] + str(len(log))))",
    "map in a comprehension": "got = [answer(str(v)[:9] + str(len(work))) for v in map(F, xs)]",
    "map in an exception": "box = ValueError(map(F, xs))\nz1 = answer(str(len(log)))\ngot = list(box.args[0])",
    "map in a slice": "box = slice(map(F, xs))\nz1 = answer(str(len(log)))\ngot = list(box.stop)",
    "map in a chain map": "box = ChainMap(map(F, xs))\nz1 = answer(str(len(log)))\ngot = list(box.maps[0])",
    "map by repeat": "box = list(repeat(map(F, xs), 2))\nz1 = answer(str(len(log)))\ngot = list(box[1])",
    "map by tee": "box = list(tee(map(F, xs)))\nz1 = answer(str(len(log)))\ngot = list(box[1])",
    "map by sum": "box = sum([], map(F, xs))\nz1 = answer(str(len(log)))\ngot = list(box)",
    "map by max": "box = max(map(F, xs), map(F, xs), key=lambda v: 1)\nz1 = answer(str(len(log)))\ngot = list(box)",
    "map by next": "box = next((v for v in []), map(F, xs))\nz1 = answer(str(len(log)))\ngot = list(box)",
    "map in values": "box = dict.fromkeys('a', map(F, xs))\nz1 = answer(str(len(log)))\ngot = list(box['a'])",
    "map in keywords": "box = dict(a=map(F, xs))\nz1 = answer(str(len(log)))\ngot = list(box['a'])",
    "map of iterators": "box = list(map(iter, [map(F, xs)]))\nz1 = answer(str(len(log)))\ngot = list(box[0])",
    "map, later": "got = map(F, xs)",
    "map in zip, later": "got = zip(xs, map(F, xs))",
    "map in a deque": "got = list(deque(map(F, xs)))",
    "map in statistics": "got = statistics.mean(map(F, xs))",
    "map in dumps": "got = json.dumps(map(F, xs), default=list)",
    "filter": "got = list(filter(F, xs))",
    "filterfalse": "got = list(itertools.filterfalse(F, xs))",
    "takewhile": "got = list(takewhile(F, xs))",
    "dropwhile": "got = list(dropwhile(F, xs))",
    "starmap": "got = list(starmap(F, zip(xs, xs)))",
    "accumulate": "got = list(accumulate(xs, F))",
    "accumulate by name": "got = list(accumulate(xs, func=F))",
    "groupby": "got = [k for k, g in groupby(xs, F)]",
    "groupby by name": "got = [k for k, g in groupby(xs, key=F)]",
    "sorted": "got = sorted(xs, key=F)",
    "sorted, keywords": "got = sorted(xs, **{'key': F})",
    "sort": "got = list(xs)\ngot.sort(key=F)",
    "sort of a type": "got = list(xs)\nlist.sort(got, key=F)",
    "min": "got = min(xs, key=F)",
    "max": "got = max(xs, key=F)",
    "max of answers": "got = max((answer(v + str(len(log))) for v in xs), key=F)",
    "max of answers, later": "got = max((answer(v + str(len(work))) for v in xs), key=lambda v: str(F())[:9])",
    "sub": "got = re.sub('[ab]', F, 'xaxb')",
    "sub by name": "got = re.sub('[ab]', repl=F, string='xaxb')",
    "sub, starred": "got = re.sub(*['[ab]', F, 'xaxb'])",
    "subn": "got = re.subn('[ab]', F, 'xaxb')",
    "sub of a pattern": "got = re.compile('[ab]').sub(F, 'xaxb')",
    "sub of the type": "got = re.Pattern.sub(re.compile('[ab]'), F, 'xaxb')",
    "loads, pairs": "got = json.loads(text, object_pairs_hook=F)",
    "loads, objects": "got = json.loads(text, object_hook=F)",
    "loads, floats": "got = json.loads(text, parse_float=F)",
    "loads, integers": "got = json.loads(text, parse_int=F)",
    "loads, constants": "got = json.loads(text, parse_constant=F)",
    "loads, keywords": "got = json.loads(text, **{'object_hook': F})",
    "dumps": "got = json.dumps({'a': {1}}, default=F)",
    "defaultdict": "box = defaultdict(F)\nz1 = answer(str(len(log)))\ngot = box['q']",
    "defaultdict, formatted": "box = defaultdict(F)\nz1 = answer(str(len(log)))\ngot = '{0[q]}'.format(box)",
    "defaultdict, with %": "box = defaultdict(F)\nz1 = answer(str(len(log)))\ngot = '%(q)s' % box",
    "defaultdict, translated": "box = defaultdict(F)\nz1 = answer(str(len(log)))\ngot = 'q'.translate(box)",
    "defaultdict, changed": (
        "box = defaultdict(list)\nbox.default_factory = F\nz1 = answer(str(len(log)))\ngot = box['q']"
    ),
    "cast": "got = typing.cast('Any', F)('k')",
    "function of the program": "def apply(f, *args):\n    return f(*args)\ngot = apply(F, 'k')",
    "function that maps": "def each(f, items):\n    return [answer(str(v)[:9]) for v in map(f, items)]\ngot = each(F, xs)",
    "keyword of the program": "def apply(*, f=len):\n    return f()\ngot = apply(f=F)",
    "element": "got = [f() for f in [F, F]]",
    "element, asked": "got = [answer(str(f())[:9]) for f in [F, F]]",
    "loop": "got = []\nfor f in [F, F]:\n    got.append(answer(str(f())[:9] + str(len(log))))",
    "loop, as key": "got = []\nfor v in xs:\n    got.append(answer(str(sorted(xs, key=F)) + str(len(log))))",
    "generator": "got = (answer(str(F(v))[:9]) for v in xs)",
    "generator, consumed": "got = list(answer(str(F(v))[:9] + str(len(log))) for v in xs)",
    "while": "got = []\nwhile len(got) < 2 and F() != 'stop':\n    got.append(answer(str(len(log))))",
    "test": "got = answer('a') if F() else answer('b')",
    "decorator": "@F\ndef got(*args):\n    return 'x'",
    "index": "got = xs[len(str(F())[:9]) % 3]",
    "default argument": "def later(v=F):\n    return answer(str(v())[:9])\ngot = later()",
    "stored": "box = {'f': F}\nz1 = answer(str(len(log)))\ngot = box['f']()",
    "handler": "try:\n    got = F()\nexcept Exception as error:\n    got = answer(type(error).__name__)",
    "sorted reverse": "got = sorted(xs, key=F, reverse=True)",
    "min default": "got = min([], key=F, default='d')",
    "any": "got = any(map(F, xs))",
    "all of answers": "got = all(F(answer(v)) for v in xs)",
    "enumerate": "got = [answer(str(i) + str(v)[:9]) for i, v in enumerate(map(F, xs))]",
    "zip star": "got = list(zip(*map(F, ['ab', 'cd'])))",
    "fstring": "got = f'{F()} {answer(str(len(log)))} {F()}'",
    "fstring answers": "got = f'{answer(str(len(log)))}{F()}{answer(str(len(log)))}'",
    "print": "print(str(F())[:9], answer(str(len(log))))\ngot = 1",
    "assert": "assert F() != 'never', answer(str(len(log)))\ngot = answer(str(len(work)))",
    "counter": "got = Counter(map(F, xs))",
    "deque extend": "got = deque()\ngot.extend(map(F, xs))\ngot = list(got)",
    "format": "got = '{} {}'.format(F(), answer(str(len(log))))",
    "format_map": "box = defaultdict(F)\ngot = '{q}'.format_map(box)\nz1 = answer(str(len(box)))",
    "setdefault": "got = table.setdefault('new', F())\nz1 = answer(str(len(log)))",
    "walrus": "got = [(y := F(), answer(str(len(log)))) for v in xs]",
    "tuple": "got = (answer(str(len(log))), F(), answer(str(len(log))))",
    "dict display": "got = {answer(str(len(log))): F(), answer('k' + str(len(work))): F()}",
    "call argument": "got = answer(str(F())[:9] + answer(str(len(log))))",
    "two arguments": "got = max(str(F()), answer(str(len(log))), str(F()))",
    "conditional": "got = F() if answer('a') else answer(str(len(log)))",
    "boolean": "got = answer(str(len(log))) and F() and answer(str(len(log)))",
    "chained": "got = answer(str(len(work))) < str(F()) < answer(str(len(log)))",
    "subscript": "got = [answer(str(len(log))), F(), answer(str(len(log)))][1]",
    "slice assign": "got = list(xs)\ngot[0:1] = map(F, xs)\nz1 = answer(str(len(log)))",
    "augmented": "got = 'a'\ngot += str(F()) + answer(str(len(log)))",
    "del": "got = {'a': F()}\ndel got['a']\nz1 = answer(str(len(log)))",
    "try finally": "try:\n    got = answer(str(len(log)))\nfinally:\n    F()\nz1 = answer(str(len(log)))",
    "match": "match F():\n    case 'stop':\n        got = answer('m' + str(len(log)))\n    case other:\n        got = answer('o' + str(len(log)))",
    "loop else": "for v in xs:\n    F()\n    got = answer(v + str(len(log)))\nelse:\n    got = answer(str(len(log)))",
    "loop condition": "for v in xs:\n    if F() != 'never':\n        got = answer(v + str(len(log)))",
    "loop after": "for v in xs:\n    got = answer(v)\n    F()",
    "loop args": "for v in xs:\n    got = answer(v + str(F())[:5])",
    "nested loop": "got = []\nfor a in xs:\n    for b in 'xy':\n        got.append(answer(a + b + str(len(work))))\n    F()",
    "comprehension if": "got = [answer(v + str(len(log))) for v in xs if F() != 'never']",
    "generator in all": "got = list(answer(v) for v in xs if F())",
    "partial": "def call(f=F, *a):\n    return lambda: f(*a)\ngot = [answer(str(g())[:9] + str(len(log))) for g in [call(), call()]]",
    "kwdefaults": "def g(*, f=F):\n    return answer(str(f())[:9])\ngot = [g(), answer(str(len(log))), g()]",
    "return of function": "def g():\n    a = answer(str(len(log)))\n    F()\n    return a + answer(str(len(log)))\ngot = [g(), g()]",
    "sum start": "got = sum((len(answer(v + str(len(log)))) for v in xs), len(str(F())))",
    "isinstance": "got = isinstance(F(), str) and answer(str(len(log)))",
    "reversed": "got = list(reversed(list(map(F, xs))))",
    "product": "got = list(itertools.product(map(F, xs), xs))",
    "chain from": "got = list(chain.from_iterable(map(F, xs) for v in 'ab'))",
    "json dumps default answers": "got = json.dumps({'a': {answer('q')}}, default=F)",
    "unpack call": "got = (lambda *a, **k: a)(*map(F, xs), **{'k': answer(str(len(log)))})",
    "set update": "got = set()\ngot.update(map(str, map(F, xs)))\ngot = sorted(got)",
    "dict comprehension": "got = {answer(v + str(len(log))): F() for v in xs}",
    "str method key": "got = sorted([answer(v + str(len(log))) for v in xs], key=lambda v: (str(F()), v))",
    "list times": "got = [F] * 2\ngot = [answer(str(f())[:9] + str(len(work))) for f in got]",
    "dict values": "got = [answer(str(f())[:9] + str(len(work))) for f in {'a': F, 'b': F}.values()]",
    "dict get": "got = {'a': F}.get('a')()\nz1 = answer(str(len(log)))",
    "vars": "got = [g for g in (F,)][0]()\nz1 = answer(str(len(log)))",
    "not called": "got = callable(F) and [F][:0]",
}

BEFORE = (
    "z0 = answer(str(len(work)) + str(len(log)))",
    "z0 = [answer(w) for w in work]",
    "for q in xs:\n    z0 = answer(q + str(len(log)))",
    "z0 = answer('fail' + str(len(log)))",
    "",
)
AFTER = (
    "rest = [answer(w) for w in work]",
    "z2 = answer(str(len(log)))\nz3 = answer(str(len(work)) + z2)",
    "for w in work:\n    z4 = answer(w)\n    z5 = answer(w + str(len(log)))",
    "z6 = [answer(str(len(log))), answer(str(sorted(table))), answer(str(n))]",
    "work = work[:1]\nlog = []\nz7 = answer(str(len(log)))",
)


def program(naming: str, calling: str, around: int, *, later: bool = False) -> str:
    """Return a program that names a callable and has it called.

    Args:
        naming: Statements that bind `F`.
        calling: Statements that use `F` and bind `got`.
        around: Choice of what happens before and after, 0 to 24.
        later: Use up `got` in the end if it is an iterator.
    """
    parts = [PREAMBLE.strip(), naming, BEFORE[around % 5], calling, AFTER[around // 5 % 5]]
    if later:
        parts.append("if not isinstance(got, (str, int, float)):\n    ended = list(got)")
    parts.append("z9 = answer(str(len(log)) + str(len(work)) + str(n))")
    return "\n".join(part for part in parts if part) + "\n"
