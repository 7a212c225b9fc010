"""Every state of the page at three widths, light and dark: axe finds no violation, and nothing runs over the edge.

PAGE_SHOTS=FOLDER keeps a picture of each state, to be looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyrag.trace.model import Answer
from pyrag.trace.verdict import judged
from tests.page.conftest import HeldModels, Open, Site, Watch, ask, models, served
from tests.page.test_traces import QUESTION, open_files, written
from tests.page.traces import repaired

SHOTS = os.environ.get("PAGE_SHOTS")
SIZES = [(360, 740), (1280, 900), (2560, 1440)]
LOOKS = [pytest.param(*size, scheme, id=f"{size[0]}-{scheme}") for size in SIZES for scheme in ("light", "dark")]
looks = pytest.mark.parametrize(("width", "height", "scheme"), LOOKS)


class Look:
    """Checks a state of a page, and keeps its picture."""

    def __init__(self, page: Any, name: str) -> None:
        axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="make test-page installs axe")
        self._page, self._name, self._axe = page, name, axe.Axe()

    def __call__(self, state: str, *, whole: bool = True) -> None:
        page = self._page
        page.wait_for_timeout(350)  # transitions end, so that colours are what they will be
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert (state, wide) == (state, 0)
        if SHOTS:
            folder = Path(SHOTS)
            folder.mkdir(parents=True, exist_ok=True)
            position = "static" if whole else ""  # a bar that sticks to the window would cover a picture of all of it
            stick = "(to) => document.querySelectorAll('.stepper').forEach((one) => (one.style.position = to))"
            page.evaluate(stick, position)
            page.screenshot(path=folder / f"{state}-{self._name}.png", full_page=whole)
            page.evaluate(stick, "")
        found = self._axe.run(page).response["violations"]
        told = [(one["id"], node["html"][:120], node["failureSummary"]) for one in found for node in one["nodes"]]
        assert (state, told) == (state, [])


@pytest.fixture
def look(open_page: Open, width: int, height: int, scheme: str) -> Callable[[str], tuple[Any, Look]]:
    def opened(url: str) -> tuple[Any, Look]:
        page = open_page(url, width=width, height=height, scheme=scheme, reduced_motion="reduce")
        return page, Look(page, f"{width}-{scheme}")

    return opened


@looks
def test_asking_and_answer(site: Site, look: Any, watch: Watch) -> None:
    watch.expected = ("400",)  # of the wrong filter
    page, check = look(site.url)
    page.wait_for_selector(".examples button")
    check("1-start")
    ask(page, "Which film has the director who was born first, Lawrence of Arabia or The Third Man?")
    page.wait_for_selector(".run[data-phase=done]")
    check("2-answer")
    page.locator(".source").first.click()
    check("3-passage", whole=False)
    page.keyboard.press("Escape")
    ask(page, "Who was the first mayor of Atlantis-on-Mars?")
    page.wait_for_selector(".answer[data-known=false]")
    check("4-unknown")
    page.fill("input[name=where]", "year >")
    page.press("input[name=where]", "Enter")
    page.wait_for_selector(".ask .problem:not(:empty)")
    check("4-filter")


@looks
def test_live_run_stop_and_refusal(look: Any, watch: Watch, tmp_path: Path) -> None:
    watch.expected = ("400", "ERR_")  # a failed test ends the server first
    with models(HeldModels("answer")) as engine, served(tmp_path, "--llm", engine) as site:
        page, check = look(site.url)
        ask(page, "Who is Jed Hoyer?")
        page.wait_for_selector(".bar[data-kind=answer][data-status=running]")
        check("5-live")
        page.get_by_role("button", name="Stop").click()
        page.wait_for_selector(".run[data-phase=stopped]")
        check("6-stopped")
        ask(page, "why " * 20_000)
        page.wait_for_selector("#problem:not(:empty)")
        page.fill("textarea", "")
        check("7-refused")


@looks
def test_saved_runs(site: Site, look: Any, tmp_path: Path) -> None:
    page, check = look(site.url)
    open_files(page, written(tmp_path, repaired(), repaired()))
    page.wait_for_selector(".rows a")
    check("8-traces")
    page.locator(".rows a", has_text=QUESTION).first.click()
    page.wait_for_selector(".run[data-phase=done]")
    check("9-repaired")
    page.get_by_role("button", name="1791, 2 attempts").click()
    check("10-step", whole=False)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Version 1 rejected").click()
    check("11-rejected")
    page.get_by_role("button", name="Version 2", exact=True).click()
    page.locator(".stepper input").fill("13")
    check("12-stepping")
    page.evaluate("() => { location.hash = '#/compare/file-1/file-2'; }")
    page.wait_for_selector(".pair .run")
    check("13-compare")
    open_files(page, written(tmp_path, judged(replace(repaired(), answer=Answer("Ann Thorpe", confidence=0.31)))))
    page.wait_for_selector(".run[data-weak=true]")
    check("15-weak")


@looks
def test_key(look: Any, watch: Watch, tmp_path: Path) -> None:
    watch.expected = ("401",)
    with served(tmp_path, PYRAG_SERVE_API_KEY="k-0123456789abcdef") as site:
        page, check = look(site.url)
        page.wait_for_selector("input[type=password]")
        check("14-key")
