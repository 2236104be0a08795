# SPDX-License-Identifier: Apache-2.0
"""One PySpark application for the queries that need no separate driver.

Its sessions ("contenders") differ in their state store provider: Spark's own, or the log.
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
from late_workers import until_workers_connect
from scenarios import Aggregation
from settings import FORMAT_VERSION, STATE_STORE, STOCK_PROVIDER, base_confs, jars
from spark_facts import READABLE_FORMATS

FILES = 4
# The query restarts before this file.
RESTART = 2
Rows = list[str]


def numbers(directory: Path) -> list[int]:
    """The batches with an entry in a directory, in order."""
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())


def start(work: Path) -> SparkSession:
    """Start the application, with the jar and no settings of the log."""
    # Else Spark's Python processes are those of the search path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    confs: dict[str, Any] = {**base_confs("local[2]", work), "spark.jars": jars(with_tests=True)}
    confs["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(sys.path)
    session: SparkSession = SparkSession.builder.config(map=confs).getOrCreate()
    return session


def contender(spark: SparkSession, provider: str, version: int = 1) -> SparkSession:
    """A session whose state is in Spark's own files (`spark`), or in the log (`dstl`; `stock`: by Spark's provider).

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
    """A stateful operator: its query, and its output mode.

    The input is rows of (time, key, value, at), `at` being the event time, with 12 keys; see `scenarios.py`.
    """

    name: str
    query: Callable[[DataFrame], DataFrame]
    mode: str = "append"
    # The options of the state reader for each store.
    stores: tuple[dict[str, str], ...] = ({},)
    # Whether batches without input run, which watermarks and timers need.
    without_input: bool = True
    confs: Mapping[str, str] = field(default_factory=dict)
    # The query after the restart, if it differs.
    later: Callable[[DataFrame], DataFrame] | None = None


@dataclass
class Contest:
    """One operator in one session; all contests have the same input."""

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

    @property
    def newest(self) -> int:
        """The newest committed batch."""
        return max(numbers(self.checkpoint / "commits"))

    def run(self) -> None:
        """Run half of the input with a processing time trigger, restart, and run the rest with `availableNow`."""
        self.run_first()
        self.run_rest()

    def run_first(self) -> None:
        """Run the first half."""
        self._add(0, RESTART)
        until_workers_connect(self._process_available)

    def run_rest(self) -> None:
        """Run the second half, after a restart."""
        self._add(RESTART, FILES)
        until_workers_connect(self._process_rest)

    def _process_available(self) -> None:
        query = self._start(self.operator.query, processingTime="0 seconds")
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    def _process_rest(self) -> None:
        self._start(self.operator.later or self.operator.query, availableNow=True).awaitTermination()

    def _add(self, first: int, last: int) -> None:
        for number in range(first, last):
            name = f"{number:04d}.json"
            # A running query that lists a file before it has its old time ignores those that are older by a week.
            shutil.copy2(self.work / "all" / "events" / name, self.work / name)
            (self.work / name).rename(self.work / "events" / name)

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
        """The state reader's rows of every store in the last version; none if it does not read the format."""
        if int(self.session.conf.get(FORMAT_VERSION) or 1) not in READABLE_FORMATS:
            return []
        return [self.state(**store, **options) for store in self.operator.stores]

    def state(self, **options: Any) -> Rows:
        """The state reader's rows of one store."""
        rows = self.session.read.format("statestore").options(**options).load(str(self.checkpoint))
        return sorted(str(row) for row in rows.collect())


@dataclass
class Moving(Contest):
    """A query that continues on another checkpoint, in `directory`, after some files."""

    directory: str = "checkpoint"

    BEFORE: ClassVar[int] = 3

    @property
    def checkpoint(self) -> Path:
        return self.work / self.directory

    def begin(self) -> None:
        """Run all files before the move, and stop."""
        self._add(0, self.BEFORE)
        until_workers_connect(self._process_available)

    def finish(self, session: SparkSession) -> None:
        """Run the rest of the input in a session."""
        self.session = session
        for key, value in self.operator.confs.items():
            session.conf.set(key, value)
        self._add(self.BEFORE, FILES)
        until_workers_connect(self._process_rest)
