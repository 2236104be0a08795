"""Processes die at the worst moments, tasks fail, storage misbehaves: the result is that of an undisturbed run.

The moments are fail points in the JVM code, which pause the thread that reaches them; the test then sends the SIGKILL.
After every test, all committed versions are read back and compared.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness import Reader, Run
from scenarios import Aggregation, JoinAggregation
from settings import STATE_STORE, dstl, faults, log_confs
from spark_facts import LOGS_SNAPSHOTS

CLUSTER = "local-cluster[2,1,1024]"
# Around the commits of one query, one after the other: in its first batch, and in three that follow each other.
DRIVER_KILLS = [
    ("driver.before-commit-entry", 0),
    ("driver.before-first-seal", 2),
    ("driver.seals-pending", 3),
    ("driver.after-commit-entry", 4),
]
# Storage that fails one write in twenty may end a query; this many restarts, it never should.
MAX_RESTARTS = 15


def finish(run: Run, reader: Reader) -> None:
    """Start the queries again, let them end, and check everything."""
    with run.start() as driver:
        driver.succeed()
    run.check()
    run.check_state(reader)


def test_a_driver_killed_around_its_commits_loses_and_repeats_nothing(tmp_path: Path, reader: Reader) -> None:
    run = Run.create(tmp_path, Aggregation.generate())
    for point, batch in DRIVER_KILLS:
        (tmp_path / "markers" / point).unlink(missing_ok=True)
        with run.start(f"{point}=pause@{batch}") as driver:
            driver.wait_for_pause(point)
            committed = run.committed(run.queries[0])
            driver.kill()
        assert max(committed, default=-1) == (batch if point == "driver.after-commit-entry" else batch - 1)
        if committed:
            run.check_state(reader)
    finish(run, reader)


def test_a_driver_killed_before_a_commit_entry_leaves_a_join_that_can_go_on(tmp_path: Path, reader: Reader) -> None:
    run = Run.create(tmp_path, JoinAggregation.generate())
    with run.start("driver.before-commit-entry=pause@4") as driver:
        driver.wait_for_pause("driver.before-commit-entry")
        driver.kill()
    assert max(run.committed(run.queries[0])) == 3
    finish(run, reader)


def test_a_query_survives_an_executor_killed_in_the_middle_of_its_tasks(tmp_path: Path, reader: Reader) -> None:
    run = Run.create(tmp_path, Aggregation.generate(), master=CLUSTER)
    with run.start("executor.mid-task=pause@4") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.mid-task"))
        driver.succeed()
    run.check()
    run.check_state(reader)


def test_a_query_survives_the_loss_of_all_executors_that_sealed_small_segments(tmp_path: Path, reader: Reader) -> None:
    """One executor is paused in its first task, so the other one runs the rest; then both are killed.

    Three tasks are done and are not run again: their segments live on in the driver alone.
    """
    run = Run.create(tmp_path, Aggregation.generate(), master=CLUSTER)
    with run.start("executor.after-seal=pause@4") as driver:
        paused = driver.wait_for_pause("executor.after-seal")
        driver.wait_until(lambda: {"tasks": 4, "completed": 3} in run.stages(), "end of the other three tasks")
        for executor in sorted(driver.executors(), key=lambda pid: pid == paused):
            driver.kill_executor(executor)
        driver.succeed()
    run.check()
    run.check_state(reader)


@pytest.mark.skipif(not LOGS_SNAPSHOTS, reason="in this Spark snapshots are files of Spark's")
def test_snapshots_survive_the_death_of_who_makes_them_who_names_them_and_who_loads_them(
    tmp_path: Path, reader: Reader
) -> None:
    always = {
        **dstl(materialize__replayCost="100000", batch__persistDelay="50ms"),
        f"{STATE_STORE}.minDeltasForSnapshot": "1",
    }
    run = Run.create(tmp_path, Aggregation.generate(files=12, rows=60), master=CLUSTER, confs={**log_confs(), **always})
    # An executor that has uploaded one, unheard of; the driver, before an entry that may hold some.
    with run.start("executor.snapshot-uploaded=pause@1;driver.before-commit-entry=pause@7") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.snapshot-uploaded"))
        driver.wait_for_pause("driver.before-commit-entry")
        driver.kill()
    run.check_state(reader)
    # An executor that has fetched one and not loaded it yet.
    with run.start("executor.snapshot-loading=pause;driver.before-commit-entry=pause@9") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.snapshot-loading"))
        driver.succeed()
    run.check()
    run.check_state(reader)
    assert not list(tmp_path.glob("query-0/checkpoint/state/**/*.sst"))


def test_a_batch_fails_by_name_when_an_executor_dies_with_large_segments(tmp_path: Path, reader: Reader) -> None:
    large = dstl(inline__maxSegmentSize="0")
    run = Run.create(tmp_path, Aggregation.generate(), master=CLUSTER, confs={**log_confs(), **large})
    with run.start("executor.before-upload=pause@4") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.before-upload"))
        assert driver.wait() != 0
        lost = re.search(r"\[DSTL_LOST_CHANGES\] Batch 4 .*: operator 0 partition [0-3] \(executor \d+: ", driver.log())
        assert lost, driver.failed("the error names no store")
        assert max(run.committed(run.queries[0])) == 3
    finish(run, reader)


def test_a_task_that_fails_once_is_repeated_without_a_trace(tmp_path: Path, reader: Reader) -> None:
    run = Run.create(tmp_path, Aggregation.generate(), master=CLUSTER)
    with run.start("executor.mid-task=fail@4") as driver:
        driver.succeed()
    assert (tmp_path / "markers" / "executor.mid-task").exists()
    run.check()
    run.check_state(reader)


def test_storage_that_fails_hangs_and_loses_replies_costs_time_and_nothing_else(tmp_path: Path, reader: Reader) -> None:
    """Of all writes, one in twenty fails, one in a hundred hangs for 30 s, one in a hundred succeeds with an error."""
    run = Run.create(
        tmp_path,
        JoinAggregation.generate(),
        checkpoint_scheme="faulty://",
        confs={**log_confs(with_tests=True), **faults()},
    )
    for restart in range(MAX_RESTARTS + 1):
        with run.start(confs=faults(seed=restart)) as driver:
            if driver.wait() == 0:
                break
            assert restart < MAX_RESTARTS, driver.failed(f"no end after {MAX_RESTARTS} restarts")
    run.check()
    run.check_state(reader)
