# SPDX-License-Identifier: Apache-2.0
"""Shared by the demo and its child processes: settings, paths, and the file of events."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Event = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """Settings that the demo writes for its children. `parent` is the demo's process id."""

    work: str
    flights: str
    weather: str
    log_config: str
    partitions: int
    stock: bool
    parent: int
    # The checkpoint as a local directory and as a location for Spark, and the settings of that storage.
    files: str
    location: str
    storage: dict[str, str]

    @property
    def checkpoint(self) -> Path:
        """The local directory of the checkpoint."""
        return Path(self.files)

    @property
    def output(self) -> Path:
        """The output, with a directory for each batch."""
        return Path(self.work) / "output"

    @property
    def events(self) -> Path:
        """The file of events."""
        return Path(self.work) / "events.jsonl"

    @property
    def verdict(self) -> Path:
        """The file with the outcome of the check."""
        return Path(self.work) / "verdict.json"

    @property
    def file(self) -> Path:
        """The file of these settings."""
        return Path(self.work) / "settings.json"

    def save(self) -> None:
        """Write the settings for the children."""
        self.file.write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")

    @staticmethod
    def load(path: Path) -> Settings:
        """Read what `save` wrote."""
        return Settings(**json.loads(path.read_text(encoding="utf-8")))


class EventFile:
    """A file with an event per line as JSON. Each event is flushed, so that it survives its process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def append(self, **event: Any) -> None:
        """Append an event, with the time."""
        with self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"time": time.time(), **event}) + "\n")

    def new(self) -> Iterator[Event]:
        """Read the events since the last call; an incomplete last line is not read."""
        if not self._path.exists():
            return
        with self._path.open("rb") as lines:
            lines.seek(self._read)
            for line in lines:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield json.loads(line)
