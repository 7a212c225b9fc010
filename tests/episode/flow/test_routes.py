"""Promise 22 of SECURITY.md, route by route: no call with effects depends on a passage, and plain calls are made."""

from __future__ import annotations

import pytest

from pyrag import PyRAG
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.model import Passage
from tests.episode.flow.conftest import Desk

SEARCH = 'docs = retrieve("q")\nfact = answer("q", docs)\n'
ROUTES = {
    "direct": "order(fact)",
    "passage": "order(docs[0].text)",
    "keyword": "order(item=fact)",
    "star": "order(*[fact])",
    "double star": 'order(**{"item": fact})',
    "f-string": 'order(f"a {fact}")',
    "format": 'order("a {}".format(fact))',
    "concatenation": 'order("a " + fact)',
    "slice": "order(fact[:2])",
    "letters": 'code = ""\nfor letter in fact:\n    code += letter\norder(code)',
    "length": 'order(["a", "b", "c", "d"][len(fact)])',
    "helper": "def send(what):\n    return order(what)\nsend(fact)",
    "helper that reads a global": "def send():\n    order(fact)\nsend()",
    "helper that returns": "def find(query):\n    return answer(query, retrieve(query))\norder(find('q'))",
    "recursive helper": "def find(n):\n    return find(n - 1) if n else fact\norder(find(3))",
    "default argument": "def send(what=fact):\n    order(what)\nsend()",
    "closure": "def maker(what):\n    def send():\n        order(what)\n    return send\nmaker(fact)()",
    "lambda": "send = lambda: order(fact)\nsend()",
    "alias of the tool": "send = order\nsend(fact)",
    "tool in a dict": '{"send": order}["send"](fact)',
    "map": "list(map(order, [fact]))",
    "key function": "sorted([fact], key=order)",
    "alias of retrieve": "find = retrieve\nx = find('q')\norder(x[0].text)",
    "list": "box = [fact]\norder(box[0])",
    "append": "box = []\nbox.append(fact)\norder(box[0])",
    "alias of a list": "box = []\nother = box\nother.append(fact)\norder(box[0])",
    "augmented list": "box = []\nother = box\nbox += docs\norder(other[0].text)",
    "nested containers": 'box = {"k": []}\nbox["k"].append(fact)\norder(box["k"][0])',
    "list in a helper": "def keep(box):\n    box.append(fact)\nkept = []\nkeep(kept)\norder(kept[0])",
    "set": "box = {fact}\norder(box.pop())",
    "dict key": "order(next(iter({fact: 1})))",
    "attribute": "class Box:\n    what = ''\nBox.what = fact\norder(Box.what)",
    "unpacking": "first, *rest = fact\norder(first)",
    "walrus": "(held := fact)\norder(held)",
    "generator": "def each_of():\n    yield fact\norder(next(each_of()))",
    "comprehension": "[order(doc.text) for doc in docs]",
    "if": 'if "yes" in fact:\n    order("x")',
    "else": 'if "no" in fact:\n    pass\nelse:\n    order("x")',
    "after an if": 'mark = "a"\nif "yes" in fact:\n    mark = "b"\norder(mark)',
    "constant after an if": 'if "yes" in fact:\n    pass\norder("x")',
    "conditional expression": 'order("x") if "yes" in fact else None',
    "conditional argument": 'order("x" if "yes" in fact else "y")',
    "and": 'fact and order("x")',
    "or": '"no" in fact or order("x")',
    "chained comparison": 'order("x") if "a" < fact < "z" else None',
    "while": 'while "yes" in fact:\n    order("x")\n    break',
    "count of a while": "n = 0\nwhile n < len(fact):\n    n += 1\norder(str(n))",
    "for": 'for doc in docs:\n    order("x")',
    "number of passages": 'for doc in docs:\n    pass\norder("x")',
    "filter of a comprehension": '[order("x") for n in range(2) if "yes" in fact]',
    "match": 'match fact:\n    case "yes":\n        order("x")\n    case _:\n        pass',
    "early break": 'for n in range(3):\n    if "no" in fact:\n        break\n    order(str(n))',
    "continue": 'for n in range(3):\n    order(str(n)) if n else None\n    if "yes" in fact:\n        continue',
    "early return": 'def send():\n    if "no" in fact:\n        return\n    order("x")\nsend()',
    "early raise": 'if "no" in fact:\n    raise ValueError("stop")\norder("x")',
    "assert": 'assert "yes" in fact\norder("x")',
    "except": 'try:\n    int(fact)\nexcept ValueError:\n    order("x")',
    "after what may fail in a try": 'try:\n    fact.index("y")\n    order("x")\nexcept ValueError:\n    pass',
    "else of a try": 'try:\n    fact.index("y")\nexcept ValueError:\n    pass\nelse:\n    order("x")',
    "finally": 'try:\n    fact.index("y")\nfinally:\n    order("x")',
    "exception's text": "try:\n    raise ValueError(fact)\nexcept ValueError as error:\n    order(str(error))",
    "search in a try": 'try:\n    retrieve("q")\n    order("x")\nexcept Exception:\n    pass',
    "helper in a try": 'def find():\n    retrieve("q")\ntry:\n    find()\n    order("x")\nexcept Exception:\n    pass',
    "what may fail": 'fact.index("y")\norder("x")',
    "query that depends": 'answer(f"who is {fact}?", docs)\norder("x")',
    "table of functions": 'def send():\n    order("x")\n{True: send}[bool(fact)]()',
    "chosen function": 'pick = order if fact else str\npick("x")',
    "method of a class": 'class Sender:\n    def go(self):\n        order("x")\nsender = Sender()\nsender.go()',
    "tool that returns passages": 'order(notes("x")[0].text)',
    "tool with sources": 'order(sourced("x"))',
    "tool with an argument that depends": "order(lookup(fact))",
    "each": "order(str(len(docs)))",
    "print": "print(order(fact))",
}
PLAIN = {
    "constant": ('order("x")', ["x"]),
    "constant in a loop over an input": ("for item in items:\n    order(item)", ["ant", "bee"]),
    "input": ("order(label)", ["cat"]),
    "branch over an input": ('if flag:\n    order("x")', ["x"]),
    "branch that is not taken": ('if not flag:\n    order("x")', []),
    "match over an input": ('match number:\n    case 2:\n        order("x")', ["x"]),
    "computed from inputs": ('order(f"{label}-{number + 1}".upper())', ["CAT-3"]),
    "helper": ("def send(what):\n    order(what)\nsend(label)", ["cat"]),
    "helper that searches": (
        "def find(q):\n    return answer(q, retrieve(q))\nmore = find('x')\norder(label)",
        ["cat"],
    ),
    "facts of a loop": ("found = [answer(item, retrieve(item)) for item in items]\norder(label)", ["cat"]),
    "text from facts": ('text = f"{fact} and {docs}"\nrow = {"fact": fact, "text": text}\norder(label)', ["cat"]),
    "passages joined": ('more = docs + retrieve("r")\nb = answer("r", more[:3])\norder(label)', ["cat"]),
    "exception of an input": ("try:\n    int(label)\nexcept ValueError:\n    order('x')", ["x"]),
    "while over inputs": ("n = 0\nwhile n < number:\n    n += 1\n    order(str(n))", ["1", "2"]),
    "result of a tool": ('first = order("x")\norder(first)', ["x", "number 1"]),
    "result of a look-up": ("order(lookup(label))", ["value of cat"]),
    "printed facts": ("print(docs, fact)\norder(label)", ["cat"]),
}


