# SPDX-License-Identifier: Apache-2.0
"""Spark without the jar is refused, and a wheel given to spark-submit unpacks its jar."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import spark_dstl
from driver_process import spark_submit
from harness import Run, free_port
from scenarios import Aggregation
from settings import base_confs, jars
from spark_dstl.release import installed_line

HERE = Path(__file__).resolve().parent
DRIVER = HERE / "refusals_driver.py"


def output(command: list[str], **environment: str) -> list[str]:
    """The output lines of a successful command."""
    done = subprocess.run(command, env=os.environ | environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_session_without_the_jar_is_refused_while_it_runs_and_after_it(tmp_path: Path) -> None:
    confs = base_confs("local[1]", tmp_path)
    submitted = " ".join(f"--conf '{key}={value}'" for key, value in confs.items())
    lines = output([sys.executable, str(DRIVER)], PYSPARK_SUBMIT_ARGS=f"{submitted} pyspark-shell")
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("JarNotLoaded: Spark is running already, and was started without the jar")
        assert "Restart the Python process (in a notebook, the kernel)" in line
        assert f"--jars {jars()}" in line


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel that Python can import; tests of the package compare a real one."""
    path = tmp_path / f"spark_dstl-{spark_dstl.__version__}-py3-none-any.whl"
    package = Path(spark_dstl.__file__).parent
    with zipfile.ZipFile(path, "w") as file:
        for source in sorted(package.rglob("*")):
            if source.suffix in (".py", ".json"):
                file.write(source, f"spark_dstl/{source.relative_to(package)}")
        file.write(jars(), f"spark_dstl/jars/{installed_line().jar}")
    return path


def test_a_wheel_given_to_spark_submit_unpacks_its_jar_and_names_its_path(tmp_path: Path, wheel: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "SPARK_DSTL_JAR": ""}
    command, arguments = spark_submit(base_confs("local[1]", tmp_path)), ["--py-files", str(wheel), str(DRIVER)]
    place, refused = output([*command, *arguments], **environment)
    assert wheel.name in place
    found = re.search(r"`spark-submit --jars (.+\.jar)`", refused)
    assert found is not None, refused
    assert Path(found[1]).is_relative_to(tmp_path / "cache")
    assert Path(found[1]).read_bytes() == Path(jars()).read_bytes()
    assert output([*command, "--jars", found[1], *arguments], **environment) == [place, "not refused"]


def test_a_spark_connect_server_without_the_jar_is_refused(tmp_path: Path) -> None:
    port = free_port()
    with Run.create(tmp_path, Aggregation.generate(files=1, rows=1), confs={}).serve(port):
        (refused,) = output([sys.executable, str(DRIVER), f"sc://127.0.0.1:{port}"])
    assert refused.startswith("JarNotLoaded: the Spark Connect server was started without the jar")
    assert f"start-connect-server.sh --jars {jars()}" in refused
