"""inspect_ai: question sets as a task, pyrag as its solver, and the scores of `pyrag bench`. Needs `inspect-ai`.

    eval(question_sets("mini-musique", settings={"topk": 8}), model="none")

pyrag uses its own models, never the evaluation's model. Questions are answered in the event loop that a `PyRAG` runs in
its own thread, because inspect_ai's loop ends with the evaluation, and pyrag must leave nothing open in it. All
questions are answered from the index or retriever of the settings; sets with corpora of their own are not supported.
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

STORED = "pyrag"  # name of a question's trace in its sample's store


@task
def question_sets(
    sets: str | list[str] | None = None,
    data: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    rag: PyRAG | None = None,
) -> Task:
    """Return the answerable questions of question sets as a task.

    Args:
        sets: Names of sets, as a list or separated by commas; None for all sets of the folder.
        data: Folder of sets; None for the bundled sets.
        limit: Maximum number of questions sampled per set; None for all.
        seed: Seed of the sample.
        settings: Settings of pyrag.
        rag: `PyRAG` to answer the questions, which the caller closes; None to open one with the settings.

    Raises:
        DataError: A set cannot be read.
        UsageError: A set does not exist.
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
            id=f"{name}:{question.id}",
            input=asked(question),
            target=list(question.answers),
            metadata={"set": name, "type": question.type, "hops": question.hops},
        )
        for question in open_set(name, data, limit=limit, seed=seed).questions
        if question.answers
    ]


@solver
def pyrag_solver(settings: Mapping[str, Any] | None = None, rag: PyRAG | None = None) -> Solver:
    """Return a solver that answers the input of a sample.

    It adds `known`, `weak`, `remark`, `citations` and `model_calls` to the sample's metadata, and the trace to its
    store.

    Args:
        settings: Settings of pyrag.
        rag: `PyRAG` to answer the questions, which the caller closes; None to open one with the settings.

    Raises:
        ConfigError: A setting is unknown or wrong.
    """
    answering = rag or PyRAG(**dict(settings or {}))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        trace = await run_sync(partial(answering.ask, state.input_text), abandon_on_cancel=True)
        if trace.error is not None and trace.error.kind in TRANSIENT:  # says nothing about the quality of answers
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
        "citations": [citation.passage for citation in trace.citations],
        "model_calls": trace.usage.model_calls,
    }
    return state


@scorer(metrics={"em": [mean(), stderr()], "f1": [mean(), stderr()]})
def answer_scorer() -> Any:
    """Return a scorer for exact match and F1 by the official script of the sample's set, as in `pyrag bench`.

    An unknown answer scores 0.
    """

    async def score(state: TaskState, target: Target) -> Score:
        reply = state.output.completion
        known = state.metadata.get("known", True)
        script = script_of(str(state.metadata.get("set", "")))
        em, f1, _ = score_text(reply if known else "", list(target), script)
        return Score(value={"em": em, "f1": f1}, answer=reply)

    return score
