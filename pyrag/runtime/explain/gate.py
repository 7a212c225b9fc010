"""Gate between planning and a program's first call, which explains the program and refuses one that costs too much."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyrag.agents.prompted_agent import PromptedEngine
from pyrag.episode.recovery import Boost, calls_of_step
from pyrag.errors import BudgetExceededError, PyRAGError
from pyrag.llm.pace import CallSample
from pyrag.runtime.explain.control import call_sites
from pyrag.runtime.explain.dry_run import DryRun, dry_run
from pyrag.runtime.explain.estimate import Estimator, Rates
from pyrag.runtime.explain.explanation import Explanation, Range
from pyrag.runtime.explain.pace import Pace
from pyrag.runtime.explain.samples import Samples, sample_passages
from pyrag.trace.model import Program, Usage
from pyrag_helpers import MODULE
from pyrag_sandbox import SandboxError

if TYPE_CHECKING:
    from pyrag.episode.episode import Episode
    from pyrag.runtime.engines import Engines
    from pyrag.runtime.explain.history import History
    from pyrag.settings import Settings

_SEARCH = Range(0.001, 0.01, 0.3)  # seconds of a search in an index of this machine
_READER = Range(0.002, 0.05, 1.0)  # seconds of an answer without a model
_AROUND = Range(0.4, 1.0, 3.0)  # seconds around a measured search
_PLAN_USAGE = Usage(1, 0, 2_000, 200)


class ExplainedError(PyRAGError):
    """End of a question whose program should only be explained."""


@dataclass(slots=True)
class CostGate:
    """Cost gate of one question.

    Attributes:
        refuses: Whether to refuse a program whose low estimate exceeds a limit in the settings.
        stops: Whether the question ends before the program runs.
        explanation: Explanation of the first program; None before it is known.
    """

    engines: Engines
    settings: Settings
    plans: bool = True
    refuses: bool = True
    stops: bool = False
    explanation: Explanation | None = None
    _samples: asyncio.Task[Samples] | None = field(default=None, repr=False)
    _warm: asyncio.Task[None] | None = field(default=None, repr=False)

    def begin(self, episode: Episode) -> None:
        """Start sampling the corpus while the program is being planned, if sizes matter."""
        if self.refuses and self.settings.max_cost is None:
            self._samples = asyncio.create_task(asyncio.sleep(0, Samples()))
        else:
            work = sample_passages(episode.retriever, episode.where, episode.question, episode.topk)
            self._samples = asyncio.create_task(work)
        self._warm = asyncio.create_task(_warmed(episode))

    async def end(self) -> None:
        """Stop sampling if no program was written."""
        tasks = [task for task in (self._samples, self._warm) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def pass_through(self, episode: Episode, program: Program) -> None:
        """Set the explanation of a question from its first program.

        Args:
            episode: The question; its usage so far is the cost of planning.
            program: Program that is about to run.

        Raises:
            BudgetExceededError: The program would cost more than a limit, even by its low estimate.
            ExplainedError: The program should only be explained.
        """
        if self.explanation is not None:
            return
        assert self._samples is not None
        assert self._warm is not None
        await self._warm  # a process starts its sandbox once, whatever runs in it
        began, spent = time.perf_counter(), episode.ledger.elapsed()
        explanation = await self._explained(episode, program, await self._samples)
        planning = replace(explanation.planning, seconds=spent)
        self.explanation = replace(explanation, planning=planning, estimated_in=time.perf_counter() - began)
        if self.stops:
            raise ExplainedError("the program was explained and not run")
        if self.refuses:
            self._refuse(episode, self.explanation)

    async def _explained(self, episode: Episode, program: Program, samples: Samples) -> Explanation:
        history = self.engines.history
        run = await dry_run(episode, program, samples.passages, round(history.reply))
        sites = call_sites(program.source, episode.primitives, episode.tools)
        measured = self.engines.samples(_answer_model(episode))
        rates = self._rates(episode, samples, Pace.of(measured), measured)
        estimate = Estimator(program.source, run, sites, rates).estimate()
        used = episode.ledger.usage
        fault = "" if self.plans else run.fault  # a planner repairs its program
        spent = used if rates.calls_model else replace(used, model_calls=0)
        return Explanation(
            title=episode.question, program=program.source, lines=estimate.lines, calls=estimate.calls,
            answers=estimate.answers, retrievals=estimate.retrievals, tokens=estimate.tokens, seconds=estimate.seconds,
            cost=estimate.cost, basis=_basis(rates, samples, measured, history, run), warnings=tuple(episode.warnings),
            planning=replace(spent, cost=episode.ledger.budget.price(spent)), error=fault, exit_code=1 if fault else 0,
        )  # fmt: skip

    def _rates(self, episode: Episode, samples: Samples, pace: Pace, measured: list[CallSample]) -> Rates:
        settings, history = self.settings, self.engines.history
        calls_model = episode.agents.calls_model
        return Rates(
            call=pace.seconds(history.reply) if calls_model else _READER,
            search=_search_seconds(samples, history),
            plan=pace.seconds(_PLAN_USAGE.completion_tokens) if calls_model else Range(0.0, 0.01, 0.1),
            recovery=history.recovery_rate if episode.ladder else 0.0,
            max_recoveries=calls_of_step(episode.ladder) - 1,
            max_searches=sum(1 if isinstance(rung, Boost) else len(rung.topks) for rung in episode.ladder),
            repair=history.repair_rate,
            may_repair=self.plans and settings.repairs > 0,
            plan_usage=_usage_of_plan(measured),
            budget=episode.ledger.budget,
            tokens_ratio=pace.tokens_ratio,
            measured_sizes=bool(samples.passages),
            calls_model=calls_model,
            cached=bool(settings.cache),
            in_flight=max(settings.max_in_flight, 1),
            parallel=episode.parallel,
        )

    def _refuse(self, episode: Episode, explanation: Explanation) -> None:
        """Raise `BudgetExceededError` if the low estimate exceeds what remains of the settings' limits."""
        used, settings = episode.ledger.usage, self.settings
        need = 0 if settings.cache else round(explanation.answers.low)
        if settings.max_calls is not None and used.model_calls + need > settings.max_calls:
            raise BudgetExceededError(
                f"the program was not run: it needs at least {need:,} model calls after the {used.model_calls} of its "
                f"planning, and max_calls allows {settings.max_calls:,}: raise --max-calls, or ask for less"
            )
        spent, cost = episode.ledger.budget.price(used) or 0.0, explanation.cost
        if settings.max_cost is not None and cost is not None and spent + cost.low > settings.max_cost:
            raise BudgetExceededError(
                f"the program was not run: it costs at least {cost.low:.4g} after the {spent:.4g} of its planning, and "
                f"max_cost allows {settings.max_cost:g}: raise --max-cost, or ask for less"
            )


