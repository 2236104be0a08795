"""What happens to queries on every storage: drivers that die, and two of them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from driver_process import Driver
from harness import Run


def check(run: Run) -> None:
    """Sink and state are right, the state as another application sees it."""
    run.check()
    run.check_state()


def kill_drivers(run: Run, points: Mapping[str, int]) -> None:
    """One driver after another, each killed at a fail point, in the batch that is given for it."""
    for point, batch in points.items():
        with run.start(f"{point}=pause@{batch}") as driver:
            driver.wait_for_pause(point)
            driver.kill()


def start_two(run: Run, batch: int = 3, check: Callable[[Run], None] = check) -> tuple[Driver, Driver]:
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


def finish(run: Run, check: Callable[[Run], None] = check) -> None:
    """Start the queries again, let them end, and check everything."""
    with run.start() as driver:
        driver.succeed()
    check(run)
