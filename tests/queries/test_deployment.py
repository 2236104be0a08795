# SPDX-License-Identifier: Apache-2.0
"""Queries run on executors that end early, over Spark Connect, and on two drivers at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from driver_process import Driver
from harness import Reader, Run, free_port
from rescaling import FROM_NONE_TO_TWO, MASTER, come_and_go
from scenarios import Aggregation, ProcessedAggregation
from settings import dstl, jars, log_confs
from spark_facts import HAS_PROCESSORS_OF_ROWS

# The first line of Python's error.
FIRST = r"StreamingQueryException: \[STREAM_FAILED\] Query \[[^]]*\] terminated with exception: \[DSTL_FENCED\]"


def test_executors_upload_their_segments_before_they_end(tmp_path: Path, reader: Reader) -> None:
    """After the seals of a batch and before any upload, all executors are decommissioned; in a later batch terminated.

    Both end while the paused driver requests no upload.
    """
    confs = {
        **log_confs(),
        **dstl(inline__maxSegmentSize="0", batch__persistDelay="1h"),
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
    }
    run = Run.create(tmp_path, Aggregation.generate(), master="local-cluster[2,1,1024]", confs=confs)
    checkpoint = Path(run.queries[0].checkpoint)
    sealed, committed = "driver.seals-pending", "driver.after-commit-entry"
    with run.start(f"{sealed}=pause@2;{committed}=pause@2;{sealed}=pause@4") as driver:
        driver.wait_for_pause(sealed)
        uploaded = set(checkpoint.glob("dstl/data/*/*.log"))
        end_all(driver, driver.decommission_executor)
        assert len({file.name[0] for file in set(checkpoint.glob("dstl/data/*/*.log")) - uploaded}) == 2
        run.resume(sealed)
        driver.wait_for_pause(committed)
        run.repeat(sealed)
        run.resume(committed)
        driver.wait_for_pause(sealed)
        end_all(driver, driver.terminate_executor)
        run.resume(sealed)
        driver.succeed()
    run.check_all(reader)


def end_all(driver: Driver, end: Callable[[int], None]) -> None:
    """Send a signal to all executors, and wait until they have ended."""
    before = set(driver.executors())
    for pid in before:
        end(pid)
    driver.wait_until(lambda: not before & set(driver.executors()), "end of the executors")


def test_a_spark_connect_session_uses_the_log_of_a_server_with_the_jar(tmp_path: Path, reader: Reader) -> None:
    """The server is killed in the middle of a commit; the query continues on another server, as its state shows."""
    scenario = ProcessedAggregation if HAS_PROCESSORS_OF_ROWS else Aggregation
    run = Run.create(tmp_path, scenario.generate(), confs={"spark.jars": jars()})
    run.transform_with_state = HAS_PROCESSORS_OF_ROWS
    port = free_port()
    client = run.client(port)
    with run.serve(port, "driver.before-commit-entry=pause@3") as server, client.start():
        server.wait_for_pause("driver.before-commit-entry")
        server.kill()
    assert max(run.committed(run.queries[0])) == 2
    with run.serve(port), client.start() as driver:
        driver.succeed()
    assert not list(Path(run.queries[0].checkpoint).rglob("*.changelog"))
    run.check_state(reader)


def test_a_query_runs_under_dynamic_allocation(tmp_path: Path, reader: Reader) -> None:
    confs = {**log_confs(), **FROM_NONE_TO_TWO}
    run = Run.create(tmp_path, Aggregation.generate(), master=MASTER, confs=confs)
    come_and_go(run)
    run.finish(reader)


def test_a_replaced_driver_is_fenced_before_its_next_batch(tmp_path: Path, reader: Reader) -> None:
    """The late driver has committed batch 3; before it begins batch 4, its successor commits it and those after it."""
    run = Run.create(tmp_path, Aggregation.generate())
    with run.start("driver.after-commit-entry=pause@3") as late:
        late.wait_for_pause("driver.after-commit-entry")
        run.complete(reader)
        written = run.queries[0].written()
        run.resume("driver.after-commit-entry")
        assert late.wait() != 0
        assert run.queries[0].written() == written
        # Its entry of the source has the same content as its successor's, and counts as written.
        begun = rf"{FIRST} Batch 4 was begun by another driver \(the newest other run is (\S+) on host (\S+)\)"
        fenced = re.search(begun, late.log())
        assert fenced, late.failed("the error does not name the other driver")
    assert run.writer(run.queries[0], 4) == (fenced[1], fenced[2])
    run.check_all(reader)
