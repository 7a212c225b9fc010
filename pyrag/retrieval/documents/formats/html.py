"""HTML pages as Markdown, converted by `html-to-markdown` from a tree of `lxml`.

Menus (`nav`), scripts and hidden parts are removed and counted. The rest of a page is kept, without a heuristic for its
main content. Our own code only handles what the library drops: form values, tables within cells, line breaks and lists
within cells, `header` and `noscript`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyrag.errors import DataError, install_extra
from pyrag.retrieval.documents.formats.headings import NO_NAME, with_headings
from pyrag.retrieval.documents.formats.properties import Properties, properties_of

_SILENT = frozenset(
    {"title", "script", "style", "template", "svg", "link", "meta", "base", "iframe", "object", "embed"}
)
_RENAMED = {
    "head": "div",
    "header": "div",
    "noscript": "div",
    "form": "div",
    "fieldset": "div",
    "legend": "p",
    "hgroup": "div",
}
_UNSEEN_INPUTS = frozenset({"hidden", "password", "submit", "reset", "button", "image", "file"})
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_ICONS = {True: "☒", False: "☐"}
_BLOCKS = ("p", "div", "li", "br", "dd", "dt", "tr", "h1", "h2", "h3", "h4", "h5", "h6")
_SPACE = re.compile(r"\s+")
_LINK = re.compile(r"(?<!\\)\[((?:[^\[\]\\]|\\.)*)\]\((?:<[^<>]*>|[^()\s]*+(?:\([^()]*\)[^()\s]*+)?)(?: \"[^\"]*\")?\)")
_IMAGE = re.compile(r"!\[((?:[^\[\]\\]|\\.)*)\]\((?:<[^<>]*>|[^()\s]*+)(?: \"[^\"]*\")?\)")


class Page(NamedTuple):
    """Page as Markdown, with remarks on omitted parts."""

    properties: Properties
    text: str
    remarks: list[str]


def html_markdown(data: bytes, name: str) -> Page:
    """Convert a page to Markdown.

    Args:
        data: The page, or a fragment of a page.
        name: Name of the file in messages.

    Raises:
        DataError: The converter is missing or cannot read the page.
    """
    try:
        import html_to_markdown
        from lxml import etree, html
    except ImportError:
        raise DataError(f"{name} needs a converter that is not installed: {install_extra('docs')}") from None
    try:
        if not data.strip():
            return Page(Properties(), "", [])
        tree = html.document_fromstring(_decoded(data), parser=html.HTMLParser(huge_tree=False, recover=True))
        properties = properties_of(_stated(tree))
        remarks = _simplified(tree)
        options = html_to_markdown.ConversionOptions(
            extract_metadata=False,
            compact_tables=True,
            hidden_content="all",
            preprocessing=html_to_markdown.PreprocessingOptions(enabled=False),
        )
        result = html_to_markdown.convert(etree.tostring(tree, encoding="unicode", method="html"), options)
    except Exception as error:  # of hostile pages; the libraries have classes of their own
        raise DataError(
            f"{name} cannot be read as HTML ({error}): open it in a browser and save it again, or save it as text"
        ) from error
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", result.content or ""))
    return Page(properties, with_headings(text), remarks)


def _stated(tree: Any) -> Iterator[tuple[str, str]]:
    """Yield what a page states about itself in its title and its meta elements."""
    yield "title", tree.findtext(".//title") or ""
    for meta in tree.iter("meta"):
        yield meta.get("name") or meta.get("property") or meta.get("itemprop") or "", meta.get("content", "")


def _decoded(data: bytes) -> str:
    """Decode a page by its byte order mark, its declaration, as UTF-8, or as windows-1252."""
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return _without_declaration(data.decode(encoding, "replace"))
    declaration = re.search(rb"<meta[^>]{0,300}charset\s*=\s*[\"']?\s*([\w.:-]+)", data[:4096], re.IGNORECASE)
    declaration = declaration or re.match(rb"\s*<\?xml[^>]*encoding=[\"']([\w.:-]+)", data)
    for encoding in (declaration[1].decode() if declaration else "utf-8", "utf-8", "windows-1252"):
        try:
            return _without_declaration(data.decode(_WEB_NAMES.get(encoding.lower(), encoding)))
        except (UnicodeError, LookupError):
            continue
    return _without_declaration(data.decode("windows-1252", "replace"))


_WEB_NAMES = {"iso-8859-1": "windows-1252", "latin1": "windows-1252", "us-ascii": "windows-1252", "x-sjis": "cp932"}


def _without_declaration(text: str) -> str:
    return re.sub(r"^\ufeff?\s*<\?xml[^>]*\?>", "", text).replace("\0", "")


def _simplified(tree: Any) -> list[str]:
    """Remove menus and scripts, turn forms and cells into text; return remarks on omitted parts."""
    menus = hidden_parts = 0
    for element in list(tree.iter()):
        if not isinstance(element.tag, str) or (element.tag in _SILENT):
            _drop(element)
        elif element.tag == "nav" or element.get("role") == "navigation":
            menus += bool("".join(element.itertext()).strip())
            _drop(element)
        elif _is_hidden(element):
            hidden_parts += bool("".join(element.itertext()).strip())
            _drop(element)
    for element in list(tree.iter()):
        element.tag = _RENAMED.get(element.tag, element.tag)
        _write_form(element)
    for table in list(tree.iter("table")):
        _mark_as_data(table)
    for cell in list(tree.iter("td", "th")):
        _flatten(cell)
    _write_terms(tree)
    return [
        f"{what} of pages left out" for count, what in ((menus, "menus (nav)"), (hidden_parts, "hidden parts")) if count
    ]


def _is_hidden(element: Any) -> bool:
    return "hidden" in element.attrib or bool(_HIDDEN.search(element.get("style", "")))


def _drop(element: Any) -> None:
    """Remove an element with its content; keep the text after it."""
    parent = element.getparent()
    if parent is None:
        return
    before = element.getprevious()
    tail = element.tail or ""
    if before is not None:
        before.tail = (before.tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail
    parent.remove(element)


def _write_form(element: Any) -> None:
    """Replace a form field with its value."""
    if element.tag == "input":
        kind = element.get("type", "text").lower()
        value = element.get("value", "")
        if kind in ("checkbox", "radio"):
            value = _ICONS["checked" in element.attrib]
        _become_text(element, "" if kind in _UNSEEN_INPUTS else value)
    elif element.tag == "select":
        options = list(element.iter("option"))
        selection = [option for option in options if "selected" in option.attrib] or options
        _become_text(element, ", ".join(" ".join(option.itertext()).strip() for option in selection))
    elif element.tag in ("textarea", "output", "button"):
        _become_text(element, " ".join("".join(element.itertext()).split()))


def _become_text(element: Any, text: str) -> None:
    tail = element.tail
    for child in list(element):
        element.remove(child)
    element.attrib.clear()
    element.tag, element.text, element.tail = "span", f" {text} " if text else "", tail


def _mark_as_data(table: Any) -> None:
    """Remove what makes the library take a table for layout, which it writes as a list without columns."""
    if table.find(".//th") is None and (row := table.find(".//tr")) is not None:
        for cell in row.findall("td"):
            cell.tag = "th"
    _add_heading(table)
    for part in table.iter("table", "tr", "td", "th"):
        for name in set(part.attrib) - {"colspan", "rowspan"}:
            del part.attrib[name]


def _add_heading(table: Any) -> None:
    """Add an empty heading to a table of labels and values, whose rows consist of a `th` and a `td`."""
    rows = [(row, [cell.tag for cell in row if cell.tag in ("th", "td")]) for row in table.iter("tr")]
    pairs = [row for row, tags in rows if tags == ["th", "td"]]
    if not pairs or any(len(tags) > 1 and tags != ["th", "td"] for _, tags in rows):
        return
    heading = pairs[0].makeelement("tr")
    for _ in range(2):
        heading.append(heading.makeelement("th"))
        heading[-1].text = NO_NAME
    pairs[0].addprevious(heading)


def _flatten(cell: Any) -> None:
    """Turn a cell into one line: its blocks, and nested tables, become text separated by semicolons."""
    if not any(isinstance(child.tag, str) and child.tag in _BLOCKS for child in cell.iter() if child is not cell):
        return
    lines = [" ".join(line.split()) for line in "".join(_pieces(cell)).split("\n")]
    for child in list(cell):
        cell.remove(child)
    cell.text = "; ".join(filter(None, lines))


def _pieces(element: Any) -> Iterator[str]:
    yield _SPACE.sub(" ", element.text or "")
    for child in element:
        is_block = child.tag in _BLOCKS
        yield "\n" if is_block else ""
        yield from _pieces(child)
        yield "\n" if is_block else " " if child.tag in ("td", "th") else ""
        yield _SPACE.sub(" ", child.tail or "")


def _write_terms(tree: Any) -> None:
    """Rewrite lists of terms as lines of the form `term: meaning`."""
    for term in list(tree.iter("dt")):
        following = term.getnext()
        if following is not None and following.tag == "dd":
            words = " ".join("".join(term.itertext()).split())
            for child in list(term):
                term.remove(child)
            term.text = ""
            following.text = f"{words}: {(following.text or '').lstrip()}"
