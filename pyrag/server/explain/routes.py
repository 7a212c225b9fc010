"""Route `/v1/explain`, which estimates what a question or program will cost before it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import FastAPI, Request, Response

from pyrag.methods.own_program import OwnProgram
from pyrag.runtime.explain.explaining import explain
from pyrag.runtime.explain.explanation import Explanation
from pyrag.runtime.question_request import QuestionRequest, request_of
from pyrag.server.bodies import body_of, read_request
from pyrag.server.errors import ApiError, public_lines, public_text
from pyrag.server.replies import access_of, json_reply, until_gone
from pyrag.server.schemas import ExplainReply, ExplainRequest
from pyrag.server.service import QuestionService, ServedIndex


def add_explain_route(app: FastAPI, service: QuestionService) -> None:
    """Add the route.

    Args:
        app: Application made by `create_app`.
        service: Service that answers questions; its queue and limits apply.
    """

    @app.post(
        "/v1/explain", response_model=None, responses={200: {"model": ExplainReply}},
        summary="Estimate what a question or program will cost", tags=["questions"],
        openapi_extra=body_of(ExplainRequest),
    )  # fmt: skip
    async def explain(request: Request) -> Response:
        body = await read_request(request, ExplainRequest)
        if (body.question is None) == (body.source is None):
            raise ApiError(400, "invalid_request", "send either a question or the source of a program")
        index = service.index(body.index, access_of(request), body.where)
        subject = body.question if body.source is None else OwnProgram(body.source, body.inputs)
        question = request_of(subject or "", index.settings)
        service.admit(1)
        work = _explained(service, index, question, analyze=body.analyze)
        (explanation,) = await until_gone(request, [service.begin(work)])
        return json_reply(_public(explanation))


async def _explained(
    service: QuestionService, index: ServedIndex, question: QuestionRequest, *, analyze: bool
) -> Explanation:
    async with service.place(index.settings.deadline):
        return await explain(question, index.engines, analyze=analyze)


def _public(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation without the server's paths and addresses."""
    happened = explanation.happened
    shown = replace(
        explanation,
        error=public_lines(explanation.error),
        basis=tuple(map(public_text, explanation.basis)),
        warnings=tuple(map(public_text, explanation.warnings)),
        happened=happened and replace(happened, error=public_lines(happened.error)),
    )
    return shown.as_object()
