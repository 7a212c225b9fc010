"""Run of a program without models: real sandbox, documents and prompts, but placeholder answers and passages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import partial

from pyrag.agents.prompted_agent import PromptedEngine
from pyrag.agents.protocol import Agents, Answerer, Reading
from pyrag.agents.typed.returns import Returns
from pyrag.agents.typed.typed_answer import typed_answerer
from pyrag.episode.corpus.catalogue import opened
from pyrag.episode.corpus.each import FanOut, Row
from pyrag.episode.corpus.items import CorpusItem, Template, items_of
from pyrag.episode.corpus.typed import desk_of, returns_of
from pyrag.episode.effects import Effects
from pyrag.episode.episode import Episode
from pyrag.episode.flow.policy import Flow
from pyrag.episode.ledger import Ledger, QuestionBudget
from pyrag.episode.program_run import ProgramRun, run_program
from pyrag.episode.program_values import plain
from pyrag.episode.requests import AskingStep
from pyrag.errors import PyRAGError
from pyrag.llm.context import about_tokens
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.retrieval.filters.tree import Filter
from pyrag.runtime.explain.placeholders import Placeholders
from pyrag.trace.events import ignore
from pyrag.trace.model import Passage, Program, Step, Usage, shorten
from pyrag_sandbox import Call, Record, SandboxError, bind

_SECONDS = 2.0  # of a dry run; a longer one is estimated as far as it came
_SAMPLE = 12  # items of each() whose prompts are measured
_ENDLESS = 1_000_000
_DEFAULT_PASSAGE = Passage("sample", "A passage", "word " * 100)
_prompts: ContextVar[list[int] | None] = ContextVar("_prompts", default=None)


class _MeasuringChat:
    """Model that only measures prompts in tokens."""

    name = "measuring"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:  # noqa: B008
        sizes = _prompts.get()
        tokens = sum(about_tokens(message.content) for message in messages)
        if sizes is not None:
            sizes.append(tokens)
        typed = sampling.schema is not None and "value" in str(sampling.schema)
        return Reply('{"evidence": "", "known": false, "value": null}' if typed else "<answer>unknown</answer>", tokens)

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _DryAnswerer:
    """Answer agent whose answers are placeholders. Without `answerer`, its calls cost nothing."""

    placeholders: Placeholders
    reply_tokens: int
    answerer: Answerer | None = None
    returns: Returns | None = None

    def returning(self, returns: Returns) -> _DryAnswerer:
        """Return the agent for answers of a type."""
        typed = None if self.answerer is None else typed_answerer(self.answerer, returns)
        return replace(self, answerer=typed, returns=returns)

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return a placeholder with the cost of its prompt.

        Args:
            query: Query to answer.
            passages: Passages of the prompt; None for an aggregation.
        """
        if self.returns is None:
            text = self.placeholders.text(query)
        else:
            text = self.returns.text(self.placeholders.value(self.returns, query))
        citations = (0,) if passages else ()
        return Reading(text, True, citations, usage=await self._usage(query, passages))

    async def _usage(self, query: str, passages: Sequence[Passage] | None) -> Usage:
        if self.answerer is None:
            return Usage(model_calls=1)
        sizes: list[int] = []
        token = _prompts.set(sizes)
        try:
            await self.answerer.answer(query, passages)
        except PyRAGError:
            pass  # the prompt has been measured
        finally:
            _prompts.reset(token)
        return Usage(model_calls=1, prompt_tokens=sizes[0] if sizes else 0, completion_tokens=self.reply_tokens)


@dataclass(slots=True)
class _DryEpisode(Episode):
    """Episode whose searches return sample passages."""

    samples: Sequence[Passage] = ()
    searches: dict[tuple[str, int, str], list[Passage]] = field(default_factory=dict)

    async def search(
        self,
        query: str,
        topk: int,
        where: Filter | None = None,
        step: AskingStep | None = None,
        *,
        keep: bool = True,
        cleared: bool = False,
    ) -> tuple[list[Passage], bool]:
        """Return sample passages with ids of their own; see `Episode.search`."""
        key = (query, topk, str(where))
        if key in self.searches:
            return self.searches[key], True
        first = len(self.searches)
        chosen = [self.samples[(first + rank) % len(self.samples)] for rank in range(topk)]
        passages = [replace(item, id=f"{first}-{rank}", score=1 / (rank + 1)) for rank, item in enumerate(chosen)]
        if keep:
            self.searches[key] = passages
        return passages, False


@dataclass(frozen=True, slots=True)
class DryRun:
    """Steps of a program with placeholders.

    Attributes:
        steps: Steps in program order, with the usage of their prompts.
        items: Exact number of documents or items that each step enumerated, by its id.
        sections: Largest number of sections of the documents that a step reads, by its id.
        problem: Reason why the program did not finish with placeholders; empty if it did.
        is_slow: Whether the run was stopped because it took too long.
    """

    steps: tuple[Step, ...] = ()
    items: Mapping[int, int] = field(default_factory=dict)
    sections: Mapping[int, int] = field(default_factory=dict)
    problem: str = ""
    is_slow: bool = False

    @property
    def fault(self) -> str:
        """Problem of a program that fails before its first call, so that placeholders cannot be the cause."""
        return "" if self.steps or self.is_slow else self.problem


