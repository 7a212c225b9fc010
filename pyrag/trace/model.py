"""The data of one answered question: what every part of pyrag produces or reads, and no behaviour beyond that.

`Trace` is the only thing that the command line, benchmarks and rewards look at; `pyrag.trace.codec` reads and writes
it as JSON, `version` says in which form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from typing import Any

from pyrag._io.lines import lines_of

TRACE_VERSION = 1
UNKNOWN = "unknown"
UNPLANNED = "fallback"  # origin of a program that no agent wrote
BUNDLED_CORPUS = "bundled corpus"  # in the name of the retriever that searches it
NOT_BELIEVED = "not believed"  # beginning of the rationale of an answer without evidence
# Of the embedded engine's answers to the bundled mini sets, 17 of 25 below this are right, and 79 of 81 of the others.
MIN_CONFIDENCE = 0.5
_ASSIGNED = re.compile(r"\s*(\w+) = ")
_MAX_TEXT = 80  # characters on a line of a REPL
_MAX_CARD = 600  # in a notebook


def shorten(text: str, limit: int = 100) -> str:
    """Return the text on one line.

    Args:
        text: Any text.
        limit: Its maximum length in characters; a cut text ends with "…".
    """
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


@dataclass(frozen=True, slots=True, repr=False)
class Passage:
    """One retrieved text. `id` identifies it across retrievals; `score` is the retriever's own."""

    id: str
    title: str
    text: str
    score: float = 0.0
    source: str = ""  # file or address it came from, where known
    parts: dict[str, float] = field(default_factory=dict, hash=False)  # what each part of a hybrid gave it
    start: int | None = None  # the characters of the source's text that it was made of
    end: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)  # further fields of the record it came from

    @property
    def place(self) -> str:
        """The passage's place in its source: `notes/mill.md:19-70`, in characters of the text; empty if unknown."""
        return self.source if self.start is None else f"{self.source}:{self.start}-{self.end}"

    def __repr__(self) -> str:
        """Return id, title, the beginning of the text and the score: whole passages fill a screen."""
        return f"Passage({self.id!r}, {self.title!r}, {shorten(self.text, _MAX_TEXT)!r}, score={self.score:g})"

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.title, self.text, f"({self.place})" if self.place else "")))

    def _repr_html_(self) -> str:
        """Return the view that notebooks show; any text may be hostile."""
        shown = self.text if len(self.text) <= _MAX_CARD else f"{self.text[: _MAX_CARD - 1]}…"
        below = f"<br><small>{escape(self.place)}</small>" if self.place else ""
        return f"<div><b>{escape(self.title)}</b><br>{escape(shown)}{below}</div>"


