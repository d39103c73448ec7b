"""Two plots as SVG, without a library: bars, and lines over a logarithmic axis. They are legible on light and dark."""

from __future__ import annotations

from html import escape
from math import log10

_TEXT, _LINE = "#808080", "#80808055"
_COLOURS = ("#5c6bc0", "#26a69a", "#ef6c00", "#ab47bc")
_FONT = 'font-family="system-ui, sans-serif" font-size="13"'


def _document(width: int, height: int, title: str, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" {_FONT} fill="{_TEXT}">'
        f"<title>{escape(title)}</title>"
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def number(value: float) -> str:
    """Three digits, and no exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def bars(title: str, values: dict[str, float], unit: str, marked: tuple[str, ...] = ()) -> str:
    """One bar for each name, the longest as wide as there is room.

    Args:
        title: of the plot.
        values: by name, from top to bottom.
        unit: behind each value.
        marked: names whose bars have the second colour.
    """
    left, room, row = 250, 360, 26
    longest = max(values.values(), default=1.0) or 1.0
    parts = [f'<text x="0" y="16" font-weight="600">{escape(title)}</text>']
    for line, (name, value) in enumerate(values.items()):
        y = 34 + line * row
        width = max(1.5, value / longest * room)
        colour = _COLOURS[1 if name in marked else 0]
        parts.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{width:.1f}" height="18" rx="2" fill="{colour}"/>')
        parts.append(f'<text x="{left + width + 6:.1f}" y="{y + 14}">{number(value)} {escape(unit)}</text>')
    return _document(720, 40 + len(values) * row, title, parts)


def lines(title: str, series: dict[str, list[tuple[float, float]]], x_label: str) -> str:
    """Lines through points; both axes are logarithmic, so that what grows in proportion is a straight diagonal.

    Args:
        title: of the plot.
        series: points by name; all values are positive.
        x_label: below the horizontal axis.
    """
    left, top, width, height = 60, 40, 420, 260
    points = [point for each in series.values() for point in each]
    low_x, high_x = log10(min(x for x, _ in points)), log10(max(x for x, _ in points))
    low_y, high_y = log10(min(y for _, y in points)) - 0.1, log10(max(y for _, y in points)) + 0.1

    def place(x: float, y: float) -> tuple[float, float]:
        across = (log10(x) - low_x) / ((high_x - low_x) or 1.0)
        up = (log10(y) - low_y) / ((high_y - low_y) or 1.0)
        return left + across * width, top + height - up * height

    parts = [f'<text x="0" y="16" font-weight="600">{escape(title)}</text>']
    for x in sorted({x for x, _ in points}):
        at = place(x, 10**low_y)[0]
        parts.append(f'<line x1="{at:.1f}" y1="{top}" x2="{at:.1f}" y2="{top + height}" stroke="{_LINE}"/>')
        parts.append(f'<text x="{at:.1f}" y="{top + height + 18}" text-anchor="middle">{number(x)}</text>')
    parts.append(f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">{escape(x_label)}</text>')
    for index, (name, line) in enumerate(series.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        placed = [place(x, y) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for (x, y), (_, value) in zip(placed, line, strict=True):
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
            parts.append(
                f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle" font-size="11">{number(value)}</text>'
            )
        parts.append(f'<text x="{left + width + 12}" y="{placed[-1][1] + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    return _document(720, top + height + 50, title, parts)
