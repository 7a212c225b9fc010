"""Rewards of PyRAG's three agents (paper, appendix E.1): 0.7 · F1 + 0.3 · EM of the pipeline's answer.

A completion replaces the trained agent's reply; everything else is done by the runtime: its parsers, plan checks,
sandbox, frozen agents, and scoring. OPERA's role rewards are in `pyrag_rl.rewards.opera_agents`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyrag.agents.parsing.programs import parse_program, syntax_error
from pyrag.agents.parsing.sub_queries import parse_sub_queries
from pyrag.agents.protocol import Decomposition
from pyrag.errors import BadOutputError, ContextLengthError
from pyrag.evaluation.metrics import MUSIQUE, score_text, support_recall
from pyrag.trace.model import Answer, Trace
from pyrag_rl.config import TrainConfig
from pyrag_rl.data.examples import ask_answer
from pyrag_rl.data.rows import TrainRow
from pyrag_rl.prompting import GivenReply, agents_over, prompt_of
from pyrag_rl.rewards.environment import RewardEnvironment
from pyrag_rl.rewards.score import OUTSIDE, Score

RELEASED = MUSIQUE  # the rules of the release's script
_OPEN, _CLOSE = "<answer>", "</answer>"  # the tags that the release looks for
_TIMES = frozenset({"cpu", "wall", "deadline"})
_OF_KIND = {"budget": "call_budget", "deadline": "timeout", "service": "service", "sandbox": "service"}


async def answer(row: TrainRow, completion: str, environment: RewardEnvironment) -> Score:
    """Score the Answer agent: its reply is parsed as at run time and compared with the gold answers.

    A reply without the tags that its prompt asks for scores 0, as in the release; at run time it may still be
    accepted.

    If the row's passages are known to lack the answer, "unknown" scores 1. (The paper always scores it 0, but then an
    agent never learns to refuse.)

    Args:
        row: Row of the question.
        completion: The agent's reply.
        environment: Frozen agents, retriever, sandbox and settings of the run.
    """
    passages = None if row.documents is None else [document.passage() for document in row.documents]
    if not _is_tagged(completion):
        prompt = await prompt_of(ask_answer(row.asked, passages), environment.settings.prompts)
        if any(_OPEN in message.content for message in prompt):
            return Score(error="bad_form", detail=f"the reply has no {_OPEN}…{_CLOSE}, which the prompt asks for")
    agents = agents_over(GivenReply(completion), environment.settings.prompts)
    reading = await agents.answerer.answer(row.asked, passages)
    if not reading.known and row.sufficient is False:
        return Score(score=1.0, form=1.0)
    return graded(Answer(reading.text, reading.known), row, environment.config)


def _is_tagged(completion: str) -> bool:
    begin = completion.find(_OPEN)
    return begin >= 0 and completion.find(_CLOSE, begin) >= 0


async def plan(row: TrainRow, completion: str, environment: RewardEnvironment) -> Score:
    """Score the Plan agent: its program runs with the frozen Answer agent and retriever, without repairs.

    Args:
        row: Row of the question.
        completion: The agent's reply.
        environment: Frozen agents, retriever, sandbox and settings of the run.
    """
    if error := program_fault(completion):
        return Score(error=error)
    planner = agents_over(GivenReply(completion), environment.settings.prompts).planner
    agents = replace(environment.engines.agents, planner=planner, decomposer=GivenDecomposition(row.sub_queries))
    return of_trace(await environment.ask(row.question, agents, repairs=0), row, environment.config)


async def decompose(row: TrainRow, completion: str, environment: RewardEnvironment) -> Score:
    """Score the Decompose agent: the frozen Plan and Answer agents continue from its list, with repairs and recovery.

    Args:
        row: Row of the question.
        completion: The agent's reply.
        environment: Frozen agents, retriever, sandbox and settings of the run.

    Raises:
        BadOutputError: The reply has no list; at run time, the question itself would replace it.
    """
    parse_sub_queries(completion)
    decomposer = agents_over(GivenReply(completion), environment.settings.prompts).decomposer
    trace = await environment.ask(row.question, replace(environment.engines.agents, decomposer=decomposer))
    return of_trace(trace, row, environment.config)


@dataclass(frozen=True, slots=True)
class GivenDecomposition:
    """Decompose agent with a fixed reply."""

    sub_queries: Sequence[str]

    async def decompose(self, question: str) -> Decomposition:
        """Return the fixed sub-queries."""
        return Decomposition(tuple(self.sub_queries) or (question,))


def program_fault(completion: str) -> str:
    """Return the error of a completion without a program that compiles; empty if it has one."""
    try:
        source = parse_program(completion)
    except BadOutputError:
        return "no_program"
    return "syntax_error" if syntax_error(source) else ""


def of_trace(trace: Trace, row: TrainRow, config: TrainConfig) -> Score:
    """Return the score of a whole run. A run that was ended by a budget gets no partial credit.

    Args:
        trace: Trace of the run.
        row: Row of the question.
        config: Configuration with the weights of F1 and exact match.
    """
    if trace.error is None:
        score = graded(trace.answer, row, config)
    else:
        score = Score(form=1.0, error=reason_of(trace), detail=trace.error.message)
    covered = coverage(trace, row)
    if config.reward == "coverage" and score.error not in OUTSIDE:
        score = replace(score, score=covered)
    return replace(score, trace=trace, calls=float(trace.usage.model_calls), coverage=covered)


def coverage(trace: Trace, row: TrainRow) -> float:
    """Return the share of the row's gold passages that the last program itself retrieved, without its recovery.

    Args:
        trace: Trace of the run.
        row: Row of the question.
    """
    last = len(trace.programs) - 1
    steps = (step for step in trace.steps if step.primitive == "retrieve" and step.round == last)
    return support_recall({passage for step in steps for passage in step.passages}, row.supporting)


def reason_of(trace: Trace) -> str:
    """Return the name in `ERRORS` for the error of a trace; empty without an error."""
    if trace.error is None:
        return ""
    if trace.error.kind == BadOutputError.kind:
        return "no_program"
    if trace.error.cause == ContextLengthError.cause:  # the program passed an agent more than its window holds
        return "runtime_error"
    if trace.error.kind == "program":
        return "timeout" if trace.error.cause in _TIMES else "runtime_error"
    return _OF_KIND.get(trace.error.kind, "crash")


def graded(answer: Answer, row: TrainRow, config: TrainConfig) -> Score:
    """Return the score of an answer: `f1_weight` · F1 + `em_weight` · EM, by the release's script.

    It uses the official F1 without the special words "yes" and "no", which HotpotQA's script scores only if they are
    the whole answer.

    Args:
        answer: The answer; an unknown one scores 0.
        row: Row of the question.
        config: Configuration with the weights.
    """
    if not answer.known:
        return Score(form=1.0, error="unknown")
    em, f1, _ = score_text(answer.text, row.answers, RELEASED)
    return Score(score=config.f1_weight * f1 + config.em_weight * em, f1=f1, em=em, form=1.0)