@dataclass(frozen=True, slots=True)
class Usage:
    """Expenses of a question. Seconds are wall time; `cost` is in the currency of the prices given, None without them.

    Replies from the cache are `cached_calls` with `cached_tokens`, and neither model calls nor tokens. `unused_calls`
    and `unused_retrievals` are those among the others that were begun ahead of the program and not needed by it.
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
    """Requests of one role (an agent's, or `retrieve`) and the seconds spent waiting for them, side by side or not."""

    requests: int = 0
    seconds: float = 0.0

    def __add__(self, other: RoleUsage) -> RoleUsage:
        return RoleUsage(self.requests + other.requests, self.seconds + other.seconds)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of `answer`. `known` is False where the evidence did not suffice; `text` then is "unknown".

    `citations` are ids of passages, in the order in which the answer cites them.
    """

    text: str
    known: bool = True
    citations: tuple[str, ...] = ()
    confidence: float | None = None  # in [0, 1], from engines that have one

    @property
    def weak(self) -> bool:
        """True for a known answer below `MIN_CONFIDENCE`."""
        return self.known and self.confidence is not None and self.confidence < MIN_CONFIDENCE

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Return the view that notebooks show: an unknown answer in italics; the text may be hostile."""
        sure = f" <small>confidence {self.confidence:.2f}</small>" if self.known and self.confidence is not None else ""
        mark = "b" if self.known else "i"
        return f"<div><{mark}>{escape(self.text)}</{mark}>{sure}</div>"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a step: the first, or one of the recovery ladder.

    `topk` is None for the first, and where a rewritten query had been asked before, so that nothing came of it.
    """

    policy: str  # "first", "boost", "rewrite"
    query: str
    topk: int | None = None
    passages: tuple[str, ...] = ()
    answer: Answer | None = None
    usage: Usage = Usage()
    rationale: str = ""  # why the answer is one, or is none
    missing: str = ""  # what the passages lack, where the answerer says so
    strategy: str = ""  # of a rewrite: what was changed in the query
    keywords: tuple[str, ...] = ()  # of a rewrite


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a primitive as it happened. Times are seconds since the question was asked."""

    id: int
    primitive: str
    query: str
    line: int = 0
    round: int = 0  # index into Trace.programs
    topk: int | None = None
    where: str = ""  # for retrieve: the program's own filter, besides the caller's
    passages: tuple[str, ...] = ()  # ids: those retrieved, or those given to `answer` or `write`
    mode: str = ""  # for answer: "evidence" or "aggregation"; for write: the template; of tools: "data", "documents"
    output: str = ""  # for write: the text; for a tool: the result as JSON
    answer: Answer | None = None
    attempts: tuple[Attempt, ...] = ()
    depends_on: tuple[int, ...] = ()
    started: float = 0.0
    seconds: float = 0.0
    usage: Usage = Usage()
    memo: bool = False  # True: taken from an equal step of this question, at no cost
    error: str = ""
    rationale: str = ""  # for answer: why its last attempt decided as it did

    @property
    def tries(self) -> tuple[Attempt, ...]:
        """All attempts; a step that was not tried again has one."""
        once = Attempt("first", self.query, None, self.passages, self.answer, self.usage, self.rationale)
        return self.attempts or (once,)


@dataclass(frozen=True, slots=True)
class Program:
    """Source over the primitives, where it came from and how it fared. `error` is what its planner was told."""

    source: str
    planner: str
    origin: str = "plan"  # "plan", "check" (rewritten after a plan check), "repair" (after an error), "fallback"
    error: str = ""
    output: str = ""
    rationale: str = ""  # the planner's own words on its plan


@dataclass(frozen=True, slots=True)
class Citation:
    """A passage that the final answer rests on, and the step that cited it. `number` counts from 1."""

    number: int
    passage: str
    step: int

    def __str__(self) -> str:
        return f"[{self.number}] {self.passage}"


@dataclass(frozen=True, slots=True)
class TraceError:
    """The reason why a question failed: `kind` as in `pyrag.errors`, `message` one sentence with the cure.

    `cause` of a failed program is that of `ProgramFailedError`; of a prompt longer than the model's window, "context".
    """

    kind: str
    message: str
    exit_code: int = 1
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request to an agent or retriever with its reply, as recorded; `key` identifies the request."""

    role: str
    key: str
    request: dict[str, Any]
    reply: dict[str, Any]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchedIndex:
    """The index behind a retriever, as far as that knows. `fingerprint` changes with the content of the index.

    `name` is the retriever's own, without secrets; a server is known by its address alone.
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
    """Everything about one question. `answer.known` is False, and `error` set, where there is no answer.

    `weak` marks a known answer of little confidence. `remark` is one sentence on a weak or unknown answer: why, and
    what to try; it is empty for others.
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
    # What a method keeps of its own, as plain data under its name: see `pyrag.trace.extensions`.
    extensions: dict[str, Any] = field(default_factory=dict)
    roles: dict[str, RoleUsage] = field(default_factory=dict)
    fallbacks: tuple[str, ...] = ()  # roles whose plan was the fallback: "decompose", say
    started_at: str = ""  # wall clock, UTC, as 2026-11-23T16:01:00.000Z
    pyrag_version: str = ""
    index: SearchedIndex | None = None
    said: str = ""  # the user's words, where `question` was made of the last message of a conversation
    # What observers saw; what steps, programs and the answer say is left out: `pyrag.trace.event_codec` joins it.
    events: tuple[RecordedEvent, ...] = ()
    weak: bool = False
    remark: str = ""

    @property
    def program(self) -> str:
        """Source of the program that ran last; empty if none was written."""
        return self.programs[-1].source if self.programs else ""

    def variable_of(self, step: Step) -> str:
        """Return the variable that the last program keeps the outcome of a step in; empty for other programs' steps."""
        lines = lines_of(self.program) if step.round == len(self.programs) - 1 else []
        found = _ASSIGNED.match(lines[step.line - 1]) if 0 < step.line <= len(lines) else None
        return found[1] if found else ""

    @property
    def repairs(self) -> int:
        return max(len(self.programs) - 1, 0)

    def __repr__(self) -> str:
        """Return one line: a whole trace fills many screens."""
        answer = repr(shorten(self.answer.text, _MAX_TEXT))
        end = f"failed: {shorten(self.error.message, _MAX_TEXT)}" if self.error else answer
        steps, cited = len(self.steps), len(self.citations)
        counts = f"{steps} {'step' if steps == 1 else 'steps'}, {cited} {'citation' if cited == 1 else 'citations'}"
        return f"<Trace {shorten(self.question, _MAX_TEXT)!r} → {end} ({counts}, {self.usage.seconds:.2f} s)>"

    def __str__(self) -> str:
        lines = [self.question, f"→ {self.answer.text}", *([f"✗ {self.error.message}"] if self.error else [])]
        lines += [f"! {self.remark}"] if self.remark else []
        cited = ((one.number, self.passages.get(one.passage)) for one in self.citations)
        sources = ((number, one.title or one.id, one.text) for number, one in cited if one is not None)
        return "\n".join([*lines, *(f"[{n}] {title}: {shorten(text, _MAX_TEXT)}" for n, title, text in sources)])

    def _repr_html_(self) -> str:
        """Return the view that notebooks show."""
        from pyrag.trace.html import to_frame

        return to_frame(self)
