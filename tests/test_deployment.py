"""Where a query runs: executors that come and go, Spark Connect, two drivers by mistake; all restart in the middle."""

from __future__ import annotations

import json
import re
from pathlib import Path

from harness import Reader, Run, free_port
from rescaling import FROM_NONE_TO_TWO, MASTER, come_and_go
from scenarios import Aggregation, ProcessedAggregation
from settings import dstl, jars, log_confs
from spark_facts import HAS_PROCESSORS_OF_ROWS

# What Python says first of a query that failed.
FIRST = r"StreamingQueryException: \[STREAM_FAILED\] Query \[[^]]*\] terminated with exception: \[DSTL_FENCED\]"


def test_an_executor_that_is_told_to_end_uploads_what_waits_before_it_does(tmp_path: Path, reader: Reader) -> None:
    """All executors go when all tasks of a batch have sealed, and before anything of it was uploaded."""
    late_uploads = dstl(inline__maxSegmentSize="0", batch__persistDelay="1h")
    run = Run.create(
        tmp_path, Aggregation.generate(), master="local-cluster[2,1,1024]", confs={**log_confs(), **late_uploads}
    )
    with run.start("driver.seals-pending=pause@2") as driver:
        driver.wait_for_pause("driver.seals-pending")
        before = set(driver.executors())
        for pid in before:
            driver.terminate_executor(pid)
        driver.wait_until(lambda: not before & set(driver.executors()), "end of the executors")
        run.resume("driver.seals-pending")
        driver.succeed()
    run.check()
    run.check_state(reader)


def test_executors_that_are_decommissioned_upload_what_waits_while_they_live(tmp_path: Path, reader: Reader) -> None:
    """With nobody to take their blocks they do not end by themselves; the driver asks for nothing meanwhile."""
    confs = {
        **log_confs(),
        **dstl(inline__maxSegmentSize="0", batch__persistDelay="1h"),
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
    }
    run = Run.create(tmp_path, Aggregation.generate(), master="local-cluster[2,1,1024]", confs=confs)
    checkpoint = Path(run.queries[0].checkpoint)
    with run.start("driver.seals-pending=pause@2;driver.after-commit-entry=pause@2") as driver:
        driver.wait_for_pause("driver.seals-pending")
        before = set(driver.executors())
        uploaded = set(checkpoint.glob("dstl/data/*/*.log"))
        for pid in before:
            driver.decommission_executor(pid)
        driver.wait_until(
            lambda: len({file.name[0] for file in set(checkpoint.glob("dstl/data/*/*.log")) - uploaded}) == 2,
            "data files of both executors",
        )
        assert before <= set(driver.executors())
        run.resume("driver.seals-pending")
        driver.wait_for_pause("driver.after-commit-entry")
        for pid in before & set(driver.executors()):
            driver.kill_executor(pid)
        run.resume("driver.after-commit-entry")
        driver.succeed()
    run.check()
    run.check_state(reader)


def test_a_session_of_spark_connect_gets_the_log_from_a_server_that_has_only_the_jar(
    tmp_path: Path, reader: Reader
) -> None:
    """The server is killed in the middle of a commit; the query goes on with another one."""
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
    run.check()
    assert not list(Path(run.queries[0].checkpoint).rglob("*.changelog"))
    run.check_state(reader)


def test_executors_come_with_the_work_and_go_without_it(tmp_path: Path, reader: Reader) -> None:
    confs = {**log_confs(), **FROM_NONE_TO_TWO}
    run = Run.create(tmp_path, Aggregation.generate(), master=MASTER, confs=confs)
    come_and_go(run)
    with run.start() as driver:
        driver.succeed()
    run.check()
    run.check_state(reader)


def test_of_two_drivers_on_one_checkpoint_the_late_one_stops_and_names_the_other(
    tmp_path: Path, reader: Reader
) -> None:
    run = Run.create(tmp_path, Aggregation.generate())
    with run.start("driver.before-commit-entry=pause@3") as late:
        late.wait_for_pause("driver.before-commit-entry")
        with run.start() as first:
            first.succeed()
        written = run.queries[0].written()
        run.resume("driver.before-commit-entry")
        assert late.wait() != 0
        assert run.queries[0].written() == written
        fenced = re.search(rf"{FIRST} Batch 3 of .* by another driver \(run (\S+) on host (\S+)\)", late.log())
        assert fenced, late.failed("the error does not name the other driver")
    assert writer_of(run, 3) == (fenced[1], fenced[2])
    run.check()
    run.check_state(reader)


def test_of_two_drivers_that_do_not_meet_in_one_batch_the_late_one_stops_before_its_next_and_names_the_other(
    tmp_path: Path, reader: Reader
) -> None:
    """The late one has committed a batch; before it begins the next one, the other has begun it, and gone on."""
    run = Run.create(tmp_path, Aggregation.generate())
    with run.start("driver.after-commit-entry=pause@3") as late:
        late.wait_for_pause("driver.after-commit-entry")
        with run.start() as first:
            first.succeed()
        written = run.queries[0].written()
        run.resume("driver.after-commit-entry")
        assert late.wait() != 0
        assert run.queries[0].written() == written
        fenced = re.search(rf"{FIRST} Another driver \(the newest run is (\S+) on host (\S+)\)", late.log())
        assert fenced, late.failed("the error does not name the other driver")
    assert writer_of(run, 4) == (fenced[1], fenced[2])
    run.check()
    run.check_state(reader)


def writer_of(run: Run, batch: int) -> tuple[str, str]:
    """The run and the host that a commit entry names."""
    entry = (Path(run.queries[0].checkpoint) / "commits" / str(batch)).read_bytes()
    note = json.loads(entry.splitlines()[2])
    return note["run"], note["host"]
