"""One example of training data, and its form in Parquet as verl's `RLHFDataset` reads it.

    prompt          list of {role, content}: the very messages that the agent sends at run time (`pyrag_rl.prompting`)
    data_source     name of the data set, for verl's metrics
    reward_model    {style: "rule", ground_truth: first gold spelling}
    extra_info      everything else of the row; what `compute_score` reads

Which agent loop runs a row is the config's to say, not the row's.

SFT sets hold `messages`, as verl's `MultiTurnSFTDataset` reads it: the prompt and the reply to learn; and `source`,
`id` and `question`, by which held-out questions are told.
Left out: where rows come from (`pyrag_rl.data`).
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from pyrag._io.files import AtomicFile
from pyrag.errors import ConfigError, DataError, install_extra
from pyrag.evaluation.runs.folder import make_folder
from pyrag.llm.protocol import Message
from pyrag.trace.model import Passage

_ROW_GROUP = 512  # rows in memory at a time
COLUMNS = ("prompt", "data_source", "reward_model", "extra_info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A passage of a row. Its `id` is the corpus's, so that gold passages can be told."""

    id: str
    title: str
    text: str

    def passage(self) -> Passage:
        return Passage(self.id, self.title, self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRow:
    """One prompt of an agent, with everything that scores its completion.

    `question` is the user's; `query` what the agent itself is asked where that is another (a sub-query, a synthesis
    step). `documents` None means no documents were given (aggregation mode); empty, that nothing was found.
    """

    index: int  # position in the set: verl's `extra_info.index`
    id: str  # the question's, in its data set
    agent: str  # answer | plan | decompose | rewrite
    source: str  # name of the data set
    question: str
    answers: tuple[str, ...]  # all gold spellings; never empty
    messages: tuple[Message, ...]  # the prompt
    split: str = "train"
    query: str = ""
    documents: tuple[Document, ...] | None = None  # answer, rewrite
    sub_queries: tuple[str, ...] = ()  # plan: what the Decompose agent had said
    supporting: tuple[str, ...] = ()  # ids of the gold passages, where known (rewrite)
    tried: tuple[str, ...] = ()  # rewrite: queries that did not bring the evidence
    missing: str = ""  # rewrite: what the passages lack
    hops: int = 0  # searches that the question takes, where its data set says so (MAPGRPO's f_logic)
    sufficient: bool | None = None  # MAPGRPO's Analysis-Answer: whether the documents hold the answer

    @property
    def asked(self) -> str:
        return self.query or self.question


def as_columns(row: TrainRow) -> dict[str, Any]:
    """The row in verl's layout."""
    extra = asdict(row)
    extra.pop("messages")
    return {
        "prompt": [{"role": message.role, "content": message.content} for message in row.messages],
        "data_source": row.source,
        "reward_model": {"style": "rule", "ground_truth": row.answers[0]},
        "extra_info": extra,
    }


def row_of(extra_info: Mapping[str, Any]) -> TrainRow:
    """The row that verl hands to a reward or agent loop, without its prompt. Raises `DataError`."""
    import msgspec

    try:
        return msgspec.convert({**_plain(extra_info), "messages": ()}, TrainRow)
    except msgspec.ValidationError as error:
        raise DataError(f"a training row has a wrong form ({error}): build it with pyrag train data") from error


def forget_unfinished(path: Path) -> None:
    """Removes what killed processes left half-written of a file; for whoever knows that nobody else writes it now."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        if left.suffix.removeprefix(".").isdigit():
            left.unlink(missing_ok=True)


def write_rows(path: Path, rows: Iterable[TrainRow]) -> int:
    """Write a training set and return its number of rows.

    Args:
        path: the Parquet file.
        rows: rows with their prompts; `index` is numbered anew.

    Raises:
        DataError: a row has no gold answer.
    """
    with RowWriter(path) as writer:
        for row in rows:
            writer.add(row)
    return writer.count


class RowWriter:
    """A training set that rows are added to, a batch of them in memory at a time; numbers their `index`.

    It has its name once it is whole: what an exception or a kill leaves behind is a hidden file beside it.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        self._parts = _Parts(path, rows_schema())

    def add(self, row: TrainRow, reply: str = "") -> None:
        """Add a row.

        Args:
            row: a row with its prompt.
            reply: ignored, as only completions are scored.

        Raises:
            DataError: the row has no gold answer.
        """
        if not any(answer.strip() for answer in row.answers):
            raise DataError(f"the row {row.id!r} has no gold answer: add one, or leave the question out")
        self._parts.add(as_columns(replace(row, index=self.count)))
        self.count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        self._parts.close(keep=failure is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A row of a supervised set. The question's fields are empty where the set does not name them."""

    messages: tuple[Mapping[str, str], ...]
    source: str = ""
    id: str = ""
    question: str = ""


class SftWriter:
    """A supervised set: the prompts of rows with the replies to learn, written as `RowWriter` does."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        pa = _pyarrow()
        named = [(name, pa.string()) for name in ("source", "id", "question")]
        self._parts = _Parts(path, pa.schema([("messages", pa.list_(_message())), *named]))

    def add(self, row: TrainRow, reply: str) -> None:
        """Add the conversation of a row.

        Args:
            row: a row with its prompt.
            reply: the reply to learn.
        """
        said = (*row.messages, Message("assistant", reply))
        messages = tuple({"role": one.role, "content": one.content} for one in said)
        self.add_conversation(Conversation(messages=messages, source=row.source, id=row.id, question=row.question))

    def add_conversation(self, one: Conversation) -> None:
        self._parts.add(asdict(one))
        self.count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        self._parts.close(keep=failure is None)


class _Parts:
    """A Parquet file written in row groups."""

    def __init__(self, path: Path, schema: Any) -> None:
        import pyarrow.parquet as pq

        make_folder(path.parent)
        self._target = AtomicFile(path)
        self._schema, self._writer = schema, pq.ParquetWriter(self._target.file, schema)
        self._waiting: list[dict[str, Any]] = []

    def add(self, columns: dict[str, Any]) -> None:
        self._waiting.append(columns)
        if len(self._waiting) == _ROW_GROUP:
            self._flush()

    def close(self, *, keep: bool) -> None:
        if keep and self._waiting:
            self._flush()
        self._writer.close()
        if keep:
            self._target.commit()
        self._target.discard()

    def _flush(self) -> None:
        self._writer.write_table(_pyarrow().Table.from_pylist(self._waiting, schema=self._schema))
        self._waiting.clear()


def read_rows(path: Path) -> list[TrainRow]:
    """The rows of a training set, their prompts included. Raises `DataError`."""
    import msgspec

    found = []
    with _parquet(path, COLUMNS) as file:
        table = file.read().to_pylist()
    for number, columns in enumerate(table, start=1):
        extra = columns["extra_info"]
        row = {**extra, "messages": columns["prompt"]} if isinstance(extra, dict) else extra
        try:
            found.append(msgspec.convert(row, TrainRow))
        except msgspec.ValidationError as error:
            raise DataError(
                f"{path} row {number} has a wrong form ({error}): build it with pyrag train data"
            ) from error
    return found


def read_conversations(path: Path) -> list[Conversation]:
    """Return the rows of a supervised set. Raises `DataError`."""
    import msgspec

    with _parquet(path, ("messages",)) as file:
        known = [name for name in ("messages", "source", "id", "question") if name in file.schema_arrow.names]
        table = file.read(columns=known).to_pylist()
    try:
        found = msgspec.convert(table, list[Conversation])
    except msgspec.ValidationError as error:
        raise DataError(f"{path} has a wrong form ({error}): build it with pyrag train data --sft") from error
    for number, one in enumerate(found, start=1):
        if not one.messages or one.messages[-1].get("role") != "assistant":
            raise DataError(f"{path} row {number} does not end with a reply to learn: leave it out")
    return found


def write_conversations(path: Path, conversations: Iterable[Conversation]) -> None:
    """Write a supervised set.

    Args:
        path: the Parquet file.
        conversations: its rows.
    """
    with SftWriter(path) as writer:
        for one in conversations:
            writer.add_conversation(one)


def is_supervised(path: Path) -> bool:
    """Return whether a Parquet file is a supervised set. Raises `DataError` where it cannot be read."""
    with _parquet(path, ()) as file:
        return "messages" in file.schema_arrow.names


def rows_schema() -> Any:
    """The Parquet schema of `as_columns`: fixed, so that a set whose optional fields are all empty reads the same."""
    pa = _pyarrow()
    text, texts = pa.string(), pa.list_(pa.string())
    document = pa.struct([(name, text) for name in ("id", "title", "text")])
    extra = [
        ("index", pa.int64()), ("id", text), ("agent", text), ("source", text), ("question", text), ("answers", texts),
        ("split", text), ("query", text), ("documents", pa.list_(document)), ("sub_queries", texts),
        ("supporting", texts), ("tried", texts), ("missing", text), ("hops", pa.int64()),
        ("sufficient", pa.bool_()),
    ]  # fmt: skip
    return pa.schema(
        [
            ("prompt", pa.list_(_message())),
            ("data_source", text),
            ("reward_model", pa.struct([("style", text), ("ground_truth", text)])),
            ("extra_info", pa.struct(extra)),
        ]
    )


def _message() -> Any:
    pa = _pyarrow()
    return pa.struct([("role", pa.string()), ("content", pa.string())])


@contextmanager
def _parquet(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    """The file, opened, with these columns. Raises `DataError`."""
    pa = _pyarrow()
    import pyarrow.parquet as pq

    sft = " with --sft" if "messages" in columns else ""
    try:
        with pq.ParquetFile(path) as file:
            if missing := [name for name in columns if name not in file.schema_arrow.names]:
                raise DataError(f"{path} has no column {missing[0]!r}: build it with pyrag train data{sft}")
            yield file
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"cannot read the training set {path} ({error}): build it with pyrag train data{sft}"
        ) from error


def _plain(value: Any) -> Any:
    """Values as pandas or verl hand them on: arrays become lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ConfigError(f"training sets are Parquet files: {install_extra('rl')}") from error
    return pa
