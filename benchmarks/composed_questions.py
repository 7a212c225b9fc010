"""Benchmark of the embedded planner's depth on questions with a known number of hops, made from SQuAD's questions.

    python -m benchmarks.composed_questions --data ../shared/data [--count 1000] [--seed 0]

As in MuSiQue, a name in a question is replaced by a description made from another question that the name answers:
"Who invaded Alpha?" gives "the person who invaded Alpha". Each replacement adds one hop. Single questions count as one
hop, although some of them have two. The grammar of the questions is rough.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyrag.cli.main import guarded
from pyrag.embedded.lexicon.verbs import base_of, is_base
from pyrag.embedded.planner.goals import goals_of
from pyrag.embedded.planner.planner import parse
from pyrag.evaluation.agent_behaviour import depths
from pyrag.evaluation.reports.tables import depth_table

_NAME = r"[A-Z][\w.'-]*(?: (?:of |the |de )?[A-Z][\w.'-]*)*"
_NOUN = r"(?!kind|type|year|percent|name|part|person|other|is|was|are|were|did|does|do)[a-z]+"
_AUXILIARY = r"(?:is|was|are|were|did|does|do|has|had|have|can|could|will|would)\b"
_PASSIVE = r"(?P<clause>[a-z]+ed (?:by|in|for|with|to))"
# Forms of questions, with the description of the answer
_FORMS = tuple(
    (re.compile(pattern), description)
    for pattern, description in (
        (rf"Who (?!{_AUXILIARY})(?P<clause>[a-z]+ .+)", "the person who {clause}"),
        (rf"Wh(?:at|ich) (?P<noun>{_NOUN}) (?P<clause>(?!{_AUXILIARY})[a-z]+(?:ed|s) .+)", "the {noun} that {clause}"),
        (
            rf"Wh(?:at|ich) (?P<noun>{_NOUN}) (?P<be>is|was) (?P<clause>[a-z]+ed (?:by|in|for|at) .+)",
            "the {noun} {clause}",
        ),
        (rf"Where (?P<be>is|was) (?P<name>{_NAME}) (?P<clause>[a-z]+(?: .+)?)", "the place where {name} {be} {clause}"),
        (
            rf"In wh(?:at|ich) (?P<noun>{_NOUN}) (?P<be>is|was) (?P<name>{_NAME}) (?P<clause>[a-z]+(?: .+)?)",
            "the {noun} in which {name} {be} {clause}",
        ),
        (rf"Wh(?:o|at) (?:is|was) the (?P<noun>{_NOUN}) of (?P<name>{_NAME})", "the {noun} of {name}"),
        (rf"Wh(?:o|at) (?:is|was) the (?P<noun>[a-z]+est {_NOUN}) (?P<clause>in {_NAME})", "the {noun} {clause}"),
        (
            rf"Wh(?:at|ich) (?P<noun>{_NOUN}) did (?P<name>{_NAME}) (?P<verb>[a-z]+)(?P<rest>.*)",
            "the {noun} {name} {past}{rest}",
        ),
        (rf"Who(?:m)? did (?P<name>{_NAME}) (?P<verb>[a-z]+)(?P<rest>.*)", "the person whom {name} {past}{rest}"),
        (
            rf"(?:In|At|On) wh(?:at|ich) (?P<noun>{_NOUN}) did (?P<name>{_NAME}) (?P<verb>[a-z]+)(?P<rest>.*)",
            "the {noun} where {name} {past}{rest}",
        ),
        (rf"Where did (?P<name>{_NAME}) (?P<verb>[a-z]+)(?P<rest>.*)", "the place that {name} {past}{rest} in"),
        (
            rf"Wh(?:at|ich) (?P<noun>{_NOUN}) (?P<be>is|was) (?P<name>{_NAME}) {_PASSIVE}",
            "the {noun} that {name} {be} {clause}",
        ),
        (
            rf"(?P<along>Along with|Besides) (?P<other>{_NAME}), wh(?:at|ich) (?:other )?(?P<noun>{_NOUN})"
            rf" (?P<clause>(?!{_AUXILIARY})[a-z]+ed .+)",
            "the {noun} that, along with {other}, {clause}",
        ),
        (rf"Whose (?P<noun>{_NOUN}) (?P<clause>(?!{_AUXILIARY})[a-z]+ed .+)", "the person whose {noun} {clause}"),
        (
            rf"(?P<name>{_NAME}) (?P<be>is|was) {_PASSIVE} wh(?:at|ich) (?P<noun>{_NOUN})",
            "the {noun} {name} {be} {clause}",
        ),
    )
)
# Words before a name that a description can replace
_BEFORE = re.compile(r"\b(?:in|of|to|by|from|with|at|on|for|did|was|is|does|about|against|between|near)$")


@dataclass(frozen=True, slots=True)
class Composer:
    """Generator of composed questions. `answered_by` maps a name to the questions that it answers."""

    questions: list[str]
    answered_by: dict[str, list[str]]
    chance: random.Random

    def compose(self, hops: int) -> Iterator[str]:
        """Yield questions with this number of hops, endlessly."""
        while True:
            made: str | None = self.chance.choice(self.questions)
            for _ in range(hops - 1):
                made = self._deepen(made) if made else None
            if made:
                yield made + "?"

    def _deepen(self, question: str) -> str | None:
        """Return the question with one of its names described by another question; None if that fails."""
        places = list(self._places(question))
        if not places:
            return None
        start, name = self.chance.choice(places)
        description = describe(self.chance.choice(self.answered_by[name]))
        if description is None or name in description or description in question:
            return None
        return question[:start] + description + question[start + len(name) :]

    def _places(self, question: str) -> Iterator[tuple[int, str]]:
        for match in re.finditer(_NAME, question):
            name = match[0].removesuffix("'s")
            if name in self.answered_by and _BEFORE.search(question[: match.start()].rstrip()):
                yield match.start(), name


def describe(question: str) -> str | None:
    """Return a noun phrase that stands for the answer of a question and contains a name; None if no form matches."""
    for pattern, description in _FORMS:
        match = pattern.fullmatch(question)
        parts = match.groupdict() if match else {}
        past = past_of(parts["verb"]) if "verb" in parts else ""
        if match and ("verb" not in parts or past):
            phrase = description.format(**parts, past=past)
            return phrase if re.search(r" [A-Z]", phrase) else None
    return None


def past_of(base: str) -> str:
    """Return the past tense of a verb, such as "stopped" for "stop"; empty if the planner does not know the verb."""
    formed = (f"{base}d" if base.endswith("e") else f"{base}ed", f"{base[:-1]}ied", f"{base}{base[-1]}ed")
    return next((form for form in formed if is_base(base) and base_of(form) == base), "")


def composer(data: Path, seed: int) -> Composer:
    questions: list[str] = []
    answered_by: dict[str, list[str]] = defaultdict(list)
    with gzip.open(data / "squad" / "train_full_questions.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            question, answer = row["question"].rstrip("? "), row["answers"][0]
            if not (5 <= len(question.split()) <= 14 and question.isascii()):
                continue
            questions.append(question)
            if re.fullmatch(_NAME, answer) and describe(question):
                answered_by[answer].append(question)
    return Composer(questions, answered_by, random.Random(seed))  # noqa: S311 - a sample, no secret


def searches(question: str) -> int:
    return sum(bool(goal.search) for goal in goals_of(question, parse(question)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of sets in the common layout")
    parser.add_argument("--count", type=int, default=1000, help="questions of each number of hops")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    made = composer(options.data, options.seed)
    planned = [
        (hops, searches(question))
        for hops in (1, 2, 3, 4)
        for question, _ in zip(made.compose(hops), range(options.count), strict=False)
    ]
    print(depth_table(depths(planned)))
    for hops in (1, 2, 3, 4):
        more = [count > hops for known, count in planned if known == hops]
        print(f"{hops} hops: {100 * sum(more) / len(more):.1f} % with more searches")


if __name__ == "__main__":
    guarded(main)
