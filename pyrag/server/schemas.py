"""Bodies of requests and replies, for validation and the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

QUESTION = "Where is the company that made the film Alpha based?"


class _Limits(BaseModel):
    model_config = ConfigDict(extra="forbid")

    index: str | None = Field(None, description="Name of an index; the default one if left out.")
    method: str | None = Field(None, description="Method; the server's own if left out.", examples=["pyrag"])
    deadline: float | None = Field(None, gt=0, description="Seconds; lowered to the server's own limit.")
    max_calls: int | None = Field(None, ge=1, description="Model calls; lowered to the server's own limit.")
    max_tokens: int | None = Field(None, ge=1, description="Tokens; lowered to the server's own limit.")
    max_cost: float | None = Field(None, ge=0, description="Money; only where the server knows prices.")
    topk: int | None = Field(None, ge=1, le=100, description="Passages a sub-query.")

    def limits(self) -> dict[str, Any]:
        """Return the limits of the request by the names of settings."""
        return self.model_dump(include={"deadline", "max_calls", "max_tokens", "max_cost", "topk"})


class AskRequest(_Limits):
    """One question."""

    question: str = Field(description="In English for the embedded engine.", examples=[QUESTION])
    stream: bool = Field(False, description="Reply with Server-Sent Events, as `Accept: text/event-stream` does.")
    include_trace: bool = Field(False, description="Add the whole trace to the reply.")


class BatchRequest(_Limits):
    """Several questions, answered side by side."""

    questions: list[str] = Field(min_length=1, examples=[[QUESTION]])
    include_trace: bool = Field(False, description="Add the whole traces to the reply.")


class CitationReply(BaseModel):
    """A passage that the answer rests on."""

    number: int
    id: str
    title: str
    text: str
    source: str
    start: int | None
    end: int | None
    metadata: dict[str, Any]
    step: int


class AskReply(BaseModel):
    """The answer to a question. A question that failed has `error`, and the answer `unknown`."""

    id: str
    question: str
    answer: str
    known: bool
    confidence: float | None
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
    trace: dict[str, Any] | None = None


class BatchReply(BaseModel):
    """Answers in the order of the questions."""

    results: list[AskReply]


class TraceList(BaseModel):
    """Summaries of traces, the newest first."""

    traces: list[dict[str, Any]]


class OptionsReply(BaseModel):
    """Choices of a request, and the engine that answers. `examples` are questions that the bundled corpus answers."""

    version: str
    engine: str
    engine_note: str
    index: str
    indexes: list[str]
    method: str
    methods: list[str]
    examples: list[str]


class ErrorDetail(BaseModel):
    message: str
    type: str
    code: str


class ErrorReply(BaseModel):
    """A refusal."""

    error: ErrorDetail


RETRIEVE_SCHEMA = {
    "type": "object",
    "required": ["queries"],
    "properties": {
        "queries": {"type": "array", "items": {"type": "string"}, "maxItems": 1024},
        "topk": {"type": ["integer", "null"], "minimum": 1, "maximum": 1000},
        "return_scores": {"type": "boolean", "default": False},
    },
    "example": {"queries": ["who founded the mill"], "topk": 3, "return_scores": True},
}
