# SPDX-License-Identifier: Apache-2.0
"""The incidents of docs/cookbook.md with the cause in a query's storage, disks or Spark."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
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

COMMIT = re.compile(r"/query-0/commits/\d+$")
PAUSED = "driver.before-commit-entry"
NAMESPACE = ("unshare", "-rm", "sh", "-c")


@contextmanager
def clicks_on_s3(work: Path, monkeypatch: pytest.MonkeyPatch, files: int) -> Iterator[tuple[Run, Wire]]:
    """The query on an imitation of S3, and the proxy between them; the environment has the settings of both."""
    with imitation() as server, wire(server.port) as between:
        for name, value in environment(between.address).items():
            monkeypatch.setenv(name, value)
        confs = {**log_confs(), **RETAIN_LITTLE}
        yield on_s3(work, server, Aggregation.generate(files, rows=30), confs=confs, address=between.address), between


def test_a_missing_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_not_read = Rule(Fault.DENIED, "GET", r"^/[^/?]+/[^?]+$")
    may_not_delete = [Rule(Fault.DENIED, "DELETE"), Rule(Fault.DENIED, "POST", r"\?delete")]
    places = {"s3a://my-bucket/checkpoints": ROOT}
    (tmp_path / "application").mkdir()
    with (
        Recipe("A permission is missing", places) as recipe,
        clicks_on_s3(tmp_path, monkeypatch, files=5) as (run, between),
        closing(Reader(tmp_path / "application", run.confs)) as application,
    ):
        for missing in ([may_not_read], may_not_delete):
            between.rules[:] = missing
            with pytest.raises(Failed) as failed:
                run.complete(application)
            recipe.sees(str(failed.value))
        between.rules[:] = [may_not_read]
        recipe.sees(recipe.types(exit_code=1))
        between.rules.clear()
        run.complete(application)
        recipe.sees(recipe.types())


def test_storage_that_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each put of the probe and each commit takes longer than a second, the default timeout before a hedge."""
    with (
        Recipe("Storage has become slow", {"s3a://my-bucket/checkpoints": ROOT}) as recipe,
        clicks_on_s3(tmp_path, monkeypatch, files=2) as (run, between),
    ):
        between.rules[:] = [Rule(Fault.HELD, target=r"/\.dstl-probe-\w+/put-|/commits/", held_seconds=1.2)]
        recipe.sees(recipe.types())
        run.confs.update(recipe.sets())
        with run.start() as driver:
            driver.succeed()
        written = [seen.target for seen in between.seen if seen.method == "PUT" and COMMIT.search(seen.target)]
        assert len(written) == len(set(written)) > 1
        between.rules.clear()
        recipe.sees(recipe.types())
        run.check()


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
        with run.start(confs=recipe.sets()) as driver:
            driver.succeed()
        recipe.sees(recipe.types())
    run.check()
    run.check_state(reader)


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
