# SPDX-License-Identifier: Apache-2.0
"""The harness finds wrong results and failed drivers."""

from __future__ import annotations

from pathlib import Path

import pytest

from driver_process import Failed
from harness import Run, compare
from scenarios import Aggregation, JoinAggregation
from settings import with_absolute_jars


def test_compare_reports_missing_and_unexpected_windows() -> None:
    expected = {(0, "a"): (1, 5), (600, "a"): (1, 5)}
    assert compare(expected, dict(expected)) == []
    assert compare(expected, {(0, "a"): (1, 5)}) == ["window (600, 'a'): expected (1, 5), found None"]
    assert compare({}, {(0, "a"): (1, 5)}) == ["window (0, 'a'): expected None, found (1, 5)"]


def test_a_scenario_is_deterministic() -> None:
    assert Aggregation.generate() == Aggregation.generate()
    assert JoinAggregation.generate().result() == JoinAggregation.generate().result()


def test_the_error_of_a_failed_driver_contains_its_log(tmp_path: Path) -> None:
    run = Run.create(tmp_path, Aggregation.generate(), confs={"spark.master": "no such master"})
    with run.start() as driver, pytest.raises(Failed, match="Master must either be"):
        driver.succeed()


def test_a_missing_row_in_the_sink_fails_the_check(tmp_path: Path) -> None:
    run = Run.create(tmp_path, Aggregation.generate(files=1, rows=1), confs={})
    run.queries[0].output.mkdir()
    with pytest.raises(AssertionError, match="expected"):
        run.check()


def test_jar_variables_get_absolute_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    named = with_absolute_jars({"SPARK_DSTL_JAR": "target/a.jar", "SPARK_DSTL_TEST_JAR": "b.jar,/c.jar", "OTHER": "x"})
    assert named == {
        "SPARK_DSTL_JAR": f"{tmp_path}/target/a.jar",
        "SPARK_DSTL_TEST_JAR": f"{tmp_path}/b.jar,/c.jar",
    }
    assert with_absolute_jars({"SPARK_DSTL_JAR": ""}) == {}
