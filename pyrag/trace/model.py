"""Data of one answered question, which every part of pyrag produces or reads, without behaviour of its own.

The command line, benchmarks and rewards only look at a `Trace`. `pyrag.trace.codec` converts it from and to JSON;
`version` is the version of this format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from typing import Any

from pyrag._io.lines import lines_of
from pyrag.trace.coverage import Coverage

TRACE_VERSION = 1
UNKNOWN = "unknown"
UNPLANNED = "fallback"  # origin of a program that no agent wrote
BUNDLED_CORPUS = "bundled corpus"  # part of the name of the retriever that searches it
NO_VALUE = "no answer: "  # beginning of the warning with a program's reason for an unknown answer
NOT_BELIEVED = "not believed"  # beginning of the rationale of an answer without evidence
# On the bundled mini sets, 38 of 49 answers of the embedded engine below this are right, and all 55 others.
MIN_CONFIDENCE = 0.5
_ASSIGNED = re.compile(r"\s*(\w+) = ")
_MAX_TEXT = 80  # characters of a text on one line of a REPL
_MAX_CARD = 600  # characters of a passage in a notebook


def shorten(text: str, limit: int = 100) -> str:
    """Put a text on one line, and cut it to a maximum length.

    Args:
        text: Any text.
        limit: Maximum length in characters; a cut text ends with "…".
    """
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


@dataclass(frozen=True, slots=True, repr=False)
class Passage:
    """Retrieved text. `id` identifies it across retrievals; `score` is the retriever's score."""

    id: str
    title: str
    text: str
    score: float = 0.0
    source: str = ""  # file or address it came from, where known
    parts: dict[str, float] = field(default_factory=dict, hash=False)  # score from each part of a hybrid retriever
    start: int | None = None  # first character of the passage in its source's text
    end: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)  # further fields of the record it came from

    @property
    def place(self) -> str:
        """Place of the passage in its source: `notes/mill.md:19-70`, in characters of the text; empty if unknown."""
        return self.source if self.start is None else f"{self.source}:{self.start}-{self.end}"

    def __repr__(self) -> str:
        """Return id, title, the beginning of the text and the score, since whole passages fill a screen."""
        return f"Passage({self.id!r}, {self.title!r}, {shorten(self.text, _MAX_TEXT)!r}, score={self.score:g})"

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.title, self.text, f"({self.place})" if self.place else "")))

    def _repr_html_(self) -> str:
        """Return the view in notebooks; any text may be hostile."""
        shown = self.text if len(self.text) <= _MAX_CARD else f"{self.text[: _MAX_CARD - 1]}…"
        below = f"<br><small>{escape(self.place)}</small>" if self.place else ""
        return f"<div><b>{escape(self.title)}</b><br>{escape(shown)}{below}</div>"


@dataclass(frozen=True, slots=True)
class Usage:
    """Cost of a question. Seconds are wall time; `cost` is in the currency of the prices, or None without prices.

    Cached replies count as `cached_calls` with `cached_tokens`, not as model calls and tokens. `unused_calls` and
    `unused_retrievals` are the calls and retrievals (included in the totals) that were speculative and not needed.
    """

    model_calls: int = 0
    retrievals: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    cached_calls: int = 0
    cost: float | None = None
    cached_tokens: int = 0
    unused_calls: int = 0
    unused_retrievals: int = 0
    tool_calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.model_calls + other.model_calls,
            self.retrievals + other.retrievals,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.seconds + other.seconds,
            self.cached_calls + other.cached_calls,
            None if self.cost is None and other.cost is None else (self.cost or 0.0) + (other.cost or 0.0),
            self.cached_tokens + other.cached_tokens,
            self.unused_calls + other.unused_calls,
            self.unused_retrievals + other.unused_retrievals,
            self.tool_calls + other.tool_calls,
        )


