"""Text for the embedded reader: tidied passages, tokens with offsets, sentences, light stems.

Knows nothing of questions or answers. Tokens are kept as parallel tuples because a reading looks at some thousand of
them within a few milliseconds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pyrag.embedded.lexicon import words

_UPPER = "".join(chr(code) for code in (*range(0x530), *range(0x1E00, 0x2000)) if chr(code).isupper())
UPPER_CLASS = re.escape(_UPPER).replace("\\-", "-")
TOKEN = re.compile(r"(?:[A-Z]\.){2,}|\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?(?!\w)|\w+(?:['’.\-‐‑]\w+)*['’]?|[^\w\s]")
_ABBREVIATIONS = words("""
    mr mrs ms dr st sr jr prof rev gen col capt lt sgt gov sen rep hon mt ft no nos vol vs v ca c cf approx b d fl r
    inc ltd co corp bros dept est jan feb mar apr jun jul aug sep sept oct nov dec op pp p ed eds et al a.k.a i.e
    e.g u.s u.k ph.d m.d
""")
# What reads a sentence may take time that grows with the square of its length.
_LONGEST, _MAX_WORD = 2_000, 40  # characters
_SENTENCE_END = re.compile(r"[.!?][\"”’')\]]*\s+(?=[\"“‘'(\[]?[\w])")
STOPWORDS = words("""
    a an the of in on at by to for from with without within and or but nor so as is are was were be been being am do
    does did done doing has have had having can could may might must shall should will would it its itself he him
    his she her hers they them their theirs we us our you your i me my this that these those there here what which
    who whom whose when where why how than then also not no n't 's s into onto over under about after before between
    during through against among around because while if though although such same other another any some each every
    both either neither all most more many much few several own only just very too up down out off
""")
_IRREGULAR = {
    "wrote": "write", "written": "write", "writer": "write", "writing": "write", "won": "win", "winner": "win",
    "winning": "win", "born": "birth", "died": "die", "death": "die", "dead": "die", "dying": "die", "sang": "sing",
    "sung": "sing", "singer": "sing", "song": "song", "made": "make", "making": "make", "began": "begin",
    "begun": "begin", "started": "begin", "start": "begin", "starts": "begin", "beginning": "begin", "led": "lead",
    "held": "hold", "sold": "sell", "built": "build", "building": "build", "bought": "buy", "gave": "give",
    "given": "give", "took": "take", "taken": "take", "became": "become", "founder": "found", "founded": "found",
    "founding": "found", "established": "found", "formed": "form", "formation": "form", "married": "marry",
    "marriage": "marry", "wife": "spouse", "husband": "spouse", "children": "child", "sons": "son", "lived": "live",
    "film": "film", "movie": "film", "movies": "film", "films": "film", "directed": "direct", "director": "direct",
    "produced": "produce", "producer": "produce", "production": "produce", "composed": "compose",
    "composer": "compose", "starring": "star", "starred": "star", "stars": "star", "author": "write",
    "authored": "write", "invented": "invent", "inventor": "invent", "discovered": "discover",
    "discovery": "discover", "located": "locate", "location": "locate", "situated": "locate", "owned": "own",
    "owner": "own", "published": "publish", "publisher": "publish", "publication": "publish", "grew": "grow",
    "grown": "grow", "fought": "fight", "left": "leave", "lost": "lose", "said": "say", "spoke": "speak",
    "spoken": "speak", "taught": "teach", "thought": "think", "went": "go", "known": "know", "called": "name",
    "named": "name", "names": "name", "ended": "end", "ending": "end", "men": "man", "women": "woman",
    "people": "person", "cities": "city", "countries": "country", "governed": "govern", "population": "populate",
    "populated": "populate", "rose": "rise", "chose": "choose", "chosen": "choose", "came": "come", "ran": "run",
    "created": "create", "creator": "create", "creation": "create", "appeared": "appear", "played": "play",
    "player": "play", "plays": "play", "performed": "perform", "performer": "perform", "performance": "perform",
}  # fmt: skip
_SUFFIXES = (
    "ations", "ation", "ments", "ment", "ingly", "ings", "ing", "edly", "ed", "ies", "ers", "er", "es", "ly", "s", "e",
    "y",
)  # fmt: skip


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """A rough stem: enough that "directs", "directed" and "directing" meet. `word` is in lower case."""
    word = word.removesuffix("'s").removesuffix("’s").strip("'’")
    irregular = _IRREGULAR.get(word) or _IRREGULAR.get(word.removesuffix("s"))  # "directors" as "director"
    if irregular:
        return irregular
    if not word.isalpha():
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            base = word[: -len(suffix)]
            return base[:-1] if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "ls" else base
    return word


def _space_quotes(text: str) -> str:
    """Straight quotes set as in print: `in" Up", he` becomes `in "Up", he`. An odd number of quotes stays."""
    parts = text.split('"')
    if len(parts) < 3 or len(parts) % 2 == 0:
        return text
    out = parts[0]
    for index, part in enumerate(parts[1:], start=1):
        if index % 2:
            out += ('"' if not out or out[-1] in " ([-—–/" else ' "') + part.strip()
        else:
            out += '"' + (part if not part or not part[0].isalnum() else " " + part)
    return out


@lru_cache(maxsize=512)
def tidy(text: str) -> str:
    """White space collapsed; doubled quotes, and the blanks some data sets leave around brackets, set right."""
    text = " ".join(text.replace('""', '"').replace("``", ' "').replace("''", '" ').split())
    text = re.sub(r"([(\[])\s+", r"\1", text)
    text = re.sub(r"\s+([)\],;:])", r"\1", text)
    text = re.sub(r"(?<=\w)\((?=\w)", " (", text)
    text = re.sub(rf"(?<=\w)- (?=[{UPPER_CLASS}])", "-", text)
    return _space_quotes(text)


def _ends_sentence(text: str, start: int, stop: int) -> bool:
    """Return whether the full stop at `stop` ends the sentence begun at `start`."""
    if text[stop] != ".":
        return True
    word = text[max(start, stop - _MAX_WORD) : stop].rsplit(maxsplit=1)[-1:] or [""]
    last = word[0].lstrip("(\"'“[").lower()
    return not (
        last in _ABBREVIATIONS or (len(last) == 1 and last.isalpha()) or re.fullmatch(r"(?:[a-z]\.)+[a-z]", last)
    )


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Offsets of the sentences of tidied text; what is too long for one is cut between words."""
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        following = text[match.end() : match.end() + 3].lstrip("\"“‘'([")
        if following[:1].islower() or not _ends_sentence(text, start, match.start()):
            continue
        spans.append((start, match.end()))
        start = match.end()
    if start < len(text):
        spans.append((start, len(text)))
    return [piece for span in spans for piece in _pieces(text, *span)]


