"""Shows the figures: a table on the terminal, and charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from charts import Panel, line_chart
from figures import (
    FLOOR,
    LISTINGS,
    OTHERS,
    PERCENTILES,
    QUESTIONS,
    WRITES,
    Contender,
    Measured,
    p99_ratio,
    throughput_ratio,
)
from plan import SNAPSHOTS
from rich.table import Table

LABELS = {
    "floor": "no durable state (floor)",
    "dstl": "spark-dstl",
    "dstl-snapshots": "spark-dstl, always snapshotting",
    "dstl-no-snapshots": "spark-dstl, no snapshots",
    "direct": "stock, direct write",
    "default": "stock, default",
}

COLUMNS = (
    "measurement",
    "partitions",
    "format",
    "state",
    "batches",
    *(f"p{percent:g}" for percent in PERCENTILES),
    "p50 over, 95 %",
    "max",
    "commit p50",
    "commit p99",
    "writes",
    "questions",
    "listings",
    "others",
    "all",
    "bytes",
    "CPU",
    "MB",
)
LEGEND = (
    "Times are in ms, of whole batches and of their commits; in brackets, how much more than the same percentile of "
    "the floor, and in a column of its own where that is for the median in 95 of 100 resamplings. Requests are those "
    "made while a batch ran, in the median over batches, snapshots left out: objects written, existence asked for, "
    "directories listed, and reads, copies and deletions; all: their average with hedges and background work. Bytes: "
    "written for state changes and commit entry in a median batch. CPU: ms of all tasks a batch. MB: the most that "
    "the log held in memory. Format: version of Spark's checkpoints. "
    "In steady measurements every request takes the median."
)


def table(sections: Iterable[Iterable[Sequence[str]]]) -> Table:
    """Make a table for the terminal, with the `rows` of each cell."""
    result = Table(caption=LEGEND)
    for column in COLUMNS:
        result.add_column(column, justify="left" if column in ("measurement", "state") else "right", no_wrap=True)
    for section in sections:
        for row in section:
            result.add_row(*row)
        result.add_section()
    return result


def markdown(sections: Iterable[Iterable[Sequence[str]]], command: str, storage: str, compared: Sequence[str]) -> str:
    """Make a page with the same table and the charts, for the documentation."""
    lines = [
        "# Figures of the benchmark",
        "",
        f"Made by `{command}`; do not edit. {storage} [benchmark.md](../benchmark.md) says what they mean.",
        "",
        "![Distribution of batch times](batch-times.svg)",
        "",
        LEGEND,
        "",
        *markdown_table(COLUMNS, (row for section in sections for row in section)),
        *(["", "Compared:", ""] if compared else []),
        *(f"- {line}" for line in compared),
    ]
    return "\n".join(lines) + "\n"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Make the lines of a table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def rows(cell: Measured) -> list[list[str]]:
    """Make a row for each contender."""
    return [
        [
            f"{cell.group}: {cell.workload}",
            str(cell.partitions),
            f"v{cell.format_version}",
            LABELS[name],
            str(len(contender.batch_ms)),
            *(figure(cell, name, percent) for percent in PERCENTILES),
            interval(cell, name),
            f"{max(contender.batch_ms):,.0f}",
            *(number(contender.commit_percentile(percent)) for percent in (50, 99)),
            *(number(contender.asked(kind)) for kind in (WRITES, QUESTIONS, LISTINGS, OTHERS)),
            f"{contender.all_requests():.2f}",
            number(contender.stored_bytes()),
            number(contender.task_cpu_ms / len(contender.batch_ms)),
            f"{contender.peak_in_flight / 1e6:.0f}",
        ]
        for name, contender in ordered(cell)
    ]


def ratios(cells: Iterable[Measured]) -> list[str]:
    """Compare with stock Spark what is stored and how fast batches are, and snapshots with their absence."""
    lines = []
    for cell in cells:
        others = [name for name in ("direct", "default") if name in cell.contenders and "dstl" in cell.contenders]
        if cell.group == "bytes":
            for name in others:
                own, other = (cell.contenders[of].stored_bytes() for of in ("dstl", name))
                if own and other:
                    lines.append(
                        f"{cell.name}: {own / other:.3f} times the bytes of {LABELS[name]} ({own:,.0f}, {other:,.0f})"
                    )
        elif cell.group == "throughput":
            for name in others:
                ratio, low, high = throughput_ratio(cell, "dstl", name)
                lines.append(
                    f"{cell.name}: {ratio:.3f} times the rows a second of {LABELS[name]} ({low:.3f} to {high:.3f})"
                )
        elif cell.group == "snapshots":
            lines += snapshot_lines(cell)
    return lines


def snapshot_lines(cell: Measured) -> list[str]:
    """Compare batches while snapshots are made with batches without any."""
    snapshotting, without = SNAPSHOTS
    found = p99_ratio(cell, snapshotting, without)
    times = "too few batches for a p99" if found is None else "p99 {:.2f} times ({:.2f} to {:.2f})".format(*found)
    written = ", ".join(
        f"{name}: {cell.contenders[name].requests['PUT', 'data file'] / len(cell.contenders[name].batch_ms):.1f}"
        for name in SNAPSHOTS
    )
    return [f"{cell.name}: {times} that of {LABELS[without]}; data files written a batch: {written}"]


def figure(cell: Measured, name: str, percent: float) -> str:
    """Show a percentile and how far it is over the floor's, if there are batches enough."""
    value = number(cell.contenders[name].percentile(percent))
    over = cell.over_floor(name, percent)
    return value if over is None or name == FLOOR else f"{value} ({over:+,.0f})"


def interval(cell: Measured, name: str) -> str:
    """Show within what limits the median is over the floor."""
    limits = None if name == FLOOR else cell.over_floor_interval(name, 50)
    return "" if limits is None else f"{limits[0]:+,.0f} to {limits[1]:+,.0f}"


def number(value: float | None) -> str:
    """Show a number without decimals, or that there is none."""
    return "-" if value is None else f"{value:,.0f}"


def ordered(cell: Measured) -> list[tuple[str, Contender]]:
    """List contenders in the order in which tables and charts name them."""
    return [(name, cell.contenders[name]) for name in LABELS if name in cell.contenders]


def draw_batch_times(cells: Sequence[Measured], path: Path) -> None:
    """Draw the distribution of batch times, one plot a workload, at the number of partitions measured most often."""
    newest_format = max(cell.format_version for cell in cells)
    chosen = {
        cell.workload: cell
        for cell in sorted(cells, key=lambda cell: (cell.format_version == newest_format, cell.partitions == 64))
    }
    panels = [
        Panel(
            f"share of batches: {cell.workload}, {cell.partitions} partitions",
            "time of a batch, s",
            {name: distribution(contender.batch_ms) for name, contender in ordered(cell)},
            is_log=True,
        )
        for cell in chosen.values()
    ]
    path.write_text(line_chart(panels, LABELS), encoding="utf-8")


def distribution(times: Sequence[float]) -> list[tuple[float, float]]:
    """Return which share of batches took no longer than so many seconds."""
    return [(time / 1000, (rank + 1) / len(times)) for rank, time in enumerate(sorted(times))]
