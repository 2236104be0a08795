# SPDX-License-Identifier: Apache-2.0
"""The incidents of docs/cookbook.md without damaged files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT, blocks
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from clicks import RETAIN_LITTLE, SNAPSHOTS, Clicks
from copies import copied
from harness import Reader, Run
from recipe import PAGE, Recipe, printed_settings
from scenarios import Aggregation
from settings import dstl, log_confs
from shared_session import contender
from spark_facts import LOGS_SNAPSHOTS

HERE = Path(__file__).resolve().parent


pytestmark = pytest.mark.usefixtures("short_looks")


def test_each_incident_of_the_page_has_a_test() -> None:
    rehearsals = "".join(path.read_text(encoding="utf-8") for path in sorted(HERE.glob("test_cookbook*.py")))
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert len(titles) > 9
    assert {block.heading for block in blocks(PAGE)} == set(titles)
    for title in titles:
        assert rehearsals.count(f'Recipe("{title}"') == 1, title
        anchor = "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")
        assert f"[{title}](#{anchor})" in text


def test_two_drivers_on_one_checkpoint(tmp_path: Path, reader: Reader) -> None:
    run = Run.create(tmp_path, Aggregation.generate(files=4, rows=30))
    (query,) = run.queries
    with Recipe("Two drivers run on one checkpoint", {"/checkpoints/clicks": query.checkpoint}) as recipe:
        with run.start("driver.before-commit-entry=pause@2") as first:
            first.wait_for_pause("driver.before-commit-entry")
            run.complete(reader)
            written = query.written()
            run.resume("driver.before-commit-entry")
            assert first.wait() != 0
            assert query.written() == written
            recipe.sees(first.log())
            fenced = re.search(
                r"\[DSTL_FENCED\] Batch 2 of .* by another driver \(run (\S+) on host (\S+)\)", first.log()
            )
            assert fenced, first.failed("the error does not name the other driver")
        assert run.writer(query, 2) == (fenced[1], fenced[2])
        recipe.sees(recipe.types())
        recipe.sees(recipe.types())
    run.check_all(reader)


def test_a_killed_driver(tmp_path: Path, reader: Reader) -> None:
    large = dstl(inline__maxSegmentSize="0")
    run = Run.create(tmp_path, Aggregation.generate(files=3, rows=30), confs={**log_confs(), **large})
    places = {"/checkpoints/clicks": run.queries[0].checkpoint}
    with Recipe("A killed driver has left something behind", places) as recipe:
        run.kill_at("driver.before-commit-entry", 2)
        recipe.sees(recipe.types())
        recipe.sees(recipe.types())
    run.complete(reader)


def test_a_jar_that_is_not_there(tmp_path: Path) -> None:
    confs = {key: value for key, value in log_confs().items() if key != "spark.jars"}
    run = Run.create(tmp_path, Aggregation.generate(files=2, rows=30), confs=confs)
    with Recipe("The jar is not there", {}) as recipe:
        with run.start() as driver:
            assert driver.wait() != 0
            recipe.sees(driver.log())
        assert not (Path(run.queries[0].checkpoint) / "commits").exists()
        printed = recipe.types()
        recipe.sees(printed)
    run.confs.update(printed_settings(printed))
    run.succeed()
    run.check()


def test_a_file_manager_that_is_not_set(tmp_path: Path, spark: SparkSession) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", files=4, provider="stock")
    with Recipe("The file manager is not set", {"/checkpoints/clicks": clicks.checkpoint}) as recipe:
        clicks.resume(2)
        clicks.provider = "spark"
        # With more batches than it retains, Spark deletes entries at a start.
        before = sorted(clicks.checkpoint.glob("commits/*"))
        recipe.sees(clicks.fail(1, {"spark.sql.streaming.minBatchesToRetain": "1"}))
        assert sorted(clicks.checkpoint.glob("commits/*")) == before
        clicks.resume(confs=recipe.sets())
    clicks.check()


def test_a_base_path_that_cannot_be_used(tmp_path: Path, spark: SparkSession) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", files=3)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "wrong").write_text("a file, in which there can be no directory")
    places = {"/checkpoints/clicks": clicks.checkpoint, "/logs": tmp_path / "logs"}
    with Recipe("The log's storage cannot be used", places) as recipe:
        recipe.sees(clicks.fail(2, dstl(basePath=str(tmp_path / "logs" / "wrong" / "clicks"))))
        assert not list(clicks.checkpoint.glob("commits/*"))
        clicks.resume(confs=recipe.sets())
        recipe.sees(recipe.types())
    clicks.check()


def test_a_log_in_another_place(tmp_path: Path, spark: SparkSession) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", files=4, settings=dstl(inline__maxSegmentSize="0"))
    places = {"/checkpoints/clicks": clicks.checkpoint, "/logs": tmp_path / "logs"}
    with Recipe("The log is not where the query looks for it", places) as recipe:
        clicks.resume(2, dstl(basePath=str(tmp_path / "logs" / "clicks")))
        recipe.sees(clicks.fail(1, dstl(basePath=str(tmp_path / "logs" / "elsewhere"))))
        settings = recipe.sets()
        recipe.sees(recipe.types())
        clicks.resume(confs=settings)
    clicks.check()


def test_a_copied_checkpoint(tmp_path: Path, spark: SparkSession) -> None:
    settings = dstl(inline__maxSegmentSize="0")
    clicks = Clicks.create(spark, tmp_path / "query", files=4, settings=settings)
    copy = tmp_path / "copy"
    places = {"/checkpoints/clicks": clicks.checkpoint, "/checkpoints/copy": copy, "/logs": tmp_path / "logs"}
    original = dstl(basePath=str(tmp_path / "logs" / "clicks"))
    with Recipe("A copy of a checkpoint does not start", places) as recipe:
        clicks.resume(2, original)
        copied(clicks.checkpoint, copy)
        kept = clicks.checkpoint
        recipe.sees(clicks.move_to(copy).fail(1, original))
        recipe.types()
        clicks.resume(confs=recipe.sets())
        clicks.check()
        clicks.move_to(kept).resume(confs=original)
        recipe.sees(recipe.types())
    clicks.check()


@pytest.mark.skipif(not LOGS_SNAPSHOTS, reason="in this Spark snapshots are files, made when Spark makes them")
def test_a_log_that_grows(tmp_path: Path, spark: SparkSession) -> None:
    never = dstl(materialize__interval="24h", materialize__replayCost="0")
    clicks = Clicks.create(spark, tmp_path, files=120, settings=RETAIN_LITTLE)
    with Recipe("The log grows, and restarts take long", {"/checkpoints/clicks": clicks.checkpoint}) as recipe:
        clicks.resume(8, never)
        recipe.sees(recipe.types())
        recipe.types()
        # Small files would wait longer for others than these batches take.
        quick = {key: SNAPSHOTS[key] for key in SNAPSHOTS if "minDeltas" in key or "persistDelay" in key}
        settings = recipe.sets() | quick
        clicks.resume(8, settings)
        # Snapshots are uploaded in the background and listed by a later entry; then retention deletes older entries.
        while clicks.later and min(clicks.run.committed(clicks.query)) == 0:
            clicks.resume(8, settings)
        assert min(clicks.run.committed(clicks.query)) > 0
        recipe.sees(recipe.types())
    clicks.resume(2)
    clicks.check()


def test_a_bug_in_a_query_whose_sink_is_files(tmp_path: Path, spark: SparkSession) -> None:
    """The incident of the damaged entry has a sink of `foreachBatch`."""
    wrong = Aggregation.generate(files=6, rows=30)
    wrong.write(tmp_path / "all")
    (tmp_path / "events").mkdir()
    counts, checkpoint = tmp_path / "counts", tmp_path / "checkpoint"

    def run(first: int, last: int, aggregate: str) -> None:
        for number in range(first, last):
            name = f"{number:04d}.json"
            shutil.copy2(tmp_path / "all" / "events" / name, tmp_path / "events" / name)
        session = contender(spark, "dstl")
        session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        stream = session.readStream.schema("time LONG, key STRING, value LONG").option("maxFilesPerTrigger", 1)
        events = stream.json(str(tmp_path / "events")).withColumn("at", sf.timestamp_seconds("time"))
        windows = events.withWatermark("at", "0 seconds").groupBy(sf.window("at", "10 minutes")).agg(sf.expr(aggregate))
        writer = windows.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start(str(counts)).awaitTermination()

    def result(of: Path) -> list[Any]:
        rows: DataFrame = spark.read.parquet(str(of))
        return sorted(tuple(row) for row in rows.selectExpr("window.start", "total").collect())

    right = "sum(value) AS total"
    run(0, 6, right)
    expected = result(counts)
    assert len(expected) > 6
    for path in (counts, checkpoint, tmp_path / "events"):
        shutil.rmtree(path)
    (tmp_path / "events").mkdir()
    run(0, 2, right)
    run(2, 4, "sum(value + 1) AS total")
    places = {"/checkpoints/clicks": checkpoint, "/data/counts": counts}
    with Recipe("The query had a bug: roll back", places) as recipe:
        recipe.sees(recipe.types())
        recipe.sees(recipe.types())
        recipe.types()
    run(4, 6, right)
    assert result(counts) == expected


def test_leaving_for_stock_spark(tmp_path: Path, spark: SparkSession) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", files=4)
    stock = tmp_path / "stock"
    places = {"/checkpoints/clicks-stock": stock, "/checkpoints/clicks": clicks.checkpoint}
    with Recipe("Back to stock Spark", places) as recipe:
        clicks.resume(2)
        recipe.types()
        clicks.provider = "spark"
        clicks.move_to(stock).resume(confs=recipe.sets())
    assert list(stock.glob("state/**/*.changelog"))
    clicks.check()
