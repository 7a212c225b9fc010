"""The report of a run: what it says is what the records say."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from pyrag.evolve.report import experience_table, graph_table, page, sampled, updates_table
from pyrag.evolve.step_records import StepRecord, TriedTopology, ValidatedUpdate, read, written
from pyrag.methods.hera.experience.entry import Experience
from pyrag.methods.hera.topology import Characterisation, Node, Topology

PROFILE = Characterisation("bridge")
NODES = (Node("a", "retriever"), Node("b", "answer_generator", depends_on=("a",)))
VARIANT = TriedTopology("variant", Topology(NODES), 0.0, 300)
SAMPLE = TriedTopology("sample", Topology(NODES), 1.0, 120, "<b>right</b>")
RECORDS = [
    StepRecord(0, 0.25),
    StepRecord(1, 0.5, 1, "q1", PROFILE, (SAMPLE, VARIANT), calls=12, updates=(
        ValidatedUpdate(0.25, 0.5, ("Read the <title>.",), "answer_generator", 1),
        ValidatedUpdate(0.5, 0.4, ("ADD 1: x",)),
    )),
    StepRecord(2, 0.5, 1, "q2", PROFILE, (SAMPLE,)),
]  # fmt: skip


def test_records_are_read_as_they_were_written() -> None:
    assert read([written(one) for one in RECORDS]) == RECORDS
    assert [one.accepted for one in RECORDS[1].updates] == [True, False]


def test_tables_say_what_was_learned() -> None:
    assert [row[:5] for row in updates_table(RECORDS).rows] == [
        ["1", "accepted", "answer_generator", "25.0", "50.0"],
        ["1", "refused", "library", "50.0", "40.0"],
    ]
    assert len(sampled(RECORDS)) == 2
    (initial, *_) = graph_table(RECORDS).rows
    assert initial[:2] == ["bridge", "exploration"]
    assert initial[3:] == ["2.00", "0.50", "0.00", "0.00", "1.00"]
    assert experience_table([Experience(1, PROFILE, "z", 2, 3)]).rows == [["bridge", "z", "2 of 3"]]


def test_the_page_stands_alone_and_shows_texts_as_texts() -> None:
    html = page(RECORDS, [Experience(1, PROFILE, "<script>alert(1)</script>")], "+- Read the <title>.")
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert not re.search(r"(src|href)=", html)
    plots = re.findall(r"<svg.*?</svg>", html)
    assert len(plots) == 3 + 5  # a curve for each measure of graphs
    for plot in plots:
        ET.fromstring(plot)
    assert plots[1].count("<circle") == 2  # the sampled trajectories


def test_a_run_without_a_step_has_a_page_too() -> None:
    assert "Validation" in page([], [], "")
    assert "Validation" in page(RECORDS[:1], [], "")
