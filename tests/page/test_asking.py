"""Asking at the page: answers, the live program, keys of the keyboard, refusals, and questions that are given up."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pyrag.retrieval.index import update_index
from tests.page.conftest import HeldModels, Open, Site, Watch, ask, models, served, wait_until
from tests.server.conftest import ModelServer, role_in

COMPARISON = "Who is older, Jed Hoyer or John William Henry II?"
SCRIPTED = "Who is Jed Hoyer?"
MILLER = "Who was the mill run by?"
MILLERS = {1820: "Ann", 1900: "Ben"}
BROKEN = """```python
docs = retrieve("Who is Jed Hoyer?")
final_answer = nonsense(docs)
```"""


def answer_of(page: Any) -> str:
    page.wait_for_selector(".answer")
    found: str = page.locator(".answer").evaluate("(one) => one.firstChild.data")
    return found


def running(url: str) -> float:
    with urllib.request.urlopen(f"{url}/metrics") as reply:
        (found,) = re.findall(r"^pyrag_questions_running(?:\{[^}]*\})? (\S+)", reply.read().decode(), re.MULTILINE)
    return float(found)


def test_example_is_answered_with_its_evidence(site: Site, open_page: Open) -> None:
    page = open_page(site.url)
    page.get_by_role("button", name=COMPARISON).click()
    assert answer_of(page) == "John William Henry II"
    assert page.locator(".code .value").count() == 4
    assert page.locator(".node[data-status=done]").count() == 5
    assert page.locator(".node[data-status=skipped]").count() == 1
    assert page.locator(".sub-answer").all_text_contents() == ["7 December 1973", "13 September 1949"]
    page.get_by_role("button", name="Source 1: Jed Hoyer").click()
    assert page.locator("dialog h2").text_content() == "Jed Hoyer"
    assert page.locator("dialog .evidence mark").first.text_content() == "7 December 1973"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Source 1: Jed Hoyer"


def test_every_example_is_answered(site: Site, open_page: Open) -> None:
    page = open_page(site.url)
    page.wait_for_selector(".examples button")
    examples = page.locator(".examples button").all_text_contents()
    assert len(examples) == 6
    for question in examples:
        ask(page, question)
        page.locator(".question", has_text=question).wait_for()
        page.wait_for_selector(".run[data-phase=done] .answer[data-known=true]")


def test_keyboard_alone_asks_opens_and_steps(site: Site, open_page: Open) -> None:
    page = open_page(site.url)
    page.wait_for_selector(".examples button")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab_to(page, "textarea")
    page.keyboard.type(COMPARISON)
    page.keyboard.press("Enter")
    page.wait_for_selector(".run[data-phase=done] .cite")
    tab_to(page, ".cite")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] .evidence")
    page.keyboard.press("Escape")
    tab_to(page, ".value")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] .facts")
    page.keyboard.press("Escape")
    tab_to(page, "button.node")
    tab_to(page, "button.row")
    tab_to(page, ".stepper input")
    page.keyboard.press("Home")
    assert page.locator(".code .value").count() == 0
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    assert page.locator(".stepper-at").text_content().startswith("6 / ")
    page.keyboard.press("End")
    assert page.locator(".code .value").count() == 4


def tab_to(page: Any, selector: str) -> None:
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            shown = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert shown != "none" or page.evaluate("document.activeElement.type") == "file"
            return
    raise AssertionError(f"Tab does not reach {selector}")


def test_screen_readers_hear_what_happens(site: Site, open_page: Open) -> None:
    page = open_page(site.url)
    ask(page, COMPARISON)
    page.locator("[role=status]", has_text="Answer: John William Henry II").wait_for(state="attached")


def test_lines_light_up_while_their_step_runs(open_page: Open, tmp_path: Path) -> None:
    script = HeldModels("answer")
    with models(script) as engine, served(tmp_path, "--llm", engine) as site:
        page = open_page(site.url)
        ask(page, SCRIPTED)
        page.wait_for_selector(".code li:nth-child(2)[data-status=running]")
        assert page.locator(".code li:nth-child(1)").get_attribute("data-status") == "done"
        assert page.locator(".node[data-status=running]").count() == 1
        assert page.locator(".node[data-status=waiting]").count() == 2
        assert page.locator(".bar[data-kind=answer][data-status=running]").count() == 1
        assert page.get_by_role("button", name="Stop").is_visible()
        script.release()
        assert answer_of(page) == "an executive"
        assert page.locator(".bar[data-kind=agent]").count() == 2


def test_program_is_repaired_before_the_eyes(open_page: Open, tmp_path: Path) -> None:
    class Repairing(ModelServer):
        def reply(self, body: dict[str, Any]) -> str:
            first = sum(role == "plan" for role in self.roles) == 1
            return BROKEN if self.roles[-1] == "plan" and first else super().reply(body)

    with models(Repairing()) as engine, served(tmp_path, "--llm", engine) as site:
        page = open_page(site.url)
        ask(page, SCRIPTED)
        assert answer_of(page) == "an executive"
        page.get_by_role("button", name="Version 1 rejected").click()
        assert "nonsense" in page.locator(".rejection pre").text_content()
        page.get_by_role("button", name="Version 2", exact=True).click()
        assert "nonsense" in page.locator(".changes li[data-sign='-']").text_content()


def test_stop_ends_the_question_on_the_server(open_page: Open, tmp_path: Path) -> None:
    with models(HeldModels("answer")) as engine, served(tmp_path, "--llm", engine) as site:
        page = open_page(site.url)
        ask(page, SCRIPTED)
        page.wait_for_selector(".bar[data-kind=answer][data-status=running]")
        assert running(site.url) == 1
        page.get_by_role("button", name="Stop").click()
        page.wait_for_selector(".run[data-phase=stopped]")
        wait_until(lambda: running(site.url) == 0)
        assert page.get_by_role("button", name="Ask", exact=True).is_visible()


def test_closed_tab_ends_the_question_on_the_server(open_page: Open, tmp_path: Path) -> None:
    with models(HeldModels("answer")) as engine, served(tmp_path, "--llm", engine) as site:
        page = open_page(site.url)
        ask(page, SCRIPTED)
        page.wait_for_selector(".bar[data-kind=answer][data-status=running]")
        page.close()
        wait_until(lambda: running(site.url) == 0)


def test_busy_server_says_when_to_try_again(open_page: Open, watch: Watch, tmp_path: Path) -> None:
    watch.expected = ("429", "ERR_")  # the server ends first
    limits = ("--concurrency", "1", "--max-waiting", "0")
    with models(HeldModels("answer")) as engine, served(tmp_path, "--llm", engine, *limits) as site:
        first, second = open_page(site.url), open_page(site.url)
        ask(first, SCRIPTED)
        first.wait_for_selector(".bar[data-kind=answer][data-status=running]")
        ask(second, SCRIPTED)
        second.wait_for_selector("#problem:not(:empty)")
        assert re.search(r"\. Try again in \d+ seconds?\.$", second.locator("#problem").text_content())
        assert second.locator("textarea").input_value() == SCRIPTED


def test_key_is_asked_for_and_kept_in_the_tab(open_page: Open, watch: Watch, tmp_path: Path) -> None:
    watch.expected = ("401",)
    key = "k-0123456789abcdef"
    with served(tmp_path, PYRAG_SERVE_API_KEY=key) as site:
        page = open_page(site.url)
        page.fill("input[type=password]", "not-the-right-key")
        page.keyboard.press("Enter")
        page.wait_for_selector(".key .problem")
        page.fill("input[type=password]", key)
        page.keyboard.press("Enter")
        page.get_by_role("button", name=COMPARISON).click()
        assert answer_of(page) == "John William Henry II"
        page.reload()
        page.wait_for_selector(".examples button")
        assert page.evaluate("localStorage.length") == 0
        assert key not in page.context.cookies().__repr__()


def test_server_that_is_gone_is_one_sentence(open_page: Open, watch: Watch, tmp_path: Path) -> None:
    watch.expected = ("ERR_",)
    with models(HeldModels("answer")) as engine, served(tmp_path, "--llm", engine) as site:
        page = open_page(site.url)
        ask(page, SCRIPTED)
        page.wait_for_selector(".bar[data-kind=answer][data-status=running]")
        site.kill()
        page.wait_for_selector(".run[data-phase=failed] .problem")
        assert page.locator(".run .problem").text_content().startswith("The server does not answer")
        ask(page, SCRIPTED)
        page.wait_for_selector("#problem:not(:empty)")
        assert page.locator("#problem").text_content().startswith("The server does not answer")


def test_refused_question_is_one_sentence(site: Site, open_page: Open, watch: Watch) -> None:
    watch.expected = ("400",)
    page = open_page(site.url)
    ask(page, "why " * 20_000)
    page.wait_for_selector("#problem:not(:empty)")
    assert re.fullmatch(r"The question is too long: it has [\d,]+ bytes, .*\.", page.locator("#problem").text_content())


def test_question_that_fails_shows_its_error(open_page: Open, tmp_path: Path) -> None:
    script = ModelServer(refuse=lambda body: (400, {"error": {"message": "no"}}))
    with models(script) as engine, served(tmp_path, "--llm", engine) as site:
        page = open_page(site.url)
        ask(page, SCRIPTED)
        page.wait_for_selector(".run[data-phase=failed] .problem")
        assert page.locator(".answer").count() == 0


def test_unknown_answer_is_said_to_be_unknown(site: Site, open_page: Open) -> None:
    page = open_page(site.url)
    ask(page, "Who was the first mayor of Atlantis-on-Mars?")
    page.wait_for_selector(".answer[data-known=false]")
    remark = page.locator(".remark").text_content()
    assert "bundled corpus" in remark
    assert "; try other words, " in remark
    assert "Model calls" not in page.locator(".figures").text_content()


def test_filter_narrows_the_search_or_shows_its_error(open_page: Open, watch: Watch, tmp_path: Path) -> None:
    watch.expected = ("400",)
    rows = [{"id": str(year), "text": f"The mill was run by {name}.", "year": year} for year, name in MILLERS.items()]
    (tmp_path / "mill.jsonl").write_text("\n".join(map(json.dumps, rows)))
    update_index([tmp_path / "mill.jsonl"], tmp_path / "index")
    with served(tmp_path, "--index", f"mill={tmp_path / 'index'}") as site:
        page = open_page(site.url)
        page.wait_for_selector("input[name=where]")
        page.fill("input[name=where]", "year >")
        ask(page, MILLER)
        page.wait_for_selector(".ask .problem:not(:empty)")
        assert "filter" in page.locator(".ask .problem").text_content().lower()
        for year in MILLERS:
            page.fill("input[name=where]", f"year = {year}")
            ask(page, MILLER)
            page.locator(".about", has_text=f"year = {year}").wait_for()
            page.wait_for_selector(".run[data-phase=done]")
            page.locator(".node[data-primitive=retrieve]").first.click()
            assert page.locator("dialog .passage").all_text_contents() == [f"The mill was run by {MILLERS[year]}."]
            page.keyboard.press("Escape")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_the_system_until_it_is_chosen(site: Site, open_page: Open, scheme: str) -> None:
    page = open_page(site.url, scheme=scheme)
    dark = "(() => getComputedStyle(document.documentElement).backgroundColor)()"
    own = page.evaluate(dark)
    page.get_by_role("button", name="Theme: system").click()
    page.get_by_role("button", name="Theme: light").click()
    chosen = page.evaluate(dark)
    assert (chosen == own) is (scheme == "dark")
    page.reload()
    page.get_by_role("button", name="Theme: dark").wait_for()
    assert page.evaluate(dark) == chosen


class WritingModels(ModelServer):
    """A model server that streams programs by lines; the last lines wait until `release()`."""

    def __init__(self) -> None:
        super().__init__()
        self._released = threading.Event()

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if not body.get("stream") or role_in(body) != "plan":
            return await super().chat(request)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        lines = self.reply(body).splitlines(keepends=True)
        for number, line in enumerate(lines):
            if number == len(lines) - 2:
                await asyncio.to_thread(self._released.wait)
            await response.write(_chunk({"delta": {"content": line}}))
        await response.write(_chunk({"delta": {}, "finish_reason": "stop"}) + b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    def release(self) -> None:
        self._released.set()


def _chunk(choice: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def test_drafts_of_a_streaming_model_are_seen_live(open_page: Open, tmp_path: Path) -> None:
    script = WritingModels()
    with models(script) as llm, served(tmp_path, "--llm", llm) as site:
        page = open_page(site.url)
        ask(page, "Who is Jed Hoyer?")
        draft = page.get_by_role("list", name="Program, being written")
        draft.get_by_text('job = answer("Who is Jed Hoyer?", docs)').wait_for()
        assert page.locator(".run").get_attribute("data-phase") == "planning"
        assert "final_answer" not in draft.text_content()
        script.release()
        page.wait_for_selector(".run[data-phase=done]")
        assert draft.count() == 0
        assert "final_answer" in page.locator(".code").text_content()
        assert answer_of(page).startswith("an executive")


def test_question_goes_to_the_chosen_index(open_page: Open, tmp_path: Path) -> None:
    options = []
    for name, text in (("zoo", "A zebra lives in the zoo."), ("mill", "The mill was founded by Ann Thorpe.")):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\n{text}")
        update_index([tmp_path / f"{name}.md"], tmp_path / f"ix-{name}")
        options += ["--index", f"{name}={tmp_path / f'ix-{name}'}"]
    with served(tmp_path, *options) as site:
        page = open_page(site.url)
        index = page.locator("select[name=index]")
        index.wait_for()
        assert index.locator("option").all_text_contents() == ["zoo", "mill"]
        for name in ("mill", "zoo"):
            index.select_option(name)
            ask(page, "Who founded the mill?")
            page.wait_for_selector(".run[data-phase=done]")
            with urllib.request.urlopen(f"{site.url}/v1/traces?limit=1") as reply:
                (newest,) = json.loads(reply.read())["traces"]
            assert newest["index"] == name
