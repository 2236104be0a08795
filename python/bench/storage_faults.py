# SPDX-License-Identifier: Apache-2.0
"""Injects faults of storage into queries of spark-dstl and of stock Spark, and records the outcomes.

`make storage-faults` runs it; `CASES` is a regular expression for the cases, such as `stock: .*503`; `missing` runs the
cases without a result. Results of others are kept.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from runner import unwind_on_sigterm
from storage_figures import CONTENDERS, WHEN, Figures, cell

from cases import Case, Outcome, all_cases, place_of, play
from hdfs_cases import HDFS_CASES, HdfsCase, on_hdfs, play_on_hdfs
from servers import hdfs, versitygw
from settings import log_confs, stock_confs

MISSING = "missing"


def main() -> None:
    """Run the wanted cases, each with both contenders."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    figures = Figures.read()
    cases: list[Case | HdfsCase] = [*all_cases(), *HDFS_CASES]
    for case in cases:
        for contender in CONTENDERS:
            there = contender in figures.found.get(case.key, {})
            if not there if wanted == MISSING else re.search(wanted, f"{contender}: {case.key}"):
                outcome, met = played(case, contender == "stock")
                figures.add(case.key, contender, outcome.failures, outcome.wrong, met)
                print(f"{contender}: {case.key}: {cell(figures.found[case.key][contender])}", flush=True)
    print("\n".join(row for when in WHEN for row in [when, *figures.rows(when)]))


def played(case: Case | HdfsCase, stock: bool) -> tuple[Outcome, int | None]:
    """Run a case on a separate server; returns its outcome and the number of requests that met the fault."""
    with tempfile.TemporaryDirectory(prefix="dstl-fault-") as directory:
        work = Path(directory) / "run"
        work.mkdir()
        try:
            return on_s3(case, work, stock) if isinstance(case, Case) else (on_an_hdfs(case, work, stock), None)
        except AssertionError as error:
            return Outcome((), str(error).partition(";")[0].splitlines()[0]), None


def on_s3(case: Case, work: Path, stock: bool) -> tuple[Outcome, int | None]:
    with versitygw(work.parent / "server") as server, place_of(case, server, work) as place:
        outcome = play(case, place, stock)
        return outcome, len(place.wire.met()) if case.rules else None


def on_an_hdfs(case: HdfsCase, work: Path, stock: bool) -> Outcome:
    with hdfs(work.parent) as cluster:
        run = on_hdfs(work, cluster, stock_confs() if stock else log_confs())
        run.has_plain_snapshots = stock
        return play_on_hdfs(case, cluster, run)


if __name__ == "__main__":
    unwind_on_sigterm()
    main()
