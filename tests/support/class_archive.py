# SPDX-License-Identifier: Apache-2.0
"""A class data sharing archive of Spark's classes: loading them takes a third of the time of a short-lived driver.

The first process that needs the archive makes it with a small query, as `class_archive.py` does without an argument;
other processes run without it meanwhile. A JVM ignores an archive of another version or class path.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

HERE = Path(__file__).resolve().parent
DIRECTORY = HERE.parents[1] / ".build" / "test-classes"
LIMIT_SECONDS = 300


def java_option() -> str:
    """The option for a JVM that uses the archive; makes the archive first unless another process does."""
    archive = DIRECTORY / f"{_fingerprint()}.jsa"
    if not archive.exists():
        _make(archive)
    # Mapped at another address than its own, as newer JVMs do by default, all of its pages would be written.
    at_its_address = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
    return f"-XX:SharedArchiveFile={archive} {at_its_address}" if archive.exists() else ""


def _fingerprint() -> str:
    """A hash of Spark's jars and of the JVM's path."""
    import pyspark

    java_home = os.environ.get("JAVA_HOME")
    java = f"{java_home}/bin/java" if java_home else shutil.which("java") or ""
    jars = sorted(Path(pyspark.__file__).parent.glob("jars/*.jar"))
    parts = [os.path.realpath(java), *(f"{jar} {jar.stat().st_mtime_ns}" for jar in jars)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@cache
def _make(archive: Path) -> None:
    """Make the archive; each process tries once."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    # The operating system releases the lock when the process ends.
    with archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if archive.exists():
            return
        with tempfile.TemporaryDirectory(dir=DIRECTORY) as work:
            command = [sys.executable, str(HERE / "class_archive.py"), work]
            # A JVM crashes on an incomplete archive, so only a complete one gets the name.
            with suppress(subprocess.SubprocessError, FileNotFoundError):
                subprocess.run(command, check=True, timeout=LIMIT_SECONDS, stdout=subprocess.DEVNULL)
                (Path(work) / "classes.jsa").replace(archive)


def main() -> None:
    """Make the archive, or run typical queries in a JVM that writes it to the given directory when it ends."""
    import query_driver
    import settings
    from harness import Run
    from scenarios import Aggregation, JoinAggregation

    os.environ.setdefault("JDK_JAVA_OPTIONS", settings.JVM_OPTIONS)
    if len(sys.argv) == 1:
        java_option()
        return
    work = Path(sys.argv[1])
    scenarios = (Aggregation.generate(files=2), JoinAggregation.generate(files=1))
    run = Run.create(work, *scenarios, confs=settings.stock_confs())
    run.confs["spark.driver.extraJavaOptions"] = (
        f"{settings.SHORT_LIFE} -Djava.io.tmpdir={work} -XX:ArchiveClassesAtExit={work}/classes.jsa"
    )
    specification = run.specification("run", run.confs, parent=None)
    spark = query_driver.session(specification)
    query_driver.run(spark, specification)
    gateway = cast(Any, spark.sparkContext._gateway)
    spark.stop()
    # The JVM ends, and writes the archive, at the end of its standard input.
    gateway.proc.stdin.close()
    sys.exit(gateway.proc.wait())


if __name__ == "__main__":
    main()
