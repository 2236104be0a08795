"""One PySpark application for the many queries that need no process of their own.

Contenders are sessions of it: one keeps its state as Spark does, the others in the log.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import spark_dstl
from scenarios import Aggregation
from settings import FORMAT_VERSION, STATE_STORE, STOCK_PROVIDER, base_confs, jars
from spark_facts import READABLE_FORMATS

FILES = 4
# The restart comes before this one.
RESTART = 2
Rows = list[str]


def start(work: Path) -> SparkSession:
    """Start the application; it knows of the log by nothing but the jar."""
    builder: SparkSession.Builder = SparkSession.builder
    confs = {**base_confs("local[2]", work), "spark.jars": jars(with_tests=True), "spark.sql.shuffle.partitions": "2"}
    confs["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(sys.path)
    for key, value in confs.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def contender(spark: SparkSession, provider: str, version: int = 1) -> SparkSession:
    """A session whose queries keep their state in Spark's own files (`spark`), or in the log (`dstl`, `stock`).

    With `default` no provider is set. `version` is the checkpoint's format: 1, or 2 with ids.
    """
    session = spark.newSession()
    session.conf.set(FORMAT_VERSION, version)
    if provider == "default":
        return session
    if provider == "spark":
        session.conf.set(f"{STATE_STORE}.providerClass", STOCK_PROVIDER)
        return session
    return spark_dstl.configure_session(session, transform_with_state=provider == "stock")


@dataclass(frozen=True)
class Operator:
    """A stateful operator: the query that has it, and how its output may be written.

    The input is rows of (time, key, value, at), `at` being the event time, with 12 keys; see `scenarios.py`.
    """

    name: str
    query: Callable[[DataFrame], DataFrame]
    mode: str = "append"
    # Stores by what the state reader wants to know of them.
    stores: tuple[dict[str, str], ...] = ({},)
    # Whether batches without input run, for the sake of watermarks and timers.
    without_input: bool = True
    confs: Mapping[str, str] = field(default_factory=dict)
    # The query after the restart, where it is another one.
    later: Callable[[DataFrame], DataFrame] | None = None


@dataclass
class Contest:
    """One operator with its state in one place, over the same input as any other contest of the same size."""

    session: SparkSession
    operator: Operator
    work: Path
    batches: dict[int, Rows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Aggregation.generate(files=FILES, rows=30).write(self.work / "all")
        (self.work / "events").mkdir()
        enabled = str(self.operator.without_input).lower()
        self.session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", enabled)
        for key, value in self.operator.confs.items():
            self.session.conf.set(key, value)

    @property
    def checkpoint(self) -> Path:
        return self.work / "checkpoint"

    def run(self) -> None:
        """Half of the input with a trigger that never ends, then a restart, then the rest with one that does."""
        self._add(0, RESTART)
        query = self._start(self.operator.query, processingTime="0 seconds")
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        self._add(RESTART, FILES)
        self._start(self.operator.later or self.operator.query, availableNow=True).awaitTermination()

    def _add(self, first: int, last: int) -> None:
        for number in range(first, last):
            name = f"{number:04d}.json"
            shutil.copy2(self.work / "all" / "events" / name, self.work / "events" / name)

    def _start(self, result: Callable[[DataFrame], DataFrame], **trigger: Any) -> StreamingQuery:
        stream = self.session.readStream.schema("time LONG, key STRING, value LONG").option("maxFilesPerTrigger", 1)
        events = stream.json(str(self.work / "events")).selectExpr("*", "timestamp_seconds(time) AS at")
        return (
            result(events)
            .writeStream.outputMode(self.operator.mode)
            .option("checkpointLocation", str(self.checkpoint))
            .foreachBatch(self._take)
            .trigger(**trigger)
            .start()
        )

    def _take(self, rows: DataFrame, batch: int) -> None:
        assert batch not in self.batches, f"batch {batch} ran twice"
        self.batches[batch] = sorted(str(row) for row in rows.collect())

    def states(self, **options: Any) -> list[Rows]:
        """What the state reader makes of every store of the last version; nothing where it does not know the format."""
        if int(self.session.conf.get(FORMAT_VERSION) or 1) not in READABLE_FORMATS:
            return []
        return [self.state(**store, **options) for store in self.operator.stores]

    def state(self, **options: Any) -> Rows:
        """What the state reader makes of one store."""
        rows = self.session.read.format("statestore").options(**options).load(str(self.checkpoint))
        return sorted(str(row) for row in rows.collect())


@dataclass
class Moving(Contest):
    """A query that may go on somewhere else after some files: `directory` says where."""

    directory: str = "checkpoint"

    BEFORE: ClassVar[int] = 3

    @property
    def checkpoint(self) -> Path:
        return self.work / self.directory

    def begin(self) -> None:
        """Run until all files before the move are done, and stop."""
        self._add(0, self.BEFORE)
        query = self._start(self.operator.query, processingTime="0 seconds")
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    def finish(self, session: SparkSession) -> None:
        """Run the rest of the input in a session."""
        self.session = session
        for key, value in self.operator.confs.items():
            session.conf.set(key, value)
        self._add(self.BEFORE, FILES)
        self._start(self.operator.later or self.operator.query, availableNow=True).awaitTermination()
