"""WordPiece tokenizer of BERT's family, read from a `tokenizer.json`.

The bundled networks need no more than this, and the package `tokenizers` brings a hub client, progress bars and an HTTP
stack that are larger than all of pyrag's code. `open_tokenizer` reads files of this kind itself and leaves other kinds
(BPE, Unigram, …) to `tokenizers`, if it is installed. `WordPiece` has the methods of `tokenizers.Tokenizer` that pyrag
calls, and returns the same tokens, except perhaps for characters added after Unicode 8. Training, decoding and padding
are not supported.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyrag.errors import ConfigError

_SPACES = "\t\n\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_CHUNK = re.compile(f"[^{_SPACES}]+")
_SPACE = re.compile(f"[{_SPACES}]")
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
_MAX_WORD = 100  # characters; a longer word is unknown
_MAX_KNOWN = 1 << 16  # number of chunks whose tokens are cached
_MAX_KEPT_CHUNK = 40  # characters; longer chunks are rarely repeated and not cached

_Places = tuple[tuple[int, int], ...]
_Tokens = tuple[tuple[int, ...], _Places]


class _OtherKindError(Exception):
    """Error for a file that describes a different kind of tokenizer."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """Tokenised text: token ids, the characters that each token covers, and the segment of each token."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    type_ids: list[int]


@dataclass(frozen=True, slots=True)
class _Special:
    """Special tokens before, between or after the texts."""

    ids: tuple[int, ...]
    type_id: int


_Template = tuple[_Special | tuple[str, int], ...]


