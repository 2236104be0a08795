# SPDX-License-Identifier: Apache-2.0
"""The query of `make demo` on other storage: flights joined with their weather, and aggregated in sliding windows."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flights_input
import flights_query
from driver_process import Driver, start_driver
from flights_settings import Settings
from settings import IN_FULL, LOG_CONFIG
from storages import Storage

SLICES = 16
# Of 336,776 flights: all take minutes on each storage.
ROWS = None if IN_FULL else 60_000


@dataclass(frozen=True)
class MainJob:
    """The query, with its input, output and checkpoint."""

    settings: Settings
    batches: int

    @staticmethod
    def create(work: Path, storage: Storage) -> MainJob:
        """Write its input; its checkpoint is on the storage."""
        (work / "markers").mkdir()
        inputs = flights_input.prepare(work / "input", SLICES, ROWS)
        settings = Settings(
            work=str(work),
            flights=str(inputs.flights),
            weather=str(inputs.weather),
            log_config=str(LOG_CONFIG),
            partitions=2,
            stock=False,
            parent=os.getpid(),
            files="",
            location=f"{storage.root}/{work.name}/flights",
            # The package provides the log, as in the demo.
            storage=storage.reached({}),
        )
        settings.save()
        return MainJob(settings, inputs.files)

    def start(self, program: str, name: str) -> Driver:
        """Start one of its programs, `stream` or `check`."""
        command = [sys.executable, flights_query.__file__, str(self.settings.file), program]
        return start_driver(command, {}, Path(self.settings.work), name)

    def verdict(self) -> dict[str, Any]:
        """Return the batch computation's verdict on the stream's result."""
        with self.start("check", "check") as driver:
            driver.succeed()
        found: dict[str, Any] = json.loads(self.settings.verdict.read_text(encoding="utf-8"))
        return found
