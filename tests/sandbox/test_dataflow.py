"""What a plan makes of a program: units, what they wait for, what is rewritten."""

from __future__ import annotations

import ast

import pytest

from pyrag_sandbox.dataflow.plan import plan
from pyrag_sandbox.dataflow.units import Plan, Unit


def planned(source: str, *pure: str) -> Plan:
    return plan(ast.parse(source), frozenset({"retrieve", "answer"}), frozenset(pure))


def texts(units: tuple[Unit, ...]) -> list[str]:
    return [ast.unparse(unit.tree) for unit in units]


def rewritten(source: str, *pure: str) -> list[str]:
    return texts(planned(source, *pure).root.units)


def last(source: str, *pure: str) -> Unit:
    return planned(source, *pure).root.units[-1]


# Hoisting


def test_nested_calls_become_temporaries_in_evaluation_order() -> None:
    assert rewritten("x = year(answer('a', retrieve('a'))) < year(answer('b', retrieve('b')))", "year") == [
        "%1 = retrieve('a')",
        "%2 = answer('a', %1)",
        "%3 = year(%2)",
        "%4 = retrieve('b')",
        "%5 = answer('b', %4)",
        "x = %3 < year(%5)",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "x = a and answer('q')",
        "x = answer('q') if a else 1",
        "x = 1 < a < answer('q')",
        "x = lambda: answer('q')",
        "x = any((answer(q) for q in 'ab'))",
    ],
)
def test_what_may_not_be_evaluated_stays(source: str) -> None:
    assert rewritten("a = 1\n" + source)[1:] == [source]


def test_what_may_fail_first_is_evaluated_first() -> None:
    assert rewritten("x = a.b + answer('q')") == ["%1 = a.b", "%2 = answer('q')", "x = %1 + %2"]
    assert rewritten("x = [missing, answer('q'), 1]")[0] == "%1 = missing"


def test_nothing_moves_past_an_unknown_call() -> None:
    assert rewritten("x = [mystery(), answer('q'), 1]") == ["x = [mystery(), answer('q'), 1]"]


def test_formatting_is_evaluated_in_order() -> None:
    assert rewritten("a = 'x'\nx = f'{a} {answer(a)}'")[1:] == ["%1 = f'{a}'", "%2 = answer(a)", "x = f'{%1} {%2}'"]


def test_appending_looks_up_the_method_first() -> None:
    assert rewritten("xs = []\nxs.append(answer('q'))")[1:] == ["xs.append", "%1 = answer('q')", "xs.append(%1)"]


def test_lines_are_kept() -> None:
    units = planned("x = [\n  answer('a'),\n  answer('b'),\n]").root.units
    assert [unit.tree.body[0].lineno for unit in units] == [2, 3, 1]


# Names


def test_a_name_bound_twice_gets_a_name_per_value() -> None:
    source = "docs = retrieve('a')\nx = answer('a', docs)\ndocs = retrieve('b')\ny = answer('b', docs)"
    units = planned(source).root.units
    assert texts(units) == [
        "%1 = retrieve('a')",
        "docs = %1",
        "x = answer('a', %1)",
        "%2 = retrieve('b')",
        "docs = %2",
        "y = answer('b', %2)",
    ]
    assert units[5].after == (3,)


def test_a_rebound_primitive_is_none() -> None:
    assert last("answer = answer('q')").unsure


def test_functions_read_what_their_bodies_read() -> None:
    unit = last("base = 1\ndef f(x):\n    return x + base + answer(x)\ng = f\ny = f('a')")
    assert unit.early
    assert "base" in unit.reads
    assert unit.after == (0, 1)


# Purity


@pytest.mark.parametrize(
    "statement",
    [
        "y = [d.title for d in docs]",
        "y = sorted(docs, key=lambda d: d.score)[:3]",
        "y = {answer(d): len(d) for d in docs}",
        "y = ', '.join(d.strip() for d in docs)",
        "for d in docs:\n    y = answer(d)",
        "try:\n    y = int(docs[0])\nexcept ValueError:\n    y = 0",
        "if docs:\n    y = answer(docs[0])",
        "import math\ny = math.sqrt(len(docs))",
        "from collections import Counter\ny = Counter(docs).most_common(1)",
        "def f(xs):\n    out = []\n    for x in xs:\n        out.append(answer(x))\n    return out\ny = f(docs)",
        "def fact(n):\n    return 1 if n < 2 else n * fact(n - 1)\ny = fact(3)",
        "y = list(map(answer, docs))",
        "y = max(docs, key=len)",
        "print(docs)",
    ],
)
def test_pure(statement: str) -> None:
    assert last("docs = retrieve('q')\n" + statement).early


