"""Plots as SVG text: points, grouped bars, stacked bars and curves. They need no dependency and no script.

Sizes are in pixels; text is 12 px, and its width is estimated. Labels do not overlap, and long ones end with "…".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

# Okabe and Ito's colours, which colour-blind readers can distinguish; then greys for further series.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#555555", "#999999", "#000000")
WIDTH, HEIGHT = 460, 290  # readable on a telephone, which shrinks it to 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 30, 42

_LETTER = 6.6  # width of a letter of 12 px on average; bold ones are wider
_BOLD = 7.2
_LINE = 14
_TRIES = 14  # rows above and below a point that are tried for its label

Points = Sequence[tuple[float, float]]


def colour(position: int) -> str:
    """Return the colour of a series by its position."""
    return COLOURS[position % len(COLOURS)]


class Frame:
    """Axes with a title, which map values to pixels."""

    def __init__(self, title: str, x: tuple[float, float], y: tuple[float, float], names: tuple[str, str]) -> None:
        self.x, self.y = x, y
        self.parts = [_title(title)]
        self._axes(*names)

    def px(self, value: float) -> float:
        """Return the x coordinate of a value."""
        low, high = self.x
        return _LEFT + (value - low) / ((high - low) or 1) * (WIDTH - _LEFT - _RIGHT)

    def py(self, value: float) -> float:
        """Return the y coordinate of a value."""
        low, high = self.y
        return HEIGHT - _BOTTOM - (value - low) / ((high - low) or 1) * (HEIGHT - _TOP - _BOTTOM)

    def _axes(self, x_name: str, y_name: str) -> None:
        for tick in _ticks(*self.y):
            y = self.py(tick)
            self.parts.append(_line(_LEFT, y, WIDTH - _RIGHT, y, "#dddddd"))
            self.parts.append(_text(_LEFT - 6, y + 4, _number(tick), anchor="end"))
        base = HEIGHT - _BOTTOM
        self.parts.append(_line(_LEFT, base, WIDTH - _RIGHT, base, "#333333"))
        if x_name:
            self.parts.append(_text((WIDTH + _LEFT) / 2, HEIGHT - 6, x_name, anchor="middle"))
        turned = f'transform="rotate(-90 13 {HEIGHT / 2})"'
        self.parts.append(_text(13, HEIGHT / 2, y_name, anchor="middle", more=turned))

    def x_ticks(self) -> None:
        """Draw the ticks of the x axis."""
        for tick in _ticks(*self.x):
            x = self.px(tick)
            self.parts.append(_line(x, HEIGHT - _BOTTOM, x, HEIGHT - _BOTTOM + 4, "#333333"))
            self.parts.append(_text(x, HEIGHT - _BOTTOM + 17, _number(tick), anchor="middle"))

    def svg(self, description: str) -> str:
        """Return the plot as SVG."""
        return _svg(WIDTH, HEIGHT, description, self.parts)


def scatter(title: str, points: Mapping[str, tuple[float, float]], x_name: str, y_name: str) -> str:
    """Plot named points.

    Args:
        title: Title of the plot.
        points: Coordinates x and y by name.
        x_name: Label of the x axis.
        y_name: Label of the y axis, which ends at 100 at most.
    """
    xs, ys = [x for x, _ in points.values()], [y for _, y in points.values()]
    frame = Frame(title, (0, _ceiling(max(xs))), (0, min(100, _ceiling(max(ys)))), (x_name, y_name))
    frame.x_ticks()
    places = [(frame.px(x), frame.py(y)) for x, y in points.values()]
    labels = [shortened(name, (WIDTH - _LEFT) / 2) for name in points]
    for place, label, box in zip(places, labels, _label_boxes(places, labels), strict=True):
        frame.parts += _leader(place, box)
        frame.parts.append(_text(box.left, box.top + _LINE - 4, label))
    for position, (px, py) in enumerate(places):
        frame.parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5" fill="{colour(position)}"/>')
    return frame.svg(f"{title}: " + ", ".join(f"{name} {x:.2f} / {y:.1f}" for name, (x, y) in points.items()))


@dataclass(frozen=True, slots=True)
class Box:
    """Rectangle that is kept free of other drawings."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Return True if two boxes overlap."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def _label_boxes(places: Sequence[tuple[float, float]], labels: Sequence[str]) -> list[Box]:
    """Return the place of each label: next to its point, or in the nearest free row."""
    occupied = [Box(px - 6, py - 6, px + 6, py + 6) for px, py in places]
    boxes = []
    for place, label in zip(places, labels, strict=True):
        candidates = list(_candidates(place, _LETTER * len(label)))
        box = next((candidate for candidate in candidates if not any(map(candidate.meets, occupied))), candidates[0])
        occupied.append(box)
        boxes.append(box)
    return boxes


