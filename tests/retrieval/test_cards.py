"""Calendars, contacts, bibliographies and mailboxes; Office files with a password or with another ending."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrag.errors import DataError
from pyrag.retrieval.documents.find import find_documents
from pyrag.retrieval.documents.opened_document import BadRecords, opened
from pyrag.retrieval.documents.reading import Columns, read_opened, read_passages
from pyrag.trace.model import Passage

N = 50_000


def read(path: Path, data: bytes) -> tuple[list[Passage], list[str]]:
    path.write_bytes(data)
    (document,) = find_documents([path])
    with opened(document) as file:
        return [placed.passage for placed in read_opened(file, Columns())], file.remarks


def lines_of(path: Path, data: str) -> list[str]:
    """Return the lines of the only passage of a file."""
    (passage,), _ = read(path, data.encode())
    return passage.text.splitlines()


def event(*lines: str) -> str:
    return "\r\n".join(("BEGIN:VEVENT", *lines, "END:VEVENT", ""))


def test_each_event_is_a_passage_with_readable_labels(tmp_path: Path) -> None:
    data = event(
        "UID:1",
        "SUMMARY:Regatta with prize gi\r\n ving\\, dinner",
        "DTSTART;TZID=Europe/Berlin:20250607T090000",
        "DTEND;TZID=Europe/Berlin:20250607T173000",
        "LOCATION:Pier 4\\; east",
        'ORGANIZER;CN="Ada Berg":mailto:ada@x.example',
        "ATTENDEE;CN=Bo Lind;PARTSTAT=ACCEPTED:mailto:bo@x.example",
        "ATTENDEE;CN=Cai;PARTSTAT=DECLINED:mailto:cai@x.example",
        "DESCRIPTION:Bring oars.\\nAnd water.",
        "BEGIN:VALARM",
        "TRIGGER:-PT1H30M",
        "DESCRIPTION:Pack the tent",
        "END:VALARM",
    )
    other = event("SUMMARY:Offsite", "DTSTART;VALUE=DATE:20260511", "DTEND;VALUE=DATE:20260514")
    passages, remarks = read(tmp_path / "a.ics", f"BEGIN:VCALENDAR\r\n{data}{other}END:VCALENDAR\r\n".encode())
    assert [passage.title for passage in passages] == ["Regatta with prize giving, dinner", "Offsite"]
    assert passages[0].text.splitlines() == [
        "Event: Regatta with prize giving, dinner",
        "Start: 2025-06-07 09:00 Europe/Berlin",
        "End: 2025-06-07 17:30 Europe/Berlin",
        "Place: Pier 4; east",
        "Organiser: Ada Berg <ada@x.example>",
        "Attendees: Bo Lind <bo@x.example>",
        "Declined: Cai <cai@x.example>",
        "Reminder: 1 hour 30 minutes before the start: Pack the tent",
        "Description: Bring oars. And water.",
    ]
    assert passages[0].metadata == {"start": "2025-06-07T09:00:00+02:00", "end": "2025-06-07T17:30:00+02:00"}
    assert passages[1].text.splitlines()[1:] == ["Start: 2026-05-11", "End: 2026-05-13"]  # the last day
    assert remarks == []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["DTSTART:20260201T080000Z", "DURATION:PT1H"], ["Start: 2026-02-01 08:00 UTC", "End: 2026-02-01 09:00 UTC"]),
        (["DTSTART:20260201T080005"], ["Start: 2026-02-01 08:00:05"]),
        (["RRULE:FREQ=MONTHLY;BYDAY=1WE;COUNT=6"], ["Repeats: monthly on the first Wednesday 6 times"]),
        (["RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;UNTIL=20260630"], ["Repeats: every 2 weeks on Monday and Friday"]),
        (["RRULE:FREQ=SOMETIMES;X=1"], ["Repeats: FREQ=SOMETIMES;X=1"]),
        (["EXDATE;TZID=W. Europe Time:20260304T100000"], ["Except on: 2026-03-04 10:00 W. Europe Time"]),
        (["X-DRESS-CODE:black tie", "this line has no name"], ["Dress code: black tie", "this line has no name"]),
        (["DTSTART:soon"], ["Start: soon"]),
        (["DTSTART;TZID=America/Argentina/Salta:20260304T100000"], ["Start: 2026-03-04 10:00 America/Argentina/Salta"]),
        (["DTSTART;TZID=/x.org/2005_1/Europe/Oslo:20260304T100000"], ["Start: 2026-03-04 10:00 Europe/Oslo"]),
        (
            ["DTSTART;TZID=Europe/Oslo:20260304T100030", "DURATION:PT90M"],
            ["Start: 2026-03-04 10:00:30 Europe/Oslo", "End: 2026-03-04 11:30 Europe/Oslo"],
        ),
        (["DTSTART;TZID=" + "a/" * 2000 + "a:20260304T100000"], ["Start: 2026-03-04 10:00 a/a/"]),
        (["DTSTART:00010101", "DTEND:00010101"], ["End: 0001-01-01"]),
        (["DURATION:PT" + "9" * 5000 + "H", "RRULE:FREQ=YEARLY;BYMONTH=" + "1" * 5000], ["Repeats: yearly in 1111"]),
        (["ATTENDEE;CN=Ann\x07e:mailto:a@x.example", "plain\x07line"], ["Attendees: Ann\u200be <a@x.example>"]),
    ],
)
def test_times_and_unknown_lines_of_events(tmp_path: Path, lines: list[str], expected: list[str]) -> None:
    text = "\n".join(lines_of(tmp_path / "a.ics", event("SUMMARY:Talk", *lines)))
    for line in expected:
        assert f"\n{line}" in text


def test_an_unfinished_calendar_keeps_its_last_event(tmp_path: Path) -> None:
    assert "Place: Pier" in lines_of(tmp_path / "a.ics", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Talk\nLOCATION:Pier\n")


def test_each_contact_is_a_passage_with_readable_labels(tmp_path: Path) -> None:
    first = (
        "BEGIN:VCARD\nVERSION:2.1\nN;ENCODING=QUOTED-PRINTABLE;CHARSET=ISO-8859-1:M=FCller;J=F6=\nrg;;Dr.\n"
        "TEL;WORK;VOICE:+49 1\nTEL;CELL:+49 2\nTEL;TYPE=work,fax:+49 3\nADR;HOME:;;Weg 5;Kiel;;24103;Germany\n"
        "PHOTO;ENCODING=BASE64;JPEG:\nAAAA\nBBB=\n\nBDAY:19850314\nEND:VCARD\n"
    )
    second = (
        "BEGIN:VCARD\nVERSION:4.0\nFN:Zoë Ek\nN:Ek;Zoë;;;\nORG:Yard\\; Sons;Sales\nitem1.TEL:123\n"
        "item1.X-ABLabel:_$!<Atelier>!$_\nEMAIL;TYPE=work:zoe@x.example\nNOTE:Calls\\, no mails.\n"
        "PHOTO:data:image/png;base64,AA\n"
        "X-TWITTER:@zoe\nEND:VCARD\n"
    )
    passages, remarks = read(tmp_path / "a.vcf", f"{first}{second}".encode())
    assert [passage.text.splitlines() for passage in passages] == [
        [
            "Name: Dr. Jörg Müller",
            "Phone (work): +49 1",
            "Phone (mobile): +49 2",
            "Fax (work): +49 3",
            "Address (home): Weg 5, 24103 Kiel, Germany",
            "Birthday: 1985-03-14",
        ],
        [
            "Name: Zoë Ek",
            "Organisation: Yard; Sons, Sales",
            "Phone (Atelier): 123",
            "E-mail (work): zoe@x.example",
            "Twitter: @zoe",
            "Note: Calls, no mails.",
        ],
    ]
    assert passages[1].source.endswith("a.vcf")
    assert remarks == ["left out: pictures (2)"]


def test_a_folded_letter_of_a_contact_is_joined(tmp_path: Path) -> None:
    data = "BEGIN:VCARD\r\nFN:Jörg\r\nEND:VCARD\r\n".encode()
    at = data.index("ö".encode()) + 1
    (passage,), remarks = read(tmp_path / "a.vcf", data[:at] + b"\r\n " + data[at:])
    assert passage.title == "Jörg"
    (passage,), remarks = read(tmp_path / "b.vcf", data.decode().encode("latin-1"))
    assert passage.title == "Jörg"
    assert remarks == ["lines that are not UTF-8 were read as windows-1252 (1)"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.vcf", "BEGIN:VCARD\nFN;CHARSET=utf-7:+2AA- Bob\nEND:VCARD\n"),
        ("a.vcf", "BEGIN:VCARD\nFN;CHARSET=unicode_escape:\\ud800 Bob\nEND:VCARD\n"),
        ("a.md", '---\n"x\\uD800": 1\ntitle: "\\uD800 Bob"\n---\nText\n'),
    ],
)
def test_half_of_a_character_is_replaced(tmp_path: Path, name: str, data: str) -> None:
    (passage,), _ = read(tmp_path / name, data.encode())
    assert passage.title == "\ufffd Bob"
    f"{passage.text} {passage.metadata}".encode()


def test_long_notes_of_cards_become_passages_of_their_own(tmp_path: Path) -> None:
    note = " ".join(f"Word{number}." for number in range(700))
    passages, _ = read(tmp_path / "a.vcf", f"BEGIN:VCARD\nFN:Ann\nTEL:1\nNOTE:{note}\nEND:VCARD\n".encode())
    assert passages[0].text == "Name: Ann\nPhone: 1"
    assert {passage.title for passage in passages} == {"Ann"}
    assert all(any(f"Word{number}." in passage.text for passage in passages) for number in range(700))


def test_each_entry_of_a_bibliography_is_a_passage(tmp_path: Path) -> None:
    data = r"""% my library
