"""Hostile content of files: reading takes a time in proportion to the size.

Each content took minutes to days with an expression that searches again from each position.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from pathlib import Path

import pytest

from pyrag.embedded.reader.neural.decode import _whole_address
from pyrag.errors import DataError
from pyrag.retrieval.documents.find import find_documents
from pyrag.retrieval.documents.formats import headings, html, notebook, office, properties, sheets
from pyrag.retrieval.documents.formats.number_formats import shown
from pyrag.retrieval.documents.formats.pdf_tables import Rows, TablePlacer
from pyrag.retrieval.documents.opened_document import opened
from pyrag.retrieval.documents.reading import Columns, read_opened

N = 50_000
STYLES = """<styleSheet xmlns="m"><numFmts><numFmt numFmtId="164" formatCode="0.0%"/></numFmts>
<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs></styleSheet>"""


def packed(**members: str | bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return buffer.getvalue()


def content(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(name)


@pytest.mark.parametrize("cells", ['<c s="1">', ' s="1"', "<c ", '<c s="1"><v>1', '<c s="1"><f>', "<v>1</v>"])
def test_broken_cells_of_workbooks_stay_as_they_are(cells: str) -> None:
    sheet = f'<sheetData><c r="A1" s="1"><v>0.5</v></c><c{cells * N}'
    workbook = "<workbookPr " * N
    data = packed(xl__styles_xml=STYLES, xl__workbook_xml=workbook, xl__worksheets__a_xml=sheet)
    result = content(sheets.with_shown_cells(data), "xl/worksheets/a.xml").decode()
    assert result == sheet.replace('<c r="A1" s="1"><v>0.5</v></c>', '<c r="A1" s="1" t="str"><v>50.0%</v></c>')
    assert office._FORMULA.findall(f"<c{cells * N}<c><f/>{' ' * N}".encode()) == []


def test_workbooks_of_many_styles_are_read() -> None:
    styles = '<styleSheet xmlns="m"><cellXfs>' + '<xf numFmtId="10"/>' * N + "</cellXfs></styleSheet>"
    sheet = "<d>" + f'<c s="{N - 1}"><v>0.5</v></c>' * N + "</d>"
    data = packed(xl__styles_xml=styles, xl__workbook_xml="<workbook/>", xl__worksheets__a_xml=sheet)
    assert content(sheets.with_shown_cells(data), "xl/worksheets/a.xml").count(b"<v>50.00%</v>") == N


def test_large_formats_of_workbooks_are_refused() -> None:
    data = packed(xl__styles_xml=" " * (sheets._MAX_PART + 1), xl__workbook_xml="<workbook/>")
    with pytest.raises(ValueError, match=r"its part xl/styles\.xml is larger than 16 MiB"):
        sheets.with_shown_cells(data)


def test_properties_of_many_values_and_levels_are_read() -> None:
    field = '<n:user-defined n:name="reviewer">'
    nested = field * 15_000 + "Ann" + "</n:user-defined>" * 15_000
    creators = "".join(f"<creator>a{number}</creator>" for number in range(5000))
    data = packed(meta_xml=f'<m xmlns:n="u">{nested}{creators}</m>')
    fields = properties.packed_properties(data).fields
    assert fields["reviewer"] == "Ann"
    assert len(fields["author"]) == 5000
    many = properties.properties_of(("author", f"a{number}") for number in range(2 * N))
    assert len(many.fields["author"]) == 2 * N


@pytest.mark.parametrize("tables", [[[["Berth", "Fee"], ["no", "9"]]] * 3000, [[["Berth", "Fee"], ["a", "1"]]] * 3000])
def test_pages_of_many_tables_are_read(tables: list[Rows]) -> None:
    page = "Berth Fee\na 1\n" * 3000 + "x " * N
    placer = TablePlacer()
    text = placer.placed(page, tables)
    assert placer.unplaced == (3000 if tables[0][1][0] == "no" else 0)
    assert text.count("| a | 1 |") == 3000 - placer.unplaced
    assert text.endswith("x ")


@pytest.mark.parametrize("word", ["a", "http://", "a.", "www._", "a@b."])
def test_long_words_are_whole_answers(word: str) -> None:
    text = word * N
    assert _whole_address(text, 0, len(text)) == (0, len(text))


@pytest.mark.parametrize("text", ["<text:p>", "<text:p ", "<", '<table:table-cell office:value-type="float">'])
def test_broken_cells_of_opendocument_sheets_stay_unchanged(text: str) -> None:
    cell = '<table:table-cell office:value-type="float" office:value="-2"><text:p>(2)</text:p></table:table-cell>'
    broken = f'<table:table-cell office:value-type="float"{" " * N}>{text * N}'
    result = content(sheets.with_shown_cells(packed(content_xml=cell + broken)), "content.xml").decode()
    assert "<text:p>-2</text:p>" in result
    assert result.endswith(broken)


@pytest.mark.parametrize("part", ["<style:header>", "<style:header ", "<style:header><text:p "])
def test_broken_page_headers_are_no_headers(part: str) -> None:
    pattern = next(pattern for name, pattern, _ in office._OPEN_PARTS if name == "styles.xml")
    assert not pattern.search(part.encode() * N)
    assert pattern.search(part.encode() * N + b"<style:header><text:p><text:s/></text:p><text:p>Draft</text:p>")


@pytest.mark.parametrize("code", ["[$" * N, "m " * N, "0." + "0" * 40, "0." + "0" * N, "0" + "%" * N])
def test_hostile_number_formats_have_no_form(code: str) -> None:
    assert shown(123456.789, code) is None


def test_long_rows_and_outputs_are_read() -> None:
    assert headings._FIGURE.fullmatch("1" + "." * N + "x" * 9) is None
    assert headings._VALUE.fullmatch("1." * N + "x") is None
    assert html._LINK.sub("", "[a](<" * N + "[b](c" + "d" * N).endswith("d")
    assert notebook._fenced("\n" * N + "a" * N).endswith("a\n```")
    assert notebook._plain("a" * N + "\r\n" + "b\r" * N + "c") == "a" * N + "\nc"
    assert properties.properties_of([("a" * N, "x"), ("og:citation_author", "Ann")]).fields == {"author": "Ann"}


@pytest.mark.parametrize("level", [10**9, math.inf, -1, "2", None, []])
def test_unknown_levels_of_headings_in_notebooks_are_low(tmp_path: Path, level: object) -> None:
    path = tmp_path / "a.ipynb"
    cells = [{"cell_type": "heading", "level": level, "source": "Weir"}, {"cell_type": "markdown", "source": "High."}]
    path.write_text(json.dumps({"metadata": {}, "cells": cells}))
    (document,) = find_documents([path])
    with opened(document) as file:
        (passage,) = [placed.passage for placed in read_opened(file, Columns())]
    assert (passage.title, passage.text) == ("Weir", "High.")


def test_long_leaders_are_cut_into_passages(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f'Contents {"." * N}3 {"?" * N}")x. End')
    (document,) = find_documents([path])
    with opened(document) as file:
        texts = [placed.passage.text for placed in read_opened(file, Columns())]
    assert sum(text.count(".") for text in texts) == N + 1


def test_office_files_with_many_parts_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("xberg")
    path = tmp_path / "a.xlsx"
    path.write_bytes(packed(**{f"a{number}": b"" for number in range(10_001)}))
    (document,) = find_documents([path])
    with opened(document) as file, pytest.raises(DataError, match="has more than 10,000 parts"):
        list(read_opened(file, Columns()))


def test_endless_soft_breaks_of_contacts_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "a.vcf"
    path.write_text("BEGIN:VCARD\nNOTE;ENCODING=QUOTED-PRINTABLE:x" + "ab=\n" * (10 * N))
    (document,) = find_documents([path])
    with opened(document) as file:
        texts = [placed.passage.text for placed in read_opened(file, Columns())]
    assert sum(text.count("b") for text in texts) >= 10 * N


@pytest.mark.parametrize(("kind", "part"), [("docx", "word__document_xml"), ("xlsx", "xl__worksheets__a_xml")])
def test_packed_documents_that_grow_too_much_are_refused(tmp_path: Path, kind: str, part: str) -> None:
    if kind == "xlsx":
        pytest.importorskip("xberg")
    path = tmp_path / f"a.{kind}"
    path.write_bytes(packed(**{part: b" " * (65 << 20)}))
    with (
        opened(next(iter(find_documents([path]))), "utf-8") as file,
        pytest.raises(DataError, match=rf"a\.{kind} unpacks to more than 100 times its size"),
    ):
        list(read_opened(file, Columns()))
