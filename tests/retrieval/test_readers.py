"""What readers keep of files as people have them: tables, pages, forms, encodings, office documents."""

from __future__ import annotations

import io
import json
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest

from pyrag.errors import DataError
from pyrag.retrieval.documents.encodings import detected_encoding
from pyrag.retrieval.documents.find import find_documents
from pyrag.retrieval.documents.formats.headings import headed
from pyrag.retrieval.documents.formats.html import html_markdown
from pyrag.retrieval.documents.formats.office import left_out
from pyrag.retrieval.documents.model import OFFICE
from pyrag.retrieval.documents.opened_document import opened
from pyrag.retrieval.documents.reading import Columns, read_opened, read_passages
from pyrag.trace.model import Passage

LONG = "the disk of the second worker in the hall is full to the last block"


def read(path: Path, content: str | bytes, encoding: str = "") -> tuple[list[Passage], list[str]]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    (document,) = find_documents([path.parent])
    with opened(document, encoding) as file:
        return [placed.passage for placed in read_opened(file, Columns(encoding=encoding))], file.remarks


@pytest.mark.parametrize("bars", [True, False])
def test_each_passage_of_a_table_repeats_its_heading(tmp_path: Path, bars: bool) -> None:
    lines = ["Well | Dug | Depth", "--- | ---: | ---", *(f"Well {n} Meadow | {1850 + n} | {n % 7}" for n in range(90))]
    table = "\n".join(f"| {line} |" if bars else line for line in lines)
    passages, _ = read(tmp_path / "a.md", f"# Wells\n\nAll wells.\n\n{table}\n\nThe end.\n")
    assert len(passages) > 3
    assert all(f"{lines[0]}" in one.text and "Depth" in one.text for one in passages)
    for number in range(90):
        assert sum(f"Well {number} Meadow | {1850 + number}" in one.text for one in passages) == 1
    text = (tmp_path / "a.md").read_text()
    for one in passages[1:]:  # the heading that is repeated has no place of its own
        rows = one.text.split("\n", 2)[2].split()
        assert text[one.start : one.end].split() == rows


@pytest.mark.parametrize("columns", [40, 3000])
def test_wide_tables_lose_nothing(tmp_path: Path, columns: int) -> None:
    rows = [[f"{name}{column}" for column in range(columns)] for name in ("c", "x", "y", "z")]
    rows.insert(1, ["-"] * columns)
    text = "\n".join(f"|{'|'.join(row)}|" for row in rows * 3)
    passages, _ = read(tmp_path / "a.md", text)
    words = " ".join(one.text for one in passages).replace("|", " ").split()
    assert set(words) >= {cell for row in rows for cell in row if cell != "-"}


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("# A\n```sh\n# no\n```x\n# no\n```\n# B\ntext", ["A", "B"]),
        ("# A\n```one``` line\n\n## B\ntext", ["A", "A > B"]),
        ("# A\n<!--\n# no\n-->\ntext", ["A"]),
        ("Big\ntitle\n===\ntext\n\n> # no", ["Big title"]),
        ("# A &amp; \\*B\\*\ntext", ["A & *B*"]),
    ],
)
def test_headings_are_those_of_commonmark(tmp_path: Path, text: str, titles: list[str]) -> None:
    assert list(dict.fromkeys(one.title for one in read(tmp_path / "a.markdown", text)[0])) == titles


def test_entities_and_places(tmp_path: Path) -> None:
    text = "Caf&eacute; Med&uuml;sa `x`.\n\n    code &amp;\n\n[ref]: http://x\n"
    (one,), _ = read(tmp_path / "a.md", text)
    assert one.text == "Café Medüsa `x`.\ncode &amp;\n[ref]: http://x"
    assert text[one.start : one.end].split() == text.split()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Inga Moe\nHill road 3\nVadsby", 3),
        ("Name: Ann\nTown: Ystad", 2),
        ("Depot   Dogs\nNordby    88\nSorby     36", 3),
        ("a) soup\nb) pie", 2),
        ("· soup\n· pie", 2),
        ("One line\nand its rest.", 1),
        (f"2025-05-01 12:01:00,123 ERROR {LONG}\n2025-05-01 12:02:00,7 INFO {LONG}\n2025-05-02 {LONG}", 3),
        (f"[12.03.24, 14:05:11] Ann: {LONG}\n[12.03.24, 14:06:40] Bo: {LONG}", 2),
        (f"May  3 12:03:00 host sshd: {LONG}\nMay 13 12:03:07 host cron: {LONG}", 2),
        (f"10.0.0.7 - - [10/Oct/2024] {LONG}\n10.0.0.8 - - [10/Oct/2024] {LONG}", 2),
        (f"[w1] {LONG}\n[w2] {LONG}", 2),
        (f"① {LONG}\n② {LONG}\n三、{LONG}", 3),
        (f"ERROR {LONG}\n    at line 3\nWARNING {LONG}", 3),
        ("The lantern of the pier was lit in\n1871 by the keeper Ola Lien, and\nit has burned since.", 1),
    ],
)
def test_lines_are_joined_in_prose_only(tmp_path: Path, text: str, lines: int) -> None:
    (one,), _ = read(tmp_path / "a.txt", text)
    assert len(one.text.splitlines()) == lines