@dataclass(slots=True)
class WordPiece:
    """WordPiece tokenizer. After truncation is set, several threads may use it."""

    vocabulary: dict[str, int]
    unknown: int
    specials: dict[str, int]  # texts that are always a single token
    single: _Template = (("A", 0),)
    pair: _Template = (("A", 0), ("B", 1))
    _limit: int | None = None
    _known: dict[str, _Tokens] = field(default_factory=dict)

    def no_padding(self) -> None:
        """Do nothing: encodings are never padded."""

    def no_truncation(self) -> None:
        self._limit = None

    def enable_truncation(self, max_length: int, *, strategy: str = "only_second") -> None:
        """Truncate all later encodings. In a pair, the second text is truncated first.

        Args:
            max_length: Maximum number of tokens of an encoding, including special ones.
            strategy: Ignored; for compatibility with the package `tokenizers`.
        """
        self._limit = max_length

    def encode_batch(self, texts: Sequence[str | tuple[str, str]]) -> list[Encoding]:
        """Return an encoding for each text or pair of texts."""
        return [self.encode(text) if isinstance(text, str) else self.encode(*text) for text in texts]

    def encode(self, sequence: str, pair: str | None = None, *, add_special_tokens: bool = True) -> Encoding:
        """Return the tokens of a text or of a pair of texts.

        Args:
            sequence: The text.
            pair: Second text of a pair.
            add_special_tokens: Whether to add the special tokens of the template.
        """
        template = self.single if pair is None else self.pair
        if not add_special_tokens:
            template = tuple(part for part in template if not isinstance(part, _Special))
        room = None
        if self._limit is not None:
            room = max(0, self._limit - sum(len(part.ids) for part in template if isinstance(part, _Special)))
        return self._joined(template, self._cut(sequence, pair, room))

    def _cut(self, sequence: str, pair: str | None, room: int | None) -> dict[str, _Tokens]:
        if pair is None:
            return {"A": self._tokens(sequence, room)}
        first = self._tokens(sequence, room)
        return {"A": first, "B": self._tokens(pair, None if room is None else room - len(first[0]))}

    def _joined(self, template: _Template, texts: dict[str, _Tokens]) -> Encoding:
        made = Encoding([], [], [])
        for part in template:
            if isinstance(part, _Special):
                ids, places, kind = part.ids, ((0, 0),) * len(part.ids), part.type_id
            else:
                (ids, places), kind = texts[part[0]], part[1]
            made.ids.extend(ids)
            made.offsets.extend(places)
            made.type_ids.extend([kind] * len(ids))
        return made

    def _tokens(self, text: str, room: int | None) -> _Tokens:
        ids: list[int] = []
        places: list[tuple[int, int]] = []
        if room == 0:
            return (), ()
        for start, chunk in self._chunks(text):
            piece_ids, within = self._chunk(chunk)
            ids.extend(piece_ids)
            places.extend((start + low, start + high) for low, high in within)
            if room is not None and len(ids) >= room:
                return tuple(ids[:room]), tuple(places[:room])
        return tuple(ids), tuple(places)

    def _chunks(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the texts between spaces, with their positions. Each special token is its own chunk."""
        special = [known for known in self.specials if known in text]
        if not special:
            yield from ((match.start(), match[0]) for match in _CHUNK.finditer(text))
            return
        low = 0
        for match in re.finditer("|".join(map(re.escape, special)), text):
            yield from ((low + part.start(), part[0]) for part in _CHUNK.finditer(text[low : match.start()]))
            yield match.start(), match[0]
            low = match.end()
        yield from ((low + part.start(), part[0]) for part in _CHUNK.finditer(text[low:]))

    def _chunk(self, chunk: str) -> _Tokens:
        tokens = self._known.get(chunk)
        if tokens is None:
            tokens = self._read(chunk)
            if len(chunk) <= _MAX_KEPT_CHUNK:
                if len(self._known) >= _MAX_KNOWN:
                    self._known.clear()
                self._known[chunk] = tokens
        return tokens

    def _read(self, chunk: str) -> _Tokens:
        if chunk in self.specials:
            return (self.specials[chunk],), ((0, len(chunk)),)
        ids: list[int] = []
        places: list[tuple[int, int]] = []
        for word, at in _words(chunk):
            for piece, low, high in self._pieces(word):
                ids.append(piece)
                places.append((at[low], at[high - 1] + 1))
        return tuple(ids), tuple(places)

    def _pieces(self, word: str) -> list[tuple[int, int, int]]:
        """Return token, start and end of each piece of a word; a single unknown token if it cannot be split."""
        pieces: list[tuple[int, int, int]] = []
        low = 0
        while low < len(word) <= _MAX_WORD:
            piece, high = self._longest(word, low)
            if piece is None:
                break
            pieces.append((piece, low, high))
            low = high
        return pieces if low == len(word) else [(self.unknown, 0, len(word))]

    def _longest(self, word: str, low: int) -> tuple[int | None, int]:
        prefix = "##" if low else ""
        for high in range(len(word), low, -1):
            piece = self.vocabulary.get(prefix + word[low:high])
            if piece is not None:
                return piece, high
        return None, low


def open_tokenizer(path: Path) -> Any:
    """Return the tokenizer of a `tokenizer.json`: a `WordPiece`, or a `tokenizers.Tokenizer` for other kinds.

    Raises:
        ConfigError: The file is of another kind, and the package `tokenizers` is not installed.
        ValueError: The file cannot be read.
    """
    try:
        return _wordpiece(path)
    except _OtherKindError as kind:
        return _of_the_package(path, str(kind))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"a part of it has another form ({error})") from error


def _of_the_package(path: Path, kind: str) -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise ConfigError(
            f"{path} describes a tokenizer of the kind {kind}, which needs a package: run pip install tokenizers"
        ) from error
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise ValueError(str(error)) from error


def _wordpiece(path: Path) -> WordPiece:
    import msgspec

    try:
        description = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        raise ValueError(str(error)) from error
    model = description.get("model") if isinstance(description, dict) else None
    if not isinstance(model, dict):
        raise ValueError("it describes no model")
    if not _is_bert(description, model):
        raise _OtherKindError(model.get("type") or "without a name")
    specials = {token["content"]: token["id"] for token in description.get("added_tokens") or ()}
    single, pair = _templates(description.get("post_processor"))
    return WordPiece(model["vocab"], model["vocab"][model["unk_token"]], specials, single, pair)


_NORMALIZER = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}
_MODEL = {"type": "WordPiece", "continuing_subword_prefix": "##", "max_input_chars_per_word": _MAX_WORD}


def _is_bert(description: dict[str, Any], model: dict[str, Any]) -> bool:
    """Return True for the configuration that `WordPiece` supports: lower case, no accents, split at punctuation."""
    normalizer = description.get("normalizer") or {}
    return (
        _has(normalizer, _NORMALIZER)
        and normalizer.get("strip_accents") in (None, True)
        and _has(description.get("pre_tokenizer") or {}, {"type": "BertPreTokenizer"})
        and _has(model, _MODEL)
        and model.get("unk_token") in model.get("vocab", {})
        and all(_is_plain(token) for token in description.get("added_tokens") or ())
        and (description.get("post_processor") or {"type": None})["type"]
        in (None, "TemplateProcessing", "BertProcessing")
    )


def _has(part: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(part.get(key) == value for key, value in wanted.items())


def _is_plain(token: dict[str, Any]) -> bool:
    return not any(token.get(key) for key in ("single_word", "lstrip", "rstrip", "normalized"))


def _templates(processor: dict[str, Any] | None) -> tuple[_Template, _Template]:
    if processor is None:
        return (("A", 0),), (("A", 0), ("B", 1))
    if processor["type"] == "BertProcessing":
        begin, end = (processor["cls"][1],), (processor["sep"][1],)
        single = (_Special(begin, 0), ("A", 0), _Special(end, 0))
        return single, (*single, ("B", 1), _Special(end, 1))
    ids = {name: tuple(token["ids"]) for name, token in processor["special_tokens"].items()}
    return _template(processor["single"], ids), _template(processor["pair"], ids)


def _template(parts: Sequence[dict[str, Any]], ids: dict[str, tuple[int, ...]]) -> _Template:
    return tuple(
        _Special(ids[body["id"]], body["type_id"])
        if kind == "SpecialToken"
        else (str(body["id"]), int(body["type_id"]))
        for part in parts
        for kind, body in part.items()
    )


def _words(chunk: str) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the words and punctuation marks of a chunk, normalised, with the position of each character."""
    if chunk.isascii() and chunk.isalnum():
        yield chunk.lower(), range(len(chunk))
        return
    word: list[str] = []
    at: list[int] = []
    for place, letter in _letters(chunk):
        if letter == " " or _is_punctuation(letter):
            yield from _whole(word, at)
            word, at = [], []
            yield from _whole([letter] if letter != " " else [], [place])
        else:
            word.append(letter)
            at.append(place)
    yield from _whole(word, at)


def _whole(word: list[str], at: list[int]) -> Iterable[tuple[str, Sequence[int]]]:
    return [("".join(word), at)] if word else ()


def _letters(chunk: str) -> Iterator[tuple[int, str]]:
    for place, character in enumerate(chunk):
        for letter in _normal(character):
            yield place, letter


@functools.lru_cache(maxsize=1 << 14)
def _normal(character: str) -> str:
    """Return a character in lower case, without accents; empty for control characters, spaced for ideographs."""
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    parts = unicodedata.normalize("NFD", character)
    plain = "".join(part.lower() for part in parts if unicodedata.category(part) != "Mn")
    return f" {plain} " if any(low <= ord(character) <= high for low, high in _IDEOGRAPHS) else plain


@functools.lru_cache(maxsize=1 << 14)
def _is_punctuation(letter: str) -> bool:
    if letter.isascii():
        return not letter.isalnum() and letter.isprintable() and letter != " "
    return unicodedata.category(letter).startswith("P")
