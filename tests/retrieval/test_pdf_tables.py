"""Ruled tables of PDF pages, and tables of Markdown in plain text."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrag.retrieval.documents.find import find_documents
from pyrag.retrieval.documents.formats.pdf_tables import TablePlacer
from pyrag.retrieval.documents.opened_document import opened
from pyrag.retrieval.documents.reading import Columns, read_opened
from pyrag.trace.model import Passage

HEAD, RULE = "| Ship | Load | Tons |", "| --- | --- | --- |"


def read(path: Path, content: str) -> tuple[list[Passage], list[str]]:
    path.write_text(content)
    (document,) = find_documents([path])
    with opened(document) as file:
        return [placed.passage for placed in read_opened(file, Columns())], file.remarks


def test_a_table_takes_the_place_of_its_words() -> None:
    placer = TablePlacer()
    rows = [["Ship", "Load", "Tons"], ["Alka", "wet timber", ""], ["Brit", "", "85"]]
    text = placer.placed("The ships.\nShip Load Tons\nAlka wet\ntimber\nBrit 85\nAll in May.", [rows])
    table = f"{HEAD}\n{RULE}\n| Alka | wet timber |  |\n| Brit |  | 85 |"
    assert (text, placer.unplaced) == (f"The ships.\n\n{table}\n\nAll in May.", 0)


def test_a_table_whose_words_stand_in_another_order_stays_text() -> None:
    placer = TablePlacer()
    page = "Ship\nAlka\nTons\n7"
    assert placer.placed(page, [[["Ship", "Tons"], ["Alka", "7"]]]) == page
    assert placer.unplaced == 1


def test_a_table_over_two_pages_keeps_its_heading() -> None:
    placer = TablePlacer()
    placer.placed("Ship Load Tons Alka oak 7", [[["Ship", "Load", "Tons"], ["Alka", "oak", "7"]]])
    text = placer.placed("Page 2\nBrit salt 85\nCora ash 4", [[["Brit", "salt", "85"], ["Cora", "ash", "4"]]])
    assert text == f"Page 2\n\n{HEAD}\n{RULE}\n| Brit | salt | 85 |\n| Cora | ash | 4 |"
    other = placer.placed("Owner Town\nAnn Moss", [[["Owner", "Town"], ["Ann", "Moss"]]])
    assert other == "| Owner | Town |\n| --- | --- |\n| Ann | Moss |"


def pdf(rows: list[list[str]]) -> str:
    """Return a PDF file with a ruled table, whose columns are 100 points wide."""
    height, width = 20 * len(rows), 100 * len(rows[0])
    lines = [f"72 {700 - 20 * row} m {72 + width} {700 - 20 * row} l S" for row in range(len(rows) + 1)]
    lines += [f"{72 + 100 * column} 700 m {72 + 100 * column} {700 - height} l S" for column in range(len(rows[0]) + 1)]
    cells = [
        (text, 76 + 100 * column, 686 - 20 * row) for row, texts in enumerate(rows) for column, text in enumerate(texts)
    ]
    lines += [f"BT /F1 10 Tf {x} {y} Td ({text}) Tj ET" for text, x, y in cells if text]
    content = "\n".join(lines)
    return f"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 4 0 R>>>>/Contents 5 0 R>>endobj
4 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
5 0 obj<</Length {len(content)}>>stream
{content}
endstream endobj
trailer<</Root 1 0 R>>
%%EOF
"""


def test_ruled_tables_of_pdf_pages_keep_their_columns(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    pytest.importorskip("xberg")
    rows = [["Berth", "Depth", "Fee"], ["North", "4.5", ""], ["South", "", "320"], ["East", "7.25", "1150"]]
    (passage,), remarks = read(tmp_path / "a.pdf", pdf(rows))
    heading = "| Berth | Depth | Fee |\n|---|---|---|"
    assert passage.text == f"{heading}\n| North | 4.5 |  |\n| South |  | 320 |\n| East | 7.25 | 1150 |"
    assert remarks == []


def test_missing_converters_of_tables_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pypdfium2")
    for module in ("pdf", "pdf_tables"):
        monkeypatch.setattr(f"pyrag.retrieval.documents.formats.{module}.find_spec", lambda name: None)
    (passage,), (remark,) = read(tmp_path / "a.pdf", pdf([["Berth", "Fee"], ["North", "320"]]))
    assert passage.text.split() == ["Berth", "Fee", "North", "320"]
    assert remark.startswith("tables of the PDF, if any, were read as lines: to keep their cells apart")


def test_tables_in_plain_text_repeat_their_heading(tmp_path: Path) -> None:
    rows = [f"| Lamp {number} of glass | {number * 3} | hall {number} |" for number in range(80)]
    text = "\n".join(["All lamps:", HEAD, RULE, *rows, "The end."])
    passages, _ = read(tmp_path / "a.txt", text)
    assert len(passages) > 2
    assert all(HEAD in passage.text for passage in passages if "Lamp " in passage.text)
    assert passages[0].text.startswith("All lamps:\n| Ship")
    assert passages[-1].text.endswith("The end.")
    assert text[passages[0].start : passages[0].end].startswith("All lamps:")
