"""What the fields of released records mean: one function a format, from a record to a question and its passages.

Officially released formats go by the name of their data set; the layouts of FlashRAG, of Search-R1 and our own are
told by their fields. Texts are taken over with white space collapsed, titles with HTML entities decoded.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pyrag.evaluation.datasets.importers.source import Record


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A passage of the set's corpus. Its id says nothing about where it came from, and equal texts share it."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """A question in the common layout (`fields` are those of its line), and the passages that came with it."""

    fields: dict[str, Any]
    passages: tuple[Paragraph, ...] = ()


Format = Callable[[Record, str, int], Item]  # record, name of the set, position from 1

PREFIXES = {"hotpotqa": "hp", "2wikimultihopqa": "2w", "musique": "mq"}
_OTHER_COLUMN = {"sentences": "content"}  # as the hub's 2WikiMultiHopQA calls it
_QUESTION = re.compile(r".*Question:\s*(.+?)\s*\Z", re.DOTALL)


def passage(prefix: str, title: str, text: str) -> Paragraph:
    title, text = " ".join(html.unescape(title).split()), " ".join(text.split())
    digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:10]
    return Paragraph(f"{prefix}-{digest}", title, text)


def hotpotqa(record: Record, name: str, number: int) -> Item:
    """HotpotQA and 2WikiMultiHopQA (`hotpot_dev_distractor_v1.json`, `dev.json`), and the former as the hub has it."""
    fields = _basics(record, record.text("_id", "id"), [record.text("answer")])
    fields |= _kept(record, "type", "level")
    if record.has("evidences"):
        fields["evidences"] = record.items("evidences")
    context, facts = _context(record, name), _supporting_facts(record)
    return _supported(fields, context, facts)


def _context(record: Record, name: str) -> dict[str, tuple[Paragraph, list[str]]]:
    """Passages with their sentences, by title."""
    found = {}
    for title, sentences in _pairs(record, "context", "sentences"):
        if not isinstance(sentences, list | tuple):
            record.fail("has a context paragraph without sentences: write it as [title, [sentences]]")
        tidy = [" ".join(str(sentence).split()) for sentence in sentences]
        found[title] = (passage(PREFIXES.get(name, "p"), title, " ".join(tidy)), tidy)
    return found


def _supporting_facts(record: Record) -> list[tuple[str, int]]:
    return [
        (title, number if isinstance(number, int) else -1)
        for title, number in _pairs(record, "supporting_facts", "sent_id")
    ]


def _pairs(record: Record, name: str, second: str) -> list[tuple[str, Any]]:
    """`[[title, x], …]`, or the hub's two columns `{"title": […], second: […]}`; empty where the field is missing."""
    value = record.fields.get(name)
    if value is None:
        return []
    if isinstance(value, dict):
        columns = record.part(name, value)
        second = second if columns.has(second) else _OTHER_COLUMN.get(second, second)
        value = list(zip(columns.items("title"), columns.items(second), strict=False))
    if not isinstance(value, list):
        record.fail(f"has no list in the field {name!r}: write it as [[title, …], …]")
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            record.fail(f"has an entry in {name!r} that is no pair of a title and more: write it as [title, …]")
    return [(pair[0], pair[1]) for pair in value]


def _supported(
    fields: dict[str, Any], context: dict[str, tuple[Paragraph, list[str]]], facts: list[tuple[str, int]]
) -> Item:
    """Gold passages by id where the context holds them all, else by title: the full-wiki setting hands out others."""
    titles = list(dict.fromkeys(title for title, _ in facts))
    fields["hops"] = len(titles)
    if all(title in context for title in titles):
        fields["supporting"] = list(dict.fromkeys(context[title][0].id for title in titles))
        fields["supporting_sentences"] = [
            [context[title][0].id, context[title][1][number]]
            for title, number in facts
            if 0 <= number < len(context[title][1])  # the releases hold numbers beyond the paragraph's end
        ]
    else:
        fields["supporting_titles"] = [html.unescape(title) for title in titles]
    passages = tuple(paragraph for paragraph, _ in context.values() if paragraph.text)
    fields["candidates"] = list(dict.fromkeys(paragraph.id for paragraph in passages))
    return Item(_without_empty(fields), passages)


