# SPDX-License-Identifier: Apache-2.0
"""A query of the shared session that gets its input in portions and restarts in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import query_driver
import spark_dstl
from driver_process import DEADLINE_SECONDS, POLL_SECONDS
from harness import Query, Run, compare
from scenarios import Aggregation
from settings import STATE_STORE, dstl
from shared_session import contender
from spark_dstl.checkpoint.changing import activity

# Commit entries and snapshots are deleted as soon as no retained batch needs them.
RETAIN_LITTLE = {
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "0",
}
# Unloading the stores waits for Spark's maintenance.
FORGET_AT_ONCE = {
    f"{STATE_STORE}.maintenanceShutdownTimeout": "1s",
    f"{STATE_STORE}.maintenanceForceShutdownTimeout": "1s",
}
# Each store makes a snapshot after almost every batch, and loads nothing from the local disk.
SNAPSHOTS = {
    **dstl(materialize__replayCost="100000", batch__persistDelay="100ms", localRecovery__maxSize="0"),
    # Files of snapshots are larger, changelogs are smaller.
    **dstl(inline__maxSegmentSize="1000"),
    f"{STATE_STORE}.minDeltasForSnapshot": "1",
}


@dataclass
class Clicks:
    """The query; a test may move it to another checkpoint."""

    spark: SparkSession
    run: Run
    settings: Mapping[str, str] = field(default_factory=dict)
    provider: str = "dstl"
    later: list[Path] = field(default_factory=list)

    @staticmethod
    def create(
        spark: SparkSession, work: Path, files: int, settings: Mapping[str, str] | None = None, provider: str = "dstl"
    ) -> Clicks:
        """A query with input for that many batches, a file each; none of the files is in its directory yet."""
        work.mkdir(exist_ok=True)
        run = Run.create(work, Aggregation.generate(files=files, rows=30), confs={})
        clicks = Clicks(spark, run, settings or {}, provider)
        events = clicks.query.input / "events"
        (work / "later").mkdir()
        clicks.later = [path.rename(work / "later" / path.name) for path in sorted(events.iterdir())]
        return clicks

    @property
    def query(self) -> Query:
        return self.run.queries[0]

    @property
    def checkpoint(self) -> Path:
        return Path(self.query.checkpoint)

    def move_to(self, checkpoint: Path) -> Clicks:
        """Give the query another checkpoint; returns it."""
        self.run.queries[0] = self.query.at(str(checkpoint))
        return self

    def resume(self, batches: int | None = None, confs: Mapping[str, str] | None = None) -> StreamingQuery:
        """Run the query over that many further files, or all, with nothing loaded, as after a restart."""
        for path in self.later[:batches]:
            path.rename(self.query.input / "events" / path.name)
        del self.later[:batches]
        session = self._session(confs or {})
        # Loaded stores would not be read from storage again.
        cast(Any, self.spark.sparkContext._jvm).org.apache.spark.sql.execution.streaming.state.StateStore.stop()
        started = query_driver.start(session, self.query.spec())
        started.awaitTermination()
        if self.provider in ("dstl", "stock"):
            self._wait_until_over()
        return started

    def resume_until_deleted(self, entry: str, batches: int) -> None:
        """Run the query over that many further files again and again, until it has deleted an entry of its checkpoint.

        It deletes in the background, and may end before it has.
        """
        self.resume(batches)
        self.resume_until(lambda: not (self.checkpoint / entry).exists(), batches, f"{entry} still exists")

    def resume_until(self, holds: Callable[[], bool], batches: int, otherwise: str) -> None:
        """Run the query over that many further files again and again, until its background work has made this hold."""
        while not holds():
            assert self.later, f"{otherwise} after the last batch"
            self.resume(batches)

    def fail(self, batches: int | None = None, confs: Mapping[str, str] | None = None) -> str:
        """Run the query likewise until it fails; returns the error with its stack trace."""
        with pytest.raises(StreamingQueryException) as raised:
            self.resume(batches, confs)
        error = cast(Any, raised.value)
        trace = error._stackTrace if hasattr(error, "_stackTrace") else error.stackTrace
        return f"{error}\n{trace}"

    def delete_output(self, after: int) -> None:
        """Remove the output of later batches from the sink, as a rollback requires."""
        for path in self.query.output.glob("*.json"):
            if int(path.stem) > after:
                path.unlink()

    def check(self) -> None:
        """The result is that of the files which the query has in its directory."""
        scenario = self.query.scenario
        assert isinstance(scenario, Aggregation)
        files = len(list((self.query.input / "events").iterdir()))
        differences = compare(scenario.after(files), self.query.result())
        assert not differences, "\n".join(differences)

    def _wait_until_over(self) -> None:
        """Wait for the run's end mark: until then a request that another has overtaken may create a file again."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        with spark_dstl.open(str(self.checkpoint)) as checkpoint:
            while (sign := activity.signs(checkpoint)) is not None:
                assert time.monotonic() < deadline, sign
                time.sleep(POLL_SECONDS)

    def _session(self, confs: Mapping[str, str]) -> SparkSession:
        session = contender(self.spark, self.provider)
        # No batches without input.
        session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        for key, value in {**FORGET_AT_ONCE, **self.settings, **confs}.items():
            session.conf.set(key, value)
        return session
