# ruff: noqa: E501 - a program a line
"""Ways out that a stranger would try against the policy alone. A program that gets through says so in its answer."""

from __future__ import annotations

from typing import Any

from pyrag_sandbox import Limits, Sandbox

from .conftest import PRIMITIVES, SHORT

BLOCKED = {
    "NFKC: name": "final_answer = ｅｖａｌ('1')",
    "NFKC: attribute": "final_answer = ().__ｃlass__",
    "NFKC: keyword": "def f(**k): return k\nfinal_answer = f(__ｃlass__=1)",
    "NFKC: import": "import ｏｓ\nfinal_answer = 1",
    "NFKC: primitive": "ｒetrieve = print\nfinal_answer = 1",
    "NFKC: capture": "match 1:\n    case ｒetrieve: final_answer = 1",
    "format: method": "final_answer = '{0.__class__}'.format(1)",
    "format: unbound": "final_answer = str.format('{0.__class__}', 1)",
    "format: map": "final_answer = list(map('{0.__class__}'.format, [1]))",
    "format: format_map": "final_answer = '{a.__class__}'.format_map({'a': 1})",
    "format: nested spec": "final_answer = '{0:{1.__class__}}'.format(1, 2)",
    "format: index, then attribute": "final_answer = '{0[0].__class__}'.format([1])",
    "format: getattr": "final_answer = getattr('{0.__class__}', 'format')(1)",
    "format: of a Text": "t = answer('q')\nfinal_answer = ('{0._handle}' + t[:0]).format(t)",
    "format: in a class": "class A:\n    show = str.format\nfinal_answer = A.show('{0.__class__}', 1)",
    "format: conversion": "final_answer = '{0.gi_frame!r}'.format(x for x in [1])",
    "getattr: joined": "final_answer = getattr(1, '_' + '_class_' + '_')",
    "getattr: Text": "t = echo('__class__')\nfinal_answer = getattr(1, t)",
    "getattr: mapped": "final_answer = list(map(getattr, [1], ['__class__']))",
    "getattr: key": "final_answer = sorted([1, 2], key=lambda v: getattr(v, '__class__'))",
    "getattr: obj of an error": "try:\n    (1).missing\nexcept AttributeError as e:\n    final_answer = getattr(e, 'ob' + 'j')",
    "frames: generator": "g = (x for x in [1])\nfinal_answer = getattr(g, 'gi_' + 'frame')",
    "pattern: attribute": "match 1:\n    case int(real=r): final_answer = r",
    "pattern: match_args": "class A:\n    __match_args__ = ('__dict__',)\nfinal_answer = 1",
    "pattern: set match_args": "class A: pass\nA.__match_args__ = ('x',)\nfinal_answer = 1",
    "except*": "try:\n    pass\nexcept* ValueError:\n    pass\nfinal_answer = 1",
    "class: slots": "class A:\n    __slots__ = ('x',)\nfinal_answer = 1",
    "class: getattr": "class A:\n    def __getattr__(self, n): return 1\nfinal_answer = 1",
    "class: from a function": "def base(): return str\nclass A(base()): pass\nfinal_answer = 1",
    "class: from a date": "import datetime\nclass A(datetime.date): pass\nfinal_answer = 1",
    "class: from a Counter": "from collections import Counter\nclass A(Counter): pass\nfinal_answer = 1",
    "class: keyword": "class A(metaclass=int): pass\nfinal_answer = 1",
    "class: namedtuple base": "from collections import namedtuple\nclass A(namedtuple('P', 'x')): pass\nfinal_answer = 1",
    "decorator: eval": "@eval\ndef f(): pass\nfinal_answer = 1",
    "default: exec": "def f(x=exec): return x\nfinal_answer = 1",
    "walrus: guard": "final_answer = [(_write_ := x) for x in [1]]",
    "walrus: primitive": "final_answer = [(retrieve := x) for x in [1]]",
    "star: guard as keyword": "def f(*a, **k): return k\nfinal_answer = f(_getattr_=1)",
    "lambda: guard": "f = lambda _write_: 1\nfinal_answer = 1",
    "posonly: guard": "def f(_getattr_, /): pass\nfinal_answer = 1",
    "global: guard": "def f():\n    global _write_\n    _write_ = 1\nfinal_answer = 1",
    "comprehension: primitive": "final_answer = [1 for answer in [1]]",
    "for: primitive": "for retrieve in [1]: pass\nfinal_answer = 1",
    "for: item of a function": "for answer.x in [1]: pass\nfinal_answer = 1",
    "with: primitive": "with 1 as answer: pass\nfinal_answer = 1",
    "except: primitive": "try:\n    pass\nexcept ValueError as answer: pass\nfinal_answer = 1",
    "import: primitive": "from math import sqrt as answer\nfinal_answer = 1",
    "def: primitive": "def answer(q): return 1\nfinal_answer = answer('q')",
    "class: primitive": "class answer: pass\nfinal_answer = 1",
    "class: primitive inside": "class A:\n    answer = 1\nfinal_answer = 1",
    "match: star": "match [1]:\n    case [*answer]: final_answer = 1",
    "match: rest": "match {1: 2}:\n    case {**answer}: final_answer = 1",
    "match: as": "match 1:\n    case int() as answer: final_answer = 1",
    "global: primitive": "def f():\n    global answer\n    answer = 1\nfinal_answer = 1",
    "del: primitive": "del answer\nfinal_answer = 1",
    "argument: primitive": "def f(*answer): return 1\nfinal_answer = 1",
    "write: function": "answer.x = 1\nfinal_answer = 1",
    "write: facade": "import math\nmath.pi = 3\nfinal_answer = 1",
    "write: annotated": "import math\nmath.pi: int = 3\nfinal_answer = 1",
    "write: comprehension target": "import math\n[0 for math.pi in [3]]\nfinal_answer = 1",
    "write: augmented": "import math\nmath.pi += 3\nfinal_answer = 1",
    "write: Record": "d = retrieve('q')[0]\nd.text = 'x'\nfinal_answer = 1",
    "write: Record item": "d = retrieve('q')[0]\nd['text'] = 'x'\nfinal_answer = 1",
    "delete: Text": "t = answer('q')\ndel t.confident\nfinal_answer = 1",
    "write: bytearray": "b = bytearray(3)\nb[0] = 1\nfinal_answer = 1",
    "write: exception": "e = ValueError(1)\ne.args = 2\nfinal_answer = 1",
    "clock: alias": "from datetime import datetime as d\nf = d.now\nfinal_answer = str(f())",
    "clock: instance": "import datetime\nfinal_answer = str(datetime.date(2000, 1, 1).today())",
    "clock: key": "import datetime\nfinal_answer = str(max([1], key=lambda v: datetime.datetime.utcnow()))",
    "facade: encoder": "import json\nfinal_answer = json.JSONEncoder",
    "facade: module in a module": "import re\nfinal_answer = re.enum",
    "facade: computed": "import statistics\nfinal_answer = getattr(statistics, 'math')",
    "facade: private": "import collections\nfinal_answer = collections._sys",
    "facade: relative": "from . import os\nfinal_answer = 1",
    "facade: star": "from math import *\nfinal_answer = 1",
}
HARMLESS = {  # fail, or succeed without having got anything
    "percent: temporaries": "final_answer = getattr(1, '%force', 'none') + '%(a)s' % {'a': 'x'}",
    "globals by keyword": "def f(**k): return k\nfinal_answer = sorted(f(**{'%block': 1, 'main:x': 2, '__class__': 3}))",
    "namedtuple: code in names": "from collections import namedtuple\nfinal_answer = str(namedtuple('P', ['a): print(1) #']))",
    "namedtuple: code in the type": "from collections import namedtuple\nfinal_answer = str(namedtuple('P(x): pass #', 'a'))",
    "namedtuple: frames as fields": "from collections import namedtuple\nP = namedtuple('P', 'gi_frame')\ng = (x for x in [1])\nmatch g:\n    case P(x): final_answer = 'ESCAPED'\n    case _: final_answer = 1",
    "json: class": "import json\nfinal_answer = json.loads('1', cls=dict)",
    "json: hook": "import json\nfinal_answer = json.loads('{}', object_hook=print) or 1",
    "json: default": "import json\nfinal_answer = json.dumps(len, default=lambda v: str(v)[:18])",
    "re: template": "import re\nfinal_answer = re.sub('a', r'\\g<0>', 'a') + re.match('(a)', 'a').expand(r'\\1')",
    "re: callback": "import re\nfinal_answer = re.sub('a', lambda m: m.group().upper(), 'a')",
    "codec: files": "final_answer = 'x'.encode('zlib_codec')",
    "codec: path": "final_answer = 'x'.encode('../../os')",
    "codec: dots": "final_answer = b'x'.decode('os.path')",
    "surrogate in getattr": "final_answer = getattr(1, '\\ud800', 1)",
    "surrogate in print": "print('\\ud800')\nfinal_answer = 1",
    "surrogate in the answer": "final_answer = '\\ud800'",
    "surrogate to a call": "final_answer = echo('\\ud800')",
    "long int": "final_answer = echo(10 ** 4400)",
    "long int as text": "final_answer = str(10 ** 5000)",
    "long literal": "final_answer = " + "9" * 5000,
    "print replaced": "def print(*a): return 'mine'\nfinal_answer = print(1)",
    "len replaced": "def len(x): return -1\nfinal_answer = sorted([3, 1], key=len)",
    "equal to everything": "class A:\n    def __eq__(self, other): return True\nfinal_answer = echo({'a': [A() == 'x']})",
    "own class to a call": "class A: pass\nfinal_answer = echo(A())",
    "function to a call": "final_answer = echo(len)",
    "Record: handle": "final_answer = retrieve('q')[0].get('_handle', 'none')",
    "Text: dict": "final_answer = getattr(answer('q'), 'handle', 'none')",
    "error with a class": "class E(Exception): pass\nraise E(len)",
    "deep value": "v = []\nfor i in range(300): v = [v]\nfinal_answer = v",
    "value in itself": "v = []\nv.append(v)\nfinal_answer = v",
    "chain of calls": "def f0(): return 1\n"
    + "".join(f"def f{n}(): return f{n - 1}()\n" for n in range(1, 400))
    + "final_answer = f399()",
    "chain in statements": "def f0():\n    x = 1\n    return x\n"
    + "".join(f"def f{n}():\n    x = f{n - 1}()\n    return x\n" for n in range(1, 200))
    + "final_answer = f199()",
    "swallow in finally": "def f():\n    try:\n        return answer('q')\n    finally:\n        return 'none'\nfinal_answer = f()",
}


