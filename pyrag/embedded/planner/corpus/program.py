"""Programs for questions over all documents, written from their meaning.

Text of the question and of metadata enters a program only inside string literals, which are escaped here.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyrag.agents.python_text import literal
from pyrag.embedded.planner.corpus.meaning import CorpusQuestion, SelectedDocuments, TextFact
from pyrag.embedded.planner.corpus.vocabulary import naming_pattern
from pyrag.trace.model import UNKNOWN


def corpus_program(meaning: CorpusQuestion) -> str:
    """Return the program of a question over all documents."""
    lines = list(_program(meaning))
    if any('returns="number"' in line for line in lines):  # which raises an error for unlike units
        caught = ["except ValueError as error:", f'    final_answer = f"{UNKNOWN}: {{error}}"']
        lines = ["try:", *(f"    {line}" for line in lines), *caught]
    imports = ["import re"] if any("re.search(" in line for line in lines) else []
    return "\n".join([*imports, *lines]) + "\n"


def corpus_queries(meaning: CorpusQuestion) -> tuple[str, ...]:
    """Return the questions that the program asks of each document."""
    return tuple(filter(None, (*(fact.question for fact in meaning.selection.facts), meaning.asked)))


def _program(meaning: CorpusQuestion) -> Iterator[str]:
    selection = meaning.selection
    if meaning.use == "count" and not (selection.facts or selection.words or selection.tests):
        yield f"final_answer = count({_filter(selection)})"
        return
    yield f"docs = documents({_filter(selection)})"
    for word in selection.words:
        pattern = literal(naming_pattern(word))
        yield f'docs = [doc for doc in docs if re.search({pattern}, f"{{doc.title}} {{doc.source}}")]'
    for test in selection.tests:
        yield f"docs = [doc for doc in docs if {test.condition}]"
    facts = selection.facts
    last = facts[-1:] if meaning.use in ("count", "list") else ()
    for number, fact in enumerate(facts[: len(facts) - len(last)], start=1):
        yield f"rows_{number} = {_asking(fact)}"
        yield from _checked(fact, f"rows_{number}")
        yield f"docs = [doc for doc, row in zip(docs, rows_{number}) if {fact.condition}]"
    if meaning.use in ("count", "list"):
        yield from _chosen(meaning, last)
    elif meaning.field:
        yield from _of_field(meaning)
    else:
        yield from _of_text(meaning)


def _filter(selection: SelectedDocuments) -> str:
    return "" if selection.where is None else literal(str(selection.where))


def _asking(fact: TextFact) -> str:
    returns = f", returns={literal(fact.returns)}" if fact.returns else ""
    return f"each(docs, {literal(_escaped(fact.question))}{returns})"


def _escaped(question: str) -> str:
    return question.replace("{", "{{").replace("}", "}}")


def _checked(fact: TextFact, rows: str) -> Iterator[str]:
    """Write the refusal of numbers in another unit than the question's."""
    if fact.unit:
        message = literal(f"the question is about {fact.unit}, and a document has another unit")
        yield f"if any([row.known and row.unit not in ('', {literal(fact.unit)}) for row in {rows}]):"
        yield f"    raise ValueError({message})"


def _chosen(meaning: CorpusQuestion, facts: tuple[TextFact, ...]) -> Iterator[str]:
    """Write the lines that count or list the documents for which the last fact holds."""
    chosen = "docs"
    for fact in facts:
        yield f"rows = {_asking(fact)}"
        yield from _checked(fact, "rows")
        yield f"chosen = [row for row in rows if {fact.condition}]"
        chosen = "chosen"
    yield f"final_answer = len({chosen})" if meaning.use == "count" else f"final_answer = {chosen}"


def _of_field(meaning: CorpusQuestion) -> Iterator[str]:
    """Write the lines that compute the result from a metadata field."""
    name = literal(meaning.field)
    yield f"docs = [doc for doc in docs if {name} in doc.metadata]"
    if meaning.use == "each":
        yield f'final_answer = [doc.title + ": " + str(doc.metadata[{name}]) for doc in docs]'
        return
    value = meaning.value or f"doc.metadata[{name}]"
    yield f"values = [{value} for doc in docs]"
    if meaning.use in ("total", "average"):
        yield _summed(meaning)
        return
    yield f"best = {'min' if meaning.is_lowest else 'max'}(values, default=None)"
    if meaning.use == "extreme value":
        yield "final_answer = best"
    else:
        yield f'final_answer = [doc for doc in docs if {value} == best] or "unknown"'


def _of_text(meaning: CorpusQuestion) -> Iterator[str]:
    """Write the lines that compute the result from the answers of all documents."""
    asking = _asking(TextFact(meaning.asked, returns=meaning.returns))
    if meaning.use == "each":
        yield f"final_answer = {asking}"
        return
    yield f"rows = [row for row in {asking} if row.known]"
    if meaning.returns == "number" and meaning.use != "extreme":
        how = {"total": "sum", "average": "average"}.get(meaning.use, "lowest" if meaning.is_lowest else "highest")
        yield 'numbers = [{"value": f"{row.value} {row.unit}".strip()} for row in rows]'
        yield f'final_answer = table_value(numbers, "{how}", column="value") if numbers else "unknown"'
        return
    yield "values = [row.value for row in rows]"
    yield f"best = {'min' if meaning.is_lowest else 'max'}(values, default=None)"
    chosen = "[row for row in rows if row.value == best]"
    yield f'final_answer = {chosen} or "unknown"' if meaning.use == "extreme" else "final_answer = best"


def _summed(meaning: CorpusQuestion) -> str:
    if meaning.use == "total":
        return 'final_answer = sum(values) if values else "unknown"'
    return 'final_answer = sum(values) / len(values) if values else "unknown"'
