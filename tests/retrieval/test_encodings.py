"""Text files in other encodings, named or detected; tables whose columns are not those of a passage."""

from __future__ import annotations

import codecs
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.errors import DataError, UsageError
from pyrag.retrieval.documents.encodings import Recoded, checked_encoding
from pyrag.retrieval.documents.reading import Columns, read_passages
from pyrag.retrieval.index import update_index

WINDOWS = "Die Mühle „Nord“ gehört Jürgen – seit 1912."


def texts(path: Path, encoding: str = "", **columns: str) -> list[str]:
    return [one.text for one in read_passages([path], Columns(encoding=encoding, **columns))]


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
@pytest.mark.parametrize("encoding", ["cp1252", "auto"])
def test_windows_notes_are_read(tmp_path: Path, name: str, encoding: str) -> None:
    (tmp_path / name).write_bytes(WINDOWS.encode("cp1252"))
    assert texts(tmp_path / name, encoding) == [WINDOWS]


@pytest.mark.parametrize("form", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "utf-8"])
def test_auto_reads_unicode_forms(tmp_path: Path, form: str) -> None:
    (tmp_path / "a.txt").write_bytes(WINDOWS.encode(form))
    assert texts(tmp_path / "a.txt", "auto") == [WINDOWS]


@pytest.mark.parametrize(
    ("encoding", "form"),
    [
        ("cp1251", "cp1251"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("cp1252", "utf-16"),
        ("koi8-r", "koi8-r"),
    ],
)
def test_a_named_encoding_is_used(tmp_path: Path, encoding: str, form: str) -> None:
    text = "Mill" if form == "utf-16" else "Мельница Анны"
    (tmp_path / "a.txt").write_bytes(text.encode(form))
    assert texts(tmp_path / "a.txt", encoding) == [text]


@pytest.mark.parametrize("encoding", ["cp1252", "auto", "utf-16", "cp1251"])
def test_utf8_stays_utf8_whatever_is_named(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_text(WINDOWS, encoding="utf-8")
    (tmp_path / "b.txt").write_text("Plain.", encoding="utf-8")
    assert texts(tmp_path, encoding) == [WINDOWS, "Plain."]


def test_tables_and_records_in_other_encodings(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id;title;text\n1;Mühle;Jürgen\n".encode("cp1252"))
    (tmp_path / "b.tsv").write_bytes("id\ttitle\ttext\n2\tMühle\tZoë\n".encode("utf-16"))
    (tmp_path / "c.jsonl").write_bytes('{"id": "3", "text": "Ångström"}\n'.encode("cp1252"))
    (tmp_path / "d.json").write_bytes('[{"id": "4", "text": "Ole"}]'.encode("utf-16-le"))
    assert texts(tmp_path, "auto") == ["Jürgen", "Zoë", "Ångström", "Ole"]


def test_places_are_characters_of_the_decoded_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("title;text\nMühle;Jürgen\nä;ö\n".encode("cp1252"))
    found = list(read_passages([tmp_path / "a.csv"], Columns(encoding="auto")))
    text = (tmp_path / "a.csv").read_text(encoding="cp1252")
    assert [text[one.start : one.end] for one in found] == ["Mühle;Jürgen", "ä;ö"]


@pytest.mark.parametrize(
    ("data", "encoding", "says"),
    [
        (WINDOWS.encode("cp1252"), "", r"not UTF-8 .*: save the file as UTF-8, or add --encoding with its name"),
        (WINDOWS.encode() + b" \xff", "auto", r"not UTF-8 \(byte 0xff"),
        (b"\xff\x00\x01\x02 junk \xfe", "auto", "not UTF-8"),
        (b"caf\xe9 \x81", "cp1252", r"a\.txt: not cp1252 \(.*\): name another --encoding"),
        (codecs.BOM_UTF16_LE + b"a\0b", "auto", r"not utf-16 \(.*\): name another --encoding"),
    ],
)
def test_what_fits_no_encoding_is_refused(tmp_path: Path, data: bytes, encoding: str, says: str) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(DataError, match=says):
        texts(tmp_path / "a.txt", encoding)


@pytest.mark.parametrize("name", ["nonsense", "zip", "", "\0"])
def test_what_is_no_encoding_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="name one such as windows-1252"):
        checked_encoding(name)


class Slow(io.BytesIO):
    """Gives few bytes at a time, so that characters are cut everywhere."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._size = size

    def read(self, _: int | None = -1, /) -> bytes:
        return super().read(self._size)


@given(st.text(alphabet="aé„中\n", max_size=30), st.integers(1, 5), st.sampled_from(["auto", "cp1252"]))
def test_utf8_in_pieces_comes_through_unchanged(text: str, size: int, encoding: str) -> None:
    assert Recoded(Slow(text.encode(), size), "x", encoding).read() == text.encode()


@given(st.text(alphabet="abéß \n", max_size=30), st.integers(1, 5))
def test_windows_text_in_pieces_is_decoded(text: str, size: int) -> None:
    reader = Recoded(Slow(f"x {text} é ".encode("cp1252"), size), "x", "cp1252")
    data = reader.read()
    assert data is not None
    assert data.decode() == f"x {text} é "
    assert reader.encoding == "cp1252"


def test_a_build_says_what_it_read_otherwise(tmp_path: Path) -> None:
    folder = tmp_path / "n"
    folder.mkdir()
    (folder / "a.txt").write_bytes(WINDOWS.encode("cp1252"))
    (folder / "b.txt").write_text("Plain.", encoding="utf-8")
    (folder / "c.csv").write_text("name,town\nAnn,Ystad\n", encoding="utf-8")
    built = update_index([folder], tmp_path / "ix", columns=Columns(encoding="auto"))
    assert built.remarks == (
        (str(folder / "a.txt"), "read as windows-1252"),
        (str(folder / "c.csv"), "no column 'text', so every row was taken whole"),
    )
    strict = update_index([folder], tmp_path / "ix")
    assert [name for name, _ in strict.problems] == [str(folder / "a.txt")]


def test_tables_of_different_columns_are_taken_row_by_row(tmp_path: Path) -> None:
    (tmp_path / "our_staff.csv").write_text("id,name,town\n1,Ann Lee,Ystad\n2,Bo,\n,,\n", encoding="utf-8-sig")
    (tmp_path / "prices.csv").write_text("id;Article;Price\n1;Saw;12,50\n1;Saw;12,50\n", encoding="utf-8")
    (tmp_path / "text.csv").write_text("id,title,text\n1,T,As always.\n", encoding="utf-8")
    (tmp_path / "wide.tsv").write_text("a\tb\n1\t2\tmore\n", encoding="utf-8")
    found = list(read_passages([tmp_path]))
    assert [(one.title, one.text) for one in found] == [
        ("our staff: Ann Lee", "id: 1; name: Ann Lee; town: Ystad"),
        ("our staff: Bo", "id: 2; name: Bo"),
        ("prices: Saw", "id: 1; Article: Saw; Price: 12,50"),
        ("T", "As always."),
        ("wide", "a: 1; b: 2; more"),
    ]
    assert [one.id.partition("#")[0] for one in found] == ["our_staff.csv"] * 2 + ["prices.csv", "1", "wide.tsv"]


def test_a_star_takes_the_rows_of_any_table_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("title,text\nMill,It turns.\n", encoding="utf-8")
    assert texts(path, text="*") == ["title: Mill; text: It turns."]


def test_a_column_that_was_named_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,body\nx,y\n", encoding="utf-8")
    with pytest.raises(DataError, match="has no column 'notes'"):
        texts(tmp_path, text="notes")
