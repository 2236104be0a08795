"""Runs queries in driver processes of their own, kills them, and compares what they leave behind.

A `Run` is one checkpoint with its input and output; any number of drivers can be started on it, one after another.
Every process a test starts is in the group of its driver and ends with the test, whatever happens.

The tests run against the jar of the installed package `spark_dstl`, or the one named by `SPARK_DSTL_JAR`;
`SPARK_DSTL_TEST_JAR` names further jars with test classes, comma separated. `SPARK_DSTL_TEST_PROVIDER=stock` runs what
does not need the log against Spark's own provider.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from scenarios import Aggregation, Scenario, Windows

HERE = Path(__file__).resolve().parent
LOG_CONFIG = HERE.parent / "conf" / "log4j2-quiet.properties"
# Generous, because it only bounds how long a failure takes to show.
DEADLINE_SECONDS = float(os.environ.get("SPARK_DSTL_TEST_DEADLINE", "180"))
POLL_SECONDS = 0.05
LOG_TAIL_LINES = 60

STATE_STORE = "spark.sql.streaming.stateStore"
OURS = "org.apache.spark.sql.execution.streaming.state.dstl"
PROVIDER = f"{OURS}.DstlStateStoreProvider"
FILE_MANAGER = f"{OURS}.DstlCheckpointFileManager"
STOCK_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FILE_MANAGER_KEY = "spark.sql.streaming.checkpointFileManagerClass"

TEST_JAR = "SPARK_DSTL_TEST_JAR"
FAIL_POINTS = "SPARK_DSTL_FAIL_POINTS"
FAIL_POINT_DIR = "SPARK_DSTL_FAIL_POINT_DIR"


def stock() -> bool:
    """Whether the tests run against Spark's own provider."""
    return os.environ.get("SPARK_DSTL_TEST_PROVIDER") == "stock"


def jars(with_tests: bool = False) -> str:
    """The jars to give to Spark."""
    named = os.environ.get("SPARK_DSTL_JAR")
    if not named:
        import spark_dstl

        named = str(spark_dstl.jar_path())
    return f"{named},{os.environ[TEST_JAR]}" if with_tests else named


