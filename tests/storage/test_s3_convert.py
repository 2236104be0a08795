# SPDX-License-Identifier: Apache-2.0
"""Conversion of a checkpoint of Spark's default provider on S3."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import dstl

from programs import connector
from s3 import ROOT, environment, on_s3, with_jars
from scenarios import Aggregation
from servers import versitygw
from settings import log_confs
from spark_dstl.checkpoint.changing import activity

DEFAULT = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
    "HDFSBackedStateStoreProvider"
}


def test_a_converted_checkpoint_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "LOOK_SECONDS", 0.01)
    with versitygw(tmp_path / "server") as server:
        for name, value in environment(server.address).items():
            monkeypatch.setenv(name, value)
        run = on_s3(tmp_path, server, Aggregation.generate(files=6), confs=DEFAULT)
        events = run.queries[0].input / "events"
        later = [path.rename(tmp_path / path.name) for path in sorted(events.iterdir())[3:]]
        with run.start() as driver:
            driver.succeed()
        before = run.committed(run.queries[0])
        with_connector = f"--jars {','.join(map(str, connector()))}"
        source, target = run.queries[0].checkpoint, f"{ROOT}/converted"
        without = dstl(f"dstl convert {source} {ROOT}/not-there --stopped")
        assert without.exit_code == 1
        assert "S3AFileSystem not found. Give the jars" in without.output
        converted = dstl(f"dstl convert {source} {target} --stopped {with_connector}")
        assert converted.exit_code == 0, converted.output
        for path in later:
            path.rename(events / path.name)
        run.queries[0] = run.queries[0].at(target)
        run.confs.update(with_jars(log_confs()))
        with run.start() as driver:
            driver.succeed()
        assert max(run.committed(run.queries[0])) > max(before)
        run.check()
        verified = dstl(f"dstl verify {target}")
        assert verified.exit_code == 0, verified.output
