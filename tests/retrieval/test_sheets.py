"""Cells of spreadsheets in the form that the sheet shows."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from base64 import b85decode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.retrieval.documents.formats.number_formats import shown
from pyrag.retrieval.documents.formats.office import converted
from pyrag.retrieval.documents.formats.sheets import with_shown_cells, xls_markdown
from pyrag.retrieval.documents.model import OFFICE
from pyrag.retrieval.documents.reading import read_passages

ACCOUNT = '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)'


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (0.125, "0.0%", "12.5%"),
        (0.333, "0.0 %", "33.3 %"),
        (-0.2, "0%;[Red]-0%", "-20%"),
        (1234.5, "#,##0.00 €", "1,234.50 €"),
        (0.5, '"$"#,##0.00', "$0.50"),
        (12, "[$£-809]#,##0", "£12"),
        (1234.5, "#,##0.00\\ [$kr-41D]", "1,234.50 kr"),
        (-3.4, ACCOUNT, "-$3.40"),
        (0, ACCOUNT, "$-"),
        (-42.5, "0.00;(0.00)", "-42.50"),
        (-5, "0.00;[Red]0.00", "-5.00"),
        (-0.001, "0.00", "0.00"),
        (2.005, "0.00", "2.01"),
        (0.25, "0.##", "0.25"),
        (3, "0.##", "3"),
        (0, '0;-0;"none"', "none"),
        (1_500_000, '0.0,,"M"', "1.5M"),
        (72.5, '0.0 "kg"', "72.5 kg"),
        (7, "00000", "00007"),
        (123456789, "000-00-0000", "123-45-6789"),
        (1.25, "# ?/?", "1 1/4"),
        (45352, "dd.mm.yyyy", "2024-03-01"),
        (45352.336805556, "m/d/yy h:mm", "2024-03-01 8:05"),
        (45352, "d mmm yyyy", "1 Mar 2024"),
        (45352, "[$-809]dddd, d mmmm yyyy", "Friday, 1 March 2024"),
        (45352, "mmm-yy", "Mar-24"),
        (45352, "mm/yyyy", "03/2024"),
        (0.604166667, "hh:mm", "14:30"),
        (0.2534722, "h:mm AM/PM", "6:05 AM"),
        (1.260416667, "[h]:mm:ss", "30:15:00"),
        (0.0625, "[mm]:ss", "90:00"),
        (0.0003, "mm:ss.0", "00:25.9"),
    ],
)
def test_numbers_are_shown_by_their_format(value: float, code: str, text: str) -> None:
    assert shown(value, code) == text


@pytest.mark.parametrize(
    "code", ["General", "@", "", "0.00E+00", "[>100]0;0.0", "[$-407]d. mmmm yyyy", "[$-411]ggge", ";;;"]
)
def test_formats_that_are_not_plain_change_nothing(code: str) -> None:
    assert shown(45352.5, code) is None


def test_days_may_be_counted_from_1904() -> None:
    assert shown(0, "yyyy-mm-dd", since_1904=True) == "1904-01-01"
    assert shown(-1, "yyyy-mm-dd") is None


@pytest.mark.parametrize(("value", "since_1904"), [(2958465.9999999, False), (2958465, True)])
def test_days_after_the_year_9999_have_no_form(value: float, since_1904: bool) -> None:
    assert shown(value, "yyyy-mm-dd", since_1904=since_1904) is None


@given(st.floats(), st.text('0#?.,%;"E+-/ ymdhs[]$€@_*\\AP()G', max_size=12))
def test_no_format_fails(value: float, code: str) -> None:
    text = shown(value, code)
    assert text is None or math.isfinite(value)


STYLES = """<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">
<numFmts count="1"><numFmt numFmtId="164" formatCode="#,##0.00\\ &quot;€&quot;"/></numFmts>
<fonts/><fills/><borders/><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs>
<cellXfs><xf numFmtId="0"/><xf numFmtId="10"/><xf numFmtId="164"/></cellXfs></styleSheet>"""
ROWS = """<row r="1"><c r="A1" t="inlineStr"><is><t>Item</t></is></c><c r="B1" t="inlineStr"><is><t>Share</t></is></c>
<c r="C1" t="inlineStr"><is><t>Fee</t></is></c></row>
<row r="2"><c r="A2" t="inlineStr"><is><t>Oar</t></is></c><c r="B2" s="1"><v>0.125</v></c>
<c r="C2" s="2" t="n"><f>1+1</f><v>-1234.5</v></c></row>
<row r="3"><c r="A3" s="1"/><c r="B3" s="0"><v>7.25</v></c><c r="C3" s="2" t="e"><v>#N/A</v></c></row>"""


