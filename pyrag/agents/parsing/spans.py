"""Checks that an answer is the requested span: not a verdict on another question, not a sentence around it.

A sentence that only repeats the question around the answer can be shortened safely, since the removed words are in
the question.
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ASKED = "Answer the question:"
_WH_QUESTION = re.compile(
    r"(?:(?:in|on|at|from|to|of|for|by|with|under|during|about|after|before|since|until) )?"
    r"(?:the )?(?:who|whom|whose|what|which|when|where|how)\b(?!.*\byes\b.*\bno\b)",
    re.IGNORECASE | re.DOTALL,
)
_YES_NO_QUESTION = re.compile(
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|isn't|aren't|wasn't|didn't|don't)\b",
    re.IGNORECASE,
)
_ASKED_WITHIN = re.compile(r"(in|on|at|from|by|to|for|of|under|with|during) (?:which|what|whose)\b", re.IGNORECASE)
_EITHER = re.compile(r"\b(?:or|who|what|which|when|where)\b", re.IGNORECASE)
_OPEN_QUESTION = re.compile(
    r"\b(?:why|describe|explain|what happen(?:s|ed)|what did .{1,80} (?:say|do|mean)|how (?:did|do|does|was|were|is"
    r"|are|can|could"
    r"|would)|in what way|what is meant|quote|motto|slogan|lyrics?|sentence|plot|reason|purpose|mean(?:s|ing)?)\b",
    re.IGNORECASE,
)
_VERDICT = re.compile(r"(yes|no)\s{0,2}(?:[,;:.!–—-]|\Z|because\b|since\b|\()", re.IGNORECASE)
_LEAD = re.compile(
    r"(?:(?:based on|according to|given|from|as (?:stated|mentioned|noted|per) (?:in )?|as per|in)\b[^,]{0,160}?"
    r"\b(?:documents?|passages?|texts?|contexts?|facts?|information|evidence|sources?|articles?|above|provided"
    r"|that)\b[^,]{0,80}?,\s*"
    r"|(?:therefore|thus|so|hence|in conclusion|consequently|overall|finally)\b,?\s*"
    r"|(?:it (?:can be|is) (?:concluded|inferred|clear|stated|said|known|evident|determined)|we can conclude"
    r"|i (?:think|believe)"
    r"|(?:the )?(?:documents?|passages?|texts?|contexts?|evidence|facts?) (?:states?|says?|indicates?|shows?"
    r"|mentions?|suggests?))"
    r"(?: that)?\b[, ]*)",
    re.IGNORECASE,
)
# "It is Marrow Bay.": titles that begin so are written with a capital Is.
_SAYS_IT = re.compile(
    r"(?:[Ii]t|[Tt]hat|[Hh]e|[Ss]he|[Tt]hey)(?:['’]s|(?: would be| must be| is| was| are| were)) "
    r"(?:(?:in|on|at|from|by|near|of) (?=[A-Z0-9]))?(?=\S)"
)
_REMARK = re.compile(r",? (?:that|who|which|where|when) ")
_PREPOSITIONS = frozenset(("in", "on", "at", "by", "from", "near", "to"))
_VERBS = _words(
    "is was are were has had have did does do can could will would became becomes won wins holds held lies lived "
    "lives died "
    "founded directed wrote written born played plays served serves located comes came starred stars released"
)
_BE = _words("is was are were")
_FUNCTION = _words(
    "a an the in on at of by from to for with as and or that which who whom whose where when it he she they his her "
    "their its this"
    " these those was is are were be been has had have did does do there also called named not"
)
_DENIED = re.compile(r"\b(?:not|never|no longer)\b|n['’]t\b", re.IGNORECASE)
_YES_OR_NO = re.compile(
    r"(?:yes|no|true|false)(?:, (?:it|he|she|they|that|this|there) [\w']{1,12}(?: not)?)?", re.IGNORECASE
)
_PRONOUNS = _words("it he she they this that these there")
_MIN_WORDS = 5
_MAX_WORDS = 40


def is_evasive(query: str, answer: str) -> bool:
    """Return True if an answer is yes or no to a question that asks for something else.

    Args:
        query: Query that was asked; only the text after "Answer the question:" counts.
        answer: The answer.
    """
    if not _YES_OR_NO.fullmatch(answer.strip(" .!")):
        return False
    return _WH_QUESTION.match(_asked(query)) is not None


def repeats_question(query: str, answer: str) -> bool:
    """Return True if an answer repeats the question word for word.

    Args:
        query: Query that was asked; only the text after "Answer the question:" counts.
        answer: The answer.
    """
    asked = _asked(query).casefold().split()
    return len(asked) >= _MIN_WORDS - 1 and asked[-1].endswith(("?", "？")) and answer.casefold().split() == asked


def verdict_of(query: str, answer: str) -> str:
    """Return the yes or no at the start of an explained answer to a yes-no question, otherwise an empty text.

    Args:
        query: Query that was asked; only the text after "Answer the question:" counts.
        answer: The answer.
    """
    asked = _asked(query)
    if len(answer.split()) < _MIN_WORDS or not _YES_NO_QUESTION.match(asked) or _EITHER.search(asked[:300]):
        return ""
    verdict = _VERDICT.match(answer)
    return verdict[1] if verdict else ""


def without_preposition(query: str, answer: str) -> str:
    """Return an answer without a leading preposition, or verb and preposition, that is already in the question.

    Args:
        query: Query that was asked; only the text after "Answer the question:" counts.
        answer: The answer.
    """
    asked, words = _asked(query), answer.split()
    if len(words) > 2 and words[1] in _PREPOSITIONS and words[0].casefold() in _content(asked.split()):
        return " ".join(words[2:]) if not words[2][0].islower() else answer
    within = _ASKED_WITHIN.match(asked)
    repeated = len(words) > 1 and within is not None and words[0].casefold() == within[1].casefold()
    return " ".join(words[1:]) if repeated and not words[1][0].islower() else answer


def is_wordy(query: str, answer: str) -> bool:
    """Return True if an answer is a sentence although the question asks for a name, date, number or few words.

    Args:
        query: Query that was asked; only the text after "Answer the question:" counts.
        answer: The answer.
    """
    asked = _asked(query)
    words = answer.split()
    if _SAYS_IT.match(answer) and _WH_QUESTION.match(asked) and not _OPEN_QUESTION.search(asked[:500]):
        return True
    if (
        len(words) < _MIN_WORDS
        or _OPEN_QUESTION.search(asked[:500])
        or answer.casefold().strip(" .") in asked.casefold()
    ):
        return False
    if len(words) > _MAX_WORDS:
        return True
    if not _verb_at(words):
        return False
    if _LEAD.match(answer) or _plain(words[0]) in _PRONOUNS:
        return True
    repeated = _content(words) & _content(asked.split())
    before = _content(words[: _verb_at(words)])
    return len(repeated) >= 2 or (bool(before) and before <= repeated) or answer.rstrip().endswith(".")


def shortened(query: str, answer: str) -> str:
    """Return a sentence without its introduction and the question's words; unchanged if this is not safe.

    Args:
        query: Query that was asked; only the text after "Answer the question:" counts.
        answer: The answer.
    """
    if not is_wordy(query, answer) or _DENIED.search(answer):
        return answer
    while lead := _LEAD.match(answer):
        answer = answer[lead.end() :]
    if (lead_in := _SAYS_IT.match(answer)) and not answer[lead_in.end()].islower():
        return _REMARK.split(answer[lead_in.end() :], maxsplit=1)[0].rstrip(" .")
    words, asked = answer.rstrip(" .").split(), _content(_asked(query).split())
    verb = _verb_at(words)
    if not verb:
        return answer.rstrip(" .") or answer
    return _behind(words, verb, asked) or _before(words, verb, asked) or _named(words, verb) or answer


def _behind(words: list[str], verb: int, asked: set[str]) -> str:
    """Return the words after "Ines Valdoria was born in", if all words before them are in the question."""
    at = 0
    while at < len(words) and (_plain(words[at]) in asked or _plain(words[at]) in _FUNCTION or at == verb):
        at += 1
    rest = words[at:]
    sound = at > verb and _content(words[:at]) & asked and rest and not _content(rest) & asked
    return " ".join(rest) if sound else ""


def _before(words: list[str], verb: int, asked: set[str]) -> str:
    """Return the words before "is the town where she was born", if all words after them are in the question."""
    rest = words[:verb]
    if _plain(words[verb]) not in _BE or _content(rest) & asked or not _content(words[verb:]):
        return ""
    return " ".join(rest) if _content(words[verb:]) <= asked else ""


def _named(words: list[str], verb: int) -> str:
    """Return the name or number after "Her birthplace is"."""
    rest = words[verb + 1 :]
    names = bool(rest) and not rest[0][0].islower() and not _verb_at(rest) and len(rest) <= _MIN_WORDS
    return " ".join(rest) if names and words[verb] in _BE and words[verb - 1].islower() else ""


def _asked(query: str) -> str:
    return query.rpartition(_ASKED)[2].strip()


def _verb_at(words: list[str]) -> int:
    """Return the index of the first finite verb in lower case, or 0. Titles seldom have such a verb."""
    return next((at for at, word in enumerate(words) if at and word.strip(".,;") in _VERBS), 0)


def _content(words: list[str]) -> set[str]:
    return {plain for word in words if (plain := _plain(word)) and plain not in _FUNCTION and len(plain) > 2}


def _plain(word: str) -> str:
    word = word.casefold().strip(".,;:!?\"'“”‘’()[]*")
    return word.removesuffix("'s").removesuffix("’s")
