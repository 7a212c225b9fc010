"""Topologies as text and as programs: what is refused, and that what runs keeps the order of its dependencies."""

from __future__ import annotations

import ast
import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrag.embedded.rules import EmbeddedRules
from pyrag.episode.plan_checks import check_plan
from pyrag.errors import BadOutputError
from pyrag.methods.hera.embedded.orchestrator import STYLES, Style, advice, hinted, style_of, topology_of
from pyrag.methods.hera.embedded.profile import profile_of
from pyrag.methods.hera.experience.entry import Experience
from pyrag.methods.hera.team_primitives import PRIMITIVES
from pyrag.methods.hera.team_replies import parse_profile
from pyrag.methods.hera.topology import Characterisation, Node, Topology
from pyrag.methods.hera.topology_checks import check_topology
from pyrag.methods.hera.topology_graph import Graph
from pyrag.methods.hera.topology_program import compile_topology
from pyrag.methods.hera.topology_replies import MAX_NODES, check_rules, read_topology, written_topology
from pyrag_helpers import HELPERS, MODULE
from pyrag_sandbox import Call, Sandbox, Text
from tests.methods.hera.conftest import agent, topology

# Topologies as models of 3 to 8 billion parameters write them. Each line has a reply, and for every agent its id, what
# it is, on whom it depends and what it is asked.
WRITTEN = [json.loads(line) for line in Path(__file__).with_name("topologies.jsonl").read_text("utf-8").splitlines()]
DOCS = agent("docs", "retriever", "Who directed Alpha?")
RULES = EmbeddedRules()
SAID = agent("said", "answer_generator", "Who directed Alpha?", "docs")


