"""Invented documents, as prose, lists, tables, records and mails, with labelled questions about them.

Nothing comes from data sets: names, figures and wordings are invented here. The same seed gives the same set. The two
halves share no subjects and no wordings.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

from benchmarks.own_documents.subjects import NAMES, PEOPLE, SUBJECTS, TOWNS, Subject
from benchmarks.own_documents.wordings import WORDINGS

HALVES = ("calibration", "report")
FORMS = ("prose", "list", "table", "records", "mail")
_THINGS = 6


@dataclass(frozen=True, slots=True)
class Thing:
    """Subject of a document, with its properties."""

    name: str
    count: int
    size: int
    person: str
    done: bool


@dataclass(frozen=True, slots=True)
class Document:
    """File of the set."""

    half: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Labelled:
    """Question with its right answers.

    Attributes:
        kind: Kind of question.
        form: Form of the document.
        golds: Right answers. Empty if the documents have no answer, so that only "unknown" is right.
        others: Names that a right answer must not contain.
    """

    half: str
    kind: str
    form: str
    question: str
    golds: tuple[str, ...]
    others: tuple[str, ...] = ()


def made(seed: int = 40) -> tuple[list[Document], list[Labelled]]:
    """Return the invented documents and questions of both halves."""
    random_numbers = random.Random(seed)  # noqa: S311 - makes a set, no secret
    documents: list[Document] = []
    questions: list[Labelled] = []
    names, towns = list(NAMES), list(TOWNS)
    random_numbers.shuffle(names)
    random_numbers.shuffle(towns)
    name_source, towns_of = cycle(names), iter(cycle(towns))
    for half in HALVES:
        forms = cycle(FORMS)
        for subject in SUBJECTS[half]:
            for _ in range(3):
                form, town = next(forms), next(towns_of)
                things = [_thing(next(name_source), subject, random_numbers) for _ in range(_THINGS)]
                suffix = "csv" if form == "records" else "md"
                text = _RENDER[form](subject, town, things)
                documents.append(Document(half, f"{subject.plural}-{town.lower()}.{suffix}", text))
                questions += _questions(half, form, subject, town, things, random_numbers)
    return documents, questions


def _thing(name: str, subject: Subject, random_numbers: random.Random) -> Thing:
    return Thing(
        name,
        random_numbers.randint(subject.count.low, subject.count.high),
        random_numbers.randint(subject.size.low, subject.size.high),
        random_numbers.choice(PEOPLE[:12]),
        random_numbers.random() < 0.5,
    )


def _prose(subject: Subject, town: str, things: Sequence[Thing]) -> str:
    lines = [f"# {subject.plural.capitalize()} of {town}", ""]
    for thing in things:
        done = "" if thing.done else "not "
        lines += [
            f"The {subject.noun} {thing.name} {subject.count.verbs} {thing.count:,} {subject.count.units}. "
            f"It is {thing.size:,} {subject.size.unit} {subject.size.adjective} and is {subject.role[1]} by "
            f"{thing.person}. It is {done}{subject.state[1]}.",
            "",
        ]
    return "\n".join(lines)


def _list(subject: Subject, town: str, things: Sequence[Thing]) -> str:
    lines = [f"# {subject.plural.capitalize()} of {town}", ""]
    for thing in things:
        state = subject.state[1] if thing.done else f"not {subject.state[1]}"
        lines += [
            f"## {subject.noun.capitalize()} {thing.name}",
            "",
            f"- {subject.count.column}: {thing.count}",
            f"- {subject.size.column}: {thing.size} {subject.size.unit}",
            f"- {subject.role[0]}: {thing.person}",
            f"- {subject.state[0]}: {state}",
            "",
        ]
    return "\n".join(lines)


def _table(subject: Subject, town: str, things: Sequence[Thing]) -> str:
    size = f"{subject.size.column} ({subject.size.unit})"
    lines = [
        f"# {subject.plural.capitalize()} of {town}",
        "",
        f"| {subject.noun.capitalize()} | {subject.count.column} | {size} | {subject.role[0]} | {subject.state[0]} |",
        "|---|---|---|---|---|",
    ]
    for thing in things:
        state = subject.state[1] if thing.done else f"not {subject.state[1]}"
        lines.append(f"| {thing.name} | {thing.count} | {thing.size} | {thing.person} | {state} |")
    return "\n".join([*lines, ""])


def _records(subject: Subject, town: str, things: Sequence[Thing]) -> str:
    size = f"{subject.size.column} ({subject.size.unit})"
    lines = [f"{subject.noun.capitalize()},Town,{subject.count.column},{size},{subject.role[0]},{subject.state[0]}"]
    for thing in things:
        state = subject.state[1] if thing.done else f"not {subject.state[1]}"
        lines.append(f"{thing.name},{town},{thing.count},{thing.size},{thing.person},{state}")
    return "\n".join([*lines, ""])


def _mail(subject: Subject, town: str, things: Sequence[Thing]) -> str:
    lines = [f"# {subject.plural.capitalize()} in {town}", "", f"From: {PEOPLE[-1]}", f"To: {PEOPLE[-2]}", ""]
    lines += [f"Hello, here is the news of our {subject.plural} in {town}.", ""]
    for thing in things:
        done = f"has been {subject.state[1]}" if thing.done else f"has not been {subject.state[1]} yet"
        lines += [
            f"{thing.name}: {subject.role[1]} by {thing.person}, {thing.size} {subject.size.unit}"
            f" {subject.size.adjective}. The {subject.noun} {subject.count.verbs} {thing.count} {subject.count.units}"
            f" and {done}.",
            "",
        ]
    return "\n".join([*lines, "Best regards", PEOPLE[-1].split()[0], ""])


_RENDER = {"prose": _prose, "list": _list, "table": _table, "records": _records, "mail": _mail}


def _questions(
    half: str, form: str, subject: Subject, town: str, things: Sequence[Thing], random_numbers: random.Random
) -> Iterator[Labelled]:
    first, second = sorted(random_numbers.sample(things, 2), key=lambda thing: -thing.count)
    longer, shorter = sorted((first, second), key=lambda thing: -thing.size)
    limit = sorted(thing.count for thing in things)[_THINGS // 2]
    done = [thing.name for thing in things if thing.done]
    open_things = [thing.name for thing in things if not thing.done]
    neither = [thing.name for thing in things if thing.person not in (first.person, second.person)]
    top = max(things, key=lambda thing: thing.count)
    words = {
        "noun": subject.noun,
        "plural": subject.plural,
        "town": town,
        "units": subject.count.units,
        "verb": subject.count.verb,
        "verbs": subject.count.verbs,
        "column": subject.count.column.lower(),
        "x": f"the {subject.noun} {first.name}",
        "y": f"the {subject.noun} {second.name}",
        "limit": limit,
        "longer": f"the {subject.noun} {longer.name}",
        "shorter": f"the {subject.noun} {shorter.name}",
        "adjective": subject.size.adjective,
        "comparative": subject.size.comparative,
        "superlative": subject.size.superlative,
        "asked_unit": subject.size.asked_unit,
        "measure": subject.size.column.lower(),
        "role": subject.role[0].lower(),
        "by": subject.role[1],
        "done": subject.state[1],
        "person": first.person,
        "other": second.person,
        "missing": subject.missing,
        "absent": f"the {subject.noun} {PEOPLE[-3].split()[1]}",
    }
    counts = [thing.count for thing in things]
    total = sum(counts)
    yes = "yes" if len(done) == len(things) else "no"
    golds: dict[str, tuple[tuple[str, ...], Sequence[str]]] = {
        "fact number": ((str(first.count),), ()),
        "fact person": ((first.person,), ()),
        "fact size": ((f"{longer.size} {subject.size.unit}", str(longer.size)), ()),
        "state": (("yes" if first.done else "no",), ()),
        "choice": ((first.name,), (second.name,)),
        "sum": ((str(first.count + second.count),), ()),
        "difference": ((str(first.count - second.count),), ()),
        "size difference": ((f"{longer.size - shorter.size} {subject.size.unit}",), ()),
        "unit": ((_figure(longer.size * subject.size.factor),), ()),
        "count": ((str(sum(thing.count > limit for thing in things)),), ()),
        "count of person": ((str(sum(thing.person == first.person for thing in things)),), ()),
        "total": ((str(total),), ()),
        "average": ((_figure(total / len(things)),), ()),
        "highest": ((top.name,), [thing.name for thing in things if thing is not top]),
        "neither": ((", ".join(neither),) if neither else ("none",), [t.name for t in things if t.name not in neither]),
        "all": ((yes,), ()),
        "every name": ((", ".join(done),) if done else ("none",), open_things),
        "missing": ((), ()),
        "absent": ((), ()),
    }
    for kind, (right, others) in golds.items():
        if first.count == second.count or longer.size == shorter.size:
            continue
        wording = random_numbers.choice(WORDINGS[half][kind]).format(**words)
        yield Labelled(half, kind, form, wording, right, tuple(others))


def _figure(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")
