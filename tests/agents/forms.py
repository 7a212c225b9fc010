"""Every agent that replies with JSON: how it is asked, its schema and its parser, and what its messages show."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyrag.agents import schemas
from pyrag.agents.goals.goal import Goal
from pyrag.agents.llm import make_llm_agents
from pyrag.agents.parsing.judgements import parse_judged
from pyrag.agents.parsing.sub_queries import parse_sub_queries
from pyrag.agents.protocol import Agents
from pyrag.agents.rewriter import parse_rewrite
from pyrag.agents.schemas import Schema
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.methods.hera import schemas as hera_schemas
from pyrag.methods.hera.coach.agent import (
    parse_blame,
    parse_guidance,
    parse_insights,
    parse_rules,
    parse_settlement,
)
from pyrag.methods.hera.coach.protocol import Guidance, Seen
from pyrag.methods.hera.experience.entry import Experience
from pyrag.methods.hera.team import hera_team
from pyrag.methods.hera.team_replies import parse_profile, parse_selection, parse_verdict
from pyrag.methods.hera.topology import AGENTS, Characterisation, Node, Topology
from pyrag.methods.hera.topology_replies import read_topology
from pyrag.methods.opera import schemas as opera_schemas
from pyrag.methods.opera.agents import opera_agents
from pyrag.methods.opera.goals import read_goals
from pyrag.trace.model import Passage

QUESTION = "Who directed Alpha?"
DOCS = (Passage("a", "Alpha", "Alpha was directed by Ada Berg."), Passage("b", "Beta", "Beta is a film."))
GOALS = (Goal(1, QUESTION, "person", search=QUESTION),)
TOPOLOGY = Topology((Node("docs", "retriever"), Node("said", "answer_generator", depends_on=("docs",))))
GROUP = (Seen(TOPOLOGY, 1.0, "It answered well."), Seen(TOPOLOGY, 0.0, "It did not."))
ENTRIES = tuple(Experience(number, Characterisation(), "Search twice.") for number in (4, 7))


@dataclass(frozen=True, slots=True)
class Form:
    """`shown` is whether the messages hold an example; OPERA's revision holds the plan itself instead."""

    ask: Callable[[Agents], Awaitable[Any]]
    schema: Schema
    parse: Callable[[str], Any]
    shown: bool = True


def _two(text: str) -> Any:
    return parse_judged(text, 2)