def musique(record: Record, name: str, number: int) -> Item:
    """MuSiQue (`musique_ans_v1.0_dev.jsonl`; in `musique_full` questions without an answer share their twin's id)."""
    answerable = record.fields.get("answerable") is not False
    identity = record.text("id") + ("" if answerable else "#unanswerable")
    aliases = list(record.texts("answer_aliases")) if record.fields.get("answer_aliases") is not None else []
    fields = _basics(record, identity, [record.text("answer"), *aliases] if answerable else [])
    fields["type"] = identity.partition("__")[0]
    by_index: dict[Any, Paragraph] = {}
    gold = []
    for value in record.items("paragraphs"):
        part = record.part("paragraphs", value)
        by_index[part.fields.get("idx")] = made = passage("mq", part.text("title"), part.text("paragraph_text"))
        if part.fields.get("is_supporting"):
            gold.append(made.id)
    fields |= _hops(record, by_index, gold)
    fields["answerable"] = None if answerable else False
    fields["candidates"] = list(dict.fromkeys(made.id for made in by_index.values()))
    return Item(_without_empty(fields), tuple(by_index.values()))


def _hops(record: Record, by_index: dict[Any, Paragraph], gold: list[str]) -> dict[str, Any]:
    """The decomposition. Its steps name their passages in hop order, the paragraphs do not."""
    steps = [_step(record.part("question_decomposition", value), by_index) for value in _steps(record)]
    ordered = [step["supporting"] for step in steps if "supporting" in step] + gold
    return {"hops": len(steps), "supporting": list(dict.fromkeys(ordered)), "decomposition": steps}


def _steps(record: Record) -> list[Any]:
    return record.items("question_decomposition") if record.fields.get("question_decomposition") is not None else []


def _step(part: Record, by_index: dict[Any, Paragraph]) -> dict[str, Any]:
    step = {"question": part.text("question"), "answer": part.text("answer")}
    found = by_index.get(part.fields.get("paragraph_support_idx"))
    return step | ({"supporting": found.id} if found else {})


def popqa(record: Record, name: str, number: int) -> Item:
    """PopQA (`popQA.tsv`): the gold spellings are a JSON list in one column."""
    try:
        answers = json.loads(record.text("possible_answers"))
    except ValueError as error:
        record.fail(f"has no JSON list in the column 'possible_answers' ({error}): fix or remove the row")
    spellings = Record(record.where, {"possible_answers": answers}).texts("possible_answers")
    official = [record.text("obj")] if record.has("obj") else []
    fields = _basics(record, record.text("id"), [*official, *spellings])
    fields |= {"type": record.fields.get("prop"), "hops": 1, "subject": record.fields.get("subj")}
    popularity = str(record.fields.get("s_pop") or "")
    fields["popularity"] = int(popularity) if popularity.isdigit() else None
    return Item(_without_empty(fields))


def bamboogle(record: Record, name: str, number: int) -> Item:
    """Bamboogle's table: questions and answers, no ids."""
    lowered = Record(record.where, {str(key).strip().lower(): value for key, value in record.fields.items()})
    fields = _basics(lowered, f"bamboogle_{number}", [lowered.text("answer")])
    return Item({**fields, "hops": 2})


def hover(record: Record, name: str, number: int) -> Item:
    """HoVer: a claim and its label; the pages that decide it are known by title only."""
    titles = list(dict.fromkeys(title for title, _ in _pairs(record, "supporting_facts", "sent_id")))
    fields: dict[str, Any] = {
        "id": record.text("uid", "id"),
        "question": record.text("claim"),
        "answers": [_label(record)],
    }
    hops = record.fields.get("num_hops")
    return Item(_without_empty({**fields, "type": "claim", "hops": hops, "supporting_titles": titles}))


def _label(record: Record) -> str:
    label = record.fields.get("label")
    names = {0: "NOT_SUPPORTED", 1: "SUPPORTED", "SUPPORTED": "SUPPORTED", "NOT_SUPPORTED": "NOT_SUPPORTED"}
    if not isinstance(label, int | str) or label not in names:
        record.fail(f"has the label {label!r}: it must be SUPPORTED or NOT_SUPPORTED")
    return names[label]


def nq(record: Record, name: str, number: int) -> Item:
    """NQ-open (`NQ-open.dev.jsonl`): no ids, a list of answers."""
    return Item({**_basics(record, f"nq_{number}", list(record.texts("answer"))), "hops": 1})


def ambigqa(record: Record, name: str, number: int) -> Item:
    """AmbigQA: the answers to every reading of the question count."""
    answers: list[str] = []
    for value in record.items("annotations"):
        note = record.part("annotations", value)
        readings = note.items("qaPairs") if note.fields.get("qaPairs") else [note.fields]
        for reading in readings:
            answers += note.part("qaPairs", reading).texts("answer")
    return Item({**_basics(record, record.text("id"), answers), "hops": 1})


