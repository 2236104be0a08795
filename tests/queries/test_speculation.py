# SPDX-License-Identifier: Apache-2.0
"""With speculative execution, the changes of the slower attempt are in no batch."""

from __future__ import annotations

import re
from pathlib import Path

from harness import Reader, Run
from scenarios import Aggregation
from settings import log_confs
from standalone import standalone

EAGER = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    # Otherwise Spark kills the executor of an attempt that does not end.
    "spark.task.reaper.enabled": "false",
}
REFUSED = re.compile(r"DSTL_SEAL_REFUSED.* for batch 4 of run .*: batch 4 is closed")


def test_a_late_task_attempt_changes_no_state_after_its_batch(tmp_path: Path, reader: Reader) -> None:
    """In batch 2 an attempt hangs after its seal, in batch 4 before it; their speculative copies succeed."""
    confs = {**log_confs(), **EAGER}
    with standalone(tmp_path / "cluster") as cluster:
        run = Run.create(tmp_path, Aggregation.generate(), master=cluster.url, confs=confs)
        query = run.queries[0]
        points = "executor.after-seal=linger@2;executor.mid-task=linger@4;driver.before-commit-entry=pause@5"
        with run.start(points) as driver:
            driver.wait_for_pause("executor.after-seal")
            driver.wait_until(lambda: 2 in run.committed(query), "batch 2 without the task that lingers")
            run.resume("executor.after-seal")
            driver.wait_for_pause("executor.mid-task")
            driver.wait_for_pause("driver.before-commit-entry")
            assert 4 in run.committed(query)
            run.resume("executor.mid-task")
            # Unneeded copies of other tasks may be refused for other batches.
            driver.wait_until(lambda: REFUSED.search(driver.log()) is not None, "refusal of the late seal")
            driver.kill()
    run.finish(reader)
