# SPDX-License-Identifier: Apache-2.0
"""The figures of recovery."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from plan import Delays
from recovery import CONTENDERS, EMPTY, FULL, HEADER, OURS, QUICK, Case, Recoveries, recovered, remarks
from runner import Result, child

LOST = Case("lost-executor", "aggregation", 8, since=10, before=20, warm=6)
LARGE = Case("large-state", "wide", 4, since=5, before=2, ticks=100, network=100_000_000)


def recoveries(case: Case, **millis: int) -> dict[str, Recoveries]:
    usual = [100, 300, 200] if case.kind == "lost-executor" else []
    requests = [("GET", "snapshot", 2, 3_000_000), ("GET", "other", 1, 500_000), ("PUT", "other", 1, 9_000_000)]
    asked = [
        {"kind": "requests", "request": request, "file": file, "count": count, "bytes": size}
        for request, file, count, size in requests
    ]
    processes = [
        (name, [{"kind": "recovery", "millis": millis[name], "usual": usual}, *asked]) for name in case.contenders
    ]
    return recovered(Result(asdict(case), case.name, processes=processes))


def spec(case: Case, contender: str) -> dict[str, Any]:
    return case.spec(contender, "lose", Path("root"), Delays())


@pytest.mark.parametrize("cases", [FULL, QUICK])
def test_names_are_unique_and_each_kind_is_in_a_plan(cases: list[Case]) -> None:
    assert len({case.name for case in cases}) == len(cases)
    assert {case.kind for case in cases} == {"restart", "lost-executor", "large-state"}


def test_a_row_has_the_median_of_the_batches_before_a_loss_and_the_bytes_read() -> None:
    found = recoveries(LOST, dstl=4000, direct=8000, default=9000, empty=3000)
    rows = [of.row() for of in found.values()]
    ours = dict(zip(HEADER, rows[0], strict=True))
    assert (ours["usual"], ours["reads"], ours["MB read"], ours["since snapshot"]) == ("200", "3", "3.5", "10")
    lines = remarks(found)
    assert any("with spark-dstl +3,800 ms over its usual batch" in line for line in lines)
    assert rows[-1][HEADER.index("state")] == "no stores"


def test_the_cost_of_the_state_is_compared_with_the_time_of_its_transfer() -> None:
    assert LARGE.state_bytes == 200 * 640 * 1024
    lines = remarks(recoveries(LARGE, dstl=6310, direct=9000, default=9000, empty=5000))
    assert any("the state costs 1.00 times the 1.3 s" in line and "spark-dstl" in line for line in lines)
    assert not any("MB/s" in line for line in remarks(recoveries(LOST, **dict.fromkeys(CONTENDERS, 1))))


def test_an_executor_is_lost_after_the_last_of_the_batches_since_the_snapshots() -> None:
    ours = spec(LOST, OURS)
    assert (ours["phase"], ours["batchesBefore"], ours["batchesSince"], ours["batchesWarm"]) == ("lose", 20, 4, 6)


def test_the_baseline_of_a_loss_has_no_stores_and_that_of_a_restart_is_a_new_query() -> None:
    assert (spec(LOST, EMPTY)["workload"], spec(LARGE, EMPTY)["workload"]) == ("stateless", "wide")
    assert spec(LARGE, EMPTY)["contender"] == OURS
    assert spec(LARGE, EMPTY)["batchesBefore"] == spec(LARGE, EMPTY)["batchesSince"] == 0


def test_a_case_sets_the_limit_of_the_network() -> None:
    assert spec(LARGE, OURS)["delays"]["networkBytesPerSecond"] == 100_000_000
    assert spec(LOST, OURS)["delays"]["networkBytesPerSecond"] == 0


def test_the_log_of_a_process_is_kept_in_a_new_directory(tmp_path: Path) -> None:
    log = tmp_path / "bench" / "case.log"
    with child([sys.executable, "-c", "import sys; sys.stderr.write('why')"], log, {}) as process:
        process.communicate()
    assert log.read_text(encoding="utf-8") == "why"
