# SPDX-License-Identifier: Apache-2.0
"""Metrics of a query on the log in Spark's UI, its metric sinks, and the commands that watch a driver."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet
import pytest
from documents import Block, dstl, examples_of_commands, lines_of, runnable
from pyspark.sql import SparkSession

import query_driver
import spark_dstl
from harness import Run, free_port
from monitored import BATCHES, Place, browser, collecting, monitored, rendered
from scenarios import Aggregation
from settings import jars
from shared_session import contender
from spark_dstl.monitoring.sources import MetricsServlet
from spark_dstl.monitoring.ui_charts import CHARTS, SETTING
from spark_facts import SEGMENTS_OF_A_STORE

ROOT = Path(__file__).resolve().parents[2]
# Spark reports no batch before the query has ended.
ENDS_WITHOUT_STOP = """
import threading
from pathlib import Path
from pyspark.sql import SparkSession
import query_driver, settings, spark_dstl
spark = SparkSession.builder.config(map=settings.base_confs("local[2]", Path().absolute())).getOrCreate()
ended = threading.Event()
class Late(spark_dstl.MetricsListener):
    def onQueryProgress(self, event):
        ended.wait()
        super().onQueryProgress(event)
spark.streams.addListener(Late(progress_file="progress.jsonl"))
rows = query_driver.read(spark, Path("input/events").absolute())
query = rows.writeStream.format("noop").option("checkpointLocation", "checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
ended.set()
"""
OWN_CHART = "rocksdbSstFileSize"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A driver that several tests watch."""
    with monitored(tmp_path_factory.mktemp("monitored"), {SETTING: OWN_CHART}) as place:
        yield place


def test_the_ui_page_of_a_query_has_a_chart_of_each_configured_metric(place: Place) -> None:
    """A browser draws the charts. Without a browser, the page has an element for each."""
    program = browser()
    page = rendered(program, place.page) if program else place.get(place.page.removeprefix(place.ui))
    for name in (OWN_CHART, *CHARTS):
        places = re.findall(rf'id="(aggregated-{name}-timeline)"(.*?)</tr>', page, re.DOTALL | re.IGNORECASE)
        assert len(places) == 1, f"no chart of {name}"
        if program:
            assert re.search(r"<svg.*<path", places[0][1], re.DOTALL), f"the chart of {name} was not drawn"


def test_the_documented_setting_lists_the_charts_of_configure() -> None:
    for path in ("conf/spark-defaults.conf", "docs/metrics.md"):
        listed = re.search(rf"{re.escape(SETTING)}\W+(\S+)", (ROOT / path).read_text(encoding="utf-8"))
        assert listed is not None
        assert listed[1] == ",".join(CHARTS), path


def check_history(place: Place) -> None:
    newest = place.metrics
    assert newest["name"] == "windows"
    assert newest["query_id"] == place.query
    assert newest["batch"] == BATCHES - 1
    # Two partitions, in an earlier batch.
    assert newest["segments"] == 2 * SEGMENTS_OF_A_STORE
    assert newest["log_bytes"] >= newest["commit_entry_bytes"] > newest["inline_bytes"] > 0
    assert newest["batch_ms"] >= newest["tasks_ms"] > 0
    history = pyarrow.parquet.read_table(place.work / "history.parquet").to_pylist()
    assert [row["batch"] for row in history] == list(range(BATCHES))
    assert history[-1]["log_bytes"] == newest["log_bytes"]
    lines = place.progress.read_text(encoding="utf-8").splitlines()
    assert [spark_dstl.QueryMetrics.from_progress(line).batch for line in lines] == list(range(BATCHES))


def test_query_metrics_match_the_progress_and_the_listener_s_history(place: Place) -> None:
    check_history(place)


def test_query_metrics_match_over_spark_connect(tmp_path: Path) -> None:
    server = Run.create(tmp_path, confs={"spark.jars": jars()})
    port = free_port()
    with server.serve(port), monitored(tmp_path / "client", remote=f"sc://127.0.0.1:{port}") as place:
        check_history(place)


def test_a_program_that_ends_without_stopping_spark_keeps_all_batches_and_prints_no_trace(tmp_path: Path) -> None:
    Aggregation.generate(files=3, rows=30).write(tmp_path / "input")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ENDS_WITHOUT_STOP]
    # The output ends with the JVM, after the program.
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len((tmp_path / "progress.jsonl").read_text(encoding="utf-8").splitlines()) == 3
    assert "py4j" not in done.stderr, done.stderr