async def test_refused(sandboxes: dict[str, Sandbox]) -> None:
    found = {}
    for name, source in BLOCKED.items():
        outcome = await sandboxes["policy only"].run(source, PRIMITIVES, limits=SHORT)
        if outcome.status != "blocked":
            found[name] = (outcome.status, outcome.value, outcome.error)
    assert not found


async def test_nothing_gained(sandboxes: dict[str, Sandbox]) -> None:
    for name, source in HARMLESS.items():
        for kind in ("process", "policy only"):
            outcome = await sandboxes[kind].run(source, PRIMITIVES, limits=Limits())
            assert outcome.status in ("ok", "error"), (name, kind, outcome.status, outcome.error)
            seen: Any = repr((outcome.value, outcome.variables, outcome.error)) + outcome.output
            assert "ESCAPED" not in seen, name
            assert "/" not in seen.replace("../../os", ""), (name, seen)  # no path of the host


async def test_catastrophic_patterns_end(sandboxes: dict[str, Sandbox]) -> None:
    source = "import re\nfinal_answer = re.match('(a+)+$', 'a' * 60 + 'b')"
    outcome = await sandboxes["process"].run(source, PRIMITIVES, limits=Limits(own_seconds=0.2))
    assert (outcome.status, outcome.reason) == ("killed", "wall")
