"""The page as files, modules and stylesheets that build no markup from text, and as one document with traces."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pyrag.trace import html as page_module
from pyrag.trace.html import DOCUMENT, SCRIPT, joined_script, joined_style, page_file, page_paths, to_frame, to_html
from pyrag.trace.model import Answer, Citation, Exchange, Passage, Program, Step, Trace
from tests.cli.conftest import Run, pyrag

__all__ = ["pyrag"]

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt; & \" '",
    "\u2028\u2029",
    "{{constructor.constructor('alert(1)')()}}",
]


class Elements(HTMLParser):
    """Elements of a document with their attributes and the text directly in them."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.found.append((f"/{tag}", {}, ""))

    def handle_data(self, data: str) -> None:
        if self.found:
            tag, attributes, text = self.found[-1]
            self.found[-1] = (tag, attributes, text + data)

    def named(self, *tags: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for tag, attributes, text in self.found if tag in tags]


def trace_of(text: str) -> Trace:
    answer = Answer(text, citations=(text,))
    step = Step(0, "answer", text, 1, passages=(text,), answer=answer)
    return Trace(
        text,
        answer,
        programs=(Program(text, text, error=text),),
        steps=(step,),
        citations=(Citation(1, text, 0),),
        passages={text: Passage(text, text, text, source=text)},
        warnings=(text,),
        exchanges=(Exchange("plan", "key", {"prompt": "a prompt of the planner"}, {}),),
        config={"method": "pyrag", "index": "/home/somebody/private"},
    )


FOLDER = Path(page_module.__file__).parent / "page"
TOP = re.compile(r"^(?:export )?(?:async )?(?:class|const|let|function\*?) (\w+)", re.MULTILINE)


def test_page_is_all_files_of_its_folder_in_parts() -> None:
    held = sorted(str(one.relative_to(FOLDER)) for one in FOLDER.rglob("*") if one.is_file())
    assert held == sorted(page_paths().values())
    assert {name: text for name in held if (text := page_file(name)).count("\n") > 400} == {}
    assert len([name for name in held if name.endswith(".js")]) > 10


def test_document_loads_one_module_and_the_stylesheets() -> None:
    sheets = [name for name in page_paths().values() if name.endswith(".css")]
    found = Elements(page_file(DOCUMENT))
    assert [one for one, _ in found.named("script")] == [{"type": "module", "src": SCRIPT}]
    assert [one["href"] for one, _ in found.named("link") if one["rel"] == "stylesheet"] == sheets
    assert not found.named("style")
    assert [name for _, given, _ in found.found for name in given if name.startswith("on") or name == "style"] == []


@pytest.mark.parametrize(
    "way",
    [
        *(
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "setHTML",
            "eval(",
            "Function(",
        ),
        *(
            "createContextualFragment",
            "srcdoc",
            "import(",
            "javascript:",
            "setAttribute(`on",
            "importScripts",
            "Worker(",
        ),
    ],
)
def test_script_builds_no_markup_and_no_code_from_text(way: str) -> None:
    assert way not in joined_script()


def test_script_and_stylesheet_name_no_other_place() -> None:
    addresses = re.findall(r"https?://[^\s\"'`)]+", joined_script() + joined_style())
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in joined_style()
    assert "url(" not in joined_style()
    assert "</" not in joined_script()  # so that it can stand inside of a document
    assert "</" not in joined_style()


def test_modules_are_joined_whole_each_after_its_imports() -> None:
    scripts = [name for name in page_paths().values() if name.endswith(".js")]
    assert scripts[-1] == SCRIPT
    names = [name for script in scripts for name in TOP.findall(page_file(script))]
    assert len(names) > 100
    assert len(set(names)) == len(names)  # one scope holds them all
    assert TOP.findall(joined_script()) == names
    assert re.findall(r"^(?:import|export)\b.*", joined_script(), re.MULTILINE) == []
    statements = re.findall(r"^import\b.*?;$", "\n".join(map(page_file, scripts)), re.MULTILINE | re.DOTALL)
    assert len(statements) > 50
    assert all(re.fullmatch(r'import \{[\w,\s]+\} from "\./[\w/]+\.js";', one) for one in statements)