@pytest.mark.parametrize("kind", ["answer_generator", "context_validator", "query_rewriter", "conclude"])
def test_steps_are_bounded_by_the_edges(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def parents(graph: Graph, node: Node) -> list[Node]:
        nonlocal looked
        looked += 1
        assert looked < 50 * MAX_NODES  # the paths through it are 2 ** MAX_NODES
        return found(graph, node)

    found = Graph.parents
    monkeypatch.setattr(Graph, "parents", parents)
    middle = [f"n{number}" for number in range(MAX_NODES - 2)]
    many = [agent(one, kind, "", "docs", *middle[:number]) for number, one in enumerate(middle)]
    crowd = read_topology(
        topology("intersection", agent("docs", "retriever"), *many, agent("end", "conclude", "", *middle))
    ).topology
    check_topology(crowd, "Which country do Alpha and Beta share?")
    assert "final_answer = end" in compile_topology(crowd, "Which country do Alpha and Beta share?")


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ([], "the list of agents is empty"),
        ([agent("a", "librarian")], "a names an unknown agent 'librarian'"),
        ([agent("a", "retreiver"), SAID], "did you mean 'retriever'"),
        ([DOCS, {**SAID, "id": "docs"}], "two agents with the id docs"),
        ([DOCS, agent("said", "answer_generator", "", "dogs")], "said depends on dogs, which does not exist: did you"),
        ([agent("a", "retriever", "", "b"), agent("b", "retriever", "", "a")], "there is a cycle: "),
        ([agent("q", "query_rewriter", "Who?")], "q comes last, but gives no single answer"),
        ([agent("a", "evidence_selector"), agent("b", "conclude", "", "a")], "a has no passages"),
        ([DOCS, agent("r", "reflect", "", "docs"), agent("b", "conclude", "", "r", "docs")], "r must depend on the"),
        ([DOCS, agent("said", "answer_generator", "When was {who} born?", "docs")], "said refers to {who}, on which"),
    ],
)
def test_what_cannot_run_is_refused(agents: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(BadOutputError) as refused:
        read_topology(topology("single", *agents))
    assert said in str(refused.value)


@pytest.mark.parametrize("written", [one for one in WRITTEN if "refused" in one], ids=lambda one: one["name"])
def test_a_reply_without_a_topology_that_can_run_is_refused(written: dict[str, Any]) -> None:
    with pytest.raises(BadOutputError) as refused:
        read_topology(written["reply"], written["question"])
    assert written["refused"] in str(refused.value)


@pytest.mark.parametrize("written", [one for one in WRITTEN if "agents" in one], ids=lambda one: one["name"])
def test_topologies_of_small_models_are_read_as_they_are_meant(written: dict[str, Any]) -> None:
    read = read_topology(written["reply"], written["question"]).topology
    assert [f"{one.id} {one.agent}({', '.join(one.depends_on)}): {one.input}" for one in read.nodes] == written[
        "agents"
    ]
    assert read.profile.type == written.get("type", read.profile.type)
    assert read.profile.difficulty == written.get("difficulty", read.profile.difficulty)
    ast.parse(compile_topology(read, written["question"]))


@pytest.mark.parametrize(
    ("agents", "warning"),
    [
        ([DOCS], "conclusion is added: it draws on docs, which came last"),
        ([DOCS, SAID, agent("also", "answer_generator", "Who?", "docs")], "it draws on said, also, which came last"),
        ([DOCS, SAID, agent("more", "retriever", "more")], "more is left out: nobody uses what it gives"),
        ([agent("said", "answer_generator", "Who?")], "docs_for_said searches for what it is asked"),
        (
            [agent("q", "query_rewriter", "x"), agent("d", "retriever", "y", "q"), agent("e", "conclude", "", "d")],
            "the input of d is left out: it works on what q gives",
        ),
        ([DOCS, SAID, agent("e", "conclude", "", "said", compute="{said")], "is not a Python expression"),
        ([DOCS, SAID, agent("e", "conclude", "", "said", compute="worth({said})")], "uses the unknown name worth"),
        ([DOCS, {**SAID, "compute": "1"}], 'the "compute" of said is left out: only conclude computes'),
        ([{**DOCS, "topk": 500}, SAID], 'the "topk" of docs is left out'),
        (
            [DOCS, SAID, agent("r", "reflect", "", "said"), agent("again", "answer_generator", "", "r")],
            "again follows a review but reads nothing new: it is taken for a conclude",
        ),
        (
            [agent("p", "query_decomposer"), agent("d", "retriever", "", "p"), agent("e", "answer_generator", "", "d")],
            "conclusion is added: it draws on e, which came last",
        ),
    ],
)
def test_what_is_left_out_added_or_assumed_is_a_warning(agents: list[dict[str, Any]], warning: str) -> None:
    read = read_topology(topology("single", *agents), "Who directed Alpha?")
    assert [warning in one for one in read.warnings] == [True]
    ast.parse(compile_topology(read.topology, "Who directed Alpha?"))


def test_a_topology_in_form_has_no_warnings() -> None:
    assert read_topology(topology("single", DOCS, SAID), "Who?").warnings == ()


BORN = [
    agent("docs", "retriever"),
    agent("a", "answer_generator", "When was Ada born?", "docs", kind="date"),
    agent("b", "answer_generator", "When was Bo born?", "docs", kind="date"),
]
BOTH = agent("end", "conclude", "", "a", "b")
SHARE = [
    agent("docs", "retriever"),
    agent("a", "answer_generator", "What is Ada known for?", "docs"),
    agent("b", "answer_generator", "What is Bo known for?", "docs"),
]


@pytest.mark.parametrize(
    ("question", "written", "said"),
    [
        ("Who was born first, Ada or Bo?", topology("comparison", *BORN, BOTH), "end is left to work out a and b in"),
        (
            "Who was born first, Ada or Bo?",
            topology("comparison", *BORN, {**BOTH, "compute": "'x' if parse_date({a}) < parse_date({b}) else 'y'"}),
            "",
        ),
        ("Who was born first, Ada or Bo?", topology("bridge", *BORN, BOTH), ""),
        (
            "Which country do Ada and Bo share?",
            topology("intersection", *SHARE, BOTH),
            "ask each of them for the country",
        ),
        ("Are Ada and Bo both known for chess?", topology("intersection", *SHARE, BOTH, asks="yes/no"), ""),
        ("Which country do Ada and Bo share?", topology("bridge", *SHARE, BOTH), ""),
        ("Where did Ada study?", topology("single", DOCS, {**SAID, "kind": "university"}), ""),
        (
            "Where was Ada born?",
            topology("single", DOCS, {**SAID, "kind": "date"}),
            "asks for a place, but said, which",
        ),
    ],
)
def test_what_is_held_against_a_question(question: str, written: str, said: str) -> None:
    found = check_topology(read_topology(written).topology, question)
    assert all(said in str(one) for one in found)
    assert bool(found) == bool(said)


def test_an_unknown_type_or_difficulty_is_a_warning() -> None:
    read = read_topology(topology("philosophical", DOCS, SAID, difficulty="grim"))
    assert (read.topology.profile.type, read.topology.profile.difficulty) == ("single", "medium")
    assert [one.partition(" is not one of ")[0] for one in read.warnings] == [
        "the question type 'philosophical'",
        "the difficulty 'grim'",
    ]


def test_a_characterisation_needs_one_of_the_papers_types() -> None:
    assert parse_profile('{"type": "Multi-hop", "difficulty": "tough", "asks": "city"}') == Characterisation(
        "bridge", "medium", "city"
    )
    with pytest.raises(BadOutputError, match='"type" must be one of bridge, intersection, comparison'):
        parse_profile('{"type": "philosophical", "difficulty": "easy"}')
    with pytest.raises(BadOutputError, match='no JSON object with a list of "agents"'):
        read_topology("I would search first.")


def test_ids_become_names_that_hide_nothing() -> None:
    read = read_topology(
        topology(
            "single",
            {**DOCS, "id": 1},
            agent("answer", "Answer Generator", "Who directed Alpha?", "1"),
            agent("last-one", "conclude", "Who is {answer}?", "answer"),
        )
    ).topology
    assert [node.id for node in read.nodes] == ["node_1", "answer_", "last_one"]
    assert read.nodes[2].input == "Who is {answer_}?"
    assert read.nodes[1].agent == "answer_generator"


def test_unusual_ids_become_names_of_their_own() -> None:
    read = read_topology(
        topology(
            "single",
            {**DOCS, "id": "_docs"},
            agent("é", "answer-generator agent", "Who directed Alpha?", "_docs"),
            agent("è", "conclude", "Who is {é}?", "é"),
        )
    ).topology
    assert [node.id for node in read.nodes] == ["node_docs", "ue9", "ue8"]
    assert read.nodes[2].input == "Who is {ue9}?"


def test_a_topology_is_written_as_it_was_read() -> None:
    read = read_topology(topology("bridge", DOCS, SAID, asks="person")).topology
    assert read_topology(json.dumps(written_topology(read))).topology == read


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Random layers of searches and answers; each answer may use earlier ones, and the last draws on all of them."""
    text = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="{}"), max_size=12)
    nodes: list[Node] = []
    answers: list[str] = []
    for number in range(draw(st.integers(1, 4))):
        used = draw(st.lists(st.sampled_from(answers), unique=True, max_size=2)) if answers else []
        asked = f"q{number} {draw(text)} " + " ".join(f"{{{one}}}" for one in used)
        docs = f"docs{number}"
        nodes.append(Node(docs, "retriever", asked, tuple(used)))
        for extra in draw(st.lists(st.sampled_from(["evidence_selector", "context_validator"]), unique=True)):
            if extra == "evidence_selector":
                nodes.append(Node(f"kept{number}", "evidence_selector", asked, (*used, docs)))
                docs = f"kept{number}"
            else:
                nodes.append(Node(f"check{number}", "context_validator", asked, (*used, docs)))
                nodes.append(Node(f"more{number}", "retriever", asked, (*used, f"check{number}")))
                docs = f"more{number}"
        nodes.append(Node(f"said{number}", "answer_generator", asked, (*used, docs)))
        answers.append(f"said{number}")
    nodes.append(Node("end", "conclude", "", tuple(answers)))
    return check_rules(Topology(tuple(draw(st.permutations(nodes))), Characterisation("bridge")))


@given(topologies())
@settings(max_examples=100)
def test_nodes_come_after_those_they_depend_on_and_compile(found: Topology) -> None:
    seen: set[str] = set()
    for node in found.nodes:
        assert set(node.depends_on) <= seen
        seen.add(node.id)
    source = compile_topology(found, 'What "is" {it}?')
    ast.parse(source)
    assert check_plan(source, (), ("retrieve", "answer", *PRIMITIVES), tuple(HELPERS)) == []


async def run(sandbox: Sandbox, source: str, *, concurrent: bool) -> tuple[str, list[tuple[str, str]], int]:
    """A program over stand-ins for the agents: its value, its calls in its own order, and the most at once."""
    calls: dict[int, tuple[str, str]] = {}
    ended: set[int] = set()
    in_flight: list[int] = [0]

    async def called(call: Call) -> Any:
        assert ended >= set(call.depends_on)
        calls[call.id] = (call.name, str(call.args[0]))
        in_flight.append(len(calls) - len(ended))
        await asyncio.sleep(0.001)
        ended.add(call.id)
        if call.name in ("retrieve", "select"):
            return [f"{call.name}:{call.args[0]}"]
        return Text(f"<{call.args[0]}>", {"known": len(str(call.args[0])) % 2 == 0})

    primitives = dict.fromkeys(("retrieve", "answer", *PRIMITIVES), called)
    outcome = await sandbox.run(source, primitives, concurrent=concurrent, helpers=MODULE)
    assert outcome.status == "ok", outcome.error
    return str(outcome.value), [calls[call.id] for call in outcome.calls], max(in_flight)


@given(topologies())
@settings(max_examples=5)
def test_running_side_by_side_gives_the_same(found: Topology) -> None:
    source = compile_topology(found, "What?")

    async def both() -> None:
        async with Sandbox(require="policy") as sandbox:
            together = await run(sandbox, source, concurrent=True)
            alone = await run(sandbox, source, concurrent=False)
        assert together[:2] == alone[:2]
        assert alone[2] == 1

    asyncio.run(both())


QUESTIONS = (
    ("When was the director of Alpha born?", "bridge", "date"),
    ("Which nationality do Pavel Alexandrov and Valentin Turchin share?", "intersection", "nationality"),
    ("Are Northern Quay and Paper Harbour from the same country?", "comparison", "yes/no"),
    ("During which years were both Charles Hutchison and William K. Howard active?", "temporal", "years"),
    ("What caused the great fire of London?", "causal", ""),
    ("Why did the 2008 financial crisis lead to increased banking regulation?", "causal", ""),
    ("When did the Manhattan Project begin and end?", "ambiguous", "date"),
    ("Who wrote Dracula?", "single", "person"),
)


@pytest.mark.parametrize(("question", "type_", "asks"), QUESTIONS)
def test_the_embedded_orchestrator_reads_the_papers_types(question: str, type_: str, asks: str) -> None:
    profile = profile_of(question, RULES)
    assert (profile.type, profile.asks) == (type_, asks)
    for style in STYLES:
        made = made_of(question, style)
        assert check_topology(made, question) == []
        ast.parse(compile_topology(made, question))


def made_of(question: str, style: Style) -> Topology:
    return topology_of(question, next(RULES.readings(question)).goals, profile_of(question, RULES), style)


@given(st.builds(Style, st.booleans(), st.booleans(), st.booleans(), st.booleans()))
def test_the_embedded_orchestrator_follows_its_own_advice(style: Style) -> None:
    lesson = Experience(1, Characterisation(), advice(style))
    assert hinted([lesson]) == style
    question = "When was the director of Alpha born?"
    assert style_of(made_of(question, style)) == style
