# SPDX-License-Identifier: Apache-2.0
"""The progress of a command, on standard error if that is a terminal."""

import sys
import time
from collections.abc import Callable
from typing import Any

from spark_dstl.dependencies import needed
from spark_dstl.errors import MissingPackage

PURPOSE = "This command"
_QUIET_SECONDS = 1.0


class ProgressLine:
    """A bar on standard error for what takes longer than a second; it disappears at the end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, what: str, done: int, of: int) -> None:
        """Show how much of something is done."""
        if self._bar is None:
            if not sys.stderr.isatty() or self._clock() - self._began < _QUIET_SECONDS:
                return
            try:
                console = needed("rich.console", PURPOSE).Console(stderr=True, force_terminal=True)
                self._bar = needed("rich.progress", PURPOSE).Progress(console=console, transient=True)
            except MissingPackage:
                return
            self._bar.start()
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(what, total=of)
        self._bar.update(self._tasks[what], completed=done, total=of, refresh=done == of)
