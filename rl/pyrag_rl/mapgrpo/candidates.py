"""Builds the pre-scored set (OPERA, appendix A): plans of a stronger model or a recording, run end to end, scored.

Candidates of a question are drawn at a temperature, executed by the runtime with its frozen agents, scored by the five
components of equation 14, and freed of near-duplicates by the cosine of their embeddings. A question that is finished
is kept at once; the next session runs the others, with what their author had written (`kept_replies`). Left out: gold
plans written by hand.

The components' weights are those of the authors' release; the paper's text as we have it names the components only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Protocol

from pyrag._io.jsonl import append, locked_lines
from pyrag.errors import DataError
from pyrag.evaluation.metrics import score_text, script_of
from pyrag.evaluation.runs.folder import make_folder
from pyrag.llm.cache import ReplyStore
from pyrag.llm.protocol import ChatModel, Sampling
from pyrag.methods.opera.protocol import Goal
from pyrag.retrieval.embedders.protocol import Embedder
from pyrag.trace.model import Trace
from pyrag_rl.data.rows import TrainRow, read_rows
from pyrag_rl.mapgrpo.plans import completion, logic, read_plan, searches, structure
from pyrag_rl.mapgrpo.prescored import Candidate, distinct, read_candidates
from pyrag_rl.rewards.agents import reason_of
from pyrag_rl.rewards.environment import RewardEnvironment
from pyrag_rl.rewards.roles import run_goals
from pyrag_rl.rewards.score import OUTSIDE

_BEGINNING = b'{"id":'  # of a line
NEAR = 0.85  # cosine from which two candidates are near-duplicates (paper)


@dataclass(frozen=True, slots=True)
class PrescoreWeights:
    """Of equation 14, as released; they sum up to 1."""

    logic: float = 0.25
    execution: float = 0.25
    answer: float = 0.3
    efficiency: float = 0.1
    placeholders: float = 0.1


class Author(Protocol):
    """Source of candidates. `name` is kept with each candidate."""

    @property
    def name(self) -> str: ...

    async def write(self, row: TrainRow) -> Sequence[str]:
        """Completions for the row's prompt. Raises `ServiceError`."""
        ...


@dataclass(frozen=True, slots=True)
class Drawn:
    """`count` completions of a model, the first one at temperature 0 (the paper's gold standard), the others drawn."""

    model: ChatModel
    count: int = 12
    temperature: float = 0.8
    max_tokens: int = 1024

    @property
    def name(self) -> str:
        return self.model.name

    async def write(self, row: TrainRow) -> Sequence[str]:
        samplings = [Sampling(0.0, self.max_tokens)]
        samplings += [Sampling(self.temperature, self.max_tokens, seed=seed) for seed in range(1, self.count)]
        replies = await asyncio.gather(*(self.model.complete(row.messages, one) for one in samplings))
        return [reply.text for reply in replies]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Completions written before: JSON lines with `id`, `source` and `completion`."""

    path: Path
    by_question: Mapping[tuple[str, str], Sequence[str]]

    @property
    def name(self) -> str:
        return str(self.path)

    async def write(self, row: TrainRow) -> Sequence[str]:
        return self.by_question.get((row.source, row.id), ())


def kept_replies(out: Path) -> ReplyStore:
    """Open the store of the author's replies: they are paid for once, until each question has a candidate."""
    return ReplyStore(out.with_name(f"{out.name}.replies.sqlite"))


