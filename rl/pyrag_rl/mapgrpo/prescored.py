"""The file of pre-scored candidates (OPERA, appendix A): completions of a Plan agent, each executed and scored before.

One JSON object a line. A training run takes the best of each question (equation 11); how the others scored is there to
be looked at. Left out: where candidates come from (`candidates`), and how one enters a group (`pyrag_rl.verl.loops`).
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
    """`id` and `source` are the question's and its set's; the parts of the score go from 0 to 1 (equation 14)."""

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
    origin: str = ""  # the model or file that it came from

    @property
    def key(self) -> tuple[str, str]:
        return self.source, self.id


def read_candidates(path: Path) -> Iterator[Candidate]:
    """Candidates of a file; a last line that a killed builder left half-written is none. Raises `DataError`."""
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
        raise DataError(f"{path} line {number} is no candidate ({error}): {cure}") from error


@functools.cache
def best_of(path: Path, least: float) -> dict[tuple[str, str], Candidate]:
    """Return the best candidate by question. Each file is read once a process.

    Args:
        path: the file of candidates.
        least: lowest score that counts.
    """
    best: dict[tuple[str, str], Candidate] = {}
    for one in read_candidates(path):
        if one.score >= least and (one.key not in best or one.score > best[one.key].score):
            best[one.key] = one
    return best


def distinct(candidates: Sequence[Candidate], similar: Sequence[Sequence[float]], most: float) -> list[Candidate]:
    """Drop near-duplicates, keeping the one with the higher score.

    Args:
        candidates: all of one question.
        similar: [candidates, candidates] cosines.
        most: similarity from which two are duplicates.
    """
    kept: list[int] = []
    for place in sorted(range(len(candidates)), key=lambda one: (-candidates[one].score, one)):
        if all(similar[place][other] < most for other in kept):
            kept.append(place)
    return [candidates[place] for place in sorted(kept)]
