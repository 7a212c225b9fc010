"""Plots and tables of report pages: labels keep clear of each other, everything stays inside."""

from __future__ import annotations

import itertools
import random
import re
from xml.etree import ElementTree as ET

import pytest

from pyrag.evaluation.reports import svg
from pyrag.evaluation.reports.writer import Table, document, plots_html, table_html, upright

SVG = "{http://www.w3.org/2000/svg}"
LETTER = 6.6


def label_boxes(plot: str, names: list[str]) -> list[svg.Box]:
    boxes = []
    for element in ET.fromstring(plot).iter(f"{SVG}text"):
        if element.text in names:
            x, y = float(element.get("x", "0")), float(element.get("y", "0"))
            assert element.get("text-anchor") == "start"
            boxes.append(svg.Box(x, y - 10, x + LETTER * len(element.text), y + 3))
    return boxes


@pytest.mark.parametrize("seed", range(12))
def test_labels_of_points_never_overlap(seed: int) -> None:
    pick = random.Random(seed)
    names = [f"method-{n}" for n in range(10)]
    spread = pick.choice([0.0, 0.5, 5.0])
    points = {name: (3 + spread * pick.random(), 40 + 4 * spread * pick.random()) for name in names}
    boxes = label_boxes(svg.scatter("Title", points, "calls", "EM"), names)
    assert len(boxes) == len(names)
    assert not any(one.meets(other) for one, other in itertools.combinations(boxes, 2))
    assert all(box.left >= 0 and box.right <= svg.WIDTH and box.top >= 0 and box.bottom <= svg.HEIGHT for box in boxes)


def test_long_names_stay_inside() -> None:
    long = "a-run-with-a-very-long-name:search-agent:r1-searcher-" + "x" * 60
    plots = [
        svg.scatter(long, {long: (1, 50), long + "2": (1.1, 51)}, "calls", "EM"),
        svg.stacked_bars("All questions", {long: {"right": 0.5, "wrong": 0.5}}, {"right": "#000", "wrong": "#111"}),
        svg.grouped_bars(long, [long, "hop 2"], {"a": [10, 20]}, "%"),
    ]
    for plot in plots:
        for element in ET.fromstring(plot).iter(f"{SVG}text"):
            text, x, anchor = element.text or "", float(element.get("x", "0")), element.get("text-anchor")
            width = LETTER * len(text)
            left = x - {"start": 0, "middle": width / 2, "end": width}[str(anchor)]
            assert left >= -1, text
            assert left + width <= svg.WIDTH + 8, text


def test_pages_fit_telephones_and_put_plots_side_by_side() -> None:
    page = document("T", plots_html([svg.curves("C", {"a": [(0, 1)]}, "x", "y")] * 2))
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert re.search(r"\.plots \{ display: grid; .*minmax\(min\(100%, 400px\), 1fr\)", page)
    assert page.count('<div class="plots">') == 1


def test_cells_may_be_links() -> None:
    table = Table(("set", "n"), [("a<b", "3"), ("c", "4")])
    html = table_html(table, {(1, 1): "#x&y"})
    assert '<a href="#x&amp;y">4</a>' in html
    assert "a&lt;b" in html
    assert html.count("<a ") == 1


def test_a_table_of_many_columns_and_few_rows_is_turned() -> None:
    wide = Table(("error", *(f"m{n}" for n in range(20))), [("x", *map(str, range(20))), ("y", *["0"] * 20)])
    turned = upright(wide)
    assert turned.header == ("error", "x", "y")
    assert turned.rows[3] == ("m3", "3", "0")
    tall = Table(("set", "method", "n"), [("a", "b", "1")] * 30, left=2)
    assert upright(tall) is tall
