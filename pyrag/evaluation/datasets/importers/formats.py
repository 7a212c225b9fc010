"""Formats of released records: one function per format, from a record to a question and its passages.

The name of the data set selects official formats; the layouts of FlashRAG, of Search-R1 and our own are recognised by
their fields. White space in texts is collapsed, and HTML entities in titles are decoded. Every format takes the record,
the name of the set and the record's position from 1, and raises `DataError` for a record in a different form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from pyrag.evaluation.datasets.importers.items import Item, Paragraph, passage, tidy_title
from pyrag.evaluation.datasets.importers.source import Record
from pyrag.evaluation.datasets.layout import completed_fields, structured

Context = dict[str, list[tuple[Paragraph, list[str]]]]  # passages with their sentences, by title
Format = Callable[[Record, str, int], Item]  # record, name of the set, position from 1

PREFIXES = {"hotpotqa": "hp", "2wikimultihopqa": "2w", "musique": "mq"}
_OTHER_COLUMN = {"sentences": "content"}  # name in the hub's 2WikiMultiHopQA
_QUESTION = re.compile(r".*Question:\s*(.+?)\s*\Z", re.DOTALL)


def _identity(record: Record) -> str:
    """Return a record's id; without one, a digest of its question."""
    return record.text("_id", "id") if record.has("_id") or record.has("id") else completed_fields(record.fields)["id"]


def _hotpotqa(record: Record, name: str, number: int) -> Item:
    """Parse HotpotQA (also the hub's form) and 2WikiMultiHopQA (`hotpot_dev_distractor_v1.json`, `dev.json`)."""
    fields = _basics(record, _identity(record), record.golds("answer"))
    fields |= _selected(record, "type", "level")
    if record.has("evidences"):
        fields["evidences"] = record.items("evidences")
    context, facts = _context(record, name), _supporting_facts(record)
    return _supported(fields, context, facts)


def _context(record: Record, name: str) -> Context:
    """Return passages with their sentences, by title. Several paragraphs may have the same title."""
    context: Context = {}
    for title, value in _pairs(record, "context", "sentences"):
        sentences = structured(value)
        if not isinstance(sentences, list | tuple):
            record.fail("has a context paragraph without sentences: write it as [title, [sentences]]")
        tidy = [" ".join(str(sentence).split()) for sentence in sentences]
        context.setdefault(tidy_title(title), []).append(
            (passage(PREFIXES.get(name, "p"), title, " ".join(tidy)), tidy)
        )
    return context


def _supporting_facts(record: Record) -> list[tuple[str, int]]:
    return [
        (tidy_title(title), number if isinstance(number, int) else -1)
        for title, number in _pairs(record, "supporting_facts", "sent_id")
    ]


def _pairs(record: Record, name: str, second: str) -> list[tuple[str, Any]]:
    """Return `[[title, x], …]`, including from the hub's columns `{"title": […], second: […]}`; empty for a missing
    field."""
    value = record.value(name)
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
            record.fail(f"has an entry in {name!r} that is not a list of a title and a value: write it as [title, …]")
    return [(pair[0], pair[1]) for pair in value]


def _supported(fields: dict[str, Any], context: Context, facts: list[tuple[str, int]]) -> Item:
    """Name gold passages by id if the context holds all of them, else by title (the full-wiki setting)."""
    titles = list(dict.fromkeys(title for title, _ in facts))
    fields["hops"] = len(titles)
    if all(title in context for title in titles):
        gold = [(paragraph, sentence) for fact in facts for paragraph, sentence in _stated(context, *fact)]
        fields["supporting"] = list(dict.fromkeys(paragraph.id for paragraph, _ in gold))
        fields["supporting_sentences"] = [[paragraph.id, sentence] for paragraph, sentence in gold if sentence]
    else:
        fields["supporting_titles"] = titles
    passages = tuple(paragraph for same in context.values() for paragraph, _ in same if paragraph.text)
    fields["candidates"] = list(dict.fromkeys(paragraph.id for paragraph in passages))
    return Item(_without_empty(fields), passages)


