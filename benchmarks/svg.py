"""Plots as SVG without a library: bars, and lines from zero. Their colours suit light and dark pages."""

from __future__ import annotations

from html import escape
from math import floor, log10

_TEXT, _LINE = "#808080", "#80808055"
_OWN, _FLOOR, _OTHERS = "#5c6bc0", "#26a69a", "#9e9e9e"
_FONT = 'font-family="system-ui, sans-serif" font-size="13"'


def _document(width: int, height: int, title: str, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" {_FONT} fill="{_TEXT}">'
        f"<title>{escape(title)}</title>"
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def number(value: float) -> str:
    """Format a number with three significant digits and without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def colour(name: str, others: bool) -> str:
    """Return the colour of a bar: for the floor, for aioinformer, or for other projects if `others` is set."""
    if name.startswith("floor"):
        return _FLOOR
    return _OTHERS if others and not name.startswith("aioinformer") else _OWN


def bars(title: str, values: dict[str, float], unit: str, *, others: bool = False, limit: float = 0.0) -> str:
    """Draw one bar for each name; the longest one fills the width.

    Args:
        title: of the plot.
        values: by name, from top to bottom.
        unit: follows each value.
        others: draw bars of other projects in a colour of their own.
        limit: longer bars are cut and marked; 0 for none.
    """
    longest = max(values.values(), default=1.0) or 1.0
    longest = min(longest, limit) if limit else longest
    parts = []
    for line, (name, value) in enumerate(values.items()):
        parts += _bar(line, name, 0.0, min(1.0, value / longest), f"{number(value)} {unit}", colour(name, others))
        if value > longest:
            x, y = _LEFT + _ROOM - 24, _TOP + line * _ROW
            parts.append(f'<path d="M{x} {y + 20}l8 -22h6l-8 22z" fill="#fff"/>')
    return _rows(title, parts, len(values))


_LEFT, _ROOM, _TOP, _ROW = 210, 360, 34, 26


def _bar(line: int, name: str, start: float, length: float, text: str, fill: str) -> list[str]:
    y, x, width = _TOP + line * _ROW, _LEFT + start * _ROOM, max(1.5, length * _ROOM)
    return [
        f'<text x="{_LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>',
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="18" rx="2" fill="{fill}"/>',
        f'<text x="{x + width + 6:.1f}" y="{y + 14}">{escape(text)}</text>',
    ]


def _rows(title: str, parts: list[str], rows: int) -> str:
    head = f'<text x="0" y="16" font-weight="600">{escape(title)}</text>'
    return _document(720, _TOP + 6 + rows * _ROW, title, [head, *parts])


def panels(title: str, series: dict[str, list[tuple[float, float]]], x_label: str) -> str:
    """Draw a panel for each series. All axes start at zero, and dashed lines show proportional growth.

    Args:
        title: of the plot.
        series: points by name, ordered by x; all values are positive.
        x_label: the label below each horizontal axis.
    """
    width, height, top, gap = 170, 150, 60, 62
    parts = [f'<text x="0" y="16" font-weight="600">{escape(title)}</text>']
    for index, (name, line) in enumerate(series.items()):
        left = 46 + index * (width + gap)
        bottom = top + height
        last_x, last_y = line[-1]
        most_x, most_y = last_x, _round_up(max(y for _, y in line))
        parts.append(f'<text x="{left - 40}" y="{top - 16}">{escape(name)}</text>')
        for share in (0.0, 0.5, 1.0):
            x, y = left + share * width, bottom - share * height
            parts.append(f'<line x1="{left}" y1="{y}" x2="{left + width}" y2="{y}" stroke="{_LINE}"/>')
            parts.append(_label(left - 6, y + 4, "end", _short(most_y * share)))
            parts.append(_label(x, bottom + 16, "middle", _short(most_x * share)))
        parts.append(_label(left + width / 2, bottom + 34, "middle", x_label))
        straight = bottom - last_y / most_y * height
        if line[0][1] < 0.8 * last_y:
            parts.append(
                f'<line x1="{left}" y1="{bottom}" x2="{left + width}" y2="{straight:.1f}" '
                f'stroke="{_TEXT}" stroke-dasharray="3 4"/>'
            )
        placed = [(left + x / most_x * width, bottom - y / most_y * height) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{_OWN}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{_OWN}"/>' for x, y in placed]
        parts.append(_label(placed[-1][0] + 8, placed[-1][1] + 4, "start", number(last_y)))
    return _document(46 + len(series) * (width + gap), top + height + 44, title, parts)


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="11">{escape(text)}</text>'


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _round_up(value: float) -> float:
    """Return the next number that is suitable for the end of an axis, and for its half."""
    unit = 10.0 ** floor(log10(value))
    return float(next(step for step in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10) if step * unit >= value) * unit)
