"""The subject of a clause: what a claim is about, by name, by a pronoun or by its page, or something else."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrag.embedded.reader.claims.claim import Claim, content_words
from pyrag.embedded.reader.claims.clauses import Clause
from pyrag.embedded.reader.claims.opposites import are_alike
from pyrag.embedded.reader.claims.values import same_name, values_of
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import STOPWORDS, Sentence
from pyrag.trace.sentences import UPPER_CLASS

_OPENING = re.compile(
    rf"(?:(?:In|On|At|By|Since|After|From) [^,]{{1,40}}, )?(?:The |A |An )?(?P<name>[{UPPER_CLASS}][\w'’.-]*(?: (?:of |the |de |von )*[{UPPER_CLASS}0-9][\w'’.-]*)*)"
)
_NOUN = re.compile(
    r"(?:and |but )?(?:The|Its|His|Her|Their|An?|the|its|his|her|their|an?) (?P<noun>(?:[\w-]+ ){0,3}?[\w-]+?)"
    r"(?:'s| of | for | is\b| was\b| are\b| were\b| has\b| have\b| had\b| can\b| cannot\b| will\b| does\b| did\b| [a-z]+s\b"
    r"| [a-z]+ed\b)"
)
_FAR = 0.9  # the subject is named elsewhere on the page only


@dataclass(frozen=True, slots=True)
class Standing:
    """The relation of a clause to the claim's subject; `context` and `names` are what its page is about."""

    weight: float
    named: bool
    held: bool  # it has the claim's subject in its own words
    other: bool  # the clause is about another thing of the page
    context: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Traces of a claim's subject on a page, found once for all clauses."""

    page: View
    context: tuple[str, ...]  # words and numbers of the title
    titles: tuple[str, ...]  # names of the title
    titled: frozenset[str]  # names of the subject that the title stands for
    named: frozenset[str]  # names of the subject that are on the page
    words: frozenset[str]  # small words of the subject that are on the page


def surroundings(claim: Claim, page: View) -> Surroundings:
    """Return what a page has of a claim's subject.

    Args:
        claim: The claim.
        page: The passage.
    """
    title, asked = values_of(page.title), claim.subject_values
    titles = (*title.names, *values_of(page.base).names)
    numbers = (each.text for each in title.amounts)
    context = (*numbers, *content_words(title.rest), *content_words(" ".join(name.lower() for name in title.names)))
    names = {name for each in page.sentences for name in values_of(each.text).names} if asked.names else set()
    lowers = {word for each in page.sentences for word in each.lowers}
    return Surroundings(
        page,
        context,
        titles,
        frozenset(name for name in asked.names if _is_titled(name, titles, names)),
        frozenset(name for name in asked.names if any(same_name(name, each) for each in names)),
        frozenset(word for word in content_words(asked.rest) if any(are_alike(word, each) for each in lowers)),
    )


def standing(claim: Claim, clause: Clause, around: Surroundings, sentence: Sentence) -> Standing | None:
    """Return how a clause stands to the claim's subject; None if it cannot be about it.

    Args:
        claim: The claim.
        clause: A clause of the sentence.
        around: What the page has of the subject.
        sentence: The sentence.
    """
    page, asked = around.page, claim.subject_values
    missing = [name for name in asked.names if not any(same_name(name, each) for each in clause.values.names)]
    named, absent = not missing, False
    for name in missing:
        if name not in around.titled and not _refers(name, clause, page, sentence):
            if name not in around.named or not _strangers(claim, clause, ()):
                return None
            absent = True
    other = absent or (bool(missing) and _about_other(claim, clause, sentence, around.titles))
    near = _nearness(claim, clause, around, sentence)
    if near is None or not _has_numbers(claim, clause, page, sentence):
        return None
    words = content_words(asked.rest)
    held = claim.subject.lower() == "there" or any(are_alike(word, each) for word in words for each in clause.words)
    if not other and not named and not held and _foreign_noun(claim, clause, around.context, page):
        return None
    if not asked.names:
        named = held
        if not held and (_foreign_noun(claim, clause, around.context, page) or not _pronoun(clause, sentence)):
            return None
    return Standing(near, named, named or held, other, around.context, around.titles)


def _is_titled(name: str, titles: tuple[str, ...], names: set[str]) -> bool:
    """Return whether a title names the subject, or its part without a number: "Zephyr fan" for "Zephyr 200"."""
    if any(same_name(name, each) for each in titles):
        return True
    bare = re.sub(r"\s+\S*\d\S*$", "", name)
    numbered = {each for each in names if each.startswith(f"{bare} ")}
    return bare != name and numbered == {name} and any(same_name(bare, each) for each in titles)


