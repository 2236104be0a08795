"""Turns what was measured into figures: percentiles of batch times, requests a batch, and differences to the floor."""

from __future__ import annotations

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FLOOR = "floor"
PERCENTILES = (50, 99, 99.9)
RESAMPLINGS = 1000
# Snapshots are taken in the background, by the same rules for all contenders.
BACKGROUND = ("snapshot",)


@dataclass
class Contender:
    """What one contender did in one cell. A commit is the barrier, if there is one, and the commit entry's write."""

    batch_ms: list[float] = field(default_factory=list)
    commit_ms: list[float] = field(default_factory=list)
    # By (request, kind of file), over all counted batches.
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    task_cpu_ms: float = 0
    # The most that the log held in memory at any time, in bytes.
    peak_in_flight: int = 0

    def percentile(self, percent: float) -> float | None:
        """Of the batch time, in milliseconds."""
        return percentile(self.batch_ms, percent)

    def commit_percentile(self, percent: float) -> float | None:
        """Of the time of a commit, in milliseconds."""
        return percentile(self.commit_ms, percent)

    def writes(self) -> float:
        """Count object writes a batch, snapshots left out."""
        return self._requests(lambda request: request == "PUT")

    def others(self) -> float:
        """Count requests a batch that write nothing, snapshots left out."""
        return self._requests(lambda request: request != "PUT")

    def _requests(self, wanted: Any) -> float:
        counted = sum(
            count for (request, file), count in self.requests.items() if file not in BACKGROUND and wanted(request)
        )
        return counted / max(1, len(self.batch_ms))

    def to_json(self) -> dict[str, Any]:
        """All that charts and tables are made from."""
        return {
            "batchMs": self.batch_ms,
            "commitMs": self.commit_ms,
            "requests": [
                {"request": request, "file": file, "count": count}
                for (request, file), count in sorted(self.requests.items())
            ],
            "taskCpuMs": self.task_cpu_ms,
            "peakInFlight": self.peak_in_flight,
        }


@dataclass
class Measured:
    """One cell's outcome."""

    group: str
    workload: str
    partitions: int
    contenders: dict[str, Contender]

    def over_floor(self, contender: str, percent: float) -> float | None:
        """Subtract the floor's percentile of the batch time from the contender's; in milliseconds."""
        floor = self.contenders.get(FLOOR)
        own = self.contenders[contender].percentile(percent)
        base = floor.percentile(percent) if floor else None
        return None if own is None or base is None else own - base

    def over_floor_interval(self, contender: str, percent: float) -> tuple[float, float] | None:
        """Tell between which values `over_floor` is in 95 of 100 resamplings of the rounds; in milliseconds.

        The bootstrap (Efron 1979): how much of a difference may be chance, whatever the distribution is. Rounds are
        drawn, not batches, because what the machine does in a round meets all contenders.
        """
        floor = self.contenders.get(FLOOR)
        if floor is None or self.over_floor(contender, percent) is None:
            return None
        chance = random.Random(0)
        rounds = list(zip(self.contenders[contender].batch_ms, floor.batch_ms, strict=True))

        def resampled() -> float:
            drawn = chance.choices(rounds, k=len(rounds))
            own, base = (percentile(values, percent) or 0.0 for values in zip(*drawn, strict=True))
            return own - base

        differences = sorted(resampled() for _ in range(RESAMPLINGS))
        return differences[int(RESAMPLINGS * 0.025)], differences[int(RESAMPLINGS * 0.975) - 1]

    def to_json(self) -> dict[str, Any]:
        """With all batch times, so that others can compute what they like."""
        return {
            "group": self.group,
            "workload": self.workload,
            "partitions": self.partitions,
            "contenders": {name: contender.to_json() for name, contender in self.contenders.items()},
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Measured:
        """Read what `to_json` has made."""
        contenders = {}
        for name, found in value["contenders"].items():
            requests = Counter({(entry["request"], entry["file"]): entry["count"] for entry in found["requests"]})
            contenders[name] = Contender(
                found["batchMs"],
                found["commitMs"],
                requests,
                found["taskCpuMs"],
                found["peakInFlight"],
            )
        return Measured(value["group"], value["workload"], value["partitions"], contenders)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Take the nearest rank; `None` where there are so few values that it would be the largest anyway."""
    rank = math.ceil(round(len(values) * percent / 100, 6))
    return sorted(values)[rank - 1] if rank < len(values) else None


def read(group: str, workload: str, partitions: int, output: Path) -> Measured:
    """Read the lines that a process of the benchmark wrote."""
    contenders: dict[str, Contender] = defaultdict(Contender)
    for line in output.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        contender = contenders[entry["contender"]] if entry["contender"] else Contender()
        if entry["kind"] == "batch":
            contender.batch_ms.append(entry["durations"]["triggerExecution"])
            contender.commit_ms.append(entry["durations"].get("commitOffsets", 0))
        elif entry["kind"] == "requests":
            contender.requests[entry["request"], entry["file"]] += entry["count"]
        elif entry["kind"] == "cpu":
            contender.task_cpu_ms = entry["taskNanos"] / 1e6
        elif entry["kind"] == "memory":
            contender.peak_in_flight = entry["bytes"]
    return Measured(group, workload, partitions, dict(contenders))
