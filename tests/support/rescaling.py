# SPDX-License-Identifier: Apache-2.0
"""A query under dynamic allocation."""

from __future__ import annotations

from harness import Run

MASTER = "local-cluster[2,1,1024]"
# Shorter timeouts end executors between batches, and each start of one takes seconds of a processor.
FROM_NONE_TO_TWO = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.dynamicAllocation.executorIdleTimeout": "4s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "4s",
}


def come_and_go(run: Run) -> None:
    """Wait for a second executor while tasks are pending, for the end of both without tasks, and kill the driver."""
    points = "executor.mid-task=pause@1;driver.seals-pending=pause@3;driver.before-commit-entry=pause@4"
    with run.start(points) as driver:
        driver.wait_for_pause("executor.mid-task")
        driver.wait_until(lambda: len(driver.executors()) == 2, "second executor")
        run.resume("executor.mid-task")
        driver.wait_for_pause("driver.seals-pending")
        driver.wait_until(lambda: not driver.executors(), "end of the idle executors")
        run.resume("driver.seals-pending")
        driver.wait_for_pause("driver.before-commit-entry")
        assert driver.executors()
        driver.kill()
