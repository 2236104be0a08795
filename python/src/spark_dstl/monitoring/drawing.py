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
        places = [group[0].batch for group in groups]
        width = max(1, len(groups[0]))
        below = [0.0] * len(groups)
        parts: dict[str, list[float]] = {name: [mean(group, attrgetter(name)) for group in groups] for name in PARTS}
        whole = [mean(group, attrgetter("batch_ms")) for group in groups]
        parts["rest"] = [max(0.0, all_ - sum(of)) for all_, *of in zip(whole, *parts.values(), strict=True)]
        for name, heights in parts.items():
            words = TIMES.get(name, "rest")
            axes.bar(places, heights, width, bottom=below, align="edge", label=words, color=_COLOURS[name])
            below = [low + height for low, height in zip(below, heights, strict=True)]
        axes.set_ylabel("ms")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("batch" if width == 1 else f"batch, each bar the mean of {width}")
        axes.margins(x=0.01)
        _legend(axes)

    return _svg(draw, f"times {run.query_id}")


def distributions(run: Run) -> str:
    """Draw the share of batches that took longer than a time, for batches and their parts."""

    def draw(axes: Axes) -> None:
        for name in ("batch_ms", "tasks_ms", "commit_ms", "planning_ms", "offsets_write_ms"):
            times = sorted(max(1, value) for value in run.values(name))
            shares = [1 - rank / len(times) for rank in range(len(times))]
            axes.step(times, shares, where="post", label=TIMES[name], color=_COLOURS[name])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter(lambda share, _: f"{share * 100:g} %")
        axes.set_xlabel("ms")
        axes.set_ylabel("of the batches took longer")
        axes.grid(visible=True, which="major", alpha=0.3)
        _legend(axes)

    return _svg(draw, f"distributions {run.query_id}")


def log_size(run: Run) -> str:
    """Draw the size of the log, and the bytes written for snapshots."""

    def draw(axes: Axes, below: Axes) -> None:
        reported = [batch for batch in run.batches if batch.log_bytes is not None]
        places = [batch.batch for batch in reported]
        sizes = [batch.log_bytes or 0 for batch in reported]
        axes.fill_between(places, sizes, alpha=0.25, color=_LOG, lw=0)
        axes.plot(places, sizes, label="size of the log", color=_LOG)
        with_snapshots = {batch.batch: batch.snapshot_bytes for batch in reported if batch.snapshot_bytes}
        below.vlines(
            list(with_snapshots), 0, list(with_snapshots.values()), label="written for snapshots", color=_SNAPSHOTS
        )
        for each in (axes, below):
            each.set_ylim(bottom=0)
            each.yaxis.set_major_formatter(lambda value, _: readable_bytes(value))
            each.margins(x=0.01)
        below.locator_params(axis="y", nbins=3)
        below.set_xlabel("batch")
        _legend(axes, below)

    return _svg(draw, f"log {run.query_id}", panels=(3, 1))


def waits_and_replay(run: Run) -> str:
    """Draw the back-pressure on tasks, and the bytes read to rebuild stores."""

    def draw(axes: Axes) -> None:
        waited = {batch.batch: batch.back_pressure_ms for batch in run.batches if batch.back_pressure_ms}
        axes.vlines(list(waited), 0, list(waited.values()), label="back-pressure", color=_WAITS)
        axes.set_ylabel("ms, all tasks together")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("batch")
        replayed = {batch.batch: batch.replayed_bytes for batch in run.batches if batch.replayed_bytes}
        replay = axes.twinx()
        replay.plot(list(replayed), list(replayed.values()), "v", label="replayed", color=_REPLAY, clip_on=False)
        replay.yaxis.set_major_formatter(lambda value, _: readable_bytes(value))
        axes.set_xlim(run.batches[0].batch - 0.5, run.batches[-1].batch + 0.5)
        axes.set_ylim(bottom=0)
        replay.set_ylim(bottom=0)
        _legend(axes, replay)

    return _svg(draw, f"waits {run.query_id}")


def _legend(axes: Axes, *others: Axes) -> None:
    drawn = [each.get_legend_handles_labels() for each in (axes, *others)]
    handles = [handle for found, _ in drawn for handle in found]
    labels = [label for _, found in drawn for label in found]
    axes.figure.legend(handles, labels, loc="outside upper left", ncols=6, frameon=False)


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
