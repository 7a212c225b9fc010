"""Rows of the Answer agent over gold passages: where the answer stands, among others, or nowhere."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

from pyrag.agents.parsing.answers import parse_answer
from pyrag.agents.parsing.judgements import parse_judged
from pyrag.errors import UsageError
from pyrag.evaluation.datasets.suite import PassageOptions
from pyrag.methods.opera.goals import read_goals
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.settings import Settings
from pyrag.trace.model import Passage
from pyrag_rl.data.answer_readings import GoldReading, ReadingMix, gold_reading, shortened
from pyrag_rl.data.build import BuildCounts, Request, build
from pyrag_rl.data.decompositions.gold_examples import GoldRequest
from pyrag_rl.data.replies import fitted

GOLD = Passage("g", "Bern", "Bern lies on the Aare. It was founded in 1191. Its ground is uneven.")
OTHERS = [Passage(f"o{number}", f"Town {number}", f"Town {number} was founded late.") for number in range(5)]
QUESTION = "When was Bern founded?"


def reading(mix: ReadingMix, key: str = "k", answers: tuple[str, ...] = ("1191",)) -> GoldReading | None:
    return asyncio.run(gold_reading(key, QUESTION, answers, GOLD, InMemoryRetriever([GOLD, *OTHERS]), mix))


def test_most_questions_stand_over_their_gold_passage() -> None:
    made = reading(ReadingMix(several=0, unknown=0))
    assert made is not None
    assert made.passages == (GOLD,)
    assert parse_answer(made.reply, 1, QUESTION).text == "1191"


def test_several_passages_hold_the_gold_one() -> None:
    for key in map(str, range(20)):
        made = reading(ReadingMix(several=1, unknown=0), key)
        assert made is not None
        assert 3 <= len(made.passages) <= 5
        parsed = parse_answer(made.reply, len(made.passages), QUESTION)
        assert made.passages[parsed.citations[0]] == GOLD


def test_without_the_gold_passage_the_reply_is_unknown() -> None:
    made = reading(ReadingMix(several=0, unknown=1))
    assert made is not None
    assert GOLD not in made.passages
    assert not made.sufficient
    assert not parse_answer(made.reply, len(made.passages), QUESTION).known


def test_shares_are_those_of_the_mix() -> None:
    made = [reading(ReadingMix(several=0.2, unknown=0.1), str(key)) for key in range(300)]
    several = sum(one is not None and one.sufficient and len(one.passages) > 1 for one in made)
    unknown = sum(one is not None and not one.sufficient for one in made)
    assert 40 <= several <= 80
    assert 15 <= unknown <= 45
    assert made == [reading(ReadingMix(several=0.2, unknown=0.1), str(key)) for key in range(300)]
    with pytest.raises(UsageError, match="1 together"):
        ReadingMix(several=0.8, unknown=0.3)


def test_an_answer_that_the_passage_lacks_is_no_row() -> None:
    assert reading(ReadingMix(several=0, unknown=0), answers=("1192",)) is None
    assert reading(ReadingMix(several=0, unknown=0), answers=("119",)) is None


def test_long_passages_keep_the_sentences_around_the_answer() -> None:
    text = " ".join(f"Sentence number {number} is of no use." for number in range(40))
    passage = Passage("p", "T", f"{text} It was founded in 1191. {text}")
    cut = shortened(passage, "1191", QUESTION, 40)
    assert "founded in 1191." in cut
    assert len(cut) <= 160
    assert shortened(passage, "", QUESTION, 40).startswith("Sentence number 0")


@pytest.mark.parametrize(("answer", "reply"), [("uneven.", "uneven"), ("3 a.m.", "3 a.m."), ("Texas,", "Texas")])
def test_answers_lose_the_sentences_punctuation(answer: str, reply: str) -> None:
    gold = Passage("p", "", f"It is {answer} So it is.")
    made = asyncio.run(
        gold_reading("k", "What?", (answer,), gold, InMemoryRetriever([]), ReadingMix(several=0, unknown=0))
    )
    assert made is not None
    assert made.reply.endswith(f"<answer>{reply}</answer>")


def test_replies_are_fitted_to_the_prompts() -> None:
    reply = "<redacted_thinking>Doc [1] says so.</redacted_thinking>\n<answer>x</answer>"
    assert fitted(reply, None) == reply
    assert fitted(reply, "small") == "<answer>x</answer>"
    program = "```python\nfinal_answer = 1\n```"
    assert fitted(f'```json\n{{"sub_queries": []}}\n```\n\n{program}', "small") == program


def write(path: Path, *rows: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A set with training questions, and decompositions with passages beside it."""
    corpus = [{"id": one.id, "title": one.title, "text": one.text} for one in (GOLD, *OTHERS)]
    write(tmp_path / "toy" / "questions.jsonl", {"id": "m", "question": "Measured?", "answers": ["x"]})
    write(
        tmp_path / "toy" / "train_questions.jsonl",
        {"id": "1", "question": QUESTION, "answers": ["1191"], "supporting": ["g"]},
        {"id": "2", "question": "Which town is late?", "answers": ["Town 9"], "supporting": ["o1"]},
        {"id": "3", "question": "Two hops?", "answers": ["x"], "supporting": ["g", "o1"]},
    )
    write(tmp_path / "toy" / "train_corpus.jsonl", *corpus)
    steps = [
        {"question": QUESTION, "answer": "1191", "triple": ["Bern", "inception", "1191"]},
        {"question": "When was Town 1 founded?", "answer": "late", "triple": ["Town 1", "inception", "late"]},
        {"question": "Given #1 and #2: x", "answer": "Bern", "op": "compare", "depends_on": [1, 2]},
    ]
    write(
        tmp_path / "gold" / "decompositions.jsonl",
        {"id": "c", "source": "toy", "split": "train", "question": "Which is older, Bern or Town 1?", "type": "x",
         "answers": ["Bern"], "supporting": ["g", "o1"], "sub_questions": steps},
    )  # fmt: skip
    write(tmp_path / "gold" / "corpus.jsonl", *corpus)
    return tmp_path


