"""The paper's three agents over language models: Decompose Agent, Plan Agent and Answer Agent.

Each agent is a prompt, a parser and a bounded number of retries, and keeps no state between questions. Prompts are
template files (`pyrag.agents.prompts`); replies are parsed in `pyrag.agents.parsing`. The caller decides when to repair
a program and how to treat an unknown answer. Errors of services pass through unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path

from pyrag._io.lines import lines_of
from pyrag.agents.context_window import WindowedAnswerer, WindowedRewriter
from pyrag.agents.conversation import Conversation
from pyrag.agents.corpus.overview import CorpusOverview, describe
from pyrag.agents.parsing.answers import ParsedAnswer, is_evasive, parse_answer, salvage_answer
from pyrag.agents.parsing.draft import DraftReader, OnDraft, ignore_draft
from pyrag.agents.parsing.program_queries import program_queries
from pyrag.agents.parsing.programs import parse_program, syntax_error
from pyrag.agents.parsing.sub_queries import parse_sub_queries
from pyrag.agents.passages import fenced_passages, numbered
from pyrag.agents.prompted_agent import PromptedEngine
from pyrag.agents.prompts import Prompts, load_prompts
from pyrag.agents.protocol import Agents, Decomposition, Plan, Reading, RoleEngines
from pyrag.agents.rewriter import LLMRewriter
from pyrag.agents.schemas import SUB_QUERIES, TAGGED_ANSWER, asks_for
from pyrag.agents.typed.returns import Returns
from pyrag.agents.typed.typed_answer import LLMTypedAnswerer
from pyrag.agents.writer import LLMFollowUp, LLMWriter
from pyrag.errors import BadOutputError, BudgetExceededError
from pyrag.llm.context import CountTokens, about_tokens
from pyrag.llm.protocol import ChatModel, Sampling
from pyrag.llm.spending import counted
from pyrag.trace.model import UNKNOWN, Passage

RETRIES = 3  # further replies of the Decompose and the Plan agent (paper, appendix E.1)
_ERROR_NAME = re.compile(r"\w*(?:Error|Exception)\b")
_TRACEBACK = "Traceback (most recent call last)"
_NOT_LISTED = "(left out: see the program)"
_MAX_ERROR = 400  # characters of an error shown in a repair if the window is small


@dataclass(frozen=True, slots=True)
class LLMDecomposer:
    """Decompose Agent: turns a question into a JSON list of atomic sub-queries.

    If no reply within `retries` further tries holds a usable list, the question itself is the only sub-query.
    """

    model: ChatModel
    prompts: Prompts
    sampling: Sampling = Sampling()
    retries: int = RETRIES
    corpus: bool = False  # whether programs may call the functions over the whole corpus

    def with_corpus(self, _: CorpusOverview) -> LLMDecomposer:
        """Return this decomposer with rules for questions over all documents."""
        return replace(self, corpus=True)

    async def decompose(self, question: str) -> Decomposition:
        """Return the sub-queries of a question, or the question itself as a fallback."""
        render = self.prompts.render
        system = self.prompts.render_decomposer(corpus=self.corpus)
        user = render("decompose.user", question=question)
        sampling = _listed(self.sampling) if asks_for(SUB_QUERIES, system + user) else self.sampling
        talk = Conversation(self.model, sampling, system, user, request=question)

        def again(_: str, problem: str) -> str:
            return render("decompose.retry", reason=problem, question=question)

        try:
            sub_queries = await talk.asked(parse_sub_queries, again, self.retries)
            return Decomposition(sub_queries, usage=talk.usage, raw=talk.raw, note=talk.note)
        except BadOutputError as error:
            note = f"the question was not decomposed: no usable list in {self.retries + 1} replies ({error})"
            return Decomposition((question,), fallback=True, usage=talk.usage, raw=talk.raw, note=talk.noted(note))


@dataclass(frozen=True, slots=True)
class LLMPlanner:
    """Plan Agent: writes a program, and repairs syntax errors in the same call (at most `retries` times).

    `repair` shows the model the failing program with its traceback, or with the reason for its rejection (a plan check,
    the sandbox's policy, a limit).

    Attributes:
        on_draft: Called with the finished statements of each program while it is written.
        on_text: Called with all lines of each program while it is written.
        tools: Description of further functions that programs may call.
        corpus: Overview of the documents, if programs may call the functions over the whole corpus.
        returns: Description of the type of the final value; empty for a text.
        retries: Maximum number of further replies after a syntax error.
    """

    model: ChatModel
    prompts: Prompts
    sampling: Sampling = Sampling()
    on_draft: OnDraft | None = None
    on_text: OnDraft = ignore_draft
    tools: str = ""
    corpus: str = ""
    returns: str = ""
    retries: int = RETRIES

    def drafting(self, on_draft: OnDraft, on_text: OnDraft) -> LLMPlanner:
        """Return this planner, set to report programs while it writes them.

        Args:
            on_draft: Called with the beginning of a program whenever more statements with calls are finished.
            on_text: Called with all lines of a program so far whenever there are more, finished or not.
        """
        return replace(self, on_draft=on_draft, on_text=on_text)

    def with_tools(self, tools: str) -> LLMPlanner:
        """Return this planner with a description of functions that its programs may call."""
        return replace(self, tools=tools)

    def with_corpus(self, overview: CorpusOverview) -> LLMPlanner:
        """Return this planner with an overview of the documents that its programs may query."""
        return replace(self, corpus=describe(overview))

    def with_returns(self, wanted: str) -> LLMPlanner:
        """Return this planner with a description of the type of the final value."""
        return replace(self, returns=wanted)

    async def plan(self, question: str, sub_queries: Sequence[str] | None) -> Plan:
        """Return a program that compiles.

        Args:
            question: The user's question.
            sub_queries: The Decompose agent's sub-queries; None for sub-queries and program in one call (joint mode).
        """
        if sub_queries is None:
            return await self._joint_plan(question)
        listed = numbered(sub_queries)
        quoted = json.dumps(list(sub_queries), ensure_ascii=False)
        user = self.prompts.render("plan.user", question=question, sub_queries=listed, sub_query_list=quoted)
        talk = self._talk("plan.system", user, f"{question}\n{listed}", question=question)
        return await self._program(talk, question)

    async def repair(self, question: str, sub_queries: Sequence[str], source: str, error: str) -> Plan:
        """Return a corrected program that compiles.

        Args:
            question: The user's question.
            sub_queries: Sub-queries of the question.
            source: Program that failed.
            error: Traceback, refusal of the sandbox or failed plan check.
        """
        template = "plan.runtime_repair" if _TRACEBACK in error else "plan.check_repair"

        def shown(listed: str, error: str) -> str:
            return self.prompts.render(
                template,
                question=question,
                sub_queries=listed,
                source=source,
                error=error,
                error_line=_error_line(error),
            )

        shorter = shown(_NOT_LISTED, _end(error))
        talk = self._talk("plan.system", shown(numbered(sub_queries), error), shorter=shorter, question=question)
        return await self._program(talk, question)

    async def _joint_plan(self, question: str) -> Plan:
        user = self.prompts.render("joint.user", question=question)
        talk = self._talk("joint.system", user, question, question=question)
        plan = await self._program(talk, question)
        for reply in plan.raw:  # a reply to a syntax error holds only the program
            try:
                return replace(plan, sub_queries=parse_sub_queries(_without_program(reply)))
            except BadOutputError:
                continue
        queries = program_queries(plan.source)
        note = "" if queries else "the planner wrote a program that asks no documents, and no list of sub-queries"
        return replace(plan, sub_queries=queries, note="; ".join(filter(None, (plan.note, note))))

    def _talk(
        self, system: str, user: str, request: str | None = None, *, shorter: str = "", question: str
    ) -> Conversation:
        watch = None if self.on_draft is None else partial(_reading_drafts, self.on_draft, self.on_text)
        system_message = self.prompts.render_planner(system, self.tools, self.corpus, self.returns)
        return Conversation(
            self.model, self.sampling, system_message, user, watch, request, shorter=shorter, question=question
        )

    async def _program(self, talk: Conversation, question: str) -> Plan:
        def again(reply: str, problem: str) -> str:
            return self.prompts.render(
                "plan.syntax_repair",
                source=_source(reply),
                error=problem,
                error_line=_error_line(problem),
                question=question,
            )

        try:
            source = await talk.asked(_compiled, again, self.retries)
            return Plan(source, usage=talk.usage, raw=talk.raw, note=talk.note)
        except BadOutputError as error:
            raise BadOutputError(
                f"{self.model.name} wrote no program that compiles in {self.retries + 1} replies "
                f"({' '.join(str(error).split())[:200]}): try another model for the plan (--plan-llm)",
                talk.usage,
            ) from error


def _error_line(error: str) -> str:
    """Return the line that names an error: the last line of a traceback, the first line of a syntax error."""
    lines = lines_of(error.strip()) or [""]
    return next((line for line in reversed(lines) if _ERROR_NAME.match(line)), lines[-1])


def _end(error: str) -> str:
    """Return the end of an error text, which names the error; the frames of a traceback come first."""
    return error if len(error) <= _MAX_ERROR else "…" + error[-_MAX_ERROR:]


def _without_program(reply: str) -> str:
    """Return a reply without its code blocks, since lists and f-strings in code are not sub-queries."""
    if "```" not in reply and "retrieve(" in reply and not syntax_error(reply):
        return ""
    return "```".join(
        "" if place % 2 and "retrieve(" in part else part for place, part in enumerate(reply.split("```"))
    )


def _reading_drafts(on_draft: OnDraft, on_text: OnDraft) -> Callable[[str], None]:
    return DraftReader(on_draft, on_text).feed


def _compiled(reply: str) -> str:
    """Return a reply's program. Raises `BadOutputError` if the reply has no program or a syntax error."""
    try:
        source = parse_program(reply)
    except BadOutputError as error:
        raise BadOutputError(f"The reply is not a program: {error}") from error
    if fault := syntax_error(source):
        raise BadOutputError(fault)
    return source


def _source(reply: str) -> str:
    """Return a reply's program as it is, or an empty text if the reply has no program."""
    try:
        return parse_program(reply)
    except BadOutputError:
        return ""


@dataclass(frozen=True, slots=True)
class LLMAnswerer:
    """Answer Agent: answers from passages, or aggregates the facts in the query.

    It asks once more after a malformed reply: one without an answer, a sentence instead of a span, or yes or no to a
    question that asks for something else. If the second reply is malformed as well, it uses the best reading of
    either reply, or unknown.
    """

    model: ChatModel
    prompts: Prompts
    sampling: Sampling = Sampling()

    def returning(self, returns: Returns) -> LLMTypedAnswerer:
        """Return the Answer agent whose replies are values of a type."""
        return LLMTypedAnswerer(self.model, self.prompts, returns, self.sampling)

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return an answer; unknown if the list of passages is empty.

        Args:
            query: Query to answer.
            passages: Passages to answer from; None to aggregate the facts in the query.
        """
        if passages is not None and not passages:
            return Reading(UNKNOWN, known=False, rationale="no passages were given")  # not worth a call
        talk = self._talk(query, passages)
        count = len(passages or ())
        await talk.ask()
        try:
            return _reading(talk.read(lambda text: parse_answer(text, count, query), _essence), talk)
        except BadOutputError as error:
            problem = talk.blame(str(error))
        first = _salvaged(talk, count, query)
        try:
            await talk.retry(self.prompts.render("answer.retry", reason=problem, query=query))
        except (BadOutputError, BudgetExceededError):
            if first is None or is_evasive(query, first.text):
                raise
            return _reading(first, talk)
        note = f"the model's replies had no usable answer: {problem}"
        last = _salvaged(talk, count, query) or first
        return _reading(last or ParsedAnswer(UNKNOWN, False, note=note), talk, "" if last else talk.cut_off)

    def _talk(self, query: str, passages: Sequence[Passage] | None) -> Conversation:
        render = self.prompts.render
        if passages is None:
            documents, system = "", render("answer.aggregation.system")
            user = render("answer.aggregation.user", query=query)
        else:
            fence, documents = fenced_passages(passages)
            system = render("answer.evidence.system")
            user = render("answer.evidence.user", query=query, documents=documents, fence=fence)
        return Conversation(self.model, _tagged(self.sampling), system, user, request=f"{query}\n{documents}")


@lru_cache(maxsize=64)
def _tagged(sampling: Sampling) -> Sampling:
    return replace(sampling, pattern=TAGGED_ANSWER)


@lru_cache(maxsize=64)
def _listed(sampling: Sampling) -> Sampling:
    return replace(sampling, schema=SUB_QUERIES)


def _salvaged(talk: Conversation, documents: int, query: str) -> ParsedAnswer | None:
    """Return the best reading of the last reply, unless the reply copies the prompt's example or was cut off."""
    try:
        return talk.read(lambda text: salvage_answer(text, documents, query), _essence)
    except BadOutputError:
        return None


def _essence(parsed: ParsedAnswer | None) -> object:
    return parsed and (parsed.text, parsed.known)


def _reading(parsed: ParsedAnswer, talk: Conversation, note: str = "") -> Reading:
    rationale = f"{parsed.rationale}\n[{parsed.note}]".strip() if parsed.note else parsed.rationale
    notes = "; ".join(filter(None, (note, talk.note_of_answers)))
    return Reading(parsed.text, parsed.known, parsed.citations, rationale, usage=talk.usage, raw=talk.raw, note=notes)


def make_llm_agents(
    model: ChatModel,
    *,
    prompts: Prompts | None = None,
    prompts_dir: str | Path | None = None,
    sampling: Sampling | None = None,
    context_tokens: int | None = None,
    count_tokens: CountTokens = about_tokens,
    retries: int = RETRIES,
) -> Agents:
    """Return all agents over a language model.

    Args:
        model: Model of every role.
        prompts: Prompts to use in place of a folder's.
        prompts_dir: Folder of prompts; None for the package's.
        sampling: Parameters of all replies.
        context_tokens: Context window of the model in tokens, if known.
        count_tokens: Returns the number of tokens of a text.
        retries: Maximum number of further replies after a bad list of sub-queries or a syntax error.

    Raises:
        ConfigError: The prompts folder lacks a file or a placeholder.
    """
    prompts = prompts or load_prompts(prompts_dir)
    model = counted(model)
    engine = PromptedEngine(model, prompts, sampling or Sampling(), context_tokens, count_tokens)

    @cache
    def evidence() -> str:
        return prompts.render("answer.evidence.system") + prompts.render("answer.evidence.user")

    answerer = LLMAnswerer(model, prompts, engine.sampling)
    rewriter = LLMRewriter(model, prompts, engine.sampling)
    return Agents(
        name=model.name,
        decomposer=LLMDecomposer(model, prompts, engine.sampling, retries),
        planner=LLMPlanner(model, prompts, engine.sampling, retries=retries),
        answerer=WindowedAnswerer(answerer, engine.context_window("Answer", evidence)),
        writer=LLMWriter(model, prompts, engine.sampling),
        rewriter=WindowedRewriter(rewriter, engine.context_window_of("Rewrite", rewriter.template, rewriter.template)),
        engines=RoleEngines(engine, engine, engine, engine),
        follow_up=LLMFollowUp(model, prompts, engine.sampling, context_tokens, count_tokens),
    )