def _candidates(place: tuple[float, float], width: float) -> Iterator[Box]:
    px, py = place
    for row in range(_TRIES):
        for middle in dict.fromkeys((py - row * _LINE, py + row * _LINE)):
            for left in (px + 9, px - 9 - width, px - width / 2):
                box = Box(left, middle - _LINE / 2, left + width, middle + _LINE / 2)
                if box.left >= _LEFT and box.right <= WIDTH and box.top >= _TOP - 6 and box.bottom <= HEIGHT - _BOTTOM:
                    yield box
    yield Box(px, py - _LINE / 2, px + width, py + _LINE / 2)  # if no place is free


def _leader(place: tuple[float, float], box: Box) -> list[str]:
    """Draw a thin line to a label that is not next to its point."""
    px, py = place
    x = min(max(px, box.left), box.right)
    y = min(max(py, box.top), box.bottom)
    return [_line(px, py, x, y, "#aaaaaa")] if math.hypot(px - x, py - y) > _LINE else []


def grouped_bars(title: str, groups: Sequence[str], series: Mapping[str, Sequence[float | None]], y_name: str) -> str:
    """Plot one bar per series for each group, in per cent.

    Args:
        title: Title of the plot.
        groups: Labels of the groups.
        series: Values by name, one per group; None for no bar.
        y_name: Label of the y axis.
    """
    frame = Frame(title, (0, len(groups)), (0, 100), ("", y_name))
    width = 0.8 / max(len(series), 1)
    for place, group in enumerate(groups):
        label = shortened(group, frame.px(1) - frame.px(0) - 4)
        frame.parts.append(_text(frame.px(place + 0.5), HEIGHT - _BOTTOM + 17, label, anchor="middle"))
        for position, (name, values) in enumerate(series.items()):
            value = values[place]
            if value is None:
                continue
            left, right = (frame.px(place + 0.1 + width * edge) for edge in (position, position + 1))
            top = frame.py(value)
            tip = f"{name}, {group}: {value:.1f}"
            frame.parts.append(_rect(left, top, right - left - 1, HEIGHT - _BOTTOM - top, colour(position), tip))
    return frame.svg(title)


def stacked_bars(title: str, bars: Mapping[str, Mapping[str, float]], colours: Mapping[str, str]) -> str:
    """Plot one horizontal bar per name.

    Args:
        title: Title of the plot.
        bars: For each name, shares from 0 to 1 by kind.
        colours: Fill by kind, in the order of drawing.
    """
    margin = min(WIDTH * 0.45, 12 + _LETTER * max(map(len, bars)))
    row, width = 26, WIDTH - margin - 20
    parts = [_title(title)]
    for line, (name, shares) in enumerate(bars.items()):
        y, x = 28 + line * row, float(margin)
        parts.append(_text(margin - 6, y + 14, shortened(name, margin - 8), anchor="end"))
        for kind, fill in colours.items():
            share = shares.get(kind, 0.0)
            if share:
                parts.append(_rect(x, y, share * width, row - 6, fill, f"{name}, {kind}: {100 * share:.1f} %"))
                if share * width > 2.5 * _LETTER:
                    light = _text(x + share * width / 2, y + 14, f"{100 * share:.0f}", anchor="middle", fill="#ffffff")
                    parts.append(light)
                x += share * width
    return _svg(WIDTH, 34 + row * len(bars), title, parts)


