# SPDX-License-Identifier: Apache-2.0
"""Flows of Spark's declarative pipelines keep their state in the log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from settings import FAIL_POINT_DIR, FAIL_POINTS, IN_FULL, base_confs, jars, log_confs
from spark_facts import HAS_PIPELINES

pytestmark = pytest.mark.skipif(
    not HAS_PIPELINES or not IN_FULL, reason="this Spark has no pipelines, or tests that resemble others are left out"
)

SPARK = Path(pyspark.__file__).parent
DEFINITIONS = """
from pyspark import pipelines
from pyspark.sql import SparkSession, functions


@pipelines.table
def counts():
    reader = SparkSession.active().readStream.schema("key string, time timestamp").option("maxFilesPerTrigger", 1)
    rows = reader.json("INPUT")
    windows = rows.withWatermark("time", "0 seconds").groupBy(functions.window("time", "1 minute"), "key").count()
    return windows.select("window.start", "key", "count")
"""


def test_a_pipeline_continues_from_its_state_after_a_failure_and_in_the_next_update(tmp_path: Path) -> None:
    """A commit fails, and Spark restarts the flow in the session that had it."""
    source = tmp_path / "input"
    source.mkdir()
    definitions = tmp_path / "definitions.py"
    definitions.write_text(DEFINITIONS.replace("INPUT", source.as_uri()), encoding="utf-8")
    pipeline = {
        "name": "clicks",
        "storage": (tmp_path / "storage").as_uri(),
        "libraries": [{"glob": {"include": definitions.name}}],
        "configuration": {key: value for key, value in log_confs().items() if key != "spark.jars"},
    }
    # Of more than ten settings PySpark 4.2 keeps only some of the command line.
    lines = [f"{key} {value}" for key, value in defaults(tmp_path).items()]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "spark-pipeline.yml").write_text(json.dumps(pipeline), encoding="utf-8")
    add(source, minutes=range(3))
    first = update(tmp_path, **{FAIL_POINTS: "driver.before-commit-entry=fail@2", FAIL_POINT_DIR: str(tmp_path)})
    add(source, minutes=range(2, 6))
    update(tmp_path)

    assert "Flow `spark_catalog`.`default`.`counts` failed" in first
    # The last window is open. Minute 2 came in both updates, before its window was closed.
    assert rows(tmp_path) == [(f"00:0{minute}", key, 2 if minute == 2 else 1) for minute in range(5) for key in "ab"]
    checkpoint = tmp_path / "storage/_checkpoints/spark_catalog/default/counts/counts/0"
    assert (checkpoint / "dstl/epochs").is_dir()
    assert not list(checkpoint.rglob("*.changelog"))


def add(source: Path, minutes: range) -> None:
    """Add a file for each minute, with a row of each key; Spark reads files by their times."""
    for minute in minutes:
        number = len(list(source.iterdir()))
        lines = [json.dumps({"key": key, "time": f"2026-01-01T00:0{minute}:00Z"}) for key in "ab"]
        file = source / f"{number}.json"
        file.write_text("\n".join(lines), encoding="utf-8")
        os.utime(file, (1_600_000_000 + number,) * 2)


def defaults(work: Path) -> dict[str, str]:
    """Return the settings of Spark itself, with a catalog that keeps tables between updates."""
    return {
        **{key: value for key, value in base_confs("local[1]", work).items() if key != "spark.master"},
        "spark.jars": jars(with_tests=True),
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
    }


def update(work: Path, **environment: str) -> str:
    """Run the pipeline until all input is processed, and return what it printed."""
    variables = {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "SPARK_HOME": str(SPARK),
        "SPARK_CONF_DIR": str(work),
        **environment,
    }
    command = [str(SPARK / "bin/spark-pipelines"), "run"]
    done = subprocess.run(command, cwd=work, env=os.environ | variables, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def rows(work: Path) -> list[tuple[str, str, int]]:
    """Return the rows of the table that the pipeline filled."""
    import pyarrow.dataset

    table = pyarrow.dataset.dataset(sorted((work / "warehouse/counts").glob("*.parquet"))).to_table()
    return sorted((f"{row['start']:%H:%M}", row["key"], row["count"]) for row in table.to_pylist())
