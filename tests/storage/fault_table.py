"""Plays faults of storage with the log and with stock Spark, and writes down what became of each, for the docs.

`make storage-faults` runs it; `CASES` is a regular expression for what to play, such as `stock: .*503`; `missing` plays
what is not written down yet. What is there of others stays.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from cases import Case, Outcome, all_cases, place_of, play
from fault_figures import CONTENDERS, WHEN, Figures, cell
from hdfs_cases import HDFS_CASES, HdfsCase, on_hdfs, play_on_hdfs
from servers import hdfs, versitygw
from settings import log_confs, stock_confs

MISSING = "missing"


def main() -> None:
    """Play the cases that are named, each with both."""
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
    """One case on a server of its own, and how many requests met its fault."""
    with tempfile.TemporaryDirectory(prefix="dstl-fault-") as directory:
        work = Path(directory) / "run"
        work.mkdir()
        try:
            return on_s3(case, work, stock) if isinstance(case, Case) else (on_an_hdfs(case, work, stock), None)
        except AssertionError as error:
            return Outcome((), str(error).partition(";")[0].splitlines()[0]), None


def on_s3(case: Case, work: Path, stock: bool) -> tuple[Outcome, int | None]:
    """One case on S3, and how many requests met its fault, where it lies in requests."""
    with versitygw(work.parent / "server") as server, place_of(case, server, work) as place:
        outcome = play(case, place, stock)
        return outcome, len(place.wire.met()) if case.rules else None


def on_an_hdfs(case: HdfsCase, work: Path, stock: bool) -> Outcome:
    """One case on HDFS."""
    with hdfs(work.parent) as cluster:
        run = on_hdfs(work, cluster, stock_confs() if stock else log_confs())
        run.has_plain_snapshots = stock
        return play_on_hdfs(case, cluster, run)


if __name__ == "__main__":
    main()
