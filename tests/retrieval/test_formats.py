"""Each kind of document, packed or not: what is read, where it says it is from, what is refused."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.errors import DataError
from pyrag.retrieval.documents import json_records as records_module
from pyrag.retrieval.documents import model, opened_document
from pyrag.retrieval.documents import tables as tables_module
from pyrag.retrieval.documents.find import find_documents
from pyrag.retrieval.documents.json_stream import NotJSON, elements
from pyrag.retrieval.documents.reading import Columns, read_passages
from pyrag.trace.model import Passage

RECORDS = [{"id": "a", "title": "T", "text": "one ä"}, {"id": "b", "text": 'two "x"'}]
BARE = [Passage("a", "T", "one ä"), Passage("b", "", 'two "x"')]


def read(*paths: Path | str, columns: Columns | None = None) -> list[Passage]:
    return list(read_passages(paths, columns or Columns()))


def bare(passages: list[Passage]) -> list[Passage]:
    return [replace(one, source="", start=None, end=None, metadata={}) for one in passages]


def complaint(*paths: Path | str) -> str:
    with pytest.raises(DataError) as caught:
        read(*paths)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        RECORDS,
        {"a": {"title": "T", "text": "one ä"}, "b": {"text": 'two "x"'}},
        {"version": 3, "passages": RECORDS},
        {"first": RECORDS[:1], "second": RECORDS[1:]},
    ],
)
def test_json_files(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "p.json"
    path.write_text("\ufeff" + json.dumps(content, indent=1, ensure_ascii=False))
    passages = read(path)
    assert bare(passages) == BARE
    text = path.read_text(encoding="utf-8-sig")
    assert [json.loads(text[one.start : one.end])["text"] for one in passages] == ["one ä", 'two "x"']


def test_a_json_file_of_one_record(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps(RECORDS[0]))
    assert bare(read(tmp_path / "p.json")) == BARE[:1]


SOURCES = [{"_id": "1", "_score": 1.0, "_source": {"title": "T", "text": "one ä"}}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.json", {"took": 3, "hits": {"total": {"value": 1}, "hits": SOURCES}}),
        ("p.json", {"data": SOURCES}),
        ("p.jsonl", SOURCES[0]),
        ("p.jsonl", {"_id": "1", "title": "T", "text": "one ä"}),
        ("p.json", [{"id": "1", "type": "page", "attributes": {"title": "T", "text": "one ä"}}]),
    ],
)
def test_records_inside_objects_and_their_ids(tmp_path: Path, name: str, content: Any) -> None:
    (tmp_path / name).write_text(json.dumps(content))
    (passage,) = read(tmp_path / name)
    assert (passage.id, passage.title, passage.text) == ("1", "T", "one ä")


def test_records_deeper_in_a_file_have_their_objects_place(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(text := json.dumps({"took": 3, "hits": {"hits": SOURCES}}))
    (passage,) = read(tmp_path / "p.json")
    assert json.loads(text[passage.start : passage.end]) == {"hits": SOURCES}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[1, 2]", r"p\.json record 1: not a passage"),
        ('[{"text": "x"}, {"title": "y"}]', r"record 2: holds neither"),
        ('[{"text": "x"}', r"not JSON \(expected , or \] at character 14, not the end\)"),
        ('[{"text": "x"},]', "not JSON"),
        ('{"a": {"text": ', "not JSON"),
        ("[] x", r"not JSON \(something follows the end"),
        ("3", r"neither a list nor an object"),
        ('[{"text": "\\ud800"}]', "half of a character"),
        ("[" * 100_000, "not JSON|nested too deeply"),
        (b'[{"text": "\xff"}]', "not UTF-8"),
    ],
)
def test_bad_json_files(tmp_path: Path, content: str | bytes, says: str) -> None:
    (tmp_path / "p.json").write_bytes(content.encode() if isinstance(content, str) else content)
    assert re.search(says, complaint(tmp_path / "p.json"))


@given(
    st.lists(st.dictionaries(st.text(max_size=3), st.integers() | st.text() | st.lists(st.booleans()), max_size=4)),
    st.integers(1, 9),
)
def test_elements_are_those_of_the_json_library(values: list[Any], size: int) -> None:
    data = json.dumps(values, indent=size % 3 or None, ensure_ascii=False)

    class Slow(io.BytesIO):
        def read(self, _: int | None = -1, /) -> bytes:
            return super().read(size)

    found = list(elements(Slow(data.encode())))
    assert [value for _, value, _, _ in found] == values
    assert [json.loads(data[start:end]) for _, _, start, end in found] == values
    with pytest.raises(NotJSON):
        list(elements(Slow(data.encode()[:-1])))


def test_an_endless_value_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrag.retrieval.documents.json_stream.MAX_LINE", 1 << 20)
    (tmp_path / "p.json").write_text('[{"text": "' + "x" * (5 << 20))
    assert "a value of more than 1 MiB" in complaint(tmp_path / "p.json")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", 'id,title,text\na,T,one ä\nb,,"two ""x"""\n'),
        ("t.tsv", 'id\ttitle\ttext\na\tT\tone ä\nb\t\ttwo "x"\n'),
        ("t.csv", '\ufeffText;ID;Title;other\r\none ä;a;T;1\r\n"two ""x""";b;;2\r\n'),
    ],
)
def test_tables(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    passages = read(tmp_path / name)
    others = [{"other": 1}, {"other": 2}] if "other" in text else [{}, {}]
    assert [one.metadata for one in passages] == others
    assert bare(passages) == BARE
    rows = [text.removeprefix("\ufeff")[one.start : one.end] for one in passages]
    assert rows == text.splitlines()[1:3]


def test_rows_of_several_lines_and_columns_of_other_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('Name,Body\nx,"a\nb, c"\n,d\n')
    (first, second) = read(tmp_path / "t.csv", columns=Columns(title="name", text="body"))
    assert (first.title, first.text, first.id[:6]) == ("x", "a\nb, c", "t.csv#")
    assert (second.title, second.text) == ("", "d")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,2\n", r"has no column 'text' \(its first line is 'a,b'\): name the columns with --text-column"),
        ("", "its first line is 'nothing'"),
        ("id,text\n1,\n", r"t\.csv line 2: its text is empty"),
        ("id,text\n1\n", "line 2: holds neither"),
        (b"id,text\n1,\xff\n", r"line 2: not UTF-8 \(byte 0xff at column 3\)"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str | bytes, says: str) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    assert re.search(says, complaint(tmp_path / "t.csv"))


def test_a_quotation_mark_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (records_module, tables_module):
        monkeypatch.setattr(module, "MAX_LINE", 1 << 16)
    (tmp_path / "t.csv").write_text('id,text\n1,"open\n' + "2,x\n" * 50_000)
    assert "close the quotation mark" in complaint(tmp_path / "t.csv")


@pytest.mark.parametrize("fence", ["---", "+++"])
def test_front_matter_gives_the_title(tmp_path: Path, fence: str) -> None:
    mark = ":" if fence == "---" else " ="
    (tmp_path / "a.md").write_text(
        f'{fence}\ndate: 2020\ntitle{mark} "The Mill"\n{fence}\nIt turns.\n\n## Part\nMore.\n'
    )
    text = (tmp_path / "a.md").read_text()
    passages = read(tmp_path / "a.md")
    assert [(one.title, one.text) for one in passages] == [("The Mill", "It turns."), ("The Mill > Part", "More.")]
    assert [text[one.start : one.end] for one in passages] == ["It turns.", "More."]


def test_a_rule_at_the_top_is_no_front_matter(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nJust text.\n")
    assert "Just text." in read(tmp_path / "a.md")[0].text


def test_html(tmp_path: Path) -> None:
    pytest.importorskip("html_to_markdown")
    body = "".join(
        f"<p>The mill of number {n} was founded by Ann and grinds corn for the village.</p>" for n in range(9)
    )
    head = "<head><title>The  Mill</title><script>evil()</script></head>"
    page = f"<html>{head}<body><article>{body}</article></body></html>"
    (tmp_path / "a.html").write_text(page)
    (tmp_path / "b.htm.gz").write_bytes(gzip.compress(b"<p>Short &amp; sweet.</p>"))
    long, short = read(tmp_path)
    assert long.title == "The Mill"
    assert "number 8 was founded by Ann" in long.text
    assert "evil" not in long.text
    assert short.text == "Short & sweet."


def pdf_of(pages: list[str]) -> bytes:
    """The smallest PDF that holds these lines."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for page in pages:
        stream = f"BT /F1 12 Tf 72 720 Td ({page}) Tj ET"
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects) + 2} 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    tail = (
        f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(out)}\n"
    )
    return out + tail.encode() + b"%%EOF\n"


def test_pdf_names_the_page(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    sentence = "Ann founded the mill in the year of the flood and it grinds corn. " * 8
    (tmp_path / "a.pdf").write_bytes(pdf_of([sentence, "Zebras live elsewhere. " * 45]))
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("deep/c.pdf", pdf_of(["Short."]))
    passages = read(tmp_path)
    assert passages[0].source == f"{tmp_path / 'a.pdf'}#page=1"
    assert passages[0].text.startswith("Ann founded the mill")
    assert passages[-2].source == f"{tmp_path / 'a.pdf'}#page=2"
    assert passages[-1].source == f"{tmp_path / 'b.zip'}!/deep/c.pdf#page=1"
    assert passages[-1].text == "Short."
    assert all(one.start is not None and one.end is not None and one.start < one.end for one in passages)


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"junk", "is a PDF that cannot be opened"), (pdf_of([""]), "holds no text, as scanned pages do")],
)
def test_bad_pdfs(tmp_path: Path, data: bytes, says: str) -> None:
    pytest.importorskip("pypdfium2")
    (tmp_path / "a.pdf").write_bytes(data)
    assert says in complaint(tmp_path / "a.pdf")


def word(*paragraphs: tuple[str, str], extra: str = "") -> bytes:
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in paragraphs
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:document {space}><w:body>{body}{extra}</w:body></w:document>")
    return packed.getvalue()


def test_docx(tmp_path: Path) -> None:
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    table = f"<w:tbl><w:tr>{cell.format('year')}{cell.format('1973')}</w:tr></w:tbl>"
    data = word(("Heading1", "The Mill"), ("", "It turns."), ("Heading2", "Facts"), extra=table)
    (tmp_path / "a.docx").write_bytes(data)
    assert [(one.title, one.text) for one in read(tmp_path)] == [
        ("The Mill", "It turns."),
        ("The Mill > Facts", "| year | 1973 |"),
    ]


@pytest.mark.parametrize("data", [b"junk", word()[:60], gzip.compress(b"x")], ids=["junk", "cut off", "gzip"])
def test_a_broken_docx_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.docx").write_bytes(data)
    assert "a.docx cannot be read as a Word document" in complaint(tmp_path / "a.docx")


def test_entities_that_grow_are_refused(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
    bomb = f'<!DOCTYPE x [<!ENTITY e0 "lol">{entities}]><x>&e9;</x>'
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", bomb)
    assert "is a broken Word document" in complaint(tmp_path / "a.docx")


def test_a_missing_converter_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, package in (("a.pdf", "pypdfium2"), ("a.html", "html_to_markdown")):
        monkeypatch.setitem(sys.modules, package, None)
        (tmp_path / name).write_bytes(b"x")
        says = f"{name} needs a converter that is not installed: run pip install '.[docs]' in a checkout of pyrag"
        assert complaint(tmp_path / name).endswith(says)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_files(tmp_path: Path, pack: Any) -> None:
    suffix = {gzip.compress: ".gz", bz2.compress: ".bz2", lzma.compress: ".xz"}[pack]
    data = "".join(json.dumps(one) + "\n" for one in RECORDS).encode()
    path = tmp_path / f"p.jsonl{suffix}"
    path.write_bytes(pack(data))
    assert bare(read(path)) == BARE
    path.write_bytes(pack(data)[:-6])
    assert f"p.jsonl{suffix} is a broken {suffix} file" in complaint(path)
    path.write_bytes(b"junk" * 9)
    assert f"is a broken {suffix} file" in complaint(path)


def test_archives(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x/b.md", "# B\nText.")
        archive.writestr("a.jsonl.gz", gzip.compress(b'{"text": "x"}\n'))
        for name in (".hidden.md", "__MACOSX/b.md", "photo.jpg", "inner.zip", "../../up.exe"):
            archive.writestr(name, "no")
    first, second = read(tmp_path)
    assert (first.text, first.source) == ("x", f"{tmp_path / 'a.zip'}!/a.jsonl.gz")
    assert (second.title, second.text, second.id.partition("#")[0]) == ("B", "Text.", "a.zip!/x/b.md")


def test_broken_and_locked_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(b"junk")
    assert "a.zip is a broken .zip file" in complaint(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "some words here")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"some words", b"sOme words"))
    assert "a.txt is a broken .zip file (Bad CRC-32" in complaint(path)
    flagged = bytearray(whole)
    flagged[6] |= 1
    flagged[whole.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(flagged)
    assert "encrypted" in complaint(path)


@pytest.mark.parametrize("name", ["bomb.txt.gz", "bomb.txt.bz2", "bomb.txt.xz", "bomb.zip", "bomb.docx"])
def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_document, "FREE", 1 << 20)
    zeros = b"\n" * (4 << 20)
    path = tmp_path / name
    if path.suffix in (".zip", ".docx"):
        inside = "a.txt" if path.suffix == ".zip" else "word/document.xml"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(inside, zeros)
    else:
        path.write_bytes({".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[path.suffix](zeros))
    assert "unpacks to more than 100 times its size, as only a trap does" in complaint(path)


def test_documents_that_must_be_read_whole_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("html_to_markdown")
    monkeypatch.setattr(opened_document, "MAX_WHOLE", 1000)
    (tmp_path / "a.html").write_text("<p>" + "x" * 2000)
    assert "a.html is larger than" in complaint(tmp_path / "a.html")


def test_globs(tmp_path: Path) -> None:
    for name in ("a.md", "sub/b.md", "sub/deep/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("Text.")

    def keys(pattern: str) -> list[str]:
        return [document.key for document in find_documents([str(tmp_path / pattern)])]

    assert keys("*.md") == ["a.md"]
    assert keys("**/*.md") == ["a.md", "sub/b.md"]
    assert keys("s*") == ["sub/b.md", "sub/deep/c.txt"]
    assert "nothing matches" in complaint(str(tmp_path / "*.pdf"))


def test_kinds_are_told_by_suffix() -> None:
    names = {"a.JSONL.GZ": ".jsonl", "a.md": ".md", "a.tar.gz": ".tar", "b.gz": "", "c.txt.xz": ".txt"}
    assert {name: model.kind(name) for name in names} == names
