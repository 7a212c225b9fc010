"""Jupyter notebooks: text, code, outputs, and what is left out with a remark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyrag.errors import DataError
from pyrag.retrieval.documents.find import find_documents
from pyrag.retrieval.documents.opened_document import opened
from pyrag.retrieval.documents.reading import Columns, read_opened


def read(path: Path, book: Any) -> tuple[str, list[str], dict[str, Any]]:
    path.write_text(json.dumps(book))
    (document,) = find_documents([path])
    with opened(document) as file:
        passages = [placed.passage for placed in read_opened(file, Columns())]
        return "\n".join(passage.text for passage in passages), file.remarks, dict(passages[0].metadata)


def code(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs)}


def shown(**forms: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {name.replace("_", "/"): value for name, value in forms.items()}}


def test_outputs_of_notebooks_are_read(tmp_path: Path) -> None:
    error = {"output_type": "error", "ename": "ValueError", "evalue": "no rows for Dale", "traceback": ["x", "y"]}
    stream = {"output_type": "stream", "text": ["10 %\r50 %\rmean \x1b[31m4.27\x1b[0m m\n", "next line\n"]}
    cells = [
        {"cell_type": "markdown", "source": ["# Levels\n", "Of the weir."], "attachments": {"a.png": {}}},
        {"cell_type": "raw", "source": "A raw remark."},
        code("print(a)", stream),
        code("town", shown(text_plain=["   town\n", "0  Vik"])),
        code("plot", shown(image_png="aGk=", text_plain="<Figure size 640x480>")),
        code("model", shown(text_markdown="**Best** is M7", text_plain="Markdown")),
        code("rate", shown(text_latex="$0.83$")),
        code("chart", shown(**{"application/vnd.plotly.v1+json": {}})),
        code("run", error),
    ]
    book = {"cells": cells, "metadata": {"authors": [{"name": "Ann Rook"}]}, "nbformat": 4}
    text, remarks, metadata = read(tmp_path / "a.ipynb", book)
    for words in (
        "Of the weir.",
        "A raw remark.",
        "\nmean 4.27 m\nnext line",
        "\n   town\n0  Vik",
        "**Best** is M7",
        "$0.83$",
    ):
        assert words in text, words
    assert "ValueError: no rows for Dale" in text
    assert "50 %" not in text
    assert "Figure" not in text
    assert remarks == ["left out: images (2), outputs without a text (1), traces of errors (1)"]
    assert metadata == {"author": "Ann Rook"}


def test_tables_of_outputs_keep_their_columns(tmp_path: Path) -> None:
    pytest.importorskip("html_to_markdown")
    page = "<table><tr><th></th><th>Peak</th><th>Height</th></tr><tr><th>0</th><td>Galdh</td><td>2469</td></tr></table>"
    text, remarks, _ = read(tmp_path / "a.ipynb", {"cells": [code("t", shown(text_html=page, text_plain="obj"))]})
    assert "|  | Peak | Height |" in text
    assert "| 0 | Galdh | 2469 |" in text
    assert remarks == []


def test_notebooks_of_version_3_are_read(tmp_path: Path) -> None:
    output = {"output_type": "pyout", "text": ["42 oars"], "png": "aGk="}
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Boats"},
        {"cell_type": "code", "input": "count()", "outputs": [output]},
    ]
    text, remarks, _ = read(tmp_path / "a.ipynb", {"worksheets": [{"cells": cells}], "nbformat": 3})
    assert "count()" in text
    assert "42 oars" in text
    assert remarks == ["left out: images (1)"]


@pytest.mark.parametrize("book", [[], 3, {"cells": 3}, {"cells": [{}]}, {"metadata": None, "cells": []}])
def test_files_that_are_not_notebooks_are_refused(tmp_path: Path, book: Any) -> None:
    with pytest.raises(DataError, match=r"a\.ipynb cannot be read as a notebook"):
        read(tmp_path / "a.ipynb", book)
