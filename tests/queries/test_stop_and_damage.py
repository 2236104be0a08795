# SPDX-License-Identifier: Apache-2.0
"""A stopped query logs no error."""

from __future__ import annotations

import re
from pathlib import Path

from harness import Reader, Run
from scenarios import Aggregation
from settings import dstl, log_confs

STOPS = {"executor.mid-task": 1, "executor.before-upload": 2, "driver.before-commit-entry": 3}

# A line of the log with an error, or of a stack trace with a class of this project.
ALARMING = re.compile(r"^[\d:.]+ ERROR |^\s+at .*dstl|\[DSTL_", re.MULTILINE)
# Spark logs an error for a task that is interrupted while it fetches its input.
OF_SPARK = re.compile(r" ERROR ShuffleBlockFetcherIterator: ")


def test_a_query_stopped_within_a_batch_logs_no_error_and_continues(tmp_path: Path, reader: Reader) -> None:
    confs = {**log_confs(), **dstl(inline__maxSegmentSize="0")}
    run = Run.create(tmp_path, Aggregation.generate(files=4), confs=confs)
    with run.start_to_stop(STOPS) as driver:
        for point, batch in STOPS.items():
            driver.wait_for_pause(point)
            driver.wait_for_log(f"stopped at {point}")
            assert max(run.committed(run.queries[0])) == batch - 1
            run.resume(point)
        driver.succeed()
        logged = [line for line in driver.log().splitlines() if ALARMING.search(line) and not OF_SPARK.search(line)]
        assert not logged, driver.failed(f"a stopped query logs {logged[0]}")
    run.finish(reader)
