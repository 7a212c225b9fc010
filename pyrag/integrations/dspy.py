"""DSPy: pyrag as a module, on its own or in a program. Needs `dspy`.

answer = PyRAGModule(PyRAG())(question="Who wrote Dracula?").answer
"""

from __future__ import annotations

from typing import Any

import dspy

from pyrag.api import PyRAG
from pyrag.errors import PyRAGError
from pyrag.trace.model import Trace


class PyRAGModule(dspy.Module):
    """DSPy module from `question` to `answer`, `known`, `weak`, `remark`, `context` (the cited texts) and `trace`.

    DSPy cannot optimise it, because prompts and models belong to pyrag.
    """

    def __init__(self, rag: PyRAG) -> None:
        super().__init__()
        self.rag = rag

    def forward(self, question: str) -> Any:
        """Answer a question. Raises `PyRAGError` if answering failed."""
        return _prediction(self.rag.ask(question))

    async def aforward(self, question: str) -> Any:
        """Answer a question in the running event loop. Raises `PyRAGError` if answering failed."""
        return _prediction(await self.rag.aask(question))


def _prediction(trace: Trace) -> Any:
    if trace.error is not None:
        raise PyRAGError(trace.error.message)
    context = [trace.passages[citation.passage].text for citation in trace.citations]
    verdict = {"known": trace.answer.known, "weak": trace.weak, "remark": trace.remark}
    return dspy.Prediction(answer=trace.answer.text, **verdict, context=context, trace=trace)
