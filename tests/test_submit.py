"""The ways a query gets its configuration: spark-submit, the Python helper, the provider class alone, a cluster."""

from __future__ import annotations

from pathlib import Path

from harness import Reader, Run
from scenarios import Aggregation, JoinAggregation
from settings import FILE_MANAGER_KEY, PROVIDER, STATE_STORE, jars, log_confs, stock, stock_confs


def confs() -> dict[str, str]:
    """The log, or Spark's own provider if the tests are told so."""
    return stock_confs() if stock() else log_confs()


def checkpoint_of(run: Run) -> Path:
    """The first query's checkpoint."""
    return Path(run.queries[0].checkpoint)


def test_a_query_runs_with_nothing_but_a_jar_and_settings_given_to_spark_submit(tmp_path: Path, reader: Reader) -> None:
    run = Run.create(tmp_path, Aggregation.generate(), confs=confs())
    named = run.confs.pop("spark.jars", None)
    with run.submit(*(["--jars", named] if named else [])) as driver:
        driver.succeed()
    run.check()
    if not stock():
        run.confs["spark.jars"] = str(named)
        assert (checkpoint_of(run) / "dstl").is_dir()
        assert not list(checkpoint_of(run).rglob("*.changelog"))
    run.check_state(reader)


def test_two_queries_of_one_application_keep_their_logs_apart(tmp_path: Path, reader: Reader) -> None:
    run = Run.create(tmp_path, Aggregation.generate(), JoinAggregation.generate(), confs=confs())
    with run.start() as driver:
        driver.succeed()
    run.check()
    run.check_state(reader)


def test_a_query_runs_on_executors_in_processes_of_their_own(tmp_path: Path, reader: Reader) -> None:
    run = Run.create(tmp_path, JoinAggregation.generate(), confs=confs(), master="local-cluster[2,1,1024]")
    with run.start() as driver:
        driver.succeed()
    run.check()
    run.check_state(reader)


def test_with_only_the_provider_class_set_commits_are_synchronous_in_stock_layout_after_one_warning(
    tmp_path: Path,
    reader: Reader,
) -> None:
    run = Run.create(
        tmp_path,
        Aggregation.generate(),
        confs={"spark.jars": jars(), f"{STATE_STORE}.providerClass": PROVIDER},
    )
    with run.start() as driver:
        driver.succeed()
        warnings = [line for line in driver.log().splitlines() if " WARN " in line and FILE_MANAGER_KEY in line]
    assert len(warnings) == 1, warnings
    run.check()
    assert not (checkpoint_of(run) / "dstl").exists()
    assert list((checkpoint_of(run) / "state").rglob("*.changelog"))
    run.check_state(reader)


def test_a_session_configured_by_the_python_helper_keeps_its_state_in_the_log(tmp_path: Path, reader: Reader) -> None:
    run = Run.create(tmp_path, Aggregation.generate(), confs=stock_confs() if stock() else {})
    run.configure = not stock()
    with run.start() as driver:
        driver.succeed()
    run.check()
    assert (checkpoint_of(run) / "dstl").is_dir() != stock()
    run.check_state(reader)