@pytest.mark.parametrize(
    "text",
    ["---\n\n# Head\n\nBody: it cuts.\n\n---\n\nEnd.", "---\nWarning: the ice bears no carts before May.\n---\nEnd.",
     "---\njust a line\n---\nEnd.", "+++\nno fields\n+++\nEnd.", "---\n- a\n- b\n---\nEnd."],
)  # fmt: skip
def test_text_between_rules_is_text(tmp_path: Path, text: str) -> None:
    passages, _ = read(tmp_path / "a.md", text)
    everything = " ".join(f"{one.title} {one.text}" for one in passages)
    assert all(word in everything for word in text.replace("#", "").split())
    assert all(one.metadata == {} for one in passages)


def test_front_matter_keeps_whole_values(tmp_path: Path) -> None:
    front = (
        "title: >\n  The old\n  mill\n'smith of today': Per\nversion: 1.10\nwhen: 2020-01-02\nbig: '007'\n"
        'text: "goes\n  on"\nmap: {a: 1, b: [x, y]}\nkeepers:\n  - name: Siv\n    age: 3\n  - name: Ola\n'
        "anchor: &a [1]\nalias: *a\n"
    )
    (one,), remarks = read(tmp_path / "a.md", f"---\n{front}...\nBody.\n")
    assert (one.title, one.text) == ("The old mill", "Body.")
    assert one.metadata == {
        "anchor": [1], "big": "007", "keepers.age": [3], "keepers.name": ["Siv", "Ola"], "map.a": 1,
        "map.b": ["x", "y"], "smith of today": "Per", "text": "goes on", "version": 1.1, "when": "2020-01-02",
    }  # fmt: skip
    assert remarks == ["a field of the front matter was not read ('alias' refers to another one)"]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("sep=;\nWare;Preis\nFilter;8,40\n", "Ware: Filter; Preis: 8,40"),
        ("Ware;Tiefe (m, NN);Salz, Eisen\nKern;14,2;0,9\nKorn;1,2;0,1\n", "Ware: Kern; Tiefe (m, NN): 14,2"),
        ('"Ort\n(amtlich)";Höhe\nTal;520\nBerg;900\n', "Ort (amtlich): Tal; Höhe: 520"),
        ("Kennels of the county\nas of June\n\nKennel,Dogs\nBirch,22\nStone,17\n", "Kennel: Birch; Dogs: 22"),
        ("Kennels of the county,,\nKennel,Dogs,Vet\nBirch,22,x\nStone,17,y\n", "Kennel: Birch; Dogs: 22"),
    ],
)
def test_values_stand_under_their_names(tmp_path: Path, text: str, row: str) -> None:
    passages, remarks = read(tmp_path / "a.csv", text)
    assert passages[0].text.startswith(row)
    assert not any("sep=" in one.text for one in passages)
    assert any("above the heading" in remark for remark in remarks) == text.startswith("Kennels")


def test_numbers_keep_their_form_among_decimal_commas(tmp_path: Path) -> None:
    passages, _ = read(tmp_path / "a.csv", "ware;masse;menge\nBolzen;14,5;1.750\nNiete;2,1;640\n")
    assert [one.metadata["menge"] for one in passages] == ["1.750", 640]
    english, _ = read(tmp_path / "a.csv", "sample,mass\nS1,1.750\n")
    assert english[0].metadata["mass"] == 1.75


