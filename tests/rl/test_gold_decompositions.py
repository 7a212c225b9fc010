"""Gold decompositions become programs that run, and rows whose replies the agents' own parsers read back."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from pyrag.agents.parsing.program_queries import program_queries
from pyrag.agents.parsing.programs import parse_program
from pyrag.agents.parsing.sub_queries import parse_sub_queries
from pyrag.errors import DataError, ServiceError, UsageError
from pyrag.settings import Settings
from pyrag.trace.model import Trace, TraceError
from pyrag_rl.data.build import Request, build
from pyrag_rl.data.decompositions import program_checks
from pyrag_rl.data.decompositions.faults import FAULTS
from pyrag_rl.data.decompositions.gold_examples import GoldRequest, repeats_of
from pyrag_rl.data.decompositions.program_checks import ProgramCheck
from pyrag_rl.data.decompositions.programs import UncoveredFormError, program_of
from pyrag_rl.data.decompositions.qdmr import as_questions
from pyrag_rl.data.decompositions.source import GoldQuestion, GoldStep, chosen, read_caps
from pyrag_rl.data.decompositions.wording import asked_of
from pyrag_rl.data.rows import read_rows
from pyrag_rl.prompting import GivenReply, agents_over

BRIDGE = GoldQuestion(
    id="b", source="toy", question="When was the director of Dracula born?", answers=("12 July 1880",), hops=2,
    split="train",
    sub_questions=(
        GoldStep(question="Who directed Dracula?", answer="Tod Browning"),
        GoldStep(question="When was #1 born?", answer="12 July 1880", depends_on=(1,)),
    ),
)  # fmt: skip
CHAIN = """q1 = "Who directed Dracula?"
a1 = answer(q1, retrieve(q1))
q2 = f"When was {a1} born?"
a2 = answer(q2, retrieve(q2))
final_answer = a2"""


def compared(question: str, relation: str, facts: Sequence[tuple[str, str]], gold: str) -> GoldQuestion:
    steps = [
        GoldStep(question=f"When was {name} born?", answer=value, triple=(name, relation, value))
        for name, value in facts
    ]
    last = GoldStep(question=f"Given #1 and #2: {question}", answer=gold, op="compare", depends_on=(1, 2))
    return GoldQuestion(id="c", source="toy", question=question, answers=(gold,), sub_questions=(*steps, last))


BORN = (("Ann Lee", "12 May 1950"), ("Bo Ray", "3 June 1949"))
COMPARISONS = [
    compared("Who is older, Ann Lee or Bo Ray?", "date of birth", BORN, "Bo Ray"),
    compared("Who was born later, Ann Lee or Bo Ray?", "date of birth", BORN, "Ann Lee"),
    compared(
        "Which film came out first, The Last Day or First?", "publication date",
        (("The Last Day", "1950"), ("First", "1951")), "The Last Day",
    ),
    compared("Are Ann and Bo from the same country?", "country", (("Ann", "American"), ("Bo", "the U.S.")), "yes"),
    compared("Are Ann and Bo from the same country?", "country", (("Ann", "Chad"), ("Bo", "Mali")), "no"),
]  # fmt: skip


async def faults(questions: Iterable[GoldQuestion]) -> list[str]:
    check = ProgramCheck({})
    try:
        return [await check.fault(one, program_of(one.question, one.sub_questions)) for one in questions]
    finally:
        await check.aclose()


def test_a_chain_ends_with_its_last_answer() -> None:
    program = program_of(BRIDGE.question, BRIDGE.sub_questions)
    assert program.source == CHAIN
    assert program.questions == program_queries(program.source) == ("Who directed Dracula?", "When was #1 born?")


async def test_programs_compute_the_gold_answer() -> None:
    assert await faults([BRIDGE, *COMPARISONS]) == [""] * (1 + len(COMPARISONS))


def test_a_comparison_says_why_its_sign_is_as_it_is() -> None:
    older, later = (program_of(one.question, one.sub_questions).source for one in COMPARISONS[:2])
    assert "# older: the earlier date\ntry:\n" in older
    assert "parse_date(a1) < parse_date(a2)" in older
    assert "# later: the later date\ntry:\n" in later
    assert "parse_date(a1) > parse_date(a2)" in later


async def test_a_busy_machine_is_not_the_programs_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    real, tries = program_checks.answer_question, []

    async def late(*given: Any, **more: Any) -> Trace:
        tries.append(given)
        trace = await real(*given, **more)
        return (
            replace(trace, error=TraceError("program", "killed", 1, cause="wall")) if len(tries) in late_at else trace
        )

    monkeypatch.setattr(program_checks, "answer_question", late)
    late_at: set[int] = {1}
    assert await faults([BRIDGE]) == [""]
    assert len(tries) == 2
    late_at = {3, 4, 5}
    with pytest.raises(ServiceError, match="too busy"):
        await faults([BRIDGE])


async def test_a_program_with_another_answer_is_told() -> None:
    wrong = GoldQuestion(
        id="w", source="toy", question=COMPARISONS[0].question, answers=("Ann Lee",),
        sub_questions=COMPARISONS[0].sub_questions,
    )  # fmt: skip
    assert await faults([wrong]) == ["the program ends with another answer"]


async def test_an_unreadable_date_is_left_to_the_answer_agent() -> None:
    unclear = compared(
        "Who is older, Ann Lee or Bo Ray?", "date of birth", (("Ann Lee", "long ago"), BORN[1]), "Bo Ray"
    )
    program = program_of(unclear.question, unclear.sub_questions)
    check = ProgramCheck({})
    try:
        trace, fault = await check.run(unclear, program, program.source)
    finally:
        await check.aclose()
    assert (trace.error, fault) == (None, None)
    assert trace.steps[-1].query == (
        "Given: When was Ann Lee born? long ago. When was Bo Ray born? 3 June 1949. "
        "Answer the question: Who is older, Ann Lee or Bo Ray?"
    )


def test_a_comparison_without_a_rule_is_concluded() -> None:
    question = compared("Which film has more directors, A or B?", "director", (("A", "x"), ("B", "y")), "A")
    program = program_of(question.question, question.sub_questions)
    assert program.concludes
    assert program.source.endswith('Answer the question: Which film has more directors, A or B?")')


def test_quotes_and_braces_stay_text() -> None:
    steps = (
        GoldStep(question='Who sang "{x}" \\n?', answer="A"),
        GoldStep(question='Where is "#1" {y}?', answer="B", depends_on=(1,)),
    )
    program = program_of("q?", steps)
    assert program_queries(program.source) == ('Who sang "{x}" \\n?', 'Where is "#1" {y}?')


@pytest.mark.parametrize(
    ("questions", "reason"),
    [
        (["Where is #2?", "Who?"], "later one"),
        (["Who is A?", "Who is B?"], "not used"),
        (["Who is A?", "What is the last letter of #1?"], "computes"),
    ],
)
def test_uncovered_forms_have_a_reason(questions: list[str], reason: str) -> None:
    with pytest.raises(UncoveredFormError, match=reason):
        program_of("q?", [GoldStep(question=one) for one in questions])


@pytest.mark.parametrize(
    ("question", "plain", "asked"),
    [
        ("Souvenir >> performer", "Who performed Souvenir?", "Who performed Souvenir?"),
        ("#1 >> shares border with", "What is the shares border with of #1?", "What shares a border with #1?"),
        ("who is #1 's mother ?", "", "Who is #1's mother?"),
        ("when did #2 become the capital of #3", "", "When did #2 become the capital of #3?"),
        ("What is the birthplace (country only) of Neymar?", "", "In which country was Neymar born?"),
    ],
)
def test_shorthand_becomes_a_question(question: str, plain: str, asked: str) -> None:
    assert asked_of(GoldStep(question=question, plain=plain)) == asked


def phrases(question: str, answer: str, *steps: str) -> GoldQuestion:
    return GoldQuestion(
        id="q", source="toy", question=question, answers=(answer,), form="qdmr",
        sub_questions=tuple(GoldStep(question=one) for one in steps),
    )  # fmt: skip


BREAK = {
    phrases("Who did an actress play in A?", "B", "the actress that was in C", "who #1 plays in A"):
        ("Who is the actress that was in C?", "Who #1 plays in A?"),
    phrases("On what river is the city where X 's is?", "B", "city where X 's is", "the rivers that #1 is on"):
        ("What is the city where X's is?", "What are the rivers that #1 is on?"),
    phrases("Which town?", "B", "town that A founded", "the name of #1"): ("What is the town that A founded?",),
    phrases("Who was born first Ann or Bo?", "Bo", "when was Ann born", "when was Bo born", "which first of #1 , #2"):
        ("When was Ann born?", "When was Bo born?"),
    phrases("Are both Ann and Bo chefs?", "no", "is Ann a chef", "if Bo is a chef", "if both #1 and #2 are true"):
        ("Is Ann a chef?", "Is Bo a chef?"),
    phrases("Have A and B the same nationality?", "no", "nationality of A", "nationality of B", "if #1 is #2"):
        ("What is the nationality of A?", "What is the nationality of B?"),
    phrases("Which kind are A and B?", "film", "kind of A", "kind of B", "kind in both #1 and #2"):
        ("What is the kind of A?", "What is the kind of B?"),
    phrases("Where does the council meet?", "Bern", "where the council meets"): ("Where does the council meet?",),
}  # fmt: skip


@pytest.mark.parametrize("question", BREAK, ids=lambda question: question.question)
async def test_noun_phrases_become_questions_of_programs_that_run(question: GoldQuestion) -> None:
    made = as_questions(question)
    assert program_of(made.question, made.sub_questions).questions == BREAK[question]
    assert await faults([made]) == [""]


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (("opera Maria Golovin", "composer who wrote #1"), "names a thing"),
        (("party that has members", "#1 that is old"), "filters"),
        (("film that A made", "songs of #1", "number of #2"), "counts"),
        (("a", "b", "c of #1", "d of #2", "which is highest of #3 , #4"), "not questions"),
    ],
)
def test_phrases_without_a_rule_have_a_reason(steps: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UncoveredFormError, match=reason):
        as_questions(phrases("q?", "x", *steps))


def many(source: str, kinds: str) -> list[GoldQuestion]:
    return [
        GoldQuestion(id=f"{source}{number}", source=source, question=f"{source} {number}?", answers=("x",), type=kind,
                     sub_questions=(), split="train")
        for number, kind in enumerate(kinds)
    ]  # fmt: skip


def test_kinds_take_turns_below_a_maximum() -> None:
    taken = chosen([*many("aa", "x" * 50 + "yyy"), *many("bb", "z")], (), read_caps(["a=6", "b"]), seed=1)
    assert sorted(one.type for one in taken) == ["x", "x", "x", "y", "y", "y", "z"]
    assert taken == chosen([*many("bb", "z"), *many("aa", "x" * 50 + "yyy")], (), read_caps(["a=6", "b"]), seed=1)
    with pytest.raises(UsageError, match="no source 'cc'"):
        chosen(many("aa", "x"), (), {"cc": None}, seed=1)
    with pytest.raises(UsageError, match="NAME=NUMBER"):
        read_caps(["a=many"])


def test_one_wording_of_a_group_is_taken() -> None:
    wordings = [
        GoldQuestion(id=str(one), source="a", question=f"{one}?", answers=("x",), sub_questions=(), group="g")
        for one in range(3)
    ]
    assert len(chosen(wordings, (), {}, seed=0)) == 1
    assert chosen(wordings, ("train",), {}, seed=0) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of decompositions beside a measured set."""
    rows: list[dict[str, Any]] = [
        {
            "id": one.id, "source": one.source, "question": one.question, "answers": one.answers, "split": "train",
            "sub_questions": [
                {"question": step.question, "answer": step.answer, "depends_on": step.depends_on, "op": step.op,
                 "triple": step.triple} for step in one.sub_questions
            ],
        }
        for one in (BRIDGE, COMPARISONS[0])
    ]  # fmt: skip
    rows.append({**rows[0], "id": "q", "form": "qdmr", "sub_questions": [{"question": "a"}, {"question": "b"}]})
    (tmp_path / "gold").mkdir()
    (tmp_path / "toy").mkdir()
    with gzip.open(tmp_path / "gold" / "decompositions.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    measured = {"id": "m", "question": "Something else?", "answers": ["x"]}
    (tmp_path / "toy" / "questions.jsonl").write_text(json.dumps(measured) + "\n")
    return tmp_path / "gold"


def request(folder: Path, task: str, **more: Any) -> Request:
    prompts = more.pop("prompts", "small")
    gold = GoldRequest(folder=folder, splits=("train",), repairs=more.pop("repairs", 0.0),
                       singles=more.pop("singles", 0.0), repeats=more.pop("repeats", 1))  # fmt: skip
    return Request(
        tasks=[task],
        out=folder.parent / f"{task}.parquet",
        decompositions=gold,
        settings=Settings(prompts=prompts),
        **more,
    )


def conversations(path: Path) -> list[list[dict[str, str]]]:
    import pyarrow.parquet as pq

    found: list[list[dict[str, str]]] = pq.read_table(path)["messages"].to_pylist()
    return found


def test_rare_kinds_count_as_much_as_common_ones() -> None:
    kinds = ["a"] * 8 + ["b"] * 3 + ["c"]
    questions = [replace(BRIDGE, id=str(number), type=kind) for number, kind in enumerate(kinds)]
    questions.append(replace(BRIDGE, id="else", type="c", source="other"))
    times = {("toy", "a"): 1, ("toy", "b"): 2, ("toy", "c"): 5, ("other", "c"): 1}
    assert repeats_of(questions, 5) == times
    assert set(repeats_of(questions, 1).values()) == {1}


def test_rows_of_rare_kinds_are_written_several_times(tmp_path: Path) -> None:
    folder = tmp_path / "gold"
    folder.mkdir()
    kinds = {"p": "common", "q": "common", "r": "common", "s": "rare"}
    with gzip.open(folder / "decompositions.jsonl.gz", "wt") as file:
        for name, kind in kinds.items():
            row = asdict(replace(BRIDGE, id=name, question=f"{BRIDGE.question} ({name})", type=kind))
            file.write(json.dumps(row) + "\n")
    built = build(request(folder, "joint", sft=True, repeats=2, singles=1.0))
    asked = [one[1]["content"] for one in conversations(tmp_path / "joint.parquet")]
    assert [asked.count(f"{BRIDGE.question} ({name})") for name in kinds] == [1, 1, 1, 2]
    assert built.rows == 6  # the first step is the same in all of them


def test_joint_rows_of_the_small_set_hold_the_program_alone(folder: Path) -> None:
    built = build(request(folder, "joint", sft=True))
    assert (built.rows, built.questions) == (2, 3)
    assert dict(built.dropped) == {"the steps are not questions (toy)": 1}
    rows = {one[1]["content"]: one[2]["content"] for one in conversations(folder.parent / "joint.parquet")}
    assert rows[BRIDGE.question] == f"```python\n{CHAIN}\n```"
    assert 'final_answer = "Ann Lee" if parse_date(a1) < parse_date(a2) else "Bo Ray"' in rows[COMPARISONS[0].question]


async def test_joint_rows_of_the_default_prompts_hold_the_list(folder: Path) -> None:
    await asyncio.to_thread(build, request(folder, "joint", sft=True, prompts=None))
    reply = next(one[2]["content"] for one in conversations(folder.parent / "joint.parquet") if "Dracula" in str(one))
    plan = await agents_over(GivenReply(reply)).planner.plan(BRIDGE.question, None)
    assert reply.startswith("```json")
    assert (plan.source.strip(), plan.sub_queries) == (CHAIN, ("Who directed Dracula?", "When was #1 born?"))


def test_plan_and_decompose_rows_of_gold_decompositions(folder: Path) -> None:
    build(request(folder, "decompose", sft=True))
    replies = [one[-1]["content"] for one in conversations(folder.parent / "decompose.parquet")]
    assert {parse_sub_queries(one) for one in replies} == {
        ("Who directed Dracula?", "When was #1 born?"), ("When was Ann Lee born?", "When was Bo Ray born?"),
    }  # fmt: skip
    build(request(folder, "plan"))
    (row,) = [one for one in read_rows(folder.parent / "plan.parquet") if one.id == "b"]
    assert (row.agent, row.hops, row.answers) == ("plan", 2, BRIDGE.answers)
    assert row.messages[1].content == f"{BRIDGE.question}\n1. Who directed Dracula?\n2. When was #1 born?"


async def test_every_fault_shows() -> None:
    seen, check = set(), ProgramCheck({})
    try:
        for question in (BRIDGE, COMPARISONS[0]):
            program = program_of(question.question, question.sub_questions)
            for name, make in FAULTS.items():
                source = make(program.source, random.Random(1))
                if source != program.source:
                    assert (await check.run(question, program, source))[1] is not None, name
                    seen.add(name)
    finally:
        await check.aclose()
    assert seen == set(FAULTS)


def test_repair_rows_hold_the_real_error_and_the_right_program(folder: Path) -> None:
    built = build(request(folder, "joint", sft=True, repairs=1.0))
    repairs = [one for one in conversations(folder.parent / "joint.parquet") if "Correct the program." in str(one)]
    assert (built.rows, len(repairs)) == (4, 2)
    for system, user, reply in repairs:
        assert system["content"].startswith("Write a Python program")
        assert re.search(r"```\n.*(Error: |never |used|does not depend)", user["content"])
        assert parse_program(reply["content"]) not in user["content"]


def test_first_steps_are_questions_of_their_own(folder: Path) -> None:
    built = build(request(folder, "joint", sft=True, singles=1.0))
    rows = {one[1]["content"]: one[2]["content"] for one in conversations(folder.parent / "joint.parquet")}
    assert built.rows == 4
    assert parse_program(rows["Who directed Dracula?"]) == (
        'q1 = "Who directed Dracula?"\na1 = answer(q1, retrieve(q1))\nfinal_answer = a1'
    )


def test_questions_measured_beside_the_folder_are_refused(folder: Path) -> None:
    measured = {"id": "m", "question": BRIDGE.question, "answers": ["x"]}
    (folder.parent / "toy" / "questions.jsonl").write_text(json.dumps(measured) + "\n")
    with pytest.raises(DataError, match="held out"):
        build(request(folder, "joint", sft=True))
    assert build(request(folder, "joint", sft=True, leave_out=True)).dropped["held out"] == 1


def test_rows_beyond_a_length_are_left_out(folder: Path) -> None:
    built = build(request(folder, "joint", sft=True, max_tokens=120))
    assert built.rows == 1
    assert built.dropped["longer than about 120 tokens"] == 1


def test_gold_decompositions_have_no_rows_for_other_tasks(folder: Path) -> None:
    with pytest.raises(UsageError, match="gold decompositions have no rows for rewrite"):
        build(request(folder, "rewrite"))