@pytest.mark.parametrize("route", ROUTES)
def test_no_call_depends_on_a_passage(desk: Desk, rag: PyRAG, route: str) -> None:
    trace, orders = desk.run(rag, f"{SEARCH}{ROUTES[route]}\nfinal_answer = fact")
    assert orders == []
    assert trace.error is not None
    assert trace.error.kind == "flow", trace.error


@pytest.mark.parametrize("plain", PLAIN)
def test_plain_calls_are_made(desk: Desk, rag: PyRAG, plain: str) -> None:
    code, expected = PLAIN[plain]
    trace, orders = desk.run(rag, f"{SEARCH}{code}\nfinal_answer = fact")
    assert trace.error is None, trace.error
    assert orders == expected


@pytest.mark.parametrize("code", ["order(items[0])", "list(map(order, items[:1]))", "send = order\nsend(items[0])"])
def test_everything_goes_before_the_first_search(desk: Desk, rag: PyRAG, code: str) -> None:
    trace, orders = desk.run(rag, f"{code}\n{SEARCH}final_answer = fact")
    assert (trace.error, orders) == (None, ["ant"])


def test_a_refusal_names_line_argument_and_passage(desk: Desk, rag: PyRAG) -> None:
    trace, _ = desk.run(rag, f"{SEARCH}order(fact)\nfinal_answer = fact")
    assert trace.error is not None
    assert (trace.error.line, trace.error.source_line) == (3, "order(fact)")
    assert "order('yes') in line 3: its argument 1 depends on retrieved text (passages: 'p1')" in trace.error.message
    assert trace.steps[-1].error == trace.error.message


