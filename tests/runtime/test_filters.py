"""Promise 15 of SECURITY.md: no program finds a passage that the caller's filter excludes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.agents.protocol import Agents
from pyrag.episode.ledger import Recording
from pyrag.errors import ConfigError, FilterError
from pyrag.methods.registry import method_names
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings, make_settings
from pyrag.trace.model import Exchange, Passage, Trace
from tests.runtime.conftest import World
from tests.runtime.streaming import Writer, fenced
from tests.runtime.streaming import ask as ask_streaming

OPS = 'team = "ops"'
PASSAGES = [
    Passage("ops-1", "Mill", "The mill was founded by Ann Smith.", metadata={"team": "ops", "year": 2020}),
    Passage("ops-2", "Mill", "The mill has a wheel.", metadata={"team": "ops", "year": 2021}),
    Passage("hr-1", "Mill", "The mill was founded by Bob Jones. The secret is 42.", metadata={"team": "hr"}),
    Passage("hr-2", "Mill", "The mill secret.", metadata={"team": "hr", "year": 2020}),
    Passage("none", "Mill", "The mill was founded by nobody. A secret too."),
]
ASK = 'final_answer = answer("Who founded the mill?", docs)'


@dataclass
class Watched(World):
    """A world over some passages, in which retrieval is filtered by the retriever and every filter is noted."""

    filters: list[str] = field(default_factory=list)

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        self.filters.append(str(where))
        await self._work(f"retrieve {topk}", query)
        return await InMemoryRetriever(PASSAGES).retrieve(query, topk, where)


@pytest.fixture
def watched(world: World) -> Watched:
    return Watched(sandbox=world.sandbox)


async def run(watched: Watched, *programs: str, where: str = OPS, **more: Any) -> Trace:
    watched.programs = list(programs)
    engines = Engines(Agents("world", watched, watched, watched), watched, watched.sandbox)
    return await answer_question("Who founded the mill?", engines, Settings(where=where, repairs=1), **more)


def found(trace: Trace) -> set[str]:
    return set(trace.passages) | {one for step in trace.steps for one in step.passages}


@pytest.mark.parametrize(
    "call",
    [
        "retrieve('mill')",
        "retrieve('mill', where=None)",
        "retrieve('mill', 100, None)",
        "retrieve('mill', topk=100, where='exists team or not exists team')",
        "retrieve('mill', where='team = \"hr\"')",
        "retrieve('mill', where='not team = \"ops\"')",
        "retrieve('mill', where='team = \"ops\" or team != \"ops\"')",
        "retrieve('mill', where={'or': [{'team': 'hr'}, {'team': {'exists': False}}]})",
        "retrieve('mill', where={'not': {'team': 'ops'}})",
        'retrieve(\'mill\', where=f\'team = "{"x" + chr(34)} or team = {chr(34) + "hr"}"\')',
        "retrieve('mill secret 42 team hr')",
        "retrieve('mill\" or team = \"hr')",
        "[d for k in (1, 5, 50, 100) for d in retrieve('mill', k)]",
        "retrieve('mill', where='year = 2020') + retrieve('mill', where='year > 0') + retrieve('mill')",
    ],
)
async def test_no_program_widens_the_filter(watched: Watched, call: str) -> None:
    trace = await run(watched, f"docs = {call}\n{ASK}", f"docs = {call}\n{ASK}")
    assert found(trace) <= {"ops-1", "ops-2"}
    assert watched.filters or trace.error
    assert all(one.startswith(OPS) for one in watched.filters)
    assert "secret" not in str(trace.variables)


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("'true or team = 1'", "the filter cannot be read at character 1"),
        ("''", "the filter is empty"),
        ("{}", "write a mapping"),
        ("5", "where must be a filter as a str or dict, not int"),
        ("[{'team': 'hr'}]", "where must be a filter as a str or dict, not list"),
        ("'a = ' + '(' * 9000", "use at most 8192"),
        ("' or '.join(['a = 1'] * 1000)", "use at most 8192"),
        ("{'team': ['hr'] * 5000}", "more than 1000 values"),
        ("'not ' * 500 + 'a = 1'", "nested more than"),
        ("True", "not bool"),
        ("print", "not"),
    ],
)
async def test_what_is_no_filter_is_a_repairable_error(watched: Watched, where: str, says: str) -> None:
    trace = await run(watched, f"docs = retrieve('mill', where={where})\n{ASK}", f"docs = retrieve('mill')\n{ASK}")
    assert says in trace.programs[0].error
    assert found(trace) == {"ops-1", "ops-2"}


@pytest.mark.parametrize(
    "docs",
    [
        "[{'id': 'hr-1', 'title': 'Mill', 'text': 'x'}]",
        "'hr-1'",
        "['hr-1']",
        "[dict(id='hr-1')]",
    ],
)
async def test_passages_cannot_be_named_into_being(watched: Watched, docs: str) -> None:
    trace = await run(watched, f"docs = {docs}\n{ASK}", f"docs = retrieve('mill', 1)\n{ASK}")
    assert trace.programs[0].error
    assert found(trace) <= {"ops-1", "ops-2"}


async def test_a_program_narrows_and_the_step_says_so(watched: Watched) -> None:
    trace = await run(watched, f"docs = retrieve('mill', where='year >= 2021')\n{ASK}")
    step = trace.steps[0]
    assert (step.where, step.passages) == ("year >= 2021", ("ops-2",))
    assert watched.filters[0] == f"{OPS} and year >= 2021"
    assert trace.config["where"] == OPS


async def test_recovery_keeps_both_filters(watched: Watched) -> None:
    trace = await run(watched, "docs = retrieve('mill', 1, where='year = 2020')\nfinal_answer = answer('When?', docs)")
    assert [one.policy for one in trace.steps[1].tries] in (["first", "boost"], ["first"])
    assert [one for one in watched.filters if one != OPS] == [f"{OPS} and year = 2020"] * 2
    assert {passage for step in trace.steps for passage in step.passages} == {"ops-1"}


async def test_the_memo_tells_filters_apart(watched: Watched) -> None:
    program = (
        "a = retrieve('mill')\nb = retrieve('mill', where='year = 2020')\nc = retrieve('mill')\n"
        "d = retrieve('mill', where={'year': 2020})\ndocs = a + b + c + d\n" + ASK
    )
    trace = await run(watched, program)
    assert [len(step.passages) for step in trace.steps[:4]] == [2, 1, 2, 1]
    assert sorted(step.memo for step in trace.steps[:4]) == [False, False, True, True]
    assert watched.log.count(("retrieve 5", "mill")) == 2


async def test_questions_with_other_filters_share_nothing(watched: Watched) -> None:
    program = f"docs = retrieve('mill')\n{ASK}"
    assert found(await run(watched, program)) == {"ops-1", "ops-2"}
    assert found(await run(watched, program, where='team = "hr"')) == {"hr-1", "hr-2"}
    assert found(await run(watched, program, where="not exists team")) == {"none"}


async def test_a_recording_without_the_filter_does_not_answer(watched: Watched) -> None:
    program = f"docs = retrieve('mill')\n{ASK}"
    watched.programs = [program]
    engines = Engines(Agents("world", watched, watched, watched), watched, watched.sandbox)
    open_trace = await answer_question("Who founded the mill?", engines, Settings(), keep=True)
    assert "hr-1" in found(open_trace)
    replayed = await run(watched, program, recording=Recording(open_trace.exchanges))
    assert replayed.error is not None
    assert "the recording holds no retrieve" in replayed.error.message
    assert found(replayed) == set()


async def test_a_recording_that_was_changed_is_filtered(watched: Watched) -> None:
    program = f"docs = retrieve('mill')\n{ASK}"
    kept = await run(watched, program, keep=True)
    widened: list[Exchange] = []
    for one in kept.exchanges:
        if one.role == "retrieve":
            values = [{"id": p.id, "title": p.title, "text": p.text, "metadata": p.metadata} for p in PASSAGES]
            one = replace(one, reply={"value": values})
        widened.append(one)
    replayed = await run(watched, program, recording=Recording(widened))
    assert found(replayed) == {"ops-1", "ops-2"}


async def test_work_ahead_is_bound_too(watched: Watched) -> None:
    watched.sub_queries = ("Who founded the mill?",)
    program = f"docs = retrieve('Who founded the mill?', where='exists year or not exists year')\n{ASK}"
    trace = await ask_streaming(watched, Writer([fenced(program)], (8,)), where=OPS)
    assert found(trace) <= {"ops-1", "ops-2"}
    assert watched.filters
    assert all(one.startswith(OPS) for one in watched.filters)


class Spy(InMemoryRetriever):
    """Notes the filters that it is asked with."""

    def __init__(self) -> None:
        super().__init__(PASSAGES)
        self.filters: list[str] = []

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        self.filters.append(str(where))
        return await super().retrieve(query, topk, where)


def test_every_method_searches_under_the_filter() -> None:
    searched = set()
    for method in method_names():
        spy = Spy()
        with PyRAG(retriever=spy, method=method, where="exists team") as rag:
            trace = rag.ask("Who founded the mill?", where={"team": "ops"})
        assert found(trace) <= {"ops-1", "ops-2"}
        assert all("exists team" in one and OPS in one for one in spy.filters)
        searched |= {method} if spy.filters else set()
    assert {"pyrag", "opera", "hera"} <= searched


def test_the_answer_depends_on_the_filter() -> None:
    with PyRAG(retriever=InMemoryRetriever(PASSAGES)) as rag:
        asked = {team: rag.ask("Who founded the mill?", where=f"team = '{team}'") for team in ("ops", "hr", "x")}
    assert asked["ops"].answer.text == "Ann Smith"
    assert asked["hr"].answer.text == "Bob Jones"
    assert not asked["x"].answer.known
    assert asked["ops"].passages["ops-1"].metadata == {"team": "ops", "year": 2020}


async def test_a_batch_takes_a_filter() -> None:
    async with PyRAG(retriever=InMemoryRetriever(PASSAGES)) as rag:
        traces = [one async for one in rag.aask_many(["Who founded the mill?"] * 2, where={"team": "hr"})]
    assert [one.answer.text for one in traces] == ["Bob Jones"] * 2


def test_filters_that_cannot_be_read_are_refused() -> None:
    for wrong in ("team =", {}, 5):
        with pytest.raises(FilterError):
            PyRAG(retriever=InMemoryRetriever(PASSAGES), where=wrong)  # type: ignore[arg-type]
    with PyRAG(retriever=InMemoryRetriever(PASSAGES)) as rag, pytest.raises(FilterError, match="at its end"):
        rag.ask("Who founded the mill?", where="team =")
    with pytest.raises(ConfigError, match="where must be of type str"):
        make_settings({"where": 5})


def test_a_retriever_without_filters_refuses_the_question() -> None:
    class Plain:
        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            return PASSAGES

    with PyRAG(retriever=Plain()) as rag:  # type: ignore[arg-type]
        assert rag.ask("Who founded the mill?").error is None
        refused = rag.ask("Who founded the mill?", where=OPS)
    assert refused.error is not None
    assert "the retriever Plain takes no filter" in refused.error.message
    assert not refused.passages


async def test_a_program_hears_why_its_filter_finds_nothing(world: World) -> None:
    from pyrag.retrieval.bm25 import Bm25Retriever, index_of

    wrong = f'docs = retrieve("mill", where="yaer > 2000")\n{ASK}'
    right = f'docs = retrieve("mill", where="year = 2020")\n{ASK}'
    world.programs = [wrong, right]
    engines = Engines(Agents("world", world, world, world), Bm25Retriever(index_of(PASSAGES)), world.sandbox)
    trace = await answer_question("Who founded the mill?", engines, Settings(where=OPS, repairs=1))
    first, second = trace.programs
    assert "ValueError: the filter names the field 'yaer'" in first.error
    assert "did you mean 'year'?" in first.error
    assert second.error == ""
    assert found(trace) == {"ops-1"}


async def test_a_callers_filter_that_finds_nothing_is_a_warning(world: World) -> None:
    from pyrag.retrieval.bm25 import Bm25Retriever, index_of

    world.programs = [f'docs = retrieve("mill")\n{ASK}']
    engines = Engines(Agents("world", world, world, world), Bm25Retriever(index_of(PASSAGES)), world.sandbox)
    trace = await answer_question("Who founded the mill?", engines, Settings(where="taem = 'ops'"))
    assert trace.error is None
    assert ["did you mean 'team'?" in warning for warning in trace.warnings].count(True) == 1
