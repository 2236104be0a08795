"""The log on HDFS: a namenode and three datanodes in a process of their own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import spark_dstl
from cases import OUTAGE_SECONDS, let_batches_be_uneven, wait_for_commits
from courses import check, kill_drivers, start_two
from driver_process import Driver
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
    kill_drivers(run, {"driver.before-commit-entry": 1, "driver.after-commit-entry": 2})
    with run.start("executor.mid-task=pause@4") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.mid-task"))
        driver.succeed()
    check(run)


def test_of_two_drivers_the_later_one_goes_on(tmp_path: Path, cluster: Hdfs) -> None:
    start_two(on_hdfs(tmp_path, cluster))


@pytest.mark.parametrize("command", ["restart-namenode", "stop-datanode"])
def test_a_query_survives(tmp_path: Path, cluster: Hdfs, command: str) -> None:
    run = on_hdfs(tmp_path, cluster)
    with run.start() as driver:
        wait_for_commits(driver, run)
        cluster.tell(command)
        driver.succeed()
    check(run)
    if command == "stop-datanode":
        cluster.tell("restart-datanodes")


def test_a_query_waits_for_the_end_of_safe_mode(tmp_path: Path, cluster: Hdfs) -> None:
    run = on_hdfs(tmp_path, cluster)
    with run.start() as driver:
        wait_for_commits(driver, run)
        cluster.tell("enter-safe-mode")
        time.sleep(OUTAGE_SECONDS)
        cluster.tell("leave-safe-mode")
        driver.succeed()
    check(run)


def test_a_file_that_a_dead_driver_left_open_is_in_nobodys_way(tmp_path: Path, cluster: Hdfs) -> None:
    """The next driver does not wait for its lease, and the namenode closes it once that has expired."""
    run = on_hdfs(tmp_path, cluster)
    with run.start() as driver:
        wait_for_commits(driver, run)
        # Who writes now has made a file, and finds nobody for its content.
        cluster.tell("stop-datanodes")
        driver.wait_until(lambda: stalls_with_an_open_file(driver, run, cluster), "file that is open")
        driver.kill()
    cluster.tell("restart-datanodes")
    left_open = open_files(run, cluster)
    assert left_open
    with run.start() as driver:
        driver.succeed()
    assert open_files(run, cluster) == left_open
    cluster.tell("expire-leases")
    assert not open_files(run, cluster)
    let_batches_be_uneven(run)
    check(run)


def open_files(run: Run, cluster: Hdfs) -> list[str]:
    return [path for path in cluster.open_files() if path.startswith(f"/{run.work.name}/")]


def stalls_with_an_open_file(driver: Driver, run: Run, cluster: Hdfs) -> bool:
    """Stop the driver; it goes on if it has nothing open."""
    driver.stall()
    if open_files(run, cluster):
        return True
    driver.go_on()
    return False


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
