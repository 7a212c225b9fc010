"""Roles of people and firms in metadata: "sent by Ada Lind" means the sender, not the recipient."""

from __future__ import annotations

import re

from pyrag.embedded.lexicon.word_classes import BE_FORM
from pyrag.embedded.planner.corpus.comparisons import NAME
from pyrag.embedded.planner.corpus.vocabulary import Vocabulary, equal, plain_words
from pyrag.embedded.words import without_article
from pyrag.retrieval.filters.tree import Filter, any_of

_WRITERS = ("author", "authors", "writer", "written by", "by")
_SENDERS = ("sender", "from", "sent by")
_RECIPIENTS = ("recipient", "recipients", "to", "sent to", "receiver", "addressee")
_SIGNERS = ("signer", "signatory", "signatories", "signed by")
_ATTENDEES = ("attendees", "attendee", "participants", "present", "attended by")
_ROLES = {
    "from": (*_SENDERS, *_WRITERS),
    "to": _RECIPIENTS,
    "by": (*_WRITERS, *_SENDERS, *_SIGNERS),
    "sent by": (*_SENDERS, *_WRITERS),
    "written by": (*_WRITERS, *_SENDERS),
    "drafted by": _WRITERS,
    "authored by": _WRITERS,
    "signed by": _SIGNERS,
    "sent to": _RECIPIENTS,
    "addressed to": _RECIPIENTS,
    "received by": _RECIPIENTS,
    "attended by": _ATTENDEES,
}
_DONE = re.compile(
    rf"(?:(?:{BE_FORM}|have been|has been) )?(?:(?P<verb>[a-z]+(?:ed|en|t)) )?(?P<side>from|to|by)\s+(?P<who>.+)",
    re.IGNORECASE,
)


def role_filter(text: str, vocabulary: Vocabulary) -> Filter | None:
    """Return the filter for a role such as "sent by Ada Lind"; None if no field holds the role.

    Args:
        text: Words of the condition.
        vocabulary: Words of the metadata. If the verb's field exists but has no such name, the filter passes no
            document.
    """
    match = _DONE.fullmatch(text)
    if match is None:
        return None
    verb, side = (match["verb"] or "").lower(), match["side"].lower()
    role = f"{verb} {side}".strip()
    for name in _ROLES.get(role, (role,)):
        field = vocabulary.fields.get(name)
        if field is None:
            continue
        parts: list[Filter] = []
        for who in re.split(r",? or ", match["who"]):
            where = vocabulary.having(without_article(plain_words(who)), field.name)
            if where is None and verb and re.fullmatch(NAME, who):
                where = equal(field, who.strip(" \"“”'"))
            if where is not None:
                parts.append(where)
        if len(parts) == len(re.split(r",? or ", match["who"])):
            return any_of(*parts)
    return None