def _stated(context: Context, title: str, number: int) -> list[tuple[Paragraph, str]]:
    """Return a title's paragraphs that contain this sentence, with it; if none does, the first, without a sentence.

    The releases contain numbers beyond a paragraph's end, and do not distinguish two paragraphs with the same title.
    """
    same = context[title]
    having = [(paragraph, tidy[number]) for paragraph, tidy in same if 0 <= number < len(tidy)]
    return having or [(same[0][0], "")]


def _musique(record: Record, name: str, number: int) -> Item:
    """Parse MuSiQue (`musique_ans_v1.0_dev.jsonl`).

    In `musique_full`, unanswerable questions share an id with their twin.
    """
    answerable = record.fields.get("answerable") is not False
    identity = record.text("id") + ("" if answerable else "#unanswerable")
    aliases = list(record.texts("answer_aliases")) if record.fields.get("answer_aliases") is not None else []
    fields = _basics(record, identity, [*record.golds("answer"), *aliases] if answerable else [])
    fields["type"] = identity.partition("__")[0]
    by_index: dict[Any, Paragraph] = {}
    gold = []
    for value in record.items("paragraphs"):
        part = record.part("paragraphs", value)
        by_index[part.fields.get("idx")] = made = passage("mq", _title_of(part), part.text("paragraph_text"))
        if part.fields.get("is_supporting"):
            gold.append(made.id)
    fields |= _hops(record, by_index, gold)
    fields["answerable"] = None if answerable else False
    fields["candidates"] = list(dict.fromkeys(made.id for made in by_index.values()))
    return Item(_without_empty(fields), tuple(by_index.values()))


def _title_of(part: Record) -> str:
    return part.text("title") if part.has("title") else ""


def _hops(record: Record, by_index: dict[Any, Paragraph], gold: list[str]) -> dict[str, Any]:
    """Return the decomposition, whose steps name passages in hop order; the paragraphs are in another order."""
    steps = [_step(record.part("question_decomposition", value), by_index) for value in _steps(record)]
    ordered = [step["supporting"] for step in steps if "supporting" in step] + gold
    return {"hops": len(steps), "supporting": list(dict.fromkeys(ordered)), "decomposition": steps}


def _steps(record: Record) -> list[Any]:
    return record.items("question_decomposition") if record.fields.get("question_decomposition") is not None else []


def _step(part: Record, by_index: dict[Any, Paragraph]) -> dict[str, Any]:
    step = {"question": part.text("question"), "answer": part.text("answer")}
    paragraph = by_index.get(part.fields.get("paragraph_support_idx"))
    return step | ({"supporting": paragraph.id} if paragraph else {})


def _popqa(record: Record, name: str, number: int) -> Item:
    """Parse PopQA (`popQA.tsv`), in which one column holds the gold spellings as a JSON list."""
    if not isinstance(record.value("possible_answers"), list | tuple):
        record.fail("has no JSON list in the column 'possible_answers': fix or remove the row")
    spellings = record.texts("possible_answers")
    official = [record.text("obj")] if record.has("obj") else []
    fields = _basics(record, _identity(record), [*official, *spellings])
    fields |= {"type": record.fields.get("prop"), "hops": 1, "subject": record.fields.get("subj")}
    popularity = record.text("s_pop") if record.has("s_pop") else ""
    fields["popularity"] = int(popularity) if popularity.isdigit() else None
    return Item(_without_empty(fields))


def _bamboogle(record: Record, name: str, number: int) -> Item:
    """Parse Bamboogle's table of questions and answers, which has no ids."""
    lowered = Record(record.where, {str(key).strip().lower(): value for key, value in record.fields.items()})
    fields = _basics(lowered, f"bamboogle_{number}", lowered.golds("answer"))
    return Item({**fields, "hops": 2})


def _hover(record: Record, name: str, number: int) -> Item:
    """Parse HoVer: a claim with its label. Gold pages are only known by title."""
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