async def _warmed(episode: Episode) -> None:
    """Start a sandbox process, so that the dry run need not wait for it."""
    with contextlib.suppress(SandboxError):
        await episode.sandbox.run("final_answer = 1", {}, helpers=MODULE)


def _answer_model(episode: Episode) -> str:
    engine = episode.agents.engines.answer if episode.agents.engines is not None else None
    return engine.model.name if isinstance(engine, PromptedEngine) else ""


def _usage_of_plan(measured: list[CallSample]) -> Usage:
    """Return the tokens of a planner's call, taken from the longest reply so far."""
    longest = max(measured, key=lambda sample: sample.completion_tokens, default=None)
    if longest is None:
        return _PLAN_USAGE
    return Usage(1, 0, longest.prompt_tokens, longest.completion_tokens)


def _search_seconds(samples: Samples, history: History) -> Range:
    measured = samples.search_seconds
    if history.retrievals:
        measured = history.retrieval_seconds / history.retrievals
    return _SEARCH if measured is None else _AROUND.times(measured)


def _basis(
    rates: Rates, samples: Samples, measured: list[CallSample], history: History, run: DryRun
) -> tuple[str, ...]:
    """Return sentences about the basis of an estimate."""
    sentences = []
    if rates.calls_model:
        pace = f"measured on {len(measured)} calls" if measured else "a default, since no call has been measured"
        sentences.append(f"seconds of a model call: {rates.call.expected:.3g}, {pace}")
    passages = len(samples.passages)
    sizes = f"{passages} passages of the corpus" if passages else "a default passage"
    sentences.append(f"prompt sizes: the templates, filled with {sizes}")
    if samples.documents is not None:
        sentences.append(f"documents: {samples.documents:,}, counted in the index")
    known = f"of {history.answers:,} earlier answers" if history.answers else "a default, since no traces were given"
    sentences.append(f"recoveries: {rates.recovery:.0%} of the answers from documents, {known}")
    if rates.may_repair:
        known = f"of {history.programs:,} earlier programs" if history.programs else "a default"
        sentences.append(f"repairs: {rates.repair:.0%} of the programs, {known}")
    if run.problem:
        sentences.append(
            f"calls after this line are counted in the source, since it needs a real answer to run: {run.problem}"
        )
    return tuple(sentences)
