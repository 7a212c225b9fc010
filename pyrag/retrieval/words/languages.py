"""Languages of indexes, and their detection.

tantivy stems words and knows common words of most languages with an alphabet. Chinese, Hebrew, Japanese, Korean and
Thai need no stemmer (`forms`). `other` stands for any language whose words are searched as written. Detection compares
letters and common words; libraries for it have megabytes of models for single sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from pyrag.errors import UsageError

if TYPE_CHECKING:
    import tantivy

AUTO = "auto"
ENGLISH, OTHER = "english", "other"
WITH_STOP_WORDS = (
    "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian", "norwegian", "portuguese",
    "russian", "spanish", "swedish",
)  # fmt: skip
STEMMED = frozenset({*WITH_STOP_WORDS, "arabic", "greek", "romanian", "turkish"})
LANGUAGES = (*sorted({*STEMMED, "chinese", "hebrew", "japanese", "korean", "thai"}), OTHER)

_MORE_STOP_WORDS = {
    "romanian": """și să în cu la din pe nu este sunt care mai au fost prin pentru că ce lui sau dar între după către
        fi o un al ale ei""",
    "turkish": """ve bir bu da de için ile olarak olan çok daha gibi en ne kadar sonra her ise ancak olduğu oldu var
        ya tarafından""",
}
_SCRIPTS = {
    "korean": "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
    "kana": "\u3040-\u30ff",
    "han": "\u3400-\u4dbf\u4e00-\u9fff",
    "hebrew": "\u05d0-\u05ea",
    "arabic": "\u0620-\u06d3",
    "persian": "\u067e\u0686\u0698\u06a9\u06af\u06cc\u06d2",  # used in Persian and Urdu, not in Arabic
    "thai": "\u0e01-\u0e5b",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "cyrillic": "\u0400-\u052f",
    "latin": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
}
_LETTERS = {name: re.compile(f"[{letters}]") for name, letters in _SCRIPTS.items()}
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")
_DENSE = 2.5  # letters of an alphabet that correspond to a character of Han or Hangul
_MIN_COMMON = 0.15  # minimum share of common words of the language in a text
_MIN_ENGLISH = 0.05  # share of common English words below which a text is not English
_ACCENTED = re.compile("[\u00c0-\u024f]")
_MIN_ACCENTED = 0.02
_MIN_KANA = 0.05
_MIN_PERSIAN = 0.02
_MAX_TEXT = 60_000  # characters


def checked_language(name: str) -> str:
    """Return the name of a language in lower case; empty for `auto`.

    Raises:
        UsageError: The language is unknown.
    """
    language = name.strip().lower()
    if language == AUTO:
        return ""
    if language not in LANGUAGES:
        raise UsageError(f"--language does not support {name!r}: choose {', '.join(LANGUAGES)}, or {AUTO} to detect it")
    return language


def detected_language(texts: Iterable[str]) -> str:
    """Detect the main language of some texts; English if it is unclear.

    Args:
        texts: Texts of passages, of which the first 60,000 characters are used.
    """
    text = _beginning(texts)
    characters = Counter(text)
    letters = {name: _total(characters, pattern) for name, pattern in _LETTERS.items()}
    asian = letters["han"] + letters["kana"]
    weights: dict[str, float] = {
        name: letters[name] for name in ("hebrew", "arabic", "thai", "greek", "cyrillic", "latin")
    }
    weights |= {"korean": _DENSE * letters["korean"], "asian": _DENSE * asian}
    weights[OTHER] = _total(characters, _LETTER) - sum(letters.values()) + letters["persian"]
    script = max(weights, key=lambda name: weights[name])
    if not weights[script]:
        return ENGLISH
    if script == "asian":
        return "japanese" if letters["kana"] > _MIN_KANA * asian else "chinese"
    if script == "arabic":
        return OTHER if letters["persian"] > _MIN_PERSIAN * letters["arabic"] else script
    if script in ("latin", "cyrillic"):
        is_accented = _total(characters, _ACCENTED) > _MIN_ACCENTED * _total(characters, _LETTER)
        return _by_common_words(text, ("russian",) if script == "cyrillic" else None, is_accented)
    return script


def _beginning(texts: Iterable[str]) -> str:
    parts: list[str] = []
    remaining = _MAX_TEXT
    for text in texts:
        parts.append(text[:remaining])
        remaining -= len(parts[-1])
        if remaining <= 0:
            break
    return "\n".join(parts)


def _total(characters: Counter[str], kind: re.Pattern[str]) -> int:
    """Return how many characters have a kind."""
    return sum(count for character, count in characters.items() if kind.match(character))


def _by_common_words(text: str, languages: tuple[str, ...] | None, is_accented: bool) -> str:
    counts = Counter(_WORD.findall(text.lower().encode("utf-8", "replace").decode()))
    words = sorted(set(counts).difference(_stopping(*WITH_STOP_WORDS).analyze(" ".join(counts))))
    words += [word for common in _MORE_STOP_WORDS.values() for word in common.split()]
    shares = {
        language: sum(counts[word] for word in _common_words(language, words)) / counts.total()
        for language in languages or (*(name for name in WITH_STOP_WORDS if name != "russian"), *_MORE_STOP_WORDS)
    }
    best = max(shares, key=lambda language: (shares[language], language == ENGLISH))
    if shares[best] >= _MIN_COMMON:
        return best
    return OTHER if languages or (is_accented and shares[ENGLISH] < _MIN_ENGLISH) else ENGLISH


@cache
def _stopping(*languages: str) -> tantivy.TextAnalyzer:
    import tantivy

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    for language in languages:
        builder = builder.filter(tantivy.Filter.stopword(language))
    return builder.build()


def _common_words(language: str, words: Iterable[str]) -> set[str]:
    if language in _MORE_STOP_WORDS:
        return set(words).intersection(_MORE_STOP_WORDS[language].split())
    return set(words).difference(_stopping(language).analyze(" ".join(words)))
