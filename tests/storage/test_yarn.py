# SPDX-License-Identifier: Apache-2.0
"""Queries on YARN: a killed application, and a driver in cluster mode that lives on at a lost node."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark
import pytest

from harness import Reader, Run
from scenarios import Aggregation
from settings import FAIL_POINT_DIR, FAIL_POINTS, dstl, log_confs
from yarn_cluster import Yarn, yarn

SEALED, COMMITTING = "driver.seals-pending", "driver.before-commit-entry"
UPLOADING = "executor.before-upload"


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yarn]:
    """A YARN, to which `spark-submit` and sessions submit."""
    with yarn(tmp_path_factory.mktemp("yarn")) as cluster:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(cluster.configuration))
        yield cluster


def on_yarn(work: Path, mode: str, points: Mapping[str, str], **options: str) -> Run:
    """Return an aggregation with its state in the log; `points` are variables with fail points for a driver on YARN."""
    confs = {**log_confs(with_tests=bool(points)), **dstl(**options)}
    run = Run.create(work, Aggregation.generate(), master="yarn", confs=confs)
    # The environment of a container is not that of the client.
    variables = {"PYTHONPATH": os.pathsep.join(sys.path), "SPARK_LOCAL_IP": "127.0.0.1", **points}
    run.confs |= {
        "spark.submit.deployMode": mode,
        "spark.executor.instances": "2",
        # Spark's own jars, which the client uploads otherwise.
        "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
        "spark.yarn.stagingDir": str(work / "staging"),
        **{f"spark.yarn.appMasterEnv.{name}": value for name, value in variables.items()},
    }
    return run


def test_a_query_continues_after_its_application_was_killed(tmp_path: Path, cluster: Yarn, reader: Reader) -> None:
    """Its executors hold changes that they do not upload in time, and leave no files."""
    run = on_yarn(tmp_path, "client", {}, inline__maxSegmentSize="0", batch__persistDelay="1h")
    with run.start(f"{SEALED}=pause@2;{UPLOADING}=pause@2") as driver:
        driver.wait_for_pause(SEALED)
        (application,) = {container.application for container in cluster.containers()}
        cluster.kill(application)
        cluster.wait_until(lambda: not cluster.containers(), "end of the containers")
        run.resume(SEALED)
        assert driver.wait() != 0
    assert max(run.committed(run.queries[0])) == 1
    cluster.wait_until(lambda: not cluster.directories(), "deletion of the application's local files")
    run.succeed()
    run.check_all(reader)


def test_a_driver_at_a_lost_node_is_fenced_by_the_next_attempt(tmp_path: Path, cluster: Yarn, reader: Reader) -> None:
    """The driver stalls in a commit, YARN loses its node and starts another driver, and the first continues then."""
    points = {FAIL_POINTS: f"{COMMITTING}=pause@3", FAIL_POINT_DIR: str(tmp_path / "markers")}
    run = on_yarn(tmp_path, "cluster", points)
    with run.submit() as client:
        late = client.wait_for_pause(COMMITTING)
        (master,) = [container for container in cluster.containers() if container.process == late]
        cluster.nodes[master.node].kill()
        os.kill(late, signal.SIGSTOP)
        run.resume(COMMITTING)
        client.succeed()
    written = [run.writer(run.queries[0], batch) for batch in range(3, 6)]
    os.kill(late, signal.SIGCONT)
    cluster.wait_until(lambda: "[DSTL_FENCED] Batch 3 of" in master.log(), "DSTL_FENCED of the late driver")
    assert [run.writer(run.queries[0], batch) for batch in range(3, 6)] == written
    assert run.writer(run.queries[0], 2) not in written
    run.check_all(reader)
