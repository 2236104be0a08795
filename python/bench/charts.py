# SPDX-License-Identifier: Apache-2.0
"""Small SVG charts: one polyline a series, one bar a value, numbers rounded to a pixel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = {
    "floor": "#888888",
    "dstl": "#1f77b4",
    "dstl-snapshots": "#9467bd",
    "dstl-no-snapshots": "#2ca02c",
    "direct": "#ff7f0e",
    "default": "#d62728",
    "empty": "#888888",
}
WIDTH, HEIGHT, LEFT, TOP, BETWEEN = 300, 180, 44, 28, 24
BAR = 15

Point = tuple[float, float]
# The value, and the range that it lies in.
Spread = tuple[float, float, float]


@dataclass(frozen=True)
class Panel:
    """One plot of a chart: points by series. The y axis begins at 0."""

    title: str
    x_label: str
    series: Mapping[str, Sequence[Point]]
    is_log: bool = False


def line_chart(panels: Sequence[Panel], labels: Mapping[str, str]) -> str:
    """Draw the panels side by side, and one legend below."""
    named = list(dict.fromkeys(name for panel in panels for name in panel.series))
    drawn = [line for number, panel in enumerate(panels) for line in _panel(panel, number * (WIDTH + LEFT + BETWEEN))]
    bottom = TOP + HEIGHT + 58
    width = max(len(panels) * (WIDTH + LEFT + BETWEEN), LEFT + sum(_legend_width(labels[name]) for name in named))
    return _svg(width, bottom + 12, [*drawn, *_legend(named, labels, LEFT, bottom)])


def bar_chart(groups: Mapping[str, Mapping[str, Spread]], labels: Mapping[str, str], x_label: str) -> str:
    """Draw a bar for each value, with its range, one group below the other."""
    named = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    most = max(high for bars in groups.values() for _, _, high in bars.values())
    left, width = 8 + 7 * max(map(len, groups)), 2 * WIDTH
    rows, y = [], TOP
    for group, bars in groups.items():
        middle = y + len(bars) * BAR // 2 + 4
        rows.append(f'<text x="{left - 6}" y="{middle}" text-anchor="end">{escape(group)}</text>')
        for name, (value, low, high) in bars.items():
            value_at, low_at, high_at = (round(left + width * of / most) for of in (value, low, high))
            rows.append(f'<path d="M{left} {y}H{value_at}v{BAR - 1}H{left}z" fill="{COLOURS[name]}"/>')
            rows.append(f'<path d="M{low_at} {y + BAR // 2}H{high_at}" stroke="#000"/>')
            y += BAR
        y += BAR
    across = {left + round(width * tick / most): tick for tick in ticks(most)}
    grid = [f'<path d="{"".join(f"M{x} {TOP}V{y}" for x in across)}" stroke="#ddd"/>']
    axis = [*_texts(((x, y + 14, f"{tick:g}") for x, tick in across.items()), "middle")]
    axis += _texts([(left + width // 2, y + 30, x_label)], "middle")
    return _svg(left + width + BETWEEN, y + 62, [*grid, *rows, *axis, *_legend(named, labels, left, y + 50)])


def ticks(most: float) -> list[float]:
    """Return a few round numbers from 0 to that one."""
    magnitude = 10 ** math.floor(math.log10(most)) if most > 0 else 1
    step = next(step for step in (0.2, 0.5, 1, 2) if most / (step * magnitude) <= 6.5) * magnitude
    return [round(number * step, 6) for number in range(math.floor(most / step) + 1)]


def _panel(panel: Panel, offset: int) -> list[str]:
    left, bottom = offset + LEFT, TOP + HEIGHT
    xs = [x for points in panel.series.values() for x, _ in points]
    most = 1.1 * max(y for points in panel.series.values() for _, y in points)
    if panel.is_log:
        first, last = math.log10(min(xs)), math.log10(max(xs) * 1.01)
        decades = range(math.floor(first), math.ceil(last) + 1)
        x_ticks = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
        x_ticks = [tick for tick in x_ticks if first <= math.log10(tick) <= last]
    else:
        first, last, x_ticks = 0.0, max(xs), ticks(max(xs))

    def across(x: float) -> int:
        at = math.log10(x) if panel.is_log else x
        return round(left + WIDTH * (at - first) / (last - first))

    def up(y: float) -> int:
        return round(bottom - HEIGHT * y / most)

    verticals = "".join(f"M{across(tick)} {TOP}V{bottom}" for tick in x_ticks)
    horizontals = "".join(f"M{left} {up(tick)}h{WIDTH}" for tick in ticks(most))
    return [
        f'<path d="{verticals}{horizontals}" stroke="#ddd"/>',
        *_texts(
            [(left + WIDTH // 2, TOP - 10, panel.title), (left + WIDTH // 2, bottom + 32, panel.x_label)], "middle"
        ),
        *_texts(((across(tick), bottom + 14, f"{tick:g}") for tick in x_ticks), "middle"),
        *_texts(((left - 4, up(tick) + 4, f"{tick:g}") for tick in ticks(most)), "end"),
        *(
            f'<polyline points="{_points((across(x), up(y)) for x, y in points)}" stroke="{COLOURS[name]}"/>'
            for name, points in panel.series.items()
        ),
    ]


def _points(points: Iterable[tuple[int, int]]) -> str:
    """Leave out a point that is its neighbour's pixel."""
    return " ".join(f"{x},{y}" for x, y in dict.fromkeys(points))


def _texts(texts: Iterable[tuple[int, int, str]], anchor: str) -> list[str]:
    return [f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>' for x, y, text in texts]


def _legend(names: Sequence[str], labels: Mapping[str, str], left: int, y: int) -> list[str]:
    lines = []
    for name in names:
        lines.append(f'<path d="M{left} {y - 4}h14" stroke="{COLOURS[name]}" stroke-width="4"/>')
        lines += _texts([(left + 20, y, labels[name])], "start")
        left += _legend_width(labels[name])
    return lines


def _legend_width(label: str) -> int:
    return 44 + 7 * len(label)


def _svg(width: int, height: int, content: Sequence[str]) -> str:
    style = "text{font:12px sans-serif;fill:#222}polyline{fill:none;stroke-width:1.5}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return "\n".join(
        [head, f"<style>{style}</style>", '<rect width="100%" height="100%" fill="#fff"/>', *content, "</svg>\n"]
    )
