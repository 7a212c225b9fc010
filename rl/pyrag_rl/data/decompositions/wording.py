"""Sub-questions as an agent would ask them: without a data set's shorthand, as one sentence with a question mark."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyrag_rl.data.decompositions.source import GoldStep

REFERENCE = re.compile(r"#(\d+)")
_SHORTHAND = re.compile(r"\s*>>\s*")
_SPACE_BEFORE = re.compile(r"\s+(?=['’]s\b|[?,.;:!)])")
_ASKING = re.compile(
    r"(?i)(?:who|whom|whose|what|which|when|where|why|how|in|on|at|is|are|was|were|do|does|did|has|have|can|from|to|of)\b"
)
# Questions for Wikidata's relations whose "What is the RELATION of X?" would not be English.
_BY_RELATION = {
    "author": "Who is the author of {}?",
    "based on": "What is {} based on?",
    "capital of": "What is {} the capital of?",
    "cast member": "Who starred in {}?",
    "contains administrative territorial entity": "What administrative district does {} contain?",
    "continent": "On which continent is {}?",
    "country of origin": "From which country does {} come?",
    "crosses": "What does {} cross?",
    "developer": "Who developed {}?",
    "distributed by": "Who distributed {}?",
    "drafted by": "Which team drafted {}?",
    "followed by": "What came after {}?",
    "follows": "What came before {}?",
    "headquarters location": "Where are the headquarters of {}?",
    "instance of": "What is {} an instance of?",
    "instrument": "Which instrument does {} play?",
    "league": "In which league does {} play?",
    "licensed to broadcast to": "Which city is {} licensed to broadcast to?",
    "located in or next to body of water": "Which body of water is {} next to?",
    "located in the administrative territorial entity": "In which state, county or district is {} located?",
    "located on terrain feature": "On which island or other landform is {} located?",
    "location": "Where is {} located?",
    "location of formation": "Where was {} formed?",
    "lyrics by": "Who wrote the lyrics of {}?",
    "member of": "Of which group is {} a member?",
    "member of political party": "Of which political party is {} a member?",
    "member of sports team": "For which sports team does {} play?",
    "military branch": "In which military branch did {} serve?",
    "mouth of the watercourse": "Into what does {} flow?",
    "named after": "After whom or what is {} named?",
    "notable work": "What is a notable work of {}?",
    "occupant": "Who occupies {}?",
    "operator": "Who operates {}?",
    "owned by": "Who owns {}?",
    "part of": "What is {} part of?",
    "part of the series": "Of which series is {} part?",
    "participant": "Who took part in {}?",
    "participant in": "In what did {} take part?",
    "present in work": "In which work does {} appear?",
    "residence": "Where does {} live?",
    "screenwriter": "Who wrote the screenplay of {}?",
    "shares border with": "What shares a border with {}?",
    "winner": "Who won {}?",
}
_REWORDED = (
    (re.compile(r"What is the birthplace \(country only\) of (.+)\?"), r"In which country was \1 born?"),
    (re.compile(r"What is the birthdate of (.+)\?"), r"When was \1 born?"),
)


def asked_of(step: GoldStep) -> str:
    """Return a step's question, in which `#1` stands for the answer of the first step."""
    text = step.question
    subject, relation = subject_of(step)
    if relation:
        form = _BY_RELATION.get(relation)
        text = form.format(subject) if form else step.plain or f"What is the {relation} of {subject}?"
    text = _SPACE_BEFORE.sub("", " ".join(text.split()))
    for pattern, better in _REWORDED:
        text = pattern.sub(better, text)
    if not text.endswith("?") and _ASKING.match(text):
        text = f"{text.rstrip('.')}?"
    return text[:1].upper() + text[1:]


def subject_of(step: GoldStep) -> tuple[str, str]:
    """Return subject and relation of a step in MuSiQue's shorthand ("Dracula >> director"); empty for other steps."""
    subject, *relation = _SHORTHAND.split(step.question.strip(), maxsplit=1)
    return (subject, relation[0]) if relation else ("", "")


def filled(question: str, answers: Mapping[int, str]) -> str:
    """Return a question with earlier answers filled in.

    Args:
        question: Question in which `#1` stands for the answer of step 1.
        answers: Answers by the numbers of their steps.
    """
    return REFERENCE.sub(lambda match: answers.get(int(match[1]), match[0]), question)
