"""What a query on the log shows to those who look after it, from outside of its process."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest

import spark_dstl
from driver_process import start_driver
from harness import Run, free_port
from monitored import BATCHES, Place, browser, monitored, rendered
from scenarios import Aggregation
from settings import jars
from spark_dstl.monitoring.ui_charts import CHARTS, SETTING

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# What the page takes for granted: a session and a query.
EXAMPLES = """
from pathlib import Path
from pyspark.sql import SparkSession
import query_driver, settings, spark_dstl
builder = SparkSession.builder
for key, value in settings.base_confs("local[2]", Path().absolute()).items():
    builder = builder.config(key, value)
spark = spark_dstl.configure(builder).getOrCreate()
rows = query_driver.aggregation(spark, Path("input").absolute())
query = rows.writeStream.outputMode("update").format("noop").option("checkpointLocation", "checkpoint").start()
{}
query.stop()
spark.stop()
"""
OWN_CHART = "rocksdbSstFileSize"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A driver that several tests look at."""
    with monitored(tmp_path_factory.mktemp("monitored"), {SETTING: OWN_CHART}) as place:
        yield place


def test_the_page_of_a_query_in_spark_s_ui_has_a_chart_of_each_of_our_figures_and_those_asked_for(
    place: Place,
) -> None:
    """As a browser draws it; where there is none, as far as the page itself tells what its scripts are to draw."""
    program = browser()
    page = rendered(program, place.page) if program else place.get(place.page.removeprefix(place.ui))
    for name in (OWN_CHART, *CHARTS):
        places = re.findall(rf'id="(aggregated-{name}-timeline)"(.*?)</tr>', page, re.DOTALL | re.IGNORECASE)
        assert len(places) == 1, f"no chart of {name}"
        identifier, row = places[0]
        if program:
            assert re.search(r"<svg.*<path", row, re.DOTALL), f"the chart of {name} was not drawn"
        else:
            assert re.search(rf'drawTimeline\(\s*"#{identifier}"', page, re.IGNORECASE), f"nobody draws {name}"


def test_the_settings_that_are_written_down_ask_for_the_charts_that_configure_asks_for() -> None:
    for path in ("conf/spark-defaults.conf", "docs/metrics.md"):
        listed = re.search(rf"{re.escape(SETTING)}\W+(\S+)", (ROOT / path).read_text(encoding="utf-8"))
        assert listed is not None
        assert listed[1] == ",".join(CHARTS), path


def check_history(place: Place) -> None:
    newest = place.metrics
    assert newest["name"] == "windows"
    assert newest["query_id"] == place.query
    assert newest["batch"] == BATCHES - 1
    # Of the batch before, with two partitions, or of the one before that.
    assert newest["segments"] == 2
    assert newest["log_bytes"] >= newest["commit_entry_bytes"] > newest["inline_bytes"] > 0
    assert newest["batch_ms"] >= newest["tasks_ms"] > 0
    history = pyarrow.parquet.read_table(place.work / "history.parquet").to_pylist()
    assert [row["batch"] for row in history] == list(range(BATCHES))
    assert history[-1]["log_bytes"] == newest["log_bytes"]
    lines = place.progress.read_text(encoding="utf-8").splitlines()
    assert [spark_dstl.QueryMetrics.from_progress(line).batch for line in lines] == list(range(BATCHES))


def test_the_figures_of_a_query_are_those_that_its_progress_tells_and_a_listener_keeps(place: Place) -> None:
    check_history(place)


def test_the_figures_of_a_query_of_spark_connect_are_the_same(tmp_path: Path) -> None:
    server = Run.create(tmp_path, confs={"spark.jars": jars(), "spark.sql.shuffle.partitions": "2"})
    port = free_port()
    with server.serve(port), monitored(tmp_path / "client", remote=f"sc://127.0.0.1:{port}") as place:
        check_history(place)


def test_the_examples_of_the_page_on_monitoring_run_as_they_stand(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/monitoring.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 2
    Aggregation.generate(files=2, rows=30).write(tmp_path / "input")
    (tmp_path / "examples.py").write_text(EXAMPLES.format("\n".join(reversed(examples))))
    with start_driver([sys.executable, "examples.py"], {"PYTHONPATH": str(HERE)}, tmp_path, "examples") as driver:
        driver.succeed()
    assert re.search(r"^batch \d+: \d+ ms, of which the commit \d+ ms; log: \d+ bytes$", driver.log(), re.MULTILINE)
    assert pyarrow.parquet.read_table(tmp_path / "clicks.parquet").num_rows > 0
