"""Values of a requested type over HTTP and MCP: the official OpenAI client's parse(), schemas, refusals, streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from datetime import date
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

import openai
from pydantic import BaseModel

from pyrag.server.config import Access
from pyrag.server.errors import ApiError
from pyrag.server.mcp.schemas import TOOLS, AskArguments, ProgramArguments, arguments_of
from pyrag.server.mcp.tools import Tools
from tests.server.conftest import ModelServer
from tests.server.live import Live, live
from tests.server.test_openai_api import asking, said
from tests.server.test_serve import SCRIPTED, running

BORN = "When was Ingmar Bergman born?"
DIRECTOR = "Who directed The Seventh Seal?"
NOBODY = "Who directed Foobar Xyzzy?"


class Birthday(BaseModel):
    born: date


class Place(BaseModel):
    name: str
    country: str | None


class Job(BaseModel):
    title: str
    years: list[int]
    place: Place


JOB = '{"title": job, "years": ["1999", 2001], "place": {"name": job, "country": answer("Where?", [])}}'
PROGRAM = f"""```python
docs = retrieve("Who is Jed Hoyer?")
job = answer("Who is Jed Hoyer?", docs)
final_answer = {JOB}
```"""


@pytest.fixture(scope="module")
def served() -> Iterator[Live]:
    with live() as one:
        yield one


@pytest.fixture
async def official(served: Live) -> AsyncIterator[openai.AsyncOpenAI]:
    async with asking(served.url) as client:
        yield client


async def test_parse_returns_a_model_of_pydantic(official: openai.AsyncOpenAI) -> None:
    chat = await official.chat.completions.parse(model="pyrag", messages=said(BORN), response_format=Birthday)
    message = chat.choices[0].message
    assert (message.parsed, message.refusal) == (Birthday(born=date(1918, 7, 14)), None)
    assert json.loads(message.content or "") == {"born": "1918-07-14"}
    cited = message.annotations[0].url_citation
    assert (cited.start_index, cited.end_index) == (0, len(message.content or ""))
    response = await official.responses.parse(model="pyrag", input=BORN, text_format=Birthday)
    assert response.output_parsed == Birthday(born=date(1918, 7, 14))
    assert response.text.format.type == "json_schema"


async def test_parse_fills_nested_models_from_a_program(server: ModelServer) -> None:
    server.replies["plan"] = PROGRAM
    wanted = Job(title="an executive", years=[1999, 2001], place=Place(name="an executive", country=None))
    async with running(llm=f"openai:tiny@{server.url}") as client, asking(client.url) as official:
        chat = await official.chat.completions.parse(model="pyrag", messages=said(SCRIPTED), response_format=Job)
        assert chat.choices[0].message.parsed == wanted
        response = await official.responses.parse(model="pyrag", input=SCRIPTED, text_format=Job)
        assert response.output_parsed == wanted
    plans = [body for body, role in zip(server.bodies, server.roles, strict=True) if role == "plan"]
    assert '"years": {"items": {"type": "integer"}' in json.dumps(plans[0]["messages"][0]["content"]).replace("\\", "")


async def test_streams_are_parsed_as_models(official: openai.AsyncOpenAI) -> None:
    async with official.chat.completions.stream(model="pyrag", messages=said(BORN), response_format=Birthday) as stream:
        _ = [event async for event in stream]
        completion = await stream.get_final_completion()
    assert completion.choices[0].message.parsed == Birthday(born=date(1918, 7, 14))
    async with official.responses.stream(model="pyrag", input=BORN, text_format=Birthday) as events:
        _ = [event async for event in events]
        assert (await events.get_final_response()).output_parsed == Birthday(born=date(1918, 7, 14))


async def test_an_unknown_answer_is_a_refusal(official: openai.AsyncOpenAI) -> None:
    chat = await official.chat.completions.parse(model="pyrag", messages=said(NOBODY), response_format=Birthday)
    message = chat.choices[0].message
    assert (message.parsed, message.content) == (None, None)
    assert NOBODY in (message.refusal or "")
    response = await official.responses.parse(model="pyrag", input=NOBODY, text_format=Birthday)
    assert response.output_parsed is None
    assert response.output[1].content[0].type == "refusal"
    async with official.responses.stream(model="pyrag", input=NOBODY, text_format=Birthday) as events:
        kinds = [event.type async for event in events]
    assert "response.refusal.done" in kinds
    async with official.chat.completions.stream(
        model="pyrag", messages=said(NOBODY), response_format=Birthday
    ) as stream:
        refusals = [event.refusal async for event in stream if event.type == "refusal.done"]
    assert NOBODY in refusals[0]


async def test_a_value_that_cannot_fit_is_refused_with_its_reason(official: openai.AsyncOpenAI) -> None:
    chat = await official.chat.completions.parse(model="pyrag", messages=said(DIRECTOR), response_format=Birthday)
    message = chat.choices[0].message
    assert message.parsed is None
    assert "final_answer.born must be a date" in (message.refusal or "")
    chat = await official.chat.completions.parse(model="pyrag", messages=said(DIRECTOR), response_format=Job)
    assert "cannot fill several fields" in (chat.choices[0].message.refusal or "")


async def test_json_mode_gives_an_object(official: openai.AsyncOpenAI) -> None:
    chat = await official.chat.completions.create(
        model="pyrag", messages=said(DIRECTOR), response_format={"type": "json_object"}
    )
    assert json.loads(chat.choices[0].message.content or "") == {"answer": "Ingmar Bergman"}
    response = await official.responses.create(model="pyrag", input=DIRECTOR, text={"format": {"type": "json_object"}})
    assert json.loads(response.output_text) == {"answer": "Ingmar Bergman"}


def schema_format(schema: dict[str, Any], *, strict: bool) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "value", "schema": schema, "strict": strict}}


async def test_strictness_decides_on_keywords_that_are_not_checked(official: openai.AsyncOpenAI) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string", "pattern": "[A-Z]"}}, "required": ["name"]}
    with pytest.raises(openai.BadRequestError, match="'pattern', which is not supported") as refused:
        await official.chat.completions.create(
            model="pyrag", messages=said(DIRECTOR), response_format=schema_format(schema, strict=True)
        )
    assert refused.value.param == "response_format"
    chat = await official.chat.completions.create(
        model="pyrag", messages=said(DIRECTOR), response_format=schema_format(schema, strict=False)
    )
    assert json.loads(chat.choices[0].message.content or "") == {"name": "Ingmar Bergman"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": [1]}},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": {"$ref": "#/$defs/none"}}},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "text"}}},
        {"type": "grammar"},
        "json",
    ],
)
async def test_formats_that_cannot_be_honoured_are_refused(official: openai.AsyncOpenAI, wrong: Any) -> None:
    body = {"model": "pyrag", "messages": said(DIRECTOR), "response_format": wrong}
    with pytest.raises(openai.BadRequestError) as refused:
        await official.post("/chat/completions", body=body, cast_to=dict[str, Any])
    assert refused.value.param == "response_format"


def test_ask_returns_a_value(served: Live) -> None:
    reply = served.send("/v1/ask", {"question": BORN, "returns": "date"}).json
    assert (reply["value"], reply["known"], reply["error"]) == ("1918-07-14", True, None)
    reply = served.send("/v1/ask", {"question": DIRECTOR, "returns": {"type": "integer"}}).json
    assert (reply["value"], reply["known"], reply["error"]["cause"]) == (None, False, "returns")
    assert "value" not in served.send("/v1/ask", {"question": DIRECTOR}).json
    batch = served.send("/v1/ask/batch", {"questions": [DIRECTOR], "returns": "list[str]"}).json
    assert batch["results"][0]["value"] == ["Ingmar Bergman"]
    ran = served.send("/v1/programs", {"source": "final_answer = ['3', 4]", "returns": {"items": {"type": "integer"}}})
    assert ran.json["value"] == [3, 4]
    ran = served.send("/v1/programs", {"source": "final_answer = 'three'", "returns": "date"}).json
    assert (ran["value"], ran["error"]["kind"], ran["error"]["cause"]) == (None, "program", "returns")
    refused = served.send("/v1/ask", {"question": DIRECTOR, "returns": "decimal"})
    assert (refused.status, refused.json["error"]["param"]) == (400, "returns")


async def test_tools_return_structured_values() -> None:
    async def report(number: int, line: str) -> None: ...

    async with running() as client:
        tools = Tools(client.service)
        ask = next(tool for tool in TOOLS if tool.name == "ask")
        arguments: AskArguments = arguments_of(ask, {"question": BORN, "returns": "date"})
        assert (await tools.ask(arguments, Access(), report)).value == "1918-07-14"
        program = ProgramArguments(source="final_answer = '12 people'", returns="int")
        assert (await tools.run_program(program, Access(), report)).value == 12
        for returns, words in (("bool", "neither yes nor no"), ("decimal", "returns must be")):
            with pytest.raises(ApiError, match=words):
                await tools.ask(AskArguments(question=BORN, returns=returns), Access(), report)
