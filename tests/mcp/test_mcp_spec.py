"""Specs of MCP servers as retrievers, the choice of a tool, and hits of any form, without the package `mcp`."""

from __future__ import annotations

from typing import Any

import pytest

from pyrag.errors import ConfigError, PermanentServiceError
from pyrag.retrieval.checked import checked
from pyrag.retrieval.open import is_remote
from pyrag.retrieval.remote.hits import fields_of_hit, hits_in, ranked
from pyrag.retrieval.remote.mcp_spec import TOKEN_VARIABLE, McpTarget, choose_tool, read_spec
from pyrag.settings import load_settings

TARGET = McpTarget("mcp+stdio:notes")
TEXT, NUMBER = {"type": "string"}, {"type": "integer", "maximum": 10}


def schema(*required: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required)}


def test_a_command_is_split_as_a_shell_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTES_KEY", "k")
    target = read_spec("mcp+stdio:/opt/notes/server --folder 'my notes' #tool=find_notes&env=NOTES_KEY")
    assert target.command == ("/opt/notes/server", "--folder", "my notes")
    assert (target.tool, target.environment, target.name) == ("find_notes", {"NOTES_KEY": "k"}, "mcp+stdio:server")


def test_the_token_is_no_unknown_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "t")
    assert load_settings({}).llm == "embedded"


def test_an_address_is_shown_without_its_secrets() -> None:
    target = read_spec("mcp+http:https://me:secret@host/mcp?key=secret#tool=search")
    assert (target.url, target.tool) == ("https://me:secret@host/mcp?key=secret", "search")
    assert target.name == "mcp+http:https://host/mcp"
    assert is_remote("mcp+http:https://host/mcp")
    assert not is_remote("notes/.pyrag")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("mcp+stdio:", "needs the command of a server"),
        ("mcp+stdio:server 'open", "cannot be read"),
        ("mcp+http:host/mcp", "needs the URL of a server"),
        ("mcp+stdio:x#tool=a&topk=3", "has no option 'topk'"),
        ("mcp+stdio:x#env=NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE, which env= names, is not set"),
    ],
)
def test_wrong_specs_are_refused(spec: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_spec(spec)


@pytest.mark.parametrize(
    ("tools", "chosen"),
    [
        ({"anything": schema("q", q=TEXT)}, ("anything", "q", "")),
        ({"ask": schema("question", question=TEXT), "search": schema("query", query=TEXT, topk=NUMBER)},
         ("search", "query", "topk")),
        ({"write_note": schema("text", text=TEXT), "searchNotes": schema("words", words=TEXT, limit=NUMBER)},
         ("searchNotes", "words", "limit")),
        ({"a": schema(), "notes-retrieve": schema(query={"anyOf": [TEXT, {"type": "null"}]})},
         ("notes-retrieve", "query", "")),
    ],
)  # fmt: skip
def test_the_tool_that_searches_is_found(tools: dict[str, Any], chosen: tuple[str, str, str]) -> None:
    tool = choose_tool(tools, TARGET)
    assert (tool.name, tool.query, tool.limit) == chosen
    assert tool.arguments("mill", 30) == {chosen[1]: "mill"} | ({chosen[2]: 10} if chosen[2] else {})


@pytest.mark.parametrize(
    ("tools", "tool", "says"),
    [
        ({}, "", "has several tools that may search, or none \\(its tools: none\\)"),
        ({"search_a": schema(), "search_b": schema()}, "", "choose one with #tool=NAME"),
        ({"search": schema("query", query=TEXT)}, "find", "has no tool 'find' \\(its tools: search\\)"),
        ({"search": schema("query", "user", query=TEXT, user=TEXT)}, "", "needs query, user"),
        ({"search": schema("number", number=NUMBER)}, "", "only give it a query and a number"),
    ],
)
def test_an_unclear_choice_names_the_tools(tools: dict[str, Any], tool: str, says: str) -> None:
    with pytest.raises(PermanentServiceError, match=says):
        choose_tool(tools, McpTarget("mcp+stdio:notes", tool=tool))


@pytest.mark.parametrize(
    "reply",
    [
        [{"text": "A mill.", "title": "Mill", "id": "m", "url": "http://m", "score": 0.5}],
        {"results": [{"content": "A mill.", "name": "Mill", "doc_id": "m", "link": "http://m", "relevance": 0.5}]},
        {"data": {"hits": [{"document": {"id": "m", "title": "Mill", "text": "A mill.", "source": "http://m"},
                            "score": 0.5}]}},
        {"found": [{"page_content": "A mill.", "id": "m", "score": 0.5,
                    "metadata": {"title": "Mill", "source": "http://m"}}]},
        {"id": "m", "title": "Mill", "snippet": "A mill.", "uri": "http://m", "similarity": 0.5},
        {"status": "ok", "took": [3], "response": {"records": [{"headline": "Mill", "Excerpt": "A mill.", "uuid": "m",
                                                                "link": "http://m", "score": "0.5"}]}},
        {"data": {"items": [{"document": {"pageContent": "A mill.", "metadata": {"title": "Mill", "docId": "m",
                                          "source": "http://m"}}, "relevanceScore": 0.5}]}},
        {"hits": {"total": 1, "hits": [{"_id": "m", "_score": 0.5, "_source": {"title": "Mill", "body": "A mill.",
                                        "url": "http://m"}}]}},
        {"points": [{"id": "m", "score": 0.5, "payload": {"text": "A mill.", "title": "Mill", "url": "http://m"}}]},
        {"searchResults": [{"title": "Mill", "url": "http://m", "snippets": ["A mill."], "text": "", "id": "m",
                            "content": ["A mill."], "score": 0.5}]},
    ],
)  # fmt: skip
def test_hits_of_any_form_become_passages(reply: Any) -> None:
    (found,) = checked([fields_of_hit(one) for one in hits_in(reply)], 5)
    assert (found.id, found.title, found.text, found.source, found.score) == ("m", "Mill", "A mill.", "http://m", 0.5)


def test_hits_without_scores_keep_their_order() -> None:
    given = ranked([fields_of_hit(one) for one in ["first", {"text": "second"}, 3, {"title": "no text"}]])
    found = checked(given, 5)
    assert [(one.text, one.score) for one in found] == [("first", 1.0), ("second", 0.5)]
    assert len({one.id for one in found}) == 2
    assert len(found.notes) == 2
    assert hits_in("text") == hits_in(None) == hits_in({"a": 1}) == []