def base_confs(master: str, work: Path) -> dict[str, str]:
    """What all sessions of the tests have in common, whatever keeps their state."""
    # Short lives: compiling code well takes longer than it saves.
    java_options = f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    confs = {
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": java_options,
        "spark.executor.extraJavaOptions": java_options,
        "spark.executor.memory": "1g",
        "spark.local.dir": str(work / "local"),
        "spark.locality.wait": "0",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.shuffle.partitions": "4",
        f"{STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    }
    if master.startswith("local-cluster"):
        # The executors run in directories of their own below this one.
        confs["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(sys.path)
    return confs


def stock_confs() -> dict[str, str]:
    """State in Spark's own changelog files."""
    return {f"{STATE_STORE}.providerClass": STOCK_PROVIDER}


def log_confs(with_tests: bool = False) -> dict[str, str]:
    """State in the log."""
    return {
        "spark.jars": jars(with_tests),
        f"{STATE_STORE}.providerClass": PROVIDER,
        FILE_MANAGER_KEY: FILE_MANAGER,
    }


def dstl(**options: str) -> dict[str, str]:
    """Options of the log, with `__` for the dot: `dstl(inline__maxSegmentSize="0")`."""
    return {f"{STATE_STORE}.dstl.{name.replace('__', '.')}": value for name, value in options.items()}


class Failed(AssertionError):
    """Something did not happen; the message ends with the driver's log."""


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

    def result(self) -> Windows:
        """What the sink holds: of every window, the row of the last batch that wrote it."""
        found: Windows = {}
        for path in sorted(self.output.glob("*.json"), key=lambda path: int(path.stem)):
            for row in json.loads(path.read_text(encoding="utf-8")):
                found[row["start"], row["key"]] = (row["count"], row["sum"])
        return found

    def written(self) -> int:
        """How many batches the sink holds."""
        return len(list(self.output.glob("*.json")))


class Driver:
    """A driver process, its JVM and its executors, in one process group. Ends with the `with` block."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        markers: Path,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self._log = log
        self._markers = markers
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=stdin,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
                start_new_session=True,
            )

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a condition while the driver runs."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not holds():
            if self._process.poll() is not None and not holds():
                raise self.failed(f"the driver ended with {self._process.returncode} before {what}")
            if time.monotonic() > deadline:
                raise self.failed(f"no {what} within {DEADLINE_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)

    def wait_for_pause(self, fail_point: str) -> int:
        """Wait until a fail point was reached; returns the id of the process that did."""
        marker = self._markers / fail_point
        self.wait_until(lambda: marker.exists() and marker.read_text().strip() != "", f"fail point {fail_point}")
        return int(marker.read_text().strip())

    def tell(self, line: str) -> None:
        """Write a line to the driver's standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def wait(self) -> int:
        """Wait for the end; returns the exit code."""
        try:
            return self._process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            raise self.failed(f"still running after {DEADLINE_SECONDS:.0f} s") from None

    def succeed(self) -> None:
        """Wait for a good end."""
        code = self.wait()
        if code != 0:
            raise self.failed(f"the driver ended with {code}")

    def kill(self) -> None:
        """SIGKILL to the driver and all its executors."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def kill_executor(self, pid: int) -> None:
        """SIGKILL to one executor, which must be one of this driver's."""
        if pid not in self.executors():
            raise self.failed(f"process {pid} is none of the executors {self.executors()}")
        os.kill(pid, signal.SIGKILL)

    def executors(self) -> list[int]:
        """The ids of the executor processes that live now."""
        return [
            pid
            for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
            if _group(pid) == self._process.pid and "CoarseGrainedExecutorBackend" in _command_line(pid)
        ]

    def log(self) -> str:
        """What the driver and, with spark-submit or local masters, its executors have said."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def failed(self, what: str) -> Failed:
        """An error that shows the end of the log."""
        tail = "\n".join(self.log().splitlines()[-LOG_TAIL_LINES:])
        return Failed(f"{what}; the last lines of {self._log}:\n{tail}")

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()


@dataclass
class Run:
    """Queries on their checkpoints, and the number of drivers started on them so far.

    With `configure`, the drivers get the log from `spark_dstl.configure` instead of from `confs`.
    """

    work: Path
    queries: list[Query]
    confs: dict[str, str]
    configure: bool = False
    drivers: int = 0

    @staticmethod
    def create(
        work: Path,
        *scenarios: Scenario,
        master: str = "local[2]",
        confs: Mapping[str, str] | None = None,
        checkpoint_scheme: str = "",
    ) -> Run:
        """Write the input of every scenario. `confs` says where the state goes: `log_confs()` if not given."""
        queries = []
        for number, scenario in enumerate(scenarios):
            directory = work / f"query-{number}"
            scenario.write(directory / "input")
            checkpoint = f"{checkpoint_scheme}{directory / 'checkpoint'}"
            queries.append(Query(f"query_{number}", scenario, directory / "input", checkpoint, directory / "output"))
        (work / "markers").mkdir()
        kept = log_confs() if confs is None else confs
        return Run(work, queries, {**base_confs(master, work), **kept})

    def start(self, fail_points: str = "", confs: Mapping[str, str] | None = None) -> Driver:
        """Start a driver on all queries."""
        return self._python("run", fail_points, confs or {})

    def submit(self, *arguments: str) -> Driver:
        """Start a driver with spark-submit, which gets all configuration as arguments."""
        import pyspark

        options = [part for key, value in self.confs.items() for part in ("--conf", f"{key}={value}")]
        script = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        return self._driver([str(script), *options, *arguments], "run", "", {}, parent=None)

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
        if reader is None:
            with self._python("read-state", "", {}) as driver:
                driver.succeed()
        else:
            reader.read(self.write_spec("read-state", {}, parent=None), self.state)
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
        checkpoint = Path(query.checkpoint.split("://")[-1])
        return {int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit()}

    def _python(self, task: str, fail_points: str, confs: Mapping[str, str]) -> Driver:
        return self._driver([sys.executable], task, fail_points, {**self.confs, **confs}, parent=os.getpid())

    def _driver(
        self, launcher: list[str], task: str, fail_points: str, confs: Mapping[str, str], parent: int | None
    ) -> Driver:
        """Start `query_driver.py`; fail points reach the driver by its environment, executors by configuration."""
        points = {FAIL_POINTS: fail_points, FAIL_POINT_DIR: str(self.work / "markers")} if fail_points else {}
        passed_on = {f"spark.executorEnv.{name}": value for name, value in points.items()}
        path = self.write_spec(task, {**confs, **passed_on}, parent)
        return start_driver([*launcher, str(HERE / "query_driver.py"), str(path)], points, self.work, path.stem)

    def write_spec(self, task: str, confs: Mapping[str, str], parent: int | None) -> Path:
        """Write what the next driver is to do; returns where."""
        self.drivers += 1
        spec: dict[str, Any] = {
            "task": task,
            "configure": self.configure,
            "confs": dict(confs),
            "queries": [query.spec() for query in self.queries],
            "status": str(self.work / "status.json"),
            "state": str(self.state),
            "touch_streams": stock(),
            "parent": parent,
        }
        path = self.work / f"driver-{self.drivers}.json"
        path.write_text(json.dumps(spec, indent=2), encoding="utf-8")
        return path

    def stages(self) -> list[dict[str, int]]:
        """The stages that the driver last saw running."""
        path = self.work / "status.json"
        found: list[dict[str, int]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        return found


class Reader:
    """An application that never runs a query and reads the states of others: one for all tests."""

    def __init__(self, work: Path) -> None:
        self._run = Run.create(work, confs=stock_confs() if stock() else log_confs(TEST_JAR in os.environ))
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


def start_driver(
    command: Sequence[str], variables: Mapping[str, str], work: Path, name: str, stdin: int = subprocess.DEVNULL
) -> Driver:
    """Start a driver whose log is `<name>.log` in its working directory."""
    environment = {**os.environ, **variables, "PYSPARK_PYTHON": sys.executable, "PYTHONUNBUFFERED": "1"}
    return Driver(command, environment, work / f"{name}.log", work / "markers", stdin)


def faults(fail: float = 0.05, hang: float = 0.01, lost_reply: float = 0.01, seed: int = 0) -> dict[str, str]:
    """Settings of the file system `faulty://`: how many writes fail, hang for 30 s, or succeed with an error."""
    key = "spark.hadoop.fs.faulty"
    return {
        f"{key}.impl": "sparkdstl.testing.FaultyFileSystem",
        f"{key}.fail.ratio": str(fail),
        f"{key}.hang.ratio": str(hang),
        f"{key}.hang.ms": "30000",
        f"{key}.lost.reply.ratio": str(lost_reply),
        f"{key}.seed": str(seed),
    }


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


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
