"""Writer of all report pages: tables as Markdown and HTML, plots side by side, whole pages.

Styles and plots are part of the page: nothing is fetched, and no script runs. The contents of reports are defined
elsewhere (benchmarks, evolving and training each have a module), and plots are drawn in `svg`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from pyrag.evaluation.reports import svg

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 2rem auto; max-width: 1800px;
       padding: 0 max(1rem, 2vw); overflow-wrap: break-word; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
p { max-width: 90ch; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: .2rem .45rem; border-bottom: 1px solid #e5e5e5; vertical-align: top; }
th { border-bottom: 2px solid #999; text-align: left; vertical-align: bottom; }
td.figure, th.figure { text-align: right; font-variant-numeric: tabular-nums; }
td.figure, td.short { white-space: nowrap; }
td:not(.figure) { max-width: 48ch; }
td.reported, th.reported { color: #777; font-style: italic; background: #f6f6f2; }
tr.first td { border-top: 1px solid #999; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: 1rem;
         align-items: start; margin: 1rem 0; }
.plots > * { min-width: 0; }
.plots svg { width: 100%; height: auto; max-width: 600px; }
.legend span { margin-right: 1.2rem; display: inline-block; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .35rem; }
.failed { background: #fff3cd; padding: .5rem 1rem; }
details { border-bottom: 1px solid #e5e5e5; padding: .2rem 0; }
summary { cursor: pointer; }
details[open] { padding-bottom: 1rem; }
pre { background: #f6f6f2; padding: .5rem; overflow-x: auto; font-size: 12px; }
.cause { color: #a33b00; }
@media (max-width: 600px) {
  body { margin: 1rem auto; padding: 0 .75rem; }
  th, td { padding: .2rem .35rem; }
}
"""
_MAX_COLUMNS = 12  # a wider table with fewer rows than columns is turned
_MAX_SHORT = 24  # letters that are not broken into lines


@dataclass(frozen=True, slots=True)
class Table:
    """Table with text cells. The first `left` columns are texts, the others figures. As a string, it is Markdown."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __str__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(self.header))]
        rule = ["-" * width if i < self.left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
        return "\n".join(self._line(cells, widths) for cells in (self.header, rule, *self.rows))

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        padded = (
            cell.ljust(width) if i < self.left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "| " + " | ".join(padded) + " |"


def document(title: str, body: str) -> str:
    """Return a whole page.

    Args:
        title: Title as plain text.
        body: Body as HTML.
    """
    view = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f"{view}<title>{escape(title)}</title><style>{_STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><h1>{escape(title)}</h1>{body}</body></html>\n'


def section(title: str, text: str, *parts: str) -> str:
    """Return a section of a page with a heading.

    Args:
        title: Heading as plain text.
        text: One paragraph of plain text, or empty.
        parts: HTML that follows.
    """
    body = [f"<h2>{escape(title)}</h2>", *([f"<p>{escape(text)}</p>"] if text else []), *parts]
    return "\n".join(body) + "\n"


def upright(table: Table) -> Table:
    """Transpose a table if it has more columns than fit on a screen, and fewer rows."""
    if table.left > 1 or len(table.header) <= max(_MAX_COLUMNS, len(table.rows) + 1):
        return table
    first, *others = zip(table.header, *table.rows, strict=True)
    return Table(first, others)


def table_html(table: Table, links: Mapping[tuple[int, int], str] | None = None) -> str:
    """Return a table that scrolls if it is too wide.

    Args:
        table: The table.
        links: Addresses of cells, by row and column.
    """
    addresses = links or {}
    classes = [(("figure " if i >= table.left else "") + _mark(name)).strip() for i, name in enumerate(table.header)]

    def cells(tag: str, row: Sequence[str], number: int) -> str:
        shown = (_linked(cell, addresses.get((number, i))) for i, cell in enumerate(row))
        kinds = (f"{name} short" if len(cell) <= _MAX_SHORT else name for name, cell in zip(classes, row, strict=True))
        return "".join(f'<{tag} class="{name}">{cell}</{tag}>' for name, cell in zip(kinds, shown, strict=True))

    lines, before = [], ""
    for number, row in enumerate(table.rows):
        first = ' class="first"' if before and row[0] != before else ""
        lines.append(f"<tr{first}>{cells('td', row, number)}</tr>")
        before = row[0]
    head = f"<thead><tr>{cells('th', table.header, -1)}</tr></thead>"
    return f'<div class="wide"><table>{head}<tbody>{"".join(lines)}</tbody></table></div>'


def _linked(cell: str, address: str | None) -> str:
    return escape(cell) if address is None else f'<a href="{escape(address)}">{escape(cell)}</a>'


def _mark(header: str) -> str:
    return "reported" if header.startswith("reported") else ""


def plots_html(plots: Sequence[str]) -> str:
    """Return plots side by side, with as many in a row as fit."""
    return f'<div class="plots">{"".join(plots)}</div>'


def with_legend(plot: str, names: Sequence[str]) -> str:
    """Return a plot below a legend of its lines.

    Args:
        plot: Plot as SVG.
        names: Names of the lines, in the order of drawing.
    """
    return f"<div>{legend(names)}{plot}</div>"


def legend(names: Sequence[str]) -> str:
    """Return the HTML legend of series, in the colours that `svg` uses for them."""
    return svg.legend({name: svg.colour(position) for position, name in enumerate(names)})