def workbook(prefix: str = "", rows: str = ROWS) -> bytes:
    space = f'xmlns{":x" if prefix else ""}="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rows = rows.replace("</", f"</{prefix}").replace("<", f"<{prefix}").replace(f"<{prefix}/{prefix}", f"</{prefix}")
    sheet = f"<{prefix}worksheet {space}><{prefix}sheetData>{rows}</{prefix}sheetData></{prefix}worksheet>"
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    main = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" '
        f'ContentType="{main}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" '
        f'ContentType="{main}.worksheet+xml"/><Override PartName="/xl/styles.xml" '
        f'ContentType="{main}.styles+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{relation}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
        f'xmlns:r="{relation}"><sheets><sheet name="Fees" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{relation}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="r2" Type="{relation}/styles" '
        'Target="styles.xml"/></Relationships>',
        "xl/styles.xml": STYLES,
        "xl/worksheets/sheet1.xml": sheet,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


@pytest.mark.parametrize("prefix", ["", "x:"])
def test_formatted_cells_of_workbooks_become_texts(prefix: str) -> None:
    sheet = sheet_of(workbook(prefix)).decode()
    assert f'<{prefix}c r="B2" s="1" t="str"><{prefix}v>12.50%</{prefix}v>' in sheet
    assert f"<{prefix}v>-1,234.50 €</{prefix}v>" in sheet
    assert f'<{prefix}c r="A3" s="1"/><{prefix}c r="B3" s="0"><{prefix}v>7.25<' in sheet
    assert "#N/A" in sheet


CELL = '<c r="B2" s="1"><v>0.125</v></c>'


def sheet_of(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(with_shown_cells(data))) as archive:
        return archive.read("xl/worksheets/sheet1.xml")


@pytest.mark.parametrize(
    "cell",
    [
        CELL.replace('"', "'"),
        CELL.replace("0.125", "0&#46;125"),
        CELL.replace("<v>", "<!-- > --><v>"),
        CELL.replace('r="B2"', 'r="B2" x="a>b" y=\'"\''),
        CELL.replace("0.125", "<![CDATA[0.125]]>"),
        CELL.replace("</c>", "</c >"),
    ],
)
def test_cells_are_read_as_xml(cell: str) -> None:
    sheet = sheet_of(workbook(rows=f"<row>{cell}<c><v>1</v></c></row>"))
    assert b' t="str"><v>12.50%</v></c' in sheet
    assert sheet.count(b"</sheetData></worksheet>") == 1
    assert b"<c><v>1</v></c></row>" in sheet


@pytest.mark.parametrize(
    "sheet",
    [
        f"<!DOCTYPE c [<!ENTITY a 'b'>]><d>{CELL}</d>".encode(),
        f'<?xml version="1.0" encoding="iso-8859-1"?><d>{CELL}</d>'.encode(),
        f"<d>{CELL}</d>".encode("utf-16"),
        b"<d><c s='1'><v>0.5</v>",
    ],
)
def test_sheets_of_other_forms_stay_unchanged(sheet: bytes) -> None:
    data = io.BytesIO(workbook())
    with zipfile.ZipFile(data, "a") as archive:
        archive.writestr("xl/worksheets/sheet2.xml", sheet)
    with zipfile.ZipFile(io.BytesIO(with_shown_cells(data.getvalue()))) as archive:
        assert archive.read("xl/worksheets/sheet2.xml") == sheet


def test_workbooks_show_percentages_and_currencies(tmp_path: Path) -> None:
    pytest.importorskip("xberg")
    (tmp_path / "a.xlsx").write_bytes(workbook())
    (passage,) = read_passages([tmp_path / "a.xlsx"])
    assert passage.title == "Fees"
    assert "| Oar | 12.50% | -1,234.50 € |" in passage.text


def test_workbooks_of_many_cells_are_read() -> None:
    pytest.importorskip("xberg")
    row = "".join(f'<c r="{column}1"><v>7</v></c>' for column in "ABCDEFGHIJ")
    data = workbook(
        rows="".join(f'<row r="{number}">{row.replace("1", str(number))}</row>' for number in range(1, 10_102))
    )
    (result,) = converted(data, ".xlsx", OFFICE[".xlsx"]).results
    assert result.content.count("\n|") > 10_000


