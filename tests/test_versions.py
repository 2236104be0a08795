"""A query's Spark is replaced by one of another line, while its checkpoint goes on, and put back."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import Reader, Run
from other_sparks import Installed, here, others
from scenarios import Aggregation, JoinAggregation, Scenario

OTHERS = others()
if not OTHERS:
    pytest.skip("there is no environment with another Spark: `make spark SPARK=4.3`", allow_module_level=True)

SCENARIOS: list[Scenario] = [Aggregation.generate(), JoinAggregation.generate()]


@pytest.mark.parametrize("other", OTHERS, ids=[other.line.name for other in OTHERS])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.kind for scenario in SCENARIOS])
def test_a_checkpoint_goes_on_on_another_line_of_spark_and_back(
    tmp_path: Path, reader: Reader, scenario: Scenario, other: Installed
) -> None:
    """Each driver but the last is killed in the middle of a commit."""
    run = Run.create(tmp_path, scenario)
    own = here()
    for installed, killed_at in ((own, 2), (other, 4)):
        (tmp_path / "markers" / "driver.before-commit-entry").unlink(missing_ok=True)
        with run.start(
            f"driver.before-commit-entry=pause@{killed_at}", {"spark.jars": installed.jar}, installed.python
        ) as driver:
            driver.wait_for_pause("driver.before-commit-entry")
            driver.kill()
        assert max(run.committed(run.queries[0])) == killed_at - 1
    with run.start(confs={"spark.jars": own.jar}) as driver:
        driver.succeed()
    run.check()
    run.check_state(reader)
    assert not list(Path(run.queries[0].checkpoint).rglob("*.changelog"))
