# SPDX-License-Identifier: Apache-2.0
"""The figures of the comparison."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
import realtime
from compare import HEADER, REQUESTS, Compare, Measured
from plan import FULL, QUICK, SNAPSHOTS, Cell, Delays, scaled, spec_of, with_formats
from runner import Lines, Result, save, saved

CELL = Cell("compare", "aggregation", 16, 100, format_version=2)


def batch(contender: str, milliseconds: int) -> dict[str, object]:
    asked = [
        {"request": "PUT", "file": "offsets", "count": 1, "bytes": 300},
        {"request": "PUT", "file": "commits", "count": 1, "bytes": 5000},
        {"request": "PUT", "file": "snapshot", "count": 64, "bytes": 640000},
        {"request": "HEAD", "file": "commits", "count": 0 if contender == "dstl" else 2, "bytes": 0},
    ]
    durations = {"triggerExecution": milliseconds, "commitOffsets": 5}
    cpu = 88 if contender == "dstl" else 80
    return {"kind": "batch", "contender": contender, "durations": durations, "cpuMs": cpu, "requests": asked}


def measured(own: str, other: str, cell: Cell = CELL, count: int = 100) -> Measured:
    """Return batches of two contenders, 50 ms apart, as the process of the cell writes them."""
    lines: Lines = [
        *(batch(other, 100 + number) for number in range(count)),
        *(batch(own, 150 + number) for number in range(count)),
        {"kind": "requests", "contender": own, "request": "PUT", "file": "data file", "count": 20, "bytes": 0},
    ]
    return Measured.of(Result(asdict(cell), cell.name, processes=[("", lines)]))


def row(of: Measured, contender: str) -> dict[str, str]:
    return dict(zip(HEADER, of.rows()[list(of.contenders).index(contender)], strict=True))


def test_the_lines_of_a_process_become_a_row_for_each_contender() -> None:
    ours, floor = (row(measured("dstl", "floor"), name) for name in ("dstl", "floor"))
    assert (ours["p50"], ours["p99.9"], ours["commit p50"], ours["commit p99.9"]) == ("199 (+50)", "-", "5", "-")
    assert (ours["writes"], ours["existence checks"], ours["bytes"]) == ("2", "0", "5,000")
    assert (ours["CPU"], floor["CPU"]) == ("88", "80")
    assert (floor["p50"], floor["p50 over, 95 %"], floor["existence checks"]) == ("149", "", "2")


def test_a_thousand_batches_have_a_percentile_of_99_9() -> None:
    ours = row(measured("dstl", "floor", count=1001), "dstl")
    assert (ours["p99.9"], ours["commit p99.9"]) == ("1,149 (+50)", "5")


def test_requests_are_not_counted_on_a_disk() -> None:
    found = measured("dstl", "direct")
    found.contenders["dstl"].requests = [[] for _ in found.contenders["dstl"].requests]
    assert found.contenders["dstl"].asked(REQUESTS["writes"]) is None
    assert row(found, "dstl")["writes"] == "-"


def test_resampling_rounds_gives_limits_without_the_noise_that_both_contenders_share() -> None:
    found = measured("dstl", "floor")
    assert row(found, "dstl")["p50 over, 95 %"] == "+50 to +50"
    found.contenders["dstl"].batch_ms.reverse()
    _, low, high = found.compared("dstl", "floor", lambda own, base: sorted(own)[49] - sorted(base)[49])
    # The median of 100 values over 100 ms varies by some 5 ms; the two now vary in opposite directions.
    assert 20 < low < 45 < 55 < high < 80


def test_stock_spark_is_compared_by_speed_and_stored_bytes() -> None:
    cpu, rate, size = measured("dstl", "direct").remarks()
    assert cpu.endswith("1.100 times (1.100 to 1.100) the processor time of stock, direct write")
    assert "0.749 times" in rate
    assert rate.endswith("the rows a second of stock, direct write")
    assert size.endswith("1.000 times the bytes of stock, direct write (5,000, 5,000)")


def test_99th_percentiles_beside_snapshots_are_divided_if_there_are_enough_batches() -> None:
    ratio, files = measured(*SNAPSHOTS).remarks()
    assert "p99 1.25 times" in ratio
    assert files.endswith("data files a batch: dstl-snapshots 0.2, dstl-no-snapshots 0.0")
    assert len(measured(*SNAPSHOTS, count=99).remarks()) == 1


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


def test_pauses_are_shown_by_percentiles_of_which_there_are_enough_batches() -> None:
    (case,) = realtime.FULL
    lines = [{"contender": "dstl-below", "pause": pause} for pause in range(1, 121)]
    result = Result(asdict(case), case.name, processes=[("", [*lines, {"contender": "direct", "pause": 7.2}])])
    ours, stock = realtime.rows(result)
    assert ours[2:] == ["spark-dstl, Spark's provider", "120", "60", "119", "120"]
    assert stock[2:] == ["stock, direct write", "1", "-", "-", "7"]


@pytest.mark.parametrize("plan", [FULL, QUICK])
def test_every_cell_has_a_name_of_its_own_and_at_least_one_round(plan: list[Cell]) -> None:
    assert len({cell.name for cell in plan}) == len(plan)
    assert all(cell.rounds >= 1 for cell in scaled(plan, 0.0001))


def test_the_tail_of_delays_and_snapshots_are_measured_with_the_first_format_alone() -> None:
    cells = with_formats(FULL, [])
    assert {cell.group for cell in cells if cell.format_version == 2} == {"floor", "compare", "bytes", "throughput"}
    assert {cell.group for cell in FULL} == {cell.group for cell in cells if cell.format_version == 1}


def test_storage_of_a_cell_is_slow_with_a_tail_or_without_delays_or_a_local_disk() -> None:
    delays = Delays(median_ms=20, p99_ms=100)
    slow, counted, local = (
        Cell("any", "join", 4, 1, storage=storage).spec("root", delays)["delays"]
        for storage in ("slow", "counted", "local")
    )
    assert slow == spec_of(delays)
    assert counted == {**slow, "medianMs": 0, "p99Ms": 0, "tailRatio": 0, "bytesPerSecond": 0}
    assert local is None
