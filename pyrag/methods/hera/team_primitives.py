"""HERA's agents as primitives of a program, beside `retrieve` and `answer`.

    decompose(query)                   → a list of sub-queries
    rewrite(query, docs, missing, keep) → a search query
    select(query, docs)                → the passages that bear on the query, best first
    validate(query, docs)              → a verdict: is_known() where the passages suffice, else what is missing
    reflect(query, answer, docs)       → a verdict: is_known() where the answer stands, else what is wrong
    conclude(query, docs)              → an answer, like `answer`

Each call is a step like any other, with memo, budget and recording.
"""

from __future__ import annotations

from typing import Any

import pyrag_sandbox
from pyrag.agents.protocol import Decomposition, Reflection, Selection, Team, Validation
from pyrag.episode.episode import Episode, Primitive, Round
from pyrag.episode.primitive_args import bind, check_query
from pyrag.episode.program_values import record
from pyrag.episode.recovery_runner import ids_of
from pyrag.errors import BadOutputError
from pyrag.trace.model import Passage, Usage
from pyrag_sandbox import Call, Record, Text


async def _decompose(round_: Round, call: Call) -> list[str]:
    query = check_query(pyrag_sandbox.bind(call, ("query",), {})["query"], "decompose")
    round_.refuse_unknown(call, query)
    step, agent = round_.start(call, query), _team(round_.episode).decomposer
    work = round_.episode.ask("decompose", {"query": query}, lambda: agent.decompose(query), Decomposition)
    found, memo = await round_.watched(step, work)
    round_.finish(step, output="\n".join(found.sub_queries), memo=memo, usage=_paid(found.usage, memo))
    return list(found.sub_queries)


async def _rewrite(round_: Round, call: Call) -> str:
    """`keep` is the property that the query is to find; a query that lost it gets it back."""
    values = pyrag_sandbox.bind(call, ("query", "docs", "missing", "keep"), {"docs": [], "missing": "", "keep": ""})
    query, passages = check_query(values["query"], "rewrite"), round_.passages_of(values["docs"])
    round_.refuse_unknown(call, query)
    missing, keep = _plain(values["missing"]), _plain(values["keep"])
    step = round_.start(call, query, passages=ids_of(passages))
    try:
        found, memo = await round_.watched(step, round_.episode.rewrite(query, [query], passages, missing))
    except BadOutputError as error:
        round_.episode.warn(f"no rewritten query for {query!r}: {error}")
        round_.finish(step, output=query, rationale=str(error))
        return str(query)
    new, why = str(found.query), found.strategy
    if keep and keep.casefold() not in new.casefold():
        new, why = f"{new} {keep}", f"{why} [the query no longer asked for the {keep}: put back]".strip()
    round_.finish(step, output=new, memo=memo, usage=_paid(found.usage, memo), rationale=why)
    return new


async def _select(round_: Round, call: Call) -> list[Record]:
    query, passages = _bound(round_, call, "select")
    step, agent = round_.start(call, query, passages=ids_of(passages)), _team(round_.episode).selector
    found, memo = Selection(()), False
    if passages:
        request = {"query": query, "passages": list(ids_of(passages))}
        work = round_.episode.ask("select", request, lambda: agent.select(query, passages), Selection)
        found, memo = await round_.watched(step, work)
    kept = [passages[one] for one in found.positions if one < len(passages)]
    if sources := [round_.retrieved[one] for one in round_.sources(call, passages)]:
        # A recovery searches deeper where most of what was kept came from.
        query, topk, _ = max(sources, key=lambda one: len(set(ids_of(one[2])) & set(ids_of(kept))))
        round_.retrieved[call.id] = (query, topk, kept)
    round_.finish(step, passages=ids_of(kept), memo=memo, usage=_paid(found.usage, memo), rationale=found.rationale)
    return [record(one) for one in kept]


async def _validate(round_: Round, call: Call) -> Text:
    query, passages = _bound(round_, call, "validate")
    step, agent = round_.start(call, query, passages=ids_of(passages)), _team(round_.episode).validator
    found, memo = Validation(False, rationale="no passages"), False
    if passages:
        request = {"query": query, "passages": list(ids_of(passages))}
        work = round_.episode.ask("validate", request, lambda: agent.validate(query, passages), Validation)
        found, memo = await round_.watched(step, work)
    said = "sufficient" if found.sufficient else found.missing or "insufficient"
    round_.finish(step, output=said, memo=memo, usage=_paid(found.usage, memo), rationale=found.rationale)
    return Text(said, {"known": found.sufficient})


async def _reflect(round_: Round, call: Call) -> Text:
    values = pyrag_sandbox.bind(call, ("query", "answer", "docs"), {"docs": []})
    query, passages = check_query(values["query"], "reflect"), round_.passages_of(values["docs"])
    said = _plain(values["answer"])
    step, agent = round_.start(call, query, passages=ids_of(passages)), _team(round_.episode).reflector
    request = {"query": query, "answer": said, "passages": list(ids_of(passages))}
    work = round_.episode.ask("reflect", request, lambda: agent.reflect(query, said, passages), Reflection)
    found, memo = await round_.watched(step, work)
    text = "accepted" if found.accepted else found.critique or "rejected"
    round_.finish(step, output=text, memo=memo, usage=_paid(found.usage, memo))
    return Text(text, {"known": found.accepted})


async def _conclude(round_: Round, call: Call) -> Text:
    return await round_.answered(call, "conclude")


PRIMITIVES: dict[str, Primitive] = {
    "decompose": _decompose,
    "rewrite": _rewrite,
    "select": _select,
    "validate": _validate,
    "reflect": _reflect,
    "conclude": _conclude,
}


def _team(episode: Episode) -> Team:
    assert episode.agents.team is not None
    return episode.agents.team


def _bound(round_: Round, call: Call, name: str) -> tuple[str, list[Passage]]:
    """Query and passages of a call that reads both."""
    query, docs = bind(call, name, ("query", "docs"), {})
    query = check_query(query, name)
    round_.refuse_unknown(call, query)
    return query, round_.passages_of(docs)


def _plain(value: Any) -> str:
    return value.text if isinstance(value, Text) else str(value)


def _paid(usage: Usage, memo: bool) -> Usage:
    return Usage() if memo else usage
