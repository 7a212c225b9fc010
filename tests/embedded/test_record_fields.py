"""Answers from the fields of contacts, events, publications and mails, with the offline engine over an index."""

from __future__ import annotations

import pytest

from pyrag.embedded.question_analysis import analyse
from pyrag.embedded.record_fields import by_record
from pyrag.retrieval.documents.reading import read_passages
from pyrag.trace.model import Passage

FILES = {
    "people.vcf": """BEGIN:VCARD
VERSION:4.0
FN:Nadia Brandt
TEL;TYPE=work:+49 40 111
ORG:Kestrel Labs
TITLE:Chief chemist
EMAIL:nadia@kestrel.example
BDAY:19790730
END:VCARD
BEGIN:VCARD
VERSION:3.0
FN:Otto Falk
TEL;TYPE=CELL:+47 222
ORG:Fjord Ferries
END:VCARD
""",
    "team.ics": """BEGIN:VCALENDAR
BEGIN:VEVENT
SUMMARY:Quarterly audit
DTSTART;TZID=Europe/Oslo:20270115T090000
DTEND;TZID=Europe/Oslo:20270115T120000
LOCATION:Hall 7
ORGANIZER;CN=Nadia Brandt:mailto:nadia@kestrel.example
ATTENDEE;CN=Otto Falk:mailto:otto@fjord.example
ATTENDEE;CN=Priya Nair:mailto:priya@x.example
ATTENDEE;CN=Sam Lee;PARTSTAT=DECLINED:mailto:sam@x.example
RRULE:FREQ=YEARLY
END:VEVENT
BEGIN:VEVENT
SUMMARY:Summer picnic
DTSTART;VALUE=DATE:20270710
DTEND;VALUE=DATE:20270712
LOCATION:Lake Bled
END:VEVENT
END:VCALENDAR
""",
    "kiln.eml": """From: Priya Nair <priya@x.example>
To: Otto Falk <otto@fjord.example>
Cc: Sam Lee <sam@x.example>
Subject: Broken kiln
Date: Tue, 5 Jan 2027 08:30:00 +0000

The kiln in the yard broke.
""",
    "refs.bib": """@book{a, author = {Falk, Otto and Nair, Priya}, title = {Ferries of the North}, year = 2011,
publisher = {Kestrel Press}, address = {Bergen}}
@article{b, author = {Lee, Sam}, title = {On glazes}, date = {2019-04-02}, journal = {Clay Letters}}
""",
}
ANSWERS = [
    ("What is Nadia Brandt's phone number?", "+49 40 111", "Nadia Brandt"),
    ("What is the mobile number of Otto Falk?", "+47 222", "Otto Falk"),
    ("What's the e-mail address of Nadia Brandt?", "nadia@kestrel.example", "Nadia Brandt"),
    ("Where does Otto Falk work?", "Fjord Ferries", "Otto Falk"),
    ("Which company does Nadia Brandt work for?", "Kestrel Labs", "Nadia Brandt"),
    ("When was Nadia Brandt born?", "1979-07-30", "Nadia Brandt"),
    ("When is the quarterly audit?", "2027-01-15 09:00 Europe/Oslo, yearly", "Quarterly audit"),
    ("When does the quarterly audit end?", "2027-01-15 12:00 Europe/Oslo, yearly", "Quarterly audit"),
    ("When does the summer picnic end?", "2027-07-11", "Summer picnic"),
    ("Where does the summer picnic take place?", "Lake Bled", "Summer picnic"),
    ("Who attends the quarterly audit?", "Otto Falk, Priya Nair", "Quarterly audit"),
    ("Who is the organiser of the quarterly audit?", "Nadia Brandt", "Quarterly audit"),
    ("How often does the quarterly audit take place?", "yearly", "Quarterly audit"),
    ("Who sent the mail about the kiln?", "Priya Nair", "Broken kiln"),
    ("When was the e-mail about the broken kiln sent?", "Tue, 05 Jan 2027 08:30:00 +0000", "Broken kiln"),
    ("Who received the message about the kiln?", "Otto Falk", "Broken kiln"),
    ("Who wrote Ferries of the North?", "Otto Falk and Priya Nair", "Ferries of the North"),
    ("In which year was Ferries of the North published?", "2011", "Ferries of the North"),
    ("Who published Ferries of the North?", "Kestrel Press", "Ferries of the North"),
    ("In which journal was On glazes published?", "Clay Letters", "On glazes"),
]


@pytest.fixture(scope="module")
def passages(tmp_path_factory: pytest.TempPathFactory) -> list[Passage]:
    folder = tmp_path_factory.mktemp("cards")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return list(read_passages([folder]))


@pytest.mark.parametrize(("question", "expected", "title"), ANSWERS)
def test_fields_answer_questions_with_their_record(
    passages: list[Passage], question: str, expected: str, title: str
) -> None:
    reading = by_record(analyse(question), passages)
    assert reading is not None
    assert reading.text == expected
    assert [passages[place].title for place in reading.citations] == [title]