LETTERS = {
    "cp1253": "Η Ελένη Μαυρίδη έχτισε τον μύλο το 1893.",
    "koi8-r": "Колокол отлил мастер Савва Громыко зимой.",
    "cp1251": "Колокол отлил мастер Савва Громыко зимой.",
    "shift_jis": "この水車は1893年に鈴木花子が建てた。",
    "iso-8859-2": "Młyn zbudował Łukasz Żak w roku 1893. Źródło: kronika gminy.",
    "mac-roman": "Die Mühle gehört Jörg Größl; sie öffnet im März und schließt im Oktober.",
    "cp1252": "Jörg Größl – „sehr alt“",
    "gb18030": "这座水车是1893年由王伟建造的，现在是博物馆。",
}


@pytest.mark.parametrize("encoding", LETTERS)
def test_auto_reads_other_alphabets(tmp_path: Path, encoding: str) -> None:
    (one,), _ = read(tmp_path / "a.txt", LETTERS[encoding].encode(encoding), "auto")
    assert one.text == LETTERS[encoding]


@pytest.mark.parametrize("data", ["Grüße, Łódź".encode() + b"\xff", b"\x00\x01\xff\xfe\x02"])
def test_what_is_spoiled_has_no_encoding(data: bytes) -> None:
    assert detected_encoding(data) == ""


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".json"])
def test_nan_counts_as_no_value_everywhere(tmp_path: Path, suffix: str) -> None:
    records = [{"text": "Alka.", "tons": float("nan"), "x": [1.5, float("inf")]}, {"text": "Brisk.", "tons": 3}]
    lines = json.dumps(records) if suffix == ".json" else "\n".join(map(json.dumps, records))
    passages, remarks = read(tmp_path / f"a{suffix}", lines)
    assert [(one.text, one.metadata) for one in passages] == [("Alka.", {"x": [1.5]}), ("Brisk.", {"tons": 3})]
    assert remarks == ["NaN and Infinity, which JSON does not have, count as no value"]


@pytest.mark.parametrize("encoding", ["cp866", "utf-8", "cp437", "shift_jis"])
def test_names_in_archives_are_read_in_their_encoding(tmp_path: Path, encoding: str) -> None:
    name = {"cp866": "Колокол громыко.txt", "shift_jis": "水車は鈴木花子が建てた.txt"}.get(encoding, "Größe.txt")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("x" * len(name.encode(encoding)), "One zebra.")
    data = packed.getvalue().replace(b"x" * len(name.encode(encoding)), name.encode(encoding))
    (one,), _ = read(tmp_path / "a.zip", data)
    assert one.source == f"{tmp_path}/a.zip!/{name}"


def test_pages_keep_all_but_menus() -> None:
    pytest.importorskip("html_to_markdown")
    page = """<title>T</title><nav><a>Menu</a></nav>
        <header><h1>Head</h1></header><div id=banner>Closed in May.</div>
        <table><tr><th>Hut<th colspan=2>Height</tr><tr><td><a href=/h>Storli</a><td>937 m<td><p>a</p><p>b</p>
        </tr></table>        <ul><li><a href=/0>Trail A</a></li></ul>
        <aside>Aside.</aside><p class=author>By Ada.</p><script>evil()</script>
        <form><label>Name</label><input value=Ada><input type=hidden value=token>
        <select><option>red<option selected>blue</select><input type=checkbox checked></form><dl><dt>Ox<dd>Animal</dl>
        <div hidden>secret</div><footer>Foot.</footer>"""
    properties, text, remarks = html_markdown(page.encode(), "a.html")
    assert properties.title == "T"
    assert "| Hut | Height | |\n| --- | --- | --- |\n| Storli | 937 m | a; b |" in text
    kept = ["# Head", "Closed in May.", "- Trail A", "Aside.", "By Ada.", "Name Ada blue ☒", "Ox: Animal", "Foot."]
    assert [words for words in kept if words not in text] == []
    assert not any(words in text for words in ("Menu", "evil", "token", "secret"))
    assert remarks == ["menus (nav) of pages left out", "hidden parts of pages left out"]


