"""One example of training data, and its form in Parquet as verl's `RLHFDataset` reads it.

    prompt          list of {role, content}: the very messages that the agent sends at run time (`pyrag_rl.prompting`)
    data_source     name of the data set, for verl's metrics
    reward_model    {style: "rule", ground_truth: first gold spelling}
    extra_info      everything else of the row; what `compute_score` reads
    agent_name      verl's agent loop: single_turn_agent, or program_agent where repairs are trained

SFT sets hold one column `messages`, as verl's `MultiTurnSFTDataset` reads it: the prompt and the reply to learn.
Left out: where rows come from (`pyrag_rl.data`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyrag.errors import ConfigError, DataError
from pyrag.llm.protocol import Message
from pyrag.trace import Passage

SINGLE_TURN = "single_turn_agent"
PROGRAM_LOOP = "program_agent"
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
    """What one agent is asked, and what it takes to score its completion.

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
    sufficient: bool | None = None  # MAPGRPO's Analysis-Answer: whether the documents hold the answer

    @property
    def asked(self) -> str:
        return self.query or self.question


def as_columns(row: TrainRow, *, loop: str = SINGLE_TURN) -> dict[str, Any]:
    """The row in verl's layout."""
    extra = asdict(row)
    extra.pop("messages")
    return {
        "prompt": [{"role": message.role, "content": message.content} for message in row.messages],
        "data_source": row.source,
        "reward_model": {"style": "rule", "ground_truth": row.answers[0]},
        "extra_info": extra,
        "agent_name": loop,
    }


def row_of(extra_info: Mapping[str, Any]) -> TrainRow:
    """The row that verl hands to a reward or agent loop, without its prompt. Raises `DataError`."""
    import msgspec

    try:
        return msgspec.convert({**_plain(extra_info), "messages": ()}, TrainRow)
    except msgspec.ValidationError as error:
        raise DataError(f"a training row has a wrong form ({error}): build it with pyrag train data") from error


def write_rows(path: Path, rows: Iterable[TrainRow], *, loop: str = SINGLE_TURN) -> int:
    """Writes a training set; returns the number of rows. Raises `DataError` where a row has no gold answer."""
    kept = []
    for row in rows:
        if not any(answer.strip() for answer in row.answers):
            raise DataError(f"the row {row.id!r} has no gold answer: add one, or leave the question out")
        kept.append(as_columns(row, loop=loop))
    _write(path, kept, rows_schema())
    return len(kept)


def write_sft(path: Path, examples: Iterable[tuple[Sequence[Message], str]]) -> int:
    """Writes a supervised set of (prompt, reply) pairs; returns their number."""
    kept = [
        {"messages": [{"role": one.role, "content": one.content} for one in (*prompt, Message("assistant", reply))]}
        for prompt, reply in examples
    ]
    _write(path, kept, None)
    return len(kept)


def read_rows(path: Path) -> list[TrainRow]:
    """The rows of a training set, their prompts included. Raises `DataError`."""
    import msgspec

    found = []
    for number, columns in enumerate(_read(path, COLUMNS), start=1):
        row = {**columns["extra_info"], "messages": columns["prompt"]}
        try:
            found.append(msgspec.convert(row, TrainRow))
        except msgspec.ValidationError as error:
            raise DataError(
                f"{path} row {number} has a wrong form ({error}): build it with pyrag train data"
            ) from error
    return found


def rows_schema() -> Any:
    """The Parquet schema of `as_columns`: fixed, so that a set whose optional fields are all empty reads the same."""
    pa = _pyarrow()
    text, texts = pa.string(), pa.list_(pa.string())
    document = pa.struct([(name, text) for name in ("id", "title", "text")])
    extra = [
        ("index", pa.int64()), ("id", text), ("agent", text), ("source", text), ("question", text), ("answers", texts),
        ("split", text), ("query", text), ("documents", pa.list_(document)), ("sub_queries", texts),
        ("supporting", texts), ("tried", texts), ("missing", text), ("sufficient", pa.bool_()),
    ]  # fmt: skip
    message = pa.struct([("role", text), ("content", text)])
    return pa.schema(
        [
            ("prompt", pa.list_(message)),
            ("data_source", text),
            ("reward_model", pa.struct([("style", text), ("ground_truth", text)])),
            ("extra_info", pa.struct(extra)),
            ("agent_name", text),
        ]
    )


def _write(path: Path, rows: list[dict[str, Any]], schema: Any) -> None:
    pa = _pyarrow()
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def _read(path: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    pa = _pyarrow()
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"cannot read the training set {path} ({error}): build it with pyrag train data") from error
    if missing := [name for name in columns if name not in table.column_names]:
        raise DataError(f"{path} has no column {missing[0]!r}: build it with pyrag train data")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


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
        raise ConfigError("training sets are Parquet files: pip install 'pyrag[rl]'") from error
    return pa
