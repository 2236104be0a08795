"""The log on HDFS: a namenode and three datanodes in a process of their own."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import spark_dstl
from cases import OUTAGE_SECONDS, wait_for_commits
from harness import Run
from scenarios import Aggregation
from servers import Hdfs, hdfs
from settings import dstl, log_confs
from spark_dstl.commands import main

CLUSTER = "local-cluster[2,1,1024]"
LARGE_SEGMENTS = dstl(inline__maxSegmentSize="0")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """An HDFS for all tests of this file."""
    with hdfs(tmp_path_factory.mktemp("hdfs")) as cluster:
        yield cluster


def on_hdfs(work: Path, cluster: Hdfs, master: str = "local[2]", **options: str) -> Run:
    return Run.create(
        work,
        Aggregation.generate(),
        master=master,
        confs={**log_confs(), **dstl(**options)},
        checkpoints=f"{cluster.address}/{work.name}",
        names=cluster.names,
    )


def test_large_segments_and_whoever_dies(tmp_path: Path, cluster: Hdfs) -> None:
    """A driver before and after its commit entry, which may leave files open, and an executor in its task."""
    run = on_hdfs(tmp_path, cluster, master=CLUSTER, inline__maxSegmentSize="0")
    for point, batch in (("driver.before-commit-entry", 1), ("driver.after-commit-entry", 2)):
        with run.start(f"{point}=pause@{batch}") as driver:
            driver.wait_for_pause(point)
            driver.kill()
    with run.start("executor.mid-task=pause@4") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.mid-task"))
        driver.succeed()
    run.check()
    run.check_state()


def test_of_two_drivers_the_later_one_goes_on(tmp_path: Path, cluster: Hdfs) -> None:
    run = on_hdfs(tmp_path, cluster)
    with run.start("driver.before-commit-entry=pause@3") as first:
        first.wait_for_pause("driver.before-commit-entry")
        with run.start() as second:
            second.succeed()
        run.resume("driver.before-commit-entry")
        assert first.wait() != 0
        assert re.search(r"\[DSTL_FENCED\]", first.log()), first.failed("the error does not say that it was fenced")
    run.check()
    run.check_state()


@pytest.mark.parametrize("command", ["restart-namenode", "stop-datanode"])
def test_a_query_survives(tmp_path: Path, cluster: Hdfs, command: str) -> None:
    run = on_hdfs(tmp_path, cluster)
    with run.start() as driver:
        wait_for_commits(driver, run)
        cluster.tell(command)
        driver.succeed()
    run.check()
    run.check_state()
    if command == "stop-datanode":
        cluster.tell("restart-datanode")


def test_a_query_waits_for_the_end_of_safe_mode(tmp_path: Path, cluster: Hdfs) -> None:
    run = on_hdfs(tmp_path, cluster)
    with run.start() as driver:
        wait_for_commits(driver, run)
        cluster.tell("enter-safe-mode")
        time.sleep(OUTAGE_SECONDS)
        cluster.tell("leave-safe-mode")
        driver.succeed()
    run.check()
    run.check_state()


def test_the_commands_read_what_only_hadoop_has_a_client_for(tmp_path: Path, cluster: Hdfs) -> None:
    """Without libhdfs: through Hadoop's own client, in a Java process that ends with the command."""
    run = on_hdfs(tmp_path, cluster, inline__maxSegmentSize="0")
    with run.start() as driver:
        driver.succeed()
    path = run.queries[0].checkpoint
    with spark_dstl.open(path) as checkpoint:
        assert checkpoint.verify(deep=True).is_intact
        newest = max(run.committed(run.queries[0]))
        assert checkpoint.summary().newest_batch == newest
        assert checkpoint.stores().column("version").to_pylist() == [newest + 1] * 4
        rows = checkpoint.state().read_all().to_pylist()
    assert len(rows) == len(run.queries[0].scenario.result())
    shown = CliRunner().invoke(main, ["ls", path])
    assert shown.exit_code == 0, shown.output
    refused = CliRunner().invoke(main, ["show", f"{cluster.address}/nothing-there"])
    assert refused.exit_code != 0
