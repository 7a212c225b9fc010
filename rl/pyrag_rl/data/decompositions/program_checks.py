"""Checks of gold decompositions' programs, which run in the sandbox over gold answers before they are learnt.

A scripted answerer returns the gold answer of a step's question, and unknown for any other question; searches return
the gold passages of their step. A program therefore only passes if it asks its sub-questions verbatim, needs no repair,
passes the plan checks, and computes the gold answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyrag.agents.parsing.program_queries import program_queries
from pyrag.agents.protocol import Agents, Decomposition, Plan, Reading
from pyrag.errors import BadOutputError, ServiceError
from pyrag.evaluation.metrics import exact_match
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings
from pyrag.trace.model import UNKNOWN, Passage, Trace
from pyrag_rl.data.decompositions.programs import GoldProgram
from pyrag_rl.data.decompositions.source import GoldQuestion
from pyrag_rl.data.decompositions.wording import filled
from pyrag_sandbox import Sandbox

_SETTINGS = Settings(joint=True, repairs=1, recovery="none", deadline=600.0)
_TIMES = frozenset({"cpu", "wall", "deadline"})  # causes that depend on the machine, not on the program
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """Error of a program, as shown to its planner, and the sub-queries that the planner is shown."""

    sub_queries: tuple[str, ...]
    error: str


class ProgramCheck:
    """Runner of programs over gold answers, with one sandbox for all of them."""

    def __init__(self, passages: Mapping[str, Passage]) -> None:
        self._passages = passages
        self._sandbox = Sandbox()

    async def fault(self, question: GoldQuestion, program: GoldProgram) -> str:
        """Return the reason why a program must not be learnt; empty if it may be learnt.

        Args:
            question: The question, with its gold answers.
            program: Program of the question.
        """
        trace, fault = await self.run(question, program, program.source)
        if fault is not None or trace.error is not None:
            return "the program fails"
        if question.answers and not exact_match(trace.answer.text, question.answers):
            return "the program ends with another answer"
        return ""

    async def run(self, question: GoldQuestion, program: GoldProgram, source: str) -> tuple[Trace, Fault | None]:
        """Run a program; return its trace, and the fault that its planner is shown if the program needs a repair.

        Args:
            question: The question, with its gold answers.
            program: The correct program, whose sub-questions have gold answers.
            source: Program to run: the correct one, or a broken form of it.

        Raises:
            ServiceError: The machine is too busy to run the program in time.
        """
        steps = question.sub_questions
        answers = {number: step.gold for number, step in enumerate(steps, start=1)}
        asked = {
            filled(question_text, answers): number for number, question_text in enumerate(program.questions, start=1)
        }
        passages = {
            query: (self._passages.get(question.passage_of(number)) or Passage(query, "", query),)
            for query, number in asked.items()
        }
        conclusion = steps[-1].gold if program.concludes else ""
        planner = _GivenProgram(source)
        answerer = _GoldAnswers({query: answers[number] for query, number in asked.items()}, conclusion)
        agents = Agents("gold", planner, planner, answerer)
        engines = Engines(agents, InMemoryRetriever(passages), self._sandbox)
        for _ in range(_TRIES):
            planner.fault = None
            trace = await answer_question(question.question, engines, _SETTINGS)
            if trace.error is None or not {trace.error.kind, trace.error.cause} & {*_TIMES, "sandbox"}:
                return trace, planner.fault
        raise ServiceError(
            f"a short program ran out of time {_TRIES} times: the machine is too busy, try again later",
            service="sandbox",
        )

    async def aclose(self) -> None:
        await self._sandbox.aclose()


class _GivenProgram:
    """Planner that has a single program. `fault` is the first error that it received."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.fault: Fault | None = None

    async def decompose(self, question: str) -> Decomposition:
        return Decomposition((question,))

    async def plan(self, question: str, sub_queries: Sequence[str] | None) -> Plan:
        return Plan(self._source, sub_queries=program_queries(self._source) or (question,))

    async def repair(self, question: str, sub_queries: Sequence[str], source: str, error: str) -> Plan:
        self.fault = self.fault or Fault(tuple(sub_queries), error)
        raise BadOutputError("there is no other program")


class _GoldAnswers:
    """Answerer that knows the gold answers of a question's steps, and the conclusion from them."""

    def __init__(self, answers: Mapping[str, str], conclusion: str) -> None:
        self._answers, self._conclusion = answers, conclusion

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        text = self._conclusion if passages is None else self._answers.get(query, "")
        return Reading(text, known=True, citations=(0,) if passages else ()) if text else Reading(UNKNOWN, known=False)
