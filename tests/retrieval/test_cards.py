"""Calendars, contacts and mailboxes; Office files with a password or with another ending."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrag.errors import DataError
from pyrag.retrieval.documents.find import find_documents
from pyrag.retrieval.documents.opened_document import BadRecords, opened
from pyrag.retrieval.documents.reading import Columns, read_opened, read_passages
from pyrag.trace.model import Passage


def read(path: Path, data: bytes) -> tuple[list[Passage], list[str]]:
    path.write_bytes(data)
    (document,) = find_documents([path])
    with opened(document) as file:
        return [placed.passage for placed in read_opened(file, Columns())], file.remarks


def test_folded_lines_of_calendars_are_joined(tmp_path: Path) -> None:
    data = b'BEGIN:VEVENT\r\nSUMMARY:Regatta with prize gi\r\n ving\\, dinner\r\nDTSTART;TZID="A:B":20250607T090000\r\n'
    (passage,), remarks = read(tmp_path / "a.ics", data + b"END:VEVENT\r\n")
    assert passage.text.splitlines() == [
        "BEGIN: VEVENT",
        "SUMMARY: Regatta with prize giving, dinner",
        'DTSTART;TZID="A:B": 20250607T090000',
        "END: VEVENT",
    ]
    assert remarks == []


def test_contacts_are_decoded_and_pictures_counted(tmp_path: Path) -> None:
    data = "BEGIN:VCARD\nN;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;am la=\nngen Weg\nPHOTO;ENCODING=b:AAAA\n BBB=\n"
    (passage,), remarks = read(tmp_path / "a.vcf", f"{data}FN:Jörg Müller\nEND:VCARD\n".encode())
    lines = passage.text.splitlines()
    assert lines[1:3] == ["N;ENCODING=QUOTED-PRINTABLE: Müller;am langen Weg", "FN: Jörg Müller"]
    assert "BBB" not in passage.text
    assert remarks == ["left out: pictures (1)"]


def test_each_mail_of_a_mailbox_is_read(tmp_path: Path) -> None:
    mail = "From ann@x.example Mon Feb  5 10:00:00 2024\nFrom: Ann <ann@x.example>\nSubject: Boat {0}\n\n"
    mail += "It needs {1} oars.\n>From here on it leaks.\n\nFrom here it sails on.\n\nFrom May on: Ann\n\n"
    data = mail.format(1, 3) + mail.format(2, 4).replace("\n", "\r\n")
    passages, _ = read(tmp_path / "a.mbox", data.encode())
    assert [passage.title for passage in passages] == ["Boat 1", "Boat 2"]
    assert ["needs 3 oars" in passages[0].text, "needs 4 oars" in passages[1].text] == [True, True]
    assert "\nFrom here on it leaks." in passages[0].text
    assert all("From here it sails on." in passage.text for passage in passages)


def test_a_broken_mail_leaves_the_others_in_the_mailbox(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    path.write_text("From a\nSubject: Boat\n\nIt floats.\n\nFrom b\nX-Broken: yes\n\nNothing.\n")
    (document,) = find_documents([path])
    with opened(document) as file:
        file.bad_records = BadRecords()
        assert [placed.passage.title for placed in read_opened(file, Columns())] == ["Boat"]
    assert file.bad_records.count == 1


@pytest.mark.parametrize("suffix", [".docx", ".xlsx", ".pptx"])
def test_office_files_with_a_password_are_named(tmp_path: Path, suffix: str) -> None:
    if suffix != ".docx":
        pytest.importorskip("xberg")
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"))
    with pytest.raises(DataError, match=rf"a\{suffix} needs a password: save it without one"):
        list(read_passages([path]))
