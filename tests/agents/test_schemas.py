"""One form for each agent: its prompt's example, its schema and its parser agree, and it asks for its schema."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pyrag.agents import schemas
from pyrag.agents.llm import make_llm_agents
from pyrag.agents.parsing.judgements import parse_judged
from pyrag.agents.prompts import load_prompts
from pyrag.agents.rewriter import parse_rewrite
from pyrag.agents.schemas import JUDGEMENT, REWRITE, Schema
from pyrag.errors import BadOutputError
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.llm.schema import fits
from pyrag.methods.hera import schemas as hera_schemas
from pyrag.methods.opera import schemas as opera_schemas
from pyrag.methods.opera.agents import opera_agents
from pyrag.methods.opera.goals import read_goals
from pyrag.methods.opera.schemas import GOALS
from pyrag.trace.model import Passage
from tests.agents.forms import FORMS, all_keys, examples, heard, keys_in_order

GOAL = {"step": 1, "goal": "Who directed Alpha?", "type": "person", "needs": [], "search": True, "compute": ""}
LAST = {
    "step": 2,
    "goal": "When was [person from step 1] born?",
    "type": "date",
    "needs": [1],
    "search": True,
    "compute": "",
}
DEFAULT = Sampling()
PLANNED = json.dumps({"rationale": "two hops", "goals": [GOAL, LAST]})
JUDGED = json.dumps(
    {"analysis": "Doc [1]", "decision": "YES", "answer": "Ada", "confidence": 0.9, "documents": [1], "missing": ""}
)
REWRITTEN = json.dumps({"strategy": "name it", "query": "Alpha film director", "keywords": ["Alpha"]})


def test_what_fits_a_schema_is_read() -> None:
    assert fits(PLANNED, GOALS)
    assert [goal.needs for goal in read_goals(PLANNED).goals] == [(), (1,)]
    assert fits(JUDGED, JUDGEMENT)
    assert parse_judged(JUDGED, 1).text == "Ada"
    assert fits(REWRITTEN, REWRITE)
    assert parse_rewrite(REWRITTEN)[0] == "Alpha film director"


@pytest.mark.parametrize("reply", ['{"decision": "MAYBE"}', "[]", PLANNED])
def test_what_does_not_fit_is_noticed(reply: str) -> None:
    assert not fits(reply, JUDGEMENT)


class Listening:
    """A chat model that keeps the schemas it was asked with."""

    name = "listening"

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.schemas: list[Any] = []

    async def complete(self, messages: list[Message], sampling: Sampling = DEFAULT) -> Reply:
        self.schemas.append(sampling.schema)
        return Reply(self.reply)

    async def aclose(self) -> None:
        return


async def test_operas_agents_ask_for_their_schemas() -> None:
    passages = [Passage("1", "Alpha", "Alpha was directed by Ada.")]
    planner, analyst, rewriter = Listening(PLANNED), Listening(JUDGED), Listening(REWRITTEN)
    planning = make_llm_agents(planner).team(opera_agents)
    assert planning is not None
    assert len((await planning.goal_planner.plan("When was the director of Alpha born?")).goals) == 2
    judging = make_llm_agents(analyst).team(opera_agents)
    assert judging is not None
    judge = judging.analyst
    assert judge is not None
    assert (await judge.answer("Who directed Alpha?", passages)).text == "Ada"
    writer = make_llm_agents(rewriter).rewriter
    assert writer is not None
    assert (await writer.rewrite("Who directed Alpha?", ["Alpha"], passages, "")).query == "Alpha film director"
    assert (planner.schemas, analyst.schemas, rewriter.schemas) == ([GOALS], [JUDGEMENT], [REWRITE])


@pytest.mark.parametrize("name", FORMS)
async def test_examples_have_the_form_of_the_schema(name: str) -> None:
    form = FORMS[name]
    system, user, schema = await heard(form)
    assert schema == form.schema
    shown = examples(f"{system}\n{user}", form.schema)
    assert bool(shown) is form.shown
    for example in shown:
        assert keys_in_order(example, form.schema)
        assert fits(json.dumps(example), form.schema)
        form.parse(json.dumps(example))


@pytest.mark.parametrize("name", FORMS)
async def test_prompts_describe_every_key_and_no_other(name: str) -> None:
    """A line that repeats the form has the keys of the schema, and each key is spoken of somewhere."""
    form = FORMS[name]
    system, user, _ = await heard(form)
    text = f"{system}\n{user}"
    assert {key for key in all_keys(form.schema) if f'"{key}"' not in text} == set()
    for said in re.findall(r"JSON object only: (.*)", text):
        assert re.findall(r'"(\w+)":', said) == list(form.schema["properties"])


@pytest.mark.parametrize("name", FORMS)
async def test_the_last_line_asks_for_the_form(name: str) -> None:
    system, user, _ = await heard(FORMS[name])
    last = (user if user != "Who directed Alpha?" else system).splitlines()[-1]
    assert re.match(r"Reply with (?:the|one) JSON object", last)


@pytest.mark.parametrize(
    ("retry", "schema"),
    [("decompose.retry", schemas.SUB_QUERIES), ("opera.plan.retry", GOALS), ("opera.analyse.retry", JUDGEMENT),
     ("rewrite.retry", REWRITE)],
)  # fmt: skip
def test_retries_name_the_same_keys(retry: str, schema: Schema) -> None:
    prompts = load_prompts()
    if retry == "decompose.retry":
        text = prompts.render(retry, reason="it is empty", question="Who?")
    else:
        text = prompts.render_method(retry, {"reason": "it is empty"})[1]
    assert set(re.findall(r'"([a-z_]+)"', text)) == all_keys(schema)


def _every_schema() -> list[Schema]:
    return [
        value
        for module in (schemas, opera_schemas, hera_schemas)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, dict) and "title" in value
    ]


def test_every_schema_is_some_agents_form() -> None:
    assert {one["title"] for one in _every_schema()} == {form.schema["title"] for form in FORMS.values()}


@pytest.mark.parametrize("schema", _every_schema(), ids=lambda schema: schema["title"])
def test_schemas_keep_to_what_openai_takes(schema: Schema) -> None:
    assert schema["type"] == "object"
    for one in _objects_of(schema):
        assert one["additionalProperties"] is False
        assert one["required"] == list(one["properties"])


def _objects_of(schema: Schema) -> list[Schema]:
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return [*([schema] if schema["type"] == "object" else []), *(one for each in inner for one in _objects_of(each))]


def _copied(value: Schema) -> Any:
    """A value of a schema as a model writes it that copies a form's "..."."""
    match value:
        case {"type": "object", "properties": properties}:
            return {key: _copied(inner) for key, inner in properties.items()}
        case {"type": "array", "items": items}:
            return [_copied(items)]
        case {"enum": [*_, last]}:
            return last
        case {"type": "string"}:
            return "..."
        case {"type": "boolean"}:
            return True
    return 1


@pytest.mark.parametrize(
    "name", [name for name in FORMS if FORMS[name].schema["title"] not in ("profile", "settlement", "sub_queries")]
)
def test_a_copied_form_says_nothing(name: str) -> None:
    form = FORMS[name]
    try:
        said = form.parse(json.dumps(_copied(form.schema)))
    except BadOutputError:
        return
    assert "..." not in repr(said)
