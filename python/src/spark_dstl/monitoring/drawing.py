# SPDX-License-Identifier: Apache-2.0
"""The charts of a report, as SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING

from spark_dstl.dependencies import MONITORING, needed
from spark_dstl.monitoring.readable import readable_bytes
from spark_dstl.monitoring.summary import PARTS, TIMES, Run, grouped, mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {
    "source_ms": "#8c8c8c",
    "planning_ms": "#e0a458",
    "offsets_write_ms": "#b279a2",
    "tasks_ms": "#4c78a8",
    "commit_ms": "#d1495b",
    "rest": "#d9d9d9",
    "batch_ms": "#222222",
}
_LOG, _SNAPSHOTS, _WAITS, _REPLAY = "#4c78a8", "#d1495b", "#e0a458", "#54a24b"
_RESTART = "restart"
_SIZE = (9.0, 3.6)
# More bars than these cannot be distinguished: each is then a mean of neighbours.
_MOST_BARS = 180
_TEXT = {
    "font.family": "sans-serif",
    "font.size": 9,
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def batch_times(run: Run) -> str:
    """Draw the time of each batch, as a bar of its parts."""

    def draw(axes: Axes) -> None:
        groups = grouped(run, _MOST_BARS)
        width = len(groups[0])
        places = [number * width - 0.5 for number in range(len(groups))]
        widths = [len(group) for group in groups]
        below = [0.0] * len(groups)
        parts: dict[str, list[float]] = {name: [mean(group, attrgetter(name)) for group in groups] for name in PARTS}
        whole = [mean(group, attrgetter("batch_ms")) for group in groups]
        parts["rest"] = [max(0.0, all_ - sum(of)) for all_, *of in zip(whole, *parts.values(), strict=True)]
        for name, heights in parts.items():
            words = TIMES.get(name, "rest")
            axes.bar(places, heights, widths, bottom=below, align="edge", label=words, color=_COLOURS[name])
            below = [low + height for low, height in zip(below, heights, strict=True)]
        _milliseconds(axes)
        _batches(run, axes)
        if width > 1:
            axes.set_xlabel(f"batch, each bar the mean of {width}")
        _legend(axes)

    return _svg(draw, f"times {run.query_id}")


def distributions(run: Run) -> str:
    """Draw the share of batches that took longer than a time, for batches and their parts."""

    def draw(axes: Axes) -> None:
        count = len(run.batches)
        least = 0.5 / count
        slowest = 1
        for name in ("batch_ms", "tasks_ms", "commit_ms", "planning_ms", "offsets_write_ms"):
            times = sorted(max(1, value) for value in run.values(name))
            shares = [1 - rank / len(times) for rank in range(len(times))]
            # No batch took longer than the longest.
            axes.step([*times, times[-1]], [*shares, least], where="post", label=TIMES[name], color=_COLOURS[name])
            slowest = max(slowest, times[-1])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(right=1.3 * slowest)
        axes.set_ylim(least, 1.1)
        ticker = needed("matplotlib.ticker", "A report", MONITORING)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            axis.set_minor_formatter(ticker.NullFormatter())
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter(lambda share, _: f"{share * 100:g} %")
        axes.set_xlabel("ms")
        axes.set_ylabel("of the batches took longer")
        axes.grid(visible=True, which="major", alpha=0.3)
        _legend(axes)

    return _svg(draw, f"distributions {run.query_id}")


def log_size(run: Run) -> str:
    """Draw the size of the log, and the bytes written for snapshots if there are any."""
    snapshots = _nonzero(run, "snapshot_bytes")

    def draw(axes: Axes, *below: Axes) -> None:
        sizes = {place: batch.log_bytes for place, batch in enumerate(run.batches) if batch.log_bytes is not None}
        places, heights = list(sizes), list(sizes.values())
        axes.fill_between(places, heights, alpha=0.25, color=_LOG, lw=0)
        # A line needs two points.
        axes.plot(places, heights, "-" if len(places) > 1 else "o", label="size of the log", color=_LOG)
        for each in below:
            each.vlines(list(snapshots), 0, list(snapshots.values()), label="written for snapshots", color=_SNAPSHOTS)
            _bytes(each, ticks=2)
        _bytes(axes)
        _batches(run, axes, *below)
        _legend(axes, *below)

    return _svg(draw, f"log {run.query_id}", panels=(3, 1) if snapshots else (1,))


def waits_and_replay(run: Run) -> str:
    """Draw the back-pressure on tasks and the bytes read to rebuild stores, of the two those that are not always 0."""
    waits, replay = _nonzero(run, "back_pressure_ms"), _nonzero(run, "replayed_bytes")

    def draw(*panels: Axes) -> None:
        if waits:
            panels[0].vlines(list(waits), 0, list(waits.values()), label="back-pressure, all tasks", color=_WAITS)
            _milliseconds(panels[0])
        if replay:
            panels[-1].vlines(list(replay), 0, list(replay.values()), label="replayed", color=_REPLAY, lw=3)
            _bytes(panels[-1])
        _batches(run, *panels)
        _legend(*panels)

    return _svg(draw, f"waits {run.query_id}", panels=(1,) * (bool(waits) + bool(replay)))


def _nonzero(run: Run, field: str) -> dict[int, int]:
    """Return the values of a figure that are known and not 0, by the place of the batch."""
    return {place: value for place, batch in enumerate(run.batches) if (value := getattr(batch, field))}


def _milliseconds(axes: Axes) -> None:
    axes.set_ylabel("ms")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="y", integer=True, nbins=6, min_n_ticks=1)
    axes.set_ylim(bottom=0)


def _bytes(axes: Axes, ticks: int = 5) -> None:
    axes.yaxis.set_major_formatter(lambda value, _: readable_bytes(value))
    axes.locator_params(axis="y", nbins=ticks, integer=True, min_n_ticks=1)
    axes.set_ylim(bottom=0)


def _batches(run: Run, *panels: Axes) -> None:
    """Label the places of batches with their numbers, which repeat after a rollback, and mark each restart."""
    runs = [batch.run_id for batch in run.batches]
    starts = [place for place in range(1, len(runs)) if runs[place] != runs[place - 1]]
    for axes in panels:
        for start in starts:
            axes.axvline(start - 0.5, color="#222222", lw=0.8, ls=":", label=_RESTART)
        axes.set_xlim(-0.7, len(runs) - 0.3)
        axes.locator_params(axis="x", integer=True, min_n_ticks=1)
        axes.xaxis.set_major_formatter(
            lambda place, _: f"{run.batches[int(place)].batch:,}" if 0 <= place < len(runs) else ""
        )
    panels[-1].set_xlabel("batch")


def _legend(axes: Axes, *others: Axes) -> None:
    drawn = [each.get_legend_handles_labels() for each in (axes, *others)]
    by_label = {label: handle for handles, labels in drawn for handle, label in zip(handles, labels, strict=True)}
    labels = sorted(by_label, key=lambda label: label == _RESTART)
    axes.figure.legend([by_label[label] for label in labels], labels, loc="outside upper left", ncols=7, frameon=False)


def _svg(draw: Callable[..., None], salt: str, panels: tuple[int, ...] = (1,)) -> str:
    """Return an SVG element. `salt` makes its names unique in a page; `panels` are the heights of its charts."""
    matplotlib = needed("matplotlib", "A report", MONITORING)
    figure_type = needed("matplotlib.figure", "A report", MONITORING).Figure
    # The configuration of a user does not change the drawing.
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_TEXT, "svg.hashsalt": salt}):
        figure = figure_type(figsize=_SIZE, layout="constrained")
        draw(*figure.subplots(len(panels), sharex=True, squeeze=False, height_ratios=panels)[:, 0])
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    element = text[text.index("<svg") :]
    # No link refers to these ids, and each chart has them.
    element = re.sub(r' id="[A-Za-z]+[A-Za-z0-9.]*_\d+"', "", element)
    # The page sets the size.
    return re.sub(r' (?:width|height)="[\d.]+pt"', "", element, count=2)
