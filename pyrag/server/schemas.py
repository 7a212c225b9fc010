"""Bodies of requests and replies, used for validation and in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta
from pydantic import BaseModel, ConfigDict, Field

from pyrag.retrieval.search_protocol import MAX_QUERIES, MAX_TOPK
from pyrag.server.bodies import MAX_NAME

EVENT_STREAM = "text/event-stream"
QUESTION = "Where is the company that made the film Alpha based?"
PROGRAM = 'docs = retrieve(f"founder of {company}")\nfinal_answer = answer(f"Who founded {company}?", docs)\n'
_PASSAGE = {
    "id": "mill.md#1",
    "title": "The mill",
    "text": "The mill was founded by Ann.",
    "contents": '"The mill"\nThe mill was founded by Ann.',
    "source": "mill.md",
    "start": 0,
    "end": 28,
}


_Name = Annotated[str, Meta(max_length=MAX_NAME)]
_Count = Annotated[int, Meta(ge=1)]
_Amount = Annotated[float, Meta(gt=0)]


_Returns = Annotated[
    str | dict[str, Any] | None,
    Meta(
        description="Type of the value: number, int, date, bool, str, list[str], or a JSON schema.", examples=["number"]
    ),
]


class _Limits(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    index: Annotated[_Name | None, Meta(description="Name of an index; the default one if left out.")] = None
    method: Annotated[_Name | None, Meta(description="Method; the server's own if left out.", examples=["pyrag"])] = (
        None
    )
    deadline: Annotated[_Amount | None, Meta(description="Seconds; lowered to the server's own limit.")] = None
    max_calls: Annotated[_Count | None, Meta(description="Model calls; lowered to the server's own limit.")] = None
    max_tokens: Annotated[_Count | None, Meta(description="Tokens; lowered to the server's own limit.")] = None
    max_cost: Annotated[_Amount | None, Meta(description="Money; only if the server knows prices.")] = None
    topk: Annotated[Annotated[int, Meta(ge=1, le=100)] | None, Meta(description="Passages per sub-query.")] = None
    where: Annotated[
        str | dict[str, Any] | None,
        Meta(description="Filter of passages by their metadata.", examples=['year >= 2020 and team = "ops"']),
    ] = None

    returns: _Returns = None

    def limits(self) -> dict[str, Any]:
        """Return the limits of the request, by the names of settings."""
        return {name: getattr(self, name) for name in ("deadline", "max_calls", "max_tokens", "max_cost", "topk")}


class AskRequest(_Limits, kw_only=True):
    """One question."""

    question: Annotated[str, Meta(min_length=1, description="In English for the embedded engine.", examples=[QUESTION])]
    stream: Annotated[bool, Meta(description="Reply with Server-Sent Events, as `Accept: text/event-stream` does.")] = (
        False
    )
    include_trace: Annotated[bool, Meta(description="Add the whole trace to the reply.")] = False


class BatchRequest(_Limits, kw_only=True):
    """Several questions, answered in parallel."""

    questions: Annotated[list[str], Meta(min_length=1, examples=[[QUESTION]])]
    include_trace: Annotated[bool, Meta(description="Add the whole traces to the reply.")] = False


class ProgramBudget(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Limits on what a program may spend; each is lowered to the server's own limit."""

    calls: Annotated[_Count | None, Meta(description="Model calls; 100 if the server has no limit of its own.")] = None
    tokens: Annotated[_Count | None, Meta(description="Prompt and completion tokens together.")] = None
    seconds: Annotated[_Amount | None, Meta(description="Wall time.")] = None
    cost: Annotated[_Amount | None, Meta(description="Money; only where the server knows prices.")] = None
    tool_calls: Annotated[_Count | None, Meta(description="Calls of tools.")] = None


class ProgramRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Program of the caller."""

    source: Annotated[
        str,
        Meta(min_length=1, description="Python that sets final_answer.", examples=[PROGRAM]),
    ]
    inputs: Annotated[
        dict[str, Any], Meta(description="Values that the program finds by name.", examples=[{"company": "Alpha"}])
    ] = {}
    index: Annotated[_Name | None, Meta(description="Name of an index; the default one if left out.")] = None
    where: Annotated[
        str | dict[str, Any] | None,
        Meta(description="Filter of passages by their metadata.", examples=['year >= 2020 and team = "ops"']),
    ] = None
    budget: ProgramBudget | None = None
    returns: _Returns = None
    stream: Annotated[bool, Meta(description="Reply with Server-Sent Events, as `Accept: text/event-stream` does.")] = (
        False
    )
    include_trace: Annotated[bool, Meta(description="Add the whole trace to the reply.")] = False

    def limits(self) -> dict[str, Any]:
        """Return the budget by the names of settings."""
        budget = self.budget or ProgramBudget()
        return {
            "max_calls": budget.calls,
            "max_tokens": budget.tokens,
            "deadline": budget.seconds,
            "max_cost": budget.cost,
            "max_tool_calls": budget.tool_calls,
        }


class ExplainRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Question, or program of the caller, to estimate."""

    question: Annotated[
        Annotated[str, Meta(min_length=1)] | None, Meta(description="Question to plan.", examples=[QUESTION])
    ] = None
    source: Annotated[
        Annotated[str, Meta(min_length=1)] | None, Meta(description="Program, in place of a question.")
    ] = None
    inputs: Annotated[dict[str, Any], Meta(description="Values that the program finds by name.")] = {}
    index: Annotated[_Name | None, Meta(description="Name of an index; the default one if left out.")] = None
    where: Annotated[
        str | dict[str, Any] | None,
        Meta(description="Filter of passages by their metadata.", examples=['year >= 2020 and team = "ops"']),
    ] = None
    analyze: Annotated[bool, Meta(description="Run the program too, and add what happened.")] = False


