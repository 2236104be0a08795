# SPDX-License-Identifier: Apache-2.0
"""The incidents of docs/cookbook.md with the cause in a query's storage, disks or Spark."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from clicks import RETAIN_LITTLE
from driver_process import Failed
from harness import Reader, Run
from imitation import imitation
from other_sparks import jar_of, jar_of_another
from recipe import Recipe, printed_settings
from s3 import ROOT, environment, on_s3
from scenarios import Aggregation
from settings import jars, log_confs
from spark_dstl.release import installed_line
from wire import Fault, Rule, Wire, wire

COMMIT = re.compile(r"/query-1/commits/\d+$")
PAUSED = "driver.before-commit-entry"
NAMESPACE = ("unshare", "-rm", "sh", "-c")


@dataclass(frozen=True)
class OnS3:
    """Queries on an imitation of S3, the proxy between them, and an application that runs them."""

    run: Run
    between: Wire
    application: Reader


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnS3]:
    """A query for each test."""
    work = tmp_path_factory.mktemp("clicks")
    inputs = [Aggregation.generate(files, rows=30) for files in (5, 2)]
    with imitation() as server, wire(server.port) as between:
        run = on_s3(work, server, *inputs, confs={**log_confs(), **RETAIN_LITTLE}, address=between.address)
        (work / "application").mkdir()
        with closing(Reader(work / "application", run.confs)) as application:
            yield OnS3(run, between, application)


@pytest.fixture
def clicks(started: OnS3, monkeypatch: pytest.MonkeyPatch) -> OnS3:
    """The same without rules of the proxy; the environment has the settings for commands."""
    for name, value in environment(started.between.address).items():
        monkeypatch.setenv(name, value)
    started.between.begin([])
    return started


def test_a_missing_permission(clicks: OnS3) -> None:
    may_not_read = Rule(Fault.DENIED, "GET", r"^/[^/?]+/[^?]+$")
    may_not_delete = [Rule(Fault.DENIED, "DELETE"), Rule(Fault.DENIED, "POST", r"\?delete")]
    run, between = replace(clicks.run, queries=clicks.run.queries[:1]), clicks.between
    with Recipe("A permission is missing", {"s3a://my-bucket/checkpoints": ROOT}) as recipe:
        for missing in ([may_not_read], may_not_delete):
            between.rules[:] = missing
            with pytest.raises(Failed) as failed:
                run.complete(clicks.application)
            recipe.sees(str(failed.value))
        between.rules[:] = [may_not_read]
        recipe.sees(recipe.types(exit_code=1))
        between.rules.clear()
        run.complete(clicks.application)
        recipe.sees(recipe.types())


def test_storage_that_is_slow(clicks: OnS3) -> None:
    """Each put of the probe and each commit takes longer than a second, the default timeout before a hedge."""
    between = clicks.between
    with Recipe("Storage has become slow", {"s3a://my-bucket/checkpoints": ROOT}) as recipe:
        between.rules[:] = [Rule(Fault.HELD, target=r"/\.dstl-probe-\w+/put-|/commits/", held_seconds=1.2)]
        recipe.sees(recipe.types())
        confs = clicks.run.confs | recipe.sets()
        replace(clicks.run, queries=clicks.run.queries[1:], confs=confs).complete(clicks.application)
        written = [seen.target for seen in between.seen if seen.method == "PUT" and COMMIT.search(seen.target)]
        assert len(written) == len(set(written)) > 1
        between.rules.clear()
        recipe.sees(recipe.types())


def test_a_full_disk(tmp_path: Path, reader: Reader) -> None:
    """Another process fills a disk of the driver within a batch."""
    if subprocess.run([*NAMESPACE, "mount -t tmpfs none /mnt"], check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount file systems")
    disk, python, fill, full = (tmp_path / name for name in ("disk", "python", "fill", "full"))
    disk.mkdir()
    python.write_text(
        "#!/bin/sh\n"
        f"exec {' '.join(NAMESPACE)} 'mount -t tmpfs -o size=64m none {disk} || exit 99\n"
        f"(until [ -e {fill} ]; do sleep 0.1; done; cat /dev/zero > {disk}/other; touch {full}) &\n"
        f'exec {sys.executable} "$@"\' sh "$@"\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    run = Run.create(tmp_path, Aggregation.generate(files=5, rows=30))
    places: dict[str, Path | str] = {"/checkpoints/clicks": run.queries[0].checkpoint, "/local": disk}
    with Recipe("The disk of an executor is full", places) as recipe:
        with run.start(f"{PAUSED}=pause@2", {"spark.local.dir": str(disk)}, str(python)) as driver:
            driver.wait_for_pause(PAUSED)
            fill.touch()
            driver.wait_until(full.exists, "full disk")
            run.resume(PAUSED)
            assert driver.wait() != 0
            recipe.sees(driver.log())
        assert run.committed(run.queries[0]) == {0, 1, 2}
        recipe.sees(recipe.types())
        run.succeed(confs=recipe.sets())
        recipe.sees(recipe.types())
    run.check_all(reader)


@pytest.mark.skipif(installed_line().name != "4.2", reason="the page prints the settings for Spark 4.2")
def test_a_jar_for_another_spark(tmp_path: Path) -> None:
    run = Run.create(tmp_path, Aggregation.generate(files=2, rows=30))
    with Recipe("The jar is for another Spark", {}) as recipe:
        with run.start(confs={"spark.jars": jar_of_another()}) as driver:
            assert driver.wait() != 0
            recipe.sees(driver.log())
        printed = recipe.types()
        recipe.sees(printed)
    assert printed_settings(printed)["spark.jars"] == jars()


@pytest.mark.skipif(installed_line().name == "4.0", reason="the tests run on Spark 4.0")
def test_a_jar_for_spark_4_0_fails_with_a_missing_class(tmp_path: Path) -> None:
    run = Run.create(tmp_path, Aggregation.generate(files=2, rows=30))
    with run.start(confs={"spark.jars": jar_of("4.0")}) as driver:
        assert driver.wait() != 0
        # Spark 3.5 has another version of Scala.
        missing = r"scala/\S+" if installed_line().name == "3.5" else r"\S+FileSystemBasedCheckpointFileManager"
        assert re.search(f"NoClassDefFoundError: {missing}", driver.log())
    assert not Path(run.queries[0].checkpoint, "commits").exists()
