"""Released formats become the common layout: one tiny file a format, in sentences of our own."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from pyrag.errors import DataError, UsageError
from pyrag.evaluation.datasets.importers.check import check_folder
from pyrag.evaluation.datasets.importers.convert import PAPER_COUNTS, Imported, import_mixture, import_set
from pyrag.evaluation.datasets.importers.formats import OFFICIAL, canonical_name
from pyrag.evaluation.datasets.layout import Question, read_questions

HOTPOT = {
    "_id": "5a01",
    "question": "In which town was the maker of the film Alpha born?",
    "answer": "Skagen",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Alpha &amp; Co", 1], ["Ada Berg", 0], ["Ada Berg", 9]],
    "context": [
        ["Alpha &amp; Co", ["Alpha is a film.", " Ada Berg  made it."]],
        ["Ada Berg", ["Ada Berg was born in Skagen."]],
        ["Beta", ["Beta is another film."]],
    ],
}
TWOWIKI = {
    **{key: HOTPOT[key] for key in ("_id", "question", "answer", "supporting_facts", "context")},
    "type": "compositional",
    "evidences": [["Alpha", "director", "Ada Berg"], ["Ada Berg", "place of birth", "Skagen"]],
}
HUB_HOTPOT = {
    "id": "5a01",
    **{key: HOTPOT[key] for key in ("question", "answer", "type", "level")},
    "supporting_facts": {"title": ["Ada Berg"], "sent_id": [0]},
    "context": {"title": ["Ada Berg", "Beta"], "sentences": [["Ada Berg was born in Skagen."], ["Beta is a film."]]},
}
MUSIQUE = {
    "id": "2hop__1_2",
    "question": "Where was the maker of Alpha born?",
    "answer": "Skagen",
    "answer_aliases": ["Skagen, Denmark", "Skagen"],
    "answerable": True,
    "paragraphs": [
        {"idx": 0, "title": "Beta", "paragraph_text": "Beta is a film.", "is_supporting": False},
        {"idx": 1, "title": "Ada", "paragraph_text": "Ada Berg was born in Skagen.", "is_supporting": True},
        {"idx": 2, "title": "Alpha", "paragraph_text": "Ada Berg made Alpha.", "is_supporting": True},
    ],
    "question_decomposition": [
        {"id": 1, "question": "Alpha >> director", "answer": "Ada Berg", "paragraph_support_idx": 2},
        {"id": 2, "question": "#1 >> place of birth", "answer": "Skagen", "paragraph_support_idx": 1},
    ],
}
POPQA = {
    "id": "4222", "subj": "Ada Berg", "prop": "occupation", "obj": "film maker", "s_pop": "142", "o_pop": "99",
    "question": "What is Ada Berg's occupation?", "possible_answers": '["film maker", "director", "film maker"]',
}  # fmt: skip
HOVER = {
    "uid": "c-1", "claim": "The maker of Alpha was born in Skagen.", "label": "NOT_SUPPORTED", "num_hops": 2,
    "supporting_facts": [["Alpha", 0], ["Ada Berg", 1], ["Alpha", 2]], "hpqa_id": "5a01",
}  # fmt: skip
FLASHRAG = {"id": "test_0", "question": "Who made Alpha?", "golden_answers": ["Ada Berg", "Berg"], "metadata": {}}
SEARCH_R1 = {
    "data_source": "nq",
    "prompt": [{"role": "user", "content": "Answer the given question. <search> … Question: who made\nalpha?\n"}],
    "ability": "fact-reasoning",
    "reward_model": {"style": "rule", "ground_truth": {"target": ["Ada Berg"]}},
    "extra_info": {"split": "test", "index": 7},
}
AMBIGQA = {
    "id": "-1",
    "question": "When did Alpha come out?",
    "annotations": [
        {"type": "singleAnswer", "answer": ["1985"]},
        {
            "type": "multipleQAs",
            "qaPairs": [{"question": "…?", "answer": ["1985"]}, {"question": "…", "answer": ["1986"]}],
        },
    ],
}
MULTIHOP_RAG = {
    "query": "Did both papers praise Alpha?", "answer": "Yes", "question_type": "comparison_query",
    "evidence_list": [
        {"title": "On Alpha", "source": "The Post", "fact": "Alpha is good.", "url": "x", "published_at": "2023-10-01"},
        {"title": "Alpha again", "source": "The Mail", "fact": "Alpha is fine.", "author": None},
    ],
}  # fmt: skip


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def array(*records: dict[str, Any]) -> bytes:
    return json.dumps(records, indent=1, ensure_ascii=False).encode()


def table(delimiter: str, *records: dict[str, str]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def imported(tmp_path: Path, name: str, file: str, data: bytes) -> tuple[list[Question], list[dict[str, str]]]:
    """What an import makes of a file; its own check must have nothing to say about it."""
    source, out = tmp_path / file, tmp_path / name
    source.write_bytes(gzip.compress(data) if file.endswith(".gz") else data)
    done = import_set(name, source, out)
    questions = list(read_questions(out / "questions.jsonl"))
    corpus = out / "corpus.jsonl"
    passages = [json.loads(line) for line in corpus.read_text().splitlines()] if corpus.exists() else []
    assert done == Imported(len(questions), len(passages))
    assert [checked.problems for checked in check_folder(out)] == [()]
    assert {path.name for path in out.iterdir()} <= {"questions.jsonl", "corpus.jsonl"}
    return questions, passages


@pytest.mark.parametrize("file", ["dev.json", "dev.json.gz"])
def test_hotpotqa(tmp_path: Path, file: str) -> None:
    other = {**HOTPOT, "_id": "5a02", "answer": "yes"}
    questions, passages = imported(tmp_path, "hotpotqa", file, array(HOTPOT, other))
    assert [one.id for one in questions] == ["5a01", "5a02"]
    assert (questions[0].answers, questions[0].type, questions[0].hops) == (("Skagen",), "bridge", 2)
    by_title = {one["title"]: one for one in passages}  # each passage once
    assert by_title["Alpha & Co"]["text"] == "Alpha is a film. Ada Berg made it."
    assert questions[0].supporting == (by_title["Alpha & Co"]["id"], by_title["Ada Berg"]["id"])
    raw = json.loads((tmp_path / "hotpotqa" / "questions.jsonl").read_text().splitlines()[0])
    assert raw["supporting_sentences"] == [
        [questions[0].supporting[0], "Ada Berg made it."],
        [questions[0].supporting[1], "Ada Berg was born in Skagen."],
    ]
    assert raw["candidates"] == [one["id"] for one in passages]
    assert raw["level"] == "hard"


def test_full_wiki_hotpotqa_knows_its_gold_by_title(tmp_path: Path) -> None:
    record = {**HOTPOT, "context": [["Beta", ["Beta is another film."]]]}
    questions, passages = imported(tmp_path, "hotpotqa", "fullwiki.json", array(record))
    assert (questions[0].supporting, questions[0].supporting_titles) == ((), ("Alpha & Co", "Ada Berg"))
    assert len(passages) == 1


def test_2wikimultihopqa(tmp_path: Path) -> None:
    questions, passages = imported(tmp_path, "2wikimultihopqa", "dev.json", array(TWOWIKI))
    assert (questions[0].type, len(questions[0].supporting), len(passages)) == ("compositional", 2, 3)
    assert questions[0].supporting[0].startswith("2w-")
    assert (
        json.loads((tmp_path / "2wikimultihopqa" / "questions.jsonl").read_text())["evidences"] == TWOWIKI["evidences"]
    )


def test_musique(tmp_path: Path) -> None:
    twin = {**MUSIQUE, "answerable": False}
    questions, passages = imported(tmp_path, "musique", "dev.jsonl", lines(MUSIQUE, twin))
    first, second = questions
    assert (first.answers, first.type, first.hops) == (("Skagen", "Skagen, Denmark"), "2hop", 2)
    titles = {one["id"]: one["title"] for one in passages}
    assert [titles[one] for one in first.supporting] == ["Alpha", "Ada"]  # in hop order
    assert [(step.question, step.answer, titles[step.supporting]) for step in first.decomposition] == [
        ("Alpha >> director", "Ada Berg", "Alpha"),
        ("#1 >> place of birth", "Skagen", "Ada"),
    ]
    assert (second.id, second.answers, second.answerable) == ("2hop__1_2#unanswerable", (), False)


def test_popqa(tmp_path: Path) -> None:
    questions, passages = imported(tmp_path, "popqa", "popQA.tsv", table("\t", POPQA))
    assert (questions[0].id, questions[0].type, questions[0].hops) == ("4222", "occupation", 1)
    assert questions[0].answers == ("film maker", "director")
    assert passages == []
    raw = json.loads((tmp_path / "popqa" / "questions.jsonl").read_text())
    assert (raw["popularity"], raw["subject"]) == (142, "Ada Berg")


def test_bamboogle(tmp_path: Path) -> None:
    rows = table(
        ",", {"Question": "Who was king, when Alpha\ncame out?", "Answer": "Olaf"}, {"Question": "b?", "Answer": "c"}
    )
    questions, _ = imported(tmp_path, "bamboogle", "bamboogle.csv", b"\xef\xbb\xbf" + rows)
    assert [(one.id, one.question) for one in questions] == [
        ("bamboogle_1", "Who was king, when Alpha came out?"),
        ("bamboogle_2", "b?"),
    ]


def test_hover(tmp_path: Path) -> None:
    hub = {**HOVER, "uid": "c-2", "label": 1, "supporting_facts": {"title": ["Alpha"], "sent_id": [0]}}
    questions, _ = imported(tmp_path, "hover", "hover_dev_release_v1.1.json", array(HOVER, hub))
    assert [one.answers for one in questions] == [("NOT_SUPPORTED",), ("SUPPORTED",)]
    assert (questions[0].question, questions[0].supporting_titles) == (HOVER["claim"], ("Alpha", "Ada Berg"))


def test_nq_ambigqa_and_multihop_rag(tmp_path: Path) -> None:
    nq, _ = imported(
        tmp_path, "nq", "NQ-open.dev.jsonl", lines({"question": "who made alpha", "answer": ["Ada", "Berg"]})
    )
    assert (nq[0].id, nq[0].answers) == ("nq_1", ("Ada", "Berg"))
    ambigqa, _ = imported(tmp_path, "ambigqa", "dev_light.json", array(AMBIGQA))
    assert ambigqa[0].answers == ("1985", "1986")
    multihop, _ = imported(tmp_path, "multihoprag", "MultiHopRAG.json", array(MULTIHOP_RAG))
    assert (multihop[0].hops, multihop[0].supporting_titles) == (2, ("On Alpha", "Alpha again"))


@pytest.mark.parametrize("name", ["nq", "triviaqa", "bamboogle"])
def test_flashrag_goes_by_its_fields(tmp_path: Path, name: str) -> None:
    questions, passages = imported(tmp_path, name, "test.jsonl", lines(FLASHRAG))
    assert (questions[0].id, questions[0].answers, passages) == ("test_0", ("Ada Berg", "Berg"), [])


def test_flashrag_keeps_the_paragraphs_of_its_metadata(tmp_path: Path) -> None:
    metadata = {key: HUB_HOTPOT[key] for key in ("type", "level", "supporting_facts", "context")}
    questions, passages = imported(tmp_path, "hotpotqa", "dev.jsonl", lines({**FLASHRAG, "metadata": metadata}))
    assert (len(questions[0].supporting), len(passages), questions[0].type) == (1, 2, "bridge")


def test_flashrag_has_the_column_of_the_hubs_2wikimultihopqa(tmp_path: Path) -> None:
    context = {"title": ["Ada Berg"], "content": [["Ada Berg was born in Skagen."]]}
    metadata = {"supporting_facts": HUB_HOTPOT["supporting_facts"], "context": context}
    questions, passages = imported(tmp_path, "2wikimultihopqa", "dev.jsonl", lines({**FLASHRAG, "metadata": metadata}))
    assert ([one["id"] for one in passages], passages[0]["title"]) == ([*questions[0].supporting], "Ada Berg")


def test_flashrag_has_the_gold_paragraphs_of_musique(tmp_path: Path) -> None:
    paragraphs = {one["idx"]: one for one in MUSIQUE["paragraphs"]}
    steps = [
        {**step, "support_paragraph": paragraphs[step["paragraph_support_idx"]]}
        for step in MUSIQUE["question_decomposition"]
    ]
    record = {**FLASHRAG, "metadata": {"answerable": True, "question_decomposition": steps}}
    questions, passages = imported(tmp_path, "musique", "dev.jsonl", lines(record))
    assert [one["title"] for one in passages] == ["Alpha", "Ada"]
    assert questions[0].supporting == tuple(one["id"] for one in passages)
    assert (questions[0].hops, questions[0].decomposition[0].supporting) == (2, passages[0]["id"])


def test_search_r1(tmp_path: Path) -> None:
    own = {**SEARCH_R1, "id": "test_3", "question": "Who made Beta?", "data_source": "hotpotqa"}
    questions, _ = imported(tmp_path, "mixed", "test.jsonl", lines(SEARCH_R1, own))
    assert [(one.id, one.question) for one in questions] == [
        ("nq_7", "who made alpha?"),
        ("hotpotqa_test_3", "Who made Beta?"),
    ]


@pytest.mark.parametrize("record", [SEARCH_R1, HUB_HOTPOT, FLASHRAG], ids=["search-r1", "hotpotqa", "flashrag"])
def test_parquet_reads_like_json_lines(tmp_path: Path, record: dict[str, Any]) -> None:
    pa = pytest.importorskip("pyarrow")
    name = "nq" if record is SEARCH_R1 else "hotpotqa"
    record = {key: value for key, value in record.items() if value != {}}
    parquet = pytest.importorskip("pyarrow.parquet")
    written = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist([record]), written)
    from_parquet = imported(tmp_path, name, "a.parquet", written.getvalue())
    (tmp_path / "other").mkdir()
    assert from_parquet == imported(tmp_path / "other", name, "b.jsonl", lines(record))


def test_parquet_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"a\.parquet is a Parquet file, .*run pip install '\.\[data\]' in a checkout"):
        import_set("nq", tmp_path / "a.parquet", tmp_path / "out")


def test_the_common_layout_passes_through(tmp_path: Path) -> None:
    record = {"id": "q1", "question": "Who?", "answers": ["Ada"], "note": "kept"}
    imported(tmp_path, "own", "own.jsonl", lines(record))
    assert json.loads((tmp_path / "own" / "questions.jsonl").read_text()) == record


OWN = {"question": "Who built Gannet?"}
TRIVIA = {
    "Question": "Who built Gannet?",
    "QuestionId": "t1",
    "Answer": {"Value": "Ola", "Aliases": ["Ola", "O. Lien"]},
}
ARTICLE = {
    "title": "Gannet",
    "paragraphs": [
        {
            "context": "Ola built Gannet.",
            "qas": [
                {"id": "t1", "question": "Who built Gannet?", "answers": [{"text": "Ola"}, {"text": "O. Lien"}]},
                {"id": "t2", "question": "Who sank Gannet?", "answers": [], "is_impossible": True},
            ],
        }
    ],
}
BOTH = ("O. Lien", "Ola")


@pytest.mark.parametrize(
    ("name", "file", "data"),
    [
        ("triviaqa", "t.json", json.dumps({"Data": [TRIVIA], "Version": 1.0}).encode()),
        ("triviaqa", "t.json", json.dumps({"Data": [TRIVIA], "Version": 1.0}, indent=1).encode()),
        ("triviaqa", "t.jsonl", lines(OWN | {"question_id": "t1", "answer": {"value": "Ola", "aliases": ["O. Lien"]}})),
        ("squad", "t.jsonl", lines(OWN | {"id": "t1", "answers": {"text": ["Ola", "O. Lien"], "answer_start": [0]}})),
        ("squad", "t.json", json.dumps({"version": "2.0", "data": [ARTICLE]}).encode()),
        ("asqa", "t.json", json.dumps({"dev": {"t1": {
            "ambiguous_question": "Who built Gannet?",
            "qa_pairs": [{"short_answers": ["Ola"]}, {"short_answers": ["O. Lien", "Ola"]}]}}}).encode()),
        ("own", "t.csv", table(",", OWN | {"id": "t1", "answers": "['Ola', 'O. Lien']"})),
        ("own", "t.csv", table(";", OWN | {"id": "t1", "answers": '["Ola", "O. Lien"]'})),
        ("own", "t.csv", table("\t", OWN | {"id": "t1", "answers": '["Ola", "O. Lien"]'})),
        ("own", "t.jsonl", b'{"id": "t1", "question": "Who built Gannet?", "golden_answers": ["Ola", "O. Lien", NaN]}'),
        ("bamboogle", "t.json", array({"Question": "Who built Gannet?", "Answer": ["Ola", "O. Lien"]})),
        ("popqa", "t.jsonl", lines(OWN | {"id": 1, "possible_answers": ["Ola", "O. Lien"]})),
        ("popqa", "t.tsv", table("\t", OWN | {"id": "1", "possible_answers": "['Ola', 'O. Lien']"})),
        ("nq", "t.csv", b"who built gannet?\t['Ola', 'O. Lien']\n"),
        ("hotpotqa", "t.json", json.dumps({"data": [HOTPOT | {"answer": ["Ola", "O. Lien"]}]}).encode()),
    ],
)  # fmt: skip
def test_golds_of_other_release_forms(tmp_path: Path, name: str, file: str, data: bytes) -> None:
    questions, _ = imported(tmp_path, name, file, data)
    assert tuple(sorted(questions[0].answers)) == BOTH
    assert all(question.answerable is bool(question.answers) for question in questions)


def test_titles_match_whatever_their_spaces_and_entities(tmp_path: Path) -> None:
    facts = [["Alpha  & Co", 1], ["Ada Berg ", 0]]
    record = {key: value for key, value in HOTPOT.items() if key != "_id"} | {"supporting_facts": facts}
    (question,), passages = imported(tmp_path, "hotpotqa", "d.json", array(record))
    assert [passage["title"] for passage in passages if passage["id"] in question.supporting] == [
        "Alpha & Co",
        "Ada Berg",
    ]
    assert question.id.startswith("q-")


def test_paragraphs_may_have_no_title(tmp_path: Path) -> None:
    paragraphs = [*MUSIQUE["paragraphs"], {"idx": 3, "title": "", "paragraph_text": "A loose text."}]  # type: ignore[misc]
    _, passages = imported(tmp_path, "musique", "m.jsonl", lines(MUSIQUE | {"paragraphs": paragraphs}))
    assert [passage["text"] for passage in passages if not passage["title"]] == ["A loose text."]


def test_an_archive_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a\.zip is an archive: unpack it"):
        import_set("nq", tmp_path / "a.zip", tmp_path / "out")


def test_every_set_of_the_papers_has_a_format() -> None:
    assert set(OFFICIAL) >= {
        "hotpotqa", "2wikimultihopqa", "musique", "popqa", "bamboogle", "hover", "nq", "ambigqa", "multihoprag",
    }  # fmt: skip


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in names}


@pytest.mark.parametrize(
    ("name", "file", "data", "said"),
    [
        ("hotpotqa", "x.json", array(HOTPOT, without(HOTPOT, "answer")), r"json line \d+ has no text .*'answer': fill"),
        ("hotpotqa", "x.json", array(HOTPOT, HOTPOT), r"line \d+ repeats the id '5a01' of 2: remove one"),
        ("hotpotqa", "x.json", array(HOTPOT)[:-40], r"ends in the middle of the record of line 2: fetch"),
        ("hotpotqa", "x.json", b'[{"_id": "a"\n "question": 1}]', r"line 2 is not JSON \(Expecting ',' .*\): fix"),
        ("hotpotqa", "x.json", b"[1]", r"line 1 is not a JSON object but int"),
        ("hotpotqa", "x.json", b"[]", r"x\.json holds no record: fetch it again"),
        ("hotpotqa", "x.json", b"", r"x\.json holds no record"),
        ("hotpotqa", "x.json", array({**HOTPOT, "context": [["Alpha"]]}), r"an entry in 'context' that is not a list"),
        ("hotpotqa", "x.json", array({**HOTPOT, "context": [["Alpha", "text"]]}), r"paragraph without sentences"),
        ("hotpotqa", "x.json", b'[{"_id": "\xff"}]', r"x\.json is not UTF-8 text: convert"),
        ("musique", "x.jsonl", lines(MUSIQUE) + b"{oops\n", r"x\.jsonl line 2 is not JSON .*: fix or remove the line"),
        ("musique", "x.jsonl", lines(without(MUSIQUE, "paragraphs")), r"line 1 has no list in the field 'paragraphs'"),
        ("musique", "x.jsonl", lines({**MUSIQUE, "paragraphs": ["text"]}), r"field 'paragraphs' that is not an object"),
        ("musique", "x.jsonl", b"\xff\xfe{\x00}\x00", r"line 1 is UTF-16 text: convert"),
        ("popqa", "x.tsv", table("\t", {**POPQA, "possible_answers": "film maker"}), r"line 2 has no JSON list in"),
        ("popqa", "x.tsv", table("\t", POPQA) + b"1\t2\n", r"x\.tsv line 3 has 2 columns instead of 8: quote"),
        ("popqa", "x.tsv", table("\t", POPQA) + b"\xff\t2\n", r"x\.tsv line \d is not UTF-8 text"),
        ("bamboogle", "x.csv", b"Question,Answer\nwho?,\n", r"line 2 has no text in the field 'answer'"),
        ("bamboogle", "x.csv", b'Question,Answer\nwho?,"a"b\n', r"x\.csv line 2 is not a table row"),
        ("hover", "x.json", array({**HOVER, "label": "MAYBE"}), r"the label 'MAYBE': it must be SUPPORTED or NOT"),
        ("hover", "x.json", array({**HOVER, "label": ["SUPPORTED"]}), r"the label \['SUPPORTED'\]"),
        ("nq", "x.jsonl", lines({**FLASHRAG, "golden_answers": ["", " "]}), r"line 1 has no gold answer"),
        ("squad", "x.json", b'{"data": [{"paragraphs": ["text"]}]}', r"record 1 is not a JSON object but str"),
        ("squad", "x.json", b'{"data": [{"paragraphs": [{"qas": ["Who?"]}]}]}', r"record 1 is not a JSON object but"),
        ("squad", "x.json", b'{"data": [{"paragraphs": [{"qas": 7}]}]}', r"record 1 is not a JSON object but int"),
        ("mixed", "x.jsonl", lines({**SEARCH_R1, "prompt": [{"content": "hi"}]}), r"neither a field 'question' nor"),
        ("nq", "x.jsonl.gz", lines(FLASHRAG), r"x\.jsonl\.gz is damaged after line 0 .*: fetch it again"),
    ],
)  # fmt: skip
def test_broken_files(tmp_path: Path, name: str, file: str, data: bytes, said: str) -> None:
    (tmp_path / file).write_bytes(data)
    with pytest.raises(DataError, match=said):
        import_set(name, tmp_path / file, tmp_path / "out")
    assert not (tmp_path / "out").exists()  # neither half a set nor an empty folder


def test_what_cannot_be_told(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(lines({"q": "Who?"}))
    with pytest.raises(UsageError, match=r"no data set 'hotpots' with a format of its own: did you mean 'hotpotqa'"):
        import_set("hotpots", tmp_path / "x.jsonl", tmp_path / "out")
    (tmp_path / "x.xml").write_text("<x/>")
    with pytest.raises(UsageError, match=r"unknown ending: use a \.json"):
        import_set("hotpotqa", tmp_path / "x.xml", tmp_path / "out")
    with pytest.raises(DataError, match="cannot read"):
        import_set("hotpotqa", tmp_path / "none.json", tmp_path / "out")


def test_a_failed_import_leaves_the_last_good_one(tmp_path: Path) -> None:
    imported(tmp_path, "musique", "good.jsonl", lines(MUSIQUE))
    before = {path.name: path.read_bytes() for path in (tmp_path / "musique").iterdir()}
    (tmp_path / "bad.jsonl").write_bytes(lines(MUSIQUE) + b"{\n")
    with pytest.raises(DataError):
        import_set("musique", tmp_path / "bad.jsonl", tmp_path / "musique")
    assert {path.name: path.read_bytes() for path in (tmp_path / "musique").iterdir()} == before


def test_a_failed_import_removes_the_folders_it_made(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "bad.jsonl").write_bytes(b"{\n")
    with pytest.raises(DataError):
        import_set("musique", tmp_path / "bad.jsonl", tmp_path / "kept" / "a" / "b")
    assert list((tmp_path / "kept").iterdir()) == []


def test_an_import_without_passages_leaves_no_earlier_corpus(tmp_path: Path) -> None:
    imported(tmp_path, "musique", "dev.jsonl", lines(MUSIQUE))
    (tmp_path / "popqa.tsv").write_bytes(table("\t", POPQA))
    import_set("popqa", tmp_path / "popqa.tsv", tmp_path / "musique")
    assert {path.name for path in (tmp_path / "musique").iterdir()} == {"questions.jsonl"}


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("2wiki", "2wikimultihopqa"), ("2WikiMultihopQA", "2wikimultihopqa"), ("hotpot", "hotpotqa"),
        ("Hotpot_QA", "hotpotqa"), ("natural-questions", "nq"), ("NQ-open", "nq"), ("MultiHop-RAG", "multihoprag"),
        ("mine", "mine"),
    ],
)  # fmt: skip
def test_sets_have_common_spellings(spelling: str, name: str) -> None:
    assert canonical_name(spelling) == name


@pytest.mark.parametrize(
    "fields",
    [
        {"question": "Who?", "answer": "Ada"},
        {"Question": "Who?", "Answer": "Ada"},
        {"query": "Who?", "answers": ["Ada"]},
        {"question": "Who?", "golden_answers": ["Ada"]},
        {"question": "Who?", "answers": "Ada"},
    ],
)
def test_own_questions_need_no_id(fields: dict[str, Any], tmp_path: Path) -> None:
    """What `pyrag bench` reads, `pyrag data import` reads as well, and names alike."""
    (tmp_path / "own.jsonl").write_bytes(lines(fields))
    (asked,) = read_questions(tmp_path / "own.jsonl")
    import_set("own", tmp_path / "own.jsonl", tmp_path / "out")
    (imported_one,) = read_questions(tmp_path / "out" / "questions.jsonl")
    assert (asked.id, asked.question, asked.answers) == ("q-d991a24e8e04", "Who?", ("Ada",))
    assert imported_one == asked


@pytest.mark.parametrize(
    ("answers", "texts"),
    [
        ({"value": "Paris", "aliases": "City of Light"}, ("Paris", "City of Light")),
        ({"value": "Paris", "aliases": None}, ("Paris",)),
        ({"value": 7, "aliases": 8}, ("7", "8")),
        ({"text": "Paris"}, ("Paris",)),
    ],
)
def test_answers_of_objects_are_whole_texts(tmp_path: Path, answers: object, texts: tuple[str, ...]) -> None:
    (tmp_path / "own.jsonl").write_bytes(lines({"id": "1", "question": "Where?", "answers": answers}))
    (question,) = read_questions(tmp_path / "own.jsonl")
    assert question.answers == texts


def test_ids_and_answers_may_be_numbers(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_bytes(lines({"id": 7, "question": "How many?", "answer": 12}))
    (question,) = read_questions(tmp_path / "own.jsonl")
    assert (question.id, question.answers) == ("7", ("12",))


MERGED = [
    {**SEARCH_R1, "id": f"train_{n}", "question": f"Who made {source} {n}?", "golden_answers": ["Ada Berg"],
     "data_source": source}
    for source in ("nq", "hotpotqa") for n in range(3)
]  # fmt: skip


@pytest.mark.parametrize("file", ["train.parquet", "train.jsonl"])
def test_a_merged_training_file_becomes_two_sets(file: str, tmp_path: Path) -> None:
    """Search-R1's: FlashRAG's fields are there too, and ids repeat from set to set."""
    if file.endswith(".parquet"):
        pa = pytest.importorskip("pyarrow")
        pa.parquet = pytest.importorskip("pyarrow.parquet")
        pa.parquet.write_table(pa.Table.from_pylist(MERGED), tmp_path / file)
    else:
        (tmp_path / file).write_bytes(lines(*MERGED))
    done = import_mixture(tmp_path / file, tmp_path / "data", "train")
    assert {name: one.questions for name, one in done.items()} == {"nq": 3, "hotpotqa": 3}
    assert done["nq"].remark == "PyRAG's table 4 counts 79,168 training questions of nq; these are 3"
    for name in done:
        questions = list(read_questions(tmp_path / "data" / name / "train_questions.jsonl"))
        assert [one.id for one in questions] == ["train_0", "train_1", "train_2"]
        assert all(name in one.question for one in questions)


def test_one_set_of_a_merged_file_leaves_the_other_out(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_bytes(lines(*MERGED))
    done = import_set("nq", tmp_path / "train.jsonl", tmp_path / "nq", "train")
    assert (done.questions, done.others) == (3, {"hotpotqa": 3})
    with pytest.raises(DataError, match="holds no record of musique: its records are of nq, hotpotqa"):
        import_set("musique", tmp_path / "train.jsonl", tmp_path / "musique", "train")


def test_counts_of_the_papers_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dev.jsonl").write_bytes(lines(MUSIQUE))
    said = "PyRAG's table 4 counts 2,417 questions of musique; these are 1"
    assert import_set("musique", tmp_path / "dev.jsonl", tmp_path / "out").remark == said
    monkeypatch.setitem(PAPER_COUNTS, ("musique", ""), 1)
    assert import_set("musique", tmp_path / "dev.jsonl", tmp_path / "out").remark == ""
