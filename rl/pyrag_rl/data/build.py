"""From a request to Parquet files: questions and runs are read one after the other, rows written as they come.

Equal prompts are kept once. A command that was stopped goes on: questions that took a search or a model are not asked
again (`unfinished`). Left out: what a row holds (`sets`, `traces`), and what is shown meanwhile (the command).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from pyrag.errors import DataError, UsageError, nearest
from pyrag.evaluation.datasets.layout import Question, find_file
from pyrag.evaluation.datasets.suite import Given, QuestionSet, Source, open_set, source_of
from pyrag.evaluation.runs.folder import read_run
from pyrag.llm.context import about_tokens
from pyrag.runtime.engines import open_engines
from pyrag.settings import Settings, public
from pyrag_rl.data import sets, traces
from pyrag_rl.data.decompositions.examples import GOLD_TASKS, GoldRequest, gold_examples
from pyrag_rl.data.decompositions.source import read_corpus
from pyrag_rl.data.examples import PromptlessRow, prompted
from pyrag_rl.data.gate import GATE
from pyrag_rl.data.held_out import HeldOut, draw, held_out
from pyrag_rl.data.readings import ReadingMix
from pyrag_rl.data.release_replies import in_asked_form
from pyrag_rl.data.replies import fitted
from pyrag_rl.data.rows import RowWriter, SftWriter, TrainRow, forget_unfinished
from pyrag_rl.data.unfinished import QuestionRows, Unfinished, open_unfinished

TASKS = {
    "answer": "answer", "rag": "answer", "synthesis": "answer", "analysis": "answer", "plan": "plan", "joint": "plan",
    "goals": "plan", "decompose": "decompose", "rewrite": "rewrite",
}  # fmt: skip
"""Kinds of rows, each with the agent that learns from it. `rag` is answering whole questions, `synthesis`
answering without documents, `joint` planning with the sub-queries in the same reply; `goals` and `analysis` are OPERA's
Plan and Analysis-Answer agents."""
Writer = RowWriter | SftWriter
Sourced = Sequence[tuple[QuestionSet, Source]]
_NEEDS_CORPUS = frozenset({"answer", "rag", "analysis", "rewrite"})
_TAKES_LONG = _NEEDS_CORPUS | {"plan"}  # a search or a model call for each question
_DECISIVE = ("llm", "decompose_llm", "topk", "embedder", "dense_weight", "rerank", "prompts", "context_tokens")
"""The settings that the rows of a set depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`held_out` are further places of questions to keep out; those that stand beside the training files are always.

    `eval_share` of the questions go to `eval_out` instead. With `sft`, prompts and replies to learn are written. Where
    both are named, a task's rows come from data sets if these have any, else from runs; rows of gold decompositions
    are added. `mix` says over which passages answers are learnt. `max_tokens` bounds a row, estimated by its bytes.
    """

    tasks: Sequence[str]
    out: Path
    data: Path | None = None
    sets: Sequence[str] = ()
    split: str = "train"
    runs: Sequence[Path] = ()
    decompositions: GoldRequest | None = None
    methods: Sequence[str] = ()
    limit: int | None = None
    seed: int = 0
    depths: tuple[int, ...] = (3, 5, 8, 10)
    held_out: Sequence[Path] = ()
    leave_out: bool = False
    eval_out: Path | None = None
    eval_share: float = 0.0
    sft: bool = False
    mix: ReadingMix = ReadingMix()
    max_tokens: int | None = None
    given: Given = Given()
    settings: Settings = Settings()


@dataclass(slots=True)
class Built:
    """Counts of a build. `longest` is a prompt in estimated tokens (four bytes each); `dropped` counts by reason, and
    `mended` programs that were brought under the contract of the prompts."""

    questions: int = 0
    rows: int = 0
    eval_rows: int = 0
    longest: int = 0
    mended: int = 0
    by_source: Counter[str] = field(default_factory=Counter)
    sufficient: Counter[str] = field(default_factory=Counter)
    passages: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    held_out: list[str] = field(default_factory=list)


def build(request: Request, progress: Callable[[Built], None] = lambda _: None) -> Built:
    """Build a training set.

    Args:
        request: tasks, sources and files.
        progress: called with the counts after each question.

    Raises:
        UsageError: the request makes no sense.
        DataError: a question is held out, or no row came of the questions.
    """
    _check(request)
    return asyncio.run(_Builder(request, progress).run())


def _check(request: Request) -> None:
    for task in request.tasks:
        if task not in TASKS:
            raise UsageError(f"there is no task {task!r}{nearest(task, TASKS)}")
    if not request.tasks:
        raise UsageError(f"name what rows are for: {', '.join(TASKS)}")
    if len({TASKS[task] for task in request.tasks}) > 1:
        raise UsageError("one training set is for one agent: build a file for each")
    _check_sources(request)
    for path in (request.out, request.eval_out):
        if path is not None and path.is_dir():
            raise UsageError(f"{path} is a folder: name the Parquet file to write")
    if request.eval_out and request.eval_out.resolve() == request.out.resolve():
        raise UsageError(f"--out and --eval-out are both {request.out}: name two files")
    if bool(request.eval_out) != bool(request.eval_share):
        raise UsageError("--eval-out and --eval-share belong together")
    if not 0 <= request.eval_share < 1 or not request.depths or min(request.depths) < 1:
        raise UsageError("--eval-share must be from 0 to below 1, and every number of passages at least 1")


def _check_sources(request: Request) -> None:
    if not request.runs and request.data is None and request.decompositions is None:
        raise UsageError(
            "name where questions come from: --data FOLDER with --sets, --from-run RUN, or --decompositions FOLDER"
        )
    if request.decompositions and (other := [one for one in request.tasks if one not in GOLD_TASKS]):
        raise UsageError(f"gold decompositions have no rows for {other[0]}: name {', '.join(GOLD_TASKS)}")
    if request.data is not None and not request.sets:
        raise UsageError("name the sets of the folder with --sets")
    missing = [one for one in request.tasks if one not in (sets.WITH_REPLIES if request.sft else sets.EXAMPLES)]
    if request.data is not None and missing and not (request.runs or request.decompositions):
        what = "replies to learn" if request.sft and missing[0] in sets.EXAMPLES else "rows"
        raise UsageError(f"{what} for {missing[0]} come from runs or gold decompositions: pass --from-run RUN")


class _Builder:
    def __init__(self, request: Request, progress: Callable[[Built], None]) -> None:
        self.request, self.progress, self.built = request, progress, Built()
        self.held = HeldOut()
        self._seen: set[bytes] = set()

    async def run(self) -> Built:
        request = self.request
        chosen = [open_set(name, request.data, split=request.split, limit=request.limit, seed=request.seed)
                  for name in request.sets]  # fmt: skip
        places = [*request.held_out, *_beside(chosen), *_beside_runs(request.runs)]
        if request.decompositions:
            places += _sets_beside(request.decompositions.folder)
        self.held = held_out(dict.fromkeys(places))
        self.built.held_out = [str(one) for one in dict.fromkeys(places)]
        sourced = [(one, self._source(one)) for one in chosen]
        with ExitStack() as stack:
            unfinished = stack.enter_context(open_unfinished(request.out, _identity(request, sourced)))
            for path in filter(None, (request.out, request.eval_out)):
                forget_unfinished(path)
            train = stack.enter_context(_open_writer(request, request.out))
            evaluation = stack.enter_context(_open_writer(request, request.eval_out)) if request.eval_out else None
            async for row, reply, copies in self._rows(sourced, unfinished):
                self._add(row, reply, copies, train, evaluation)
            self.built.rows, self.built.eval_rows = train.count, evaluation.count if evaluation else 0
            if not self.built.rows:
                unfinished.drop = True
                raise DataError(f"no row came of {self.built.questions} questions: {self._why()}")
        return self.built

    @property
    def _from_sets(self) -> list[str]:
        """The tasks whose rows come from data sets: all that these have rows for, or replies where these are learnt."""
        known = sets.WITH_REPLIES if self.request.sft else sets.EXAMPLES
        return [task for task in self.request.tasks if task in known] if self.request.data else []

    @property
    def _from_runs(self) -> list[str]:
        """The tasks whose rows come from runs: those that no data set has rows for, where data sets are named."""
        return [task for task in self.request.tasks if task not in self._from_sets]

    def _why(self) -> str:
        said = ", ".join(f"{count} {why}" for why, count in self.built.dropped.most_common())
        return said or "the sets or runs do not hold what this task needs (see pyrag train data --help)"

    def _source(self, chosen: QuestionSet) -> Source:
        return source_of(chosen, self.request.given) if _NEEDS_CORPUS & set(self.request.tasks) else Source("none")

    async def _rows(self, sourced: Sourced, unfinished: Unfinished) -> AsyncIterator[tuple[TrainRow, str, int]]:
        """Rows with their prompts, replies worth learning, and the number of times to write them."""
        done: Counter[str] = Counter()
        for asked in unfinished.done():
            done[asked.set] += 1
            for row, reply in self._of(asked):
                yield row, reply, 1
        for chosen, source in sourced:
            async for group in self._groups(chosen, source, done[chosen.name]):
                if _TAKES_LONG & set(self.request.tasks):
                    unfinished.keep(group)
                for row, reply in chain.from_iterable(map(self._of, group)):
                    yield row, reply, 1
        async for example in self._gold():
            yield *await self._prompted(example), example.copies
        for example in self._of_runs():
            yield *await self._prompted(example), example.copies

    async def _prompted(self, example: PromptlessRow) -> tuple[TrainRow, str]:
        prompts = self.request.settings.prompts
        row = await prompted(example, prompts)
        asked = "\n".join(message.content for message in row.messages)
        return row, in_asked_form(fitted(example.reply, prompts), asked)

    async def _gold(self) -> AsyncIterator[PromptlessRow]:
        if self.request.decompositions is None:
            return
        async for examples in gold_examples(self.request.decompositions, self.request.tasks, self.built.dropped):
            self.built.questions += 1
            for example in examples:
                yield example

    def _of_runs(self) -> Iterator[PromptlessRow]:
        for run in self.request.runs if self._from_runs else ():
            methods = self.request.methods
            asked_there = [row for row in read_run(run).rows if not methods or row.method in methods]
            self.built.questions += len({(row.set, row.id) for row in asked_there})
            for task in self._from_runs:
                for example in traces.read_examples(run, task, methods):
                    if self.request.sft and example.fault:
                        self.built.dropped[example.fault] += 1
                        continue
                    self.built.mended += self.request.sft and example.mended
                    yield example

    def _of(self, asked: QuestionRows) -> Sequence[tuple[TrainRow, str]]:
        self.built.questions += 1
        if not asked.rows:
            self.built.dropped[f"without a row ({asked.set})"] += 1
        self.progress(self.built)
        return list(zip_longest(asked.rows, asked.replies, fillvalue=""))  # type: ignore[arg-type]  # replies are fewer

    async def _groups(self, chosen: QuestionSet, source: Source, done: int) -> AsyncIterator[list[QuestionRows]]:
        """Several questions at once, in their order and without the first that are done."""
        settings = self.request.settings
        engines = open_engines(replace(settings, **source.overrides))  # type: ignore[arg-type]  # both are str | None
        row_sources = sets.RowSources(
            engines.retriever, engines.agents.decomposer, self.request.seed, self.request.depths, settings.topk,
            self.request.mix if self.request.sft else None,
            read_corpus(chosen.corpus) if self.request.sft and chosen.corpus else {},
        )  # fmt: skip
        answerable = islice((one for one in chosen.questions if one.answers), done, None)
        try:
            while group := list(islice(answerable, settings.concurrency)):
                yield list(await asyncio.gather(*(self._ask(one, chosen.name, row_sources) for one in group)))
        finally:
            await engines.aclose()

    async def _ask(self, question: Question, set_name: str, row_sources: sets.RowSources) -> QuestionRows:
        made = [
            example
            for task in self._from_sets
            for example in await sets.EXAMPLES[task](question, set_name, row_sources)
        ]
        rows = [await self._prompted(one) for one in made]
        return QuestionRows(set_name, question.id, tuple(row for row, _ in rows), tuple(reply for _, reply in rows))

    def _add(self, row: TrainRow, reply: str, copies: int, train: Writer, evaluation: Writer | None) -> None:
        if self.request.sft and not reply:
            self.built.dropped["without a reply worth learning"] += 1
            return
        if self.held.place(row):
            if not self.request.leave_out:
                self.held.check(row)
            self.built.dropped["held out"] += 1
            return
        if self._is_too_long(row, reply):
            self.built.dropped[f"longer than about {self.request.max_tokens} tokens"] += 1
            return
        if self._again(row):
            self.built.dropped["asked before"] += 1
            return
        away = evaluation is not None and draw(row.question) < self.request.eval_share
        if away and evaluation is not None:
            evaluation.add(replace(row, split="eval"), reply)
        else:
            for _ in range(copies):
                train.add(replace(row, split="train"), reply)
        self._count(row)

    def _is_too_long(self, row: TrainRow, reply: str) -> bool:
        most = self.request.max_tokens
        return most is not None and sum(map(about_tokens, (reply, *(one.content for one in row.messages)))) > most

    def _again(self, row: TrainRow) -> bool:
        text = "\0".join(message.content for message in row.messages)
        mark = hashlib.blake2b(text.encode(), digest_size=16).digest()
        seen = mark in self._seen
        self._seen.add(mark)
        return seen

    def _count(self, row: TrainRow) -> None:
        self.built.by_source[row.source] += 1
        if row.sufficient is not None:
            self.built.sufficient["sufficient" if row.sufficient else "insufficient"] += 1
        if row.agent == "answer":
            count = len(row.documents or ())
            self.built.passages[
                "no passages" if not count else "one passage" if count == 1 else "several passages"
            ] += 1
        self.built.longest = max(self.built.longest, sum(about_tokens(one.content) for one in row.messages))
        self.progress(self.built)


@contextmanager
def _open_writer(request: Request, path: Path) -> Iterator[Writer]:
    with SftWriter(path) if request.sft else RowWriter(path) as writer:
        yield writer


def _beside(chosen: Sequence[QuestionSet]) -> Iterator[Path]:
    """The measured questions of the sets whose training questions are asked, and of the sets beside them."""
    for one in chosen:
        if one.path.name.startswith("train"):
            yield from _measured(one.path.parent)
            yield from _sets_beside(one.path.parent)


def _sets_beside(folder: Path) -> Iterator[Path]:
    """The measured questions of the sets whose folders stand beside a folder of training questions."""
    for one in sorted(folder.resolve().parent.iterdir()):
        if one != folder.resolve() and one.is_dir():
            yield from _measured(one)


def _measured(folder: Path) -> Iterator[Path]:
    """The questions of a set that are measured: those that are reported, and those of a curriculum's gates."""
    yield from filter(None, (find_file(folder, stem) for stem in ("questions", f"{GATE}_questions")))


def _beside_runs(runs: Sequence[Path]) -> Iterator[Path]:
    for run in runs:
        for name in read_run(run).config["sessions"][-1].get("files", {}).values():
            path = Path(name)
            if path.name.startswith("train"):
                yield from _measured(path.parent)


def _identity(request: Request, sourced: Sourced) -> dict[str, Any]:
    """Return what makes two sessions build the same rows of sets. Rows of runs are always built anew."""
    settings = public(request.settings)
    return {
        "tasks": list(request.tasks),
        "limit": request.limit,
        "seed": request.seed,
        "split": request.split,
        "depths": list(request.depths),
        "sft": [request.mix.several, request.mix.unknown, request.mix.tokens or 0] if request.sft else [],
        "questions": {one.name: one.sha256 for one, _ in sourced},
        "passages": {one.name: source.identity or source.name for one, source in sourced},
        "settings": {name: settings[name] for name in _DECISIVE},
    }
