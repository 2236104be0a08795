# SPDX-License-Identifier: Apache-2.0
"""The figures of the comparison."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from compare import QUESTIONS, WRITES, Compare, Measured, percentile
from plan import FULL, QUICK, Cell, Delays, scaled
from runner import Result, read, save, saved

CELL = Cell("compare", "aggregation", 16, 100, format_version=2)


def test_a_percentile_is_the_nearest_rank() -> None:
    values = [float(value) for value in range(1000, 0, -1)]
    assert percentile(values, 50) == 500
    assert percentile(values, 99) == 990
    assert percentile(values, 99.9) == 999


@pytest.mark.parametrize(("count", "percent"), [(1, 50), (99, 99), (999, 99.9)])
def test_too_few_values_have_no_percentile(count: int, percent: float) -> None:
    assert percentile([1.0] * count, percent) is None
    assert percentile([1.0] * (count + 1), percent) == 1


def batch(contender: str, milliseconds: int) -> dict[str, object]:
    durations = {"triggerExecution": milliseconds, "commitOffsets": 5}
    asked = [
        {"request": "PUT", "file": "offsets", "count": 1, "bytes": 300},
        {"request": "PUT", "file": "commits", "count": 1, "bytes": 5000},
        {"request": "PUT", "file": "snapshot", "count": 64, "bytes": 640000},
        {"request": "HEAD", "file": "commits", "count": 0 if contender == "dstl" else 2, "bytes": 0},
    ]
    return {
        "kind": "batch",
        "contender": contender,
        "durations": durations,
        "requests": asked,
        "rows": 2000,
    }


def requests(contender: str, request: str, file: str, count: int) -> dict[str, object]:
    return {"kind": "requests", "contender": contender, "request": request, "file": file, "count": count}


@pytest.fixture
def measured(tmp_path: Path) -> Measured:
    lines = [
        *(batch("floor", 100 + number) for number in range(100)),
        *(batch("dstl", 150 + number) for number in range(100)),
        requests("dstl", "PUT", "offsets", 100),
        requests("dstl", "PUT", "commits", 100),
        requests("dstl", "PUT", "snapshot", 64),
        requests("dstl", "GET", "other", 50),
        {"kind": "cpu", "contender": "dstl", "taskNanos": 2_000_000_000},
    ]
    output = tmp_path / "output.jsonl"
    output.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return Measured.of(CELL, read(output))


def test_the_lines_of_a_process_become_figures(measured: Measured) -> None:
    dstl = measured.contenders["dstl"]
    assert measured.over_floor("dstl", 50) == 50
    assert measured.over_floor("dstl", 99.9) is None
    assert dstl.asked(WRITES) == 2
    assert dstl.asked(QUESTIONS) == 0
    assert measured.contenders["floor"].asked(QUESTIONS) == 2
    assert dstl.all_requests() == 2.5
    assert dstl.stored_bytes() == 5000
    assert dstl.task_cpu_ms == 2000


def test_resampling_rounds_gives_limits_without_the_noise_that_both_contenders_share(measured: Measured) -> None:
    assert measured.over_floor_interval("dstl", 50) == (50, 50)
    measured.contenders["dstl"].batch_ms.reverse()
    low, high = measured.over_floor_interval("dstl", 50) or (0.0, 0.0)
    # The median of 100 values over 100 ms varies by some 5 ms; the two now vary in opposite directions.
    assert 20 < low < 45 < 55 < high < 80
    assert measured.over_floor_interval("dstl", 99.9) is None


def test_99th_percentiles_are_divided_if_there_are_enough_batches(measured: Measured) -> None:
    ratio, low, high = measured.p99_ratio("dstl", "floor") or (0.0, 0.0, 0.0)
    assert ratio == pytest.approx(248 / 198)
    assert low <= ratio <= high
    measured.contenders["dstl"].batch_ms.pop()
    assert measured.p99_ratio("dstl", "floor") is None


def test_results_are_read_as_they_were_written_and_shown_as_a_page(tmp_path: Path) -> None:
    lines = [batch(contender, 100 + number) for number in range(4) for contender in ("floor", "dstl")]
    written = Result(asdict(CELL), CELL.name, processes=[("", lines)])
    save([written], "compare", tmp_path / "results.json")
    (found,) = saved(tmp_path / "results.json").values()
    report = Compare().report([found])
    assert report.tables == Compare().report([written]).tables
    page = report.markdown("Title", ["About."])
    assert "| compare: aggregation | 16 | v2 | spark-dstl | 4 |" in page
    assert "![batch-times](batch-times.png)" in page
    assert len(report.charts["batch-times.png"].axes[0].lines) == 2


@pytest.mark.parametrize("plan", [FULL, QUICK])
def test_every_cell_has_a_name_of_its_own_and_at_least_one_round(plan: list[Cell]) -> None:
    assert len({cell.name for cell in plan}) == len(plan)
    assert all(cell.rounds >= 1 for cell in scaled(plan, 0.0001))


def test_storage_of_a_cell_is_slow_with_a_tail_or_steady_or_a_local_disk() -> None:
    delays = Delays(median_ms=20, p99_ms=100)
    slow, steady, local = (
        Cell("any", "join", 4, 1, storage=storage).spec("root", delays, {}, trace=False)["delays"]
        for storage in ("slow", "steady", "local")
    )
    assert slow == delays.spec()
    assert steady == {**slow, "p99Ms": 20, "tailRatio": 0}
    assert local is None


def test_contenders_whose_files_cannot_all_be_open_are_left_out_last_ones_first() -> None:
    cell = Cell("any", "join", 256, 1)
    assert cell.within(1_000_000) == cell
    assert cell.within(20_000) == Cell("any", "join", 256, 1, contenders=("floor", "dstl"))
    assert cell.within(5_000) is None
    # A floor alone has no contender to compare with.
    assert cell.within(12_000) is None
    assert Cell("any", "join", 256, 1, contenders=("dstl",)).within(12_000) is not None
    assert all(small.within(20_000) == small for small in QUICK)
