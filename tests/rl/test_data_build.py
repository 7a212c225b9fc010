"""Training sets from runs and data sets: prompts are the agents' own, labels follow from gold, held out stays out."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from typer.testing import CliRunner

from pyrag.agents import schemas
from pyrag.agents.llm import make_llm_agents
from pyrag.agents.parsing.answers import parse_answer
from pyrag.agents.parsing.judgements import parse_judged
from pyrag.agents.parsing.programs import parse_program
from pyrag.agents.parsing.sub_queries import parse_sub_queries
from pyrag.agents.rewriter import parse_rewrite
from pyrag.errors import DataError, PyRAGError, UsageError
from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.datasets.suite import PassageOptions
from pyrag.evaluation.runs.folder import open_run
from pyrag.evaluation.scoring import score
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.llm.protocol import Message
from pyrag.llm.schema import fits
from pyrag.methods.opera import schemas as opera_schemas
from pyrag.methods.opera.goals import read_goals
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings
from pyrag.trace.model import Passage, Trace
from pyrag_rl.data.build import Request, build
from pyrag_rl.data.rows import TrainRow, read_rows
from pyrag_rl.data.sets import hops_of
from pyrag_sandbox import Sandbox

QUESTION = Question("q1", "Where is the company that acquired WhatsApp headquartered?", ("Menlo Park",), hops=2,
                    supporting=("p1", "p2"))  # fmt: skip
FIRST, SECOND = "Which company acquired WhatsApp?", "Where is Meta headquartered?"
PASSAGES = {
    "p1": Passage("p1", "WhatsApp", "WhatsApp was acquired by Meta."),
    "p2": Passage("p2", "Meta", "Meta is headquartered in Menlo Park."),
    "x": Passage("x", "Noise", "Nothing of use."),
}
GOALS = [
    {"step": 1, "goal": FIRST, "type": "company", "needs": []},
    {"step": 2, "goal": "Where is [company from step 1] headquartered?", "type": "city", "needs": [1]},
]
PROGRAM = f'''docs = retrieve("{FIRST}")
company = answer("{FIRST}", docs)
more = retrieve(f"Where is {{company}} headquartered?")
city = answer(f"Where is {{company}} headquartered?", more)
final_answer = answer(f"Given: the buyer is {{company}}, in {{city}}. Answer the question: {QUESTION.question}")
'''


def judged(decision: str, answer: str = "", documents: Sequence[int] = (), missing: str = "") -> str:
    said = {"analysis": "so it says", "decision": decision, "answer": answer, "confidence": 0.9}
    return json.dumps({**said, "documents": list(documents), "missing": missing})


def asked(chat: ScriptedChat, words: str) -> list[tuple[Message, ...]]:
    """The calls to the agent whose system message holds these words, in their order."""
    return [tuple(call) for call in chat.calls if words in call[0].content]


def answered(chat: ScriptedChat, found: Mapping[str, Sequence[Passage]], **settings: Any) -> Trace:
    async def work() -> Trace:
        engines = Engines(make_llm_agents(chat), InMemoryRetriever(found), Sandbox())
        try:
            return await answer_question(QUESTION.question, engines, Settings(**settings))
        finally:
            await engines.aclose()

    return asyncio.run(work())


Ran = tuple[Path, ScriptedChat]


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Trace, str], Path]:
    def write_run(trace: Trace, method: str, files: Mapping[str, str] | None = None) -> Path:
        folder = tmp_path_factory.mktemp("run") / method
        identity = {"sets": ["toy"], "methods": [method]}
        with open_run(folder, identity, {"files": dict(files or {})}) as writer:
            writer.write(score("toy", method, QUESTION, trace), trace)
        return folder

    return write_run


@pytest.fixture(scope="module")
def opera(write: Callable[[Trace, str], Path]) -> Ran:
    """A run in which the second goal takes a rewritten query."""
    rewritten = json.dumps({"strategy": "name it", "query": "Meta seat city", "keywords": ["seat"]})
    chat = ScriptedChat(
        {
            "plan": [json.dumps({"rationale": "two hops", "goals": GOALS})],
            "answer": [
                judged("YES", "Meta", [1]),
                judged("NO", missing="its seat"),
                judged("YES", "Menlo Park", [1]),
                "<answer>Menlo Park</answer>",
            ],
            "rewrite": [rewritten],
        }
    )
    found = {FIRST: [PASSAGES["p1"], PASSAGES["x"]], SECOND: [PASSAGES["x"]], "Meta seat city": [PASSAGES["p2"]]}
    return write(answered(chat, found, method="opera"), "opera"), chat


@pytest.fixture(scope="module")
def program(write: Callable[[Trace, str], Path]) -> Ran:
    chat = ScriptedChat(
        {
            "decompose": [json.dumps([FIRST, "Where is that company headquartered?"])],
            "plan": [f"```python\n{PROGRAM}```"],
            "answer": [
                "<redacted_thinking>Doc [1] says so.</redacted_thinking><answer>Meta</answer>",
                "<redacted_thinking>It is in Doc [1].</redacted_thinking><answer>Menlo Park</answer>",
                "<redacted_thinking>Both facts.</redacted_thinking><answer>Menlo Park</answer>",
            ],
        }
    )
    found = {FIRST: [PASSAGES["p1"]], SECOND: [PASSAGES["p2"]]}
    return write(answered(chat, found), "pyrag"), chat


def test_a_question_counts_once_whatever_methods_answered_it(program: Ran, tmp_path: Path) -> None:
    trace = answered(ScriptedChat(["[]"]), {})
    with open_run(tmp_path / "run", {"sets": ["toy"], "methods": ["pyrag", "opera"]}, {"files": {}}) as writer:
        for method in ("pyrag", "opera"):
            writer.write(score("toy", method, QUESTION, trace), trace)
    built = build(Request(tasks=["answer"], runs=[program[0], tmp_path / "run"], methods=["pyrag"], out=tmp_path / "x"))
    assert built.questions == 2  # one a run
    built = build(Request(tasks=["answer"], runs=[program[0], tmp_path / "run"], out=tmp_path / "x"))
    assert built.questions == 2


def rows(run: Path, out: Path, *tasks: str, **more: Any) -> list[TrainRow]:
    build(Request(tasks=tasks, runs=[run], out=out, **more))
    return read_rows(out)


def replies(run: Path, out: Path, *tasks: str) -> list[str]:
    import pyarrow.parquet as pq

    build(Request(tasks=tasks, runs=[run], out=out, sft=True))
    return [row["messages"][-1]["content"] for row in pq.read_table(out).to_pylist()]


class TestPromptsAreTheAgentsOwn:
    def test_of_operas_agents(self, opera: Ran, tmp_path: Path) -> None:
        run, chat = opera
        for task, words in (("goals", "Plan Agent"), ("analysis", "Analysis-Answer"), ("rewrite", "Rewrite Agent")):
            built = [row.messages for row in rows(run, tmp_path / task, task)]
            assert built == asked(chat, words), task

    def test_of_pyrags_agents(self, program: Ran, tmp_path: Path) -> None:
        run, chat = program
        for task, words in (("decompose", "Decompose Agent"), ("plan", "Plan Agent")):
            assert [row.messages for row in rows(run, tmp_path / task, task)] == asked(chat, words), task
        both = [row.messages for row in rows(run, tmp_path / "answer", "answer", "synthesis")]
        assert sorted(both, key=str) == sorted(asked(chat, "Answer Agent"), key=str)


class TestRepliesHaveTheFormThatTheAgentAsksFor:
    """A model that learnt from them replies as a server with a schema makes it reply."""

    def test_of_operas_agents(self, opera: Ran, tmp_path: Path) -> None:
        run, _ = opera
        for task, schema in (
            ("goals", opera_schemas.GOALS),
            ("analysis", schemas.JUDGEMENT),
            ("rewrite", schemas.REWRITE),
        ):
            learnt = replies(run, tmp_path / task, task)
            assert learnt, task
            assert all(fits(reply, schema) for reply in learnt), task

    def test_of_pyrags_agents(self, program: Ran, tmp_path: Path) -> None:
        run, _ = program
        assert [fits(reply, schemas.SUB_QUERIES) for reply in replies(run, tmp_path / "decompose", "decompose")] == [
            True
        ]
        learnt = replies(run, tmp_path / "answer", "answer", "synthesis")
        assert [re.fullmatch(schemas.TAGGED_ANSWER, reply) is not None for reply in learnt] == [True] * 3


class TestLabels:
    def test_analysis_knows_which_documents_sufficed(self, opera: Ran, tmp_path: Path) -> None:
        found = rows(opera[0], tmp_path / "a", "analysis")
        assert [(row.query, row.sufficient, row.answers) for row in found] == [
            (FIRST, True, ("Meta",)),
            (SECOND, False, ("Menlo Park",)),
            (SECOND, True, ("Menlo Park",)),
        ]

    def test_a_rewrite_row_has_the_gold_passages_not_found(self, opera: Ran, tmp_path: Path) -> None:
        (row,) = rows(opera[0], tmp_path / "r", "rewrite")
        assert (row.supporting, row.tried, row.missing) == (("p1", "p2"), (SECOND, SECOND), "its seat")

    def test_a_synthesis_has_no_documents_and_the_questions_gold(self, program: Ran, tmp_path: Path) -> None:
        (row,) = rows(program[0], tmp_path / "s", "synthesis")
        assert (row.documents, row.answers) == (None, QUESTION.answers)
        assert row.query.startswith("Given: the buyer is Meta")


class TestReplies:
    def test_are_read_back_by_the_agents_parsers(self, opera: Ran, program: Ran, tmp_path: Path) -> None:
        (goals,) = replies(opera[0], tmp_path / "g", "goals")
        assert [goal.text for goal in read_goals(goals).goals] == [one["goal"] for one in GOALS]
        judgements = [parse_judged(one, 2) for one in replies(opera[0], tmp_path / "a", "analysis")]
        assert [(one.text, one.known, one.citations) for one in judgements] == [
            ("Meta", True, (0,)),
            ("unknown", False, ()),
            ("Menlo Park", True, (0,)),
        ]
        (rewrite,) = replies(opera[0], tmp_path / "r", "rewrite")
        assert parse_rewrite(rewrite) == ("Meta seat city", ("seat",), "name it")
        (source,) = replies(program[0], tmp_path / "p", "plan")
        assert parse_program(source) == PROGRAM.strip()
        (listed,) = replies(program[0], tmp_path / "d", "decompose")
        assert parse_sub_queries(listed)[0] == FIRST
        said = [parse_answer(one, 1) for one in replies(program[0], tmp_path / "e", "answer")]
        assert [(one.text, one.citations) for one in said] == [("Meta", (0,)), ("Menlo Park", (0,))]

    def test_come_from_right_questions_only(self, write: Callable[[Trace, str], Path], tmp_path: Path) -> None:
        chat = ScriptedChat({"decompose": [f'["{FIRST}"]'], "plan": ["final_answer = 'Paris'"]})
        run = write(answered(chat, {}), "pyrag")
        assert [row.agent for row in rows(run, tmp_path / "plan", "plan")] == ["plan"]
        with pytest.raises(DataError, match="1 without a reply worth learning"):
            replies(run, tmp_path / "sft", "plan")


def run_of_program(write: Callable[[Trace, str], Path], source: str) -> Path:
    chat = ScriptedChat(
        {
            "decompose": [json.dumps([FIRST])],
            "plan": [f"```python\n{source}\n```"],
            "answer": "<answer>Menlo Park</answer>",
        }
    )
    return write(answered(chat, {"seat": [PASSAGES["p2"]], FIRST: [PASSAGES["p1"]]}), "pyrag")


def test_a_program_to_learn_searches_for_what_it_asks(write: Callable[[Trace, str], Path], tmp_path: Path) -> None:
    found = f'docs = retrieve("{FIRST}")\nbuyer = answer("{FIRST}", docs)\n'
    run = run_of_program(
        write, f'{found}docs2 = retrieve("seat", topk=5)\nfinal_answer = answer(f"Where is {{buyer}}?", docs2)'
    )
    built = build(Request(tasks=["plan"], runs=[run], out=tmp_path / "a", sft=True))
    assert (built.rows, built.mended) == (1, 1)
    (said,) = replies(run, tmp_path / "b", "joint")
    assert 'docs2 = retrieve(f"Where is {buyer}?")\n' in said
    assert build(Request(tasks=["plan"], runs=[run], out=tmp_path / "c")).mended == 0  # nothing is learnt from it


def test_a_program_that_cannot_be_mended_is_counted(write: Callable[[Trace, str], Path], tmp_path: Path) -> None:
    source = f'docs = retrieve("seat")\nx = answer("{FIRST}", docs)\nfinal_answer = answer(f"Where is {{x}}?", docs)'
    with pytest.raises(DataError, match="1 whose program searches for another query than it asks"):
        replies(run_of_program(write, source), tmp_path / "a", "plan")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data set whose second training question is also measured, in other spelling."""
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    decomposition = [
        {"question": FIRST, "answer": "Meta", "supporting": "p1"},
        {"question": "Where is #1 headquartered?", "answer": "Menlo Park", "supporting": "p2"},
    ]
    train = [
        {"id": "1", "question": QUESTION.question, "answers": ["Menlo Park"], "decomposition": decomposition},
        {"id": "2", "question": "Who wrote Dracula?", "answers": ["Bram Stoker"]},
    ]
    lines(folder / "train_questions.jsonl", train)
    lines(folder / "questions.jsonl", [{"id": "m9", "question": "who wrote  Dracula", "answers": ["S"]}])
    corpus = [{"id": one.id, "title": one.title, "text": one.text} for one in PASSAGES.values()]
    lines(folder / "train_corpus.jsonl", corpus)
    return folder.parent