@string{nw = "Nordwind Press"}
@book{keller2019, author = {Keller, Anna and M{\"u}ller, J\"{o}rg and {Ships \& Sons}},
  title = {The {Tides} of \v{C}ern\'y},
  year = 2019, publisher = nw # { Ltd}, month = mar, file = {x.pdf}}
@article(okafor2021, author = "Ben Okafor", title = "Cranes", journaltitle = {Ports}, date = {2021-06-01},
  pages = {101--117}, crossref = {keller2019})
@misc{broken, title = {No end,
@misc{last, title = {Last}, note = {Seen \emph{once}}}
"""
    passages, _ = read(tmp_path / "a.bib", data.encode())
    texts = {passage.title: passage.text.splitlines() for passage in passages}
    assert texts["The Tides of Černý"] == [
        "Title: The Tides of Černý",
        "Author: Anna Keller, Jörg Müller and Ships & Sons",
        "Year: 2019",
        "Publisher: Nordwind Press Ltd",
        "Month: March",
        "Type: book",
        "Key: keller2019",
    ]
    assert {"Author: Ben Okafor", "Date: 2021-06-01", "Pages: 101–117", "Book title: The Tides of Černý"} <= set(
        texts["Cranes"]
    )
    assert texts["Last"] == ["Title: Last", "Type: misc", "Key: last", "Note: Seen once"]
    assert any("No end" in passage.text for passage in passages)
    assert any("% my library" in passage.text for passage in passages)
    assert next(passage for passage in passages if passage.title == "Cranes").metadata == {"year": 2021}


def test_addresses_in_a_bibliography_stay_as_written(tmp_path: Path) -> None:
    data = r"""@misc{a, title = {A\textasciitilde{}B}, url = {http://x.example/~ann/a--b\_c}, doi = {10.1/a--b},
  howpublished = {\url{http://y.example/~ben}}, note = {Of \~{}cai, \textbackslash d}}"""
    assert lines_of(tmp_path / "a.bib", data.replace("\\\\", "\\")) == [
        "Title: A~B",
        "Website: http://x.example/~ann/a--b_c",
        "DOI: 10.1/a--b",
        "Published as: http://y.example/~ben",
        "Type: misc",
        "Key: a",
        "Note: Of ~cai, \\d",
    ]


@pytest.mark.parametrize(
    ("suffix", "data", "count"),
    [
        (".vcf", b"BEGIN:VCARD\n" * N, 0),
        (".vcf", b"N:" + b"\\;" * N, 1),
        (".vcf", b"a" * N, 1),
        (".vcf", b"TEL" + b";TYPE=a,b" * N, 0),
        (".ics", b"BEGIN:VEVENT\n" * N, 0),
        (".ics", b"BEGIN:VEVENT\nRRULE:" + b"FREQ=DAILY;" * N, 1),
        (".bib", b"@a{" * N, 1),
        (".bib", b"@a{b, c = {" + b"{" * N, 1),
        (".bib", b"@a{b, " + b" " * N + b"x" * N, 1),
        (".bib", b"@a{" + b" " * N + b"=}", 1),
        (".bib", b"@a{b, author = {" + b" and " * N + b"}}", 1),
        (".bib", b"@a{b, title = {x" + b"\\'" * N + b"}}", 1),
    ],
)
def test_hostile_cards_are_read_in_linear_time(tmp_path: Path, suffix: str, data: bytes, count: int) -> None:
    passages, _ = read(tmp_path / f"a{suffix}", data)
    assert bool(passages) == bool(count)


@pytest.mark.parametrize("line", ["DURATION:P{}D", "TRIGGER:-PT{}M", "RRULE:FREQ=YEARLY;BYMONTH={}"])
def test_endless_numbers_of_events_stay_as_written(tmp_path: Path, line: str) -> None:
    written = line.format("1" * 5000)
    lines = ["BEGIN:VALARM", written, "END:VALARM"] if line.startswith("TRIGGER") else [written]
    passages, _ = read(tmp_path / "a.ics", event("SUMMARY:Fair", "DTSTART:20250101T100000Z", *lines).encode())
    assert passages[0].text.startswith("Event: Fair\nStart: 2025-01-01 10:00 UTC")
    assert line.startswith("TRIGGER") or "1" * 400 in "".join(passage.text for passage in passages)


@pytest.mark.parametrize(
    "entries",
    [
        '@string{a = "' + "b" * 1000 + '"}@misc{x, note = ' + "a#" * N + "}",
        '@string{a = "b"}' + "@string{a = a#a#a#a}" * 20 + "@misc{x, note = a}",
        "@misc{p," + "".join(f"a{number}=1," for number in range(5000)) + "}" + "@misc{c, crossref = p}\n" * 5000,
        "@book{p, note = {" + "x" * N + "}}\n" + "@misc{k, crossref = p}\n" * N,
    ],
    ids=["long macro", "macros of macros", "fields by cross-references", "text by cross-references"],
)
def test_bibliographies_that_grow_too_much_are_refused(tmp_path: Path, entries: str) -> None:
    with pytest.raises(DataError, match=r"a\.bib make it more than 10 times as long"):
        read(tmp_path / "a.bib", entries.encode())


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
