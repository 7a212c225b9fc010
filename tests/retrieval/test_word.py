"""Word documents: headings, numbers, marks and tables as Word shows them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from pyrag.retrieval.documents.find import find_documents
from pyrag.retrieval.documents.opened_document import opened
from pyrag.retrieval.documents.reading import Columns, read_opened

SPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def par(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{run(text)}</w:p>"


def cell(*texts: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{''.join(map(par, texts)) or '<w:p/>'}</w:tc>"


def rows(*cells: str) -> str:
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def word(body: str, **parts: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {SPACES}><w:body>{body}</w:body></w:document>")
        for name, content in parts.items():
            archive.writestr(f"word/{name}.xml", f"<w:{name} {SPACES}>{content}</w:{name}>")
    return packed.getvalue()


def converted(tmp_path: Path, data: bytes) -> tuple[list[tuple[str, str]], list[str]]:
    (tmp_path / "a.docx").write_bytes(data)
    (document,) = find_documents([tmp_path / "a.docx"])
    with opened(document) as file:
        passages = [(placed.passage.title, placed.passage.text) for placed in read_opened(file, Columns())]
        return passages, file.remarks


@pytest.mark.parametrize(
    "style",
    [
        '<w:name w:val="heading 1"/>',
        '<w:name w:val="Section"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr>',
        '<w:name w:val="Section"/><w:basedOn w:val="h"/>',
    ],
)
def test_headings_are_known_by_their_level(tmp_path: Path, style: str) -> None:
    base = '<w:style w:styleId="h"><w:name w:val="heading 1"/></w:style>'
    contents = '<w:style w:styleId="t"><w:name w:val="toc 1"/></w:style>'
    styled = f'{base}{contents}<w:style w:styleId="77">{style}</w:style>'
    body = par("Ofen", '<w:pStyle w:val="77"/>') + par("It burns.", '<w:pStyle w:val="t"/>')
    assert converted(tmp_path, word(body, styles=styled))[0] == [("Ofen", "It burns.")]


def test_an_outline_level_of_the_paragraph_counts(tmp_path: Path) -> None:
    body = par("One", '<w:outlineLvl w:val="0"/>') + par("text", '<w:outlineLvl w:val="9"/>')
    assert converted(tmp_path, word(body))[0] == [("One", "text")]


def test_automatic_numbers_are_written(tmp_path: Path) -> None:
    levels = "".join(
        f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'
        for n, (form, text) in enumerate([("upperRoman", "§ %1"), ("lowerLetter", "%1 (%2)"), ("bullet", "x")])
    )
    numbering = (
        f'<w:abstractNum w:abstractNumId="5">{levels}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="5"/></w:num>'
    )
    body = "".join(
        par(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>')
        for level, text in [(0, "fee"), (1, "oars"), (1, "book"), (0, "end"), (1, "key"), (2, "dot")]
    )
    text = converted(tmp_path, word(body, numbering=numbering))[0][0][1]
    assert text.splitlines() == ["§ I fee", "I (a) oars", "I (b) book", "§ II end", "II (a) key", "- dot"]


def test_cells_stay_in_their_columns(tmp_path: Path) -> None:
    head = cell("Line") + cell("Price", "in kroner", properties='<w:gridSpan w:val="2"/>') + cell("Note")
    body = rows(
        head,
        cell("Green", properties='<w:vMerge w:val="restart"/>') + cell() + cell("7") + cell("a|b"),
        cell(properties="<w:vMerge/>") + cell("8") + cell() + f"<w:tc>{rows(cell('x') + cell('y'))}<w:p/></w:tc>",
    )
    assert converted(tmp_path, word(body))[0][0][1].splitlines() == [
        "| Line | Price in kroner |  | Note |",
        "|---|---|---|---|",
        "| Green |  | 7 | a\\|b |",
        "| Green | 8 |  | x, y |",
    ]


def test_moved_and_boxed_text_is_there_once(tmp_path: Path) -> None:
    box = f"<w:txbxContent>{par('In a box.')}</w:txbxContent>"
    body = (
        f"<w:p>{run('The oars ')}<w:moveFrom>{run('of ash ')}</w:moveFrom>{run('are ')}<w:ins>{run('here.')}</w:ins>"
        f"<w:r><mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>"
    )
    passages, remarks = converted(tmp_path, word(body, header1=par("Page"), comments=par("why?")))
    assert passages == [("a", "The oars are here.\nIn a box.")]
    assert remarks == ["left out: comments, page headers, text that was deleted or moved with changes tracked"]


def test_ticks_notes_and_formulas_are_text(tmp_path: Path) -> None:
    sym = '<w:r><w:sym w:font="Wingdings" w:char="{}"/></w:r>'
    form = '<w:r><w:fldChar><w:ffData><w:checkBox><w:checked w:val="{}"/></w:checkBox></w:ffData></w:fldChar></w:r>'
    power = "<m:sSup><m:e><m:r><m:t>Q</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    body = (
        f"<w:p>{sym.format('F0A8')}{run(' a ')}{sym.format('F0FE')}{run(' b ')}{form.format(1)}{form.format(0)}"
        f'<w:r><w:footnoteReference w:id="2"/></w:r><m:oMath>{power}</m:oMath></w:p>{par("# 5 bolts")}'
    )
    notes = f'<w:footnote w:id="2">{par("By Ada.")}</w:footnote>'
    text = converted(tmp_path, word(body, footnotes=notes))[0][0][1]
    assert text.splitlines() == ["☐ a ☑ b ☒☐ [1] Q^2", "[1] By Ada.", "# 5 bolts"]