def recorded(path: Path) -> Recorded:
    """Raises `DataError` where the file holds no completions."""
    import msgspec

    found: dict[tuple[str, str], list[str]] = {}
    number = 0
    try:
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):  # noqa: B007  named in the error
            one = msgspec.json.decode(line, type=dict[str, object])
            found.setdefault((str(one["source"]), str(one["id"])), []).append(str(one["completion"]))
    except OSError as error:
        raise DataError(f"cannot read the completions {path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
        raise DataError(f'{path} line {number} lacks "source", "id" or "completion" ({error})') from error
    return Recorded(path, found)


def plan_rows(path: Path) -> list[TrainRow]:
    """The rows of a set for OPERA's Plan agent. Raises `DataError` where it is another one's."""
    rows = read_rows(path)
    for number, row in enumerate(rows, start=1):
        if row.agent != "plan" or row.sub_queries:
            raise DataError(f"{path} row {number} asks for no goals: build the set with pyrag train data goals")
    return rows


@dataclass(slots=True)
class Counts:
    """`unscored`: runs that failed outside the candidate, such as a retriever that was away."""

    questions: int = 0
    candidates: int = 0
    kept: int = 0
    duplicates: int = 0
    unscored: int = 0
    without: int = 0  # questions for which nothing could be kept
    scores: list[float] = field(default_factory=list)


def prescored(
    candidate: str, row: TrainRow, trace: Trace | None, origin: str, weights: PrescoreWeights = PrescoreWeights()
) -> Candidate:
    """Return a candidate with its five components and their weighted sum (equation 14).

    Args:
        candidate: a completion of the Plan agent.
        row: the question.
        trace: the run of the plan; None for a plan that cannot run.
        origin: name of the author.
        weights: of the components.
    """
    read = read_plan(candidate, row.question)
    text = trace.answer.text if trace and trace.answer.known else ""
    parts = {
        "logic": logic(read, row.question, row.hops),
        "execution": completion(trace) if trace and trace.error is None else 0.0,
        "answer": score_text(text, row.answers, script_of(row.source))[0] if text else 0.0,
        "efficiency": efficiency(read.goals, row.hops),
        "placeholders": structure(read),
    }
    score = sum(getattr(weights, name) * value for name, value in parts.items())
    return Candidate(
        id=row.id,
        source=row.source,
        question=row.question,
        completion=candidate,
        origin=origin,
        score=score,
        **parts,
    )


def efficiency(goals: Sequence[Goal], hops: int) -> float:
    """Return hops divided by searches, at most 1; 0 for a plan without a search.

    Args:
        goals: the plan.
        hops: searches that the question takes; 0 if unknown, which scores 1.
    """
    made = searches(goals)
    return 0.0 if not made else min(1.0, hops / made) if hops else 1.0


async def prescore(
    rows: Iterable[TrainRow],
    out: Path,
    author: Author,
    environment: RewardEnvironment,
    embedder: Embedder,
    *,
    near: float = NEAR,
    tell: Callable[[Counts], None] = lambda _: None,
) -> Counts:
    """Add the candidates of all rows that the file lacks.

    Args:
        rows: rows of OPERA's Plan agent.
        out: the file of candidates; one that exists is continued.
        author: writes completions.
        environment: runs them.
        embedder: compares plans.
        near: cosine from which two plans are duplicates.
        tell: called with the counts after each question.

    Raises:
        ServiceError: the author failed.
        UsageError: another process adds to the file.
    """
    counts = Counts()
    with _appended(out) as file:
        done = {one.key for one in read_candidates(out)}
        todo = (row for row in rows if (row.source, row.id) not in done)
        async for kept in _side_by_side(todo, author, environment, embedder, near, counts):
            _keep(file, kept)
            tell(counts)
    return counts


async def _side_by_side(
    rows: Iterable[TrainRow],
    author: Author,
    environment: RewardEnvironment,
    embedder: Embedder,
    near: float,
    counts: Counts,
) -> AsyncIterator[list[Candidate]]:
    waiting = iter(rows)
    running: set[asyncio.Task[list[Candidate]]] = set()
    try:
        while True:
            while len(running) < environment.settings.concurrency and (row := next(waiting, None)) is not None:
                running.add(asyncio.create_task(_of_question(row, author, environment, embedder, near, counts)))
            if not running:
                return
            finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _of_question(
    row: TrainRow, author: Author, environment: RewardEnvironment, embedder: Embedder, near: float, counts: Counts
) -> list[Candidate]:
    """All candidates of one question that are worth keeping."""
    written = list(dict.fromkeys(await author.write(row)))
    scored = [
        one for text in written if (one := await _scored(text, row, environment, author.name, counts)) is not None
    ]
    kept = await _without_duplicates(scored, embedder, near)
    counts.questions += 1
    counts.candidates += len(written)
    counts.kept += len(kept)
    counts.duplicates += len(scored) - len(kept)
    counts.without += not kept
    counts.scores += [one.score for one in kept]
    return kept


async def _scored(
    text: str, row: TrainRow, environment: RewardEnvironment, origin: str, counts: Counts
) -> Candidate | None:
    goals = read_plan(text, row.question).goals
    trace = await run_goals(row.question, goals, environment) if goals else None
    if trace is not None and reason_of(trace) in OUTSIDE:
        counts.unscored += 1
        return None
    return prescored(text, row, trace, origin)


async def _without_duplicates(candidates: Sequence[Candidate], embedder: Embedder, near: float) -> list[Candidate]:
    """Drop near-duplicates. Plans are compared by the texts of their goals; other completions by their whole text."""
    if len(candidates) < 2:
        return list(candidates)
    texts = ["\n".join(goal.text for goal in read_plan(one.completion).goals) or one.completion for one in candidates]
    vectors = await embedder.embed_passages(texts)
    return distinct(candidates, (vectors @ vectors.T).tolist(), near)


def _appended(path: Path) -> IO[bytes]:
    """The file, opened behind its last whole line. Raises `DataError` where what follows that is not ours to drop."""
    make_folder(path.parent)
    path.touch()
    torn = path.read_bytes().rpartition(b"\n")[2]
    if not _BEGINNING.startswith(torn[: len(_BEGINNING)]):
        raise DataError(f"{path} is no file of candidates: name another one with --out")
    return locked_lines(path)


def _keep(file: IO[bytes], candidates: Sequence[Candidate]) -> None:
    import msgspec

    append(file, *(msgspec.json.encode(replace(one, score=round(one.score, 6))) for one in candidates))
