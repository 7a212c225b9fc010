"""Quantity of a thing that a comparison needs, from a short text about the thing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pyrag.embedded.words import Sentence, content_stems
from pyrag_helpers.measures.amounts import read_amounts
from pyrag_helpers.numbers import quantities_in

_KINDS = (  # kinds of quantities by the word that compares them
    (r"\b(?:heav|light|weigh)", {"mass"}),
    (r"\b(?:long|short|last)", {"length", "time"}),
    (r"\b(?:tall|deep|wide|high|low)", {"length"}),
    (r"\b(?:fast|slow)", {"speed"}),
    (r"\b(?:hotter|warmer|colder|cooler)", {"temperature"}),
    (r"\b(?:cheap|cost|expensive|dear|money|price)", {"money"}),
)
_YEARS = range(1500, 2101)
_COMPARING = content_stems("more most less least fewer fewest")


def measure_of(question: str, name: str, lines: Sequence[Sentence]) -> tuple[Any, str] | None:
    """Return the quantity that a question compares and its sentence; None if several quantities may be meant.

    Sentences that share a word with the question come first, and in them quantities beside such a word ("seats 513
    people"). If the question does not name the kind of quantity, there must be only one.

    Args:
        question: The question.
        name: Name of the thing, whose numbers do not count.
        lines: Sentences about the thing.
    """
    kinds = next((kinds for pattern, kinds in _KINDS if re.search(pattern, question.lower())), None)
    asked = content_stems(question) - content_stems(name) - _COMPARING
    near = [line for line in lines if asked.intersection(line.stems)]
    texts = [(line.text.replace(name, " "), line.text[:60]) for line in near]
    beside = [(part, shown) for text, shown in texts for part in _beside(text, asked)]
    everywhere = [(line.text.replace(name, " "), line.text[:60]) for line in lines]
    for group in (beside, texts, everywhere):
        pairs = [(quantity, shown) for text, shown in group for quantity in _quantities(text, kinds)]
        if pairs:
            is_clear = len(pairs) == 1 or kinds is not None
            return pairs[0] if is_clear else None
    return None


def _beside(text: str, asked: set[str]) -> Iterator[str]:
    """Yield the parts of a text with one amount each that have a word of the question right before or after it."""
    amounts = [amount for amount, _ in read_amounts(text)]
    for at, amount in enumerate(amounts):
        start = amounts[at - 1].end if at else 0
        end = amounts[at + 1].start if at + 1 < len(amounts) else len(text)
        before, after = text[start : amount.start].split()[-2:], text[amount.end : end].split()[:2]
        if asked & content_stems(" ".join([*before, *after])):
            yield text[amount.start : amount.end]


def _quantities(text: str, kinds: set[str] | None) -> list[Any]:
    """Return the quantities of some kinds, else numbers without a unit; all of them if no kind is given."""
    quantities = quantities_in(text)
    plain = [quantity for quantity in quantities if not quantity.unit.kind]
    if kinds is None:
        return [quantity for quantity in quantities if quantity.unit.kind or quantity.number not in _YEARS] or plain
    return [quantity for quantity in quantities if quantity.unit.kind.split(" ")[0] in kinds] or plain
