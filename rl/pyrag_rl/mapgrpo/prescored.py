"""File of pre-scored candidates (OPERA, appendix A): completions of a Plan agent, each executed and scored in advance.

It holds one JSON object per line. A training run uses the best candidate of each question (equation 11); the other
candidates are kept for inspection. `candidates` builds the file, and `pyrag_rl.verl.loops` adds a candidate to a group.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrag._io.jsonl import whole_lines
from pyrag.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Scored completion.

    Attributes:
        id: Id of the question.
        source: Name of the question's set.
        score: Weighted sum of the components, from 0 to 1 (equation 14).
        origin: Model or file that the completion came from.
    """

    id: str
    source: str
    question: str
    completion: str
    score: float
    logic: float = 0.0
    execution: float = 0.0
    answer: float = 0.0
    efficiency: float = 0.0
    placeholders: float = 0.0
    origin: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Set and id of the question."""
        return self.source, self.id


def read_candidates(path: Path) -> Iterator[Candidate]:
    """Yield the candidates of a file, ignoring an incomplete last line. Raises `DataError` if it is damaged."""
    import msgspec

    decoder = msgspec.json.Decoder(Candidate)
    number = 0
    try:
        for number, line in whole_lines(path):  # noqa: B007  named in the error
            yield decoder.decode(line)
    except OSError as error:
        raise DataError(f"cannot read the pre-scored candidates {path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        cure = "build the file with pyrag train prescore"
        raise DataError(f"{path} line {number} is not a candidate ({error}): {cure}") from error


@functools.cache
def best_of(path: Path, minimum: float) -> dict[tuple[str, str], Candidate]:
    """Return the best candidate by question. Each file is read once per process.

    Args:
        path: File of candidates.
        minimum: Minimum score of a candidate.
    """
    best: dict[tuple[str, str], Candidate] = {}
    for candidate in read_candidates(path):
        if candidate.score >= minimum and (candidate.key not in best or candidate.score > best[candidate.key].score):
            best[candidate.key] = candidate
    return best


def distinct(candidates: Sequence[Candidate], similar: Sequence[Sequence[float]], limit: float) -> list[Candidate]:
    """Return candidates without near-duplicates, of which the one with the higher score is kept.

    Args:
        candidates: All candidates of one question.
        similar: Cosine similarities of all pairs, shape (candidates, candidates).
        limit: Minimum cosine similarity of two candidates that count as duplicates.
    """
    places: list[int] = []
    for place in sorted(range(len(candidates)), key=lambda index: (-candidates[index].score, index)):
        if all(similar[place][other] < limit for other in places):
            places.append(place)
    return [candidates[place] for place in sorted(places)]
