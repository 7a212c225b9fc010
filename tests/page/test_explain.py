"""The panel of estimates on the page: questions and programs, lines and totals, hostile text."""

from __future__ import annotations

from tests.page.conftest import Open, Site


def test_question_is_explained_and_not_answered(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.url}/")
    page.fill("#question", "Who is older, Jed Hoyer or John William Henry II?")
    page.get_by_role("button", name="Explain").click()
    page.wait_for_selector(".explain table")
    assert page.locator(".explain h2").inner_text() == "Estimate before running"
    assert 'retrieve("Jed Hoyer born"' in page.locator(".explain").inner_text()
    assert page.locator("pyrag-run").count() == 0
    page.get_by_role("button", name="Close").click()
    assert page.locator(".explain").count() == 0


def test_program_shows_exact_counts_and_hostile_text(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.url}/#/program")
    page.wait_for_selector("#source")
    page.fill("#inputs", "")
    page.fill("#source", "t = '<img src=x onerror=alert(1)>' + str(count())\nfinal_answer = t")
    page.get_by_role("button", name="Explain").click()
    page.wait_for_selector(".explain table")
    assert page.locator(".explain td code").inner_text() == "t = '<img src=x onerror=alert(1)>' + str(count())"
    assert "349" in page.locator(".explain").inner_text()
    assert page.locator("main img").count() == 0


def test_mistake_is_named(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.url}/#/program")
    page.wait_for_selector("#source")
    page.fill("#inputs", "")
    page.fill("#source", "final_answer = anser('q')")
    page.get_by_role("button", name="Explain").click()
    page.wait_for_selector(".explain .problem")
    assert "Did you mean answer?" in page.locator(".explain .problem").inner_text()