class ExplainReply(BaseModel):
    """Program with its estimate. Each amount has `low`, `expected` and `high`."""

    model_config = ConfigDict(extra="allow")

    title: str
    program: str
    lines: list[dict[str, Any]] = Field(description="Lines that call functions, with their amounts and dependencies.")
    calls: dict[str, float] = Field(description="Model calls of the whole program.")
    tokens: dict[str, float]
    seconds: dict[str, float]
    cost: dict[str, float] | None = Field(description="Price of the calls; null if the server has no prices.")
    basis: list[str] = Field(description="Sentences on what was measured, and what is a default.")
    planning: dict[str, Any] = Field(description="Cost of planning, which has been spent.")
    happened: dict[str, Any] | None = Field(description="With `analyze`: what the run cost.")
    error: str = Field(description="Reason why there is no program; empty if there is one.")


class CitationReply(BaseModel):
    """Passage that supports the answer."""

    number: int = Field(description="Number in the text, from 1.")
    id: str
    title: str
    text: str
    source: str = Field(description="Address, or the place below what was indexed; empty if unknown.")
    start: int | None = Field(description="First character of the source's text.")
    end: int | None
    metadata: dict[str, Any] = Field(description="Fields of the record or document that it came from.")
    step: int = Field(description="Step of the program that cited it.")


class CoverageReply(BaseModel):
    """Coverage of a call of `each`."""

    total: int
    answered: int
    unknown: int = Field(description="Items whose answer is unknown.")
    missing: int = Field(description="Items that a limit left out.")
    weak: int = Field(description="Answers that should be checked: their confidence is below 0.5.")
    confidence: float | None = Field(description="Lowest confidence of the answers.")
    what: str = Field(description="Word for the items.", examples=["documents"])
    reason: str = Field(description="Reason why items are missing.")
    unknown_items: list[str] = Field(description="Names of the first 50 of them.")
    missing_items: list[str] = Field(description="Names of the first 50 of them.")
    weak_items: list[str] = Field(description="Names of the first 50 items with a weak answer.")


class AskReply(BaseModel):
    """Answer to a question. If the question failed, `error` is set and the answer is `unknown`."""

    id: str = Field(description="Id of the trace: GET /v1/traces/{id}.")
    question: str
    answer: str
    known: bool
    confidence: float | None
    weak: bool = Field(description="True for a known answer that should be checked: its confidence is below 0.5.")
    remark: str = Field(description="For a weak or unknown answer: the reason, and what to try; otherwise empty.")
    citations: list[CitationReply]
    sub_queries: list[str]
    program: str
    repairs: int
    usage: dict[str, Any]
    warnings: list[str]
    error: dict[str, Any] | None
    method: str
    engine: str
    index: str
    value: Any = Field(None, description="With `returns`: the value in this type; null if the answer is unknown.")
    item_citations: dict[str, list[int]] | None = Field(
        None, description="Numbers of the citations of each item: by position for a list, by key for an object."
    )
    coverage: list[CoverageReply] | None = Field(None, description="Coverage of each call of each(), in order.")
    complete: bool | None = Field(None, description="False if a limit kept a call of each() from some of its items.")
    output: str | None = Field(None, description="With `coverage`: what the program printed, at most 64 KiB.")
    trace: dict[str, Any] | None = None


class ProgramReply(AskReply):
    """The value of a program. A program that failed has `error` with `line` and `source_line`."""

    value: Any = Field(description="Value of final_answer as JSON; null if the program failed.")
    item_citations: dict[str, list[int]] = Field(description="Numbers of each item's citations, by position or key.")
    coverage: list[CoverageReply] = Field(description="Coverage of each call of each(), in order.")
    complete: bool = Field(description="False if a limit kept a call of each() from some of its items.")
    output: str = Field(description="What the program printed, at most 64 KiB.")


class BatchReply(BaseModel):
    """Answers, in the order of the questions."""

    results: list[AskReply]


