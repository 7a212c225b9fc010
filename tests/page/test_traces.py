"""Traces at the page: history, addresses, files, stepping, two side by side, and pages from disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyrag.agents.goals.goal import Goal
from pyrag.methods.opera.protocol import STATE, OperaState
from pyrag.trace.codec import to_json
from pyrag.trace.html import to_frame, to_html
from pyrag.trace.model import Answer, Trace
from pyrag.trace.verdict import judged
from tests.page.conftest import Open, Site, Watch, ask
from tests.page.traces import QUESTION, enumerated, repaired

PHASES = ["waiting", "planning", "running", "repairing", "done"]
FIRST = "When did Fenway Park open?"
SECOND = "Did Aldous Huxley and C. S. Lewis die on the same day?"


def written(folder: Path, *traces: Trace) -> Path:
    path = folder / "run.jsonl"
    path.write_bytes(b"".join(to_json(one) + b"\n" for one in traces))
    return path


def open_files(page: Any, *paths: Path) -> None:
    page.get_by_role("link", name="Traces").click()
    page.set_input_files("input[type=file]", list(paths))


def test_history_opens_a_trace_at_its_address(site: Site, open_page: Open) -> None:
    page = open_page(site.url)
    ask(page, FIRST)
    page.wait_for_selector(".run[data-phase=done]")
    page.get_by_role("link", name="Traces").click()
    page.locator(".rows a", has_text=FIRST).first.click()
    page.wait_for_selector(".run[data-phase=done] .answer")
    assert page.evaluate("document.activeElement.textContent") == FIRST
    again = open_page(page.url)
    assert again.locator(".question").text_content() == FIRST
    assert again.locator(".run[data-phase=done] .code").count() == 1


def test_weak_answer_is_an_amber_card_with_its_reason(open_page: Open, site: Site, tmp_path: Path) -> None:
    trace = replace(repaired(), answer=Answer("Ann Thorpe", citations=("north",), confidence=0.31))
    old = {key: value for key, value in json.loads(to_json(trace)).items() if key not in ("weak", "remark")}
    (tmp_path / "old.json").write_text(json.dumps(old))
    page = open_page(site.url)
    lamps = {}
    for name, path in {"weak": written(tmp_path, judged(trace)), "old": tmp_path / "old.json"}.items():
        open_files(page, path)
        page.wait_for_selector(".run[data-phase=done][data-weak=true]")
        lamps[name] = page.locator(".lamp").evaluate("(one) => getComputedStyle(one).backgroundColor")
        assert page.locator(".progress").text_content().startswith("Weak answer in ")
        shown = page.locator(".remark").all_text_contents()
        assert shown == ([f"W{judged(trace).remark[1:]}."] if name == "weak" else [])
    open_files(page, written(tmp_path, judged(repaired())))
    page.wait_for_selector(".run[data-phase=done]:not([data-weak])")
    sure = page.locator(".lamp").evaluate("(one) => getComputedStyle(one).backgroundColor")
    assert len({sure, *lamps.values()}) == 2
    assert page.locator(".remark").count() == 0


def test_an_answer_is_marked_as_whole_words(open_page: Open, site: Site, tmp_path: Path) -> None:
    text = "Nothing is known of the north. The answer is no, as of 1790."
    trace = repaired()
    steps = (*trace.steps[:-1], replace(trace.steps[-1], answer=Answer("no", citations=("north",))))
    passages = {**trace.passages, "north": replace(trace.passages["north"], text=text)}
    page = open_page(site.url)
    open_files(page, written(tmp_path, replace(trace, answer=Answer("no"), steps=steps, passages=passages)))
    page.wait_for_selector(".source mark")
    assert page.locator(".source").first.locator("mark").all_text_contents() == ["no"]


def test_trace_that_is_gone_is_one_sentence(site: Site, open_page: Open, watch: Watch) -> None:
    watch.expected = ("404",)
    page = open_page(f"{site.url}/#/t/0123")
    page.wait_for_selector("main > .problem")
    assert page.locator("main > .problem").text_content() == "There is no such trace: only the newest are kept."


def test_saved_file_is_stepped_through(site: Site, open_page: Open, tmp_path: Path) -> None:
    page = open_page(site.url)
    open_files(page, written(tmp_path, repaired()))
    page.wait_for_selector(".run[data-phase=done]")
    assert page.locator("h1").text_content() == QUESTION
    slider = page.locator(".stepper input")
    slider.focus()
    phases, versions = [], []
    page.keyboard.press("Home")
    for _ in range(int(slider.get_attribute("max"))):
        page.keyboard.press("ArrowRight")
        phases.append(page.locator(".run").get_attribute("data-phase"))
        versions.append(page.locator(".tabs button").count())
    assert list(dict.fromkeys(phases)) == PHASES
    assert max(versions) == 2
    page.get_by_role("button", name="Replay").click()
    page.get_by_role("button", name="Pause").click()
    assert page.locator(".run").get_attribute("data-phase") != "done"


def test_recoveries_are_shown_as_attempts(site: Site, open_page: Open, tmp_path: Path) -> None:
    page = open_page(site.url)
    open_files(page, written(tmp_path, repaired()))
    page.get_by_role("button", name="1791, 2 attempts").click()
    attempts = page.locator("dialog .attempts li").all_text_contents()
    assert [one.split(" · ")[0].split(" → ")[0] for one in attempts] == ["first", "boost"]
    assert "a date of the South Mill" in attempts[0]
    assert page.locator("dialog .passage-item").count() == 2
    assert "top-20" in attempts[1]


def test_state_of_any_method_is_shown(site: Site, open_page: Open, tmp_path: Path) -> None:
    goals = (Goal(1, "Find the mill", "name", search="mills on the Ouse"), Goal(2, "Find its founder", needs=(1,)))
    nested: Any = "bottom"
    for _ in range(20):
        nested = {"deeper": [nested]}
    theirs = {"their-method": {"<b>odd</b>": "<img src=x onerror=alert(1)>", "many": list(range(150)), "deep": nested}}
    trace = replace(repaired(), extensions={**STATE.plain(OperaState(goals)), **theirs})
    page = open_page(site.url)
    open_files(page, written(tmp_path, trace))
    page.wait_for_selector(".run[data-phase=done]")
    assert page.locator(".extension h2").all_text_contents() == ["What opera kept", "What their-method kept"]
    own = page.locator(".extension.opera")
    assert own.locator(".data-list > li").count() == len(goals)
    assert own.locator("li").nth(1).locator("dt").all_text_contents() == ["step", "text", "type", "needs"]
    assert own.locator("li").nth(0).locator("dt").all_text_contents() == ["step", "text", "type", "search"]
    assert own.locator("li").nth(0).locator("dd").all_text_contents()[1] == "Find the mill"
    other = page.locator(".extension.their-method")
    assert other.locator("dt").nth(0).text_content() == "<b>odd</b>"
    assert other.locator("dd").nth(0).text_content() == "<img src=x onerror=alert(1)>"
    assert "and 50 more" in other.text_content()
    assert '{"deeper":' in other.text_content()


def test_two_traces_stand_side_by_side(site: Site, open_page: Open, tmp_path: Path) -> None:
    page = open_page(site.url)
    ask(page, SECOND)
    page.wait_for_selector(".run[data-phase=done]")
    open_files(page, written(tmp_path, repaired(), repaired()))
    page.get_by_role("checkbox", name=f"Compare: {QUESTION}").first.check()
    page.get_by_role("checkbox", name=f"Compare: {SECOND}").first.check()
    page.get_by_role("link", name="Compare the two").click()
    assert page.locator(".pair .question").all_text_contents() == [QUESTION, SECOND]
    assert page.locator("tr", has_text="Answer").locator("td").all_text_contents() == ["Ann Thorpe", "yes"]


def test_files_that_hold_no_trace_are_refused(site: Site, open_page: Open, tmp_path: Path) -> None:
    page = open_page(site.url)
    for content in ("not json", '{"question": 1}', "[]", "", '{"em": 1}\n{"em": 0}'):
        path = tmp_path / "odd.json"
        path.write_text(content)
        open_files(page, path)
        page.wait_for_selector("main > .problem")
        assert page.locator("main > .problem").text_content().startswith("odd.json holds no ")


def test_traces_without_events_open(site: Site, open_page: Open, tmp_path: Path) -> None:
    values = json.loads(to_json(repaired()))
    for name in ("events", "started_at", "pyrag_version", "index"):
        values.pop(name, None)
    path = tmp_path / "old.json"
    path.write_text(json.dumps({**values, "version": 1}, indent=2))
    page = open_page(site.url)
    open_files(page, path)
    page.wait_for_selector(".run[data-phase=done] .code")
    assert page.locator(".tabs button").count() == 2


def test_program_is_seen_while_it_is_written(site: Site, open_page: Open, tmp_path: Path) -> None:
    values = json.loads(to_json(repaired()))
    events = [{"event": "drafting", "at": 0.1, "source": 'docs = retrieve("a mill'}]
    events += [{"event": "planned", "at": 0.2, "program": 0}, {"event": "rejected", "at": 0.3, "error": 0}]
    events += [{"event": "drafting", "at": 0.4, "source": "north = "}, {"event": "planned", "at": 0.5, "program": 1}]
    path = tmp_path / "drafts.json"
    path.write_text(json.dumps({**values, "events": events}))
    page = open_page(site.url)
    open_files(page, path)
    page.wait_for_selector(".run")
    being_written = page.get_by_role("list", name="Program, being written")
    seen = []
    for number in range(1, 6):
        page.locator(".stepper input").fill(str(number))
        seen.append(being_written.all_text_contents())
    assert seen == [['1docs = retrieve("a mill'], [], [], ["1north = "], []]


def test_page_from_disk_needs_no_server(open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text(to_html([repaired()]))
    page = open_page(f"file://{tmp_path}/one.html")
    assert page.locator(".answer").text_content().startswith("Ann Thorpe")
    assert page.locator("textarea").count() == 0
    (tmp_path / "two.html").write_text(to_html([repaired(), repaired()]))
    page = open_page(f"file://{tmp_path}/two.html")
    for index in (0, 1):
        page.get_by_role("checkbox").nth(index).check()
    page.get_by_role("link", name="Compare the two").click()
    assert page.locator(".pair .question").count() == 2


def test_notebook_frame_shows_the_trace(open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "book.html").write_text(f"<main>a notebook</main>{to_frame(repaired())}")
    page = open_page(f"file://{tmp_path}/book.html")
    frame = page.frame_locator("iframe")
    frame.locator(".answer").wait_for()
    frame.locator("button.node").first.click()
    assert frame.locator("dialog .facts").is_visible()


def test_coverage_stands_beside_the_answer_and_its_step(open_page: Open, site: Site, tmp_path: Path) -> None:
    page = open_page(site.url)
    open_files(page, written(tmp_path, enumerated()))
    page.wait_for_selector(".run[data-phase=done] .coverage")
    sentence = "412 of 415 documents answered, 2 unknown, 1 not reached (the budget of 414 model calls is spent)"
    weak = "; 1 of 412 answers is weak"
    assert page.locator(".coverage").all_text_contents() == [f"{sentence}{weak}: When was it founded?"]
    assert page.locator(".items dd").all_inner_texts() == ["Mill 1: 1788 1", "Mill 2"]
    page.get_by_role("button", name="each").first.click()
    sheet = page.locator(".sheet").inner_text()
    assert sentence in sheet
    assert "Mill 7, Mill 9" in sheet
    assert "Mill 12" in sheet
    assert "Mill 3" in sheet
