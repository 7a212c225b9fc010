"""Rows of training data, and their form in Parquet as verl's `RLHFDataset` reads it.

    prompt          list of {role, content}: the messages that the agent sends at run time (`pyrag_rl.prompting`)
    data_source     name of the data set, for verl's metrics
    reward_model    {style: "rule", ground_truth: first gold spelling}
    extra_info      all other fields of the row, which `compute_score` reads

The configuration, not the row, determines the agent loop.

Supervised sets have the columns `messages` (the prompt and the reply to learn, as verl's `MultiTurnSFTDataset` reads
it) and `source`, `id` and `question`, which identify held-out questions.
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

_ROW_GROUP = 512  # number of rows in memory at a time
COLUMNS = ("prompt", "data_source", "reward_model", "extra_info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Passage of a row. Its `id` is the corpus's id, so that gold passages can be recognised."""

    id: str
    title: str
    text: str

    def passage(self) -> Passage:
        return Passage(self.id, self.title, self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRow:
    """Prompt of an agent, with all data needed to score a completion.

    `question` is the user's question. `query` is the question that the agent receives, if it differs: a sub-query, or
    the question of a synthesis step. `documents` is None if the agent answers without documents (aggregation mode), and
    empty if a search returned none.
    """

    index: int  # position in the set, verl's `extra_info.index`
    id: str  # id of the question in its data set
    agent: str  # answer | plan | decompose | rewrite
    source: str  # name of the data set
    question: str
    answers: tuple[str, ...]  # all gold spellings; never empty
    messages: tuple[Message, ...]  # the prompt
    split: str = "train"
    query: str = ""
    documents: tuple[Document, ...] | None = None  # answer, rewrite
    sub_queries: tuple[str, ...] = ()  # plan: sub-queries of the Decompose agent
    supporting: tuple[str, ...] = ()  # ids of the gold passages, if known (rewrite)
    tried: tuple[str, ...] = ()  # rewrite: queries that did not find the evidence
    missing: str = ""  # rewrite: what the passages lack
    hops: int = 0  # number of searches that the question needs, if its data set states it (MAPGRPO's f_logic)
    sufficient: bool | None = None  # MAPGRPO's Analysis-Answer: whether the documents contain the answer

    @property
    def asked(self) -> str:
        return self.query or self.question


def as_columns(row: TrainRow) -> dict[str, Any]:
    """Return the row in verl's layout."""
    extra = asdict(row)
    extra.pop("messages")
    return {
        "prompt": [{"role": message.role, "content": message.content} for message in row.messages],
        "data_source": row.source,
        "reward_model": {"style": "rule", "ground_truth": row.answers[0]},
        "extra_info": extra,
    }


def row_of(extra_info: Mapping[str, Any]) -> TrainRow:
    """Return the row that verl passes to a reward or agent loop, without its prompt. Raises `DataError` if damaged."""
    import msgspec

    try:
        return msgspec.convert({**_plain(extra_info), "messages": ()}, TrainRow)
    except msgspec.ValidationError as error:
        raise DataError(f"a training row has a wrong form ({error}): build it with pyrag train data") from error


def forget_unfinished(path: Path) -> None:
    """Remove partial files that killed processes left behind. Call this only if no other process writes the file."""
    for partial in path.parent.glob(f".{glob.escape(path.name)}.*"):
        if partial.suffix.removeprefix(".").isdigit():
            partial.unlink(missing_ok=True)


def write_rows(path: Path, rows: Iterable[TrainRow]) -> int:
    """Write a training set, and return its number of rows.

    Args:
        path: The Parquet file.
        rows: Rows with their prompts, whose `index` is set again.

    Raises:
        DataError: A row has no gold answer.
    """
    with RowWriter(path) as writer:
        for row in rows:
            writer.add(row)
    return writer.count


class RowWriter:
    """Writer of a training set, which keeps one batch of rows in memory and sets their `index`.

    The file gets its name when it is complete; after an exception or a kill, a hidden file remains next to it.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        self._parts = _Parts(path, rows_schema())

    def add(self, row: TrainRow, reply: str = "") -> None:
        """Add a row.

        Args:
            row: A row with its prompt.
            reply: Ignored, because only completions are scored.

        Raises:
            DataError: The row has no gold answer.
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
    """Row of a supervised set. The question's fields are empty if the set does not have them."""

    messages: tuple[Mapping[str, str], ...]
    source: str = ""
    id: str = ""
    question: str = ""


class SftWriter:
    """Writer of a supervised set, with the prompts of rows and the replies to learn; works like `RowWriter`."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        pa = _pyarrow()
        named = [(name, pa.string()) for name in ("source", "id", "question")]
        self._parts = _Parts(path, pa.schema([("messages", pa.list_(_message())), *named]))

    def add(self, row: TrainRow, reply: str) -> None:
        """Add the conversation of a row.

        Args:
            row: A row with its prompt.
            reply: The reply to learn.
        """
        conversation = (*row.messages, Message("assistant", reply))
        messages = tuple({"role": message.role, "content": message.content} for message in conversation)
        self.add_conversation(Conversation(messages=messages, source=row.source, id=row.id, question=row.question))

    def add_conversation(self, conversation: Conversation) -> None:
        self._parts.add(asdict(conversation))
        self.count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        self._parts.close(keep=failure is None)


class _Parts:
    """Parquet file written in row groups."""

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
    """Return the rows of a training set with their prompts. Raises `DataError` if it cannot be read."""
    import msgspec

    rows = []
    with _parquet(path, COLUMNS) as file:
        table = file.read().to_pylist()
    for number, columns in enumerate(table, start=1):
        extra = columns["extra_info"]
        row = {**extra, "messages": columns["prompt"]} if isinstance(extra, dict) else extra
        try:
            rows.append(msgspec.convert(row, TrainRow))
        except msgspec.ValidationError as error:
            raise DataError(
                f"{path} row {number} has a wrong form ({error}): build it with pyrag train data"
            ) from error
    return rows


def read_conversations(path: Path) -> list[Conversation]:
    """Return the rows of a supervised set. Raises `DataError` if it cannot be read."""
    import msgspec

    with _parquet(path, ("messages",)) as file:
        known = [name for name in ("messages", "source", "id", "question") if name in file.schema_arrow.names]
        table = file.read(columns=known).to_pylist()
    try:
        conversations = msgspec.convert(table, list[Conversation])
    except msgspec.ValidationError as error:
        raise DataError(f"{path} has a wrong form ({error}): build it with pyrag train data --sft") from error
    for number, conversation in enumerate(conversations, start=1):
        if not conversation.messages or conversation.messages[-1].get("role") != "assistant":
            raise DataError(f"{path} row {number} does not end with a reply to learn: leave it out")
    return conversations


def write_conversations(path: Path, conversations: Iterable[Conversation]) -> None:
    """Write a supervised set.

    Args:
        path: The Parquet file.
        conversations: Rows of the set.
    """
    with SftWriter(path) as writer:
        for conversation in conversations:
            writer.add_conversation(conversation)


def is_supervised(path: Path) -> bool:
    """Return whether a Parquet file is a supervised set. Raises `DataError` if it cannot be read."""
    with _parquet(path, ()) as file:
        return "messages" in file.schema_arrow.names


def rows_schema() -> Any:
    """Return the Parquet schema of `as_columns`. It is fixed, so that empty optional fields do not change it."""
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
    """Open a Parquet file that must have these columns. Raises `DataError` if it cannot be opened or lacks one."""
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
    """Return a value from pandas or verl as plain data, with arrays as lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ConfigError(f"training sets are Parquet files: {install_extra('rl')}") from error
    return pa
