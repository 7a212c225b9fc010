"""Gold passages over retrievers with other ids: matched by title and text, or no recall at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pyrag.errors import RetryableServiceError
from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.gold_passages import GoldPassages, KnownBy, recognise
from pyrag.evaluation.retrieval_recall import hops_of, recall_at
from pyrag.evaluation.runs.folder import read_run
from pyrag.retrieval.index import update_index
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.model import Answer, Passage, Step, Trace
from tests.evaluation.conftest import ChatServer, bench, write_set

TEXTS = {n: f"Stone {n} has colour {n}." for n in range(1, 31)}
GOLD = {f"p{n}": Passage(f"p{n}", f"Stone {n}", text) for n, text in TEXTS.items()}
QUESTIONS = [
    Question(f"q{n}", f"What is the colour of stone {n}?", (f"colour {n}",), supporting=(f"p{n}",)) for n in TEXTS
]


def retriever(prefix: str, ending: str = "") -> InMemoryRetriever:
    return InMemoryRetriever([Passage(f"{prefix}{n}", f"Stone {n}", text + ending) for n, text in TEXTS.items()])


@pytest.mark.parametrize(
    ("prefix", "ending", "known_by"),
    [("p", "", KnownBy.ID), ("wiki-", "", KnownBy.TEXT), ("wiki-", " It lies in a field.", KnownBy.NOTHING)],
)
async def test_a_retriever_knows_gold_passages_by_id_or_text(prefix: str, ending: str, known_by: KnownBy) -> None:
    assert (await recognise(QUESTIONS, GOLD, retriever(prefix, ending))).known_by is known_by


async def test_equal_ids_of_other_texts_are_foreign() -> None:
    """Numbers are ids in many corpora."""
    shifted = InMemoryRetriever([Passage(f"p{n}", "Rivers", f"River {n} has colour {n}.") for n in TEXTS])
    assert (await recognise(QUESTIONS, GOLD, shifted)).known_by is KnownBy.NOTHING


async def test_ids_count_where_no_text_is_known() -> None:
    assert (await recognise(QUESTIONS, {}, retriever("p"))).known_by is KnownBy.ID
    assert (await recognise(QUESTIONS, {}, retriever("wiki-"))).known_by is KnownBy.NOTHING


async def test_a_retriever_that_is_down_is_reported_at_once() -> None:
    class Down:
        name = "down"

        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            raise RetryableServiceError("the retriever is down")

        async def aclose(self) -> None: ...

    with pytest.raises(RetryableServiceError, match="the retriever is down"):
        await recognise(QUESTIONS, GOLD, Down())


def trace_of(*passages: Passage) -> Trace:
    step = Step(0, "retrieve", "stone", topk=5, passages=tuple(passage.id for passage in passages))
    return Trace("?", Answer("grey"), steps=(step,), passages={passage.id: passage for passage in passages})


def test_recall_by_text_ignores_ids() -> None:
    gold = GoldPassages(GOLD, KnownBy.TEXT)
    hit = trace_of(Passage("7", "stone 3", "Stone 3  has colour 3."))
    miss = trace_of(Passage("p3", "Stone 4", "Stone 4 has colour 4."))  # by chance with the gold passage's id
    for trace, recall in ((hit, 1.0), (miss, 0.0)):
        assert recall_at(hops_of(gold.as_retrieved(QUESTIONS[2], trace), trace)) == recall


def test_unknown_gold_passages_give_no_recall() -> None:
    trace = trace_of(Passage("p3", "Stone 4", "Stone 4 has colour 4."))
    question = GoldPassages(GOLD, KnownBy.NOTHING).as_retrieved(QUESTIONS[2], trace)
    assert recall_at(hops_of(question, trace)) is None
    assert question.hops == 1


def foreign_index(folder: Path, ending: str) -> Path:
    folder.mkdir()
    rows = [{"id": f"w{n}", "title": f"Stone {n}", "text": text + ending} for n, text in TEXTS.items()]
    (folder / "wiki.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    update_index([folder / "wiki.jsonl"], folder / "ix")
    return folder / "ix"


def test_bench_over_a_foreign_index_leaves_recall_out(tmp_path: Path, chat: ChatServer) -> None:
    data = write_set(tmp_path / "data", count=6)
    (data / "stones" / "corpus.jsonl").unlink()
    index = foreign_index(tmp_path / "wiki", " It lies in a field.")
    options = ("--data", data, "--sets", "stones", "--method", "vanilla", "--llm", f"openai:m@{chat.url}")
    done = bench(*options, "--index", index, "--out", tmp_path / "run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "does not know the gold passages of stones: recall is left out" in done.stderr
    stats = json.loads(done.stdout)["sets"][0]["all"]
    assert stats["recall"] == {}
    assert set(stats["failures"]) <= {"misreading", "final_refusal"}  # told from gold answers in passages
    assert all(not row.support for row in read_run(tmp_path / "run").rows)


def test_bench_says_that_a_sets_own_corpus_comes_first(tmp_path: Path, chat: ChatServer) -> None:
    data = write_set(tmp_path / "data", count=3)
    index = foreign_index(tmp_path / "wiki", "")
    options = ("--data", data, "--sets", "stones", "--method", "vanilla", "--llm", f"openai:m@{chat.url}")
    done = bench(*options, "--index", index, "--out", tmp_path / "run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"stones is asked over its own corpus, {data / 'stones' / 'corpus.jsonl'}: --index {index}" in done.stderr
    assert json.loads(done.stdout)["sets"][0]["all"]["recall"]["all"] == 1.0


@pytest.mark.parametrize("fault", ["--llm", "--prompts", "--out"])
def test_no_index_is_built_for_a_run_that_cannot_start(fault: str, tmp_path: Path) -> None:
    data = write_set(tmp_path / "data", count=3)
    (tmp_path / "file").write_text("mine")
    wrong = {"--llm": "nothing:m", "--prompts": tmp_path / "absent", "--out": tmp_path / "file"}[fault]
    options = {"--llm": "openai:m@http://127.0.0.1:9/v1", "--out": tmp_path / "run", fault: wrong}
    done = bench("--data", data, "--sets", "stones", *(x for pair in options.items() for x in pair), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert not list(tmp_path.rglob("indexes"))


def test_a_set_without_passages_stops_before_any_index_is_built(tmp_path: Path) -> None:
    data = write_set(tmp_path / "data", count=3)
    shutil.copytree(data / "stones", data / "bare")
    (data / "bare" / "corpus.jsonl").unlink()
    done = bench("--data", data, "--sets", "stones,bare", "--llm", "embedded", "--out", tmp_path / "run", cwd=tmp_path)
    assert done.returncode == 2
    assert "the set bare has no corpus" in done.stderr
    assert not list(tmp_path.rglob("indexes"))


def test_the_repaired_corpus_stands_beside_no_papers_figures(tmp_path: Path, chat: ChatServer) -> None:
    data = write_set(tmp_path / "data", count=3, name="hotpotqa")
    (data / "hotpotqa" / "corpus.jsonl").rename(tmp_path / "wiki-fixed.jsonl")
    update_index([tmp_path / "wiki-fixed.jsonl"], tmp_path / "ix")
    shutil.copy(tmp_path / "wiki-fixed.jsonl", tmp_path / "wiki.jsonl")
    options = ("--data", data, "--sets", "hotpotqa", "--method", "vanilla", "--llm", f"openai:m@{chat.url}")
    assert bench(*options, "--index", "ix", "--out", "fixed", cwd=tmp_path).returncode == 0
    assert bench(*options, "--corpus", "wiki.jsonl", "--out", "other", cwd=tmp_path).returncode == 0
    assert bench("report", "fixed", "other", cwd=tmp_path).returncode == 0
    text = (tmp_path / "fixed" / "report.md").read_text()
    table = text.partition("Beside the papers")[2].partition("\n#")[0]
    assert "over wiki-fixed, which no paper searched, are left out" in table
    assert ("other:vanilla" in table, "fixed:vanilla" in table) == (True, False)
    (line,) = (line for line in table.splitlines() if "top-10, Qwen3-14B" in line)
    cells = [cell.strip() for cell in line.split("|")]
    assert (cells[5], cells[8], cells[10]) == ("36.2", "47.6", "44.5")  # EM, F1, accuracy of the paper
    assert cells[6].startswith("+63.8")
