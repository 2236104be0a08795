# SPDX-License-Identifier: Apache-2.0
"""Runs queries in separate driver processes, and checks their results and states.

A `Run` is one or more queries with their checkpoints, inputs and outputs; tests start drivers on it one after another.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import spark_dstl
from driver_process import Driver, Failed, spark_submit, start_driver
from scenarios import Aggregation, Scenario, Windows
from settings import (
    FAIL_POINT_DIR,
    FAIL_POINTS,
    FORMAT_VERSION,
    TEST_JAR,
    base_confs,
    dstl,
    faults,
    log_confs,
)
from spark_facts import HAS_CONNECT_SERVER, READABLE_FORMATS

# Settings that a reader of states does not find in the checkpoint.
IN_NO_CHECKPOINT = {FORMAT_VERSION, *dstl(basePath="")}

HERE = Path(__file__).resolve().parent


def local_names(directory: str) -> list[str]:
    """The names in a local directory."""
    return [path.name for path in Path(directory.split("://")[-1]).iterdir()]


@dataclass(frozen=True)
class Query:
    """One query: its scenario, and the paths that it reads and writes."""

    name: str
    scenario: Scenario
    input: Path
    checkpoint: str
    output: Path

    def spec(self) -> dict[str, Any]:
        """The query as the driver's specification has it."""
        return {
            "name": self.name,
            "kind": self.scenario.kind,
            "input": str(self.input),
            "checkpoint": self.checkpoint,
            "output": str(self.output),
            "versions": self.scenario.versions,
        }

    def at(self, checkpoint: str) -> Query:
        """The query with another checkpoint."""
        return replace(self, checkpoint=checkpoint)

    def result(self, batches: int | None = None) -> Windows:
        """The newest row of each window in the sink, or in the output of the first `batches`."""
        found: Windows = {}
        numbered = sorted((int(path.stem), path) for path in self.output.glob("*.json"))
        for number, path in numbered:
            if batches is not None and number >= batches:
                break
            for row in json.loads(path.read_text(encoding="utf-8")):
                found[row["start"], row["key"]] = (row["count"], row["sum"])
        return found

    def written(self) -> int:
        """The number of batches in the sink."""
        return len(list(self.output.glob("*.json")))

    @contextmanager
    def without_last(self, number: int = 1) -> Iterator[None]:
        """Keep the last files from the input during the block."""
        last = sorted((self.input / "events").iterdir())[-number:]
        aside = [file.rename(self.output.parent / file.name) for file in last]
        yield
        for file, elsewhere in zip(last, aside, strict=True):
            elsewhere.rename(file)


