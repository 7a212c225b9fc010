"""Build of training sets: from a request to Parquet files, reading questions and runs one after another.

Equal prompts are kept once. A build that was stopped continues: questions that needed a search or a model are not
repeated (`unfinished`). `sets` and `traces` make the rows, and the command shows the progress.
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
from pyrag.evaluation.datasets.suite import PassageOptions, QuestionSet, Source, open_set, source_of
from pyrag.evaluation.runs.folder import read_run
from pyrag.llm.context import about_tokens
from pyrag.runtime.engines import open_engines
from pyrag.settings import Settings, public
from pyrag_rl.data import sets, traces
from pyrag_rl.data.answer_readings import ReadingMix
from pyrag_rl.data.decompositions.gold_examples import GOLD_TASKS, GoldRequest, gold_examples
from pyrag_rl.data.decompositions.source import read_corpus
from pyrag_rl.data.examples import PromptlessRow, prompted
from pyrag_rl.data.gate import GATE
from pyrag_rl.data.held_out import HeldOut, draw, held_out
from pyrag_rl.data.release_replies import in_asked_form
from pyrag_rl.data.replies import fitted
from pyrag_rl.data.rows import RowWriter, SftWriter, TrainRow, forget_unfinished
from pyrag_rl.data.unfinished import QuestionRows, Unfinished, open_unfinished

TASKS = {
    "answer": "answer", "rag": "answer", "synthesis": "answer", "analysis": "answer", "plan": "plan", "joint": "plan",
    "goals": "plan", "decompose": "decompose", "rewrite": "rewrite",
}  # fmt: skip
"""Kinds of rows, with the agent that learns from each.

`rag` is answering whole questions, `synthesis` answering without documents, and `joint` planning with the sub-queries
in the same reply; `goals` and `analysis` are for OPERA's Plan and Analysis-Answer agents.
"""
Writer = RowWriter | SftWriter
Sourced = Sequence[tuple[QuestionSet, Source]]
_NEEDS_CORPUS = frozenset({"answer", "rag", "analysis", "rewrite"})
_TAKES_LONG = _NEEDS_CORPUS | {"plan"}  # tasks that need a search or a model call for each question
_DECISIVE = ("llm", "decompose_llm", "topk", "embedder", "dense_weight", "rerank", "prompts", "context_tokens")
"""Settings that the rows of a set depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Request for a training set.

    `held_out` names additional places of questions to exclude; the test questions next to the training files are
    always excluded. A share of `eval_share` of the questions goes to `eval_out` instead. With `sft`, prompts and
    replies to learn are written. If both data sets and runs are named, a task's rows come from the data sets if these
    have any for it, and otherwise from the runs; rows of gold decompositions are added. `mix` controls the passages
    over which answers are learnt. `max_tokens` limits a row, estimated from its size in bytes.
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
    passages: PassageOptions = PassageOptions()
    settings: Settings = Settings()


@dataclass(slots=True)
class BuildCounts:
    """Counts of a build. `longest` is the length of a prompt in estimated tokens (four bytes each). `dropped` counts by
    reason, and `mended` counts programs that were adapted to the prompts' contract.
    """

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


