# SPDX-License-Identifier: Apache-2.0
"""Measures how long rows wait in real-time mode while Spark ends one batch and begins the next, beside stock Spark."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from compare import described, number
from plan import LABELS, Cell, Delays
from runner import BenchFailed, Benchmark, Figures, Measurement, Report, Result

from spark_dstl.percentiles import percentile
from spark_dstl.release import installed_line

MAIN = "sparkdstl.bench.RealTimeBench"
# All tasks of all contenders run at once.
SLOTS = 128
CONTENDERS = ("dstl-below", "direct", "default")
# Real-time mode takes no other format.
FULL = [Cell("real-time", "aggregation", 16, 110, contenders=CONTENDERS, warmup=6, format_version=2)]
QUICK = [Cell("real-time", "aggregation", 4, 10, contenders=CONTENDERS, warmup=3, format_version=2)]
HEADER = ("measurement", "partitions", "state", "batches", "p50", "p99", "max")
LEGEND = (
    "The longest time, in ms, that a row of a batch has waited: rows are sent every 10 ms, batches end every 5 s, and "
    "rows that are sent between the end of one and the beginning of the next wait. All contenders run at once."
)


class RealTime(Benchmark):
    """Stock Spark's provider with three file managers: Spark 4.3 accepts no other provider in real-time mode."""

    title = "Real-time mode"
    command = "make bench-realtime SPARK=4.3"

    def options(self, parser: argparse.ArgumentParser) -> None:
        Delays.options(parser)

    def cases(self, options: argparse.Namespace) -> list[Cell]:
        return QUICK if options.quick else FULL

    def measure(self, case: Cell, run: Measurement) -> None:
        """Measure all contenders in one process. Raises BenchFailed on a Spark that has no such mode for state."""
        if installed_line().name != "4.3":
            raise BenchFailed(f"real-time mode of a stateful query needs Spark 4.3: {self.command}")
        delays = Delays.of(run.options)
        run.result.storage = described(delays, SLOTS)
        run.process(
            "", case.spec(str(run.directory / "checkpoints"), delays), case.batches, f"local[{SLOTS}]", main=MAIN
        )

    def report(self, results: Sequence[Result]) -> Report:
        return Report([Figures("Pauses", HEADER, LEGEND, [row for result in results for row in rows(result)])])


def rows(result: Result) -> list[list[str]]:
    cell = Cell(**result.case)
    (_, lines), *_ = result.processes
    found = {name: [line["pause"] for line in lines if line["contender"] == name] for name in cell.contenders}
    return [
        [cell.name, str(cell.partitions), LABELS[name], str(len(pauses))]
        + [number(percentile(pauses, percent)) for percent in (50, 99)]
        + [number(max(pauses))]
        for name, pauses in found.items()
        if pauses
    ]
