"""End of a description inside a question, found by counting verbs, since each clause has one verb of its own.

In "How many children did | the man who wrote Alpha while he lived in Beta | have in 1990", the clauses opened by "who"
and "while" have their verbs, so the next verb is the question's. The module uses classes of words, not fixed wordings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyrag.embedded.lexicon import words
from pyrag.embedded.lexicon.verbs import is_base, is_finite, is_participle, is_past, is_present
from pyrag.embedded.lexicon.word_classes import (
    ADVERBS,
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    PHRASAL_PARTICLES,
    PREPOSITIONS,
    PRONOUNS,
    QUESTION_WORDS,
    RELATIVE_PRONOUNS,
    SUBJECT_PRONOUNS,
    SUBORDINATORS,
)
from pyrag.embedded.planner.grammar.names import SMALL, starts_name
from pyrag.embedded.words import is_possessive

Waiting = Literal["base", "participle", "finite", "nothing"]  # form of the question's own verb that is still missing

_NO_ADVERBS = words(
    "early family daily weekly monthly yearly elderly assembly anomaly supply ally rally fly holy monopoly"
)
_FUNCTION = (
    AUXILIARIES
    | PREPOSITIONS
    | DETERMINERS
    | PRONOUNS
    | RELATIVE_PRONOUNS
    | SUBORDINATORS
    | CONJUNCTIONS
    | words("be been being not to")
)
_WITH_COMPLEMENT = words(
    "north south east west northeast northwest southeast southwest adjacent close closer closest near nearer nearest"
    " next opposite similar related home native responsible famous known"
)  # adjectives that follow the noun they describe
_STATES = words("born located based founded is was")
_NO_NOUNS = _FUNCTION | SMALL | PHRASAL_PARTICLES


def plain(word: str) -> str:
    """Return a word in lower case without punctuation."""
    return word.strip(',;:?."“”()').lower()


def is_noun(word: str) -> bool:
    """Return whether a lower-case word may belong to a noun phrase, judged by its spelling."""
    return word[:1].islower() and word.rstrip(",;:") not in _NO_NOUNS and not _is_adverb(word)


def takes_complement(pair: list[str]) -> bool:
    """Return whether an adjective begins a modifier, as in "west of", "adjacent to", "famous for" or "larger than".

    Args:
        pair: The adjective and the word after it. Fewer words begin no modifier.
    """
    if len(pair) == 2 and pair[1] == "than":
        return pair[0].endswith("er") or pair[0] == "other"
    return len(pair) == 2 and pair[0] in _WITH_COMPLEMENT and pair[1] in ("of", "to", "for")


def _is_adverb(word: str) -> bool:
    return word in ADVERBS or (word.endswith("ly") and word not in _NO_ADVERBS)


@dataclass(slots=True)
class _OpenClause:
    """Clause that has not ended yet.

    Args:
        subject: True if its subject was read.
        verb: True if its verb was read.
        relative: True if its relative pronoun is its subject, as in "who wrote".
    """

    subject: bool
    verb: bool = False
    relative: bool = False


class Bounds:
    """Reader of a description's words that stops where the surrounding question continues.

    Call `opens` first, then `end`, both with the position after the description's noun.

    Args:
        tokens: Words of the whole question.
        waiting: Form of the question's own verb that is still missing.
    """

    def __init__(self, tokens: list[str], waiting: Waiting) -> None:
        self.tokens, self.waiting = tokens, waiting
        self.clauses: list[_OpenClause] = []
        self._head = -1  # position of the modifier's first word
        self._verb = -1  # position of the last verb
        self._paired = False  # whether "between" comes earlier, so that "and" separates two descriptions
        self._has_question_word = True  # whether the question's own question word comes earlier

    def end(self, at: int) -> int | None:
        """Return the position after the description's last word; None if one of its clauses lacks a verb.

        Args:
            at: Position of the first word after the description's noun.
        """
        before = {plain(word) for word in self.tokens[: at - 1]}
        self._has_question_word, self._paired = (
            not QUESTION_WORDS.isdisjoint(before),
            "between" in before and "and" not in before,
        )
        while at < len(self.tokens):
            if (at > self._head and self._ends_before(at)) or self._is_stranded(at):
                break
            self._read(at)
            at += 1
            if at < len(self.tokens) and (self._comma_ends(at) or self._owns_as_clause(at - 1)):
                break
        while at and plain(self.tokens[at - 1]) in ADVERBS and at < len(self.tokens):
            at -= 1
        return at if self._complete() else None

    def opens(self, at: int) -> bool:
        """Return whether a modifier begins right after the noun, and open its clause if it has no pronoun.

        Args:
            at: Position of the first word after the description's noun.
        """
        word, self._head = self._word(at), at
        described = at + _is_adverb(word)  # "directly west of Alpha"
        if word in RELATIVE_PRONOUNS | PREPOSITIONS or takes_complement(self.tokens[described : described + 2]):
            return True
        if not self._name(at) and is_participle(word):
            return self._is_modifier(at)
        if not self._name(at) and word.endswith("ing"):
            return True
        if self._name(at) or word in DETERMINERS | PRONOUNS:
            if not self._has_verb_next(at):
                return False
            self.clauses.append(_OpenClause(subject=self._name(at) or word in PRONOUNS))
            return True
        return False

    def _is_modifier(self, at: int) -> bool:
        """Return whether a participle after the noun describes the noun and is not the question's own verb."""
        if self.waiting == "finite":  # "the team | owned by Alpha | plays" has a later verb
            return self._word(at + 1) in PREPOSITIONS and self._finites(at + 2) > 0
        return self.waiting != "participle" or not self._is_own_participle(at)

    def _is_stranded(self, at: int) -> bool:
        """Return whether the question's own preposition follows: "Where is the man who wrote Alpha | from"."""
        if not self._complete() or self._word(len(self.tokens) - 1) not in PREPOSITIONS:
            return False
        rest = [plain(word) for word in self.tokens[at:]]
        if len(rest) == 1:
            return bool(self.clauses) and self.clauses[-1].relative
        return at - 1 != self._verb and (rest == ["part", "of"] or (len(rest) == 3 and rest[::2] == ["the", "of"]))

    def _has_verb_next(self, at: int) -> bool:
        """Return whether the noun phrase at a position is the subject of a following verb: "the city | Alpha lost"."""
        if not self._name(at):
            return True
        at = self._after_subject(at)
        if self.waiting == "finite":  # both the clause and the question need a verb
            return self._is_finite(at) and self._finites(at + 1) > 0
        return self._is_finite(at) and not self._is_own(at)

    def _after_subject(self, at: int) -> int:
        """Return the position after a subject (a name, or a thing that it owns) and after a following adverb."""
        while (self._name(at) and not is_possessive(self.tokens[at])) or self._is_inside_name(at):
            at += 1
        if at < len(self.tokens) and self._name(at):
            at += 1
            while at < len(self.tokens) and is_noun(self._word(at)) and not self._is_finite(at):
                at += 1
        return at + (self._word(at) in ADVERBS)

    def _is_inside_name(self, at: int) -> bool:
        """Return whether a small word joins two parts of a name, as in "Love in the Ruins"."""
        small = [self._word(later) in SMALL for later in (at, at + 1)]
        return small[0] and (self._name(at + 1) or (small[1] and self._name(at + 2)))

    def _is_finite(self, at: int) -> bool:
        """Return whether the word at a position may be a finite verb."""
        word = self._word(at)
        return not self._name(at) and is_finite(word)

    def _finites(self, at: int) -> int:
        """Count the finite verbs from a position on. A verb and its auxiliary, such as "was rescued", count once."""
        later = range(at, len(self.tokens))
        return sum(self._is_finite(place) and self._word(place - 1) not in AUXILIARIES for place in later)

    def _complete(self) -> bool:
        """Return whether every open clause has its verb."""
        return all(clause.verb for clause in self.clauses)

    def _word(self, at: int) -> str:
        """Return the word at a position in lower case, without punctuation; empty after the question's end."""
        word = plain(self.tokens[at]) if 0 <= at < len(self.tokens) else ""
        return word[:-2] if word.endswith("'s") and self._owns_as_clause(at) else word

    def _owns_as_clause(self, at: int) -> bool:
        """Return whether a possessive ends a whole clause, as in "the band that Alpha sang for's founder"."""
        word = self.tokens[at].removesuffix("'s")
        return word != self.tokens[at] and (word in PREPOSITIONS | _STATES or is_past(word))

    def _name(self, at: int) -> bool:
        """Return whether the word at a position belongs to a name."""
        return 0 <= at < len(self.tokens) and starts_name(self.tokens[at].strip(',"“”'))

    def _ends_before(self, at: int) -> bool:
        """Return whether the description ends before a position."""
        word = self._word(at)
        if self._name(at) or not self._complete():
            return False
        if not self._has_question_word and (QUESTION_WORDS - RELATIVE_PRONOUNS) & {
            word,
            self._word(at + 1) if word in PREPOSITIONS else "",
        }:
            return True  # "… | during what century"
        if word in AUXILIARIES:
            return self._word(at - 1) not in RELATIVE_PRONOUNS | CONJUNCTIONS | {"to"}
        return self._is_own(at) or (self._paired and word == "and" and self._word(at + 1) in DETERMINERS)

    def _is_own(self, at: int) -> bool:
        """Return whether a word is the question's own verb."""
        if self.waiting == "base":
            return self._is_own_base(at)
        if self.waiting == "finite":
            return self._is_finite(at) and not self._explained(at)
        return self.waiting == "participle" and self._is_own_participle(at)

    def _is_own_base(self, at: int) -> bool:
        """Return whether a word is the base form that belongs to the question's "did".

        It is the first word that can only be a verb, or else the last word that may be a verb.
        """
        if self._likely_base(at) == 2:
            return True
        return self._likely_base(at) == 1 and not any(map(self._likely_base, range(at + 1, len(self.tokens))))

    def _likely_base(self, at: int) -> int:
        """Return how likely a word is a verb in its base form.

        0 means no verb, 1 a verb or a noun ("set up a spy ring in …"), and 2 a verb, because a new phrase follows.
        """
        word, before, after = self._word(at), self._word(at - 1), self._word(at + 1)
        if not is_base(word) or before in DETERMINERS | AUXILIARIES | CONJUNCTIONS | {"to", "not"}:
            return 0
        if before in PREPOSITIONS:  # "[did] the state that Alpha is part of | join the league"
            return 2 * (after in DETERMINERS or self._name(at + 1))
        begins = after in DETERMINERS | PRONOUNS | {"", "to"} or after.endswith("ing") or self._name(at + 1)
        return 2 if begins else int(after != "of")

    def _is_own_participle(self, at: int) -> bool:
        """Return whether a word is the participle that belongs to the question's "was".

        It is the last participle that belongs to no word next to it and to no clause of the description.
        """
        if not is_participle(self._word(at)) or self._explained(at) or self._strands(at + 1):
            return False
        return not self._has_later_participle(at + 1)

    def _strands(self, at: int) -> bool:
        """Return whether a preposition is the last word of a clause: "in" in "the show Alpha starred in is about"."""
        return self._word(at) in PREPOSITIONS and (self._word(at + 1) in PREPOSITIONS or self._is_finite(at + 1))

    def _has_later_participle(self, at: int) -> bool:
        """Return whether a later participle may belong to the question's "was".

        A participle after a relative pronoun belongs to the pronoun's clause.
        """
        owed = 0
        for later in range(at, len(self.tokens)):
            word = self._word(later)
            verb = is_participle(word) and not self._explained(later) and not self._name(later)
            if verb and not owed:
                return True
            owed += (word in RELATIVE_PRONOUNS) - bool(owed and (verb or word in AUXILIARIES))
        return False

    def _explained(self, at: int) -> bool:
        """Return whether a verb form belongs to a word next to it and so cannot be the question's own verb.

        Such a word is an auxiliary, a relative pronoun or a subject before it, or a noun after it.
        """
        before, after = self._word(at - 1), self._word(at + 1)
        if _is_adverb(before):
            before = self._word(at - 2)
        if before in AUXILIARIES | RELATIVE_PRONOUNS | DETERMINERS | CONJUNCTIONS | PRONOUNS | {"be", "been", "being"}:
            return True
        adjective = is_participle(self._word(at)) and not self._name(at - 1)
        return adjective and bool(after) and is_noun(after) and not self._name(at + 1)

    def _read(self, at: int) -> None:
        """Update the open clauses with the word at a position."""
        word = self._word(at)
        if self._name(at):
            self._read_name(at)
        elif self._opens(at, word):
            relative = word in SUBJECT_PRONOUNS
            self.clauses.append(_OpenClause(subject=relative, relative=relative))
        elif self.clauses and not self.clauses[-1].verb:
            if self.clauses[-1].subject and self._opens_bare(at) and self._finites(at) > 1:
                self.clauses.append(
                    _OpenClause(subject=False)
                )  # "where the show | the author of Alpha hosted | was made"
            else:
                self._seek_verb(at, word)
        elif not self._complete() and self._is_finite(at) and (word in AUXILIARIES or not self._explained(at)):
            self._close(at)
        elif self._opens_bare(at) or (word == "and" and self.clauses and self._conjoins(at + 1)):
            self.clauses.append(_OpenClause(subject=False))

    def _close(self, at: int) -> None:
        """Give a verb to the innermost clause that lacks one, and close the clauses inside it.

        In "the house that the man who wrote Alpha | sold", "sold" closes the clause of "who".
        """
        while self.clauses[-1].verb:
            self.clauses.pop()
        self.clauses[-1].verb = True
        self._verb = at

    def _opens(self, at: int, word: str) -> bool:
        """Return whether a word opens a clause."""
        if word == "that":
            return not self._name(at + 1) or is_noun(self._word(at - 1)) or self._name(at - 1)
        return word in RELATIVE_PRONOUNS or word in SUBORDINATORS

    def _conjoins(self, at: int) -> bool:
        """Return whether a name begins a second clause after "and": "where Alpha died and Beta was born"."""
        verb = self._after_subject(at) if self._name(at) else len(self.tokens)
        later = self.waiting != "finite" or self._finites(verb + 1) > 0
        return later and self._is_finite(verb) and not self._is_own(verb)

    def _opens_bare(self, at: int) -> bool:
        """Return whether a clause without a pronoun begins at a position: "the country | the man was born in"."""
        before = self._word(at - 1)
        if is_past(before) or before.endswith("ing") or at - 1 == self._verb or _is_adverb(before):
            return False
        return self._word(at) in ("the", "a", "his", "her", "he", "she", "they", "it") and is_noun(self.tokens[at - 1])

    def _read_name(self, at: int) -> None:
        """Update the open clauses with a name, which is a clause's subject or begins a clause after a noun."""
        top = self.clauses[-1] if self.clauses else None
        begins = is_noun(self.tokens[at - 1]) and at - 1 != self._verb and self._has_verb_next(at)
        if top and not top.verb:
            verb = self._after_subject(at)
            begins &= top.subject and at != self._head and any(map(self._is_finite, range(verb + 1, verb + 4)))
            top.subject, top.relative = True, False
        if begins:
            self.clauses.append(_OpenClause(subject=True))

    def _seek_verb(self, at: int, word: str) -> None:
        """Update the innermost clause, which still needs a verb, with a word."""
        clause = self.clauses[-1]
        before = self._word(at - 1 - _is_adverb(self._word(at - 1)))
        if word in AUXILIARIES:
            clause.verb = True
        elif not clause.subject:
            clause.subject = word in PRONOUNS or is_noun(word)
        elif before in SUBJECT_PRONOUNS:
            clause.verb = word not in _FUNCTION and not _is_adverb(word)  # any other word is the verb
            clause.relative &= clause.verb or _is_adverb(word)
        elif before not in PREPOSITIONS | DETERMINERS:
            several = self._word(at - 1).endswith("s") and not is_possessive(self.tokens[at - 1])  # "the Jets call"
            passive = is_participle(word) and self._word(at + 1) == "by"  # "the team owned by Alpha plays"
            clause.verb = not passive and (is_past(word) or is_present(word) or (several and is_base(word)))
        if clause.verb:
            self._verb = at

    def _comma_ends(self, at: int) -> bool:
        """Return whether the comma before a position ends the description: "…, how many", but not "Paris, France"."""
        if not self.tokens[at - 1].endswith((",", ";", ":")) or not self._complete():
            return False
        return not self._name(at) and self._word(at) not in RELATIVE_PRONOUNS | CONJUNCTIONS
