"""Questions about whether a document mentions given words, such as "Does the contract mention "Acme"?"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.agents.protocol import Reading
from pyrag.trace.model import Passage, shorten

_WORDS = r"[\"“][^\"“”]+[\"”]"
_ASKED = re.compile(rf"Does (?:the|this) [a-z][a-z -]{{0,40}} mention (?P<all>{_WORDS}(?: (?:and|or) {_WORDS})*)\?")
_SHOWN = 60  # characters around the words


def mention_of(question: str, passages: Sequence[Passage]) -> Reading | None:
    """Return whether titles or texts contain the words in quotes, in any case; None for other questions.

    Args:
        question: The question. If it quotes several words, all must occur, or any of them if "or" joins them.
        passages: Passages of one document.
    """
    match = _ASKED.fullmatch(question.strip())
    if match is None:
        return None
    named = re.findall(r"[\"“](?:(?:the|a|an) (?=[a-z]))?([^\"“”]+)[\"”]", match["all"])
    wanted = [words.split() for words in named]
    places = [_place_of(words, passages) for words in wanted if words]
    holding = [place for place in places if place is not None]
    enough = any if re.search(r"[\"”] or [\"“]", match["all"]) else all
    if places and enough(place is not None for place in places):
        cited = tuple(dict.fromkeys(position for position, _ in holding))
        return Reading("yes", True, cited, holding[0][1], 1.0)
    return Reading("no", True, (), f"no passage holds {match['all']}", 1.0)


def _place_of(words: Sequence[str], passages: Sequence[Passage]) -> tuple[int, str] | None:
    """Return position and surrounding text of the first passage that contains words in sequence; None without one."""
    phrase = r"\s+".join(map(re.escape, words))
    pattern = re.compile(rf"(?<!\w){phrase}(?!\w)", re.IGNORECASE)
    for position, passage in enumerate(passages):
        text = f"{passage.title}\n{passage.text}"
        if place := pattern.search(text):
            return position, shorten(text[max(place.start() - _SHOWN, 0) : place.end() + _SHOWN], 3 * _SHOWN)
    return None
