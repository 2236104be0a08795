# SPDX-License-Identifier: Apache-2.0
"""The result is that of an undisturbed run after killed processes, failed tasks and storage errors.

Fail points in the JVM code pause the thread that reaches them; the test then sends SIGKILL. Each test reads all
committed versions back and compares them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness import Reader, Run
from scenarios import Aggregation, JoinAggregation
from settings import IN_FULL, STATE_STORE, dstl, faults, log_confs
from spark_facts import LOGS_SNAPSHOTS

CLUSTER = "local-cluster[2,1,1024]"
# The fail points around a commit, with a batch for each.
AROUND_COMMITS = {
    "driver.before-commit-entry": 0,
    "driver.before-first-seal": 2,
    "driver.seals-pending": 3,
    "driver.after-commit-entry": 4,
}
# Failed writes may end a query; so many restarts are never needed.
MAX_RESTARTS = 15


def test_a_driver_killed_around_a_commit_loses_and_repeats_no_batch(tmp_path: Path, reader: Reader) -> None:
    """Of four queries, the first to reach a fail point stops there; then the kill meets each at another one."""
    aggregations = (Aggregation.generate(seed=seed) for seed in range(1, len(AROUND_COMMITS)))
    run = Run.create(tmp_path, JoinAggregation.generate(), *aggregations)
    with run.start(";".join(f"{point}=pause@{batch}" for point, batch in AROUND_COMMITS.items())) as driver:
        for point in AROUND_COMMITS:
            driver.wait_for_pause(point)
        newest = {max(run.committed(query), default=-1): query for query in run.queries}
        assert sorted(newest) == [-1, 1, 2, 4]
        # Another application reads the state of a running query without the changes of the batch that is not committed.
        with_seals = replace(run, queries=[newest[AROUND_COMMITS["driver.seals-pending"] - 1]])
        with_seals.check_state(reader)
        driver.kill()
    run.finish(reader)


def test_a_driver_killed_while_tasks_run_and_offsets_are_written_loses_and_repeats_no_row(
    tmp_path: Path, reader: Reader
) -> None:
    # The output of a batch is one file, written after the batch's tasks, so that this sink may overlap.
    overlapping = {**log_confs(), **dstl(commit__overlapOffsets="always")}
    run = Run.create(tmp_path, Aggregation.generate(), confs=overlapping)
    point = "driver.before-offsets"
    with run.start(f"{point}=pause@3") as driver:
        driver.wait_for_pause(point)
        driver.wait_until(lambda: {"tasks": 2, "completed": 0} in run.stages(), "tasks that change state")
        driver.kill()
    assert max(run.committed(run.queries[0])) == 2
    assert "3" not in run.names(f"{run.queries[0].checkpoint}/offsets")
    # The source's entry of batch 3 was written, so batch 3 reads two files now: the states differ, not their sum.
    run.complete(reader)


@pytest.mark.skipif(not IN_FULL, reason="like another, which meets a join at one of four fail points")
def test_a_join_continues_after_its_driver_is_killed_before_a_commit_entry(tmp_path: Path, reader: Reader) -> None:
    run = Run.create(tmp_path, JoinAggregation.generate())
    run.kill_at("driver.before-commit-entry", 4)
    assert max(run.committed(run.queries[0])) == 3
    run.finish(reader)


def test_a_query_survives_the_loss_of_executors_with_small_segments(tmp_path: Path, reader: Reader) -> None:
    """In batch 2 an executor is killed in a task. In batch 4 all executors are killed after three of four seals.

    One executor is paused after its first seal, so the other one runs the remaining tasks; then both are killed. The
    three tasks that are done are not run again: only the driver holds their segments.
    """
    run = Run.create(tmp_path, Aggregation.generate(), master=CLUSTER)
    with run.start("executor.mid-task=pause@2;executor.after-seal=pause@4") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.mid-task"))
        paused = driver.wait_for_pause("executor.after-seal")
        driver.wait_until(lambda: {"tasks": 4, "completed": 3} in run.stages(), "end of the other three tasks")
        for executor in sorted(driver.executors(), key=lambda pid: pid == paused):
            driver.kill_executor(executor)
        driver.succeed()
    run.check_all(reader)


@pytest.mark.skipif(not LOGS_SNAPSHOTS, reason="in this Spark snapshots are files of Spark's")
def test_snapshots_survive_the_death_of_their_makers_and_loaders(tmp_path: Path, reader: Reader) -> None:
    always = {
        **dstl(materialize__replayCost="100000", batch__persistDelay="50ms"),
        f"{STATE_STORE}.minDeltasForSnapshot": "1",
    }
    run = Run.create(tmp_path, Aggregation.generate(files=12, rows=60), master=CLUSTER, confs={**log_confs(), **always})
    # An executor is killed after an upload and before its report, the driver before an entry that may hold snapshots.
    with run.start("executor.snapshot-uploaded=pause@1;driver.before-commit-entry=pause@7") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.snapshot-uploaded"))
        driver.wait_for_pause("driver.before-commit-entry")
        driver.kill()
    run.check_state(reader)
    # An executor is killed between download and loading.
    with run.start("executor.snapshot-loading=pause") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.snapshot-loading"))
        driver.succeed()
    run.check_all(reader)
    assert not list(tmp_path.glob("query-0/checkpoint/state/**/*.sst"))


def test_a_batch_fails_when_an_executor_dies_with_large_segments(tmp_path: Path, reader: Reader) -> None:
    """In batch 2 a task fails, and its second attempt succeeds. In batch 4 an executor is killed before its upload."""
    large = dstl(inline__maxSegmentSize="0")
    run = Run.create(tmp_path, Aggregation.generate(), master=CLUSTER, confs={**log_confs(), **large})
    with run.start("executor.mid-task=fail@2;executor.before-upload=pause@4") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.before-upload"))
        assert driver.wait() != 0
        lost = re.search(r"\[DSTL_LOST_CHANGES\] Batch 4 .*: operator 0 partition [0-3] \(executor \d+: ", driver.log())
        assert lost, driver.failed("the error names no store")
    assert (tmp_path / "markers" / "executor.mid-task").exists()
    assert max(run.committed(run.queries[0])) == 3
    run.finish(reader)


def test_a_query_ends_with_the_right_result_on_unreliable_storage(tmp_path: Path, reader: Reader) -> None:
    """Of all writes, 5% fail, 1% hang for 30 s, and 1% succeed with an error."""
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
    run.check_all(reader)