def multihoprag(record: Record, name: str, number: int) -> Item:
    """MultiHop-RAG (`MultiHopRAG.json`): evidence by article title and sentence; its corpus is a file of its own."""
    facts = [record.part("evidence_list", value) for value in record.items("evidence_list")]
    kept = [
        {key: fact.fields[key] for key in ("title", "source", "published_at", "fact") if fact.has(key)}
        for fact in facts
    ]
    titles = list(dict.fromkeys(fact.text("title") for fact in facts))
    fields: dict[str, Any] = {
        "id": f"multihoprag_{number}",
        "question": record.text("query"),
        "answers": [record.text("answer")],
    }
    fields |= {"type": record.fields.get("question_type"), "hops": len(facts)}
    return Item(_without_empty({**fields, "supporting_titles": titles, "facts": kept}))


def flashrag(record: Record, name: str, number: int) -> Item:
    """FlashRAG: `golden_answers`, and in `metadata` what the original had: the paragraphs of HotpotQA and 2Wiki, and
    MuSiQue's gold paragraphs, one a step."""
    fields = _basics(record, record.text("id"), list(record.texts("golden_answers")))
    metadata = Record(record.where, record.fields.get("metadata") or {})
    fields |= _kept(metadata, "type", "level")
    if metadata.has("supporting_facts"):
        return _supported(fields, _context(metadata, name), _supporting_facts(metadata))
    by_index = {part.fields.get("idx"): passage("mq", part.text("title"), part.text("paragraph_text"))
                for part in _gold_paragraphs(metadata)}  # fmt: skip
    if by_index:
        fields |= _hops(metadata, by_index, [])
    return Item(_without_empty(fields), tuple(by_index.values()))


def _gold_paragraphs(metadata: Record) -> Iterator[Record]:
    for value in _steps(metadata):
        step = metadata.part("question_decomposition", value)
        if step.has("support_paragraph"):
            yield step.part("support_paragraph", step.fields["support_paragraph"])


def search_r1(record: Record, name: str, number: int) -> Item:
    """Search-R1's training and test files: several sets in one, so that the set's name is part of an id."""
    truth = record.part("reward_model", record.fields.get("reward_model"))
    target = truth.part("ground_truth", truth.fields.get("ground_truth"))
    given = target.fields.get("target")
    answers = target.texts("target") if isinstance(given, list) else (target.text("target"),)
    extra = record.fields.get("extra_info") or {}
    position = extra.get("index", number) if isinstance(extra, dict) else number
    identity = record.text("id") if record.has("id") else str(position)
    source = str(record.fields.get("data_source") or "")
    fields = {"id": f"{source}_{identity}" if source else identity, "question": _prompted(record)}
    return Item(_without_empty({**fields, "answers": list(answers), "type": source}))


def _prompted(record: Record) -> str:
    """The question, from its own column or from the end of the prompt."""
    if record.has("question"):
        return record.text("question")
    messages = [record.part("prompt", message) for message in record.items("prompt")]
    found = _QUESTION.match(str(messages[-1].fields.get("content", ""))) if messages else None
    if not found:
        record.fail("has neither a field 'question' nor a prompt that ends in 'Question: …': add one of them")
    return " ".join(found[1].split())


def common(record: Record, name: str, number: int) -> Item:
    """Our own layout, taken over as it is."""
    return Item(dict(record.fields))


OFFICIAL: dict[str, Format] = {
    "hotpotqa": hotpotqa,
    "2wikimultihopqa": hotpotqa,
    "musique": musique,
    "popqa": popqa,
    "bamboogle": bamboogle,
    "hover": hover,
    "nq": nq,
    "ambigqa": ambigqa,
    "multihoprag": multihoprag,
}


def format_of(record: Record, name: str) -> Format | None:
    """The format of a file, by its first record; None for a set whose official format nobody knows."""
    if record.has("golden_answers"):
        return flashrag
    if record.has("reward_model"):
        return search_r1
    if record.has("question") and record.has("answers"):
        return common
    return OFFICIAL.get(name)


def _basics(record: Record, identity: str, answers: list[str]) -> dict[str, Any]:
    return {"id": identity, "question": record.text("question"), "answers": list(dict.fromkeys(answers))}


def _kept(record: Record, *names: str) -> dict[str, Any]:
    return {name: record.fields[name] for name in names if isinstance(record.fields.get(name), str)}


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    """Lists and texts that hold nothing are left out, all but the answers."""
    return {key: value for key, value in fields.items() if key == "answers" or value is False or value}
