"""Write docs/page.png, a picture of a question at the page of `pyrag serve`: `make page-picture`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PICTURE = Path(__file__).parent.parent / "docs/page.png"
QUESTION = "Who is older, Jed Hoyer or John William Henry II?"
WIDTH = 1120  # CSS pixels: GitHub and the site show pictures about 850 wide
MARGIN = 16


def main() -> None:
    """Start a server over the bundled corpus, ask the question of README.md at its page, and take the picture."""
    command = [sys.executable, "-m", "pyrag", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            take_picture(server.stdout.readline().split("serving at ")[1].split()[0])
        finally:
            server.terminate()


def take_picture(address: str) -> None:
    """Ask the question at a server's page and save the page down to the end of its dataflow.

    Args:
        address: Address of the server, as http://host:port.
    """
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("PAGE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": 900},
            device_scale_factor=1.5,
            color_scheme="light",
            reduced_motion="reduce",
        )
        page.goto(address)
        page.fill("textarea", QUESTION)
        page.press("textarea", "Enter")
        page.get_by_text("Answered in").wait_for()
        page.wait_for_timeout(500)  # transitions end
        page.evaluate("document.querySelector('.stepper').style.position = 'static'")  # else it covers the program
        page.evaluate("document.activeElement.blur()")
        page.screenshot(path=PICTURE, clip={"x": 0, "y": 0, "width": WIDTH, "height": bottom_of(page)}, full_page=True)
        browser.close()


def bottom_of(page: Any) -> float:
    """Return the height at which the program and its dataflow end, in CSS pixels."""
    boxes = [page.locator(part).first.bounding_box() for part in (".program", ".dataflow")]
    return max(float(box["y"] + box["height"]) for box in boxes if box) + MARGIN


if __name__ == "__main__":
    main()
