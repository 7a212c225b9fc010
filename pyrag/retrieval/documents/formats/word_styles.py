"""Headings and automatic numbers of Word documents, determined by their styles."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree as ET

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_NAMED = re.compile(r"heading ([1-9])$", re.IGNORECASE)
_STYLE_ID = re.compile(r"(?:heading|berschrift|titre|t[ií]tulo)\s?([1-6])$", re.IGNORECASE)
_MAX_BASES = 20
_PLACEHOLDER = re.compile(r"%([1-9])")
_ROMAN = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
          (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))  # fmt: skip


def value_of(element: ET.Element, name: str = "val") -> str:
    """Return an attribute of a Word element; empty if the element does not have it.

    Args:
        element: The element.
        name: Name of the attribute, without its namespace.
    """
    return element.get(f"{WORD}{name}", "")


@dataclass(frozen=True, slots=True)
class NumberedLevel:
    """Numbered list that a paragraph belongs to, with the paragraph's level, from 0."""

    list_id: str
    level: int


class Styles:
    """Styles of a document, with the styles that they are based on."""

    def __init__(self, root: ET.Element | None) -> None:
        styles = () if root is None else root.iter(f"{WORD}style")
        self._styles = {value_of(style, "styleId"): style for style in styles}

    def level(self, paragraph: ET.Element) -> int:
        """Return the level of a heading, from 1; 0 for other paragraphs."""
        own = _outline(paragraph)
        if own is not None:
            return own
        name = _style_id(paragraph)
        if name and name not in self._styles:
            return _level_of_id(name)
        for style in self._chain(name):
            name_element = style.find(f"{WORD}name")
            level = _level_of_name("" if name_element is None else value_of(name_element))
            outline = _outline(style)
            if level or outline is not None:
                return outline if outline is not None else level
        return 0

    def numbering(self, paragraph: ET.Element) -> NumberedLevel | None:
        """Return the list that numbers a paragraph, set directly or by its style."""
        name = _style_id(paragraph)
        list_id, level = "", ""
        for holder in (paragraph, *self._chain(name)):
            number_element = holder.find(f"{WORD}pPr/{WORD}numPr")
            if number_element is None:
                continue
            key, place = number_element.find(f"{WORD}numId"), number_element.find(f"{WORD}ilvl")
            list_id = list_id or ("" if key is None else value_of(key))
            level = level or ("" if place is None else value_of(place))
        if not list_id or list_id == "0":
            return None
        return NumberedLevel(list_id, min(int(level), 8) if level.isdecimal() else 0)

    def _chain(self, name: str) -> list[ET.Element]:
        """Return a style and the styles that it is based on."""
        chain: list[ET.Element] = []
        while (style := self._styles.get(name)) is not None and len(chain) < _MAX_BASES:
            chain.append(style)
            base = style.find(f"{WORD}basedOn")
            name = "" if base is None else value_of(base)
        return chain


def _style_id(paragraph: ET.Element) -> str:
    style = paragraph.find(f"{WORD}pPr/{WORD}pStyle")
    return "" if style is None else value_of(style)


def _outline(holder: ET.Element) -> int | None:
    """Return the heading level of an element's outline level: 0 for body text, None if it has no outline level."""
    outline = holder.find(f"{WORD}pPr/{WORD}outlineLvl")
    value = "" if outline is None else value_of(outline)
    return None if not value.isdecimal() else int(value) + 1 if int(value) < 9 else 0


def _level_of_name(name: str) -> int:
    match = _NAMED.fullmatch(name.strip())
    return int(match[1]) if match else int(name.strip().lower() == "title") or _level_of_id(name)


def _level_of_id(name: str) -> int:
    level = _STYLE_ID.search(name)
    return int(level[1]) if level else int(name.lower() == "title")


class Numbering:
    """Counters for the lists of a document."""

    def __init__(self, root: ET.Element | None) -> None:
        self._levels: dict[str, dict[int, ET.Element]] = {}
        self._lists: dict[str, str] = {}
        self._starts: dict[tuple[str, int], int] = {}
        self._counts: dict[str, dict[int, int]] = {}
        if root is None:
            return
        lists_by_style: dict[str, str] = {}
        links: dict[str, str] = {}
        for abstract in root.iter(f"{WORD}abstractNum"):
            key = value_of(abstract, "abstractNumId")
            self._levels[key] = {_integer(value_of(lvl, "ilvl")): lvl for lvl in abstract.iter(f"{WORD}lvl")}
            for tag, names in (("styleLink", lists_by_style), ("numStyleLink", links)):
                link = abstract.find(f"{WORD}{tag}")
                if link is not None and tag == "styleLink":
                    names[value_of(link)] = key
                elif link is not None:
                    names[key] = value_of(link)
        for number in root.iter(f"{WORD}num"):
            abstract_id = number.find(f"{WORD}abstractNumId")
            key = "" if abstract_id is None else value_of(abstract_id)
            list_id = value_of(number, "numId")
            self._lists[list_id] = lists_by_style.get(links.get(key, ""), key)
            for override in number.iter(f"{WORD}lvlOverride"):
                start = override.find(f"{WORD}startOverride")
                if start is not None:
                    self._starts[list_id, _integer(value_of(override, "ilvl"))] = _integer(value_of(start))

    def label(self, place: NumberedLevel | None) -> str:
        """Return the next number of a list, with a space; empty for a paragraph without a number."""
        key = self._lists.get(place.list_id, "") if place else ""
        levels = self._levels.get(key, {})
        if place is None or place.level not in levels:
            return ""
        level = levels[place.level]
        start = self._starts.pop((place.list_id, place.level), None)
        counts = self._counts.setdefault(key, {})
        if start is not None or place.level not in counts:
            counts[place.level] = start if start is not None else _integer(_setting(level, "start") or "1")
        else:
            counts[place.level] += 1
        for below in [below for below in counts if below > place.level]:
            del counts[below]
        if _setting(level, "numFmt") == "bullet":
            return "- "
        text = _PLACEHOLDER.sub(
            lambda match: self._figure(levels, counts, int(match[1]) - 1), _setting(level, "lvlText")
        )
        return f"{text.strip()} " if text.strip() else ""

    def _figure(self, levels: dict[int, ET.Element], counts: dict[int, int], level: int) -> str:
        if level not in levels:
            return ""
        count = counts.get(level, _integer(_setting(levels[level], "start") or "1"))
        return _FORMATS.get(_setting(levels[level], "numFmt"), str)(count)


def _setting(level: ET.Element, name: str) -> str:
    element = level.find(f"{WORD}{name}")
    return "" if element is None else value_of(element)


def _integer(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 8 else 0


def _roman(number: int) -> str:
    text = "M" * min(number // 1000, 20)
    number %= 1000
    for value, letters in _ROMAN:
        text += letters * (number // value)
        number %= value
    return text


def _letters(number: int) -> str:
    """Return the letters for a number as Word counts: a, b, … z, aa, bb, …"""
    return chr(ord("A") + (number - 1) % 26) * min(1 + (number - 1) // 26, 20) if number > 0 else "0"


_FORMATS: dict[str, Callable[[int], str]] = {
    "upperRoman": _roman,
    "lowerRoman": lambda number: _roman(number).lower(),
    "upperLetter": _letters,
    "lowerLetter": lambda number: _letters(number).lower(),
    "decimalZero": lambda number: f"{number:02}",
    "ordinal": lambda number: f"{number}.",
    "none": lambda _: "",
}
