"""Turns what the growth benchmark has measured into figures: means, how they change, and requests by the hour."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from growth_plan import BATCH_MS, BATCHES_OF_AN_HOUR, Case
from plan import AGAINST_STOCK
from report import LABELS

OURS, STOCK = AGAINST_STOCK
KINDS = {"commits": "commit entries", "data file": "data files", "changelog": "changelogs", "snapshot": "snapshots"}
STORED_HEADER = (
    *("measurement", "state", "batches", "ms a batch", "objects", "of before", "MB", "of before"),
    *KINDS.values(),
    *("other", "live MB", "heap MB", "of before"),
)
STORED_LEGEND = (
    "What is below the checkpoint: means over the last third of the batches, and divided by those over the third "
    "before; of each kind, objects / MB. Live: tables of RocksDB. Heap: of the driver, with its tasks, after garbage "
    "collection. Ms a batch: from one to the next, those in which it was measured included."
)
REQUESTS_HEADER = ("measurement", "requests", "of", LABELS[OURS], LABELS[STOCK])
REQUESTS_LEGEND = (
    f"Requests in {BATCHES_OF_AN_HOUR} batches, an hour with a batch every {BATCH_MS // 1000} s, over the last third "
    "of the batches. Writes of snapshots: with spark-dstl data files, as commit entries are written anyway; only where "
    "changes are not in data files as well. Deletions: without Spark's entries of batches, which go one by one."
)


@dataclass(frozen=True)
class Sample:
    """What there was after so many batches."""

    batches: int
    millis: int
    # By kind of file.
    objects: dict[str, int]
    bytes: dict[str, int]
    heap: int | None
    live_bytes: int
    # Since the start, by request and kind of file.
    requests: dict[tuple[str, str], int]

    @staticmethod
    def of(line: dict[str, Any]) -> Sample:
        """Read what the JVM side has written."""
        return Sample(
            line["batches"],
            line["millis"],
            {kind: count for kind, (count, _) in line["stored"].items()},
            {kind: size for kind, (_, size) in line["stored"].items()},
            line.get("heap"),
            line["liveBytes"],
            {(asked["request"], asked["file"]): asked["count"] for asked in line["requests"]},
        )


@dataclass
class Curve:
    """What one contender's run has shown, as far as it has come."""

    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def samples(self) -> list[Sample]:
        """In the order of batches."""
        return [Sample.of(line) for line in self.lines]

    def third(self, number: int) -> list[Sample]:
        """Take the samples of the first, second or third part of the batches: 0, 1 or 2."""
        samples = self.samples
        of = samples[-1].batches / 3
        return [sample for sample in samples if number * of < sample.batches <= (number + 1) * of]

    def mean(self, figure: Callable[[Sample], float | None], third: int = 2) -> float:
        """Average what the samples of the last third have of it, or those of another one."""
        found = [value for value in map(figure, self.third(third)) if value is not None]
        return statistics.mean(found) if found else float("nan")

    def growth(self, figure: Callable[[Sample], float | None]) -> float:
        """Divide the last third's mean by that of the third before: 1 where a curve is flat."""
        return self.mean(figure) / self.mean(figure, 1)

    def hourly(self, request: str, file: str) -> float:
        """Count such requests in the batches of an hour, over the last third."""
        before, last = self.third(1)[-1], self.samples[-1]
        asked = last.requests.get((request, file), 0) - before.requests.get((request, file), 0)
        return asked / (last.batches - before.batches) * BATCHES_OF_AN_HOUR

    def batch_ms(self) -> float:
        """From one batch to the next, over the whole run."""
        samples = self.samples
        return (samples[-1].millis - samples[0].millis) / (samples[-1].batches - samples[0].batches)