def test_modules_import_what_others_define_and_they_use() -> None:
    problems = []
    for script in (name for name in page_paths().values() if name.endswith(".js")):
        text = page_file(script)
        for names, path in re.findall(r'^import \{([^}]*)\} from "\./([^"]+)";', text, re.MULTILINE):
            source = page_file(str(Path(script).parent / path))
            for name in (one.strip() for one in names.split(",") if one.strip()):
                exported = re.search(rf"^export (?:async )?(?:class|const|function\*?) {name}\b", source, re.MULTILINE)
                problems += [] if exported else [f"{path} does not export {name}"]
                problems += [] if len(re.findall(rf"\b{name}\b", text)) > 1 else [f"{script} does not use {name}"]
    assert problems == []


def test_document_holds_script_style_and_traces() -> None:
    found = Elements(to_html([trace_of("plain")]))
    assert [given.get("type") for given, _ in found.named("script")] == ["application/json", "module"]
    assert found.named("script")[1][1] == joined_script()
    assert found.named("style")[0][1] == joined_style()
    loading = [given for _, given, _ in found.found if "src" in given or given.get("rel") == "stylesheet"]
    assert loading == []


def test_document_allows_its_own_script_and_style_alone() -> None:
    found = Elements(to_html([trace_of("plain")]))
    policies = [given for given, _ in found.named("meta") if given.get("http-equiv")]
    assert len(policies) == 1
    policy = dict(part.strip().split(" ", 1) for part in str(policies[0]["content"]).split(";"))
    assert policy["default-src"] == "'none'"
    for name, text in (("script-src", found.named("script")[1][1]), ("style-src", found.named("style")[0][1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert policy[name] == f"'sha256-{digest}'"
    assert "connect-src" not in policy


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_inert_json(text: str) -> None:
    plain, hostile = Elements(to_html([trace_of("x")])), Elements(to_html([trace_of(text)]))
    assert [(tag, given) for tag, given, _ in hostile.found] == [(tag, given) for tag, given, _ in plain.found]
    data = hostile.named("script")[0][1]
    assert not set(data) & set("<>&\u2028\u2029")
    (shown,) = json.loads(data)
    assert (shown["question"], shown["passages"][text]["text"], shown["programs"][0]["source"]) == (text, text, text)


def test_document_leaves_prompts_and_settings_out() -> None:
    document = to_html([trace_of("x")])
    assert "a prompt of the planner" not in document
    assert "/home/somebody" not in document


def test_notebooks_get_a_frame_without_rights() -> None:
    trace = trace_of("x</iframe>")
    shown = trace._repr_html_()
    assert shown == to_frame(trace)
    found = Elements(shown)
    assert [tag for tag, _, _ in found.found] == ["iframe", "/iframe"]
    given = found.named("iframe")[0][0]
    assert given["sandbox"] == "allow-scripts"
    assert given["srcdoc"] == to_html([trace])
    assert html.escape(to_html([trace])) in shown


def test_command_writes_a_page_beside_the_file(pyrag: Run, tmp_path: Path) -> None:
    pyrag("ask", "Who is Jed Hoyer?", "--trace", "a.jsonl")
    assert pyrag("trace", "html", "a.jsonl").stdout == "a.html\n"
    shown = shown_traces(tmp_path / "a.html")
    assert [one["question"] for one in shown] == ["Who is Jed Hoyer?"]
    assert pyrag("trace", "html", "a.jsonl", "a.jsonl", "--out", "b.html").returncode == 0
    assert len(shown_traces(tmp_path / "b.html")) == 2


def test_command_keeps_the_traces_it_reads(pyrag: Run, tmp_path: Path) -> None:
    pyrag("ask", "Who is Jed Hoyer?", "--trace", "a.jsonl")
    before = (tmp_path / "a.jsonl").read_bytes()
    refused = pyrag("trace", "html", "a.jsonl", "--out", "a.jsonl")
    assert refused.returncode == 2
    assert "name another page with --out" in refused.stderr
    assert (tmp_path / "a.jsonl").read_bytes() == before


def shown_traces(page: Path) -> list[dict[str, Any]]:
    data = Elements(page.read_text(encoding="utf-8")).named("script")[0][1]
    found: list[dict[str, Any]] = json.loads(data)
    return found