def build(request: Request, progress: Callable[[BuildCounts], None] = lambda _: None) -> BuildCounts:
    """Build a training set.

    Args:
        request: Tasks, sources and files.
        progress: Called with the counts after each question.

    Raises:
        UsageError: The request is not valid.
        DataError: A question is held out, or the questions gave no rows.
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
    if request.decompositions and (other := [task for task in request.tasks if task not in GOLD_TASKS]):
        raise UsageError(f"gold decompositions have no rows for {other[0]}: name {', '.join(GOLD_TASKS)}")
    if request.data is not None and not request.sets:
        raise UsageError("name the sets of the folder with --sets")
    missing = [task for task in request.tasks if task not in (sets.WITH_REPLIES if request.sft else sets.EXAMPLES)]
    if request.data is not None and missing and not (request.runs or request.decompositions):
        what = "replies to learn" if request.sft and missing[0] in sets.EXAMPLES else "rows"
        raise UsageError(f"{what} for {missing[0]} come from runs or gold decompositions: pass --from-run RUN")


class _Builder:
    def __init__(self, request: Request, progress: Callable[[BuildCounts], None]) -> None:
        self.request, self.progress, self.built = request, progress, BuildCounts()
        self.held = HeldOut()
        self._seen: set[bytes] = set()

    async def run(self) -> BuildCounts:
        request = self.request
        chosen = [open_set(name, request.data, split=request.split, limit=request.limit, seed=request.seed)
                  for name in request.sets]  # fmt: skip
        places = [*request.held_out, *_beside(chosen), *_beside_runs(request.runs)]
        if request.decompositions:
            places += _sets_beside(request.decompositions.folder)
        self.held = held_out(dict.fromkeys(places))
        self.built.held_out = [str(path) for path in dict.fromkeys(places)]
        sourced = [(question_set, self._source(question_set)) for question_set in chosen]
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
                raise DataError(f"{self.built.questions} questions produced no rows: {self._why()}")
        return self.built

    @property
    def _from_sets(self) -> list[str]:
        """Tasks whose rows (or, with `sft`, replies) come from data sets."""
        known = sets.WITH_REPLIES if self.request.sft else sets.EXAMPLES
        return [task for task in self.request.tasks if task in known] if self.request.data else []

    @property
    def _from_runs(self) -> list[str]:
        """Tasks whose rows come from runs, because no data set is named that has rows for them."""
        return [task for task in self.request.tasks if task not in self._from_sets]

    def _why(self) -> str:
        reasons = ", ".join(f"{count} {why}" for why, count in self.built.dropped.most_common())
        return reasons or "the sets or runs do not hold what this task needs (see pyrag train data --help)"

    def _source(self, chosen: QuestionSet) -> Source:
        return source_of(chosen, self.request.passages) if _NEEDS_CORPUS & set(self.request.tasks) else Source("none")

    async def _rows(self, sourced: Sourced, unfinished: Unfinished) -> AsyncIterator[tuple[TrainRow, str, int]]:
        """Yield rows with their prompts, the replies to learn, and the number of times to write each."""
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
        """Yield groups of questions to ask together, in order, without the first `done` questions."""
        settings = self.request.settings
        engines = open_engines(replace(settings, **source.overrides))
        row_sources = sets.RowSources(
            engines.retriever, engines.agents.decomposer, self.request.seed, self.request.depths, settings.topk,
            self.request.mix if self.request.sft else None,
            read_corpus(chosen.corpus) if self.request.sft and chosen.corpus else {},
        )  # fmt: skip
        answerable = islice((question for question in chosen.questions if question.answers), done, None)
        try:
            while group := list(islice(answerable, settings.concurrency)):
                yield list(await asyncio.gather(*(self._ask(question, chosen.name, row_sources) for question in group)))
        finally:
            await engines.aclose()

    async def _ask(self, question: Question, set_name: str, row_sources: sets.RowSources) -> QuestionRows:
        made = [
            example
            for task in self._from_sets
            for example in await sets.EXAMPLES[task](question, set_name, row_sources)
        ]
        rows = [await self._prompted(example) for example in made]
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
        limit = self.request.max_tokens
        return (
            limit is not None
            and sum(map(about_tokens, (reply, *(message.content for message in row.messages)))) > limit
        )

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
        self.built.longest = max(self.built.longest, sum(about_tokens(message.content) for message in row.messages))
        self.progress(self.built)


@contextmanager
def _open_writer(request: Request, path: Path) -> Iterator[Writer]:
    with SftWriter(path) if request.sft else RowWriter(path) as writer:
        yield writer


def _beside(chosen: Sequence[QuestionSet]) -> Iterator[Path]:
    """Yield the test questions of the sets whose training questions are used, and of the sets next to them."""
    for question_set in chosen:
        if question_set.path.name.startswith("train"):
            yield from _measured(question_set.path.parent)
            yield from _sets_beside(question_set.path.parent)


def _sets_beside(folder: Path) -> Iterator[Path]:
    """Yield the test questions of the sets whose folders are next to a folder of training questions."""
    for sibling in sorted(folder.resolve().parent.iterdir()):
        if sibling != folder.resolve() and sibling.is_dir():
            yield from _measured(sibling)


def _measured(folder: Path) -> Iterator[Path]:
    """Yield the files of a set whose questions are used for measurement: in reports, and for a curriculum's gates."""
    yield from filter(None, (find_file(folder, stem) for stem in ("questions", f"{GATE}_questions")))


def _beside_runs(runs: Sequence[Path]) -> Iterator[Path]:
    for run in runs:
        for name in read_run(run).config["sessions"][-1].get("files", {}).values():
            path = Path(name)
            if path.name.startswith("train"):
                yield from _measured(path.parent)


def _identity(request: Request, sourced: Sourced) -> dict[str, Any]:
    """Return everything that determines the rows of sets, to compare sessions. Rows of runs are always built again."""
    settings = public(request.settings)
    return {
        "tasks": list(request.tasks),
        "limit": request.limit,
        "seed": request.seed,
        "split": request.split,
        "depths": list(request.depths),
        "sft": [request.mix.several, request.mix.unknown, request.mix.tokens or 0] if request.sft else [],
        "questions": {question_set.name: question_set.sha256 for question_set, _ in sourced},
        "passages": {question_set.name: source.identity or source.name for question_set, source in sourced},
        "settings": {name: settings[name] for name in _DECISIVE},
    }
