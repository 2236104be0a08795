"""What long runs held and kept, as it is written down, and as docs/storage.md says it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures" / "storage-long-run.json"
MEBIBYTE = 1 << 20
IN_BYTES = ("heap", "resident", "bytes")
NAMES = {
    "threads": "threads of the driver",
    "heap": "heap of the driver, collected, MiB",
    "resident": "memory of the driver's process, MiB",
    "objects": "objects of the checkpoint",
    "bytes": "size of the checkpoint, MiB",
    "connections": "connections at the time",
}


def third(samples: Sequence[Mapping[str, int]], number: int) -> dict[str, float]:
    """The median of each figure in one third of the run."""
    size = len(samples) // 3
    chosen = samples[number * size : (number + 1) * size]
    return {what: statistics.median(sample[what] for sample in chosen) for what in chosen[0]}


def read(path: Path = FIGURES) -> dict[str, Any]:
    """All that there is, by storage."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def write(storage: str, seconds: int, samples: Sequence[Mapping[str, int]], path: Path = FIGURES) -> None:
    """Write the figures of one run down; those of other storages stay."""
    thirds = [third(samples, number) for number in range(3)]
    most = {what: max(sample[what] for sample in samples) for what in samples[0]}
    of_run = {"seconds": seconds, "batches": samples[-1]["batches"], "samples": len(samples), "most": most}
    found = {**read(path), storage: {**of_run, "thirds": thirds}}
    path.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def rows(figures: Mapping[str, Any]) -> list[str]:
    """Rows of the table: each figure's median in each third of each run, and the most of a sample."""
    return [
        f"| {storage} | {name} | {' | '.join(shown(what, value) for value in values(run, what))} |"
        for storage, run in figures.items()
        for what, name in NAMES.items()
        if what in run["most"]
    ]


def values(run: Mapping[str, Any], what: str) -> list[float]:
    """One figure in each third, and the most of it."""
    return [*(one[what] for one in run["thirds"]), run["most"][what]]


def shown(what: str, value: float) -> str:
    """A number as the table has it."""
    return f"{value / MEBIBYTE if what in IN_BYTES else value:,.0f}"
