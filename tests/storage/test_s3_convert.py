# SPDX-License-Identifier: Apache-2.0
"""Conversion of a checkpoint of Spark's default provider on S3, and another number of partitions there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from documents import dstl

from harness import Run
from programs import connector, with_jars
from s3 import ROOT, environment, on_s3
from scenarios import Aggregation
from servers import S3Process, versitygw
from settings import log_confs
from spark_dstl.checkpoint.changing import activity

DEFAULT = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
    "HDFSBackedStateStoreProvider"
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Process]:
    monkeypatch.setattr(activity, "LOOK_SECONDS", 0.01)
    with versitygw(tmp_path / "server") as server:
        for name, value in environment(server.address).items():
            monkeypatch.setenv(name, value)
        yield server


@contextmanager
def between_halves(run: Run) -> Iterator[str]:
    """Run the query with half of its input before the block, and the rest after it. Gives the connector's option."""
    with run.queries[0].without_last(3), run.start() as driver:
        driver.succeed()
    before = run.committed(run.queries[0])
    yield f"--jars {','.join(map(str, connector()))}"
    run.succeed()
    assert max(run.committed(run.queries[0])) > max(before)
    run.check()
    verified = dstl(f"dstl verify --deep {run.queries[0].checkpoint}")
    assert verified.exit_code == 0, verified.output


def test_a_converted_checkpoint_continues(tmp_path: Path, server: S3Process) -> None:
    run = on_s3(tmp_path, server, Aggregation.generate(files=6), confs=DEFAULT)
    source, target = run.queries[0].checkpoint, f"{ROOT}/converted"
    with between_halves(run) as with_connector:
        without = dstl(f"dstl convert {source} {ROOT}/not-there --stopped")
        assert without.exit_code == 1
        assert "S3AFileSystem not found. Give the jars" in without.output
        converted = dstl(f"dstl convert {source} {target} --stopped {with_connector}")
        assert converted.exit_code == 0, converted.output
        run.queries[0] = run.queries[0].at(target)
        run.confs.update(with_jars(log_confs(), connector()))


def test_a_checkpoint_continues_with_another_number_of_partitions(tmp_path: Path, server: S3Process) -> None:
    run = on_s3(tmp_path, server, Aggregation.generate(files=6))
    checkpoint = run.queries[0].checkpoint
    with between_halves(run) as with_connector:
        done = dstl(f"dstl repartition {checkpoint} --partitions 3 --apply --stopped {with_connector}")
        assert done.exit_code == 0, done.output
    shown = dstl(f"dstl show {checkpoint}")
    assert ["stores", "3"] in [line.split() for line in shown.output.splitlines()], shown.output
