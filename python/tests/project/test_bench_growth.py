# SPDX-License-Identifier: Apache-2.0
"""The figures of growth."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from growth import FULL, QUICK, Case, Curve, Grown, Growth, megabytes, objects
from runner import Result, read

CASE = Case("aggregation", 16, 300, period_ms=200)


def line(batches: int, objects: int, size: int) -> dict[str, object]:
    return {
        "kind": "growth",
        "batches": batches,
        "millis": batches * 200,
        "heap": 70_000_000,
        "liveBytes": 5_000_000,
        "stored": {"commits": [objects - 5, size - 500], "data file": [4, 400], "epoch": [1, 100]},
        "requests": [
            {"request": "PUT", "file": "data file", "count": max(0, batches - 200) // 2, "bytes": 0},
            {"request": "DELETE", "file": "data file", "count": max(0, batches - 200) // 10, "bytes": 0},
            {"request": "DELETE", "file": "offsets", "count": batches, "bytes": 0},
        ],
    }


def curve(last_objects: int = 200, last_size: int = 4_000_000) -> Curve:
    """100 objects in the first two thirds, and other numbers in the last."""
    sizes = [(100, 2_000_000)] * 20 + [(last_objects, last_size)] * 10
    return Curve([line(10 * (number + 1), objects, size) for number, (objects, size) in enumerate(sizes)])


def test_a_mean_is_that_of_the_last_third_and_growth_compares_it_with_the_third_before() -> None:
    assert curve().with_growth(objects(), ".0f") == ["200", "2.00"]
    assert curve(100, 2_000_000).with_growth(megabytes(), ".1f") == ["2.0", "1.00"]


def test_requests_are_counted_by_the_hour_over_the_last_third() -> None:
    assert curve().hourly([("PUT", "data file")]) == pytest.approx(180)
    assert curve().hourly([("LIST", "other")]) == 0
    assert curve().batch_ms() == 200


def test_the_background_is_snapshots_deletions_and_listings_but_no_entries_of_spark() -> None:
    grown = Grown(CASE, {"dstl": curve(), "direct": curve(200, 2_000_000)})
    rows = {row[1]: row[2:] for row in grown.request_rows()}
    assert rows["all of these"] == ["216", "216"]
    assert rows["DELETE offsets"] == ["360", "360"]
    assert "2.00 times the bytes" in grown.remarks()[1]


def test_data_files_with_changes_are_not_counted_as_snapshots() -> None:
    grown = Grown(Case("medium", 16, 300, period_ms=200, is_inline=False), {"dstl": curve(), "direct": curve()})
    assert "writes of snapshots" not in {row[1] for row in grown.request_rows()}


def test_two_runs_are_compared_up_to_the_last_batch_of_both() -> None:
    longer = Curve([*curve().samples, line(310, 200, 40_000_000)])
    grown = Grown(CASE, {"dstl": curve(), "direct": longer})
    assert grown.remarks()[1].endswith("1.00 times the bytes of stock, direct write, in the last third of 300 batches")


def test_an_interrupted_run_has_its_whole_lines_and_no_comparison(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    whole = "".join(json.dumps(of) + "\n" for of in curve().samples[:12])
    output.write_text(whole + '{"kind": "gro', encoding="utf-8")
    result = Result(asdict(CASE), CASE.name, processes=[("dstl", read(output)), ("direct", read(tmp_path / "none"))])
    grown = Grown.of(result)
    assert list(grown.curves) == ["dstl"]
    assert len(grown.remarks()) == len(grown.stored_rows()) == 1
    assert "spark-dstl" in Growth().report([result]).markdown("Growth", [])


def test_intervals_are_scaled_by_the_period_of_batches() -> None:
    confs = Case("aggregation", 16, 300, period_ms=500).confs()
    # A minute, ten minutes and a second of a query with a batch every ten seconds.
    assert confs["spark.sql.streaming.stateStore.maintenanceInterval"] == "3000ms"
    assert confs["spark.sql.streaming.stateStore.dstl.materialize.interval"] == "30000ms"
    assert confs["spark.sql.streaming.stateStore.dstl.batch.persistDelay"] == "50ms"


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({case.name for case in FULL + QUICK}) == len(FULL + QUICK)