def curves(
    title: str,
    lines: Mapping[str, Points],
    x_name: str,
    y_name: str,
    *,
    highest: float | None = 100,
    dots: Points = (),
) -> str:
    """Plot lines over points.

    Args:
        title: Title of the plot.
        lines: Points of each line, by name.
        x_name: Label of the x axis.
        y_name: Label of the y axis.
        highest: Upper end of the y axis; None to fit it to the data.
        dots: Points to draw behind the lines.
    """
    drawn = [*dots, *(point for points in lines.values() for point in points)]
    longest = max((x for x, _ in drawn), default=1.0)
    top = _ceiling(max((y for _, y in drawn), default=1.0)) if highest is None else highest
    frame = Frame(title, (0, _ceiling(longest)), (0, top), (x_name, y_name))
    frame.x_ticks()
    frame.parts += [f'<circle cx="{frame.px(x):.1f}" cy="{frame.py(y):.1f}" r="2" fill="#999999"/>' for x, y in dots]
    for position, points in enumerate(lines.values()):
        path = " ".join(f"{frame.px(x):.1f},{frame.py(y):.1f}" for x, y in points)
        stroke = f'fill="none" stroke="{colour(position)}" stroke-width="2"'
        frame.parts.append(f'<polyline points="{path}" {stroke}/>')
    return frame.svg(title)


def cumulative(values: Iterable[float]) -> list[tuple[float, float]]:
    """Return the steps of a cumulative distribution, in per cent; at most about 200 steps."""
    ordered = sorted(values)
    stride = max(1, len(ordered) // 200)
    marks = [*range(0, len(ordered), stride), len(ordered) - 1]
    steps = [(0.0, 0.0)]
    for mark in dict.fromkeys(marks):
        steps += [(ordered[mark], steps[-1][1]), (ordered[mark], 100 * (mark + 1) / len(ordered))]
    return steps


def legend(names: Mapping[str, str]) -> str:
    """Return an HTML legend from colours by name."""
    items = (f'<span><i style="background:{fill}"></i>{escape(name)}</span>' for name, fill in names.items())
    return f'<p class="legend">{"".join(items)}</p>'


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round values from low to high."""
    step = _round_step((high - low) / count)
    first = math.ceil(low / step)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def _round_step(rough: float) -> float:
    if rough <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)


def _ceiling(value: float) -> float:
    """Return a round value slightly above a value."""
    step = _round_step(value / 5)
    return (math.floor(value / step) + 1) * step if value > 0 else 1.0


def _number(value: float) -> str:
    return f"{value:.10g}" if abs(value) >= 1e-9 else "0"


def shortened(text: str, width: float, letter: float = _LETTER) -> str:
    """Return a text cut to a width.

    Args:
        text: Any text.
        width: Width in pixels.
        letter: Width of a letter in pixels.
    """
    limit = max(1, int(width / letter))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _title(text: str) -> str:
    return _text(WIDTH / 2, 16, shortened(text, WIDTH - 8, _BOLD), anchor="middle", bold=True)


def _svg(width: float, height: float, description: str, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    label = f' role="img" aria-label="{escape(description)}" font-family="sans-serif" font-size="12">'
    return head + label + "".join(parts) + "</svg>"


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", bold: bool = False, fill: str = "#222222", more: str = ""
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}"'
    return f"<text {place}{weight} {more}>{escape(text)}</text>"


def _line(x1: float, y1: float, x2: float, y2: float, stroke: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}"/>'


def _rect(x: float, y: float, width: float, height: float, fill: str, tip: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" fill="{fill}"'
    return f"<rect {place}><title>{escape(tip)}</title></rect>"
