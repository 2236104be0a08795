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

    @property
    def checkpoint(self) -> Path:
        return Path(self.work) / "checkpoint"

    @property
    def output(self) -> Path:
        return Path(self.work) / "output"

    @property
    def events(self) -> Path:
        return Path(self.work) / "events.jsonl"

    @property
    def verdict(self) -> Path:
        return Path(self.work) / "verdict.json"

    @property
    def file(self) -> Path:
        return Path(self.work) / "settings.json"

    def save(self) -> None:
        self.file.write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")

    @staticmethod
    def load(path: Path) -> Settings:
        return Settings(**json.loads(path.read_text(encoding="utf-8")))


class EventFile:
    """A file of JSON lines, one an event, flushed at once: what was told survives the process that told it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def append(self, **event: Any) -> None:
        with open(self._path, "a", encoding="utf-8") as out:
            out.write(json.dumps({"time": time.time(), **event}) + "\n")

    def new(self) -> Iterator[Event]:
        """The events since the last call. A line that is still being written, or was cut off, is left out."""
        if not self._path.exists():
            return
        with open(self._path, "rb") as lines:
            lines.seek(self._read)
            for line in lines:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield json.loads(line)