def built(data: Path, *tasks: str, gold: bool = False, sets: bool = False) -> tuple[BuildCounts, list[tuple[str, str]]]:
    mix = ReadingMix(several=0, unknown=0)
    request = Request(
        tasks=tasks,
        out=data / "rows.parquet",
        data=data if sets else None,
        sets=["toy"] if sets else [],
        decompositions=GoldRequest(folder=data / "gold", mix=mix) if gold else None,
        sft=True,
        mix=mix,
        passages=PassageOptions(cache=data / "indexes"),
        settings=Settings(prompts="small"),
    )
    counts = build(request)
    rows = pq.read_table(data / "rows.parquet")["messages"].to_pylist()
    return counts, [(one[1]["content"], one[2]["content"]) for one in rows]


def test_rows_of_a_set_have_one_gold_passage_each(data: Path) -> None:
    counts, rows = built(data, "answer", sets=True)
    assert rows == [(f"[Doc 1]\nBern lies{GOLD.text[9:]}\n\nQuestion: {QUESTION}", "<answer>1191</answer>")]
    assert dict(counts.dropped) == {"without a row (toy)": 2}
    assert dict(counts.passages) == {"one passage": 1}


def test_rows_of_steps_and_of_their_conclusion(data: Path) -> None:
    counts, rows = built(data, "answer", "synthesis", gold=True)
    assert [reply for _, reply in rows] == ["<answer>1191</answer>", "<answer>late</answer>", "<answer>Bern</answer>"]
    assert rows[2][0] == (
        f"Given: {QUESTION} 1191. When was Town 1 founded? late. Answer the question: Which is older, Bern or Town 1?"
    )
    assert dict(counts.passages) == {"one passage": 2, "no passages": 1}


def test_whole_questions_stand_over_all_gold_passages(data: Path) -> None:
    _, rows = built(data, "rag", gold=True, sets=True)
    prompts = {prompt.rpartition("Question: ")[2]: (prompt, reply) for prompt, reply in rows}
    assert set(prompts) == {QUESTION, "Which town is late?", "Two hops?", "Which is older, Bern or Town 1?"}
    prompt, reply = prompts["Which is older, Bern or Town 1?"]
    assert GOLD.text in prompt.replace("\n", " ")
    assert OTHERS[1].text in prompt
    assert reply == "<answer>Bern</answer>"


def test_sets_and_decompositions_go_into_one_file(data: Path) -> None:
    counts, rows = built(data, "answer", "synthesis", gold=True, sets=True)
    assert len(rows) == 3  # the question of the set is a step, too
    assert counts.dropped["asked before"] == 1


def test_whole_questions_without_gold_passages_stand_over_found_ones(data: Path) -> None:
    write(
        data / "toy" / "train_questions.jsonl",
        {"id": "1", "question": QUESTION, "answers": ["MCXCI", "1191"]},
        {"id": "2", "question": "Which town is late?", "answers": ["Rome"]},
    )
    counts, rows = built(data, "rag", sets=True)
    assert [reply for _, reply in rows] == ["<answer>1191</answer>", "<answer>Rome</answer>"]
    assert counts.rows == 2
    assert GOLD.text in rows[0][0].replace("\n", " ")


HOPS = [
    {"question": "Which town was founded in 1191?", "answer": "Bern", "supporting": "g"},
    {"question": "Who leads #1?", "answer": "Ada Roth", "supporting": "o1"},
]


def test_opera_learns_plans_from_sub_questions_of_a_set(data: Path) -> None:
    question = {"id": "1", "question": "Who leads the town of 1191?", "answers": ["Ada Roth"], "decomposition": HOPS}
    shorthand = [*HOPS[:1], {"question": "#1 >> leader", "answer": "Ada Roth", "supporting": "o1"}]
    loop = [{**HOPS[0], "question": "Who leads #2?"}, HOPS[1]]
    write(
        data / "toy" / "train_questions.jsonl",
        question,
        {**question, "id": "2", "question": "In shorthand?", "decomposition": shorthand},
        {**question, "id": "3", "question": "Round and round?", "decomposition": loop},
        {"id": "4", "question": "Without hops?", "answers": ["x"]},
    )
    counts, rows = built(data, "goals", sets=True)
    assert counts.dropped["without a reply worth learning"] == 3
    ((prompt, reply),) = rows
    assert "Who leads the town of 1191?" in prompt
    goals = read_goals(reply).goals
    assert [(goal.text, goal.needs, goal.search != "") for goal in goals] == [
        ("Which town was founded in 1191?", (), True),
        ("Who leads [answer from step 1]?", (1,), True),
    ]


def test_opera_learns_judgements_from_gold_passages(data: Path) -> None:
    question = {"id": "1", "question": "Who leads the town of 1191?", "answers": ["Ada Roth"]}
    hops = [HOPS[0], {"question": "Who leads #1?", "answer": "Ada Roth", "supporting": "nowhere"}]
    write(data / "toy" / "train_questions.jsonl", {**question, "decomposition": hops})
    _, rows = built(data, "analysis", sets=True)
    judged = [parse_judged(reply, 10, "q") for _, reply in rows]
    assert [(one.known, one.text) for one in judged] == [(True, "Bern"), (False, "unknown")]
    assert len(judged[0].citations) == 1
    assert "Who leads Bern?" in rows[1][0]
    assert judged[1].missing == "Who leads Bern?"
