"""inspect_ai: question sets as a task, pyrag as its solver, and the scores of `pyrag bench`. Needs `inspect-ai`.

    eval(question_sets("mini-musique", settings={"topk": 8}), model="none")

pyrag asks its own models, and the evaluation's model nothing. Questions are answered in the event loop that a `PyRAG`
keeps in a thread of its own: inspect_ai's loop ends with the evaluation, and nothing of pyrag is left open in it.
Left out: sets with corpora of their own; all questions are asked of the one index or retriever of the settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage
from inspect_ai.scorer import Score, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from pyrag.api import PyRAG
from pyrag.errors import PyRAGError
from pyrag.evaluation.datasets.suite import default_sets, open_set
from pyrag.evaluation.metrics import score_text, script_of
from pyrag.evaluation.scoring import TRANSIENT, asked
from pyrag.trace.codec import to_json
from pyrag.trace.model import Trace

STORED = "pyrag"  # name of a question's trace in the store of its sample


@task
def question_sets(
    sets: str | list[str] | None = None,
    data: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    rag: PyRAG | None = None,
) -> Task:
    """Return the answerable questions of sets as a task.

    Args:
        sets: names of sets, in a list or with commas; all of the folder's if None.
        data: folder of sets; the bundled ones if None.
        limit: questions of each set, a sample.
        seed: of the sample.
        settings: settings of pyrag.
        rag: answers the questions, in place of one with these settings; its user closes it.

    Raises:
        DataError: a set cannot be read.
        UsageError: there is no such set.
    """
    folder = Path(data) if data is not None else None
    names = sets.split(",") if isinstance(sets, str) else sets or default_sets(folder)
    samples = [sample for name in names for sample in _samples(name, folder, limit, seed)]
    return Task(
        dataset=MemoryDataset(samples, name=",".join(names)),
        solver=pyrag_solver(settings, rag),
        scorer=answer_scorer(),
    )


def _samples(name: str, data: Path | None, limit: int | None, seed: int) -> list[Sample]:
    return [
        Sample(
            id=f"{name}:{one.id}",
            input=asked(one),
            target=list(one.answers),
            metadata={"set": name, "type": one.type, "hops": one.hops},
        )
        for one in open_set(name, data, limit=limit, seed=seed).questions
        if one.answers
    ]


@solver
def pyrag_solver(settings: Mapping[str, Any] | None = None, rag: PyRAG | None = None) -> Solver:
    """Return a solver that answers the input of a sample.

    The metadata of the sample get `known`, `weak`, `remark`, `citations` and `model_calls`, its store the whole trace.

    Args:
        settings: settings of pyrag.
        rag: answers the questions, in place of one with these settings; its user closes it.

    Raises:
        ConfigError: a setting is unknown or wrong.
    """
    answering = rag or PyRAG(**dict(settings or {}))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        trace = await run_sync(partial(answering.ask, state.input_text), abandon_on_cancel=True)
        if trace.error is not None and trace.error.kind in TRANSIENT:  # which says nothing about the answerer
            raise PyRAGError(trace.error.message)
        return _answered(state, trace)

    return solve


def _answered(state: TaskState, trace: Trace) -> TaskState:
    read, written = trace.usage.prompt_tokens, trace.usage.completion_tokens
    state.output = ModelOutput.from_content(f"pyrag/{trace.method}", trace.answer.text)
    state.output.usage = ModelUsage(input_tokens=read, output_tokens=written, total_tokens=read + written)
    state.store.set(STORED, json.loads(to_json(trace)))
    state.metadata |= {
        "known": trace.answer.known,
        "weak": trace.weak,
        "remark": trace.remark,
        "citations": [one.passage for one in trace.citations],
        "model_calls": trace.usage.model_calls,
    }
    return state


@scorer(metrics={"em": [mean(), stderr()], "f1": [mean(), stderr()]})
def answer_scorer() -> Any:
    """Return a scorer of exact match and F1 by the official script of the sample's set, as in `pyrag bench`.

    An unknown answer scores 0.
    """

    async def score(state: TaskState, target: Target) -> Score:
        said = state.output.completion
        known = state.metadata.get("known", True)
        script = script_of(str(state.metadata.get("set", "")))
        em, f1, _ = score_text(said if known else "", list(target), script)
        return Score(value={"em": em, "f1": f1}, answer=said)

    return score
