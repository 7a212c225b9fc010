"""Words for numbers, and adjectives that compare by a measure."""

from __future__ import annotations

from pyrag.embedded.lexicon import words

NUMBER_WORDS = words("""
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion
    trillion dozen half once twice
""")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
"""Ordinals in order, from "first" to "tenth"."""
MEASURED = words("long tall high deep wide heavy old far fast large big loud thick hot cold warm expensive")
"""Adjectives after "how" that ask for a measure."""
SCALES = (
    ("heavy", "heavier", "lighter"),
    ("high", "higher", "lower"),
    ("tall", "taller", "shorter"),
    ("long", "longer", "shorter"),
    ("deep", "deeper", "shallower"),
    ("wide", "wider|broader", "narrower"),
    ("large", "larger|bigger|greater", "smaller"),
    ("fast", "faster|quicker", "slower"),
    ("loud", "louder|noisier", "quieter"),
    ("thick", "thicker", "thinner"),
    ("hot", "hotter|warmer", "colder|cooler"),
    ("expensive", "more expensive|dearer|pricier|costlier|more costly", "cheaper|less expensive|less costly"),
)
"""Adjectives to ask with, their comparatives, and the comparatives of their opposites."""


def superlatives(comparatives: str) -> str:
    """Return the superlatives of comparatives that end in "-er", both separated by bars."""
    return "|".join(f"{word[:-1]}st" for word in comparatives.split("|") if word.endswith("er"))


GREATER = "|".join(more for _, more, _ in SCALES)
SMALLER = "|".join(less for _, _, less in SCALES)