def _nq(record: Record, name: str, number: int) -> Item:
    """Parse NQ-open (`NQ-open.dev.jsonl`): a list of answers, without ids."""
    return Item({**_basics(record, f"nq_{number}", record.golds("answer")), "hops": 1})


def _ambigqa(record: Record, name: str, number: int) -> Item:
    """Parse AmbigQA. The answers to all interpretations of the question are accepted."""
    answers: list[str] = []
    for value in record.items("annotations"):
        note = record.part("annotations", value)
        readings = note.items("qaPairs") if note.fields.get("qaPairs") else [note.fields]
        for reading in readings:
            answers += note.part("qaPairs", reading).texts("answer")
    return Item({**_basics(record, _identity(record), answers), "hops": 1})


def _multihoprag(record: Record, name: str, number: int) -> Item:
    """Parse MultiHop-RAG (`MultiHopRAG.json`): evidence by title and sentence; the corpus is in a separate file."""
    facts = [record.part("evidence_list", value) for value in record.items("evidence_list")]
    evidence = [
        {key: fact.fields[key] for key in ("title", "source", "published_at", "fact") if fact.has(key)}
        for fact in facts
    ]
    titles = list(dict.fromkeys(fact.text("title") for fact in facts))
    fields: dict[str, Any] = {
        "id": f"multihoprag_{number}",
        "question": record.text("query"),
        "answers": record.golds("answer"),
    }
    fields |= {"type": record.fields.get("question_type"), "hops": len(facts)}
    return Item(_without_empty({**fields, "supporting_titles": titles, "facts": evidence}))


def _flashrag(record: Record, name: str, number: int) -> Item:
    """Parse FlashRAG: `golden_answers`, and in `metadata` the original's fields, with paragraphs for some sets."""
    identity = record.text("id") if record.has("id") else completed_fields(record.fields)["id"]
    fields = _basics(record, identity, list(record.texts("golden_answers")))
    metadata = record.part("metadata", record.fields.get("metadata") or {})
    fields |= _selected(metadata, "type", "level")
    if metadata.has("supporting_facts"):
        return _supported(fields, _context(metadata, name), _supporting_facts(metadata))
    by_index = {part.fields.get("idx"): passage("mq", _title_of(part), part.text("paragraph_text"))
                for part in _gold_paragraphs(metadata)}  # fmt: skip
    if by_index:
        fields |= _hops(metadata, by_index, [])
    return Item(_without_empty(fields), tuple(by_index.values()))


def _gold_paragraphs(metadata: Record) -> Iterator[Record]:
    for value in _steps(metadata):
        step = metadata.part("question_decomposition", value)
        if step.has("support_paragraph"):
            yield step.part("support_paragraph", step.fields["support_paragraph"])


def _search_r1(record: Record, name: str, number: int) -> Item:
    """Parse Search-R1's training and test files, which mix sets.

    If only one set of the mixture is read, the file's ids are kept. Otherwise, the set's name is added as a prefix.
    """
    truth = record.part("reward_model", record.fields.get("reward_model"))
    target = truth.part("ground_truth", truth.fields.get("ground_truth"))
    target_value = target.fields.get("target")
    answers = target.texts("target") if isinstance(target_value, list) else (target.text("target"),)
    extra = record.fields.get("extra_info") or {}
    position = extra.get("index", number) if isinstance(extra, dict) else number
    identity = record.text("id") if record.has("id") else str(position)
    source = str(record.fields.get("data_source") or "")
    if source and canonical_name(source) != name:
        identity = f"{source}_{identity}"
    fields = {"id": identity, "question": _prompted(record)}
    return Item(_without_empty({**fields, "answers": list(answers), "type": source}))


def mixed_source(record: Record, name: str) -> str | None:
    """Return the set of a mixture's record if it is a known set other than the one being read; otherwise None.

    Args:
        record: Record of Search-R1's files, or of any other file.
        name: Name of the set being read.
    """
    source = str(record.fields.get("data_source") or "") if record.has("reward_model") else ""
    return source if source and name in OFFICIAL and canonical_name(source) != name else None