@pytest.mark.parametrize(
    "question",
    [
        "When is the quarterly picnic?",  # no record has this name
        "What is Nadia's favourite colour?",
        "Where is Nadia Brandt?",  # a contact has no place
        "Who wrote Ferries of the South?",
        "Is Otto Falk coming?",
        "When did the kiln break?",
    ],
)
def test_other_questions_are_left_to_the_reader(passages: list[Passage], question: str) -> None:
    assert by_record(analyse(question), passages) is None


def test_only_labels_with_the_asked_words_fit() -> None:
    card = Passage(
        "1", "Ann", "Name: Ann\nPlace of birth: Oslo\nPhone (work): 1\nPhone (mobile): 2\nBook title: X", 1.0
    )
    assert by_record(analyse("Where is Ann?"), [card]) is None
    assert by_record(analyse("What is Ann's title?"), [card]) is None
    for question, expected in (("What is Ann's mobile number?", "2"), ("What is Ann's phone number?", "1, 2")):
        reading = by_record(analyse(question), [card])
        assert reading is not None
        assert reading.text == expected


def test_a_mail_on_a_subject_precedes_mails_that_mention_it() -> None:
    about = Passage("1", "Kiln", "Subject: Kiln\nFrom: Ann <a@x>\n\nIt broke.", 1.0)
    other = Passage("2", "Lunch", "Subject: Lunch\nFrom: Bo <b@x>\n\nThe kiln waits.", 1.0)
    reading = by_record(analyse("Who sent the mail about the kiln?"), [other, about])
    assert reading is not None
    assert (reading.text, reading.citations) == ("Ann", (1,))


def test_several_records_of_a_name_give_a_weak_answer() -> None:
    first, second = (Passage(str(at), "Audit", f"Event: Audit\nStart: 2027-0{at}-01", 1.0) for at in (1, 2))
    reading = by_record(analyse("When is the audit?"), [first, second])
    assert reading is not None
    assert (reading.text, reading.citations) == ("2027-01-01; 2027-02-01", (0, 1))
    assert reading.confidence is not None
    assert reading.confidence < 0.5
    reading = by_record(analyse("When is the audit?"), [first])
    assert reading is not None
    assert (reading.text, reading.confidence) == ("2027-01-01", 0.8)


MAIL = Passage(
    "1",
    "Kiln of Dune",
    "Subject: Kiln of Dune\nFrom: Bo <b@x>\nTo: Al <a@x>\nDate: 2027-01-05\n\nThe ship came, Al got the prize.",
    1.0,
)
BOOK = Passage("2", "The making of Solaris", "Title: The making of Solaris\nAuthor: Bo\nYear: 2011\nPlace: Oslo", 1.0)
TRIP = Passage("3", "Trip to Bergen", "Event: Trip to Bergen\nStart: 2027-03-01\nPlace: Station", 1.0)


@pytest.mark.parametrize(
    "question",
    [
        "When did the ship come?",
        "When was the kiln built?",
        "Who got the prize?",
        "Who received the prize?",
        "Who wrote Dune?",
        "Who sent the kiln?",
        "Who wrote Solaris?",
        "When was Solaris published?",
        "Where is Bergen?",
        "When is Bergen?",
    ],
)
def test_records_that_only_mention_a_thing_do_not_answer(question: str) -> None:
    assert by_record(analyse(question), [MAIL, BOOK, TRIP]) is None


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who sent the mail about the kiln?", "Bo"),
        ("Who wrote the book about Solaris?", "Bo"),
        ("When is the trip?", "2027-03-01"),
        ("Where does our trip start?", "Station"),
    ],
)
def test_described_things_are_looked_up(question: str, expected: str) -> None:
    reading = by_record(analyse(question), [MAIL, BOOK, TRIP])
    assert reading is not None
    assert reading.text == expected


def test_times_tell_of_series_and_cancelled_events() -> None:
    series = Passage("1", "Yoga", "Event: Yoga\nStart: 2019-01-07 18:00\nPlace: Gym\nRepeats: weekly on Monday", 1.0)
    other = Passage("2", "Yoga", "Event: Yoga\nInstead of: 2019-01-14 18:00\nStart: 2019-01-14 20:00", 1.0)
    party = Passage("3", "Party", "Event: Party\nStart: 2027-07-10\nPlace: Bled\nStatus: cancelled", 1.0)
    for question, expected in (
        ("When is the yoga?", "2019-01-07 18:00, weekly on Monday"),
        ("Where is the yoga?", "Gym"),
        ("When is the party?", "2027-07-10 (cancelled)"),
        ("Where is the party?", "Bled (cancelled)"),
    ):
        reading = by_record(analyse(question), [other, series, party])
        assert reading is not None
        assert (reading.text, reading.confidence) == (expected, 0.8)
