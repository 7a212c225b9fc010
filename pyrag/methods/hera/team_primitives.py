"""HERA's agents as primitives of a program, in addition to `retrieve` and `answer`.

    decompose(query)                   → a list of sub-queries
    rewrite(query, docs, missing, keep) → a search query
    select(query, docs)                → the passages relevant to the query, best first
    validate(query, docs)              → a verdict: is_known() if the passages suffice, else the missing part
    reflect(query, answer, docs)       → a verdict: is_known() if the answer is accepted, else its fault
    conclude(query, docs)              → an answer, like `answer`

Each call is a step like any other, with memo, budget and recording.
"""

from __future__ import annotations

from typing import Any

import pyrag_sandbox
from pyrag.agents.protocol import Decomposition
from pyrag.episode.episode import Episode
from pyrag.episode.program_run import Primitive, ProgramRun
from pyrag.episode.program_values import check_query, record
from pyrag.episode.recovery import ids_of
from pyrag.errors import BadOutputError
from pyrag.methods.hera.protocol import HeraTeam, Reflection, Selection, Validation
from pyrag.methods.hera.team import hera_team
from pyrag.trace.model import Passage, Usage
from pyrag_sandbox import Call, Record, Text


async def _decompose(program_run: ProgramRun, call: Call) -> list[str]:
    query = check_query(pyrag_sandbox.bind(call, ("query",), {})["query"], "decompose")
    program_run.refuse_unknown(call, query)
    step, agent = program_run.start(call, query), _team(program_run.episode).decomposer
    work = program_run.episode.ask("decompose", {"query": query}, lambda: agent.decompose(query), Decomposition, step)
    decomposition, memo = await program_run.watched(step, work)
    program_run.finish(
        step, output="\n".join(decomposition.sub_queries), memo=memo, usage=_paid(decomposition.usage, memo)
    )
    return list(decomposition.sub_queries)


async def _rewrite(program_run: ProgramRun, call: Call) -> str:
    """Return a rewritten query. `keep` is the property that the query asks for; it is added again if it got lost."""
    values = pyrag_sandbox.bind(call, ("query", "docs", "missing", "keep"), {"docs": [], "missing": "", "keep": ""})
    query, passages = check_query(values["query"], "rewrite"), program_run.passages_of(values["docs"])
    program_run.refuse_unknown(call, query)
    missing, keep = _plain(values["missing"]), _plain(values["keep"])
    step = program_run.start(call, query, passages=ids_of(passages))
    try:
        rewritten, memo = await program_run.watched(
            step, program_run.episode.rewrite(query, [query], passages, missing, step)
        )
    except BadOutputError as error:
        program_run.episode.warn(f"no rewritten query for {query!r}: {error}")
        program_run.finish(step, output=query, rationale=str(error))
        return str(query)
    new, why = str(rewritten.query), rewritten.strategy
    if keep and keep.casefold() not in new.casefold():
        new, why = f"{new} {keep}", f"{why} [the query no longer asked for the {keep}: put back]".strip()
    program_run.finish(step, output=new, memo=memo, usage=_paid(rewritten.usage, memo), rationale=why)
    return new


async def _select(program_run: ProgramRun, call: Call) -> list[Record]:
    query, passages = _bound(program_run, call, "select")
    step, agent = program_run.start(call, query, passages=ids_of(passages)), _team(program_run.episode).selector
    selection, memo = Selection(()), False
    if passages:
        request = {"query": query, "passages": list(ids_of(passages))}
        work = program_run.episode.ask("select", request, lambda: agent.select(query, passages), Selection, step)
        selection, memo = await program_run.watched(step, work)
    selected = [passages[position] for position in selection.positions if position < len(passages)]
    if sources := [program_run.retrieved[source] for source in program_run.sources(call, passages)]:
        # A recovery searches deeper in the search that most of the selected passages came from.
        search, topk, _ = max(sources, key=lambda source: len(set(ids_of(source[2])) & set(ids_of(selected))))
        program_run.retrieved[call.id] = (search, topk, selected)
    program_run.finish(
        step, passages=ids_of(selected), memo=memo, usage=_paid(selection.usage, memo), rationale=selection.rationale
    )
    return [record(passage) for passage in selected]


async def _validate(program_run: ProgramRun, call: Call) -> Text:
    query, passages = _bound(program_run, call, "validate")
    step, agent = program_run.start(call, query, passages=ids_of(passages)), _team(program_run.episode).validator
    validation, memo = Validation(False, rationale="no passages"), False
    if passages:
        request = {"query": query, "passages": list(ids_of(passages))}
        work = program_run.episode.ask("validate", request, lambda: agent.validate(query, passages), Validation, step)
        validation, memo = await program_run.watched(step, work)
    verdict = "sufficient" if validation.sufficient else validation.missing or "insufficient"
    program_run.finish(
        step, output=verdict, memo=memo, usage=_paid(validation.usage, memo), rationale=validation.rationale
    )
    return Text(verdict, {"known": validation.sufficient})


async def _reflect(program_run: ProgramRun, call: Call) -> Text:
    values = pyrag_sandbox.bind(call, ("query", "answer", "docs"), {"docs": []})
    query, passages = check_query(values["query"], "reflect"), program_run.passages_of(values["docs"])
    reviewed = _plain(values["answer"])
    step, agent = program_run.start(call, query, passages=ids_of(passages)), _team(program_run.episode).reflector
    request = {"query": query, "answer": reviewed, "passages": list(ids_of(passages))}
    work = program_run.episode.ask(
        "reflect", request, lambda: agent.reflect(query, reviewed, passages), Reflection, step
    )
    reflection, memo = await program_run.watched(step, work)
    text = "accepted" if reflection.accepted else reflection.critique or "rejected"
    program_run.finish(step, output=text, memo=memo, usage=_paid(reflection.usage, memo))
    return Text(text, {"known": reflection.accepted})


async def _conclude(program_run: ProgramRun, call: Call) -> Text:
    return await program_run.answered(call, "conclude", agent=_team(program_run.episode).concluder)


PRIMITIVES: dict[str, Primitive] = {
    "decompose": _decompose,
    "rewrite": _rewrite,
    "select": _select,
    "validate": _validate,
    "reflect": _reflect,
    "conclude": _conclude,
}


def _team(episode: Episode) -> HeraTeam:
    team = episode.agents.team(hera_team)
    assert team is not None
    return team


def _bound(program_run: ProgramRun, call: Call, name: str) -> tuple[str, list[Passage]]:
    """Return the query and passages of a call."""
    values = pyrag_sandbox.bind(call, ("query", "docs"), {})
    query, docs = values["query"], values["docs"]
    query = check_query(query, name)
    program_run.refuse_unknown(call, query)
    return query, program_run.passages_of(docs)


def _plain(value: Any) -> str:
    return value.text if isinstance(value, Text) else str(value)


def _paid(usage: Usage, memo: bool) -> Usage:
    return Usage() if memo else usage