def open_cell(kind: str, value: str, text: str) -> str:
    attributes = f'office:value-type="{kind}" {value} calcext:value-type="{kind}"'
    return f"<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>"


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (open_cell("percentage", 'office:value="0.125"', "12.5%"), "12.5%"),
        (open_cell("currency", 'office:value="-3" office:currency="USD"', "($3.00)"), "-$3.00"),
        (open_cell("time", 'office:time-value="PT14H30M00S"', "14:30"), "14:30"),
        (open_cell("date", 'office:date-value="2024-03-01"', "01.03.24"), "2024-03-01"),
        (open_cell("date", 'office:date-value="2024-03-01"', "1. März 2024"), "1. März 2024"),
        (open_cell("date", 'office:date-value="2024-03-01T08:05:00"', "1/3/24 8:05"), "2024-03-01 08:05:00"),
    ],
)
def test_formatted_cells_of_open_documents_become_texts(cell: str, text: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("content.xml", f"<table:table-row>{cell}<table:table-cell/></table:table-row>")
    with zipfile.ZipFile(io.BytesIO(with_shown_cells(buffer.getvalue()))) as archive:
        content = archive.read("content.xml").decode()
    assert f'office:value-type="string"><text:p>{text}</text:p></table:table-cell><table:table-cell/>' in content


OLD = (  # made by xlwt: a percentage, a currency, a date, a boolean and a general number
    r"c-rk)O-NKx6#nj;H##%vIO-T^Fbrc_nT64!7U|0<-85!DWJOS;zJ(a0JZoV@S>`ebS{1brv~XiTi+-q}b}a&<7C{hbK^qql6bPxWbI!amH3K"
    r"I~NZ$9j=ic+(d(S=Z{=fHXB!9I3Zpj$tp#~mI+kRxt;uHmcS_y&jZJU$n*hj&3@n6C3qk+uw;&JZFY#u`%?=fh&qdzAJe4ua?ooMJtn$ac14"
    r")GzO*oSJ83fGAVqFB5t5ZNNKP~>eX`9$P)VJ?ZRrm~~z2u6&CimlEpKBUDYF9^2#K<c~`W)q6=f@kr$%PLjYi(0EKabnqLMD!dCfTlpbnKUi"
    r"d{TPG}RBfy(i|8TT#0ns`I#ya)T1s41M9;%51c05<csw3GOc+I&=Fb4W*-_wYdZTz2b@`>`6^Ngh%V+<F_t7XX#QSN$7vcjn==1q28qJd)*v"
    r"Dm^_8|{LI_G4g&a|vHvuhIDcxp-TLfCF9vAZMDN>N?HGKt;amTWOe-P36%DLP<UNn&eHwV&w<@WCS+RcOvel`9K4hh!@?%ISPr#vyvG$)PW="
    r"<IRo6F=2Y-a7rCvW$Z3&oaY);IVd?Ek<=n8q{e!Y7sTo+NtcKWQyGfO8;hJoU9Xh6D7od-&St?IW6iAeT1xkg?|m5Q`)I7A^l<&y>G1GdqaQ"
    r"Kq>Q<`HPcJG}rMh;N@yJNW%GvJTi!A<S>+@+L$9LN~r}HqyE0d5fGNp0vs2NRj`YNS)Nb}5SI%&FNSuJ2$iDm995A_~<UVwwa4fk$*9ygv+T"
    r"9M^Kd>@>!!}zpCBg<aRN31R$uvJZ3nQK)Ot30k}HP+atCfamrv;y4cOxoCgA^;aIT)1%I!i5VLe*h&{!PNCvcP_wL&Q+cN>r7FYc7KyBTkJy"
    r"zJtyglZWodiTj<Vc{;Y&orERH2)=B>_WHeFh7TVD)eza#if9cam&3>OnR}B5VC6sCV)0z1BkK6wN`eyoZ"
)


def test_old_workbooks_show_their_formats(tmp_path: Path) -> None:
    pytest.importorskip("xlrd")
    pytest.importorskip("xberg")
    (tmp_path / "a.xls").write_bytes(zlib.decompress(b85decode(OLD)))
    (passage,) = read_passages([tmp_path / "a.xls"])
    assert passage.title == "Ferries"
    assert passage.text.splitlines() == [
        "| Ferry | Load | Fare | Since | Open |",
        "|---|---|---|---|---|",
        "| Tern | 87.3% | -$1,204.50 | 4 Jul 1999 | TRUE |",
        "| Auk\\|s |  |  | 7.25 |  |",
    ]


@pytest.mark.parametrize(
    ("codepage", "author", "name"),
    [
        (10000, "Zo\xeb".encode("mac-roman"), "Zoë"),
        (1200, "Zoë".encode("utf-16-le"), "Zoë"),
        (65001, "Zoë".encode(), "Zoë"),
        (-535, "Zoë".encode(), "Zoë"),
        (4711, "Zoë".encode("cp1252"), "Zoë"),
        (1252, "Zoë", "Zoë"),
    ],
)
def test_old_workbooks_name_authors_in_any_code_page(
    monkeypatch: pytest.MonkeyPatch, codepage: int, author: bytes | str, name: str
) -> None:
    pytest.importorskip("xlrd")
    olefile = pytest.importorskip("olefile")
    stated = olefile.OleMetadata()
    stated.codepage, stated.author = codepage, author
    monkeypatch.setattr(olefile.OleFileIO, "get_metadata", lambda _: stated)
    _, properties = xls_markdown(zlib.decompress(b85decode(OLD)))
    assert properties.fields == {"author": name}
