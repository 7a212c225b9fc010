"""Objections to an answer whose sentence is about a different thing than the question.

A network that scores spans may mark the predecessor's birthday instead of the successor's, or the first album's name
instead of the second's. The checks compare the question's names, numbers and modifiers with the sentence and its page.
They only object to an evident conflict, because a page may use other words for the same thing.
"""

from __future__ import annotations

import re

from pyrag.embedded.lexicon import words
from pyrag.embedded.lexicon.measures import ORDINALS
from pyrag.embedded.lexicon.times import SEASONS
from pyrag.embedded.lexicon.word_classes import QUESTION_OPENERS
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.neural.kinds import other_kind
from pyrag.embedded.reader.neural.times import other_number
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import Sentence, fold, holds
from pyrag.trace.sentences import UPPER_CLASS

_NUMBERED = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th")
# Words of the same class exclude each other: a sentence about the north tower is not about the south tower.
_CLASSES = (
    {*ORDINALS, *_NUMBERED, "last", "final"},
    words("north south northern southern"),
    words("east west eastern western"),
    words("eldest oldest youngest"),
    words("elder older younger"),
    words("former current previous present"),
    words("upper lower"),
    words("left right"),
    SEASONS,
    words("largest smallest biggest"),
    words("highest lowest"),
    words("longest shortest"),
    words("maternal paternal"),
)
_SYNONYMS = dict(zip(_NUMBERED, ORDINALS, strict=True))
_SYNONYMS |= {"northern": "north", "southern": "south", "eastern": "east", "western": "west", "oldest": "eldest"}
_SYNONYMS |= {"older": "elder", "biggest": "largest", "present": "current", "previous": "former", "final": "last"}
# Letters and digits in one word, as in "TW-7" and "B52". Numbers without letters are years and amounts.
_IDENTIFIER = re.compile(r"(?<![\w-])(?=[\w-]*\d)([^\W\d_][^\W_]*-?)(\d[\w-]*)(?![\w-])")
_NAME = re.compile(rf"[{UPPER_CLASS}][\w'’.-]*(?:\s+(?:(?:of|de|von|van|du|la|the)\s+)?[{UPPER_CLASS}][\w'’.-]*)*")
_WORDS_OF_RELATIVES = {
    "successor": ("succe", "follow", "replac", "took over"),
    "predecessor": ("predecess", "preced", "succe", "replac", "before"),
    "father": ("father", "son", "daughter", "child", "parent"),
    "mother": ("mother", "son", "daughter", "child", "parent"),
    "brother": ("brother", "sibling"),
    "sister": ("sister", "sibling"),
    "son": ("son", "father", "mother", "child"),
    "daughter": ("daughter", "father", "mother", "child"),
    "wife": ("wife", "married", "husband", "spouse", "widow"),
    "husband": ("husband", "married", "wife", "spouse", "widow"),
}
# In "the successor of Ann", the question is about another person than Ann.
_RELATIVE = re.compile(rf"\bthe ({'|'.join(_WORDS_OF_RELATIVES)})s? (?:of|to) (?=[^a-z\s])")
# Relations of questions that ask for the relative itself, not for a fact about the relative.
_KIN = frozenset({"father", "mother", "parents", "child", "sibling", "spouse"})
_ASKS_FACT = re.compile(r"\b(?:born|die[ds]?|buried|study|studied|live[ds]?|nationality|birth|death|work(?:s|ed)?)\b")
_ROUTE = re.compile(rf"\b(?:from|between) ({_NAME.pattern}) (?:to|and) ({_NAME.pattern})")
_OPENING = QUESTION_OPENERS | words("name list both it its his her their he she they")
_PRONOUN = re.compile(r"(?:He|She|They|His|Her|Their)\b")
_ABOUT = 0.6  # from this match on, the pronouns of a page refer to the question's subject


def objection(analysis: QuestionAnalysis, page: View, answer: str) -> str:
    """Return the reason why an answer on a page does not answer the question, or "".

    This requires an objection to each sentence of the page that contains the answer.

    Args:
        analysis: Analysis of the question.
        page: Page of the answer.
        answer: Answer as it is on the page.
    """
    sentences = [sentence for sentence in page.sentences if holds(sentence.text, answer)]
    if not sentences:
        return ""
    objections = [_objection(analysis, page, sentence, answer) for sentence in sentences]
    return objections[0] if all(objections) else ""


def _objection(analysis: QuestionAnalysis, page: View, sentence: Sentence, answer: str) -> str:
    """Return the first objection to a sentence that contains an answer, or ""."""
    return (
        _other_identifier(analysis, page, sentence)
        or other_number(analysis.question, page, sentence)
        or other_kind(analysis, page, sentence, answer)
        or _other_modifier(analysis, sentence)
        or _other_relative(analysis, sentence)
        or _other_journey(analysis, page)
        or _other_subject(analysis, page, sentence, answer)
    )


