# SPDX-License-Identifier: Apache-2.0
"""A query gets its configuration from spark-submit, or only the provider class."""

from __future__ import annotations

from pathlib import Path

from harness import Reader, Run
from scenarios import Aggregation, JoinAggregation
from settings import FILE_MANAGER_KEY, PROVIDER, STATE_STORE, jars


def test_queries_submitted_with_a_jar_and_settings_keep_separate_logs(tmp_path: Path, reader: Reader) -> None:
    run = Run.create(tmp_path, Aggregation.generate(), JoinAggregation.generate())
    jar = run.confs.pop("spark.jars")
    with run.submit("--jars", jar) as driver:
        driver.succeed()
    run.check()
    for query in run.queries:
        assert (Path(query.checkpoint) / "dstl").is_dir()
        assert not list(Path(query.checkpoint).rglob("*.changelog"))
    run.confs["spark.jars"] = jar
    run.check_state(reader)


def test_the_provider_without_the_file_manager_warns_once_and_writes_stock_files(
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
    checkpoint = Path(run.queries[0].checkpoint)
    assert not (checkpoint / "dstl").exists()
    assert list((checkpoint / "state").rglob("*.changelog"))
    run.check_state(reader)
