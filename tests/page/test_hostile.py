"""Hostile text, from `xss.txt`, stays text wherever a page shows it. Damaged traces do not break the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pyrag.trace.codec import to_json
from pyrag.trace.html import to_html
from pyrag.trace.model import Answer, Attempt, Citation, Passage, Program, Step, Trace, TraceError
from tests.page.conftest import Open, Site, Watch, ask, models, served
from tests.page.test_traces import open_files
from tests.page.traces import repaired
from tests.server.conftest import ModelServer

CORPUS = (Path(__file__).parent / "xss.txt").read_text(encoding="utf-8").splitlines()
ALL = "\n".join(CORPUS)
# Elements that the page never makes, and attributes that no element of it has.
MADE = """() => {
  const foreign = "img,iframe,object,embed,video,audio,source,base,math,template,style,animate,pyrag-app pyrag-app";
  const leads = (given) => /^(xlink:)?(href|src|action|formaction)$/.test(given.name)
    && /^\\s*(javascript|data):/i.test(given.value);
  const handlers = [...document.querySelectorAll("*")].filter((one) =>
    !one.matches("link[rel=icon]") && [...one.attributes].some((given) => given.name.startsWith("on") || leads(given)));
  const scripts = document.querySelectorAll("script:not([src='page.js'])").length;
  const links = [...document.querySelectorAll("a")].filter((one) => !one.getAttribute("href").startsWith("#"));
  return [document.querySelectorAll(foreign).length, handlers.length, scripts, links.length,
          document.querySelectorAll("dialog").length - 1, document.querySelectorAll("main form:not(.ask)").length];
}"""
NOTHING = [0, 0, 0, 0, 0, 0]


def hostile(text: str) -> Trace:
    answer = Answer(text, citations=(text,), confidence=0.5)
    tries = (
        Attempt(text, text, 5, (text,), answer, rationale=text, missing=text),
        Attempt(text, text, 5, (text,), answer),
    )
    steps = (
        Step(0, text, text, 1, passages=(text,), answer=answer, rationale=text, attempts=tries),
        Step(1, "retrieve", text, 2, 1, 5, text, (text,), error=text, depends_on=(0,)),
        Step(2, "write", text, 3, 1, output=text, mode=text),
    )
    programs = (Program(text, text, error=text), Program(text + "\nfinal_answer = 1", text, text))
    return Trace(
        text,
        answer,
        text,
        text,
        text,
        (text, text),
        programs,
        steps,
        (Citation(1, text, 0),),
        {text: Passage(text, text, f"{text}. And more of it: {text}", 1.0, text)},
        warnings=(text,),
        error=TraceError(text, text),
    )


def open_everything(page: Any) -> None:
    """Open each sheet of a run, and step through it; no element of hostile text comes to be."""
    before = page.evaluate(MADE)
    for selector in (".cite", ".source", ".value", "button.node", "button.row", ".tabs button"):
        for one in page.locator(selector).all():
            one.click()
            if page.locator("dialog[open]").count():
                assert page.evaluate(MADE) == before
                page.keyboard.press("Escape")
    page.locator(".stepper input").focus()
    page.keyboard.press("Home")
    for _ in range(int(page.locator(".stepper input").get_attribute("max"))):
        page.keyboard.press("ArrowRight")
    assert page.evaluate(MADE) == before


def test_hostile_trace_files_show_as_text(site: Site, open_page: Open, tmp_path: Path) -> None:
    path = tmp_path / "hostile.jsonl"
    path.write_bytes(b"".join(to_json(hostile(text)) + b"\n" for text in (*CORPUS, ALL)))
    page = open_page(site.url)
    open_files(page, path)
    page.locator(".row-question").nth(len(CORPUS)).wait_for()
    assert page.locator(".row-question").all_text_contents()[: len(CORPUS)] == CORPUS
    assert page.evaluate(MADE) == NOTHING
    for number in range(1, len(CORPUS) + 2):
        page.evaluate("(hash) => { location.hash = hash; }", f"#/t/file-{number}")
        page.locator(".question", has_text=CORPUS[number - 1].strip() if number <= len(CORPUS) else "").wait_for()
        assert page.evaluate(MADE) == NOTHING
    assert page.locator(".question").text_content() == ALL
    open_everything(page)


def test_hostile_page_from_disk_shows_text(open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "hostile.html").write_text(to_html([hostile(ALL)]), encoding="utf-8")
    page = open_page(f"file://{tmp_path}/hostile.html")
    assert page.locator(".question").text_content() == ALL
    assert page.locator("script").count() == 2
    open_everything(page)
    assert page.locator("img, iframe, object, embed, base, template").count() == 0


def test_hostile_model_and_passages_show_as_text(open_page: Open, tmp_path: Path) -> None:
    passages = [{"id": str(number), "title": text, "text": f"mill {text}"} for number, text in enumerate(CORPUS)]
    (tmp_path / "mill.jsonl").write_text("".join(json.dumps(one) + "\n" for one in passages))
    script = ModelServer()
    program = f"docs = retrieve('mill', topk=50)\nfinal_answer = answer({ALL!r}, docs)  # <img src=x onerror=alert(1)>"
    script.replies = {
        "decompose": json.dumps(CORPUS[:6]),
        "plan": f"```python\n{program}\n```",
        "answer": f"<answer>{CORPUS[2]}</answer> [1] [2] [3]",
    }
    with models(script) as engine, served(tmp_path, "--llm", engine, "--index", f"mill={built(tmp_path)}") as site:
        page = open_page(site.url)
        ask(page, ALL.replace("\n", " "))
        page.wait_for_selector(".run[data-phase=done], .run[data-phase=failed]")
        assert page.locator(".answer").evaluate("(one) => one.firstChild.data") == CORPUS[2]
        assert page.locator(".sub-queries li").all_text_contents() == CORPUS[:6]
        assert page.evaluate(MADE) == NOTHING
        open_everything(page)


def built(folder: Path) -> Path:
    from pyrag.retrieval.index import update_index

    update_index([folder / "mill.jsonl"], folder / "ix")
    return folder / "ix"


def test_hostile_errors_show_as_text(open_page: Open, tmp_path: Path) -> None:
    script = ModelServer(refuse=lambda body: (400, {"error": {"message": ALL}}))
    with models(script) as engine, served(tmp_path, "--llm", engine) as site:
        page = open_page(site.url)
        ask(page, "<img src=x onerror=alert(1)>")
        page.wait_for_selector(".run[data-phase=failed] .problem")
        assert page.evaluate(MADE) == NOTHING


@pytest.mark.parametrize("view", ["t", "compare/a", "nowhere"])
def test_hostile_addresses_show_as_text(site: Site, open_page: Open, watch: Watch, view: str) -> None:
    watch.expected = ("404",)
    for text in (CORPUS[0], CORPUS[2], "%", "../../x", "__proto__"):
        page = open_page(f"{site.url}/#/{view}/{quote(text, safe='%')}")
        assert page.evaluate(MADE) == NOTHING
        page.context.close()


ODD: list[Any] = [
    None,
    7,
    -1,
    1e308,
    "x",
    [],
    {},
    [None],
    [[1]],
    {"a": [1]},
    True,
    [{"step": 99}],
    {"__proto__": {"x": 1}},
]


def damaged(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield copies of a trace, each with one field replaced by an odd value."""

    def places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        inner = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
        for key, one in inner:
            yield (*path, key)
            yield from places(one, (*path, key))

    for number, path in enumerate(places(values, ())):
        copy = deepcopy(values)
        at = copy
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = ODD[number % len(ODD)]
        yield copy


def test_damaged_traces_do_not_break_the_page(open_page: Open, site: Site, tmp_path: Path) -> None:
    path = tmp_path / "damaged.jsonl"
    found = list(damaged(json.loads(to_json(repaired()))))
    assert len(found) > 150
    path.write_text("".join(json.dumps(one) + "\n" for one in found))
    page = open_page(site.url)
    open_files(page, path)
    page.wait_for_selector(".rows a")
    shown = page.locator(".rows").first.locator("a").count()  # the others are the history of the server
    assert shown > len(found) - 20
    for number in range(1, shown + 1):
        page.evaluate("(hash) => { location.hash = hash; }", f"#/t/file-{number}")
        page.wait_for_selector(".run .stepper input")
        page.locator(".stepper input").fill("4")
    page.evaluate("() => { location.hash = '#/compare/file-1/file-2'; }")
    page.wait_for_selector(".pair")
