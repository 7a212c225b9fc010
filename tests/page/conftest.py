"""Chromium on pages of a real `pyrag serve`. A request to another host, a dialog or a console error fails a test.

`make test-page` runs these tests. Without Playwright or Chromium they are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.cli.conftest import COMMAND, environment
from tests.server.conftest import ModelServer, role_in, serving

CHROMIUM = os.environ.get("PAGE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
TIMEOUT = 60_000  # milliseconds; for busy machines
Open = Callable[..., Any]


@dataclass
class Site:
    """A `pyrag serve` in a process of its own."""

    url: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def served(folder: Path, *options: str, **env: str) -> Iterator[Site]:
    command = [*COMMAND, "serve", "--port", "0", *options]
    process = subprocess.Popen(command, cwd=folder, env=environment(**env), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert "serving at " in line, line
        yield Site(line.split("serving at ")[1].split()[0], process)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="session")
def site(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The embedded engine over the bundled corpus."""
    with served(tmp_path_factory.mktemp("site")) as found:
        yield found


class HeldModels(ModelServer):
    """A model server whose requests of the roles in `held` wait until `release()`."""

    def __init__(self, *held: str) -> None:
        super().__init__()
        self.held = set(held)
        self._released = threading.Event()

    async def chat(self, request: web.Request) -> web.StreamResponse:
        import asyncio

        if role_in(await request.json()) in self.held:
            await asyncio.to_thread(self._released.wait)
        return await super().chat(request)

    def release(self) -> None:
        self._released.set()


@contextmanager
def models(script: ModelServer) -> Iterator[str]:
    """Yield the option that makes a model server the engine."""
    server = serving(script)
    with ThreadPoolExecutor(1) as thread:  # since Playwright's event loop runs in this one
        thread.submit(server.__enter__).result()
        try:
            yield f"openai:tiny@{script.url}"
        finally:
            if isinstance(script, HeldModels):
                script.release()
            thread.submit(server.__exit__, None, None, None).result()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="make test-page installs Playwright")
    if CHROMIUM is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    rules = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"  # the network is cut
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", f"--host-resolver-rules={rules}"]
        )
        yield launched
        launched.close()


@dataclass
class Watch:
    """Events that must not happen on a page; `expected` holds parts of console errors that a test brings about."""

    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()

    @property
    def found(self) -> list[str]:
        unexpected = [one for one in self.errors if not any(part in one for part in self.expected)]
        return self.foreign + unexpected + self.dialogs


@pytest.fixture
def watch() -> Iterator[Watch]:
    watching = Watch()
    yield watching
    assert watching.found == []


@pytest.fixture
def open_page(browser: Any, watch: Watch) -> Iterator[Open]:
    """Open an address in a context of its own: `open_page(url, width=…, scheme=…)`."""
    contexts = []

    def opened(url: str, width: int = 1280, height: int = 900, scheme: str = "light", **options: Any) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=False, **options
        )
        contexts.append(context)
        context.set_default_timeout(TIMEOUT)
        page = context.new_page()
        origin = "/".join(url.split("/")[:3])

        def requested(request: Any) -> None:
            if not request.url.startswith((origin, "data:", "about:")):
                watch.foreign.append(request.url)

        context.on("request", requested)
        page.on("console", lambda one: watch.errors.append(one.text) if one.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: watch.errors.append(str(error)))
        page.on("dialog", lambda dialog: (watch.dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(url)
        page.wait_for_selector("main")
        return page

    yield opened
    for context in contexts:
        context.close()


def ask(page: Any, question: str) -> None:
    page.fill("textarea", question)
    page.press("textarea", "Enter")


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for what another process brings about."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
