"""The policy: what models write runs, what leads out does not, and messages tell what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

RUNS: dict[str, tuple[str, Any]] = {
    "item augmented once": (
        "n = []\ndef k():\n    n.append(1)\n    return 'a'\nd = {'a': 1}\nd[k()] += 5\nfinal_answer = [d, len(n)]",
        [{"a": 6}, 1],
    ),
    "attribute augmented": (
        "class A:\n    pass\na = A()\na.n = 1\na.n += 2\nfinal_answer = a.n",
        3,
    ),
    "slice assignment": (
        "a = [1, 2, 3]\na[0:2] = [9]\na[1:] += [4]\nfinal_answer = a",
        [9, 3, 4],
    ),
    "annotations": (
        "x: int = 1\ny: list[Doc]\ndef f(a: Unknown, *b: object) -> type: return a + x\nfinal_answer = f(2)",
        3,
    ),
    "format": (
        "final_answer = '{0:>4}|{a[k]}|{b.real}|{{}}|{1!r}'.format('x', 'y', a={'k': 1}, b=2)",
        "   x|1|2|{}|'y'",
    ),
    "format with unnamed fields": ("final_answer = '{.real}{[0]}{:{}}{}'.format(1, [2], 3, 4, 5)", "12   35"),
    "format with names of ours": (
        "a = '{template}{self}{args}{kwargs}'.format(template=1, self=2, args=3, kwargs=4)\n"
        "final_answer = a + str.format('{format_string}', format_string=5) + '{mapping}'.format_map({'mapping': 6})",
        "123456",
    ),
    "format from the class": ("final_answer = list(map(str.format, ['{}!', '{}?'], [1, 2]))", ["1!", "2?"]),
    "format_map": ("final_answer = '{a}'.format_map({'a': 5})", "5"),
    "nonlocal": (
        "def f():\n"
        "    n = 0\n"
        "    def g():\n"
        "        nonlocal n\n"
        "        n += 1\n"
        "        return n\n"
        "    g()\n"
        "    return g()\n"
        "final_answer = f()",
        2,
    ),
    "match": (
        "def f(x):\n"
        "    match x:\n"
        "        case {'a': [int(n), *rest], **more}: return [n, rest, more]\n"
        "        case 'q' | None: return 'none'\n"
        "        case _: return 'other'\n"
        "final_answer = [f({'a': [1, 2], 'b': 3}), f(None), f(4)]",
        [[1, [2], {"b": 3}], "none", "other"],
    ),
    "classes": (
        "class Box(object):\n"
        "    kind = 'box'\n"
        "    def __init__(self, n):\n"
        "        self.n = n\n"
        "    def __lt__(self, o):\n"
        "        return self.n < o.n\n"
        "    def twice(self):\n"
        "        return self.n * 2\n"
        "class Big(Box):\n"
        "    pass\n"
        "final_answer = [min(Big(3), Box(1)).twice(), Big.kind, str(Box(1))]",
        [2, "box", "<Box object>"],
    ),
    "print anywhere": (
        "def f(x):\n"
        "    print('in', x)\n"
        "f(1)\n"
        "[print(i, end=';') for i in range(2)]\n"
        "print('a', 'b', sep='-')\n"
        "final_answer = 1",
        1,
    ),
    "main guard": (
        "def main():\n    return 5\nif __name__ == '__main__':\n    final_answer = main()",
        5,
    ),
    "imports": (
        "from __future__ import annotations\n"
        "import math, re as regex\n"
        "from datetime import date, timedelta\n"
        "from collections import Counter, defaultdict\n"
        "import json, statistics, itertools\n"
        "from typing import List, Optional\n"
        "final_answer = [math.floor(2.5), regex.findall(r'\\d+', 'a1b22'), (date(2020, 2, "
        "28) + timedelta(days=2)).isoformat(), Counter('aab').most_common(1)[0][0], json.loads('[1]'), "
        "statistics.mean([1, 3]), list(itertools.chain([1], [2]))]",
        [2, ["1", "22"], "2020-03-01", "a", [1], 2, [1, 2]],
    ),
    "json of records": (
        "import json\nfinal_answer = json.dumps(retrieve('q', topk=1), sort_keys=True)",
        '[{"text": "q 0", "title": "t0"}]',
    ),
    "strptime": (
        "from datetime import datetime\nfinal_answer = datetime.strptime('3 May 1999', '%d %B %Y').year",
        1999,
    ),
    "assigned builtin names": (
        "type = 'film'\ninput = [type]\nfinal_answer = input",
        ["film"],
    ),
    "star and walrus": (
        "a, *b = [1, 2, 3]\nif (n := len(b)) > 1:\n    final_answer = [n, *b, {**{'x': a}}]",
        [2, 2, 3, {"x": 1}],
    ),
    "chained tuple targets": (
        "n = []\ndef f():\n    n.append(1)\n    return 1, 2\na, b = c = f()\nfinal_answer = [a, b, list(c), len(n)]",
        [1, 2, [1, 2], 1],
    ),
    "generators": (
        "def g():\n    yield 1\n    yield from [2, 3]\nfinal_answer = [sum(g()), next(x for x in g() if x > 1)]",
        [6, 2],
    ),
    "helpers": ("final_answer = shouted('a') if is_present('x') else 0", "A"),
    "getattr": (
        "d = retrieve('q')[0]\n"
        "final_answer = [getattr(d, 'title'), getattr(d, 'no', 5), hasattr(d, 'text'), hasattr(d, 'no')]",
        ["t0", 5, True, False],
    ),
    "unicode names": (
        "größe = 1\nfinal_answer = größe + int('٣')",
        4,
    ),
    "own exceptions": (
        "class NotFound(ValueError):\n"
        "    pass\n"
        "try:\n"
        "    raise NotFound('x')\n"
        "except ValueError as e:\n"
        "    final_answer = str(e)",
        "x",
    ),
}


@pytest.mark.parametrize("name", RUNS)
async def test_runs(run: Any, name: str) -> None:
    source, value = RUNS[name]
    outcome = await run(source)
    assert outcome.error is None
    assert outcome.value == value


async def test_print_collects_from_everywhere(run: Any) -> None:
    outcome = await run(RUNS["print anywhere"][0])
    assert outcome.output == "in 1\n0;1;a-b\n"


REFUSED = {
    "eval": "x = eval('1')",
    "eval as a value": "x = [eval][0]",
    "eval stored": "eval = 1",
    "open in a default": "def f(o=open): pass",
    "fullwidth eval": "x = ｅｖａｌ('1')",
    "mathematical letters": "x = ().__𝔠𝔩𝔞𝔰𝔰__",
    "type unbound": "x = type(1)",
    "type unbound when called": "def f():\n    type = 1\nx = type(1)",
    "underscore name": "_x = 1",
    "underscore parameter": "f = lambda _x: 1",
    "underscore keyword": "dict(__class__=1)",
    "underscore import": "import math as _getattr_",
    "underscore except": "try:\n    1/0\nexcept ZeroDivisionError as _write_:\n    pass",
    "underscore global": "def f():\n    global _getattr_\n    _getattr_ = 1",
    "underscore capture": "match 1:\n    case _getattr_.x: pass",
    "mapping rest": "match {}:\n    case {**__builtins__}: pass",
    "in an annotation": "def f(x: ().__class__): pass",
    "called in an annotation": "x: open('f') = 1",
    "store on a module": "import math\nmath.pi = 3",
    "delete from a module": "import math\ndel math.pi",
    "store on a type": "str.x = 1",
    "store on a function": "def f(): pass\nf.x = 1",
    "store on a primitive": "retrieve.x = 1",
    "item of a string": "s = 'a'\ns[0] = 'b'",
    "item of a tuple": "s = (1,)\ns[0] += 1",
    "field of a record": "retrieve('q')[0].title = 'x'",
    "attribute of a text": "answer('q').confident = False",
    "attribute as loop target": "import math\nfor math.pi in [1]: pass",
    "attribute as with target": "def f(): pass\n[0 for f.x in [1]]",
    "rebind by def": "def answer(): pass",
    "rebind by class": "class answer: pass",
    "rebind by import": "from math import sqrt as answer",
    "rebind by for": "for answer in []: pass",
    "rebind by comprehension": "[1 for answer in []]",
    "rebind by except": "try:\n    pass\nexcept ValueError as answer:\n    pass",
    "rebind by parameter": "f = lambda answer: answer",
    "rebind by capture": "match 1:\n    case [answer]: pass",
    "rebind by star": "a, *answer = [1]",
    "rebind by annotation": "answer: int = 1",
    "rebind by del": "del answer",
    "import": "import os",
    "import dotted": "import math.os",
    "import star": "from math import *",
    "import relative": "from . import os",
    "import inside try": "try:\n    import os\nexcept Exception:\n    pass",
    "import from an offered one": "from re import sys",
    "module of an offered one": "import json\nx = json.codecs",
    "class from a builtin": "class A(str): pass",
    "class from a hidden builtin": "t = int\nclass A(t): pass",
    "class from a namedtuple": "from collections import namedtuple\nclass A(namedtuple('T', 'a')): pass",
    "class keywords": "class A(metaclass=int): pass",
    "dunder method": "class A:\n    def __getattr__(self, n): pass",
    "dunder function": "def __init__(): pass",
    "dunder attribute in class": "class A:\n    __slots__ = ()",
    "async def": "async def f(): pass",
    "async comprehension": "x = [1 async for i in []]",
    "type parameters": "def f[T](x): pass" ,
    "type alias": "type X = int",
    "class pattern": "match 1:\n    case int(real=x): pass",
    "generator throw": "def g(): yield\ng().throw(ValueError)",
    "exception object": "try:\n    ''.x\nexcept AttributeError as e:\n    e.obj",
    "getattr": "getattr((), '__cla' + 'ss__')",
    "hasattr": "hasattr((), '__class__')",
    "getattr default": "getattr((), '__class__', None)",
    "mapped getattr": "list(map(getattr, [()], ['__class__']))",
    "getattr of format": "getattr('{0.__class__}', 'format')(1)",
    "format attribute": "'{0.__class__}'.format(1)",
    "format in a key": "sorted([1], key='{.__class__}'.format)",
    "format nested": "'{:{0.__class__}}'.format(1)",
    "format item then attribute": "'{0[0].__class__}'.format([1])",
    "clock": "from datetime import datetime\ndatetime.now()",
    "clock of an instance": "from datetime import date\ngetattr(date(2000, 1, 1), 'today')()",
    "deep": "x = " + "-" * 200 + "1",
    "very deep": "x = " + "(" * 3000 + ")" * 3000,
    "too many blocks": "".join("  " * i + "if 1:\n" for i in range(120)) + "  " * 120 + "x = 1",
    "nested loops": "".join(" " * i + "for i in []:\n" for i in range(25)) + " " * 25 + "x = 1",
    "long": "x = 1\n" * 12_000,
    "many nodes": "x = [" + "1," * 25_000 + "]",
}  # fmt: skip
NEEDS_312 = {"type parameters", "type alias"}


@pytest.mark.parametrize("name", REFUSED)
async def test_refused_and_not_to_be_caught(run: Any, name: str) -> None:
    import sys

    if name in NEEDS_312 and sys.version_info < (3, 12):
        pytest.skip("the syntax is newer than this Python")
    source = REFUSED[name]
    outcome = await run(source + "\nfinal_answer = 'reached'")
    assert outcome.status == "blocked", outcome
    assert outcome.error.message
    wrapped = "try:\n" + "".join(f"    {line}\n" for line in source.splitlines()) + "except BaseException: pass\n"
    if len(source) < 500:
        outcome = await run(wrapped + "finally:\n    final_answer = 'reached'")
        assert (outcome.status, outcome.has_value) == ("blocked", False)


@pytest.mark.parametrize(
    ("source", "line", "hint"),
    [
        ("x = 1\nimport os", 2, "math, re, datetime"),
        ("from math import foo", 1, "offered: .*sqrt"),
        ("x = type(1)", 1, "isinstance"),
        ("x = input()", 1, "nobody to ask"),
        ("class A:\n    def __str__(self): return 'x'", 2, "plain name"),
        ("_x = 1", 1, "'x' instead of '_x'"),
        ("answer = answer('q')", 1, "choose another"),
        ("s = 'a'\ns[0] = 'b'", 2, "build a new"),
        ("async def f(): pass", 1, "ordinary"),
        ("x = 1\ny = 2\nopen('f')\n_a = 1", 3, "no files"),
    ],
)
async def test_refusals_name_the_line_and_the_way_out(run: Any, source: str, line: int, hint: str) -> None:
    import re

    outcome = await run(source)
    assert (outcome.status, outcome.error.type, outcome.error.line) == ("blocked", "Refused", line)
    assert re.search(hint, outcome.error.message)
    assert outcome.error.source_line == source.splitlines()[line - 1]
