# SPDX-License-Identifier: Apache-2.0
"""Charts of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

COLOURS = {
    "floor": "#888888",
    "dstl": "#1f77b4",
    "dstl-snapshots": "#9467bd",
    "dstl-no-snapshots": "#2ca02c",
    "direct": "#ff7f0e",
    "default": "#d62728",
    "empty": "#888888",
    "empty-default": "#bcbcbc",
}


@dataclass(frozen=True)
class Panel:
    """One plot of a chart: points by series. The y axis begins at 0."""

    title: str
    x_label: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    is_log: bool = False


def line_chart(panels: Sequence[Panel], labels: Mapping[str, str]) -> Figure:
    """Draw the panels side by side."""
    figure = Figure(figsize=(4 * len(panels), 3.2), layout="constrained")
    for panel, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        for name, points in panel.series.items():
            axes.plot(*zip(*points, strict=True), color=COLOURS[name], label=labels[name])
        axes.set(title=panel.title, xlabel=panel.x_label, ylim=(0, None), xscale="log" if panel.is_log else "linear")
        axes.grid(alpha=0.3)
    figure.axes[0].legend(fontsize="small")
    return figure


def bar_chart(
    groups: Mapping[str, Mapping[str, tuple[float, float, float]]], labels: Mapping[str, str], x_label: str
) -> Figure:
    """Draw a bar for each value, with the minimum and maximum that follow it, one group below the other."""
    bars = [(group, name, of) for group, found in groups.items() for name, of in found.items()]
    figure = Figure(figsize=(8, 1 + 0.25 * len(bars)), layout="constrained")
    axes = figure.subplots()
    for row, (_, name, (value, low, high)) in enumerate(bars):
        axes.barh(row, value, color=COLOURS[name])
        axes.plot([low, high], [row, row], color="black")
    axes.set_yticks(range(len(bars)), [f"{group}: {labels[name]}" for group, name, _ in bars], fontsize="small")
    axes.invert_yaxis()
    axes.set_xlabel(x_label)
    return figure