def _pieces(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    while stop - start > _LONGEST:
        blank = text.rfind(" ", start, start + _LONGEST)
        end = start + _LONGEST if blank < 0 else blank + 1
        yield start, end
        start = end
    yield start, stop


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a passage: its tokens, their lower case, their stems ("" for stop words and punctuation)."""

    text: str
    index: int
    words: tuple[str, ...]
    lowers: tuple[str, ...]
    stems: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def span(self, first: int, stop: int) -> str:
        """Return the text from one token to another, as it stands in the sentence.

        Args:
            first: Number of the first token, from 0.
            stop: One past the last token; the text is empty if it is not above `first`.
        """
        return self.text[self.starts[first] : self.ends[stop - 1]] if stop > first else ""


@lru_cache(maxsize=1 << 15)
def content_stem(lower: str) -> str:
    """The stem, or "" for a stop word or punctuation."""
    return "" if lower in STOPWORDS or not any(char.isalnum() for char in lower) else stem(lower)


def sentence(text: str, index: int = 0) -> Sentence:
    """Tokenise one sentence.

    Args:
        text: The sentence, tidied.
        index: Its number in the passage, from 0.
    """
    matches = list(TOKEN.finditer(text))
    words = tuple(match.group() for match in matches)
    lowers = tuple(word.lower() for word in words)
    return Sentence(
        text,
        index,
        words,
        lowers,
        tuple(content_stem(lower) for lower in lowers),
        tuple(match.start() for match in matches),
        tuple(match.end() for match in matches),
    )


def sentences(text: str) -> list[Sentence]:
    """The sentences of a passage, tidied and tokenised."""
    clean = tidy(text)
    return [sentence(clean[start:stop].strip(), index) for index, (start, stop) in enumerate(split_sentences(clean))]


@lru_cache(maxsize=1 << 14)
def fold(text: str) -> str:
    """Lower case, no accents or punctuation, single blanks: the form in which names are compared."""
    if not text.isascii():
        text = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return " ".join(re.findall(r"\w+", text.lower()))