FORMS: dict[str, Form] = {
    "decompose": Form(lambda a: a.decomposer.decompose(QUESTION), schemas.SUB_QUERIES, parse_sub_queries),
    "opera.plan": Form(
        lambda a: _of(a.team(opera_agents)).goal_planner.plan(QUESTION), opera_schemas.GOALS, read_goals
    ),
    "opera.revise": Form(
        lambda a: _of(a.team(opera_agents)).goal_planner.revise(QUESTION, GOALS, "nothing found"),
        opera_schemas.GOALS,
        read_goals,
        shown=False,
    ),
    "opera.analyse": Form(
        lambda a: _of(_of(a.team(opera_agents)).analyst).answer(QUESTION, DOCS), schemas.JUDGEMENT, _two
    ),
    "rewrite": Form(lambda a: _of(a.rewriter).rewrite(QUESTION, ["Alpha"], DOCS, ""), schemas.REWRITE, parse_rewrite),
    "hera.characterise": Form(
        lambda a: _of(a.team(hera_team)).orchestrator.characterise(QUESTION), hera_schemas.PROFILE, parse_profile
    ),
    "hera.orchestrate": Form(
        lambda a: _of(a.team(hera_team)).orchestrator.orchestrate(QUESTION, ()), hera_schemas.TOPOLOGY, read_topology
    ),
    "hera.revise": Form(
        lambda a: _of(a.team(hera_team)).orchestrator.revise(QUESTION, TOPOLOGY, "no passages"),
        hera_schemas.TOPOLOGY,
        read_topology,
    ),
    "hera.query_decomposer": Form(
        lambda a: _of(a.team(hera_team)).decomposer.decompose(QUESTION), schemas.SUB_QUERIES, parse_sub_queries
    ),
    "hera.query_rewriter": Form(
        lambda a: _of(a.team(hera_team)).rewriter.rewrite(QUESTION, ["Alpha"], DOCS, ""), schemas.REWRITE, parse_rewrite
    ),
    "hera.evidence_selector": Form(
        lambda a: _of(a.team(hera_team)).selector.select(QUESTION, DOCS),
        hera_schemas.DOCUMENTS,
        lambda text: parse_selection(text, 2),
    ),
    "hera.context_validator": Form(
        lambda a: _of(a.team(hera_team)).validator.validate(QUESTION, DOCS),
        hera_schemas.VERDICT,
        lambda text: parse_verdict(text, "missing"),
    ),
    "hera.answer_generator": Form(
        lambda a: _of(a.team(hera_team)).answerer.answer(QUESTION, DOCS), schemas.JUDGEMENT, _two
    ),
    "hera.reflect": Form(
        lambda a: _of(a.team(hera_team)).reflector.reflect(QUESTION, "Ada Berg", DOCS),
        hera_schemas.REVIEW,
        lambda text: parse_verdict(text, "critique"),
    ),
    "hera.conclude": Form(lambda a: _of(a.team(hera_team)).concluder.answer(QUESTION, DOCS), schemas.JUDGEMENT, _two),
    "hera.conclude of facts": Form(
        lambda a: _of(a.team(hera_team)).concluder.answer(QUESTION, None), schemas.JUDGEMENT, _two
    ),
    "evolve.reflect": Form(
        lambda a: _of(_of(a.team(hera_team)).coach).reflect(Characterisation(), GROUP),
        hera_schemas.INSIGHTS,
        parse_insights,
    ),
    "evolve.settle": Form(
        lambda a: _of(_of(a.team(hera_team)).coach).settle("Search once.", ENTRIES),
        hera_schemas.SETTLEMENT,
        lambda text: parse_settlement(text, [4, 7]),
    ),
    "evolve.blame": Form(
        lambda a: _of(_of(a.team(hera_team)).coach).blame("It failed.", AGENTS),
        hera_schemas.BLAME,
        lambda text: parse_blame(text, AGENTS),
    ),
    "evolve.vary": Form(
        lambda a: _of(_of(a.team(hera_team)).coach).vary("conclude", "efficiency", ["It failed."]),
        hera_schemas.RULES,
        parse_rules,
    ),
    "evolve.distil": Form(
        lambda a: _of(_of(a.team(hera_team)).coach).distil("conclude", ["It failed."], ["F1 1.0"]),
        hera_schemas.GUIDANCE,
        parse_guidance,
    ),
    "evolve.shorten": Form(
        lambda a: _of(_of(a.team(hera_team)).coach).shorten("conclude", Guidance(("Be short.",)), 100),
        hera_schemas.SHORTER,
        parse_guidance,
    ),
}


def _of(agent: Any) -> Any:
    assert agent is not None
    return agent


class _Heard(Exception):  # noqa: N818  no error: it carries what was asked
    def __init__(self, messages: Sequence[Message], sampling: Sampling) -> None:
        super().__init__("heard")
        self.messages, self.sampling = tuple(messages), sampling


class _Listener:
    name = "listener"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:  # noqa: B008
        raise _Heard(messages, sampling)

    async def aclose(self) -> None:
        return


async def heard(form: Form) -> tuple[str, str, Schema | None]:
    """System and user message that an agent sends, without another agent's prompt in it, and the schema of the call."""
    try:
        await form.ask(make_llm_agents(_Listener()))
    except _Heard as heard:
        system, user = heard.messages
        own = re.sub(r"<prompt>.*</prompt>", "", user.content, flags=re.DOTALL)
        return system.content, own, heard.sampling.schema
    raise AssertionError("the agent sent no request to its model")


def examples(text: str, schema: Schema) -> list[dict[str, Any]]:
    """The JSON objects at the beginning of a line whose first key is the schema's."""
    return [value for value in _objects(text) if next(iter(value), "") == schema["required"][0]]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    for start in re.finditer(r"^\{", text, re.MULTILINE):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start.start())
        except ValueError:
            continue
        yield value


def keys_in_order(value: Any, schema: Schema) -> bool:
    """Whether a value has exactly a schema's keys in its order, at every depth."""
    if schema["type"] == "array":
        return all(keys_in_order(one, schema["items"]) for one in value)
    if schema["type"] != "object":
        return True
    properties = schema["properties"]
    return list(value) == list(properties) and all(keys_in_order(value[key], properties[key]) for key in value)


def all_keys(schema: Schema) -> set[str]:
    """The keys of a schema, those of objects in its lists included."""
    properties: dict[str, Schema] = schema.get("properties", {})
    inner = [*properties.values(), *([schema["items"]] if "items" in schema else [])]
    return set(properties).union(*map(all_keys, inner))
