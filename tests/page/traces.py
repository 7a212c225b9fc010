"""Traces for the browser: one with a repair, recoveries, parallel branches and model calls, and hostile ones."""

from __future__ import annotations

from dataclasses import replace

from pyrag.trace.coverage import Coverage
from pyrag.trace.model import Answer, Attempt, Citation, Passage, Program, Step, Trace, Usage

QUESTION = "Which of the two mills on the Ouse was founded first, and who founded it?"
SOUTH = "When was the South Mill founded?"
FIRST = """mills = retrieve("mills on the river Ouse", topk=5)
north = answer("When was the North Mill founded?", mills)
south = answer("When was the South Mill founded?", mills)
first = "North Mill" if parse_year(north) < parse_year(south) else "South Mill"
docs = retrieve(f"{first} founder", topk=5)
final_answer = answer(f"Who founded the {first}?", docs)
"""
SECOND = """north_docs = retrieve("North Mill founded", topk=5)
north = answer("When was the North Mill founded?", north_docs)
south_docs = retrieve("South Mill founded", topk=5)
south = answer("When was the South Mill founded?", south_docs)
first = "North Mill" if parse_date(north) < parse_date(south) else "South Mill"
docs = retrieve(f"{first} founder", topk=5)
final_answer = answer(f"Who founded the {first}?", docs)
"""
ERROR = """Traceback (most recent call last):
  File "program", line 4, in <module>
NameError: name 'parse_year' is not defined"""
PASSAGES = {
    "north": ("North Mill", "The North Mill stands on the Ouse. It was founded on 3 May 1788 by Ann Thorpe, a weaver."),
    "south": ("South Mill", "The South Mill, a mile below, was founded in 1791. Its wheel came from Leeds."),
    "ouse": ("River Ouse", "The Ouse is a river in Yorkshire with several mills."),
}  # fmt: skip


def repaired() -> Trace:
    def found(number: int, query: str, line: int, started: float, passages: tuple[str, ...], program: int = 1) -> Step:
        usage = Usage(retrievals=1, seconds=0.06)
        return Step(
            number, "retrieve", query, line, program, 5, passages=passages, started=started, seconds=0.06, usage=usage
        )

    year = Answer("1791", citations=("south",))
    unknown = Answer("unknown", known=False)
    call = Usage(model_calls=1, prompt_tokens=812, completion_tokens=64, seconds=0.7)
    tries = (
        Attempt("first", SOUTH, None, ("ouse",), unknown, call, missing="a date of the South Mill"),
        Attempt("boost", SOUTH, 20, ("ouse", "south"), year, call),
    )
    steps = (
        found(0, "mills on the river Ouse", 1, 2.1, ("ouse",), 0),
        found(1, "North Mill founded", 1, 4.0, ("north", "ouse")),
        found(2, "South Mill founded", 3, 4.0, ("ouse",)),
        Step(
            3, "answer", "When was the North Mill founded?", 2, 1, passages=("north", "ouse"), mode="evidence",
            answer=Answer("3 May 1788", citations=("north",), confidence=0.97),
            depends_on=(1,), started=4.06, seconds=0.8, usage=call,
            rationale="The first passage gives the day.",
        ),
        Step(
            4, "answer", SOUTH, 4, 1, passages=("ouse", "south"), mode="evidence",
            answer=year, attempts=tries, depends_on=(2,), started=4.06, seconds=1.9, usage=call + call,
        ),
        found(5, "North Mill founder", 6, 6.0, ("north",)),
        Step(
            6, "answer", "Who founded the North Mill?", 7, 1, passages=("north",), mode="evidence",
            answer=Answer("Ann Thorpe", citations=("north",), confidence=0.91),
            depends_on=(5,), started=6.06, seconds=0.75, usage=call,
        ),
    )  # fmt: skip
    return Trace(
        QUESTION,
        Answer("Ann Thorpe", citations=("north", "south"), confidence=0.91),
        engine="openai:qwen2.5-7b-instruct",
        retriever="notes",
        sub_queries=(
            "When was the North Mill founded?",
            "When was the South Mill founded?",
            "Who founded the mill that came first?",
        ),
        programs=(
            Program(FIRST, "planner", error=ERROR),
            Program(SECOND, "planner", "repair", rationale="parse_date is what there is."),
        ),
        steps=steps,
        citations=(Citation(1, "north", 6), Citation(2, "south", 4)),
        passages={
            key: Passage(key, title, text, 1.0, f"notes/{key}.md", start=0, end=len(text))
            for key, (title, text) in PASSAGES.items()
        },
        usage=Usage(7, 4, 5230, 611, 6.84, 2, 0.0021, 1460),
        warnings=("one of the passages was cut to fit the model's window",),
    )


def enumerated() -> Trace:
    """Return the trace of a question over all documents, of which some have no answer."""
    coverage = Coverage(
        415, 412, unknown=2, missing=1, what="documents", reason="the budget of 414 model calls is spent",
        unknown_items=("Mill 7", "Mill 9"), missing_items=("Mill 12",), weak=1, weak_items=("Mill 3",), confidence=0.4,
    )  # fmt: skip
    rows = ({"item": "Mill 1", "document": "north", "value": "1788", "known": True}, {"item": "Mill 2", "value": True})
    steps = (
        Step(0, "documents", "all documents", 1, output="415 documents", seconds=0.01),
        Step(1, "each", "When was it founded?", 2, mode="each", passages=("north",), coverage=coverage, seconds=3.1),
    )
    trace = repaired()
    return replace(
        trace,
        answer=Answer("Mill 1: 1788; Mill 2", citations=("north",)),
        programs=(Program("docs = documents()\nfinal_answer = each(docs, 'When was it founded?')\n", "planner"),),
        steps=steps,
        citations=(Citation(1, "north", 1),),
        warnings=(),
        value=[dict(row) for row in rows],
        item_citations={"0": (1,), "1": ()},
    )
