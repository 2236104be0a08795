# SPDX-License-Identifier: Apache-2.0
"""Tests of HDFS alone: its faults, files that stay open, and the commands, which read through Hadoop's client."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from invoked import dstl
from storage_figures import RECORD, Figures

import spark_dstl
from cases import LARGE_SEGMENTS, Outcome, let_batches_be_uneven, wrong_with
from hdfs_cases import HDFS_CASES, OPEN_FILE, HdfsCase, on_hdfs, open_files, play_on_hdfs
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
    record(case, outcome)
    assert (outcome.failures, outcome.wrong) == ((), "")


def record(case: HdfsCase, outcome: Outcome) -> None:
    if os.environ.get(RECORD):
        Figures.read().add(case.key, "spark-dstl", outcome.failures, outcome.wrong)


def test_a_file_that_a_dead_driver_left_open_does_not_block_the_next_driver(tmp_path: Path, cluster: Hdfs) -> None:
    """The next driver does not wait for its lease; the namenode closes it when the lease has expired."""
    run = on_hdfs(tmp_path, cluster, log_confs())
    with run.start() as driver:
        OPEN_FILE.disturb(cluster, driver, run)
    left_open = open_files(run, cluster)
    assert left_open
    with run.start() as driver:
        driver.succeed()
    assert open_files(run, cluster) == left_open
    cluster.tell("expire-leases")
    assert not open_files(run, cluster)
    let_batches_be_uneven(run)
    outcome = Outcome((), wrong_with(run))
    record(OPEN_FILE, outcome)
    assert not outcome.wrong


def test_the_commands_read_through_hadoops_client(tmp_path: Path, cluster: Hdfs) -> None:
    """Without libhdfs: through Hadoop's own client, in a Java process that ends with the command."""
    run = on_hdfs(tmp_path, cluster, {**log_confs(), **LARGE_SEGMENTS})
    with run.start() as driver:
        driver.succeed()
    path = run.queries[0].checkpoint
    with spark_dstl.open(path) as checkpoint:
        assert not checkpoint.verify(deep=True).is_damaged
        newest = max(run.committed(run.queries[0]))
        assert checkpoint.summary().newest_batch == newest
        assert checkpoint.stores().column("version").to_pylist() == [newest + 1] * 4
        rows = checkpoint.state().read_all().to_pylist()
    assert len(rows) == len(run.queries[0].scenario.result())
    shown = dstl("ls", path)
    assert shown.exit_code == 0, shown.output
    refused = dstl("show", f"{cluster.address}/nothing-there")
    assert refused.exit_code != 0