FORM = b"""%PDF-1.7
1 0 obj<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[4 0 R 5 0 R]>>>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Annots[4 0 R 5 0 R 6 0 R]>>endobj
4 0 obj<</Type/Annot/Subtype/Widget/FT/Tx/T(keeper)/TU(Name of keeper)/V(Ola Lien)/Rect[0 0 9 9]>>endobj
5 0 obj<</Type/Annot/Subtype/Widget/FT/Tx/T(empty)/Rect[0 9 9 18]>>endobj
6 0 obj<</Type/Annot/Subtype/Text/Contents(Released by Ada)/Rect[0 0 9 9]>>endobj
trailer<</Root 1 0 R/Size 7>>
%%EOF
"""


def test_forms_and_notes_of_pdf_files_are_read(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    (one,), _ = read(tmp_path / "a.pdf", FORM)
    assert one.text.splitlines() == ["Name of keeper: Ola Lien", "Note: Released by Ada"]


def test_office_files_are_read(tmp_path: Path) -> None:
    pytest.importorskip("xberg")
    (one,), _ = read(tmp_path / "a.rtf", r"{\rtf1\ansi\ansicpg1252 The m\'fcll lies {\b under} the mat.\par}")
    assert one.text == "The müll lies **under** the mat."
    (tmp_path / "a.rtf").unlink()
    (one,), _ = read(tmp_path / "a.eml", "From: Ada <a@x.example>\nSubject: The key\n\nIt lies under the mat.\n")
    assert "The key" in one.text
    assert "It lies under the mat." in one.text
    (tmp_path / "a.eml").unlink()
    (one,), remarks = read(tmp_path / "a.rtf", r"{\rtf1 The key\super 1{\*\footnote Of brass} lies here!\par}")
    assert (one.text.endswith("lies here!"), remarks) == (True, ["left out: footnotes"])


PAGE_TABLE = """<table border=0 align=left>
<tr><td colspan=5 height=20>Sales of Brek</td></tr>
<tr><td rowspan=2 align=left>Region</td><td colspan=2 align=left>2024</td><td colspan=2>2025</td></tr>
<tr><td align=left>Units</td><td>Euro</td><td>Units</td><td>Euro</td></tr>
<tr><td align=left><a href=x>Nor\n  vik</a></td><td align=right>310</td><td></td><td>287</td><td>3990</td></tr>
<tr><td align=left><p>Sulby\nBay</p></td><td align=right>95</td><td>12</td><td></td><td>17</td></tr></table>"""


def test_tables_of_pages_keep_columns_and_headings() -> None:
    text = html_markdown(PAGE_TABLE.encode(), "a.html").text
    assert [line for line in text.splitlines() if line] == [
        "Sales of Brek",
        "| Region | 2024 Units | 2024 Euro | 2025 Units | 2025 Euro |",
        "| --- | --- | --- | --- | --- |",
        "| Nor vik | 310 |  | 287 | 3990 |",
        "| Sulby Bay | 95 | 12 |  | 17 |",
    ]


def test_boxes_of_facts_on_pages_get_an_empty_heading() -> None:
    rows = "<tr><th colspan=2>Lake Orun</th></tr><tr><th>Area</th><td>31 km²</td></tr>"
    rows += "<tr><th>Inflow</th><td>Ruta<br><a href=x>Selm</a></td></tr>"
    text = html_markdown(f"<table>{rows}</table>".encode(), "a.html").text
    rule = ["|  |  |", "| --- | --- |"]
    assert text.split("\n")[:6] == ["Lake Orun", "", *rule, "| Area | 31 km² |", "| Inflow | Ruta; Selm |"]


@pytest.mark.parametrize(
    ("rows", "titles", "heading"),
    [
        (["T||", "||", "a|b|c", "x|1|2"], ["T"], "a|b|c"),
        (["||", "a|2024|", "|u|v", "x|1|2"], [], "a|2024 u|2024 v"),
        (["a|M|", "a|u|v", "x|1|2"], [], "a|M u|M v"),  # merged cells of Word repeat
        (["|M||N|", "a|u|v|u|v", "x|1|2|3|4"], [], "a|M u|M v|N u|N v"),
        (["Fruits||", "pear|3|4", "fig|5|6"], [], "Fruits||"),
        (["Name||Town", "Ann|Smith|Ystad", "Bo|Lie|Moss"], [], "Name||Town"),
        (["|Mon|Tue", "Art|Math|Art", "Gym|Art|Gym"], [], "|Mon|Tue"),
        (["only"], [], "only"),
        (
            ["Farm|Milk||Loss|", "|2021|2022|2021|2022", "Dal|8|9|1|2"],
            [],
            "Farm|Milk 2021|Milk 2022|Loss 2021|Loss 2022",
        ),
        (
            ["|Milk||Loss|", "Farm|2021|2022|2021|2022", "Dal|8|9|1|2"],
            [],
            "Farm|Milk 2021|Milk 2022|Loss 2021|Loss 2022",
        ),
        (["Mill|Shift|", "|Early|Late", "Korn|Ada|Ben"], [], "Mill|Shift Early|Shift Late"),
        (["Tool||Owner|Deputy", "Saw|big|Ann|Ann", "Axe|small|Bo|Carl"], [], "Tool||Owner|Deputy"),
        (["Item||Price", "Pen|blue|", "Cup|red|3.40"], [], "Item||Price"),
        (["Lamp|Price||Stock", "Vega|n/a|n/a|", "Rigel|3|4|7"], [], "Lamp|Price||Stock"),
        (["Height|37 m", "Opened|1962", "Length|410 m"], [], "|"),
        (["Ann|12 kg|3", "Bo|14 kg|5"], [], "||"),
        (["Runner|100 m|200 m", "Ann|12.1|24.9"], [], "Runner|100 m|200 m"),
        (["Class|1|2", "A|20|31"], [], "Class|1|2"),
        (["Bridge|Built|", "Alm|1950|1961", "Bro|1970|1975"], [], "Bridge|Built|"),
    ],
)
def test_headings_stand_below_titles(rows: list[str], titles: list[str], heading: str) -> None:
    above, remaining = headed([row.split("|") for row in rows])
    assert (above, "|".join(remaining[0])) == (titles, heading)


def test_a_title_row_of_a_word_table_is_text(tmp_path: Path) -> None:
    rows = [["Staff of Vik", "", ""], ["Name", "Role", "Wage"], ["Ann", "", "31.50"]]
    cells = "".join(
        f"<w:tr>{''.join(f'<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>' for cell in row)}</w:tr>"
        for row in rows
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        name = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
        body = f"<w:document xmlns:w='{name}'><w:body><w:tbl>{cells}</w:tbl></w:body></w:document>"
        archive.writestr("word/document.xml", body)
    (one,), _ = read(tmp_path / "a.docx", buffer.getvalue())
    assert one.text.splitlines()[:2] == ["Staff of Vik", "| Name | Role | Wage |"]


SHEET = """<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>
<row r="1"><c r="A1" t="inlineStr"><is><t>Part</t></is></c><c r="B1" t="inlineStr"><is><t>Mass</t></is></c></row>
<row r="2"><c r="A2" t="inlineStr"><is><t>Nut</t></is></c><c r="B2"><f>1+1</f><v></v></c></row>
<row r="3"><c r="A3" t="inlineStr"><is><t>Cog</t></is></c><c r="B3"><f>1+2</f><v>3</v></c></row>
</sheetData></worksheet>"""


def omissions(tmp_path: Path, name: str, parts: dict[str, str]) -> set[str]:
    """Return what the reader of office files leaves out of a packed document."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for part, text in parts.items():
            archive.writestr(part, text)
    (tmp_path / name).write_bytes(buffer.getvalue())
    (document,) = find_documents([tmp_path / name])
    with opened(document) as file:
        return left_out(file, buffer.getvalue())


def test_what_office_files_leave_out_is_named(tmp_path: Path) -> None:
    header = "<style:header><text:p>Head</text:p></style:header>"
    deletion = "<text:tracked-changes><text:deletion><text:p>x</text:p></text:deletion></text:tracked-changes>"
    assert omissions(tmp_path, "a.odt", {"styles.xml": header, "content.xml": deletion}) == {
        "page headers and footers",
        "text that was deleted with changes tracked",
    }
    assert omissions(tmp_path, "b.odt", {"styles.xml": "<style:header><text:p/></style:header>"}) == set()
    (remark,) = omissions(tmp_path, "a.xlsx", {"xl/worksheets/sheet1.xml": SHEET})
    assert remark.startswith("1 formulas without a stored result")


@pytest.mark.parametrize("suffix", OFFICE)
def test_broken_office_files_are_named(tmp_path: Path, suffix: str) -> None:
    from pyrag.errors import DataError

    (tmp_path / f"a{suffix}").write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(DataError, match=r"a\.\w+ (needs a converter|is broken|cannot be read|holds no text)"):
        list(read_passages([tmp_path / f"a{suffix}"]))


def _mail(subject: str, text: str) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"] = subject, "Jana Pohl <jana@pohl.example>"
    message["Date"] = "Tue, 05 Mar 2024 10:00:00 +0100"
    message.set_content(text)
    return message


def test_mails_keep_lines_headers_and_attachments(tmp_path: Path) -> None:
    message = _mail("Crates", "Crate 19 comes.\n\n- 40 lamps\n- 12 cords\n")
    message.add_attachment("item,qty\ncord,12\n", subtype="csv", filename="items.csv")
    message.add_attachment("Gate 4410\nDock 7\n", filename="notes.txt")
    message.add_attachment(_mail("Kiln", "It runs at 960 degrees."))
    message.add_attachment(b"%PDF-1.4 junk", maintype="application", subtype="pdf", filename="junk.pdf")
    message.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="map.png")
    message.add_attachment(b"PK", maintype="application", subtype="zip", filename="old.zip")
    passages, remarks = read(tmp_path / "a.eml", message.as_bytes())
    head = "From: Jana Pohl <jana@pohl.example>\nDate: Tue, 05 Mar 2024 10:00:00 +0100\n"
    assert [passage.text for passage in passages] == [
        f"Subject: Crates\n{head}Crate 19 comes.\n- 40 lamps\n- 12 cords",
        "item: cord; qty: 12",
        "Gate 4410\nDock 7",
        f"Subject: Kiln\n{head}It runs at 960 degrees.",
    ]
    assert passages[0].metadata == {
        "from": "Jana Pohl <jana@pohl.example>",
        "date": "2024-03-05T10:00:00+01:00",
    }
    assert passages[1].source.endswith("a.eml!/items.csv")
    for words in ("'junk.pdf' is left out", "'map.png' is left out", "'old.zip' is left out: save and unpack it"):
        assert any(words in remark for remark in remarks), words


@pytest.mark.parametrize(
    ("data", "title", "text"),
    [
        (b"Subject: =?iso-8859-1?Q?Caf=E9?=\nContent-Type: text/plain; charset=latin-1\n\nTo\xf1o", "Café", "Toño"),
        ("Subject: Über\nContent-Type: text/plain; charset=nonsense\n\nGrün".encode(), "Über", "Grün"),
        (
            b"Subject: Box\nContent-Type: text/html\n\n<table><tr><th>Wood<th>Price<tr><td>Oak<td>44</table>",
            "Box",
            "Oak",
        ),
        (
            b'Subject: Two\nContent-Type: multipart/alternative; boundary="b"\n\n--b\nContent-Type: text/plain\n\n'
            b"Plain 1\n--b\nContent-Type: text/html\n\n<p>Rich 1\n--b--\n",
            "Two",
            "Plain 1",
        ),
        (b"Subject: Torn\nContent-Type: multipart/mixed\n\nNot lost", "Torn", "Not lost"),
        (b"From: a@b.example, <<>\nDate: never\nSubject: Odd\n\nStill read", "Odd", "Still read"),
    ],
)
def test_mails_are_decoded(tmp_path: Path, data: bytes, title: str, text: str) -> None:
    (passage,), remarks = read(tmp_path / "a.eml", data)
    assert (passage.title, remarks) == (title, [])
    assert text in passage.text
    assert "Rich" not in passage.text


@pytest.mark.parametrize("data", [b"", b"just some words\n", b"\x00\xff" * 9])
def test_a_file_that_is_no_mail_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(DataError, match="not an e-mail"):
        read(tmp_path / "a.eml", data)


def test_lines_of_tables_may_end_with_a_carriage_return(tmp_path: Path) -> None:
    text = 'sep=;\rShip;Crew\rOrlå;7\r\nNixe;"8\rand 9"\rZed;4'
    passages, _ = read(tmp_path / "a.csv", text)
    assert [passage.text for passage in passages] == [
        "Ship: Orlå; Crew: 7",
        "Ship: Nixe; Crew: 8\rand 9",
        "Ship: Zed; Crew: 4",
    ]
    assert [text[passage.start : passage.end] for passage in passages] == ["Orlå;7", 'Nixe;"8\rand 9"', "Zed;4"]