async def dry_run(episode: Episode, program: Program, samples: Sequence[Passage], reply_tokens: int) -> DryRun:
    """Run a program without models and tools.

    Args:
        episode: Episode of the question, which does not change.
        program: The program.
        samples: Passages of the corpus for searches to return.
        reply_tokens: Assumed number of tokens in an answer's reply.
    """
    aside = _aside(episode, samples, reply_tokens)
    problem, is_slow = "", False
    try:
        async with asyncio.timeout(_SECONDS):
            outcome, _ = await run_program(aside, program)
        if outcome.error is not None:
            place = f"line {outcome.error.line}: " if outcome.error.line else ""
            problem = f"{place}{outcome.error.type}: {shorten(outcome.error.message, 200)}"
    except TimeoutError:
        problem, is_slow = f"it took longer than {_SECONDS:g} s", True
    except (PyRAGError, SandboxError) as error:
        problem = shorten(str(error), 200)
    finally:
        await aside.aclose()
    sections = {step.id: step.topk for step in aside.steps if step.primitive == "each" and step.topk}
    return DryRun(tuple(aside.steps), _items(aside.steps), sections, problem, is_slow)


def _items(steps: Iterable[Step]) -> dict[int, int]:
    """Return the number of items of each enumerating step."""
    counts: dict[int, int] = {}
    for step in steps:
        number = step.output.partition(" ")[0].replace(",", "")
        if step.primitive in ("documents", "count", "each") and number.isdigit():
            counts[step.id] = int(number)
    return counts


def _aside(episode: Episode, samples: Sequence[Passage], reply_tokens: int) -> _DryEpisode:
    """Return an episode like this one without models, budget and observers."""
    own = {item.name: getattr(episode, item.name) for item in fields(Episode) if item.init}
    budget = QuestionBudget(_ENDLESS, _ENDLESS, seconds=None, tool_calls=_ENDLESS)
    own |= {
        "agents": _without_models(episode.agents, reply_tokens), "ledger": Ledger(budget), "ladder": (),
        "observer": ignore, "effects": Effects(), "programs": [], "steps": [], "passages": {}, "warnings": [],
        "doubts": [], "fallbacks": [], "variables": {}, "partial": None, "unknown_policy": "allow", "gate": None,
        "flow": Flow("allow"),
    }  # fmt: skip
    more = {name: partial(_tool, name) if name in episode.tools else work for name, work in episode.more.items()}
    if "each" in more:
        more["each"] = _each
    return _DryEpisode(**{**own, "more": more}, samples=samples or (_DEFAULT_PASSAGE,))


def _without_models(agents: Agents, reply_tokens: int) -> Agents:
    engine = agents.engines.answer if agents.engines is not None else None
    inner: Answerer | None = None
    if isinstance(engine, PromptedEngine) and agents.calls_model:
        from pyrag.agents.llm import make_llm_agents

        inner = make_llm_agents(
            _MeasuringChat(), prompts=engine.prompts, sampling=engine.sampling, context_tokens=engine.context_tokens,
            count_tokens=engine.count_tokens,
        ).answerer  # fmt: skip
    return replace(agents, answerer=_DryAnswerer(Placeholders(), reply_tokens, inner), rewriter=None)


async def _tool(name: str, program_run: ProgramRun, call: Call) -> str:
    """Serve a call of a tool with a placeholder, since tools are not called."""
    step = program_run.start(call, name)
    program_run.finish(step, mode="data", usage=Usage(tool_calls=1))
    return "placeholder"


async def _each(program_run: ProgramRun, call: Call) -> list[Record]:
    """Serve `each` with placeholders. The prompts of some items represent all items."""
    values = bind(call, ("items", "question", "returns"), {"returns": None})
    returns, template = returns_of(values["returns"]), Template.of(values["question"])
    items = items_of(program_run, values["items"])
    questions = template.filled(items)
    desk = desk_of(program_run.episode, returns, keeps=False)
    step = program_run.start(call, shorten(str(plain(values["question"])), 500), mode="each")
    distinct = {(item.document, item.passages, question): item for item, question in zip(items, questions, strict=True)}
    keys = list(distinct)
    chosen = keys[:: max(1, len(keys) // _SAMPLE)][:_SAMPLE]
    measured = [await _measured(program_run.episode, desk.answerer, distinct[key], key[2]) for key in chosen]
    sizes, sections = [usage for usage, _ in measured], max((number for _, number in measured), default=1)
    tokens = sum(size.prompt_tokens for size in sizes) / max(len(sizes), 1)
    searches = sum(not item.is_read for item in distinct.values())
    reply = sizes[0].completion_tokens if sizes else 0
    total = Usage(len(keys), searches, round(tokens * len(keys)), reply * len(keys))
    answers = [(await desk.answerer.answer(question, None)).text for question in questions[:1]] or [""]
    fan_out = FanOut(desk, step, items, questions, asyncio.Semaphore(1), 1)
    records = fan_out.records([Row(answers[0], True) for _ in items], program_run.source)
    program_run.finish(step, output=f"{len(keys):,} items", usage=total, topk=sections)
    program_run.results.keep(call.id, [record.fields["value"] for record in records])
    return program_run.results.keep(call.id, records)


async def _measured(episode: Episode, answerer: Answerer, item: CorpusItem, question: str) -> tuple[Usage, int]:
    """Return the cost of one item's question, and the number of sections of its document."""
    sections = 1
    if item.document:
        part, _ = await opened(episode, item.document, 1, keep=False)
        passages, sections = part.passages, part.sections
    elif item.passages is not None:
        passages = list(item.passages)
    else:
        passages, _ = await episode.search(question, episode.topk, keep=False)
    return (await answerer.answer(question, passages)).usage, sections
