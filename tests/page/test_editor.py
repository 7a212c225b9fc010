"""The editor of the page: a program is run, its lines are watched, mistakes are named, hostile text stays text."""

from __future__ import annotations

from typing import Any

from tests.page.conftest import Open, Site


def opened(page_of: Open, site: Site) -> Any:
    page = page_of(f"{site.url}/#/program")
    page.wait_for_selector("#source")
    return page


def run(page: Any, source: str, inputs: str = "") -> None:
    page.fill("#source", source)
    page.fill("#inputs", inputs)
    page.get_by_role("button", name="Run").click()


def test_example_program_shows_items_with_sources(site: Site, open_page: Open) -> None:
    page = opened(open_page, site)
    page.get_by_role("button", name="Run").click()
    page.wait_for_selector(".items")
    assert page.locator(".items dt").all_text_contents() == ["Jed Hoyer", "John William Henry II"]
    assert page.locator(".items dd").all_text_contents() == ["7 December 1973 1", "13 September 1949 2"]
    assert page.locator(".run .question").text_content() == "Birth dates."
    assert page.locator(".code .value").count() >= 2
    page.locator(".items").get_by_role("button", name="Source 2: John William Henry II").click()
    assert page.locator("dialog h2").text_content() == "John William Henry II"


def test_mistake_names_its_line_and_cure(site: Site, open_page: Open) -> None:
    page = opened(open_page, site)
    run(page, "x = 1\nfinal_answer = anser('q')")
    page.wait_for_selector(".verdict .problem")
    assert page.locator(".verdict .problem").inner_text().split("\n") == [
        "line 2: final_answer = anser('q')",
        "NameError: name 'anser' is not defined",
        "Did you mean answer?",
    ]


def test_inputs_that_are_no_object_are_refused_at_once(site: Site, open_page: Open) -> None:
    page = opened(open_page, site)
    run(page, "final_answer = 1", "[1]")
    assert "not a JSON object" in page.locator("#program-problem").inner_text()
    run(page, "final_answer = x + 1", '{"x": 41}')
    page.wait_for_selector("p.answer")
    assert page.locator("p.answer").inner_text() == "42"
    assert page.locator("#program-problem").inner_text() == ""


def test_printed_and_returned_markup_stays_text(site: Site, open_page: Open) -> None:
    page = opened(open_page, site)
    run(page, "t = '<img src=x onerror=alert(1)>'\nprint(t)\nfinal_answer = {t: t}")
    page.wait_for_selector(".printed pre")
    assert page.locator(".printed pre").inner_text().strip() == "<img src=x onerror=alert(1)>"
    assert page.locator(".items dt").inner_text() == "<img src=x onerror=alert(1)>"
    assert page.locator("main img").count() == 0


def test_keyboard_indents_runs_and_leaves_the_editor(site: Site, open_page: Open) -> None:
    page = opened(open_page, site)
    page.fill("#source", "")
    page.focus("#source")
    page.keyboard.type("if 1:\n")
    page.keyboard.press("Tab")
    page.keyboard.type("final_answer = 7")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("p.answer")
    assert page.locator("p.answer").inner_text() == "7"
    page.focus("#source")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "inputs"


def test_pages_keep_program_and_question_apart(site: Site, open_page: Open) -> None:
    page = opened(open_page, site)
    run(page, "final_answer = 5")
    page.wait_for_selector("p.answer")
    page.get_by_role("link", name="Ask").click()
    page.wait_for_selector("#question")
    assert page.locator("pyrag-run").count() == 0
    page.get_by_role("link", name="Program").click()
    page.wait_for_selector("#source")
    assert page.locator("p.answer").inner_text() == "5"
    assert page.input_value("#source") == "final_answer = 5"