def test_a_refusal_names_the_branch(desk: Desk, rag: PyRAG) -> None:
    trace, _ = desk.run(rag, f"{SEARCH}if 'yes' in fact:\n    order('x')\nfinal_answer = fact")
    assert trace.error is not None
    assert "since line 3 branches on retrieved text: 'yes' in fact" in trace.error.message


@pytest.mark.parametrize(
    "source",
    [
        'rows = each(documents(), "q")',
        'docs = documents(where="year > 1")\nrows = each(docs[:3], "q", returns="bool")',
        'rows = each(retrieve("q") + documents(), "q")\nb = answer("q", [retrieve("q"), retrieve("r")])',
        'rows = each(items=retrieve("q"), question="q")',
        'rows = each(["a", "b"], "who is {item}?")\nprint(len(documents()), rows)',
    ],
)
def test_constant_calls_follow_questions_of_each_document(source: str) -> None:
    desk = Desk()
    passages = [Passage("p1", "T", "The number is 1.", metadata={"year": 3})]
    with PyRAG(retriever=InMemoryRetriever(passages), tools=desk.tools) as rag:
        trace, orders = desk.run(rag, f'{source}\norder("x")\nfinal_answer = "done"', {})
    assert (trace.error, orders) == (None, ["x"])


def test_programs_cannot_catch_a_refusal(desk: Desk, rag: PyRAG) -> None:
    caught = "try:\n    order(fact)\nexcept BaseException:\n    order('x')\nfinally:\n    order('y')\n"
    trace, orders = desk.run(rag, f"{SEARCH}{caught}final_answer = fact")
    assert orders == []
    assert trace.error is not None
    assert trace.error.kind == "flow"


@pytest.mark.parametrize(
    "source",
    [
        'for row in each(documents(), "q"):\n    order("x")',
        "order(str(count()))",
        'order(open_document("p1")[0].text)',
        'n = answer("q", retrieve("q"), returns="number")\nif n is None:\n    order("x")\nelse:\n    order("y")',
        'retrieve("q")\norder(str(budget()["tokens"]))',
        'each(documents(), "what about {title}?")\norder("x")',
        'question = answer("q", retrieve("q"))\neach(documents(), question)\norder("x")',
        'try:\n    each(documents(), "q")\n    order("x")\nfinally:\n    pass',
        'each(documents(), "q", returns="number")\norder("x")',
        'each(documents(), "q", "number")\norder("x")',
        'kind = "number"\neach(documents(), "q", returns=kind)\norder("x")',
        'answer("q", documents(where="year > 1"))\norder("x")',
        'docs = documents(where="year > 1")\nanswer("q", docs=docs)\norder("x")',
        'docs = (retrieve("number") + [retrieve("r")])[:1]\neach(docs, "q")\norder("x")',
        'box = []\nbox.append("a")\nanswer("q", (retrieve("number") + box)[:1])\norder("x")',
        'box = [[]]\nbox[0].append("a")\nanswer("q", (retrieve("number") + box[:1])[:1])\norder("x")',
    ],
)
def test_primitives_over_the_corpus_count_as_retrieved(source: str) -> None:
    desk = Desk()
    with PyRAG(retriever=InMemoryRetriever([Passage("p1", "T", "The number is 1.")]), tools=desk.tools) as rag:
        trace, orders = desk.run(rag, f"{source}\nfinal_answer = 'done'", {})
    assert orders == []
    assert trace.error is not None
    assert trace.error.kind == "flow", trace.error