def test_the_python_examples_of_the_monitoring_page_run(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/monitoring.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 2
    assert "query.processAllAvailable()" in examples[1]
    Aggregation.generate(files=2, rows=30).write(tmp_path / "files")
    (tmp_path / "input/events").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    session = contender(spark, "dstl")
    sink = query_driver.aggregation(session, tmp_path / "input").writeStream.outputMode("update").format("noop")
    query = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    wait_for_listeners = cast(Any, spark.sparkContext._jsc).sc().listenerBus().waitUntilEmpty

    def process() -> None:
        """Run the batches while the listener is there, and until it knows of them."""
        shutil.copytree(tmp_path / "files/events", tmp_path / "input/events", dirs_exist_ok=True)
        query.processAllAvailable()
        wait_for_listeners()

    code = "\n".join(reversed(examples)).replace("query.processAllAvailable()", "process()")
    try:
        exec(code, {"spark_dstl": spark_dstl, "spark": session, "query": query, "process": process})
    finally:
        query.stop()
        # Later, the listener would write to another working directory.
        wait_for_listeners()
    printed = capsys.readouterr().out
    assert re.search(r"^batch \d+: \d+ ms, of which the commit \d+ ms; log: \d+ bytes$", printed, re.MULTILINE)
    assert pyarrow.parquet.read_table(tmp_path / "clicks.parquet").num_rows > 0


@pytest.mark.parametrize("blocks", [runnable("docs/monitoring.md", "sh"), examples_of_commands()], ids=["page", "help"])
def test_the_commands_that_watch_a_driver_run(
    place: Place, blocks: list[Block], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {
        "http://localhost:4040": place.ui,
        "/var/log/clicks.jsonl": place.progress,
        "clicks.jsonl": place.progress,
        "clicks.parquet": place.work / "history.parquet",
    }
    lines = [
        line for block in blocks for line in lines_of(block, places) if line.startswith(("dstl watch", "dstl report"))
    ]
    assert len(lines) > 2
    for line in lines:
        # Without `--once`, the command runs until it is interrupted.
        result = dstl(re.sub(r"^dstl watch(?! --once)", "dstl watch --once", line))
        assert result.exit_code == 0, f"{line}: {result.output}"
    assert (tmp_path / "clicks.html").stat().st_size > 0


def documented_settings() -> dict[str, str]:
    """The metric settings of the monitoring page."""
    page = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```properties\n(.*?)```", page, re.DOTALL)
    lines = (line.split(None, 1) for block in blocks for line in block.splitlines())
    return {line[0]: line[1] for line in lines if line and line[0] != "#" and line[0].startswith("spark.metrics")}


def test_every_sink_of_the_monitoring_page_gets_the_metrics_of_driver_and_executors(tmp_path: Path) -> None:
    """Only addresses and periods differ from the page."""
    (tmp_path / "csv").mkdir()
    with collecting() as (port, lines):
        elsewhere = {
            "graphite.host": "127.0.0.1",
            "graphite.port": str(port),
            "csv.directory": str(tmp_path / "csv"),
            "period": "1",
        }
        settings = documented_settings()
        for ending, value in elsewhere.items():
            changed = [key for key in settings if key.endswith(f".{ending}")]
            assert changed, ending
            settings |= dict.fromkeys(changed, value)
        with monitored(tmp_path / "query", settings, master="local-cluster[1,1,1024]") as place:
            driver, executor = "clicks.driver.dstl.commits.count", "clicks.0.dstl.uploads.started"
            place.driver.wait_until(
                lambda: {driver, executor} <= {line.split()[0] for line in lines}, "figures sent as Graphite has them"
            )
            place.driver.wait_until(
                lambda: {f"{driver}.csv", f"{executor}.csv"} <= {file.name for file in (tmp_path / "csv").iterdir()},
                "files of figures",
            )
            place.driver.wait_until(lambda: driver in place.driver.log(), "figures on the console")
            assert f"clicks.driver.dstl.commits.count={BATCHES}" in place.mbeans
            assert f'metrics_clicks_driver_dstl_commits_count_Value{{type="gauges"}} {BATCHES}' in place.get(
                "/metrics/prometheus/"
            )
            (sample,) = MetricsServlet(place.ui).poll()
            assert (sample.of, sample.figures["commits"]) == ("clicks.driver", BATCHES)
    # Spark has a timer for each class that listens to its events, the log's included.
    assert not [line for line in lines if ".dstl." not in line or "LiveListenerBus" in line]


def test_one_operator_reports_the_metrics_of_the_whole_query(tmp_path: Path, spark: SparkSession) -> None:
    """Spark's UI adds up the metrics of operators."""
    Aggregation.generate(files=3, rows=30).write(tmp_path)
    session = contender(spark, "dstl")
    events = query_driver.read(session, tmp_path / "events")
    counts = events.dropDuplicates(["key", "value"]).groupBy("key").count()
    sink = counts.writeStream.outputMode("update").format("noop")
    query = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    progress = query.lastProgress
    assert progress is not None
    operators = [operator["customMetrics"] for operator in progress["stateOperators"]]
    assert sorted(operator["dstlLogBytes"] > 0 for operator in operators) == [False, True]
    newest = spark_dstl.metrics(query)
    assert newest is not None
    # Two operators with two partitions each.
    assert newest.segments == 4 * SEGMENTS_OF_A_STORE
