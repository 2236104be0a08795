# SPDX-License-Identifier: Apache-2.0
"""A shell with jobs and variables that tests type commands into."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from driver_process import Failed, Process


class Terminal(Process):
    """A bash in its own directory. Its processes end with the `with` block."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        log = directory / "terminal.log"
        super().__init__(["bash", "--norc", "--noprofile"], environment, log, subprocess.PIPE)
        self._directory = directory
        self._typed = 0
        self._jobs: set[int] = set()
        # Each job gets its own process group, as in an interactive shell.
        self.types("set -m")

    def types(self, commands: str) -> str:
        """Run some lines, wait until the last one has ended, and return their output. All must succeed."""
        self._typed += 1
        name = f"typed-{self._typed}"
        (self._directory / f"{name}.sh").write_text(commands, encoding="utf-8")
        done = self._directory / f"{name}.done"
        self.tell(f". ./{name}.sh > {name}.out 2>&1; echo $? $(jobs -p) > {name}.tmp; mv {name}.tmp {done}")
        self.wait_until(done.exists, f"end of {commands!r}")
        code, *jobs = map(int, done.read_text(encoding="utf-8").split())
        self._jobs |= set(jobs)
        printed = (self._directory / f"{name}.out").read_text(encoding="utf-8")
        if code != 0:
            raise Failed(f"{commands!r} ends with {code}:\n{printed}")
        return printed

    def kill(self) -> None:
        for group in self._jobs:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        super().kill()