def lines(path: Path, values: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in values))


def from_set(data: Path, out: Path, task: str, **more: Any) -> list[TrainRow]:
    build(Request(tasks=[task], data=data, sets=["toy"], out=out, **more))
    return read_rows(out)


@pytest.fixture
def given(tmp_path: Path) -> PassageOptions:
    return PassageOptions(cache=tmp_path / "indexes")


class TestSets:
    def test_a_question_that_is_measured_is_refused_or_left_out(self, data: Path, tmp_path: Path) -> None:
        out = tmp_path / "d.parquet"
        with pytest.raises(DataError, match=r"'Who wrote Dracula\?' .* is held out in .*questions.jsonl"):
            from_set(data, out, "decompose")
        assert not out.exists()
        assert [row.id for row in from_set(data, out, "decompose", leave_out=True)] == ["1"]

    def test_the_same_id_of_a_set_is_the_same_question(self, data: Path, tmp_path: Path) -> None:
        other = tmp_path / "other" / "toy"
        other.mkdir(parents=True)
        lines(other / "questions.jsonl", [{"id": "1", "question": "Something else?", "answers": ["x"]}])
        with pytest.raises(DataError, match="'Where is the company"):
            from_set(data, tmp_path / "d.parquet", "decompose", held_out=[other])

    def test_the_sub_questions_of_measured_sets_are_not_learnt(self, data: Path, tmp_path: Path) -> None:
        other = data / "measured"
        other.mkdir()
        steps = [{"question": "Who wrote it?", "answer": "Stoker"}, {"question": "Where was #1 born?", "answer": "x"}]
        lines(other / "questions.jsonl", [{"id": "7", "question": "Q?", "answers": ["x"], "decomposition": steps}])
        asked = [{"id": one, "question": one, "answers": ["x"]} for one in ("Where was Stoker born?", "Who is free?")]
        lines(data / "toy" / "train_questions.jsonl", asked)
        assert [row.id for row in from_set(data, tmp_path / "d.parquet", "decompose", leave_out=True)] == [
            "Who is free?"
        ]

    def test_hops_ask_what_the_set_says_with_answers_filled_in(
        self, data: Path, tmp_path: Path, given: PassageOptions
    ) -> None:
        found = from_set(data, tmp_path / "a.parquet", "analysis", leave_out=True, passages=given, depths=(1,))
        assert [(row.query, row.answers, row.sufficient) for row in found] == [
            (FIRST, ("Meta",), True),
            (SECOND, ("Menlo Park",), True),
        ]

    @pytest.mark.parametrize(("gold", "found"), [("p1", True), ("x", False), ("", None)])
    def test_one_gold_passage_tells_whether_documents_suffice(
        self, gold: str, found: bool | None, data: Path, tmp_path: Path, given: PassageOptions
    ) -> None:
        item = {"id": "3", "question": FIRST, "answers": ["Meta"], "supporting": [gold] if gold else ["p1", "p2"]}
        lines(data / "toy" / "train_questions.jsonl", [item])
        (row,) = from_set(data, tmp_path / "a.parquet", "answer", passages=given, depths=(1,))
        assert row.sufficient is found

    def test_documents_are_as_many_as_drawn(self, data: Path, tmp_path: Path, given: PassageOptions) -> None:
        more = {"leave_out": True, "passages": given}
        (row,) = from_set(data, tmp_path / "a.parquet", "answer", depths=(2,), **more)
        assert row.documents is not None
        assert len(row.documents) == 2
        assert row.documents[0].text in row.messages[1].content

    def test_answer_rows_join_sets_and_syntheses_of_runs(
        self, data: Path, program: Ran, tmp_path: Path, given: PassageOptions
    ) -> None:
        out = tmp_path / "answer.parquet"
        tasks, runs = ["answer", "synthesis"], [program[0]]
        build(Request(tasks=tasks, data=data, sets=["toy"], runs=runs, leave_out=True, passages=given, out=out))
        assert [(row.query, row.documents is None) for row in read_rows(out)] == [
            ("", False),  # the question of the set on its passages; the run's own steps with documents are left out
            (read_rows(out)[1].query, True),
        ]
        assert read_rows(out)[1].query.startswith("Given: the buyer is Meta")

    def test_shares_do_not_overlap_and_are_the_same_again(self, data: Path, tmp_path: Path) -> None:
        questions = [{"id": str(n), "question": f"Who wrote book {n % 60}?", "answers": ["x"]} for n in range(100)]
        lines(data / "toy" / "train_questions.jsonl", questions)
        train, evaluation = tmp_path / "t.parquet", tmp_path / "e.parquet"
        more = {"eval_out": evaluation, "eval_share": 0.3}
        first = from_set(data, train, "decompose", **more)
        held = read_rows(evaluation)
        assert not {row.question for row in first} & {row.question for row in held}
        assert len(first) + len(held) == 60  # equal prompts once
        assert 5 <= len(held) <= 30
        assert {row.split for row in first} == {"train"}
        assert {row.split for row in held} == {"eval"}
        assert from_set(data, train, "decompose", **more) == first
        with pytest.raises(DataError, match="held out"):
            from_set(data, tmp_path / "again.parquet", "decompose", held_out=[evaluation])

    def test_hops_with_open_references_or_musiques_shorthand_are_left_out(self) -> None:
        steps = [{"question": "Berlin >> country", "answer": "Germany", "supporting": "a"},
                 {"question": "Who leads #1?", "answer": "X", "supporting": "b"},
                 {"question": "And #7?", "answer": "Y", "supporting": "c"}]  # fmt: skip
        from pyrag.evaluation.datasets.layout import question_of

        question = question_of("here", {"id": "1", "question": "?", "answers": ["Y"], "decomposition": steps})
        assert [hop.query for hop in hops_of(question)] == ["Who leads Germany?"]