def _about_other(claim: Claim, clause: Clause, sentence: Sentence, titles: tuple[str, ...]) -> bool:
    """Return whether the clause has a subject of its own: a name that is neither claimed of nor the page's."""
    mine = (*claim.subject_values.names, *claim.values.names, *titles)
    text = clause.text if _has_subject(clause.text) else sentence.text
    opening = _OPENING.match(text)
    opens = opening["name"] if opening and opening["name"].split()[0].lower() not in STOPWORDS else ""
    if (
        opens
        and " by " not in f" {claim.predicate} "
        and (" " in opens or not text.startswith(opens) or text is not sentence.text or len(opens) > 3)
    ):
        known = any(same_name(each, opens) or same_name(opens, each) for each in mine)
        if (
            not known
            and values_of(opens).names
            and opens.lower() not in {word.lower() for word in _small_words(sentence)}
        ):
            return True
    is_office = re.match(r"the ", claim.predicate) is not None
    return is_office and bool(_strangers(claim, clause, titles))


def _strangers(claim: Claim, clause: Clause, titles: tuple[str, ...]) -> list[str]:
    """Return the names of a clause that are neither the claim's nor the page's."""
    mine = (*claim.subject_values.names, *claim.values.names, *titles)
    return [
        each for each in clause.values.names if not any(same_name(one, each) or same_name(each, one) for one in mine)
    ]


_OPENS_WITH_PRONOUN = re.compile(r"(?:It|He|She|They|His|Her|Its|Their)\b")


def _refers(name: str, clause: Clause, page: View, sentence: Sentence) -> bool:
    """Return whether a clause that does not name the subject may mean it: by a pronoun right after its name."""
    start = sentence.text.find(clause.text)
    before = sentence.text[: max(start, 0)]
    if re.match(r"(?:and |but )?(?:it|he|she|they|his|her|its|their)\b", clause.text, re.IGNORECASE) and sentence.index:
        at = sentence.index - 1
        while at and _OPENS_WITH_PRONOUN.match(page.sentences[at].text):
            at -= 1
        before = f"{page.sentences[at].text} {before}"
    return any(same_name(name, each) for each in values_of(before).names)


def _has_numbers(claim: Claim, clause: Clause, page: View, sentence: Sentence) -> bool:
    """Return whether the numbers that name the subject are on the page before the clause: "proposal 7", "tarn 1.8"."""
    if not claim.subject_values.amounts:
        return True
    text = " ".join((page.title, *(each.text for each in page.sentences[: sentence.index]), clause.text))
    return all(
        re.search(rf"(?<![\w.,]){re.escape(each.text)}(?![\w%])(?!\.\d)", text) for each in claim.subject_values.amounts
    )


def _small_words(sentence: Sentence) -> set[str]:
    return {word for word in sentence.words[1:] if word.islower()}


def _has_subject(text: str) -> bool:
    return bool(
        re.match(rf"(?:and |but )?(?:[{UPPER_CLASS}]|the |its |his |her |their |it |he |she |they |an? )", text)
    )


def _nearness(claim: Claim, clause: Clause, around: Surroundings, sentence: Sentence) -> float | None:
    """1 if all small words of the subject are in the clause or the title, less if further away; None if missing."""
    weight = 1.0
    before = sentence.text[: max(sentence.text.find(clause.text), 0)].lower()
    for word in content_words(claim.subject_values.rest):
        if any(are_alike(word, each) for each in (*clause.words, *around.context)):
            continue
        if any(are_alike(word, each) for each in sentence.lowers):
            if _has_subject(clause.text) or not any(are_alike(word, each) for each in content_words(before)):
                return None  # clauses read together will have the word
            weight = min(weight, 0.97)
        elif word in around.words:
            weight = min(weight, _FAR)
        else:
            return None
    return weight


def _pronoun(clause: Clause, sentence: Sentence) -> bool:
    return bool(
        re.match(r"(?:and |but )?(?:it|he|she|they|we|i|you|this|these|which|who)\b", clause.text, re.IGNORECASE)
    ) or not (clause.opening and _has_subject(sentence.text))


def _foreign_noun(claim: Claim, clause: Clause, context: tuple[str, ...], page: View) -> bool:
    """Return whether the clause is about a part or a thing that the claim does not name: "The battery is removable"."""
    match = _NOUN.match(clause.text)
    if match is None:
        return False
    small = [word for word in match["noun"].split() if word[0].islower()]
    if not small:
        return False
    noun = small[-1]
    lead = page.lead.lowers if page.lead else ()
    claimed = content_words(f"{claim.subject} {claim.predicate}".lower())
    known = (*claimed, *context, *lead[:14])
    return not any(are_alike(noun, each) for each in known)