@pytest.mark.parametrize(
    "statement",
    [
        "docs.append(1)",
        "docs[0] = 1",
        "docs += [1]",
        "del docs",
        "docs[0].title = 1",
        "while docs:\n    break",
        "try:\n    y = 1\nexcept:\n    pass",
        "try:\n    y = 1\nfinally:\n    pass",
        "y = docs.mystery()",
        "y = mystery(docs)",
        "y = (d for d in docs)",
        "y = zip(docs, docs)",
        "def f(x):\n    x.append(1)\ng = f\ny = f(docs)",
        "def f():\n    yield 1\ny = f()",
        "def f(g):\n    return g()\nh = f\ny = f(answer)",
        "y = sorted(docs, key=mystery)",
        "raise docs",
        "with docs:\n    pass",
    ],
)
def test_not_pure(statement: str) -> None:
    assert not last("docs = retrieve('q')\n" + statement).early


def test_a_class_with_a_body_ends_all_concurrency() -> None:
    assert not last("class A:\n    def __lt__(self, o): return True\nx = answer('q')").early
    assert last("class Odd(ValueError):\n    pass\nx = answer('q')").after == (0,)


def test_everything_after_a_lazy_iterator_is_ordered() -> None:
    units = planned("x = answer('a')\ny = map(answer, 'ab')\nz = answer('b')").root.units
    assert [unit.early for unit in units] == [True, False, False]


def test_reading_a_defaultdict_is_a_mutation() -> None:
    source = "from collections import defaultdict\nd = defaultdict(list)\nx = d['a']"
    assert not last(source).early


# Conflicts


def test_a_reader_waits_for_the_mutation_unless_it_reads_atoms() -> None:
    unit = last("a = answer('a')\nxs = []\nxs.append(a)\nb = answer(a)")
    assert unit.early
    assert 2 not in unit.after


def test_aliases_conflict() -> None:
    unit = last("xs = []\nys = xs\nxs.append(1)\nz = len(ys)")
    assert unit.unless_atoms == ((2, frozenset({"ys"})),)


def test_a_later_binding_waits_for_earlier_readers() -> None:
    units = planned("a = 'x'\nif a:\n    a = answer(a)").root.units
    assert units[1].after == (0,)


# Comprehensions


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("y = [answer(q) for q in x]", "y = %list(lambda q: [answer(q)], x, False)"),
        ("y = {answer(q) for q in x if q}", "y = %set(lambda q: {answer(q)} if q else (), x, False)"),
        ("y = {a: answer(b) for a, b in x}", "y = %dict(lambda a, b: {a: answer(b)}, ((a, b) for a, b in x), True)"),
        ("y = sum(len(answer(q)) for q in x)", "y = sum(%lazy(lambda q: [len(answer(q))], x, False))"),
        ("y = [q for q in x if answer(q)]", "y = %list(lambda q: [q] if answer(q) else (), x, False)"),
        ("y = [len(q) for q in x]", "y = [len(q) for q in x]"),
        ("y = any(answer(q) for q in x)", "y = any((answer(q) for q in x))"),
        ("y = [answer(q) for q in x if (z := q)]", "y = [answer(q) for q in x if (z := q)]"),
        ("y = [answer(w) for q in x for w in retrieve(q)]", "y = [answer(w) for q in x for w in retrieve(q)]"),
        ("y = [x.append(answer(q)) for q in x]", "y = [x.append(answer(q)) for q in x]"),
    ],
)
def test_gathers(source: str, expected: str) -> None:
    assert rewritten("x = 'ab'\n" + source)[-1] == expected


# Loops


@pytest.mark.parametrize(
    "body",
    [
        "docs = retrieve(q)\n    facts.append(answer(q, docs))",
        "d[q] = answer(q)",
        "d[q] = d.get(q, '') + answer(q)",
        "total += len(answer(q))",
        "print(q, answer(q))",
        "a = answer(q)\n    if a != 'unknown':\n        facts.append(a)",
        "last = answer(q)",
    ],
)
def test_independent_loops(body: str) -> None:
    source = f"qs = ['a', 'b']\nfacts = []\nd = {{}}\ntotal = 0\nfor q in qs:\n    {body}"
    outer = [text for text in rewritten(source) if text.startswith(("%each", "for"))]
    assert outer in (["%each(0, qs)"], ["%each(1, qs)"])


@pytest.mark.parametrize(
    "body",
    [
        "context = answer(context + q)",
        "if answer(q): break",
        "facts.append(answer(q, facts))",
        "qs2 = facts[-1:]\n    facts.append(answer(q, qs2))",
        "mystery(answer(q))",
        "f()\n    global_name = answer(q)",
        "facts.append(previous)\n    previous = answer(q)",
    ],
)
def test_dependent_loops(body: str) -> None:
    head = "def f():\n    return global_name\nqs = ['a']\nfacts = []\ncontext = ''\nprevious = ''\nglobal_name = ''\n"
    found = planned(f"{head}for q in qs:\n    {body}")
    unit = found.root.units[-1]
    assert "%each" not in ast.unparse(unit.tree) or (found.blocks[-1].loop and found.blocks[-1].loop.read)
