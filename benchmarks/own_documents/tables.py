"""Questions that people ask over tables of their own, with right answers that were written before any run.

python -m benchmarks.own_documents.tables            # counts right, weak or unknown, and confident wrong answers
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.own_documents import tables_of_trades, tables_with_notes
from pyrag import PyRAG
from pyrag.cli.main import guarded
from pyrag.trace.model import Trace

UNKNOWN = ""  # right answer to a question that the table does not answer

Rows = Sequence[Sequence[str | float]]


def _html(title: str, rows: Rows) -> str:
    cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows[1:])
    header = "".join(f"<th>{cell}</th>" for cell in rows[0])
    return f"<html><body><h1>{title}</h1><table><tr>{header}</tr>{cells}</table></body></html>"


FILES: dict[str, str] = {
    "crew.csv": (
        "name,team,city,hired,salary_eur,phone\n"
        "Lotte Brandt,Design,Gent,2019-04-01,51200,0470 11\n"
        "Piet Maes,Sales,Gent,2021-09-13,47800,\n"
        "Hana Sato,Design,Kobe,2018-01-15,63900,078 22\n"
        "Omar Diallo,Support,Dakar,2022-03-07,38400,\n"
        "Rosa Conti,Sales,Kobe,2020-11-02,49500,078 31\n"
        "Jens Vik,Support,Gent,2023-06-19,40200,0470 92\n"
        "Mira Novak,Design,Dakar,2021-02-22,58100,221 5\n"
    ),
    "orders-2024.csv": (
        "Order no;Customer;Date;Total;Status\n"
        "A-101;Café Rosa;2024-01-12;1.250,00 €;paid\n"
        "A-102;Hotel Miro;2024-01-30;89,90 €;open\n"
        "A-103;Café Rosa;2024-02-14;430,50 €;paid\n"
        "A-104;Bistro Lund;2024-03-03;2.075,00 €;paid\n"
        "A-105;Hotel Miro;2024-03-18;640,00 €;open\n"
        "A-106;Hotel Miro;2024-04-02;310,10 €;paid\n"
        "Total;;;4.795,50 €;\n"
    ),
    "harvest.md": (
        "# Orchard harvest\n\n"
        "| Tree | Year | Yield (kg) | Picker |\n|---|---|---|---|\n"
        "| Plum | 2022 | 41 | Ines |\n| Plum | 2023 | 36.5 | Tom |\n| Apple | 2022 | 120 | Ines |\n"
        "| Apple | 2023 | 98 | Ines |\n| Pear | 2022 | 15 | Tom |\n| Pear | 2023 | n/a | Tom |\n"
    ),
    "parts.html": _html(
        "Spare parts",
        [
            ("Part", "Shelf", "In stock", "Unit price"),
            ("Gasket", "B2", "1,200", "$0.45"),
            ("Rotor", "A1", "35", "$212.00"),
            ("Bearing", "A1", "480", "$6.75"),
            ("Belt", "B2", "90", "$18.20"),
            ("Filter", "C3", "0", "$9.99"),
        ],
    ),
    "members.csv": (
        "Member,Joined,Plan,Fee paid,Age\n"
        "Ann,15/03/2022,Gold,yes,34\nBo,02/07/2022,Silver,no,41\nCy,28/11/2021,Gold,yes,29\n"
        "Di,09/01/2023,Basic,no,56\nEd,30/05/2023,Silver,yes,47\n"
    ),
    "tickets.tsv": (
        "id\topened\tclosed\tpriority\tassignee\thours\n"
        "1\t2024-09-01\t2024-09-03\thigh\tSam\t4\n2\t2024-09-02\t\tlow\tUma\t1.5\n"
        "3\t2024-09-05\t2024-09-05\thigh\tUma\t2\n4\t2024-10-01\t2024-10-09\tmedium\tSam\t6.5\n"
        "5\t2024-10-04\t\thigh\tRavi\t3\n"
    ),
    "matches.md": (
        "# Matches of the season\n\n"
        "| Match | Date | Opponent | Goals for | Goals against | Attendance |\n|---|---|---|---|---|---|\n"
        "| 1 | 3 March 2024 | Rovers | 2 | 1 | 12,400 |\n| 2 | 17 March 2024 | United | 0 | 0 | 9,850 |\n"
        "| 3 | 6 April 2024 | Rovers | 3 | 4 | 15,020 |\n| 4 | 21 April 2024 | City | 1 | 0 | 11,300 |\n"
    ),
    "rivers.html": _html(
        "Rivers",
        [
            ("River", "Country", "Length (km)", "Source height (m)"),
            ("Nebel", "Arland", "412", "1,120"),
            ("Tass", "Borvia", "1,034", "2,310"),
            ("Quill", "Arland", "98", "640"),
            ("Orm", "Cestia", "655", "1,870"),
        ],
    ),
    "budget.md": (
        "# Studio budget\n\n| Item | Q1 | Q2 |\n|---|---|---|\n| Rent | 3 000 | 3 000 |\n| Power | 410 | 385 |\n"
        "| Paint | 120 | 640 |\n| **Total** | 3 530 | 4 025 |\n"
    ),
    "sensors.csv": "sensor,site,reading\ns1,North,12 kg\ns2,North,900 g\ns3,South,3 kg\n",
}
SHEETS: dict[str, Rows] = {
    "trips.xlsx": [
        ("Trip", "Traveller", "Start", "Cost", "Currency"),
        ("Oslo fair", "Kim", "2024-05-02", 840, "NOK"),
        ("Bern audit", "Lea", "2024-05-20", 610, "CHF"),
        ("Oslo visit", "Lea", "2024-06-11", 1200, "NOK"),
        ("Bern fair", "Kim", "2024-07-01", 450, "CHF"),
    ],
    "library.xlsx": [
        ("Title", "Author", "Year", "Copies", "On loan"),
        ("Salt Roads", "Ivy Stone", 1998, 4, 1),
        ("Glass Tide", "Ivy Stone", 2011, 2, 2),
        ("Low Moon", "Ken Abe", 2005, 6, 0),
        ("Red Barn", "Ken Abe", 2019, 1, 1),
        ("The Weir", "Nora Fink", 2011, 3, 2),
        ("Old Maps", "Ken Abe", 1987, 2, 0),
    ],
}
QUESTIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "crew.csv": (
        ("How many employees work in Gent?", "3"),
        ("Which city has the most people?", "Gent"),
        ("What is the average salary by team?", "Design: 57733.3333 eur; Sales: 48650 eur; Support: 39300 eur"),
        ("Who was hired first?", "Hana Sato"),
        ("How many people were hired after 2020?", "4"),
        ("How many people have no phone?", "2"),
        ("How many people in Gent earn more than 45,000?", "2"),
        ("What is the median salary?", "49500 eur"),
    ),
    "orders-2024.csv": (
        ("How many orders are there?", "6"),
        ("How much did Hotel Miro spend in total?", "1040 €"),
        ("Which customer spent the most in total?", "Bistro Lund"),
        ("How many orders per customer?", "Café Rosa: 2; Hotel Miro: 3; Bistro Lund: 1"),
        ("How many orders were placed in March?", "2"),
        ("How many orders are open?", "2"),
        ("How many orders of Hotel Miro are not paid?", "2"),
        ("When was the last order?", "2024-04-02"),
        ("What percentage of orders are open?", "33.33%"),
    ),
    "harvest.md": (
        ("What was the total yield in 2022?", "176 kg"),
        ("Which tree had the highest yield in 2023?", "Apple"),
        ("What is the difference in yield between Apple and Plum in 2022?", "79 kg"),
        ("What is the average yield of the plum tree?", "38.75 kg"),
        ("What is the total yield per tree?", "Plum: 77.5 kg; Apple: 218 kg; Pear: 15 kg"),
        ("How many different trees are there?", "3"),
        ("What was the yield of the pear tree in 2023?", UNKNOWN),
    ),
    "parts.html": (
        ("Which part is the most expensive?", "Rotor"),
        ("How many parts are on shelf A1?", "2"),
        ("How many parts cost less than $10?", "3"),
        ("What are the top 3 parts by unit price?", "Rotor, Belt, Filter"),
        ("What is the total stock?", "1805"),
        ("Which parts are on shelf B2?", "Gasket, Belt"),
        ("Which part is the second most expensive?", "Belt"),
    ),
    "members.csv": (
        ("How many members have their fee paid?", "3"),
        ("Who is the oldest member?", "Di"),
        ("How many members joined before 2023?", "3"),
        ("What is the most common plan?", "Gold, Silver"),
        ("What share of members are on the Gold plan?", "40%"),
        ("How many Gold members are older than 30?", "1"),
    ),
    "tickets.tsv": (
        ("How many tickets were opened in October?", "2"),
        ("How many high priority tickets are there?", "3"),
        ("Which assignee has the most tickets?", "Sam, Uma"),
        ("What is the total of hours for Sam?", "10.5"),
        ("How many tickets have no closed date?", "2"),
        ("Which assignee has the highest average hours?", "Sam"),
    ),
    "matches.md": (
        ("What was the highest attendance?", "15020"),
        ("How many matches were played in April?", "2"),
        ("What is the average attendance?", "12142.5"),
        ("How many matches were against Rovers?", "2"),
    ),
    "rivers.html": (
        ("How much longer is the Tass than the Orm?", "379 km"),
        ("Which river in Arland is the longest?", "Nebel"),
        ("What is the total length of the rivers in Arland?", "510 km"),
    ),
    "budget.md": (
        ("Which item has the highest Q2?", "Rent"),
        ("What is the sum of Q2?", "4025"),
        ("What is the average of Q1?", "1176.6667"),
    ),
    "sensors.csv": (
        ("What is the total reading?", UNKNOWN),
        ("Which site has the most sensors?", "North"),
    ),
    "trips.xlsx": (
        ("What is the total cost of all trips?", UNKNOWN),
        ("What is the total cost of the trips in NOK?", "2040 NOK"),
        ("What is the total cost per currency?", "NOK: 2040 NOK; CHF: 1060 CHF"),
        ("How many trips started in May?", "2"),
        ("Which trip was the most expensive?", UNKNOWN),
    ),
    "library.xlsx": (
        ("How many copies do we have?", "18"),
        ("How many titles came out after 2005?", "3"),
        ("Which author has the most titles?", "Ken Abe"),
        ("How many copies are on loan?", "6"),
    ),
}


def workbook(rows: Rows) -> bytes:
    """Return an Excel file with one sheet of rows, of texts and numbers only."""
    lines = "".join(
        f'<row r="{number}">'
        + "".join(
            f'<c r="{chr(65 + place)}{number}"><v>{cell}</v></c>'
            if isinstance(cell, int | float)
            else f'<c r="{chr(65 + place)}{number}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
            for place, cell in enumerate(row)
        )
        + "</row>"
        for number, row in enumerate(rows, start=1)
    )
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" '
        f'ContentType="{kind}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" '
        f'ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="Sheet1" sheetId="1" '
        'r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>',
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def write_files(folder: Path, *, sheets: bool = True) -> None:
    """Write the files into a folder.

    Args:
        folder: The folder, which must exist.
        sheets: Whether to write the Excel files too, which need the extra `office`.
    """
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, rows in SHEETS.items() if sheets else ():
        (folder / name).write_bytes(workbook(rows))


def verdict(trace: Trace, gold: str) -> str:
    """Return "right", "weak or unknown" or "confident wrong".

    Args:
        trace: Trace of the question.
        gold: Right answer; empty if only unknown is right.
    """
    if not gold and not trace.answer.known:
        return "right"
    if trace.answer.known and not trace.weak:
        return "right" if trace.answer.text.casefold() == gold.casefold() else "confident wrong"
    return "weak or unknown"


def asked() -> Iterable[tuple[str, str, str]]:
    """Return file, question and right answer of all questions."""
    return [(name, question, gold) for name, pairs in QUESTIONS.items() for question, gold in pairs]


def verdict_on_note(trace: Trace, gold: str) -> str:
    """Return the verdict on an answer that should be in a note, whose words may stand around it.

    Args:
        trace: Trace of the question.
        gold: Right answer.
    """
    if not trace.answer.known or trace.weak:
        return "weak or unknown"
    return "right" if gold.casefold() in trace.answer.text.casefold() else "confident wrong"


def main() -> None:
    """Ask all questions over three indexes, and print what is not right and the counts."""
    _ask_all("tables", write_files, ((verdict, asked()),))
    stated = [("notes", question, gold) for question, gold in tables_with_notes.STATED]
    computed = [("tables", question, gold) for question, gold in tables_with_notes.COMPUTED]
    _ask_all("tables with notes", write_notes, ((verdict, computed), (verdict_on_note, stated)))
    trades = [("trades", question, gold) for question, gold in tables_of_trades.COMPUTED]
    _ask_all("tables of trades", write_trades, ((verdict, trades),))


def write_trades(folder: Path) -> None:
    """Write the tables of eleven more kinds into a folder, which must exist."""
    for name, text in tables_of_trades.FILES.items():
        (folder / name).write_text(text, encoding="utf-8")


def write_notes(folder: Path) -> None:
    """Write the tables of further subjects and the notes beside them into a folder, which must exist."""
    for name, text in tables_with_notes.FILES.items():
        (folder / name).write_text(text, encoding="utf-8")


def _ask_all(
    title: str,
    write: Callable[[Path], None],
    parts: Sequence[tuple[Callable[[Trace, str], str], Iterable[tuple[str, str, str]]]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "documents").mkdir()
        write(folder / "documents")
        command = [sys.executable, "-m", "pyrag", "index", str(folder / "documents"), "--out", str(folder / "index")]
        subprocess.run(command, check=True, capture_output=True)
        counts: dict[str, int] = {}
        with PyRAG(retriever=str(folder / "index")) as rag:
            for judge, source, question, gold in [(judge, *item) for judge, items in parts for item in items]:
                trace = rag.ask(question)
                result = judge(trace, gold)
                counts[result] = counts.get(result, 0) + 1
                if result != "right":
                    print(f"{result}: {source}: {question} {gold!r}, not {trace.answer.text!r}: {trace.remark[:160]}")
        print(f"{title}:", ", ".join(f"{name}: {count}" for name, count in sorted(counts.items())))


if __name__ == "__main__":
    guarded(main)