class TestGoingOn:
    """The second question's Decompose agent has no reply in the first session; the first's has none in the second."""

    @pytest.fixture
    def stopped(self, data: Path, tmp_path: Path) -> Callable[..., list[TrainRow]]:
        lines(data / "toy" / "questions.jsonl", [{"id": "m", "question": "Other?", "answers": ["S"]}])

        def plans(*replies: str, **more: Any) -> list[TrainRow]:
            (tmp_path / "replies.json").write_text(json.dumps(replies))
            settings = Settings(llm=f"scripted:{tmp_path / 'replies.json'}", concurrency=1, topk=more.pop("topk", 5))
            return from_set(data, tmp_path / "p.parquet", "plan", settings=settings, **more)

        with pytest.raises(PyRAGError):
            plans(json.dumps([FIRST]))
        assert not (tmp_path / "p.parquet").exists()
        return plans

    def test_asks_only_what_was_not_asked(self, stopped: Callable[..., list[TrainRow]], tmp_path: Path) -> None:
        with (tmp_path / "p.parquet.part" / "results.jsonl").open("ab") as file:
            file.write(b'{"set": "toy", "id": "2", "ro')  # the process was killed
        (tmp_path / ".p.parquet.1234").write_bytes(b"PAR1")
        others = [tmp_path / name for name in (".p.parquet.bak", ".pp.parquet.1234", "p.parquet.1234")]
        for other in others:
            other.touch()
        found = stopped('["Who wrote it?"]')
        assert [(row.id, row.sub_queries) for row in found] == [("1", (FIRST,)), ("2", ("Who wrote it?",))]
        assert all(row.messages for row in found)
        assert not (tmp_path / "p.parquet.part").exists()
        assert not list(tmp_path.glob(".p.parquet.[0-9]*"))
        assert all(other.exists() for other in others)

    def test_refuses_other_options(self, stopped: Callable[..., list[TrainRow]], tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"p\.parquet\.part holds a run with topk 5, not 7"):
            stopped("[]", topk=7)
        with pytest.raises(UsageError, match="limit none, not 1"):
            stopped("[]", limit=1)

    def test_names_a_damaged_line(self, stopped: Callable[..., list[TrainRow]], tmp_path: Path) -> None:
        part = tmp_path / "p.parquet.part"
        (part / "results.jsonl").write_bytes(b'{"set": 1}\n')
        with pytest.raises(DataError, match=r"results.jsonl line 1 is damaged .*: remove .*p\.parquet\.part"):
            stopped("[]")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tasks": ["answr"]}, "did you mean 'answer'"),
        ({"tasks": ["plan", "answer"]}, "one training set is for one agent"),
        ({"tasks": ["plan"]}, "--data FOLDER with --sets, --from-run"),
        ({"tasks": ["synthesis"], "data": Path(), "sets": ["x"]}, "rows for synthesis come from runs or"),
        ({"tasks": ["plan"], "data": Path(), "sets": ["x"], "sft": True}, "replies to learn for plan come from runs"),
        ({"tasks": ["plan"], "runs": [Path()], "eval_share": 0.1}, "belong together"),
        ({"tasks": ["plan"], "runs": [Path()], "out": Path("/")}, "/ is a folder"),
        (
            {"tasks": ["plan"], "runs": [Path()], "eval_out": Path("x/../t.parquet"), "eval_share": 0.1},
            "name two files",
        ),
    ],
)
def test_requests_without_sense(fields: Mapping[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        build(Request(**{"out": Path("t.parquet"), **fields}))


def test_the_command_says_what_it_wrote(data: Path, tmp_path: Path) -> None:
    from pyrag.cli.app import app

    out = tmp_path / "d.parquet"
    words = ["train", "data", "decompose", "--data", str(data), "--sets", "toy", "-o", str(out), "--leave-out"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "1 row in" in done.output
    assert "left out: 1 held out" in done.output
    said = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    assert said["rows"] == 1
    assert said["dropped"] == {"held out": 1}
