"""Longer questions made from shorter ones: a description replaces a name, and an additional search finds the name.

    Where did Ann Lee die?   →   Where did the director of Dracula die?   (first: "Who directed Dracula?", Ann Lee)

Only the wording is worth learning. Whether Ann Lee directed Dracula is not checked, so no reader learns from these
rows. They are needed because data sets have few questions with three and four searches, and a planner that sees few of
them stops after two.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyrag_rl.data.decompositions.source import GoldQuestion, GoldStep
from pyrag_rl.data.decompositions.wording import REFERENCE, subject_of

# Kind of thing that a relation of Wikidata applies to.
_KIND_OF_SUBJECT = {
    relation: kind
    for kind, relations in {
        "film": ("director", "producer", "screenwriter", "cast member", "country of origin", "distributed by"),
        "song": ("performer", "lyrics by", "record label", "composer"),
        "book": ("author", "publisher"),
        "person": (
            *("place of birth", "place of death", "father", "mother", "spouse", "child", "sibling", "date of birth"),
            *("date of death", "country of citizenship", "employer", "educated at", "residence", "occupation"),
        ),
        "place": ("country", "located in the administrative territorial entity", "shares border with", "continent"),
        "organization": ("headquarters location", "founded by", "owned by", "inception", "location of formation"),
    }.items()
    for relation in relations
}
# A name in a question, with the words that describe it: "the film Dracula (1931 film)".
_MENTION = r"(?<!\w)(?:[Tt]he )?(?:(?:film|movie|song|album|novel) )?{name}(?!\w)(?: \([^)]*\))?"


@dataclass(frozen=True, slots=True)
class _Description:
    """Phrase that describes a thing of one kind by the name of another thing, and the question that finds it."""

    kind: str
    by: str  # kind of the name
    phrases: tuple[str, ...]
    question: str


_DESCRIPTIONS = (
    _Description("person", "film", ("the director of {}", "the person who directed {}"), "Who directed {}?"),
    _Description("person", "film", ("the producer of {}",), "Who produced {}?"),
    _Description("person", "song", ("the performer of {}", "the artist who recorded {}"), "Who performed {}?"),
    _Description("person", "song", ("the composer of {}",), "Who composed the music of {}?"),
    _Description("person", "book", ("the author of {}", "the writer of {}"), "Who is the author of {}?"),
    _Description("person", "person", ("the father of {}", "{}'s father"), "Who is {}'s father?"),
    _Description("person", "person", ("the spouse of {}", "the person {} married"), "Who is {}'s spouse?"),
    _Description("person", "organization", ("the founder of {}", "the person who founded {}"), "Who founded {}?"),
    _Description("place", "person", ("the place of birth of {}", "the city where {} was born"), "Where was {} born?"),
    _Description("place", "person", ("the place of death of {}", "the city where {} died"), "Where did {} die?"),
    _Description("place", "organization", ("the city where {} is based", "the location of the headquarters of {}"),
                 "Where are the headquarters of {}?"),
    _Description("place", "place", ("the country that contains {}", "the country where {} is"),
                 "In which country is {}?"),
    _Description("organization", "person", ("the employer of {}", "the employer that {} worked for"),
                 "Who is the employer of {}?"),
    _Description("organization", "person", ("the school that {} attended", "the university where {} was educated"),
                 "Where was {} educated?"),
    _Description("film", "person", ("the film that {} starred in", "the film starring {}"), "Which film starred {}?"),
    _Description("song", "film", ("the theme song of {}",), "What is the theme song of {}?"),
    _Description("song", "person", ("the most famous song of {}",), "What is the most famous song of {}?"),
    _Description("book", "person", ("the notable work of {}", "the novel that inspired {}"),
                 "What is a notable work of {}?"),
)  # fmt: skip


class Nesting:
    """Replacement of names by descriptions. The names in these come from names that the questions ask about.

    Args:
        questions: Questions that the names are taken from.
        seed: Seed for all choices.
    """

    def __init__(self, questions: Iterable[GoldQuestion], seed: int) -> None:
        self._seed = seed
        names: dict[str, set[str]] = defaultdict(set)
        for question in questions:
            for step in question.sub_questions:
                name, kind = _subject(step)
                if kind and not REFERENCE.search(name) and "(" not in name:
                    names[kind].add(name)
        self._names = {kind: sorted(names_of_kind) for kind, names_of_kind in names.items()}

    def nested(self, question: GoldQuestion) -> GoldQuestion | None:
        """Return a question with one more search; None if the first step has no name of a known kind.

        Args:
            question: A question that is a chain of steps.
        """
        first = question.sub_questions[0]
        name, kind = _subject(first)
        mention = re.search(_MENTION.format(name=re.escape(name)), question.question)
        fitting = [
            description for description in _DESCRIPTIONS if description.kind == kind and self._names.get(description.by)
        ]
        if not mention or not fitting or question.sub_questions[-1].op or question.form or name not in first.question:
            return None
        draw = random.Random(f"{self._seed}:nest:{question.source}:{question.id}")  # noqa: S311  a draw, no secret
        description = draw.choice(fitting)
        others = [
            candidate
            for candidate in self._names[description.by]
            if candidate not in question.question and name not in candidate
        ]
        if not others:
            return None
        other = draw.choice(others)
        phrase = draw.choice(description.phrases).format(other)
        text = question.question[: mention.start()] + phrase + question.question[mention.end() :]
        text = re.sub(r"\b([Tt]he) the\b", r"\1", text)
        steps = [_later(step) for step in question.sub_questions]
        steps[0] = replace(steps[0], question=first.question.replace(name, "#1"), plain=first.plain.replace(name, "#1"),
                           depends_on=(1,), triple=())  # fmt: skip
        lookup = GoldStep(question=description.question.format(other), answer=name, triple=(other, "", name))
        return replace(
            question, id=f"{question.id}-nested", question=text[:1].upper() + text[1:], sub_questions=(lookup, *steps),
            supporting=(), hops=question.hops + 1, type="",
        )  # fmt: skip


def _subject(step: GoldStep) -> tuple[str, str]:
    """Return the name that a step asks about, and its kind; empty if they are unknown."""
    name, relation = (step.triple[0], step.triple[1]) if len(step.triple) == 3 else subject_of(step)
    return name, _KIND_OF_SUBJECT.get(relation, "") if name else ""


def _later(step: GoldStep) -> GoldStep:
    """Return a step with its references increased by one, because a step is inserted before it."""
    moved = {
        name: REFERENCE.sub(lambda match: f"#{int(match[1]) + 1}", text)
        for name, text in (("question", step.question), ("plain", step.plain))
    }
    return replace(step, **moved, depends_on=tuple(number + 1 for number in step.depends_on))  # type: ignore[arg-type]