@dataclass(frozen=True, slots=True)
class RoleUsage:
    """Requests of one role (an agent's, or `retrieve`), and the total seconds spent waiting, even in parallel."""

    requests: int = 0
    seconds: float = 0.0

    def __add__(self, other: RoleUsage) -> RoleUsage:
        return RoleUsage(self.requests + other.requests, self.seconds + other.seconds)


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of `answer`. `known` is False if the evidence was insufficient; `text` is then "unknown".

    `citations` are ids of passages, in the order in which the answer cites them.
    """

    text: str
    known: bool = True
    citations: tuple[str, ...] = ()
    confidence: float | None = None  # in [0, 1], from engines that have one

    @property
    def weak(self) -> bool:
        """True for a known answer with a confidence below `MIN_CONFIDENCE`."""
        return self.known and self.confidence is not None and self.confidence < MIN_CONFIDENCE

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Return the view in notebooks, with an unknown answer in italics; the text may be hostile."""
        sure = f" <small>confidence {self.confidence:.2f}</small>" if self.known and self.confidence is not None else ""
        mark = "b" if self.known else "i"
        return f"<div><{mark}>{escape(self.text)}</{mark}>{sure}</div>"


@dataclass(frozen=True, slots=True)
class Attempt:
    """Try at a step: the first try, or a rung of the recovery ladder.

    `topk` is None for the first try, and for a rewritten query that was not searched for because it had been tried
    before.
    """

    policy: str  # "first", "boost", "rewrite"
    query: str
    topk: int | None = None
    passages: tuple[str, ...] = ()
    answer: Answer | None = None
    usage: Usage = Usage()
    rationale: str = ""  # reason for the answer, or for its absence
    missing: str = ""  # information that the passages lack, if the answerer reports it
    strategy: str = ""  # for a rewrite: description of the change
    keywords: tuple[str, ...] = ()  # for a rewrite: terms that it added


@dataclass(frozen=True, slots=True)
class Step:
    """Call of a primitive as it happened. Times are seconds since the question was asked."""

    id: int
    primitive: str
    query: str
    line: int = 0
    round: int = 0  # index into Trace.programs
    topk: int | None = None
    where: str = ""  # for retrieve: the program's own filter, which narrows the caller's
    passages: tuple[str, ...] = ()  # ids of the passages retrieved, or passed to `answer` or `write`
    # For answer: "evidence" or "aggregation"; for write: the template; for a tool: "data" or "documents"; "each".
    mode: str = ""
    output: str = ""  # for write: the text; for a tool: the result as JSON
    answer: Answer | None = None
    attempts: tuple[Attempt, ...] = ()
    depends_on: tuple[int, ...] = ()
    started: float = 0.0
    seconds: float = 0.0
    usage: Usage = Usage()
    memo: bool = False  # True if the result of an equal step of this question was reused, at no cost
    error: str = ""
    rationale: str = ""  # for answer: reason of its last attempt
    coverage: Coverage | None = None  # for each

    @property
    def tries(self) -> tuple[Attempt, ...]:
        """All attempts; a single one if the step was not tried again."""
        once = Attempt("first", self.query, None, self.passages, self.answer, self.usage, self.rationale)
        return self.attempts or (once,)


@dataclass(frozen=True, slots=True)
class Program:
    """Source code that calls the primitives, with its origin and outcome. `error` is the message for its planner."""

    source: str
    planner: str
    origin: str = "plan"  # "plan", "check" (rewritten after a plan check), "repair", "fallback", "caller"
    error: str = ""
    output: str = ""
    rationale: str = ""  # the planner's own comment on its plan


@dataclass(frozen=True, slots=True)
class Citation:
    """Passage that the final answer is based on, and the step that cited it. `number` counts from 1."""

    number: int
    passage: str
    step: int

    def __str__(self) -> str:
        return f"[{self.number}] {self.passage}"


