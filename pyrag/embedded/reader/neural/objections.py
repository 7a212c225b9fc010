"""Objections to an answer: the sentence it stands in is about another thing than the question.

A reader that scores spans finds the birthday of the predecessor where that of the successor is asked for, and the
second album's name where only the first one's stands. Each check compares names, numbers of things and modifiers of
the question with the answer's sentence and page. An objection needs a conflict that shows, never a mere lack of
overlap, since pages word things in many ways.
"""

from __future__ import annotations

import re

from pyrag.embedded.lexicon import words
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.neural.kinds import other_kind
from pyrag.embedded.reader.neural.times import other_number
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import Sentence, fold
from pyrag.trace.sentences import UPPER_CLASS

_NUMBERS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_NUMBERED = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th")
# Words of one class exclude each other: a sentence on the north tower says nothing of the south tower.
_CLASSES = (
    {*_NUMBERS, *_NUMBERED, "last", "final"},
    words("north south northern southern"),
    words("east west eastern western"),
    words("eldest oldest youngest"),
    words("elder older younger"),
    words("former current previous present"),
    words("upper lower"),
    words("left right"),
    words("summer winter spring autumn"),
    words("largest smallest biggest"),
    words("highest lowest"),
    words("longest shortest"),
    words("maternal paternal"),
)
_SAME = dict(zip(_NUMBERED, _NUMBERS, strict=True))
_SAME |= {"northern": "north", "southern": "south", "eastern": "east", "western": "west", "oldest": "eldest"}
_SAME |= {"older": "elder", "biggest": "largest", "present": "current", "previous": "former", "final": "last"}
# Letters and digits in one word: "TW-7", "B52". Figures alone are years and amounts.
_IDENTIFIER = re.compile(r"(?<![\w-])(?=[\w-]*\d)([^\W\d_][^\W_]*-?)(\d[\w-]*)(?![\w-])")
_NAME = re.compile(rf"[{UPPER_CLASS}][\w'’.-]*(?:\s+(?:(?:of|de|von|van|du|la|the)\s+)?[{UPPER_CLASS}][\w'’.-]*)*")
# "the successor of Ann", "Ann's wife": what follows is asked of another person than Ann.
_RELATIVE = re.compile(
    r"\bthe (successor|predecessor|father|mother|brother|sister|son|daughter|wife|husband)s? (?:of|to) (?=[^a-z\s])"
)
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
_OF_KIN = frozenset(
    {"father", "mother", "parents", "child", "sibling", "spouse"}
)  # then the person itself is asked for
_ASKS_FACT = re.compile(r"\b(?:born|die[ds]?|buried|study|studied|live[ds]?|nationality|birth|death|work(?:s|ed)?)\b")
_ROUTE = re.compile(rf"\b(?:from|between) ({_NAME.pattern}) (?:to|and) ({_NAME.pattern})")
_OPENING = words("""
    in on at to for from by with under who whom whose what which when where why how is are was were do does did has have
    had can could the a an and of name list during both it its his her their he she they
""")
_PRONOUN = re.compile(r"(?:He|She|They|His|Her|Their)\b")
_ABOUT = 0.6  # how surely a page must be about the question's subject for its pronouns to mean it


def objection(analysis: QuestionAnalysis, page: View, answer: str) -> str:
    """Return why `answer` on this page does not answer the question, or "".

    Args:
        analysis: The question.
        page: The passage that the answer was found in.
        answer: Its text, as it stands there.
    """
    holding = [each for each in page.sentences if _holds(each, answer)]
    if not holding:
        return ""
    found = [_objection(analysis, page, each, answer) for each in holding]
    return found[0] if all(found) else ""


def _objection(analysis: QuestionAnalysis, page: View, sentence: Sentence, answer: str) -> str:
    return (
        _other_identifier(analysis, page, sentence)
        or other_number(analysis.question, page, sentence)
        or other_kind(analysis, page, sentence, answer)
        or _other_modifier(analysis, sentence)
        or _other_relative(analysis, sentence)
        or _other_journey(analysis, page)
        or _other_subject(analysis, page, sentence, answer)
    )


def _holds(sentence: Sentence, answer: str) -> bool:
    return f" {fold(answer)} " in f" {fold(sentence.text)} "


