"""What happens to queries on every storage: drivers that die, and two of them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from driver_process import Driver
from harness import Reader, Run

# How a driver ends that has met another one. The last is Spark's own, where both have found no `metadata`.
MET_ANOTHER = ("[DSTL_", "CONCURRENT_STREAM_LOG_UPDATE", "SparkConcurrentModificationException")


def check(run: Run, reader: Reader | None = None) -> None:
    """Sink and state are right, the state as another application sees it."""
    run.check()
    run.check_state(reader)


def kill_drivers(run: Run, points: Mapping[str, int]) -> None:
    """One driver after another, each killed at a fail point, in the batch that is given for it."""
    for point, batch in points.items():
        with run.start(f"{point}=pause@{batch}") as driver:
            driver.wait_for_pause(point)
            driver.kill()


def start_two(run: Run, check: Callable[[Run], None] = check, batch: int = 3) -> tuple[Driver, Driver]:
    """A driver waits before the commit entry of a batch while another brings the query to its end, and goes on then.

    The late one is fenced, and says so. Both have ended; the one that went on comes first.
    """
    with run.start(f"driver.before-commit-entry=pause@{batch}") as late:
        late.wait_for_pause("driver.before-commit-entry")
        with run.start() as first:
            first.succeed()
        run.resume("driver.before-commit-entry")
        assert late.wait() != 0
        assert "[DSTL_FENCED]" in late.log(), late.failed("the error does not say that it was fenced")
    check(run)
    return first, late


def start_at_once(run: Run, check: Callable[[Run], None] = check) -> None:
    """Two drivers begin at the same time. One of them ends the query, or the next one does."""
    with run.start() as one, run.start() as other:
        end_both(run, (one, other), check)


def start_apart(run: Run, check: Callable[[Run], None] = check) -> None:
    """A driver claims the checkpoint while another one is at work, between two of its batches; both go on then."""
    point = "driver.after-commit-entry"
    epochs = f"{run.queries[0].checkpoint}/dstl/epochs"
    with run.start(f"{point}=pause@1") as first:
        first.wait_for_pause(point)
        with run.start() as second:
            second.wait_until(lambda: "2" in run.names(epochs), "claim of the second driver")
            run.resume(point)
            end_both(run, (first, second), check)


def end_both(run: Run, drivers: Sequence[Driver], check: Callable[[Run], None]) -> None:
    """Wait for the end of drivers of one checkpoint: whatever they wrote, state and sink are those of one."""
    codes = [driver.wait() for driver in drivers]
    for driver, code in zip(drivers, codes, strict=True):
        assert code == 0 or any(error in driver.log() for error in MET_ANOTHER), driver.failed("no reason for its end")
    if 0 not in codes:
        with run.start() as driver:
            driver.succeed()
    check(run)


def finish(run: Run, check: Callable[[Run], None] = check) -> None:
    """Start the queries again, let them end, and check everything."""
    with run.start() as driver:
        driver.succeed()
    check(run)
