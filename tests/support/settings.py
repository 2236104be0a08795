# SPDX-License-Identifier: Apache-2.0
"""The Spark settings of the end-to-end tests.

The tests use the jar of the installed package `spark_dstl`, or that of `SPARK_DSTL_JAR`. `SPARK_DSTL_TEST_JAR` names
further jars with test classes, comma separated. With `SPARK_DSTL_TEST_WHOLE`, tests run that resemble another one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import class_archive

_CONF = Path(__file__).resolve().parents[2] / "conf"
LOG_CONFIG = _CONF / "log4j2-quiet.properties"
PROFILES = _CONF / "storage"
# The optimizing compiler does not pay off in a short-lived JVM. A full code cache would stop all compilation. With the
# default size of the metaspace the JVM collects all garbage several times while it loads Spark's classes.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=256m -XX:+ErrorFileToStderr"
SHORT_LIFE = f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()} -XX:+UseSerialGC -Xmn300m"

STATE_STORE = "spark.sql.streaming.stateStore"
FORMAT_VERSION = f"{STATE_STORE}.checkpointFormatVersion"
OURS = "org.apache.spark.sql.execution.streaming.state.dstl"
PROVIDER = f"{OURS}.DstlStateStoreProvider"
FILE_MANAGER = f"{OURS}.DstlCheckpointFileManager"
STOCK_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FILE_MANAGER_KEY = "spark.sql.streaming.checkpointFileManagerClass"

JAR = "SPARK_DSTL_JAR"
TEST_JAR = "SPARK_DSTL_TEST_JAR"
FAIL_POINTS = "SPARK_DSTL_FAIL_POINTS"
FAIL_POINT_DIR = "SPARK_DSTL_FAIL_POINT_DIR"
IN_FULL = bool(os.environ.get("SPARK_DSTL_TEST_WHOLE"))


def profile(name: str) -> dict[str, str]:
    """Return the settings of a shipped profile of storage."""
    lines = (PROFILES / f"{name}.conf").read_text(encoding="utf-8").splitlines()
    return dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))


def with_absolute_jars(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that name jars, with absolute paths."""
    return {
        name: ",".join(str(Path(jar).absolute()) for jar in environment[name].split(","))
        for name in (JAR, TEST_JAR)
        if environment.get(name)
    }


def jars(with_tests: bool = False) -> str:
    """The jars to give to Spark."""
    named = os.environ.get(JAR)
    if not named:
        import spark_dstl

        named = str(spark_dstl.jar_path())
    return f"{named},{os.environ[TEST_JAR]}" if with_tests else named


def base_confs(master: str, work: Path) -> dict[str, str]:
    """The settings that all sessions of the tests share, without a state store provider.

    Each of two executors has two partitions, so that their changes share a segment; one process alone has two.
    """
    java_options = f"{SHORT_LIFE} {class_archive.java_option()}"
    in_cluster = master.startswith(("local-cluster", "yarn"))
    confs = {
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": java_options,
        "spark.executor.extraJavaOptions": java_options,
        "spark.executor.memory": "1g",
        "spark.local.dir": str(work / "local"),
        "spark.locality.wait": "0",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "4" if in_cluster else "2",
        f"{STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    }
    if in_cluster:
        # Executors run in other working directories.
        confs["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(sys.path)
    return confs


def stock_confs() -> dict[str, str]:
    """Settings for state in Spark's own changelog files."""
    return {f"{STATE_STORE}.providerClass": STOCK_PROVIDER}


def log_confs(with_tests: bool = False) -> dict[str, str]:
    """Settings for state in the log."""
    return {
        "spark.jars": jars(with_tests),
        f"{STATE_STORE}.providerClass": PROVIDER,
        FILE_MANAGER_KEY: FILE_MANAGER,
    }


def dstl(**options: str) -> dict[str, str]:
    """Options of the log, with `__` for the dot: `dstl(inline__maxSegmentSize="0")`."""
    return {f"{STATE_STORE}.dstl.{name.replace('__', '.')}": value for name, value in options.items()}


def faults(fail: float = 0.05, hang: float = 0.01, lost_reply: float = 0.01, seed: int = 0) -> dict[str, str]:
    """Settings of the file system `faulty://`: ratios of writes that fail, hang for 30 s, or succeed with an error."""
    key = "spark.hadoop.fs.faulty"
    return {
        f"{key}.impl": "sparkdstl.testing.FaultyFileSystem",
        f"{key}.fail.ratio": str(fail),
        f"{key}.hang.ratio": str(hang),
        f"{key}.hang.ms": "30000",
        f"{key}.lost.reply.ratio": str(lost_reply),
        f"{key}.seed": str(seed),
    }