class TraceLine(BaseModel):
    """Summary of a trace in a list."""

    number: int = Field(description="Increases with each trace; the value for `before`.")
    id: str
    created: float = Field(description="Seconds since the epoch.")
    index: str
    question: str
    answer: str
    known: bool
    error: str = Field(description="Kind of the failure; empty if there is none.")
    seconds: float


class TraceList(BaseModel):
    """Summaries of traces, newest first."""

    traces: list[TraceLine]
    next: int | None = Field(description="`before` of the next page; null after the last one.")


class TraceReply(BaseModel):
    """Trace, in the form that `pyrag trace show` reads from a file."""

    model_config = ConfigDict(extra="allow")

    version: int
    question: str
    answer: dict[str, Any]


class StateReply(BaseModel):
    """State of the server."""

    status: str = Field(examples=["ok"])
    problems: list[str] = Field([], description="Sentences about what is missing.")


class OptionsReply(BaseModel):
    """Choices of a request, and the engine that answers. `examples` are questions about the bundled corpus."""

    version: str
    engine: str
    engine_note: str
    index: str
    indexes: list[str]
    method: str
    methods: list[str]
    examples: list[str]


class ErrorDetail(BaseModel):
    message: str = Field(description="One sentence that names the fault and what to do.")
    type: str = Field(description="OpenAI's name for the class of the status.", examples=["invalid_request_error"])
    param: str | None = Field(None, description="Field of the request that is wrong.")
    code: str = Field(description="Code for programs.", examples=["invalid_request"])


class ErrorReply(BaseModel):
    """Refusal of a request."""

    error: ErrorDetail


class FlatErrorReply(BaseModel):
    """Refusal of a request in Search-R1's protocol."""

    error: str


class ModelLine(BaseModel):
    """Index, listed as a model."""

    id: str = Field(examples=["pyrag"])
    object: str
    created: int
    owned_by: str


class ModelList(BaseModel):
    """Indexes, listed as models."""

    object: str
    data: list[ModelLine]


_RETRY = {"Retry-After": {"description": "Seconds after which to try again.", "schema": {"type": "integer"}}}
_REASONS: dict[int, str] = {
    400: "The request is wrong.",
    401: "The API key is missing or unknown.",
    403: "The host or origin is not this server's, or the key may not write.",
    404: "It does not exist, or belongs to another caller.",
    405: "The path has no such method.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not plain JSON.",
    429: "The queue is full.",
    431: "The head of the request is too large.",
    500: "Internal error; the server's log has the details.",
    502: "A model server or the sandbox failed.",
    503: "The server is starting or shutting down, or a service that it needs failed.",
    504: "The deadline passed.",
}


def refusals(*, flat: bool = False) -> dict[int | str, dict[str, Any]]:
    """Return a route's refusals for the OpenAPI document; with `flat`, in the form of Search-R1's protocol."""
    model = FlatErrorReply if flat else ErrorReply
    replies: dict[int | str, dict[str, Any]] = {
        status: {"model": model, "description": reason} for status, reason in _REASONS.items()
    }
    for status in (429, 503):
        replies[status]["headers"] = _RETRY
    return replies


def streamed(model: type[BaseModel], example: str, events: str) -> dict[int | str, dict[str, Any]]:
    """Return the reply of a route that answers with JSON or Server-Sent Events, for the OpenAPI document.

    Args:
        model: Model of the JSON.
        example: First events of a stream.
        events: Sentence about the events.
    """
    event = {"type": "object", "properties": {"event": {"type": "string"}, "data": {"type": "string"}}}
    stream = {EVENT_STREAM: {"schema": {**event, "description": events}, "example": example}}
    return {200: {"model": model, "description": f"The answer. {events}", "content": stream}}


RETRIEVE_SCHEMA = {
    "type": "object",
    "required": ["queries"],
    "properties": {
        "queries": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_QUERIES},
        "topk": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_TOPK},
        "where": {"type": ["string", "object", "null"]},
        "return_scores": {"type": "boolean", "default": False},
    },
    "example": {"queries": ["who founded the mill"], "topk": 3, "return_scores": True},
}
RETRIEVE_REPLY: dict[str, Any] = {
    "description": "Passages of each query, best first; bare documents without `return_scores`.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["result"],
                "properties": {
                    "result": {"type": "array", "items": {"type": "array", "items": {"type": "object"}}},
                    "where": {"type": "string"},
                },
            },
            "example": {"result": [[{"document": _PASSAGE, "score": 1.5}]]},
        }
    },
}
HEALTH_REPLY: dict[str, Any] = {
    "description": "The index, the generation of it that answers, and what keeps a newer one from being opened.",
    "content": {
        "application/json": {
            "schema": {"type": "object", "additionalProperties": {"type": "string"}},
            "example": {"status": "ok", "retriever": "default", "generation": "gen-18eab8d90b9e0f7e"},
        }
    },
}