def _prompted(record: Record) -> str:
    """Return the question, taken from its own column or from the end of the prompt."""
    if record.has("question"):
        return record.text("question")
    messages = [record.part("prompt", message) for message in record.items("prompt")]
    question = _QUESTION.match(str(messages[-1].fields.get("content", ""))) if messages else None
    if not question:
        record.fail("has neither a field 'question' nor a prompt that ends in 'Question: …': add one of them")
    return " ".join(question[1].split())


def _common(record: Record, name: str, number: int) -> Item:
    """Parse a question in our own layout, with the fields that `completed_fields` adds."""
    fields = completed_fields(record.fields)
    if isinstance(context := fields.get("context"), str) and "supporting" not in fields and context.strip():  # SQuAD
        paragraph = passage("p", str(fields.get("title") or ""), context)
        return Item({**fields, "supporting": [paragraph.id]}, (paragraph,))
    return Item(fields)


def _asqa(record: Record, name: str, number: int) -> Item:
    """Parse ASQA. The short answers to all interpretations of the question are accepted."""
    pairs = [record.part("qa_pairs", value) for value in record.items("qa_pairs")]
    answers = [answer for pair in pairs for answer in pair.texts("short_answers")]
    identity = record.text("id", "sample_id") if record.has("id") or record.has("sample_id") else f"asqa_{number}"
    return Item(
        {"id": identity, "question": record.text("ambiguous_question"), "answers": list(dict.fromkeys(answers))}
    )


OFFICIAL: dict[str, Format] = {
    "hotpotqa": _hotpotqa,
    "2wikimultihopqa": _hotpotqa,
    "musique": _musique,
    "popqa": _popqa,
    "bamboogle": _bamboogle,
    "hover": _hover,
    "nq": _nq,
    "ambigqa": _ambigqa,
    "asqa": _asqa,
    "multihoprag": _multihoprag,
}


_SPELLINGS = {name: name for name in OFFICIAL} | {
    "2wiki": "2wikimultihopqa",
    "2wikimqa": "2wikimultihopqa",
    "2wikimultihop": "2wikimultihopqa",
    "ambignq": "ambigqa",
    "hotpot": "hotpotqa",
    "multihopragqa": "multihoprag",
    "musiqueans": "musique",
    "musiquefull": "musique",
    "naturalquestions": "nq",
    "naturalquestionsopen": "nq",
    "nqopen": "nq",
    "wiki2multihopqa": "2wikimultihopqa",
}


def format_of(record: Record, name: str) -> Format | None:
    """Return the format of a file, or None if it is unknown.

    Args:
        record: First record of the file.
        name: Name of the set, for official formats.
    """
    if record.has("reward_model"):  # Search-R1's merged files also keep FlashRAG's field
        return _search_r1
    if record.has("golden_answers"):
        return _flashrag
    if record.has("question") and record.has("answers"):
        return _common
    return OFFICIAL.get(canonical_name(name)) or (_common if _is_common(record) else None)


def _is_common(record: Record) -> bool:
    fields = completed_fields(record.fields)
    return bool(fields.get("question") and fields.get("answers"))


def canonical_name(name: str) -> str:
    """Return the usual name of a known data set for another spelling (`2Wiki`, `natural-questions`); else the name."""
    plain = re.sub(r"[\W_]", "", name.lower())
    return _SPELLINGS.get(plain, name)


def _basics(record: Record, identity: str, answers: list[str]) -> dict[str, Any]:
    return {"id": identity, "question": record.text("question"), "answers": list(dict.fromkeys(answers))}


def _selected(record: Record, *names: str) -> dict[str, Any]:
    return {name: record.fields[name] for name in names if isinstance(record.fields.get(name), str)}


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    """Drop empty lists and texts, except for the answers."""
    return {key: value for key, value in fields.items() if key == "answers" or value is False or value}