@dataclass(frozen=True, slots=True)
class TraceError:
    """Reason why a question failed: `kind` as in `pyrag.errors`, `message` one sentence with advice.

    `cause` is `ProgramFailedError.cause` for a failed program, and "context" for a prompt longer than the model's
    window. `line` and `source_line` are the line of a caller's own program that failed, if it failed at a line.
    """

    kind: str
    message: str
    exit_code: int = 1
    cause: str = ""
    line: int | None = None
    source_line: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Recorded request to an agent or retriever with its reply; `key` identifies the request."""

    role: str
    key: str
    request: dict[str, Any]
    reply: dict[str, Any]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchedIndex:
    """Index behind a retriever, if the retriever knows it. `fingerprint` changes with the index's content.

    `name` is the retriever's own name, without secrets; for a server, only the address is known.
    """

    name: str = ""
    kind: str = ""  # "bm25", "hybrid", "http", …
    generation: str = ""
    fingerprint: str = ""
    passages: int | None = None


RecordedEvent = dict[str, Any]
"""An event as `pyrag.trace.event_codec` writes it: its name under `event`, seconds under `at`, then its fields."""


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """Everything about one question. Without an answer, `answer.known` is False, and `error` gives the reason.

    `weak` marks a known answer with low confidence. `remark` is one sentence about a weak or unknown answer: the
    reason, and what to try. It is empty for other answers. For a caller's own program, and for a question with a type,
    `value` is the value of `final_answer`, and `item_citations` holds the citation numbers of each item in a list (by
    position) or dict (by key). `returns` is the requested type, as a name or JSON schema. `depends_on` holds the ids of
    the steps that the answer depends on, directly or through other steps; its confidence is derived from theirs.
    """

    question: str
    answer: Answer
    method: str = "pyrag"
    engine: str = ""
    retriever: str = ""
    sub_queries: tuple[str, ...] = ()
    programs: tuple[Program, ...] = ()
    steps: tuple[Step, ...] = ()
    citations: tuple[Citation, ...] = ()
    passages: dict[str, Passage] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    error: TraceError | None = None
    exchanges: tuple[Exchange, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    version: int = TRACE_VERSION
    # A method's own data, as plain data under its name; see `pyrag.trace.extensions`.
    extensions: dict[str, Any] = field(default_factory=dict)
    roles: dict[str, RoleUsage] = field(default_factory=dict)
    fallbacks: tuple[str, ...] = ()  # roles whose plan was the fallback, such as "decompose"
    started_at: str = ""  # wall clock, UTC, as 2026-11-23T16:01:00.000Z
    pyrag_version: str = ""
    index: SearchedIndex | None = None
    said: str = ""  # the user's last message, if `question` was derived from a conversation
    # Events as observers saw them, without data of steps, programs and answer: `pyrag.trace.event_codec` restores it.
    events: tuple[RecordedEvent, ...] = ()
    weak: bool = False
    remark: str = ""
    value: Any = None
    item_citations: dict[str, tuple[int, ...]] = field(default_factory=dict)
    returns: Any = None
    depends_on: tuple[int, ...] = ()

    @property
    def program(self) -> str:
        """Source of the program that ran last; empty if none was written."""
        return self.programs[-1].source if self.programs else ""

    def variable_of(self, step: Step) -> str:
        """Return the last program's variable that holds a step's result; empty for steps of other programs."""
        lines = lines_of(self.program) if step.round == len(self.programs) - 1 else []
        assignment = _ASSIGNED.match(lines[step.line - 1]) if 0 < step.line <= len(lines) else None
        return assignment[1] if assignment else ""

    @property
    def coverage(self) -> tuple[Coverage, ...]:
        """Coverage of each call of `each`, in the order of the steps."""
        return tuple(step.coverage for step in self.steps if step.coverage is not None)

    @property
    def complete(self) -> bool:
        """False if a call of `each` skipped items because of a limit."""
        return all(coverage.complete for coverage in self.coverage)

    @property
    def repairs(self) -> int:
        """Number of programs after the first."""
        return max(len(self.programs) - 1, 0)

    def __repr__(self) -> str:
        """Return one line, since a whole trace fills many screens."""
        answer = repr(shorten(self.answer.text, _MAX_TEXT))
        end = f"failed: {shorten(self.error.message, _MAX_TEXT)}" if self.error else answer
        steps, cited = len(self.steps), len(self.citations)
        counts = f"{steps} {'step' if steps == 1 else 'steps'}, {cited} {'citation' if cited == 1 else 'citations'}"
        return f"<Trace {shorten(self.question, _MAX_TEXT)!r} → {end} ({counts}, {self.usage.seconds:.2f} s)>"

    def __str__(self) -> str:
        lines = [self.question, f"→ {self.answer.text}", *([f"✗ {self.error.message}"] if self.error else [])]
        lines += [f"! {self.remark}"] if self.remark else []
        cited = ((citation.number, self.passages.get(citation.passage)) for citation in self.citations)
        sources = (
            (number, passage.title or passage.id, passage.text) for number, passage in cited if passage is not None
        )
        return "\n".join([*lines, *(f"[{n}] {title}: {shorten(text, _MAX_TEXT)}" for n, title, text in sources)])

    def _repr_html_(self) -> str:
        """Return the view in notebooks."""
        from pyrag.trace.html import to_frame

        return to_frame(self)