def _other_identifier(analysis: QuestionAnalysis, page: View, sentence: Sentence) -> str:
    """The question names a thing by letters and number, the sentence or its page another of that make."""
    asked = {found[0].lower(): found[1].lower() for found in _IDENTIFIER.finditer(analysis.question)}
    for place in (sentence.text, page.title):
        named = {found[0].lower(): found[1].lower() for found in _IDENTIFIER.finditer(place)}
        if named.keys() & asked.keys():
            return ""
        if other := next((name for name, make in named.items() if make in asked.values()), ""):
            return f"the passage is about {other.upper()}"
    return ""


def _other_modifier(analysis: QuestionAnalysis, sentence: Sentence) -> str:
    asked, said = _modifiers(analysis.question), _modifiers(sentence.text)
    for kind in _CLASSES:
        wanted, there = asked & kind, said & kind
        if wanted and there and not _plain(wanted) & _plain(there):
            return f"the sentence says {min(there)}, the question {min(wanted)}"
    return ""


def _other_relative(analysis: QuestionAnalysis, sentence: Sentence) -> str:
    """The question is about somebody's successor or kin, the sentence names that somebody and no such person."""
    asked = _RELATIVE.search(analysis.question)
    if asked is None or analysis.relation in _OF_KIN:
        return ""
    said = sentence.text.lower()
    if any(word in said for word in _WORDS_OF_RELATIVES[asked[1].lower()]):
        return ""
    return f"the sentence says nothing of a {asked[1].lower()}" if _ASKS_FACT.search(analysis.question) else ""


def _other_journey(analysis: QuestionAnalysis, page: View) -> str:
    """The question goes from one place to another, and the page does not name both."""
    route = _ROUTE.search(analysis.question)
    if route is None:
        return ""
    text = " ".join((f" {fold(page.title)}", *(fold(each.text) for each in page.sentences))) + " "
    missing = next((name for name in route.groups() if not _mentioned(name, text)), "")
    return f"the passage does not name {missing}" if missing else ""


def _modifiers(text: str) -> set[str]:
    """Words in lower case, which are no part of a name; "the last time" counts nothing."""
    return {word for word in re.findall(r"[\w'’-]+(?! times?\b)", text) if word == word.lower()}


def _plain(found: set[str]) -> set[str]:
    return {_SAME.get(word, word) for word in found}


def _other_subject(analysis: QuestionAnalysis, page: View, sentence: Sentence, answer: str) -> str:
    """The sentence speaks of somebody else by name or pronoun, on a page that is not the subject's."""
    names = names_of_question(analysis.question)
    if not names or page.about >= _ABOUT:
        return ""
    if any(_named_in(name, sentence.text) for name in names):
        return ""
    before = f" {fold(page.title)} " + " ".join(fold(each.text) for each in page.sentences[: sentence.index]) + " "
    if _PRONOUN.match(sentence.text):
        return "" if any(_mentioned(name, before) for name in names) else "it is said of somebody else"
    opening = _opening_name(sentence.text)
    if not opening or fold(answer) in fold(opening) or _modifiers(analysis.question) & set(fold(opening).split()):
        return ""
    return "" if any(_named_in(name, opening) for name in names) else f"it is said of {opening}"


def _opening_name(sentence: str) -> str:
    """The name of two words or more that a sentence begins with. A single word in capitals may be any word there."""
    found = _NAME.match(sentence)
    name = found[0].removeprefix("The ").removeprefix("A ") if found else ""
    return name if " " in name and name.split()[0].lower() not in _OPENING else ""


def names_of_question(question: str) -> list[str]:
    """Names in a question, in its order; its opening words are none."""
    found = []
    for match in _NAME.finditer(question):
        parts = match[0].split()
        while parts and parts[0].lower() in _OPENING:
            parts.pop(0)
        if parts:
            found.append(" ".join(parts).strip(" .'’-"))
    return found


def _mentioned(name: str, text: str) -> bool:
    """True if any word of the name but the commonest stands in the folded text."""
    return any(f" {word} " in text for word in fold(name).split() if word not in _OPENING and len(word) > 1)


def _named_in(name: str, sentence: str) -> bool:
    """True if a sentence names the thing, in full or in part. "Maeve Orr" is not "Declan Orr"."""
    others = [one for one in names_of_question(sentence) if _mentioned(name, f" {fold(one)} ")]
    return any(not _other_person(name, one) for one in others)


def _other_person(name: str, other: str) -> bool:
    """True for two names of the same family."""
    one, two = fold(name).split(), fold(other).split()
    return len(one) > 1 and len(two) > 1 and one[-1] == two[-1] and not set(one[:-1]) & set(two[:-1])
