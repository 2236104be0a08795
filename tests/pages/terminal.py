# SPDX-License-Identifier: Apache-2.0
"""A shell with jobs and variables that tests type commands into."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from driver_process import DEADLINE_SECONDS, POLL_SECONDS, Failed


class Terminal:
    """A bash in its own directory. Its processes end with the `with` block."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._typed = 0
        self._jobs: set[int] = set()
        with (directory / "terminal.log").open("wb") as out:
            self._shell = subprocess.Popen(
                ["bash", "--norc", "--noprofile"],
                env=dict(environment),
                cwd=directory,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # Each job gets its own process group, as in an interactive shell.
        self.types("set -m")

    def types(self, commands: str) -> str:
        """Run some lines, wait until the last one has ended, and return their output. All must succeed."""
        self._typed += 1
        name = f"typed-{self._typed}"
        (self._directory / f"{name}.sh").write_text(commands, encoding="utf-8")
        done = self._directory / f"{name}.done"
        stdin = self._shell.stdin
        assert stdin is not None
        stdin.write(
            f". ./{name}.sh > {name}.out 2>&1; echo $? $(jobs -p) > {name}.tmp; mv {name}.tmp {done}\n".encode()
        )
        stdin.flush()
        self.wait_until(done.exists, f"end of {commands!r}")
        code, *jobs = map(int, done.read_text(encoding="utf-8").split())
        self._jobs |= set(jobs)
        printed = (self._directory / f"{name}.out").read_text(encoding="utf-8")
        if code != 0:
            raise Failed(f"{commands!r} ends with {code}:\n{printed}")
        return printed

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a condition while the shell runs."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not holds():
            if self._shell.poll() is not None:
                raise Failed(f"the shell ended before {what}")
            if time.monotonic() > deadline:
                raise Failed(f"no {what} within {DEADLINE_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for group in (*self._jobs, self._shell.pid):
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._shell.wait()
