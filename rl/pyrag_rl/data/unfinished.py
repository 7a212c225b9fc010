"""Rows of the questions that are done, while their training set is not: what a search or a model was asked for once.

    OUT.part/config.json     what is being built (compared when it goes on) and the sessions that worked on it
    OUT.part/results.jsonl   one line a question, in the order in which they are asked

The folder is that of a run (`pyrag.evaluation.runs.folder`), and goes once its set is written.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pyrag._io.jsonl import append, locked_lines, whole_lines
from pyrag.errors import DataError
from pyrag.evaluation.runs.folder import RESULTS, open_folder
from pyrag_rl.data.rows import TrainRow


@dataclass(frozen=True, slots=True)
class QuestionRows:
    """Rows that one question gave, with their prompts; `replies` are those to learn, where there are any."""

    set: str
    id: str
    rows: tuple[TrainRow, ...]
    replies: tuple[str, ...] = ()


class Unfinished:
    """Removed at the end of a session that wrote its set, or found that there is none (`drop`); else what the next
    session goes on with."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] = locked_lines(path)
        self.drop = False

    def done(self) -> Iterator[QuestionRows]:
        """Yield what earlier sessions left. Raises `DataError`."""
        import msgspec

        decoder = msgspec.json.Decoder(QuestionRows)
        for number, line in whole_lines(self._path):
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DataError(
                    f"{self._path} line {number} is damaged ({error}): remove {self._path.parent}"
                ) from error

    def keep(self, asked: Sequence[QuestionRows]) -> None:
        import msgspec

        append(self._file, *map(msgspec.json.encode, asked))

    def close(self) -> None:
        self._file.close()


@contextmanager
def open_unfinished(out: Path, identity: Mapping[str, Any]) -> Iterator[Unfinished]:
    """Open the folder of an unfinished set beside its file.

    Args:
        out: the file of the set.
        identity: the options of the build, compared with those that were begun with.

    Raises:
        UsageError: an unfinished set has other options, or another process builds it.
    """
    folder = out.with_name(f"{out.name}.part")
    with open_folder(folder, identity, {}):
        unfinished = Unfinished(folder / RESULTS)
        try:
            yield unfinished
            unfinished.drop = True
        finally:
            unfinished.close()
            if unfinished.drop:
                shutil.rmtree(folder)
