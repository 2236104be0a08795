"""Turns what was measured into figures: percentiles of batch times, requests a batch, and differences to the floor."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FLOOR = "floor"
PERCENTILES = (50, 99, 99.9)
RESAMPLINGS = 1000
# Snapshots are taken in the background, by the same rules for all contenders.
BACKGROUND = ("snapshot",)
# What is asked of storage, as a batch's columns show it: writes, questions, listings, and all else.
WRITES, QUESTIONS, LISTINGS = ("PUT",), ("HEAD",), ("LIST",)
OTHERS = ("GET", "COPY", "DELETE")
# What a batch's state changes and its commit leave in storage.
STATE_FILES = ("changelog", "data file", "commits")
Asked = dict[tuple[str, str], tuple[int, int]]


@dataclass
class Contender:
    """What one contender did in one cell. A commit is the barrier, if there is one, and the commit entry's write."""

    batch_ms: list[float] = field(default_factory=list)
    commit_ms: list[float] = field(default_factory=list)
    # By (request, kind of file), over all counted batches.
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    # By batch, while it ran: by (request, kind of file), how many and how many bytes.
    batch_requests: list[Asked] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    # Of the newest batch whose requests were traced.
    paths: list[str] = field(default_factory=list)
    task_cpu_ms: float = 0
    # The most that the log held in memory at any time, in bytes.
    peak_in_flight: int = 0

    def percentile(self, percent: float) -> float | None:
        """Of the batch time, in milliseconds."""
        return percentile(self.batch_ms, percent)

    def commit_percentile(self, percent: float) -> float | None:
        """Of the time of a commit, in milliseconds."""
        return percentile(self.commit_ms, percent)

    def asked(self, wanted: Sequence[str]) -> float | None:
        """Take the median, over batches, of such requests made while a batch ran, snapshots left out."""
        counts = [
            sum(count for (request, file), (count, _) in batch.items() if request in wanted and file not in BACKGROUND)
            for batch in self.batch_requests
        ]
        return statistics.median(counts) if any(self.batch_requests) else None

    def all_requests(self) -> float:
        """Average all requests a batch, hedges and background work included, snapshots left out."""
        counted = sum(count for (_, file), count in self.requests.items() if file not in BACKGROUND)
        return counted / max(1, len(self.batch_ms))

    def stored_bytes(self) -> float | None:
        """Take the median, over batches, of the bytes of state changes and commit entries written."""
        stored = [
            sum(bytes_ for (request, file), (_, bytes_) in batch.items() if request == "PUT" and file in STATE_FILES)
            for batch in self.batch_requests
        ]
        return statistics.median(stored) if any(stored) else None

    def to_json(self) -> dict[str, Any]:
        """All that charts and tables are made from."""
        return {
            "batchMs": self.batch_ms,
            "commitMs": self.commit_ms,
            "requests": [
                {"request": request, "file": file, "count": count}
                for (request, file), count in sorted(self.requests.items())
            ],
            "batchRequests": [
                [[request, file, count, bytes_] for (request, file), (count, bytes_) in sorted(batch.items())]
                for batch in self.batch_requests
            ],
            "rows": self.rows,
            "paths": self.paths,
            "taskCpuMs": self.task_cpu_ms,
            "peakInFlight": self.peak_in_flight,
        }


@dataclass
class Measured:
    """One cell's outcome."""

    group: str
    workload: str
    partitions: int
    format_version: int
    contenders: dict[str, Contender]

    @property
    def name(self) -> str:
        """As in the plan."""
        return f"{self.group}-{self.workload}-{self.partitions}-v{self.format_version}"

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
            "formatVersion": self.format_version,
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
                [
                    {(request, file): (count, bytes_) for request, file, count, bytes_ in batch}
                    for batch in found["batchRequests"]
                ],
                found["rows"],
                found["paths"],
                found["taskCpuMs"],
                found["peakInFlight"],
            )
        return Measured(value["group"], value["workload"], value["partitions"], value["formatVersion"], contenders)


def throughput_ratio(cell: Measured, contender: str, other: str) -> tuple[float, float, float]:
    """Divide the contender's rows a second by the other's, from median batch times; with the limits of 95 in 100."""
    return ratio_of(cell, other, contender, statistics.median)


def p99_ratio(cell: Measured, contender: str, other: str) -> tuple[float, float, float] | None:
    """Divide 99th percentiles of batch times; with the limits of 95 in 100. `None` if there are too few batches."""
    if any(cell.contenders[name].percentile(99) is None for name in (contender, other)):
        return None
    return ratio_of(cell, contender, other, lambda times: percentile(times, 99) or 0.0)


def ratio_of(
    cell: Measured, contender: str, other: str, figure: Callable[[Sequence[float]], float]
) -> tuple[float, float, float]:
    """Divide a figure of the contender's batch times by the other's; with the limits of 95 resamplings in 100."""
    rounds = list(zip(cell.contenders[contender].batch_ms, cell.contenders[other].batch_ms, strict=True))

    def ratio(drawn: Sequence[tuple[float, float]]) -> float:
        own, others = zip(*drawn, strict=True)
        return float(figure(own) / figure(others))

    chance = random.Random(0)
    resampled = sorted(ratio(chance.choices(rounds, k=len(rounds))) for _ in range(RESAMPLINGS))
    return ratio(rounds), resampled[int(RESAMPLINGS * 0.025)], resampled[int(RESAMPLINGS * 0.975) - 1]


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Take the nearest rank; `None` where there are so few values that it would be the largest anyway."""
    rank = math.ceil(round(len(values) * percent / 100, 6))
    return sorted(values)[rank - 1] if rank < len(values) else None


def read(group: str, workload: str, partitions: int, format_version: int, output: Path) -> Measured:
    """Read the lines that a process of the benchmark wrote."""
    contenders: dict[str, Contender] = defaultdict(Contender)
    for line in output.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        contender = contenders[entry["contender"]] if entry["contender"] else Contender()
        if entry["kind"] == "batch":
            contender.batch_ms.append(entry["durations"]["triggerExecution"])
            contender.commit_ms.append(entry["durations"].get("commitOffsets", 0))
            contender.batch_requests.append(
                {(of["request"], of["file"]): (of["count"], of["bytes"]) for of in entry["requests"]}
            )
            contender.rows.append(entry["rows"])
            contender.paths = entry.get("paths", [])
        elif entry["kind"] == "requests":
            contender.requests[entry["request"], entry["file"]] += entry["count"]
        elif entry["kind"] == "cpu":
            contender.task_cpu_ms = entry["taskNanos"] / 1e6
        elif entry["kind"] == "memory":
            contender.peak_in_flight = entry["bytes"]
    return Measured(group, workload, partitions, format_version, dict(contenders))
