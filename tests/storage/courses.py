# SPDX-License-Identifier: Apache-2.0
"""Courses of events on every storage: killed drivers, and two drivers at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from driver_process import Driver
from harness import Run

# Errors of a driver that another one has replaced. The last is Spark's own, if neither driver finds `metadata`.
MET_ANOTHER = ("[DSTL_", "CONCURRENT_STREAM_LOG_UPDATE", "SparkConcurrentModificationException")

Check = Callable[[Run], None]


def kill_drivers(run: Run, points: Mapping[str, int]) -> None:
    """Start drivers in turn, and kill each at a fail point, in the batch given for it."""
    for point, batch in points.items():
        run.kill_at(point, batch)


def start_two(run: Run, check: Check = Run.check_all) -> None:
    """Pause a driver before a commit entry until another one has completed the query, and resume it: it is fenced."""
    with run.start("driver.before-commit-entry=pause@3") as late:
        late.wait_for_pause("driver.before-commit-entry")
        run.succeed()
        run.resume("driver.before-commit-entry")
        assert late.wait() != 0
        assert "[DSTL_FENCED]" in late.log(), late.failed("the error does not say that it was fenced")
    check(run)


def start_at_once(run: Run, check: Check = Run.check_all) -> None:
    """Start two drivers at the same time. One of them or the next one completes the query."""
    with run.start() as one, run.start() as other:
        end_both(run, (one, other), check)


def start_apart(run: Run, check: Check = Run.check_all) -> None:
    """Start a driver while another one is paused between two batches, and resume that one."""
    point = "driver.after-commit-entry"
    epochs = f"{run.queries[0].checkpoint}/dstl/epochs"
    with run.start(f"{point}=pause@1") as first:
        first.wait_for_pause(point)
        with run.start() as second:
            second.wait_until(lambda: "2" in run.names(epochs), "claim of the second driver")
            run.resume(point)
            end_both(run, (first, second), check)


def end_both(run: Run, drivers: Sequence[Driver], check: Check) -> None:
    """Wait for the end of drivers of one checkpoint: state and sink are those of one driver."""
    codes = [driver.wait() for driver in drivers]
    for driver, code in zip(drivers, codes, strict=True):
        assert code == 0 or any(error in driver.log() for error in MET_ANOTHER), driver.failed("no reason for its end")
    if 0 not in codes:
        run.succeed()
    check(run)


def finish(run: Run, check: Check = Run.check_all) -> None:
    """Restart the queries, let them complete, and check everything."""
    run.succeed()
    check(run)
