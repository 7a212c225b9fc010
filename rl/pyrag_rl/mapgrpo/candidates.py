"""Builder of the pre-scored set (OPERA, appendix A): plans of a stronger model or a recording, executed and scored.

Candidates of a question are drawn at a temperature, executed by the runtime with its frozen agents, scored by the
five components of equation 14, and freed of near-duplicates by the cosine of their embeddings. A finished question
is stored at once; the next session runs the others, with the replies that their author had already written
(`stored_replies`). Gold plans written by hand are not supported.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Protocol

from pyrag._io.jsonl import append, locked_lines
from pyrag.errors import DataError
from pyrag.evaluation.runs.folder import make_folder
from pyrag.llm.cache import ReplyStore
from pyrag.llm.protocol import ChatModel, Sampling
from pyrag.retrieval.embedders.protocol import Embedder
from pyrag_rl.data.rows import TrainRow, read_rows
from pyrag_rl.mapgrpo.plans import read_plan
from pyrag_rl.mapgrpo.prescored import Candidate, distinct, read_candidates
from pyrag_rl.mapgrpo.rewards import prescored
from pyrag_rl.rewards.environment import RewardEnvironment
from pyrag_rl.rewards.opera_agents import run_goals
from pyrag_rl.rewards.pyrag_agents import reason_of
from pyrag_rl.rewards.score import OUTSIDE

_BEGINNING = b'{"id":'  # beginning of each line
NEAR = 0.85  # cosine from which two candidates are near-duplicates (paper)


class Author(Protocol):
    """Source of candidates. `name` is stored with each candidate."""

    @property
    def name(self) -> str: ...

    async def write(self, row: TrainRow) -> Sequence[str]:
        """Return completions for the row's prompt. Raises `ServiceError` if writing fails."""
        ...


@dataclass(frozen=True, slots=True)
class Drawn:
    """Author that draws `count` completions of a model, the first one at temperature 0 (the paper's gold standard)."""

    model: ChatModel
    count: int = 12
    temperature: float = 0.8
    max_tokens: int = 1024

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name

    async def write(self, row: TrainRow) -> Sequence[str]:
        """Return the model's completions for the row's prompt."""
        samplings = [Sampling(0.0, self.max_tokens)]
        samplings += [Sampling(self.temperature, self.max_tokens, seed=seed) for seed in range(1, self.count)]
        replies = await asyncio.gather(*(self.model.complete(row.messages, sampling) for sampling in samplings))
        return [reply.text for reply in replies]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Author of completions written earlier: JSON Lines with `id`, `source` and `completion`."""

    path: Path
    by_question: Mapping[tuple[str, str], Sequence[str]]

    @property
    def name(self) -> str:
        """Path of the file."""
        return str(self.path)

    async def write(self, row: TrainRow) -> Sequence[str]:
        """Return the recorded completions of the row's question."""
        return self.by_question.get((row.source, row.id), ())


def stored_replies(out: Path) -> ReplyStore:
    """Open the store of the author's paid replies, which a repeated run reuses."""
    return ReplyStore(out.with_name(f"{out.name}.replies.sqlite"))


def recorded(path: Path) -> Recorded:
    """Return the author of a file of completions. Raises `DataError` if the file holds none."""
    import msgspec

    completions: dict[tuple[str, str], list[str]] = {}
    number = 0
    try:
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):  # noqa: B007  named in the error
            fields = msgspec.json.decode(line, type=dict[str, object])
            completions.setdefault((str(fields["source"]), str(fields["id"])), []).append(str(fields["completion"]))
    except OSError as error:
        raise DataError(f"cannot read the completions {path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
        raise DataError(f'{path} line {number} lacks "source", "id" or "completion" ({error})') from error
    return Recorded(path, completions)


def plan_rows(path: Path) -> list[TrainRow]:
    """Return the rows of a set for OPERA's Plan agent. Raises `DataError` if the set is for another agent."""
    rows = read_rows(path)
    for number, row in enumerate(rows, start=1):
        if row.agent != "plan" or row.sub_queries:
            raise DataError(f"{path} row {number} asks for no goals: build the set with pyrag train data goals")
    return rows


@dataclass(slots=True)
class Counts:
    """Counts of a build.

    Attributes:
        unscored: Runs that failed outside the candidate, such as with an unavailable retriever.
        without: Questions without any stored candidate.
    """

    questions: int = 0
    candidates: int = 0
    stored: int = 0
    duplicates: int = 0
    unscored: int = 0
    without: int = 0
    scores: list[float] = field(default_factory=list)


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
    """Add candidates for all rows that the file does not cover yet.

    Args:
        rows: Rows of OPERA's Plan agent.
        out: File of candidates, which is resumed if it exists.
        author: Author of the completions.
        environment: Environment that runs the completions.
        embedder: Embedder used to compare plans.
        near: Minimum cosine similarity of two plans that count as duplicates.
        tell: Called with the counts after each question.

    Raises:
        ServiceError: The author failed.
        UsageError: Another process adds to the file.
    """
    counts = Counts()
    with _appended(out) as file:
        done = {candidate.key for candidate in read_candidates(out)}
        todo = (row for row in rows if (row.source, row.id) not in done)
        async for candidates in _side_by_side(todo, author, environment, embedder, near, counts):
            _keep(file, candidates)
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
    """Return all candidates of one question that are worth storing."""
    written = list(dict.fromkeys(await author.write(row)))
    scored = [
        candidate
        for text in written
        if (candidate := await _scored(text, row, environment, author.name, counts)) is not None
    ]
    distinct_candidates = await _without_duplicates(scored, embedder, near)
    counts.questions += 1
    counts.candidates += len(written)
    counts.stored += len(distinct_candidates)
    counts.duplicates += len(scored) - len(distinct_candidates)
    counts.without += not distinct_candidates
    counts.scores += [candidate.score for candidate in distinct_candidates]
    return distinct_candidates


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
    """Return candidates without near-duplicates.

    Plans are compared by the texts of their goals; other completions by their whole text.
    """
    if len(candidates) < 2:
        return list(candidates)
    texts = [
        "\n".join(goal.text for goal in read_plan(candidate.completion).goals) or candidate.completion
        for candidate in candidates
    ]
    vectors = await embedder.embed_passages(texts)
    return distinct(candidates, (vectors @ vectors.T).tolist(), near)


def _appended(path: Path) -> IO[bytes]:
    """Open the file after its last complete line. Raises `DataError` if the rest is not an incomplete candidate."""
    make_folder(path.parent)
    path.touch()
    torn = path.read_bytes().rpartition(b"\n")[2]
    if not _BEGINNING.startswith(torn[: len(_BEGINNING)]):
        raise DataError(f"{path} is not a file of candidates: name another one with --out")
    return locked_lines(path)


def _keep(file: IO[bytes], candidates: Sequence[Candidate]) -> None:
    import msgspec

    append(
        file, *(msgspec.json.encode(replace(candidate, score=round(candidate.score, 6))) for candidate in candidates)
    )