def _other_identifier(analysis: QuestionAnalysis, page: View, sentence: Sentence) -> str:
    """Return an objection if the sentence or page has only another identifier of the same series.

    A sentence about the "TW-9" does not answer a question about the "TW-7".
    """
    asked = _series_of_identifiers(analysis.question)
    for text in (sentence.text, page.title):
        stated = _series_of_identifiers(text)
        if stated.keys() & asked.keys():
            return ""
        if other := next((name for name, series in stated.items() if series in asked.values()), ""):
            return f"the passage is about {other.upper()}"
    return ""


def _series_of_identifiers(text: str) -> dict[str, str]:
    """Return the letters of each identifier of a text: "tw-" for "tw-7"."""
    return {match[0].lower(): match[1].lower() for match in _IDENTIFIER.finditer(text)}


def _other_modifier(analysis: QuestionAnalysis, sentence: Sentence) -> str:
    """Return an objection if the sentence has another word of a class: "south" for "north"."""
    question_words, sentence_words = _modifiers(analysis.question), _modifiers(sentence.text)
    for word_class in _CLASSES:
        asked, stated = question_words & word_class, sentence_words & word_class
        if asked and stated and not _canonical(asked) & _canonical(stated):
            return f"the sentence says {min(stated)}, the question {min(asked)}"
    return ""


def _other_relative(analysis: QuestionAnalysis, sentence: Sentence) -> str:
    """Return an objection if the question is about a relative or successor whom the sentence does not mention."""
    relative = _RELATIVE.search(analysis.question)
    if relative is None or analysis.relation in _KIN:
        return ""
    text = sentence.text.lower()
    if any(word in text for word in _WORDS_OF_RELATIVES[relative[1].lower()]):
        return ""
    return f"the sentence says nothing of a {relative[1].lower()}" if _ASKS_FACT.search(analysis.question) else ""


def _other_journey(analysis: QuestionAnalysis, page: View) -> str:
    """Return an objection if the question is about a route between two places, and the page does not name both."""
    route = _ROUTE.search(analysis.question)
    if route is None:
        return ""
    text = " ".join((f" {fold(page.title)}", *(fold(line.text) for line in page.sentences))) + " "
    missing = next((name for name in route.groups() if not _mentioned(name, text)), "")
    return f"the passage does not name {missing}" if missing else ""


def _modifiers(text: str) -> set[str]:
    """Return the modifiers in a text: lower-case words, except before "time" as in "the last time"."""
    return {word for word in re.findall(r"[\w'’-]+(?! times?\b)", text) if word == word.lower()}


def _canonical(words: set[str]) -> set[str]:
    """Return words with synonyms replaced by one form: "north" for "northern"."""
    return {_SYNONYMS.get(word, word) for word in words}


def _other_subject(analysis: QuestionAnalysis, page: View, sentence: Sentence, answer: str) -> str:
    """Return an objection if the sentence is about another person, by name or pronoun.

    A page about the question's subject is never objected to.
    """
    names = names_of_question(analysis.question)
    if not names or page.about >= _ABOUT:
        return ""
    if any(_named_in(name, sentence.text) for name in names):
        return ""
    before = f" {fold(page.title)} " + " ".join(fold(line.text) for line in page.sentences[: sentence.index]) + " "
    if _PRONOUN.match(sentence.text):
        return "" if any(_mentioned(name, before) for name in names) else "it is said of somebody else"
    opening = _opening_name(sentence.text)
    if not opening or fold(answer) in fold(opening) or _modifiers(analysis.question) & set(fold(opening).split()):
        return ""
    return "" if any(_named_in(name, opening) for name in names) else f"it is said of {opening}"


def _opening_name(sentence: str) -> str:
    """Return the name of at least two words that starts a sentence, or "".

    A single word does not count, because any first word has a capital.
    """
    match = _NAME.match(sentence)
    name = match[0].removeprefix("The ").removeprefix("A ") if match else ""
    return name if " " in name and name.split()[0].lower() not in _OPENING else ""


def names_of_question(question: str) -> list[str]:
    """Return the names in a question, in its order, without question words before them."""
    names = []
    for match in _NAME.finditer(question):
        parts = match[0].split()
        while parts and parts[0].lower() in _OPENING:
            parts.pop(0)
        if parts:
            names.append(" ".join(parts).strip(" .'’-"))
    return names


def _mentioned(name: str, text: str) -> bool:
    """Return whether a folded text has a word of a name, other than the common ones."""
    return any(f" {word} " in text for word in fold(name).split() if word not in _OPENING and len(word) > 1)


def _named_in(name: str, sentence: str) -> bool:
    """Return whether a sentence names a thing, in full or in part.

    A sentence about "Maeve Orr" does not name "Declan Orr".
    """
    similar = [other for other in names_of_question(sentence) if _mentioned(name, f" {fold(other)} ")]
    return any(not _is_relative(name, other) for other in similar)


def _is_relative(name: str, other: str) -> bool:
    """Return whether two names have the same surname and different first names."""
    first, second = fold(name).split(), fold(other).split()
    if min(len(first), len(second)) < 2:
        return False
    return first[-1] == second[-1] and not set(first[:-1]) & set(second[:-1])
