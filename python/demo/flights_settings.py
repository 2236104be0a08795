# SPDX-License-Identifier: Apache-2.0
"""What the demo and its child processes share: where things are, and the file of events they talk through."""

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
    """What a child needs to know; written by the demo. `parent` is the demo's process id."""

    work: str
    flights: str
    weather: str
    log_config: str
    partitions: int
    stock: bool
    parent: int
    # Where the checkpoint's files are to be seen, how Spark calls the place, and what a session needs to reach it.
    files: str
    location: str
    storage: dict[str, str]

    @property
    def checkpoint(self) -> Path:
        """The files of the query's checkpoint."""
        return Path(self.files)

    @property
    def output(self) -> Path:
        """Where the sink keeps a directory per batch."""
        return Path(self.work) / "output"

    @property
    def events(self) -> Path:
        """Where the query tells what happens to it."""
        return Path(self.work) / "events.jsonl"

    @property
    def verdict(self) -> Path:
        """Where the check leaves its outcome."""
        return Path(self.work) / "verdict.json"

    @property
    def file(self) -> Path:
        """Where these settings are kept."""
        return Path(self.work) / "settings.json"

    def save(self) -> None:
        """Write them down for the children."""
        self.file.write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")

    @staticmethod
    def load(path: Path) -> Settings:
        """Read what `save` wrote."""
        return Settings(**json.loads(path.read_text(encoding="utf-8")))


class EventFile:
    """A file of JSON lines, one an event, flushed at once: events survive the process that wrote them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def append(self, **event: Any) -> None:
        """Tell an event; the time is added."""
        with self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"time": time.time(), **event}) + "\n")

    def new(self) -> Iterator[Event]:
        """Read the events since the last call. A line that is still being written, or was cut off, is left out."""
        if not self._path.exists():
            return
        with self._path.open("rb") as lines:
            lines.seek(self._read)
            for line in lines:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield json.loads(line)
