"""Runs queries in driver processes of their own, and compares what they leave behind.

A `Run` is one checkpoint with its input and output; any number of drivers can be started on it, one after another.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import spark_dstl
from driver_process import Driver, Failed, start_driver
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
    stock,
    stock_confs,
)
from spark_facts import HAS_CONNECT_SERVER, READABLE_FORMATS

# What a reader of states does not learn from the checkpoint itself.
IN_NO_CHECKPOINT = {FORMAT_VERSION, *dstl(basePath="")}

HERE = Path(__file__).resolve().parent


def local_names(directory: str) -> list[str]:
    """What is in a directory of this machine."""
    return [path.name for path in Path(directory.split("://")[-1]).iterdir()]


@dataclass(frozen=True)
class Query:
    """One query: its scenario, and where it reads and writes."""

    name: str
    scenario: Scenario
    input: Path
    checkpoint: str
    output: Path

    def spec(self) -> dict[str, Any]:
        """What the driver needs to know of it."""
        return {
            "name": self.name,
            "kind": self.scenario.kind,
            "input": str(self.input),
            "checkpoint": self.checkpoint,
            "output": str(self.output),
            "versions": self.scenario.versions,
        }

    def at(self, checkpoint: str) -> Query:
        """The same with another checkpoint."""
        return replace(self, checkpoint=checkpoint)

    def result(self, batches: int | None = None) -> Windows:
        """What the sink holds: of every window, the row of the last batch, or of the first `batches`, that wrote it."""
        found: Windows = {}
        numbered = sorted((int(path.stem), path) for path in self.output.glob("*.json"))
        for number, path in numbered:
            if batches is not None and number >= batches:
                break
            for row in json.loads(path.read_text(encoding="utf-8")):
                found[row["start"], row["key"]] = (row["count"], row["sum"])
        return found

    def written(self) -> int:
        """How many batches the sink holds."""
        return len(list(self.output.glob("*.json")))


@dataclass
class Run:
    """Queries on their checkpoints, and the number of drivers started on them so far.

    With `configure`, the drivers get the log from `spark_dstl.configure` instead of from `confs`.
    With `remote`, they are clients of the Spark Connect server there. `transform_with_state` is what both ask
    `spark_dstl` for. With `interval`, queries begin a batch so often, and do not end with their input.
    """

    work: Path
    queries: list[Query]
    confs: dict[str, str]
    configure: bool = False
    remote: str = ""
    transform_with_state: bool = False
    names: Callable[[str], list[str]] = local_names
    has_plain_snapshots: bool = False
    interval: str = ""
    drivers: int = 0
    stop_at: Path | None = None

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
        """Write the input of every scenario. `confs` says where the state goes: `log_confs()` if not given.

        With `checkpoints`, they are below that address, where `names` says what is in a directory.
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
        """Start a driver on all queries, with the PySpark of that Python."""
        return self._python("run", fail_points, confs or {}, python)

    def start_to_stop(self, fail_points: str, point: str) -> Driver:
        """Start a driver that stops all queries once a thread has reached the fail point, and goes on for a while."""
        self.stop_at = self.work / "markers" / point
        return self._python("stop", fail_points, {})

    def submit(self, *arguments: str) -> Driver:
        """Start a driver with spark-submit, which gets all configuration as arguments."""
        import pyspark

        options = [part for key, value in self.confs.items() for part in ("--conf", f"{key}={value}")]
        script = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        return self._driver([str(script), *options, *arguments], "run", "", {}, parent=None)

    def serve(self, port: int, fail_points: str = "") -> Driver:
        """Start a Spark Connect server, which knows of the log by nothing but the jar, and wait until it listens."""
        import pyspark

        if not HAS_CONNECT_SERVER:
            pytest.skip("this PySpark has no Spark Connect server in it")
        confs = {
            **self._interpreting(fail_points, self.confs),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            # Functions of clients are run by Python processes of the server.
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
        }
        options = [part for key, value in confs.items() for part in ("--conf", f"{key}={value}")]
        script = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        main = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
        self.drivers += 1
        points = self._points(fail_points)
        driver = start_driver([str(script), *options, *main], points, self.work, f"server-{self.drivers}")
        driver.wait_until(lambda: listens("127.0.0.1", port), f"server on port {port}")
        return driver

    def client(self, port: int) -> Run:
        """The same queries, run by clients of the Spark Connect server on that port."""
        return replace(self, remote=f"sc://127.0.0.1:{port}", confs={})

    def resume(self, fail_point: str) -> None:
        """Let the thread go on that was paused."""
        (self.work / "markers" / f"{fail_point}.resume").touch()

    def _points(self, fail_points: str) -> dict[str, str]:
        return {FAIL_POINTS: fail_points, FAIL_POINT_DIR: str(self.work / "markers")} if fail_points else {}

    def _interpreting(self, fail_points: str, confs: Mapping[str, str]) -> dict[str, str]:
        """The settings with the test jar, if there are fail points: a class in it interprets them."""
        return {**confs, "spark.jars": f"{confs['spark.jars']},{os.environ[TEST_JAR]}"} if fail_points else dict(confs)

    def check(self) -> None:
        """Every query's sink holds exactly the result, each window once per batch."""
        for query in self.queries:
            differences = compare(query.scenario.result(), query.result())
            assert not differences, f"{query.name}: " + "\n".join(differences)

    def check_state(self, reader: Reader | None = None) -> None:
        """Every committed version of every store can be read by another application, and holds what it should.

        Of scenarios that say so, only the versions they name: reading the many stores of a join takes its time.

        Without a reader, the application is started for it, with the run's own configuration.
        """
        if not READABLE_FORMATS:
            # This Spark has no reader of states. That the result is right shows of the state what it was computed from.
            for query in self.queries:
                # File systems of the tests' own are on local disks; what leads to S3 is in the environment.
                is_on_s3 = query.checkpoint.startswith("s3a:")
                place = query.checkpoint if is_on_s3 else query.checkpoint.rpartition("://")[2]
                with spark_dstl.open(place) as checkpoint:
                    assert checkpoint.verify(deep=True).is_intact
            return
        if reader is None:
            with self._python("read-state", "", {}) as driver:
                driver.succeed()
        else:
            kept = {key: value for key, value in self.confs.items() if key in IN_NO_CHECKPOINT}
            reader.read(self.write_spec("read-state", kept, parent=None), self.state)
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
        """Where a driver that reads the state leaves it."""
        return self.work / "state.json"

    def committed(self, query: Query) -> set[int]:
        """The batches in the commit log."""
        return {int(name) for name in self.names(f"{query.checkpoint}/commits") if name.isdigit()}

    def _python(self, task: str, fail_points: str, confs: Mapping[str, str], python: str = sys.executable) -> Driver:
        return self._driver([python], task, fail_points, {**self.confs, **confs}, parent=os.getpid())

    def _driver(
        self, launcher: list[str], task: str, fail_points: str, confs: Mapping[str, str], parent: int | None
    ) -> Driver:
        """Start `query_driver.py`; fail points reach the driver by its environment, executors by configuration."""
        points = self._points(fail_points)
        passed_on = {f"spark.executorEnv.{name}": value for name, value in points.items()}
        path = self.write_spec(task, {**self._interpreting(fail_points, confs), **passed_on}, parent)
        variables = {**points, "PYSPARK_PYTHON": launcher[0]} if Path(launcher[0]).name.startswith("python") else points
        return start_driver([*launcher, str(HERE / "query_driver.py"), str(path)], variables, self.work, path.stem)

    def write_spec(self, task: str, confs: Mapping[str, str], parent: int | None) -> Path:
        """Write what the next driver is to do; returns where."""
        self.drivers += 1
        path = self.work / f"driver-{self.drivers}.json"
        path.write_text(json.dumps(self.specification(task, confs, parent), indent=2), encoding="utf-8")
        return path

    def specification(self, task: str, confs: Mapping[str, str], parent: int | None) -> dict[str, Any]:
        """What a driver is to do."""
        return {
            "task": task,
            "configure": self.configure,
            "remote": self.remote,
            "transform_with_state": self.transform_with_state,
            "interval": self.interval,
            "confs": dict(confs),
            "queries": [query.spec() for query in self.queries],
            "status": str(self._status),
            "state": str(self.state),
            "stop_at": str(self.stop_at),
            # Spark's own provider needs its coordinator to load a snapshot, which reading state alone does not start.
            "touch_streams": stock() or self.transform_with_state or self.has_plain_snapshots,
            "parent": parent,
        }

    def stages(self) -> list[dict[str, int]]:
        """The stages that the newest driver last saw running."""
        path = self._status
        found: list[dict[str, int]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        return found

    @property
    def _status(self) -> Path:
        return self.work / f"status-{self.drivers}.json"


class Reader:
    """An application that never runs a query and reads the states of others: one for all tests.

    With `confs`, those lead it to where the states are.
    """

    def __init__(self, work: Path, confs: Mapping[str, str] | None = None) -> None:
        kept = confs or (stock_confs() if stock() else log_confs(TEST_JAR in os.environ))
        self._run = Run.create(work, confs=kept)
        self._run.confs.update(faults(fail=0, hang=0, lost_reply=0))
        self._driver: Driver | None = None

    def read(self, spec: Path, state: Path) -> None:
        """Read the states that the specification names, and wait until they are in the given file."""
        state.unlink(missing_ok=True)
        if self._driver is None:
            path = self._run.write_spec("serve", self._run.confs, parent=None)
            command = [sys.executable, str(HERE / "query_driver.py"), str(path)]
            self._driver = start_driver(command, {}, self._run.work, path.stem, subprocess.PIPE)
        self._driver.tell(str(spec))
        try:
            self._driver.wait_until(state.exists, f"states of {spec}")
        except Failed:
            self.close()
            raise

    def close(self) -> None:
        """End the application; the next read starts another."""
        if self._driver is not None:
            self._driver.kill()
            self._driver = None


def compare(expected: Windows, found: Windows, limit: int = 10) -> list[str]:
    """The differing windows, a line each; empty if there are none."""
    keys = sorted(key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key))
    lines = [f"window {key}: expected {expected.get(key)}, found {found.get(key)}" for key in keys[:limit]]
    return lines + ([f"and {len(keys) - limit} more"] if len(keys) > limit else [])


def check_version(version: dict[str, Any], scenario: Scenario) -> None:
    """The state after a batch is the result of the batches so far, where the scenario keeps all of it."""
    if not isinstance(scenario, Aggregation):
        return
    rows = version["rows"]
    found: Windows = {(start, key): (count, total) for start, key, count, total in rows}
    assert len(found) == len(rows), f"batch {version['batch']}: a window twice in the state"
    differences = compare(scenario.after(version["batch"] + 1), found)
    assert not differences, f"state after batch {version['batch']}: " + "\n".join(differences)


def listens(host: str, port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as attempt:
        return attempt.connect_ex((host, port)) == 0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
