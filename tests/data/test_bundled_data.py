"""Checks of the data files that ship inside the package: corpus, demo questions, mini sets.

These run on files alone and need no network. They are about consistency: every
question must be answerable from the passages it names, and every list has the size that
the documentation promises.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from importlib.resources import files

import pytest

DATA = files("pyrag") / "data"
MINI_SETS = ("popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle")
MINI_CLASSES = {
    "popqa": {
        "place of birth", "occupation", "director", "screenwriter", "composer", "author",
        "father", "mother", "capital", "capital of", "country", "genre", "sport",
    },
    "hotpotqa": {"bridge", "comparison"},
    "2wikimultihopqa": {"compositional", "comparison", "inference", "bridge_comparison"},
    "musique": {"2hop", "3hop1", "3hop2", "4hop1"},
    "bamboogle": {"2hop"},
}  # fmt: skip
DEMO_CLASSES = {
    "comparison", "bridge", "bridge_comparison", "intersection", "yes_no", "single", "temporal",
}  # fmt: skip

MIN_PASSAGES = 180
MIN_MINI = 24

# Answers that are computed and therefore stand in no passage word for word.
COMPUTED_TYPES = {"temporal"}  # the overlap of two periods of activity
# The object of these 2Wiki relations is a country that a passage may give as an adjective only
# ("an American film director").
ADJECTIVE_RELATIONS = {"country of citizenship"}
# Computed from the two dates of one passage.
COMPUTED_RELATIONS = {"lifespan"}


def read(name: str) -> list[dict]:
    path = DATA.joinpath(*name.split("/"))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


CORPUS = read("corpus.jsonl")
PASSAGES = {passage["id"]: passage for passage in CORPUS}
QUESTIONS = {"demo": read("demo.jsonl")} | {name: read(f"mini/{name}.jsonl") for name in MINI_SETS}
ITEMS = [(name, item) for name, items in QUESTIONS.items() for item in items]
every_item = pytest.mark.parametrize(("source", "item"), ITEMS, ids=[f"{name}:{item['id']}" for name, item in ITEMS])


def norm(text: str) -> str:
    """Lower case, without accents and punctuation, single spaces."""
    text = unicodedata.normalize("NFKD", text)
    text = "".join(c for c in text if not unicodedata.combining(c)).lower()
    return " ".join(re.findall(r"\w+", text))


def passage_text(*ids: str) -> str:
    return norm(" ".join(f"{PASSAGES[i]['title']} {PASSAGES[i]['text']}" for i in ids))


def occurs(answer: str, text: str) -> bool:
    return f" {norm(answer)} " in f" {text} "


def is_yes_no(item: dict) -> bool:
    return norm(item["answers"][0]) in {"yes", "no"}


# ---- corpus


def test_the_corpus_has_enough_passages_with_unique_ids_and_titles():
    assert len(CORPUS) >= MIN_PASSAGES
    for key in ("id", "title", "text"):
        assert [v for v, n in Counter(p[key] for p in CORPUS).items() if n > 1] == []


@pytest.mark.parametrize("passage", CORPUS, ids=lambda p: p["id"])
def test_every_passage_is_well_formed(passage):
    assert set(passage) == {"id", "title", "text"}
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", passage["id"])
    assert passage["title"].strip() == passage["title"] != ""
    assert " ".join(passage["text"].split()) == passage["text"]
    assert 40 <= len(passage["text"].split()) <= 110
    assert passage["text"].endswith((".", '."', '".'))
    # nothing is dated after the corpus was written
    years = re.findall(r"\b(?:1[0-9]{3}|2[0-9]{3})\b", passage["text"])
    assert all(int(year) <= 2026 for year in years)


@pytest.mark.parametrize("passage", CORPUS, ids=lambda p: p["id"])
def test_the_first_sentence_names_the_subject(passage):
    name = norm(re.sub(r"\s*\(.*?\)", "", passage["title"]).split(",")[0])
    surname_or_head = name.split()[-1]
    assert surname_or_head in norm(passage["text"])[:160]


def test_corpus_links_passages_to_each_other():
    """Multi-hop questions need passages that mention the subject of other passages."""
    names = {i: norm(re.sub(r"\s*\(.*?\)", "", p["title"])) for i, p in PASSAGES.items()}
    texts = {i: f" {norm(p['text'])} " for i, p in PASSAGES.items()}
    linked = set()
    for source, text in texts.items():
        for target, name in names.items():
            if source != target and f" {name} " in text:
                linked |= {source, target}
    assert len(linked) >= 0.9 * len(PASSAGES)


def test_the_corpus_has_the_paper_example_and_lookalikes():
    assert "7 December 1973" in PASSAGES["jed-hoyer"]["text"]
    assert "13 September 1949" in PASSAGES["john-william-henry-ii"]["text"]
    assert sum("Henry" in p["title"] for p in CORPUS) >= 8
    for surname in ("Lee", "Scott", "Anderson", "McQueen", "Huxley", "Mozart", "Schumann"):
        assert sum(surname in p["title"].split() for p in CORPUS) >= 2, surname


# ---- questions


def test_the_demo_starts_with_the_question_of_the_paper():
    first = QUESTIONS["demo"][0]
    assert first["question"] == "Who is older, Jed Hoyer or John William Henry II?"
    assert first["answers"][0] == "John William Henry II"


def test_the_demo_covers_every_kind_of_question():
    demo = QUESTIONS["demo"]
    assert 10 <= len(demo) <= 12
    assert {item["type"] for item in demo} == DEMO_CLASSES
    assert {item["hops"] for item in demo} == {1, 2, 3, 4}


@pytest.mark.parametrize("name", MINI_SETS)
def test_mini_sets_are_large_and_use_source_classes(name):
    items = QUESTIONS[name]
    assert len(items) >= MIN_MINI
    assert {item["type"] for item in items} == MINI_CLASSES[name]


def test_no_id_and_no_question_occurs_twice():
    assert [i for i, n in Counter(x["id"] for _, x in ITEMS).items() if n > 1] == []
    assert [q for q, n in Counter(norm(x["question"]) for _, x in ITEMS).items() if n > 1] == []


@every_item
def test_question_is_well_formed(source, item):
    required = {"id", "question", "answers", "type", "hops", "supporting"}
    extra = {
        "popqa": {"subject"},
        "2wikimultihopqa": {"evidences"},
        "musique": {"decomposition"},
        "bamboogle": {"decomposition"},
    }.get(source, set())
    assert set(item) == required | extra
    assert item["question"].strip() == item["question"] != ""
    assert item["answers"]
    assert all(isinstance(a, str) and a.strip() for a in item["answers"])
    assert len(set(item["answers"])) == len(item["answers"])


@every_item
def test_supporting_passages_exist_and_match_the_number_of_hops(source, item):
    assert [i for i in item["supporting"] if i not in PASSAGES] == []
    assert len(set(item["supporting"])) == len(item["supporting"])
    assert len(item["supporting"]) == item["hops"]
    assert 1 <= item["hops"] <= 4


@every_item
def test_answer_occurs_in_the_supporting_passages(source, item):
    if is_yes_no(item):
        return
    text = passage_text(*item["supporting"])
    if item["type"] in COMPUTED_TYPES:
        numbers = re.findall(r"\d+", item["answers"][0])
        assert numbers
        assert all(occurs(number, text) for number in numbers)
        return
    assert any(occurs(answer, text) for answer in item["answers"])


@every_item
def test_answer_occurs_in_the_last_passage_of_a_chain(source, item):
    """A chain ends where its answer stands; comparisons and intersections have no last step."""
    if is_yes_no(item) or item["type"] in {
        "comparison", "bridge_comparison", "intersection", "yes_no", "temporal",
    }:  # fmt: skip
        return
    assert any(occurs(answer, passage_text(item["supporting"][-1])) for answer in item["answers"])


@every_item
def test_questions_do_not_contain_their_answers(source, item):
    if is_yes_no(item) or "comparison" in item["type"]:
        return
    assert not occurs(item["answers"][0], norm(item["question"]))


def test_yes_no_answers_are_mixed():
    answers = Counter(norm(x["answers"][0]) for _, x in ITEMS if is_yes_no(x))
    assert answers["yes"] >= 4
    assert answers["no"] >= 4


@pytest.mark.parametrize("item", QUESTIONS["popqa"], ids=lambda x: x["id"])
def test_popqa_questions_have_one_hop_and_a_subject(item):
    assert item["hops"] == 1
    assert any(occurs(item["subject"], passage_text(i)) for i in item["supporting"])


@pytest.mark.parametrize("item", QUESTIONS["hotpotqa"], ids=lambda x: x["id"])
def test_hotpotqa_questions_have_two_hops(item):
    assert item["hops"] == 2


@pytest.mark.parametrize("item", QUESTIONS["2wikimultihopqa"], ids=lambda x: x["id"])
def test_2wiki_evidences_stand_in_the_passages(item):
    assert item["hops"] == (4 if item["type"] == "bridge_comparison" else 2)
    assert len(item["evidences"]) == item["hops"]
    text = passage_text(*item["supporting"])
    for subject, relation, obj in item["evidences"]:
        assert occurs(re.sub(r",.*", "", subject), text)
        if relation not in ADJECTIVE_RELATIONS | COMPUTED_RELATIONS:
            assert occurs(re.sub(r",.*", "", obj), text), obj


@pytest.mark.parametrize("item", QUESTIONS["musique"], ids=lambda x: x["id"])
def test_musique_decomposition_follows_the_passages(item):
    steps = item["decomposition"]
    assert int(item["type"][0]) == item["hops"] == len(steps)
    assert [step["supporting"] for step in steps] == item["supporting"]
    check_placeholders(steps)
    assert steps[-1]["answer"] in item["answers"]
    for step in steps:
        # "Colombia" stands in "Colombian": part of a word is enough here
        assert norm(step["answer"]) in passage_text(step["supporting"])


@pytest.mark.parametrize("item", QUESTIONS["bamboogle"], ids=lambda x: x["id"])
def test_bamboogle_decomposition_follows_the_passages(item):
    steps = item["decomposition"]
    assert item["hops"] == len(steps) == 2
    assert set(steps[-1]["answer"]) == set(item["answers"])
    for step, passage in zip(steps, item["supporting"], strict=True):
        assert any(norm(answer) in passage_text(passage) for answer in step["answer"])
    # the second sub-question is about the answer of the first
    assert any(occurs(a.split()[-1], norm(steps[1]["question"])) for a in steps[0]["answer"])


def check_placeholders(steps: list[dict]) -> None:
    used = set()
    for number, step in enumerate(steps, 1):
        for reference in map(int, re.findall(r"#(\d)", step["question"])):
            assert reference < number
            used.add(reference)
    assert used == set(range(1, len(steps))), "every answer but the last is used later"
