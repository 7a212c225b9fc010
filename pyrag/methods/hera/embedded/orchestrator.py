"""Embedded orchestrator, which derives a topology from the embedded planner's reading of a question by rules.

The reading determines what is looked up and computed; a `Style` determines how each look-up is made. The samples of a
group differ in style, and experience can change the style: the orchestrator follows insights that are worded like
`advice`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyrag.agents.goals.goal import EVIDENCE, PLACEHOLDER, Goal
from pyrag.agents.goals.rules import QuestionRules
from pyrag.errors import BadOutputError
from pyrag.methods.hera.embedded.profile import profile_of
from pyrag.methods.hera.node_references import REFERENCE
from pyrag.methods.hera.protocol import Characterised, Lesson, Orchestration
from pyrag.methods.hera.topology import Agent, Characterisation, Node, Topology
from pyrag.methods.hera.topology_replies import check_rules


@dataclass(frozen=True, slots=True)
class Style:
    """Way in which look-ups are made."""

    deep: bool = False  # twice the passages
    select: bool = False  # an evidence selector before the answer
    validate: bool = False  # a second search, with a rewritten query, if the passages do not suffice
    whole: bool = False  # the question in one look-up


_DEEP = 10  # passages
_ADVICE = {
    "deep": f"let each retriever bring {_DEEP} passages",
    "select": "let an evidence_selector keep the passages that bear on each query",
    "validate": "let a context_validator have each search made again in other words where its passages do not suffice",
    "whole": "ask the question in one search, without splitting it",
}
STYLES = (
    Style(),
    Style(deep=True),
    Style(validate=True),
    Style(select=True),
    Style(deep=True, validate=True),
    Style(deep=True, select=True),
    Style(whole=True),
    Style(deep=True, whole=True),
)


def advice(style: Style) -> str:
    """Return a style as an insight; empty for the default style."""
    text = "; ".join(sentence for name, sentence in _ADVICE.items() if getattr(style, name))
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def hinted(experience: Sequence[Lesson]) -> Style:
    """Return the style that insights recommend. Only insights that are worded like `advice` are understood."""
    insights = " ".join(lesson.insight for lesson in experience).casefold()
    return Style(**{name: sentence in insights for name, sentence in _ADVICE.items()})


def style_of(topology: Topology) -> Style:
    """Return the style of one of this orchestrator's topologies. `whole` is also set for a question without parts."""
    agents = {node.agent for node in topology.nodes}
    return Style(
        any(node.topk == _DEEP for node in topology.nodes),
        "evidence_selector" in agents,
        "context_validator" in agents,
        sum(node.agent == "answer_generator" for node in topology.nodes) == 1,
    )


@dataclass(frozen=True, slots=True)
class EmbeddedOrchestrator:
    rules: QuestionRules

    async def characterise(self, question: str) -> Characterised:
        return Characterised(profile_of(question, self.rules))

    async def orchestrate(self, question: str, experience: Sequence[Lesson], sample: int = 0) -> Orchestration:
        """Return a topology of the question's reading. Sample 0 follows experience; the others go through `STYLES`.

        Args:
            question: The question.
            experience: Entries of the library for such questions.
            sample: Number of the sample.
        """
        style = STYLES[sample % len(STYLES)] if sample else hinted(experience)
        reading = next(self.rules.readings(question))
        followed = () if sample else tuple(lesson.id for lesson in experience)
        profile = profile_of(question, self.rules)
        topology = replace(topology_of(question, reading.goals, profile, style), experience=followed)
        return Orchestration(topology, note=reading.note, doubt=reading.doubt)

    async def revise(self, question: str, topology: Topology, error: str) -> Orchestration:
        """Return the next reading in the same style, or, after the last reading, the next style.

        Args:
            question: The question.
            topology: The topology that failed.
            error: How it failed; ignored.

        Raises:
            BadOutputError: No other topology is left.
        """
        others = list({other.nodes: other for other in _topologies(question, self.rules, style_of(topology))}.values())
        tried = [other.nodes for other in others]
        position = tried.index(topology.nodes) if topology.nodes in tried else -1
        if position + 1 >= len(others):
            raise BadOutputError("the embedded orchestrator has no further topology: ask the question in simpler words")
        revised = replace(others[position + 1], experience=topology.experience)
        return Orchestration(revised, note="the topology failed, so another one is tried")


def _topologies(question: str, rules: QuestionRules, style: Style) -> Iterator[Topology]:
    readings = [reading.goals for reading in rules.readings(question)]
    profile, own = profile_of(question, rules), replace(style, whole=False)
    for goals in readings:
        yield topology_of(question, goals, profile, own)
    yield from (topology_of(question, readings[0], profile, other) for other in STYLES)


def topology_of(question: str, goals: Sequence[Goal], profile: Characterisation, style: Style) -> Topology:
    """Return a valid topology for a reading of a question.

    Args:
        question: The question.
        goals: Reading of the question; ignored if the style asks for the question as a whole.
        profile: Kind of the question.
        style: Form of each look-up.
    """
    goals = (Goal(1, question, search=question),) if style.whole else goals
    ids = {goal.step: _id_of(goal) for goal in goals}
    nodes = [node for goal in goals for node in _nodes(goal, question, ids, style)]
    return check_rules(Topology(tuple(nodes), profile))


def _id_of(goal: Goal) -> str:
    name = "_".join(re.findall(r"[a-z]+", goal.type.casefold())) or "answer"
    return f"docs_{goal.step}" if goal.type == EVIDENCE else f"{name}_{goal.step}"


def _nodes(goal: Goal, question: str, ids: dict[int, str], style: Style) -> Iterator[Node]:
    """Yield the nodes of a look-up, or the node of a conclusion from earlier ones."""
    if not goal.search:
        needs = tuple(ids[step] for step in goal.needs)
        yield Node(ids[goal.step], "conclude", "", needs, compute=_referring(goal.compute, ids))
        return
    topk = _DEEP if style.deep else 0
    docs = f"docs_{goal.step}"
    text = "" if goal.text == question else _referring(goal.text, ids)
    search = "" if goal.search == question else _referring(goal.search, ids)
    yield _node(docs, "retriever", search, topk=topk)
    if goal.type == EVIDENCE:
        return
    if style.validate:
        yield _node(f"check_{goal.step}", "context_validator", text, docs)
        yield _node(f"query_{goal.step}", "query_rewriter", text, f"check_{goal.step}")
        docs = f"more_{goal.step}"
        yield _node(docs, "retriever", "", f"query_{goal.step}", topk=topk)
    if style.select:
        yield _node(f"evidence_{goal.step}", "evidence_selector", text, docs)
        docs = f"evidence_{goal.step}"
    yield _node(ids[goal.step], "answer_generator", text, docs)


def _node(id_: str, agent: Agent, text: str, *depends_on: str, topk: int = 0) -> Node:
    """Return a node that depends on the nodes that its text refers to, in addition to the given ones."""
    return Node(id_, agent, text, tuple(dict.fromkeys((*REFERENCE.findall(text), *depends_on))), topk=topk)


def _referring(text: str, ids: dict[int, str]) -> str:
    return PLACEHOLDER.sub(lambda match: f"{{{ids[int(match['step'])]}}}", text)
