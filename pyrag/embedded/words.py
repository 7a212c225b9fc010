"""Text processing for the embedded reader: tidied passages, tokens with offsets, sentences, rough stems.

The module does not deal with questions or answers. Tokens are stored in parallel tuples because each question reads
thousands of them within a few milliseconds.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from pyrag.embedded.lexicon import words
from pyrag.trace.sentences import split_sentences, tidy

TOKEN = re.compile(r"(?:[A-Z]\.){2,}|\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?(?!\w)|\w+(?:['’.\-‐‑]\w+)*['’]?|[^\w\s]")
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


def _runs_of(word: str, joiners: str) -> re.Pattern[str]:
    """Return the pattern of runs of words, with numbers and small words such as "of" between them."""
    return re.compile(rf"{word}(?:\s+(?:(?:{joiners})\s+)*(?:{word}|\d+))*")


_JOINERS = "of|the|de|la|le|du|von|van|der|to"
_IN_TITLES = f"{_JOINERS}|and|in|on|for"  # between words of titles, and also between two names
_CAPITALISED = r"[^\W\d_a-z][\w'’.&-]*"
NAME_RUN = _runs_of(_CAPITALISED, _IN_TITLES)
SINGLE_NAME_RUN = _runs_of(_CAPITALISED, _JOINERS)
NAME_OR_NUMBER_RUN = _runs_of(r"[^\W_a-z][\w'’.&-]*", _IN_TITLES)
_SUFFIXES = (
    "ations", "ation", "ments", "ment", "ingly", "ings", "ing", "edly", "ed", "ies", "ers", "er", "es", "ly", "s", "e",
    "y",
)  # fmt: skip


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """Return a rough stem, the same for "directs", "directed" and "directing".

    Args:
        word: Word in lower case.
    """
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


@dataclass(frozen=True, slots=True)
class Sentence:
    """Sentence of a passage, with its tokens in parallel tuples.

    Args:
        text: The sentence, tidied.
        index: Number of the sentence in the passage, from 0.
        words: Tokens as written.
        lowers: Tokens in lower case.
        stems: Stems of the tokens. Empty for stop words and punctuation.
        starts: Position of each token's first character.
        ends: Position after each token's last character.
    """

    text: str
    index: int
    words: tuple[str, ...]
    lowers: tuple[str, ...]
    stems: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def span(self, first: int, stop: int) -> str:
        """Return the text of a range of tokens, as written in the sentence.

        Args:
            first: Number of the first token, from 0.
            stop: Number after the last token. The text is empty unless this is above `first`.
        """
        return self.text[self.starts[first] : self.ends[stop - 1]] if stop > first else ""


@lru_cache(maxsize=1 << 15)
def content_stem(lower: str) -> str:
    """Return the stem of a lower-case token; empty for a stop word or punctuation."""
    return "" if lower in STOPWORDS or not any(char.isalnum() for char in lower) else stem(lower)


def sentence(text: str, index: int = 0) -> Sentence:
    """Return a sentence split into tokens.

    Args:
        text: The sentence, tidied.
        index: Number of the sentence in the passage, from 0.
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
    """Return the sentences of a passage, tidied and split into tokens."""
    clean = tidy(text)
    return [sentence(clean[start:stop].strip(), index) for index, (start, stop) in enumerate(split_sentences(clean))]


@lru_cache(maxsize=1 << 14)
def fold(text: str) -> str:
    """Return a text in lower case, without accents and punctuation, so that names can be compared."""
    if not text.isascii():
        text = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return " ".join(re.findall(r"\w+", text.lower()))


def content_stems(text: str) -> set[str]:
    """Return the stems of a text's words, without stop words."""
    return {word_stem for word in fold(text).split() if (word_stem := content_stem(word))}


def holds(text: str, part: str) -> bool:
    """Return whether a text has the words of a part in a row, in any case.

    Args:
        text: The text.
        part: Words to look for.
    """
    return f" {fold(part)} " in f" {fold(text)} "


def without_article(text: str) -> str:
    """Return a text without an article before it."""
    return _ARTICLE.sub("", text)


def without_possessive(text: str) -> str:
    """Return a text without a possessive ending: "Alpha" for "Alpha's"."""
    return _POSSESSIVE.sub("", text)


def is_possessive(word: str) -> bool:
    """Return whether a word is a possessive, such as "Alpha's"."""
    return bool(re.search(r"(?:['’]s|s['’])$", word))


def without_quotations(text: str) -> str:
    """Return a text with a blank in place of each quotation."""
    return _QUOTATION.sub(" ", text)


def singular(noun: str) -> str:
    """Return the singular of an English noun or phrase in lower case."""
    for ending, other in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x")):
        if noun.endswith(ending) and len(noun) > len(ending) + 1 and not noun.endswith(_INVARIABLE):
            return noun.removesuffix(ending) + other
    return noun[:-1] if noun.endswith("s") and not noun.endswith(_INVARIABLE) and len(noun) > 3 else noun


_INVARIABLE = ("ss", "us", "is", "series", "species")  # endings of nouns that are not plurals
_ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$")
_QUOTATION = re.compile(r"[\"“][^\"”]*[\"”]")
