# SPDX-License-Identifier: Apache-2.0
"""Faults of HDFS, for queries of spark-dstl and of stock Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cases import OUTAGE_SECONDS, Outcome, first_error, let_batches_be_uneven, wait_for_commits, wrong_with
from driver_process import Driver
from harness import Run
from scenarios import Aggregation
from servers import Hdfs

MOST_STARTS = 4


@dataclass(frozen=True)
class HdfsCase:
    """A fault during a query, and whether it kills the driver."""

    name: str
    disturb: Callable[[Hdfs, Driver, Run], None]
    kills: bool = False

    @property
    def key(self) -> str:
        """Return when a query meets the fault, of what it is, and its name."""
        return f"on HDFS: everything: {self.name}"


def on_hdfs(work: Path, cluster: Hdfs, confs: Mapping[str, str]) -> Run:
    """Return a query with its checkpoint on HDFS."""
    where = f"{cluster.address}/{work.name}"
    return Run.create(work, Aggregation.generate(), confs=confs, checkpoints=where, names=cluster.names)


def restart_the_namenode(cluster: Hdfs, driver: Driver, run: Run) -> None:
    """Restart the namenode."""
    wait_for_commits(driver, run)
    cluster.tell("restart-namenode")


def kill_a_datanode(cluster: Hdfs, driver: Driver, run: Run) -> None:
    """Stop one datanode of three."""
    wait_for_commits(driver, run)
    cluster.tell("stop-datanode")


def enter_safe_mode(cluster: Hdfs, driver: Driver, run: Run) -> None:
    """Let the namenode reject every change for a while."""
    wait_for_commits(driver, run)
    cluster.tell("enter-safe-mode")
    time.sleep(OUTAGE_SECONDS)
    cluster.tell("leave-safe-mode")


def die_with_an_open_file(cluster: Hdfs, driver: Driver, run: Run) -> None:
    """Kill the driver while it writes a file and all datanodes are down."""
    wait_for_commits(driver, run)
    # A writer can still create a file, but not write its content.
    cluster.tell("stop-datanodes")
    driver.wait_until(lambda: stalls_with_an_open_file(driver, run, cluster), "file that is open")
    driver.kill()
    cluster.tell("restart-datanodes")


def open_files(run: Run, cluster: Hdfs) -> list[str]:
    """Return the open files of this run."""
    return [path for path in cluster.open_files() if path.startswith(f"/{run.work.name}/")]


def stalls_with_an_open_file(driver: Driver, run: Run, cluster: Hdfs) -> bool:
    """Stall the driver; resume it if it has no open file."""
    driver.stall()
    if open_files(run, cluster):
        return True
    driver.go_on()
    return False


OPEN_FILE = HdfsCase("a driver killed while it writes a file", die_with_an_open_file, kills=True)
HDFS_CASES = [
    HdfsCase("namenode started again", restart_the_namenode),
    HdfsCase("one datanode of three killed", kill_a_datanode),
    HdfsCase("safe mode for 30 s", enter_safe_mode),
    OPEN_FILE,
]


def play_on_hdfs(case: HdfsCase, cluster: Hdfs, run: Run) -> Outcome:
    """Run the query with its fault until it completes, with restarts after failures."""
    failures: list[str] = []
    for attempt in range(MOST_STARTS):
        with run.start() as driver:
            if attempt == 0:
                case.disturb(cluster, driver, run)
                if case.kills:
                    continue
            if driver.wait() == 0:
                break
            failures.append(first_error(driver))
    else:
        return Outcome(tuple(failures), f"not at its end after {MOST_STARTS} starts")
    cluster.tell("restart-datanodes")
    if failures or case.kills:
        let_batches_be_uneven(run)
    return Outcome(tuple(failures), wrong_with(run))