@dataclass
class Run:
    """Queries on their checkpoints, and the number of drivers started on them so far.

    With `remote`, the drivers are clients of that Spark Connect server and pass on `transform_with_state`.
    With `interval`, queries begin batches at that interval and do not end with their input.
    """

    work: Path
    queries: list[Query]
    confs: dict[str, str]
    remote: str = ""
    transform_with_state: bool = False
    names: Callable[[str], list[str]] = local_names
    has_plain_snapshots: bool = False
    interval: str = ""
    drivers: int = 0
    stop_at: list[Path] = field(default_factory=list)

    @staticmethod
    def create(
        work: Path,
        *scenarios: Scenario,
        master: str = "local[2]",
        confs: Mapping[str, str] | None = None,
        checkpoint_scheme: str = "",
        checkpoints: str = "",
        names: Callable[[str], list[str]] = local_names,
    ) -> Run:
        """Write the input of every scenario. Without `confs`, the state is in the log.

        With `checkpoints`, they are below that address, and `names` lists a directory there.
        """
        queries = []
        for number, scenario in enumerate(scenarios):
            directory = work / f"query-{number}"
            scenario.write(directory / "input")
            local = f"{checkpoint_scheme}{directory / 'checkpoint'}"
            checkpoint = f"{checkpoints}/query-{number}" if checkpoints else local
            queries.append(Query(f"query_{number}", scenario, directory / "input", checkpoint, directory / "output"))
        (work / "markers").mkdir()
        kept = log_confs() if confs is None else confs
        return Run(work, queries, {**base_confs(master, work), **kept}, names=names)

    def start(
        self, fail_points: str = "", confs: Mapping[str, str] | None = None, python: str = sys.executable
    ) -> Driver:
        """Start a driver with all queries, with the PySpark of that Python."""
        return self._python("run", fail_points, confs or {}, python)

    def succeed(self, confs: Mapping[str, str] | None = None, python: str = sys.executable) -> None:
        """Run the queries to their end in a driver."""
        with self.start("", confs, python) as driver:
            driver.succeed()

    def kill_at(
        self, point: str, batch: int, confs: Mapping[str, str] | None = None, python: str = sys.executable
    ) -> Driver:
        """Start a driver, and kill it at a fail point, in that batch."""
        with self.start(f"{point}=pause@{batch}", confs, python) as driver:
            driver.wait_for_pause(point)
            driver.kill()
        return driver

    def start_to_stop(self, points: Mapping[str, int]) -> Driver:
        """Start a driver that stops all queries at each of the fail points, which have their batches."""
        self.stop_at = [self.work / "markers" / point for point in points]
        return self._python("stop", ";".join(f"{point}=pause@{batch}" for point, batch in points.items()), {})

    def submit(self, *arguments: str) -> Driver:
        """Start a driver with spark-submit and all settings as arguments."""
        return self._driver([*spark_submit(self.confs), *arguments], "run", "", {}, parent=None)

    def serve(self, port: int, fail_points: str = "") -> Driver:
        """Start a Spark Connect server with the jar and no settings of the log, and wait until it listens."""
        if not HAS_CONNECT_SERVER:
            pytest.skip("this PySpark has no Spark Connect server")
        confs = {
            **self._interpreting(fail_points, self.confs),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            # Python processes of the server run the functions of clients.
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
        }
        command = [*spark_submit(confs), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
        self.drivers += 1
        driver = start_driver(command, self._points(fail_points), self.work, f"server-{self.drivers}")
        driver.wait_until(lambda: listens("127.0.0.1", port), f"server on port {port}")
        return driver

    def client(self, port: int) -> Run:
        """The queries as clients of the Spark Connect server on that port run them."""
        return replace(self, remote=f"sc://127.0.0.1:{port}", confs={})

    def resume(self, fail_point: str) -> None:
        """End the pause at a fail point."""
        self._resumed(fail_point).touch()

    def repeat(self, fail_point: str) -> None:
        """Let a process stop again at a fail point, whose pause has ended."""
        self._resumed(fail_point).unlink()
        (self.work / "markers" / fail_point).unlink()

    def _resumed(self, fail_point: str) -> Path:
        return self.work / "markers" / f"{fail_point}.resume"

    def _points(self, fail_points: str) -> dict[str, str]:
        return {FAIL_POINTS: fail_points, FAIL_POINT_DIR: str(self.work / "markers")} if fail_points else {}

    def _interpreting(self, fail_points: str, confs: Mapping[str, str]) -> dict[str, str]:
        """The settings, with the test jar if there are fail points, which a class in it interprets."""
        return {**confs, "spark.jars": f"{confs['spark.jars']},{os.environ[TEST_JAR]}"} if fail_points else dict(confs)

    def finish(self, reader: Reader) -> None:
        """Run the queries to their end in the reader's application, and check results and states."""
        self.complete(reader)
        self.check_state(reader)

    def complete(self, reader: Reader) -> None:
        """Run the queries to their end in the reader's application, and check results."""
        self.proceed(reader)
        self.check()

    def proceed(self, reader: Reader) -> None:
        """Run the queries over the input that there is, in the reader's application."""
        of_session = {key: value for key, value in self.confs.items() if key.startswith("spark.sql.")}
        reader.do(self.write_spec("run", of_session, parent=None))

    def check_all(self, reader: Reader | None = None) -> None:
        """Check results and states."""
        self.check()
        self.check_state(reader)

    def check(self) -> None:
        """Check that every query's sink holds exactly the result."""
        for query in self.queries:
            differences = compare(query.scenario.result(), query.result())
            assert not differences, f"{query.name}: " + "\n".join(differences)

    def check_state(self, reader: Reader | None = None) -> None:
        """Check that another application can read every committed version of every store, and what they hold.

        A scenario may name the versions to read, because reading the many stores of a join is slow. Without a reader,
        the application is started with the run's settings.
        """
        if not READABLE_FORMATS:
            # This Spark has no reader of states; a right result is computed from the right state.
            for query in self.queries:
                # Other schemes are test file systems on local disks; the environment has the settings of S3.
                is_on_s3 = query.checkpoint.startswith("s3a:")
                place = query.checkpoint if is_on_s3 else query.checkpoint.rpartition("://")[2]
                with spark_dstl.open(place) as checkpoint:
                    assert not checkpoint.verify(deep=True).is_damaged
            return
        if reader is None:
            with self._python("read-state", "", {}) as driver:
                driver.succeed()
        else:
            kept = {key: value for key, value in self.confs.items() if key in IN_NO_CHECKPOINT}
            self.state.unlink(missing_ok=True)
            reader.do(self.write_spec("read-state", kept, parent=None))
        versions = json.loads(self.state.read_text(encoding="utf-8"))
        read: dict[str, set[int]] = defaultdict(set)
        for version in versions:
            read[version["query"]].add(version["batch"])
        for query in self.queries:
            expected = self.committed(query) & set(query.scenario.versions or self.committed(query))
            assert read[query.name] == expected, f"{query.name}: read {read[query.name]}, committed {expected}"
        scenarios = {query.name: query.scenario for query in self.queries}
        for version in versions:
            check_version(version, scenarios[version["query"]])

    @property
    def state(self) -> Path:
        """The file with the states that a driver has read."""
        return self.work / "state.json"

    def committed(self, query: Query) -> set[int]:
        """The batches in the commit log."""
        return {int(name) for name in self.names(f"{query.checkpoint}/commits") if name.isdigit()}

    def writer(self, query: Query, batch: int) -> tuple[str, str]:
        """The run and the host in the note of a commit entry."""
        note = json.loads((Path(query.checkpoint) / "commits" / str(batch)).read_bytes().splitlines()[2])
        return note["run"], note["host"]

    def _python(self, task: str, fail_points: str, confs: Mapping[str, str], python: str = sys.executable) -> Driver:
        return self._driver([python], task, fail_points, {**self.confs, **confs}, parent=os.getpid())

    def _driver(
        self, launcher: list[str], task: str, fail_points: str, confs: Mapping[str, str], parent: int | None
    ) -> Driver:
        """Start `query_driver.py`; the driver has the fail points in its environment, the executors in the settings."""
        points = self._points(fail_points)
        passed_on = {f"spark.executorEnv.{name}": value for name, value in points.items()}
        path = self.write_spec(task, {**self._interpreting(fail_points, confs), **passed_on}, parent)
        variables = {**points, "PYSPARK_PYTHON": launcher[0]} if Path(launcher[0]).name.startswith("python") else points
        return start_driver([*launcher, str(HERE / "query_driver.py"), str(path)], variables, self.work, path.stem)

    def write_spec(self, task: str, confs: Mapping[str, str], parent: int | None) -> Path:
        """Write the specification of the next driver; returns its path."""
        self.drivers += 1
        path = self.work / f"driver-{self.drivers}.json"
        path.write_text(json.dumps(self.specification(task, confs, parent), indent=2), encoding="utf-8")
        return path

    def specification(self, task: str, confs: Mapping[str, str], parent: int | None) -> dict[str, Any]:
        """The specification of a driver."""
        return {
            "task": task,
            "remote": self.remote,
            "transform_with_state": self.transform_with_state,
            "interval": self.interval,
            "confs": dict(confs),
            "queries": [query.spec() for query in self.queries],
            "status": str(self._status),
            "state": str(self.state),
            "stop_at": [str(marker) for marker in self.stop_at],
            # Spark's own provider loads a snapshot only with its coordinator, which reading states does not start.
            "touch_streams": self.transform_with_state or self.has_plain_snapshots,
            "parent": parent,
        }

    def stages(self) -> list[dict[str, int]]:
        """The running stages that the newest driver has written last."""
        path = self._status
        found: list[dict[str, int]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        return found

    @property
    def _status(self) -> Path:
        return self.work / f"status-{self.drivers}.json"


class Reader:
    """An application that reads the states of other runs, and runs their queries to the end. All tests share it.

    `confs` are settings of the storage where the states are.
    """

    def __init__(self, work: Path, confs: Mapping[str, str] | None = None) -> None:
        kept = confs or log_confs(TEST_JAR in os.environ)
        self._run = Run.create(work, confs=kept)
        self._run.confs.update(faults(fail=0, hang=0, lost_reply=0))
        self._driver: Driver | None = None

    def do(self, spec: Path) -> None:
        """Do the task of a specification, in a session with its settings; fails with the error of a task that fails."""
        if self._driver is None:
            path = self._run.write_spec("serve", self._run.confs, parent=None)
            command = [sys.executable, str(HERE / "query_driver.py"), str(path)]
            self._driver = start_driver(command, {}, self._run.work, path.stem, subprocess.PIPE)
        done = spec.with_suffix(".done")
        done.unlink(missing_ok=True)
        self._driver.tell(str(spec))
        try:
            self._driver.wait_until(done.exists, f"end of the task of {spec}")
        except Failed:
            self.close()
            raise
        error = done.read_text(encoding="utf-8")
        if error:
            raise Failed(f"the task of {spec} failed:\n{error}")

    def close(self) -> None:
        """End the application; the next read starts another."""
        if self._driver is not None:
            self._driver.kill()
            self._driver = None


def compare(expected: Windows, found: Windows, limit: int = 10) -> list[str]:
    """A line for each differing window."""
    keys = sorted(key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key))
    lines = [f"window {key}: expected {expected.get(key)}, found {found.get(key)}" for key in keys[:limit]]
    return lines + ([f"and {len(keys) - limit} more"] if len(keys) > limit else [])


def check_version(version: dict[str, Any], scenario: Scenario) -> None:
    """Check that the state of an aggregation after a batch is its result so far."""
    if not isinstance(scenario, Aggregation):
        return
    rows = version["rows"]
    found: Windows = {(start, key): (count, total) for start, key, count, total in rows}
    assert len(found) == len(rows), f"batch {version['batch']}: a window twice in the state"
    differences = compare(scenario.after(version["batch"] + 1), found)
    assert not differences, f"state after batch {version['batch']}: " + "\n".join(differences)


def listens(host: str, port: int) -> bool:
    """Whether a process listens on the port."""
    with socket.socket() as attempt:
        return attempt.connect_ex((host, port)) == 0


def free_port() -> int:
    """A port that no process listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
