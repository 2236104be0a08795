# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: cases that run in separate processes, one form of results, tables and charts."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pyspark
from matplotlib.figure import Figure
from plan import SLOTS
from rich.progress import Progress

from spark_dstl.release import installed_line

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".build" / "bench"
LOG_CONFIG = ROOT / "conf" / "log4j2-quiet.properties"
MAIN = "sparkdstl.bench.BenchMain"

# One JSON object a line, as a process of a benchmark writes them.
Lines = list[dict[str, Any]]


class BenchFailed(Exception):
    """A process of the benchmark failed."""


@dataclass
class Result:
    """What the processes of one case wrote, by contender, in the order in which they ended."""

    case: dict[str, Any]
    name: str
    # A sentence.
    storage: str = ""
    is_complete: bool = False
    processes: list[tuple[str, Lines]] = field(default_factory=list)


@dataclass(frozen=True)
class Figures:
    """A table of results."""

    title: str
    header: Sequence[str]
    legend: str
    rows: Sequence[Sequence[str]]

    def markdown(self) -> list[str]:
        """Return it as a section of a page."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return ["", f"## {self.title}", "", self.legend, "", *(f"| {' | '.join(line)} |" for line in lines)]


@dataclass(frozen=True)
class Report:
    """Tables, sentences that compare, and charts by the names of their files."""

    tables: Sequence[Figures]
    remarks: Sequence[str] = ()
    charts: Mapping[str, Figure] = field(default_factory=dict)

    def markdown(self, title: str, about: Sequence[str]) -> str:
        """Return the page with all of it."""
        lines = [f"# {title}", "", " ".join(about)]
        for name in self.charts:
            lines += ["", f"![{Path(name).stem}]({name})"]
        for table in self.tables:
            lines += table.markdown()
        lines += ["", *(f"- {remark}" for remark in self.remarks)] if self.remarks else []
        return "\n".join(lines) + "\n"


class Benchmark(ABC):
    """A list of cases, how one is measured, and what its results mean."""

    title: str
    command: str
    # Heap of the measured process, or of its driver.
    memory = "4g"

    def options(self, parser: argparse.ArgumentParser) -> None:  # noqa: B027
        """Add the options of this benchmark alone."""

    @abstractmethod
    def cases(self, options: argparse.Namespace) -> list[Any]:
        """Return what is to be measured: dataclasses with a `name`."""

    @abstractmethod
    def measure(self, case: Any, run: Measurement) -> None:
        """Run the processes of a case."""

    @abstractmethod
    def report(self, results: Sequence[Result]) -> Report:
        """Turn results into tables. Those of an interrupted run may be incomplete."""


@dataclass
class Measurement:
    """One case that is being measured, in a directory that is removed afterwards."""

    result: Result
    options: argparse.Namespace
    progress: Progress
    directory: Path
    memory: str

    def process(
        self,
        contender: str,
        spec: Mapping[str, Any],
        steps: int = 1,
        master: str | None = None,
        keep: bool = True,
        main: str = MAIN,
    ) -> None:
        """Run a JVM with that specification. What it writes is part of the result, also if it fails."""
        name = f"{self.result.name}-{contender}" if contender else self.result.name
        log = self.options.output / f"{name}.log"
        output, file = self.directory / "out.jsonl", self.directory / "spec.json"
        output.unlink(missing_ok=True)
        file.write_text(json.dumps({"output": str(output), **spec}), encoding="utf-8")
        task = self.progress.add_task(name, total=steps)
        if not self.progress.console.is_terminal:
            self.progress.console.print(name)
        home = _home(self.directory) if master else {}
        try:
            with child(command(file, self.directory, self.memory, master, main), log, home) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    if line.startswith("done "):
                        self.progress.update(task, completed=int(line.split()[1]))
                if process.wait() != 0:
                    self._keep_executors_logs(log)
                    raise BenchFailed(f"{name} ended with exit code {process.returncode}, its log is {log}")
            self.progress.update(task, completed=steps)
        finally:
            if keep:
                self.result.processes.append((contender, read(output)))

    def _keep_executors_logs(self, log: Path) -> None:
        with log.open("a", encoding="utf-8") as kept:
            for file in sorted((self.directory / "spark").glob("work/*/*/stderr")):
                kept.write(f"\nexecutor {file.parent.name}:\n{file.read_text(encoding='utf-8', errors='replace')}")


def read(output: Path) -> Lines:
    """Read what a process has written. The last line of a killed process may be incomplete."""
    whole = output.read_text(encoding="utf-8").rpartition("\n")[0] if output.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]


def save(results: Iterable[Result], benchmark: str, path: Path) -> None:
    """Write the results in one step: an interruption leaves the old ones or the new ones."""
    value = {"benchmark": benchmark, "results": [asdict(result) for result in results]}
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value), encoding="utf-8")
    temporary.replace(path)


def saved(path: Path) -> dict[str, Result]:
    """Read results, by the names of their cases."""
    found = json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else []
    return {value["name"]: Result(**value) for value in found}


def command(spec: Path, directory: Path, memory: str, master: str | None = None, main: str = MAIN) -> list[str]:
    """Compose the call of spark-submit. Without a master, all task slots are in the process itself."""
    line = installed_line().name
    kinds = ("", "-test", "-bench")
    jars = [str(path) for kind in kinds for path in ROOT.glob(f"target/spark-dstl{kind}-spark{line}_2.13-*.jar")]
    if len(jars) != 3:
        raise BenchFailed(f"the jars are not built: run `make bench SPARK={line}`")
    log_option = f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()}"
    confs = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(directory),
        "spark.driver.extraJavaOptions": log_option,
        "spark.executor.extraJavaOptions": log_option,
    }
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    options = {"--master": master or f"local[{SLOTS}]", "--driver-memory": memory, "--class": main}
    options["--jars"] = ",".join(jars[:2])
    pairs = [*options.items(), *(("--conf", f"{key}={value}") for key, value in confs.items())]
    return [submit, *(word for pair in pairs for word in pair), jars[2], str(spec)]


def unwind_on_sigterm() -> None:
    """Let SIGTERM unwind the stack, as Ctrl-C does: measured processes are stopped and their files are removed."""

    def terminated(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, terminated)


@contextmanager
def child(arguments: list[str], log: Path, variables: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Start a process in a separate group, which ends with the block. It listens on the loopback interface alone."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(
            arguments,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _home(directory: Path) -> dict[str, str]:
    """Make a home of Spark in that directory: executors have their directories below it."""
    made = directory / "spark"
    made.mkdir(exist_ok=True)
    for name in ("bin", "jars"):
        if not (made / name).exists():
            (made / name).symlink_to(Path(pyspark.__file__).parent / name)
    return {"SPARK_HOME": str(made)}
