# SPDX-License-Identifier: Apache-2.0
"""A query continues from its checkpoint on another line of Spark, and on the first one again."""

from __future__ import annotations

from pathlib import Path

import pytest

import spark_dstl
from harness import Reader, Run, compare
from other_sparks import Installed, here, others
from scenarios import Aggregation, JoinAggregation, Scenario, Ticks
from settings import STATE_STORE, dstl, log_confs
from spark_dstl.errors import CannotRepartition

OTHERS = others()
if not OTHERS:
    pytest.skip("there is no environment with another Spark: `make spark SPARK=4.3`", allow_module_level=True)

MINIMUM_DELTAS = f"{STATE_STORE}.minDeltasForSnapshot"
SCENARIOS: list[Scenario] = [Aggregation.generate(), JoinAggregation.generate()]


@pytest.mark.parametrize("other", OTHERS, ids=[other.line.name for other in OTHERS])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.kind for scenario in SCENARIOS])
def test_a_query_continues_on_another_line_of_spark_and_back(
    tmp_path: Path, reader: Reader, scenario: Scenario, other: Installed
) -> None:
    own = here()
    run_on(Run.create(tmp_path, scenario), [own, other, own], reader)


@pytest.mark.skipif(len(OTHERS) < 2, reason="there is no environment with two other Sparks")
def test_a_query_continues_on_each_line_of_spark_upwards_and_downwards(tmp_path: Path, reader: Reader) -> None:
    lines = sorted([here(), *OTHERS], key=lambda installed: installed.line.name)
    # Several short runs have made a snapshot in the log, which 3.5 refuses.
    up_and_down = [*lines, *(one for one in reversed(lines[:-1]) if one.line.name != "3.5")]
    run_on(Run.create(tmp_path, Aggregation.generate(files=2 * len(up_and_down))), up_and_down, reader)


def run_until(run: Run, point: str, batch: int, on: Installed) -> None:
    """Run a query until its driver is killed at a point of a batch."""
    (run.work / "markers" / point).unlink(missing_ok=True)
    run.kill_at(point, batch, {"spark.jars": on.jar}, on.python)


def run_on(run: Run, on: list[Installed], reader: Reader) -> None:
    """Run a query on one Spark after the other; each driver but the last is killed in the middle of a commit."""
    for number, installed in enumerate(on[:-1]):
        killed_at = 2 * (number + 1)
        run_until(run, "driver.before-commit-entry", killed_at, installed)
        assert max(run.committed(run.queries[0])) == killed_at - 1
    run.succeed(confs={"spark.jars": on[-1].jar}, python=on[-1].python)
    run.check_all(reader)
    assert not list(Path(run.queries[0].checkpoint).rglob("*.changelog"))


@pytest.mark.parametrize("other", OTHERS, ids=[other.line.name for other in OTHERS])
def test_a_query_continues_on_another_line_of_spark_after_its_first_batches_are_deleted(
    tmp_path: Path, reader: Reader, other: Installed
) -> None:
    """The tools keep what it needs."""
    short = {
        **dstl(materialize__replayCost="100000", batch__persistDelay="10ms"),
        MINIMUM_DELTAS: "1",
        f"{STATE_STORE}.maintenanceInterval": "100ms",
        "spark.sql.streaming.minBatchesToRetain": "2",
    }
    scenario = Ticks()
    run = Run.create(tmp_path, scenario, master="local[1]", confs={**log_confs(), **short})
    (query,) = run.queries
    run.interval = "0 seconds"
    first = Path(query.checkpoint, "commits", "1")
    with run.start(confs={"spark.jars": other.jar}, python=other.python) as driver:
        driver.wait_until(first.exists, "batch 1")
        driver.wait_until(lambda: not first.exists(), "its deletion")
        driver.kill()
    run.interval = ""
    with spark_dstl.open(query.checkpoint) as stopped:
        assert not stopped.verify(deep=True).is_damaged
        stopped.delete_leftovers(stopped.leftovers(), stopped=True)
    before = max(run.committed(query))
    for _ in range(2):
        run.proceed(reader)
    batches = max(run.committed(query)) + 1
    assert batches > before + 2
    differences = compare(scenario.after(batches), query.result(batches))
    assert not differences, "\n".join(differences)


@pytest.mark.skipif(not here().line.converts, reason="this Spark cannot write states at a batch of choice")
@pytest.mark.parametrize("other", OTHERS, ids=[other.line.name for other in OTHERS])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.kind for scenario in SCENARIOS])
def test_a_query_of_another_line_of_spark_continues_there_with_another_number_of_partitions(
    tmp_path: Path, scenario: Scenario, other: Installed
) -> None:
    run = Run.create(tmp_path, scenario)
    run.confs["spark.sql.shuffle.partitions"] = "4"
    checkpoint, point = run.queries[0].checkpoint, "driver.after-commit-entry"
    run_until(run, point, 2, other)
    if not other.line.reads:
        with pytest.raises(CannotRepartition, match="Let the query run one batch"), spark_dstl.open(checkpoint) as seen:
            seen.repartition(3, apply=True, stopped=True)
        run_until(run, point, 3, here())
    with spark_dstl.open(checkpoint) as stopped:
        done = stopped.repartition(3, apply=True, stopped=True)
    assert (done.batch, done.before) == (2 if other.line.reads else 3, 4)
    run.succeed(confs={"spark.jars": other.jar}, python=other.python)
    run.check()
    newest = Path(checkpoint) / "offsets" / str(max(run.committed(run.queries[0])))
    assert '"spark.sql.shuffle.partitions":"3"' in newest.read_text(encoding="utf-8")


@pytest.mark.skipif("3.5" not in [other.line.name for other in OTHERS], reason="there is no environment with Spark 3.5")
def test_spark_3_5_fails_on_snapshots_in_the_log(tmp_path: Path, reader: Reader) -> None:
    (oldest,) = (other for other in OTHERS if other.line.name == "3.5")
    always = {**dstl(materialize__replayCost="100000", batch__persistDelay="50ms"), MINIMUM_DELTAS: "1"}
    run = Run.create(tmp_path, Aggregation.generate(files=12, rows=60), confs={**log_confs(), **always})
    run.kill_at("driver.before-commit-entry", 10)
    with run.start(confs={"spark.jars": oldest.jar}, python=oldest.python) as driver:
        assert driver.wait() != 0
        assert "[DSTL_UNSUPPORTED_SPARK] Snapshot " in driver.log(), driver.failed(
            "the error does not name the snapshot"
        )
    assert max(run.committed(run.queries[0])) == 9
    run.finish(reader)
