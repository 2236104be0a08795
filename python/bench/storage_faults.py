# SPDX-License-Identifier: Apache-2.0
"""Injects faults of storage into queries of spark-dstl and of stock Spark, and prints the rows of docs/results.

`make storage-faults` runs it; `CASES` is a regular expression for the cases, such as `while writing: .*503`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from fault_outcomes import cell
from runner import unwind_on_sigterm

from cases import Case, Outcome, all_cases, place_of, play
from hdfs_cases import HDFS_CASES, HdfsCase, on_hdfs, play_on_hdfs
from servers import hdfs, versitygw
from settings import log_confs, stock_confs


def main() -> None:
    """Run the wanted cases, each with both contenders."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    cases: list[Case | HdfsCase] = [*all_cases(), *HDFS_CASES]
    for case in cases:
        if re.search(wanted, case.key):
            when, of, name = case.key.split(": ", 2)
            cells = [cell(outcome.failures, outcome.wrong) for outcome in (played(case, False), played(case, True))]
            print(f"{when}: | {' | '.join((name, of, *cells))} |", flush=True)


def played(case: Case | HdfsCase, stock: bool) -> Outcome:
    """Run a case on a separate server, with stock Spark or spark-dstl."""
    with tempfile.TemporaryDirectory(prefix="dstl-fault-") as directory:
        work = Path(directory) / "run"
        work.mkdir()
        try:
            return on_s3(case, work, stock) if isinstance(case, Case) else on_an_hdfs(case, work, stock)
        except AssertionError as error:
            return Outcome((), str(error).partition(";")[0].splitlines()[0])


def on_s3(case: Case, work: Path, stock: bool) -> Outcome:
    with versitygw(work.parent / "server") as server, place_of(case, server, work) as place:
        outcome = play(case, place, stock)
        return outcome if place.wire.met() or not case.rules else Outcome((), "the fault was never met")


def on_an_hdfs(case: HdfsCase, work: Path, stock: bool) -> Outcome:
    with hdfs(work.parent) as cluster:
        run = on_hdfs(work, cluster, stock_confs() if stock else log_confs())
        run.has_plain_snapshots = stock
        return play_on_hdfs(case, cluster, run)


if __name__ == "__main__":
    unwind_on_sigterm()
    main()