@dataclass
class Grown:
    """One case's outcome, as far as it has come."""

    case: Case
    curves: dict[str, Curve] = field(default_factory=lambda: {name: Curve() for name in AGAINST_STOCK})

    @property
    def measured(self) -> dict[str, Curve]:
        """Those with samples enough for thirds."""
        return {name: curve for name, curve in self.curves.items() if len(curve.lines) >= 6}

    @property
    def compared(self) -> dict[str, Curve]:
        """Both, as far as both have come; none if one has not come far enough."""
        curves = self.measured
        if set(curves) != set(AGAINST_STOCK):
            return {}
        common = min(curve.lines[-1]["batches"] for curve in curves.values())
        return {
            name: Curve([line for line in curve.lines if line["batches"] <= common]) for name, curve in curves.items()
        }

    def stored_rows(self) -> list[list[str]]:
        """Make the rows of what is stored."""
        return [
            [
                self.case.name,
                LABELS[name],
                f"{curve.samples[-1].batches:,}",
                f"{curve.batch_ms():,.0f}",
                *with_growth(curve, all_objects, 1, ",.0f"),
                *with_growth(curve, all_bytes, 1e6, ",.2f"),
                *(of_kinds(curve, (kind,)) for kind in KINDS),
                of_kinds(curve, sorted({kind for sample in curve.samples for kind in sample.objects} - set(KINDS))),
                f"{curve.mean(lambda sample: sample.live_bytes) / 1e6:,.2f}",
                *with_growth(curve, lambda sample: sample.heap, 1e6, ",.1f"),
            ]
            for name, curve in self.measured.items()
        ]

    def background(self) -> dict[str, list[tuple[str, str]]]:
        """Name the requests that snapshots, retention and the search for orphans make."""
        kinds = sorted({file for curve in self.measured.values() for _, file in curve.samples[-1].requests})
        writes = [("PUT", "snapshot"), ("PUT", "data file")] if self.case.is_inline else []
        return {
            **({"writes of snapshots": writes} if writes else {}),
            "deletions": [("DELETE", kind) for kind in kinds if kind not in ("commits", "offsets")],
            "listings": [("LIST", kind) for kind in kinds],
        }

    def request_rows(self) -> list[list[str]]:
        """Make the rows of requests: first those of the background together, then each."""
        curves = self.measured

        def row(name: str, of: str, requests: Sequence[tuple[str, str]]) -> list[str]:
            counts = {of: sum(curve.hourly(*asked) for asked in requests) for of, curve in curves.items()}
            return [
                self.case.name,
                name,
                of,
                *(f"{counts[of]:,.0f}" if of in counts else "-" for of in AGAINST_STOCK),
            ]

        groups = self.background()
        together = [row(name, "background", asked) for name, asked in groups.items()]
        all_ = [asked for group in groups.values() for asked in group]
        seen = sorted({asked for curve in curves.values() for asked in curve.samples[-1].requests})
        each = [row(request, file, [(request, file)]) for request, file in seen]
        return [
            *together,
            row("all of these", "background", all_),
            *(found for found in each if set(found[3:]) != {"0"}),
        ]

    def lines(self) -> list[str]:
        """Compare with stock."""
        curves = self.compared
        if not curves:
            return []
        ours, stock = (curves[name].mean(all_bytes) for name in AGAINST_STOCK)
        asked = [asked for group in self.background().values() for asked in group]
        counts = [sum(curves[name].hourly(*of) for of in asked) for name in AGAINST_STOCK]
        batches = curves[OURS].lines[-1]["batches"]
        return [
            f"{self.case.name}: {ours / stock:.2f} times the bytes of {LABELS[STOCK]}, "
            f"in the last third of {batches:,} batches",
            f"{self.case.name}: {counts[0]:,.0f} background requests in {BATCHES_OF_AN_HOUR} batches, "
            f"{counts[1]:,.0f} of {LABELS[STOCK]}",
        ]

    def described(self) -> str:
        """Tell what was configured."""
        confs = ", ".join(f"`{key}={value}`" for key, value in self.case.confs().items())
        return f"{self.case.name}: {self.case.batches:,} batches, one every {self.case.period_ms} ms; {confs}."


def all_objects(sample: Sample) -> float:
    """Count all objects."""
    return sum(sample.objects.values())


def all_bytes(sample: Sample) -> float:
    """Add up the bytes of all objects."""
    return sum(sample.bytes.values())


def with_growth(curve: Curve, figure: Callable[[Sample], float | None], unit: float, form: str) -> list[str]:
    """Show a mean and how it has changed."""
    return [format(curve.mean(figure) / unit, form), f"{curve.growth(figure):.2f}"]


def of_kinds(curve: Curve, kinds: Sequence[str]) -> str:
    """Show how many objects of these kinds there are, and of how many MB."""
    objects = curve.mean(lambda sample: sum(sample.objects.get(kind, 0) for kind in kinds))
    size = curve.mean(lambda sample: sum(sample.bytes.get(kind, 0) for kind in kinds))
    return f"{objects:,.0f} / {size / 1e6:,.2f}"


def read(output: Path) -> Curve:
    """Take in what one process has written; its last line may be half a line, if it was killed."""
    whole = output.read_text(encoding="utf-8").rpartition("\n")[0] if output.exists() else ""
    return Curve([json.loads(line) for line in whole.splitlines()])
