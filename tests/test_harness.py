"""The harness itself: it must see a wrong result, and a kill must leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from driver_process import Failed
from harness import Run, compare
from scenarios import Aggregation, JoinAggregation
from settings import log_confs, stock, stock_confs, with_absolute_jars


def confs() -> dict[str, str]:
    """Where the tests that need no fail points keep their state."""
    return stock_confs() if stock() else log_confs()


def test_a_window_with_another_sum_is_a_difference() -> None:
    expected = {(0, "a"): (1, 5), (600, "a"): (1, 5)}
    assert compare(expected, dict(expected)) == []
    assert compare(expected, {(0, "a"): (1, 5)}) == ["window (600, 'a'): expected (1, 5), found None"]
    assert compare({}, {(0, "a"): (1, 5)}) == ["window (0, 'a'): expected None, found (1, 5)"]


def test_a_scenario_is_the_same_every_time() -> None:
    assert Aggregation.generate() == Aggregation.generate()
    assert JoinAggregation.generate().result() == JoinAggregation.generate().result()


def test_a_driver_killed_between_two_fail_points_leaves_no_process_and_its_successor_ends_the_query(
    tmp_path: Path,
) -> None:
    run = Run.create(tmp_path, Aggregation.generate(), confs=confs())
    with run.start() as driver:
        driver.wait_until(lambda: run.queries[0].written() >= 3, "third batch")
        driver.kill()
        assert driver.executors() == []
    with run.start() as driver:
        driver.succeed()
    # Not the states: a kill between the source's log and offsets/N makes Spark put two files into batch N.
    run.check()


def test_a_driver_that_fails_shows_its_log(tmp_path: Path) -> None:
    run = Run.create(tmp_path, Aggregation.generate(), confs={"spark.master": "no such master"})
    with run.start() as driver, pytest.raises(Failed, match="Master must either be"):
        driver.succeed()


def test_a_wrong_row_in_the_sink_fails_the_check(tmp_path: Path) -> None:
    run = Run.create(tmp_path, Aggregation.generate(files=1, rows=1), confs={})
    run.queries[0].output.mkdir()
    with pytest.raises(AssertionError, match="expected"):
        run.check()
    assert list((tmp_path / "markers").iterdir()) == []


def test_jars_are_found_from_any_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    named = with_absolute_jars({"SPARK_DSTL_JAR": "target/a.jar", "SPARK_DSTL_TEST_JAR": "b.jar,/c.jar", "OTHER": "x"})
    assert named == {
        "SPARK_DSTL_JAR": f"{tmp_path}/target/a.jar",
        "SPARK_DSTL_TEST_JAR": f"{tmp_path}/b.jar,/c.jar",
    }
    assert with_absolute_jars({"SPARK_DSTL_JAR": ""}) == {}
