"""HERA's agents over a model: what they are asked, what becomes of replies out of form, and whose prompt is whose."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import pyrag_prompts
from pyrag.agents.llm import make_llm_agents
from pyrag.embedded import embedded_agents
from pyrag.errors import BadOutputError, ContextLengthError
from pyrag.llm.clients.scripted import ScriptedChat, role_of
from pyrag.llm.context import about_tokens
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling
from pyrag.methods.hera.protocol import HeraTeam
from pyrag.methods.hera.team import hera_team
from pyrag.methods.hera.team_replies import parse_profile, parse_selection, parse_verdict
from pyrag.methods.hera.topology import AGENTS, Characterisation
from pyrag.methods.hera.topology_replies import read_topology
from pyrag.runtime.engines import open_engines
from pyrag.settings import make_settings
from pyrag.trace.model import Passage, Trace
from tests.cli.conftest import Run, pyrag
from tests.methods.hera.conftest import Say, agent, kept, team, topology, verdict
from tests.methods.opera.conftest import Case, no, rewrite, yes

__all__ = ["pyrag"]

DOCS = (Passage("a", "Alpha", "Alpha was directed by Ada Berg."), Passage("b", "Beta", "Beta is a film."))
TAUGHT = "Name the person, not the film."
REPLIES = {
    "decomposer": '{"sub_queries": ["Who directed Alpha?"]}',
    "rewriter": rewrite("Alpha director"),
    "selector": kept(1),
    "validator": verdict("YES"),
    "generator": yes("Ada Berg", 1),
    "reflect": '{"decision": "YES"}',
    "conclude": yes("Ada Berg"),
}


def team_of(model: ChatModel, prompts: Path | None = None) -> HeraTeam:
    team = make_llm_agents(model, prompts_dir=prompts).team(hera_team)
    assert team is not None
    return team


async def everyone_asked(team: HeraTeam) -> None:
    question = "Who directed Alpha?"
    await team.decomposer.decompose(question)
    await team.rewriter.rewrite(question, [question], DOCS, "")
    await team.selector.select(question, DOCS)
    await team.validator.validate(question, DOCS)
    await team.answerer.answer(question, DOCS)
    await team.reflector.reflect(question, "Ada Berg", DOCS)
    await team.concluder.answer("Given: Alpha Ada Berg. Answer the question: Who?", None)


async def test_what_one_agent_learned_is_in_its_prompt_alone(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(Path(pyrag_prompts.__file__).parent, tmp_path / "prompts"))
    (folder / "methods" / "hera.answer_generator.rules.txt").write_text(TAUGHT)
    systems: list[dict[str, str]] = []
    for prompts in (None, folder):
        model = ScriptedChat(lambda messages: REPLIES[role_of(messages)])
        await everyone_asked(team_of(model, prompts))
        systems.append({role_of(messages): messages[0].content for messages in model.calls})
    before, after = systems
    assert len(before) == len(AGENTS) - 1  # the retriever asks no model
    assert [role for role in before if before[role] != after[role]] == ["generator"]
    assert after["generator"].endswith(f"Operational rules, learned from recent failures:\n{TAUGHT}")
    assert "{{" not in "".join(before.values())


MANY = tuple(Passage(str(place), f"t{place}", f"word{place} " * 60, 1 / (place + 1)) for place in range(12))
READING = {
    "rewriter": lambda team: team.rewriter.rewrite("Who?", ["Who?"], MANY, "a name"),
    "selector": lambda team: team.selector.select("Who?", MANY),
    "validator": lambda team: team.validator.validate("Who?", MANY),
    "generator": lambda team: team.answerer.answer("Who?", MANY),
    "reflect": lambda team: team.reflector.reflect("Who?", "Ada", MANY),
    "conclude": lambda team: team.concluder.answer("Who?", MANY),
}


@pytest.mark.parametrize("role", READING)
async def test_what_an_agent_reads_fits_its_models_window(role: str) -> None:
    model = ScriptedChat(REPLIES[role] for _ in range(2))
    team = make_llm_agents(model, sampling=Sampling(max_tokens=256), context_tokens=1024).team(hera_team)
    reply = await READING[role](team)
    (prompt,) = model.calls
    assert 0 < prompt[-1].content.count("[Doc ") < (5 if role == "rewriter" else 12)
    assert sum(about_tokens(message.content) for message in prompt) + 256 <= 1024
    assert "because more would not fit into the model's window" in reply.note


@pytest.mark.parametrize("role", READING)
async def test_a_prompt_that_is_too_long_is_tried_with_half(role: str) -> None:
    asked: list[int] = []

    def refuses(messages: Sequence[Message]) -> str:
        asked.append(messages[-1].content.count("[Doc "))
        if len(asked) == 1:
            raise ContextLengthError("too long")
        return REPLIES[role]

    reply = await READING[role](team_of(ScriptedChat(refuses)))
    assert 0 < asked[1] < asked[0]
    assert "because the server said that the prompt was too long" in reply.note


async def test_a_selection_counts_in_the_passages_that_came_in() -> None:
    two_searches = (*MANY[:6], *MANY[:6])
    model = ScriptedChat([kept(3)])
    team = make_llm_agents(model, sampling=Sampling(max_tokens=256), context_tokens=1024).team(hera_team)
    assert team is not None
    (place,) = (await team.selector.select("Who?", two_searches)).positions
    third = model.calls[0][-1].content.split("[Doc 3]\n")[1]
    assert third.startswith(two_searches[place].title)
    assert place > 2  # the lowest-ranked of the first search were left out


async def test_a_trace_says_what_an_agent_was_not_shown(case: Case) -> None:
    case.found = {"Who?": [passage.text for passage in MANY]}
    written = topology(
        "single",
        agent("docs", "retriever", "Who?", topk=12),
        agent("best", "evidence_selector", "Who?", "docs"),
        agent("said", "answer_generator", "Who?", "best"),
    )
    model = ScriptedChat({"orchestrator": written, "selector": kept(1), "generator": yes("Ada", 1)})
    agents = make_llm_agents(model, sampling=Sampling(max_tokens=256), context_tokens=1024)
    trace = await case.ask("Who?", agents=agents, method="hera")
    assert trace.answer.text == "Ada"
    (warning,) = trace.warnings
    assert warning.startswith("the evidence selector agent read ")


async def test_what_is_asked_twice_is_paid_once(case: Case) -> None:
    written = topology(
        "single",
        agent("docs", "retriever", "Who?"),
        agent("best", "evidence_selector", "Who?", "docs"),
        agent("again", "evidence_selector", "Who?", "docs"),
        agent("said", "answer_generator", "Who?", "best", "again"),
    )
    model = team({"orchestrator": written, "selector": kept(1), "generator": yes("Ada", 1)})
    trace = await case.ask("Who?", agents=make_llm_agents(model), method="hera")
    steps = [step for step in trace.steps if step.primitive == "select"]
    assert sorted((step.memo, step.usage.model_calls) for step in steps) == [(False, 1), (True, 0)]


async def test_the_place_of_a_sub_query_hides_no_agent(case: Case) -> None:
    written = topology(
        "single",
        agent("i", "query_decomposer"),
        agent("i0", "retriever", "", "i"),
        agent("said", "answer_generator", "", "i", "i0"),
        agent("end", "conclude", "", "said"),
    )
    replies: dict[str, Say] = {"decomposer": '{"sub_queries": ["Who?", "Where?"]}', "generator": yes("Ada", 1)}
    model = team({"orchestrator": written, "conclude": yes("Ada"), **replies})
    trace = await case.ask("Who and where?", agents=make_llm_agents(model), method="hera")
    assert (trace.answer.text, trace.repairs) == ("Ada", 0)
    assert [query for query, _ in case.log] == ["Who?", "Where?"]


async def test_nobody_is_asked_about_no_passages(case: Case) -> None:
    written = topology(
        "single",
        agent("docs", "retriever", "Who?"),
        agent("best", "evidence_selector", "Who?", "docs"),
        agent("enough", "context_validator", "Who?", "best"),
        agent("more", "retriever", "Who else?", "enough"),
        agent("said", "answer_generator", "Who?", "more"),
    )
    model = team({"orchestrator": written, "selector": kept(), "generator": yes("Ada", 1)})  # no reply of a validator
    trace = await case.ask("Who?", agents=make_llm_agents(model), method="hera")
    assert (trace.answer.text, [query for query, _ in case.log]) == ("Ada", ["Who?", "Who else?"])


async def test_an_unknown_answer_is_not_split_into_queries(case: Case) -> None:
    written = topology(
        "single",
        agent("docs", "retriever", "Who?"),
        agent("who", "answer_generator", "Who?", "docs"),
        agent("parts", "query_decomposer", "What did {who} write and paint?", "who"),
        agent("each", "retriever", "", "parts"),
        agent("all", "conclude", "", "each"),
    )
    model = team({"orchestrator": [written, written], "generator": no("who")})  # no reply of a decomposer
    settings = {"method": "hera", "recovery": "none", "repairs": 1}
    trace = await case.ask("Who?", agents=make_llm_agents(model), **settings)
    assert not trace.answer.known
    assert "unknown" in trace.programs[0].error


async def test_who_concludes_hears_what_a_review_said(case: Case) -> None:
    written = topology(
        "single",
        agent("docs", "retriever", "Who?"),
        agent("said", "answer_generator", "Who?", "docs"),
        agent("review", "reflect", "Who?", "said"),
        agent("end", "conclude", "", "said", "review"),
    )
    critique = '{"decision": "NO", "critique": "That is a town."}'
    asked: list[str] = []

    def conclude(text: str) -> str:
        asked.append(text)
        return yes("Bo")

    model = team({"orchestrator": written, "generator": yes("Ada", 1), "reflect": critique, "conclude": conclude})
    trace = await case.ask("Who?", agents=make_llm_agents(model), method="hera")
    assert trace.answer.text == "Bo"
    assert "Who? Ada; Review: That is a town." in asked[0]


async def test_a_rewritten_query_keeps_its_given_kind(case: Case) -> None:
    written = topology(
        "single",
        agent("query", "query_rewriter", "Where was Ada from?", kind="country"),
        agent("docs", "retriever", "", "query"),
        agent("said", "answer_generator", "Where was Ada from?", "docs"),
    )
    model = team({"orchestrator": written, "rewriter": rewrite("Ada biography"), "generator": yes("Norway", 1)})
    await case.ask("Where was Ada from?", agents=make_llm_agents(model), method="hera")
    assert case.log == [("Ada biography country", 5)]


@pytest.mark.parametrize(("selected", "deeper"), [((), "Who made Alpha?"), ((6,), "Who directed Alpha?")])
async def test_recovery_goes_on_where_what_was_selected_came_from(
    case: Case, selected: tuple[int, ...], deeper: str
) -> None:
    case.found = {deeper: [*(f"nothing {number}" for number in range(8)), "Ada Berg did."]}
    written = topology(
        "single",
        agent("made", "retriever", "Who made Alpha?"),
        agent("directed", "retriever", "Who directed Alpha?"),
        agent("best", "evidence_selector", "Who directed Alpha?", "made", "directed"),
        agent("said", "answer_generator", "Who directed Alpha?", "best"),
    )

    def generator(asked: str) -> str:
        return yes("Ada Berg", 1) if "Ada Berg" in asked else no("the director")

    model = team({"orchestrator": written, "selector": kept(*selected), "generator": generator})
    trace = await case.ask("Who directed Alpha?", agents=make_llm_agents(model), method="hera", recovery="boost")
    assert trace.answer.text == "Ada Berg"
    assert case.log[2:] == [(deeper, 10)]


def test_hera_s_agents_have_the_models_of_their_roles(tmp_path: Path) -> None:
    names = {}
    for role in ("plan", "decompose", "answer", "rewrite"):
        (tmp_path / f"{role}.json").write_text("[]")
        names[f"{role}_llm"] = f"scripted:{tmp_path / role}.json"
    team = open_engines(make_settings(names)).agents.team(hera_team)
    assert isinstance(team, HeraTeam)
    chosen = {
        "plan_llm": team.orchestrator,
        "decompose_llm": team.decomposer,
        "rewrite_llm": team.rewriter.inner,
        "answer_llm": team.answerer.inner,
    }
    assert {role: agent.model.name for role, agent in chosen.items()} == names
    assert {one.inner.model.name for one in (team.selector, team.validator, team.reflector, team.concluder)} == {
        names["answer_llm"]
    }


async def test_agents_out_of_form_are_asked_again() -> None:
    model = ScriptedChat(lambda messages: "Well, it depends.")
    team = team_of(model)
    selection = await team.selector.select("Who?", DOCS)
    assert (selection.positions, selection.usage.model_calls) == ((0, 1), 3)
    assert (await team.validator.validate("Who?", DOCS)).sufficient
    assert (await team.reflector.reflect("Who?", "Ada", DOCS)).accepted
    assert (await team.decomposer.decompose("Who?")).sub_queries == ("Who?",)
    assert not (await team.answerer.answer("Who?", DOCS)).known


async def test_a_wrong_topology_falls_back_to_one_search() -> None:
    cyclic = topology("single", agent("a", "retriever", "", "b"), agent("b", "retriever", "", "a"))
    good = topology("single", agent("d", "retriever"), agent("s", "answer_generator", "", "d"))
    model = ScriptedChat([cyclic, good])
    made = await team_of(model).orchestrator.orchestrate("Who?", ())
    assert [node.agent for node in made.topology.nodes] == ["retriever", "answer_generator"]
    assert "there is a cycle" in model.calls[1][-1].content
    fallen = await team_of(ScriptedChat(lambda _: cyclic)).orchestrator.orchestrate("Who?", ())
    assert [node.agent for node in fallen.topology.nodes] == ["retriever", "answer_generator"]
    assert "the question was not orchestrated" in fallen.note
    assert fallen.fallback


async def test_only_the_first_sample_is_greedy() -> None:
    plan = topology("single", agent("d", "retriever"), agent("s", "answer_generator", "", "d"))
    model = Watched([plan, plan])
    for sample in (0, 3):
        await team_of(model).orchestrator.orchestrate("Who?", (), sample)
    assert [(one.temperature, one.seed) for one in model.samplings] == [(0.0, None), (0.9, 3)]


async def test_a_revision_is_told_the_error_alone() -> None:
    plan = topology("single", agent("d", "retriever"), agent("s", "answer_generator", "", "d"))
    model = ScriptedChat([plan])
    error = "Traceback (most recent call last):\n  line 3, in program\nValueError: no date in 'x'\n"
    old = replace(read_topology(plan).topology, experience=(4, 7))
    revised = (await team_of(model).orchestrator.revise("Who?", old, error)).topology
    assert revised.experience == (4, 7)
    assert "ValueError: no date in 'x'" in model.calls[0][-1].content
    assert "Traceback" not in model.calls[0][-1].content


class Watched(ScriptedChat):
    """Notes how replies were sampled."""

    def __init__(self, replies: list[str]) -> None:
        super().__init__(replies)
        self.samplings: list[Sampling] = []

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:  # noqa: B008
        self.samplings.append(sampling)
        return await super().complete(messages, sampling)


@pytest.mark.parametrize(
    ("parse", "said"),
    [
        (lambda: parse_selection('{"documents": "all"}', 2), '"documents" must be a list'),
        (lambda: parse_verdict('{"decision": "NO"}', "missing"), '"missing" does not say why'),
        (lambda: parse_verdict('{"decision": "maybe"}', "missing"), "must be YES or NO"),
        (lambda: parse_profile('{"type": "odd", "difficulty": "easy"}'), '"type" must be one of'),
    ],
)
def test_replies_out_of_form(parse: object, said: str) -> None:
    assert callable(parse)
    with pytest.raises(BadOutputError, match=said):
        parse()


def test_replies_in_form() -> None:
    assert parse_selection(kept(2, 1, 9), 2) == ((1, 0), "these say it")
    assert parse_verdict(verdict("NO", missing="a date"), "missing") == (False, "as read", "a date")
    assert parse_profile('{"type": "Bridge", "difficulty": "hard"}') == Characterisation("bridge", "hard")


class Pair(ScriptedChat):
    """Holds every answer back until two are asked for."""

    def __init__(self, plan: str) -> None:
        super().__init__([])
        self.plan, self.both = plan, asyncio.Barrier(2)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:  # noqa: B008
        if role_of(messages) == "orchestrator":
            return Reply(self.plan)
        if role_of(messages) == "generator":
            await self.both.wait()
        return Reply(yes("Denmark", 1))


async def test_branches_are_in_flight_together(case: Case) -> None:
    branches = [
        one
        for at in ("a", "b")
        for one in (
            agent(f"docs_{at}", "retriever", f"country of {at}"),
            agent(f"said_{at}", "answer_generator", f"Which country is {at} from?", f"docs_{at}"),
        )
    ]
    plan = topology("comparison", *branches, agent("end", "conclude", "", "said_a", "said_b"))
    asked = case.ask("Are a and b from the same country?", agents=make_llm_agents(Pair(plan)), method="hera")
    trace: Trace = await asyncio.wait_for(asked, 60)  # one after the other, the first would wait for good
    assert trace.error is None
    assert trace.usage.model_calls == 4


async def test_the_embedded_team_works_without_a_model() -> None:
    team = embedded_agents().team(hera_team)
    assert team is not None
    assert (await team.selector.select("Who directed Alpha?", DOCS)).positions[0] == 0
    assert (await team.validator.validate("Who directed Alpha?", DOCS)).sufficient
    assert not (await team.validator.validate("Who directed Alpha?", DOCS[1:])).sufficient
    assert not (await team.reflector.reflect("When was she born?", "in a town", ())).accepted
    assert (await team.reflector.reflect("When was she born?", "in 1950", ())).accepted


def test_the_command_line_asks_and_shows_a_topology(pyrag: Run, tmp_path: Path) -> None:
    file = str(tmp_path / "trace.json")
    asked = pyrag("ask", "--method", "hera", "--llm", "embedded", "--trace", file, "Who wrote Dracula?")
    assert asked.returncode == 0, asked.stderr
    shown = pyrag("trace", "show", file)
    assert "Topology  single, easy, asks for: person" in shown.stdout
    assert "answer generator  after docs_1" in shown.stdout
