# SPDX-License-Identifier: Apache-2.0
"""Tests of HDFS alone: its faults, and files that stay open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import spark_dstl
from cases import let_batches_be_uneven, wrong_with
from harness import Run
from hdfs_cases import HDFS_CASES, OPEN_FILE, HdfsCase, on_hdfs, open_files, play_on_hdfs
from scenarios import Aggregation
from servers import Hdfs, hdfs
from settings import log_confs


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """An HDFS for all tests of this file."""
    with hdfs(tmp_path_factory.mktemp("hdfs")) as cluster:
        yield cluster


@pytest.mark.parametrize("case", [case for case in HDFS_CASES if not case.kills], ids=lambda case: case.name)
def test_a_query_survives(tmp_path: Path, cluster: Hdfs, case: HdfsCase) -> None:
    outcome = play_on_hdfs(case, cluster, on_hdfs(tmp_path, cluster, log_confs()))
    assert (outcome.failures, outcome.wrong) == ((), "")


def test_a_file_that_a_dead_driver_left_open_does_not_block_the_next_driver(tmp_path: Path, cluster: Hdfs) -> None:
    """The next driver does not wait for its lease; the namenode closes it when the lease has expired."""
    run = on_hdfs(tmp_path, cluster, log_confs())
    with run.start() as driver:
        OPEN_FILE.disturb(cluster, driver, run)
    left_open = open_files(run, cluster)
    assert left_open
    run.succeed()
    assert open_files(run, cluster) == left_open
    cluster.tell("expire-leases")
    assert not open_files(run, cluster)
    let_batches_be_uneven(run)
    assert not wrong_with(run)


def test_a_query_and_the_commands_take_tickets_of_kerberos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ticket is from a keytab first, and from a cache after the restart."""
    with hdfs(tmp_path, secured=True) as cluster:
        here = tmp_path / "hdfs"
        of_java = f"-Djava.security.krb5.conf={here / 'krb5.conf'}"
        run = Run.create(tmp_path, Aggregation.generate(), confs=log_confs(), checkpoints=f"{cluster.address}/alice")
        run.confs["spark.driver.extraJavaOptions"] += f" {of_java}"
        monkeypatch.setenv("HADOOP_CONF_DIR", str(here))
        monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "none"))
        query = run.queries[0]
        with query.without_last():
            run.succeed({"spark.kerberos.principal": "alice", "spark.kerberos.keytab": str(here / "alice.keytab")})
        monkeypatch.setenv("KRB5CCNAME", str(here / "alice.tickets"))
        run.succeed()
        assert query.result() == query.scenario.result()
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", of_java)
        with spark_dstl.open(query.checkpoint) as checkpoint:
            assert not checkpoint.verify(deep=True).is_damaged
