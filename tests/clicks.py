"""A query that incidents happen to: it gets its input by and by, and is stopped and started in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import query_driver
from harness import Query, Run
from scenarios import Aggregation
from settings import STATE_STORE, dstl
from shared_session import contender

# Commit entries and snapshots that nothing needs any more go as soon as may be.
RETAIN_LITTLE = {
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "0",
}
# Executors are made to forget what they have, which waits for Spark's maintenance, and that may wait for it.
FORGET_AT_ONCE = {
    f"{STATE_STORE}.maintenanceShutdownTimeout": "1s",
    f"{STATE_STORE}.maintenanceForceShutdownTimeout": "1s",
}
# A snapshot of each store after almost every batch; what a process has on its local disk it fetches again.
SNAPSHOTS = {
    **dstl(materialize__replayCost="100000", batch__persistDelay="100ms", localRecovery__maxSize="0"),
    # Of snapshots the files go to data files, and changelogs do not.
    **dstl(inline__maxSegmentSize="1000"),
    f"{STATE_STORE}.minDeltasForSnapshot": "1",
}


@dataclass
class Clicks:
    """The query, on a checkpoint that may be another one after a while."""

    spark: SparkSession
    run: Run
    settings: Mapping[str, str] = field(default_factory=dict)
    provider: str = "dstl"
    later: list[Path] = field(default_factory=list)

    @staticmethod
    def create(spark: SparkSession, work: Path, files: int, settings: Mapping[str, str] | None = None) -> Clicks:
        """A query with so many files of input, a batch each, of which it has none yet."""
        run = Run.create(work, Aggregation.generate(files=files, rows=30), confs={})
        clicks = Clicks(spark, run, settings or {})
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

    def moved(self, checkpoint: Path) -> Clicks:
        """The same query on another checkpoint, from now on."""
        self.run.queries[0] = self.query.at(str(checkpoint))
        return self

    def goes_on(self, batches: int | None = None, confs: Mapping[str, str] | None = None) -> StreamingQuery:
        """Start the query, as after a restart of its application; it ends when it has run so many batches."""
        for path in self.later[:batches]:
            path.rename(self.query.input / "events" / path.name)
        del self.later[:batches]
        session = self._session(confs or {})
        # Executors do not load again what they have.
        cast(Any, self.spark.sparkContext._jvm).org.apache.spark.sql.execution.streaming.state.StateStore.stop()
        started = query_driver.start(session, self.query.spec())
        started.awaitTermination()
        return started

    def fails(self, batches: int | None = None, confs: Mapping[str, str] | None = None) -> str:
        """The same, where it does not get that far; returns what one sees."""
        with pytest.raises(StreamingQueryException) as raised:
            self.goes_on(batches, confs)
        error = cast(Any, raised.value)
        trace = error._stackTrace if hasattr(error, "_stackTrace") else error.stackTrace
        return f"{error}\n{trace}"

    def forgets(self, after: int) -> None:
        """Remove the output of later batches from the sink, as a rollback requires."""
        for path in self.query.output.glob("*.json"):
            if int(path.stem) > after:
                path.unlink()

    def is_right(self) -> None:
        """It has come to the end of its input, with the right result."""
        assert not self.later
        self.run.check()

    def _session(self, confs: Mapping[str, str]) -> SparkSession:
        session = contender(self.spark, self.provider)
        # A batch for each file, and no others.
        session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        for key, value in {**FORGET_AT_ONCE, **self.settings, **confs}.items():
            session.conf.set(key, value)
        return session
