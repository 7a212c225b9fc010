"""The site's navigation holds every page, and its reference everything that the code declares."""

from __future__ import annotations

import importlib
import json
import re
from typing import Any, get_args

import jsonschema
import pytest
import yaml

from pyrag import PyRAG
from pyrag.server.mcp.schemas import TOOLS
from pyrag.trace.codec import to_json
from pyrag.trace.events import Event
from tools.site import hooks
from tools.site.api import PUBLIC
from tools.site.reference import reference_pages
from tools.site.service import openapi_document
from tools.site.tables import prose
from tools.site.trace_schema import SCHEMA, schema_text

from .blocks import ROOT

CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
KINDS = re.compile(r"TraceError\(\s*\"(\w+)\"|^    kind = \"(\w+)\"", re.MULTILINE)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference_pages()


def listed(nav: Any) -> list[str]:
    """Return the pages of the navigation in their order."""
    if isinstance(nav, str):
        return [nav]
    inner = nav.values() if isinstance(nav, dict) else nav
    return [page for part in inner for page in listed(part)]


def test_navigation_holds_every_page_once(pages: dict[str, str]) -> None:
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    shown = listed(CONFIG["nav"])
    assert len(shown) == len(set(shown))
    assert set(shown) == written | pages.keys() | hooks.PAGES.keys()


def test_site_has_its_five_parts() -> None:
    assert [next(iter(part)) for part in CONFIG["nav"]][1:6] == [
        "Tutorials",
        "How-to",
        "Reference",
        "Explanation",
        "Notes",
    ]
    assert {"search", "offline"} <= set(CONFIG["plugins"])
    assert CONFIG["theme"]["font"] is False


def test_notes_state_when_they_were_measured() -> None:
    notes = sorted((ROOT / "docs/notes").glob("*.md"))
    undated = [path.name for path in notes if not re.search(r"November 2026", path.read_text(encoding="utf-8")[:500])]
    assert len(notes) >= 8
    assert undated == []


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_is_described(package: str, pages: dict[str, str]) -> None:
    headings = set(re.findall(r"^### (\S+)$", pages["reference/python-api.md"], re.M))
    names = getattr(importlib.import_module(package), "__all__", ())
    assert [name for name in names if f"{package}.{name}" not in headings] == []


def test_every_route_and_object_is_described(pages: dict[str, str]) -> None:
    document = openapi_document()
    routes = [f"## {method.upper()} {path}" for path, methods in document["paths"].items() for method in methods]
    objects = [f"### {name}" for name in document["components"]["schemas"]]
    headings = set(re.findall(r"^##+ .*$", pages["reference/http.md"], re.M))
    assert len(routes) > 15
    assert [heading for heading in [*routes, *objects] if heading not in headings] == []
    assert "| `question` | string | required |" in pages["reference/http.md"]


def test_every_tool_event_and_error_kind_is_listed(pages: dict[str, str]) -> None:
    assert [tool.name for tool in TOOLS if f"## {tool.name}\n" not in pages["reference/mcp.md"]] == []
    events = pages["reference/events.md"]
    assert [kind.__name__ for kind in get_args(Event) if f"## {kind.__name__}\n" not in events] == []
    sources = [
        path.read_text(encoding="utf-8") for path in (ROOT / "pyrag").rglob("*.py") if "stores" not in path.parts
    ]
    kinds = {kind for source in sources for pair in KINDS.findall(source) for kind in pair if kind} - {"reproduction"}
    assert len(kinds) > 10
    assert [kind for kind in sorted(kinds) if f"| `{kind}` |" not in pages["reference/errors.md"]] == []


def test_schema_of_traces_is_the_one_of_the_code() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), "run python -m tools.site.trace_schema"


def test_a_trace_is_valid_by_its_schema() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    with PyRAG() as rag:
        traces = [
            rag.ask("Who directed Gravity?"),
            rag.run("final_answer = anser(1)", {}),
            rag.run("final_answer = [1]"),
        ]
    for trace in traces:
        value = json.loads(to_json(trace))
        assert list(validator.iter_errors(value)) == []
        value["steps"] = "none"
        assert not validator.is_valid(value)


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("index.md", "[a](docs/tools.md#x)", "[a](tools.md#x)"),
        ("notes/words.md", "[a](../tools.md)", "[a](../tools.md)"),
        ("tools.md", "[the rules](../SECURITY.md)", "[the rules](project/security.md)"),
        ("project/contributing.md", "[map](docs/architecture.md)", "[map](../architecture.md)"),
        ("training.md", "[`rl/configs`](../rl/configs)", "`rl/configs`"),
        ("tools.md", "[gone](../nowhere.md)", "[gone](../nowhere.md)"),
        ("serve.md", "see `reference/http.md`", "see [`reference/http.md`](./reference/http.md)"),
        ("notes/words.md", "see `reference/http.md`", "see [`reference/http.md`](../reference/http.md)"),
        ("tools.md", "[web](https://example.org) [here](#x)", "[web](https://example.org) [here](#x)"),
    ],
)
def test_links_lead_to_pages_of_the_site(page: str, link: str, expected: str) -> None:
    assert hooks.site_links(link, page) == expected


def test_sections_of_docstrings_become_lists() -> None:
    text = "Return x.\n\nArgs:\n    first: A name,\n        or two.\n    *rest: More.\n\nRaises:\n    ValueError: No.\n"
    assert "**Args**\n\n* `first`: A name,\n  or two.\n* `*rest`: More." in prose(text)
    assert "**Raises**\n\n* `ValueError`: No." in prose(text)
