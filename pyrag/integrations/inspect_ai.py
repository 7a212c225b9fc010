"""inspect_ai: pyrag as a solver, with pyrag's own measures as a scorer. Needs `inspect-ai`.

eval(question_task([("Who wrote Dracula?", ["Bram Stoker"])], PyRAG()), model="none")
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from pyrag.api import PyRAG
from pyrag.errors import PyRAGError
from pyrag.evaluation.metrics import exact_match, f1


@solver
def pyrag_solver(rag: PyRAG) -> Solver:
    """Return a solver that answers a sample's input; the model of the evaluation is not asked.

    The sample's metadata get `known`, `citations` and `model_calls`.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        trace = await rag.aask(state.input_text)
        if trace.error is not None:
            raise PyRAGError(trace.error.message)
        state.output = ModelOutput.from_content(f"pyrag/{trace.method}", trace.answer.text)
        state.metadata |= {
            "known": trace.answer.known,
            "citations": [one.passage for one in trace.citations],
            "model_calls": trace.usage.model_calls,
        }
        return state

    return solve


@scorer(metrics={"em": [mean()], "f1": [mean()]})
def answer_scorer() -> Any:
    """Return a scorer of exact match and F1 over the gold answers, as `pyrag bench` counts them."""

    async def score(state: TaskState, target: Target) -> Score:
        said = state.output.completion
        golds = list(target)
        return Score(value={"em": exact_match(said, golds), "f1": f1(said, golds)}, answer=said)

    return score


def question_task(questions: Iterable[tuple[str, Sequence[str]]], rag: PyRAG) -> Task:
    """Return a task.

    Args:
        questions: questions with their gold answers.
        rag: answers them.
    """
    samples = [Sample(input=question, target=list(golds)) for question, golds in questions]
    return Task(dataset=MemoryDataset(samples, name="questions"), solver=pyrag_solver(rag), scorer=answer_scorer())
