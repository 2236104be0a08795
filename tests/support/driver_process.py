# SPDX-License-Identifier: Apache-2.0
"""Starts, watches and kills processes, such as drivers.

Every process that a test starts is in the process group of its driver or server and ends with the test.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

# Generous, because only failures take that long.
DEADLINE_SECONDS = float(os.environ.get("SPARK_DSTL_TEST_DEADLINE", "180"))
POLL_SECONDS = 0.05
LOG_TAIL_LINES = 60


class Failed(AssertionError):
    """A process did not do what the test expects; the message ends with its log."""


class Process:
    """A process in its own process group. Ends with the `with` block."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, stdin: int = subprocess.DEVNULL
    ) -> None:
        self._command = command
        self._environment = environment
        self._log = log
        self._stdin = stdin
        log.unlink(missing_ok=True)
        self.restart()

    def restart(self) -> None:
        """Start the process, again if it was killed."""
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command,
                env=dict(self._environment),
                stdin=self._stdin,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self._log.parent,
                start_new_session=True,
            )

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a condition while the process runs."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not holds():
            if self._process.poll() is not None and not holds():
                raise self.failed(f"the process ended with {self._process.returncode} before {what}")
            if time.monotonic() > deadline:
                raise self.failed(f"no {what} within {DEADLINE_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def wait(self) -> int:
        """Wait for the end; returns the exit code."""
        try:
            return self._process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            raise self.failed(f"still running after {DEADLINE_SECONDS:.0f} s") from None

    def succeed(self) -> None:
        """Wait for the end with exit code 0."""
        code = self.wait()
        if code != 0:
            raise self.failed(f"the process ended with {code}")

    def kill(self) -> None:
        """SIGKILL to the process and all that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stall(self) -> None:
        """Stop the process and all that it has started by SIGSTOP; their connections stay open."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """End a stall."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def log(self) -> str:
        """Its output; that of a driver with a local master has that of the tasks."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def failed(self, what: str) -> Failed:
        """An error that shows the end of the log."""
        tail = "\n".join(self.log().splitlines()[-LOG_TAIL_LINES:])
        return Failed(f"{what}; the last lines of {self._log}:\n{tail}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()


class Driver(Process):
    """A driver process, its JVM and its executors, in one process group."""

    def wait_for_pause(self, fail_point: str) -> int:
        """Wait until a process reaches a fail point; returns its id."""
        marker = self._log.parent / "markers" / fail_point
        self.wait_until(lambda: marker.exists() and marker.read_text().strip() != "", f"fail point {fail_point}")
        return int(marker.read_text().strip())

    def wait_for_log(self, text: str) -> None:
        """Wait until the log contains a text."""
        self.wait_until(lambda: text in self.log(), f"log with {text!r}")

    def kill_executor(self, pid: int) -> None:
        """SIGKILL to one executor."""
        self._signal(pid, signal.SIGKILL)

    def decommission_executor(self, pid: int) -> None:
        """SIGPWR to one executor, by which a cluster manager decommissions it."""
        self._signal(pid, signal.SIGPWR)

    def terminate_executor(self, pid: int) -> None:
        """SIGTERM to one executor, as a container gets it."""
        self._signal(pid, signal.SIGTERM)

    def _signal(self, pid: int, number: signal.Signals) -> None:
        if pid not in self.executors():
            raise self.failed(f"process {pid} is none of the executors {self.executors()}")
        os.kill(pid, number)

    def executors(self) -> list[int]:
        """The ids of the live executor processes."""
        return [
            pid
            for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
            if _group(pid) == self._process.pid and "CoarseGrainedExecutorBackend" in _command_line(pid)
        ]


def start_driver(
    command: Sequence[str], variables: Mapping[str, str], work: Path, name: str, stdin: int = subprocess.DEVNULL
) -> Driver:
    """Start a driver in the working directory, with the log `<name>.log`."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONUNBUFFERED": "1", **variables}
    return Driver(command, environment, work / f"{name}.log", stdin)


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


def spark_submit(confs: Mapping[str, str]) -> list[str]:
    """The command, with settings."""
    import pyspark

    options = [part for key, value in confs.items() for part in ("--conf", f"{key}={value}")]
    return [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), *options]
