"""What the benchmark of recovery found: figures, a table, a page and a chart."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from charts import bar_chart
from recovery_plan import EMPTY, OURS, Case
from report import LABELS, markdown_table

NAMES = {**LABELS, EMPTY: "spark-dstl, no state yet"}
# An executor is lost by queries that run; the one without state has no stores at all.
STATELESS = "no stores"
HEADER = (
    "measurement",
    "stores",
    "state",
    "since snapshot",
    "p50",
    "min",
    "max",
    "usual",
    "reads",
    "MB read",
    "questions",
    "listings",
)
LEGEND = (
    "restart, large-state: first batch of a query that is started again in a process of its own, in ms from the start "
    "of the query to the batch's end. lost-executor: batch of a running query that has lost one of two executor "
    "processes, from its input to its end; usual: median of the batches before. p50, min and max are of the "
    "repetitions. Since snapshot: batches between the newest snapshots and that batch. Requests: of all processes, in "
    "the median repetition's start and batch together."
)


@dataclass
class Recoveries:
    """What one contender's recoveries took, and what they asked of storage."""

    millis: list[int] = field(default_factory=list)
    # Medians of the batches before, where an executor was lost.
    usual: list[float] = field(default_factory=list)
    requests: list[dict[str, int]] = field(default_factory=list)
    bytes_read: list[int] = field(default_factory=list)

    def add(self, lines: Iterable[dict[str, Any]]) -> None:
        """Take in what one process has written."""
        asked: dict[str, int] = {}
        bytes_read = 0
        for line in lines:
            if line["kind"] == "recovery":
                self.millis.append(line["millis"])
                if line["usual"]:
                    self.usual.append(statistics.median(line["usual"]))
            else:
                asked[line["request"]] = asked.get(line["request"], 0) + line["count"]
                bytes_read += line["bytes"] if line["request"] == "GET" else 0
        self.requests.append(asked)
        self.bytes_read.append(bytes_read)

    def asked(self, request: str) -> float:
        """Take the median of such requests."""
        return statistics.median(asked.get(request, 0) for asked in self.requests)


@dataclass
class Recovered:
    """One case's outcome, as far as it has come."""

    case: Case
    contenders: dict[str, Recoveries] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with nothing from any contender."""
        self.contenders = {name: Recoveries() for name in self.case.contenders}

    @property
    def can_be_compared(self) -> bool:
        """Whether every contender has recovered once."""
        return all(of.millis for of in self.contenders.values())

    def label(self, contender: str) -> str:
        """Name a contender as tables do."""
        return STATELESS if contender == EMPTY and self.case.kind == "lost-executor" else NAMES[contender]

    def median(self, contender: str) -> float:
        """Of the batch, in milliseconds."""
        return statistics.median(self.contenders[contender].millis)

    def over_empty(self, contender: str) -> float:
        """Subtract what it takes without state: what the state costs, in milliseconds."""
        return self.median(contender) - self.median(EMPTY)

    def rows(self) -> list[list[str]]:
        """Make the table's rows."""
        return [
            [
                self.case.name,
                str(self.case.stores),
                self.label(name),
                "-" if name == EMPTY else str(self.case.batches(name)[1]),
                *(f"{value:,.0f}" for value in (self.median(name), min(of.millis), max(of.millis))),
                f"{statistics.median(of.usual):,.0f}" if of.usual else "-",
                f"{of.asked('GET'):g}",
                f"{statistics.median(of.bytes_read) / 1e6:,.1f}",
                *(f"{of.asked(request):g}" for request in ("HEAD", "LIST")),
            ]
            for name, of in self.contenders.items()
        ]

    def ratios(self) -> list[str]:
        """Compare with stock, with a query that has no state, and with what the network allows."""
        name, ours = self.case.name, self.median(OURS)
        lines = [f"{name}: {ours / self.median(other):.2f} times {self.label(other)}" for other in self.case.stock]
        lines.append(f"{name}: {self.over_empty(OURS):+,.0f} ms over {self.label(EMPTY)}")
        for of in self.case.contenders:
            usual = self.contenders[of].usual
            if usual:
                loss = self.median(of) - statistics.median(usual)
                lines.append(f"{name}: with {self.label(of)} {loss:+,.0f} ms over its usual batch")
        seconds = self.case.network_seconds
        if seconds:
            network = (
                f"the {seconds:.1f} s that its {self.case.state_bytes / 1e9:.2f} GB take "
                f"at {self.case.network / 1e6:g} MB/s"
            )
            for of in (OURS, *self.case.stock):
                times = self.over_empty(of) / 1000 / seconds
                lines.append(f"{name}: with {self.label(of)} the state costs {times:.2f} times {network}")
        return lines


def markdown(results: Sequence[Recovered], storage: str) -> str:
    """Make a page with the table."""
    lines = [
        "# Figures of recovery",
        "",
        "Made by `make bench-recovery`; do not edit.",
        "",
        storage,
        "",
        LEGEND,
    ]
    lines += ["", *markdown_table(HEADER, (row for result in results for row in result.rows()))]
    lines += ["", *(f"- {line}" for result in results for line in result.ratios())]
    return "\n".join(lines) + "\n"


def draw(results: Sequence[Recovered], path: Path) -> None:
    """Draw the medians, with the range of the repetitions."""
    groups = {
        result.case.name: {
            name: (result.median(name) / 1000, min(of.millis) / 1000, max(of.millis) / 1000)
            for name, of in result.contenders.items()
        }
        for result in results
    }
    path.write_text(bar_chart(groups, NAMES, "first batch, s"), encoding="utf-8")
