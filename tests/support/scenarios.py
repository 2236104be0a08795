# SPDX-License-Identifier: Apache-2.0
"""Small streams with results that plain Python computes.

Every scenario writes the input files of a query and computes the exact result; some compute the exact state after each
batch. Files cover successive time ranges, so no row is late; within a file, rows are out of order.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from typing_extensions import Self

MINUTE = 60
WINDOW = 20 * MINUTE
SLIDE = 10 * MINUTE
FILE_SPAN = 30 * MINUTE
JOIN_RANGE = 5 * MINUTE
EPOCH = 1_700_000_400  # a multiple of the slide, so that windows start at round times
KEYS = 12
FIRST_MODIFIED = 1_600_000_000

Row = Mapping[str, int | str]
# (window start, key) -> (count, sum)
Windows = dict[tuple[int, str], tuple[int, int]]


@dataclass(frozen=True)
class Aggregation:
    """Counts and sums per key and sliding window. Its watermark closes nothing, so the state is the whole result."""

    files: list[list[Row]]

    kind: ClassVar = "aggregation"
    # Tests read all versions of its state.
    versions: ClassVar[list[int]] = []

    @classmethod
    def generate(cls, files: int = 6, rows: int = 300, seed: int = 1) -> Self:
        return cls(_files(random.Random(seed), files, rows))

    def write(self, directory: Path) -> None:
        _write(directory / "events", self.files)

    @property
    def batches(self) -> int:
        return len(self.files)

    def result(self) -> Windows:
        return self.after(self.batches)

    def after(self, batches: int) -> Windows:
        """The result after that many batches, which is also the state."""
        return _sums((row["time"], row["key"], row["value"]) for rows in self.files[:batches] for row in rows)


@dataclass(frozen=True)
class ProcessedAggregation(Aggregation):
    """The same aggregation by a stateful processor of `transformWithState`."""

    kind: ClassVar = "processed_aggregation"


@dataclass(frozen=True)
class JoinAggregation:
    """Events joined with factors of their key that are at most `JOIN_RANGE` older, aggregated per sliding window.

    The last file of both inputs holds a sentinel far in the future, whose watermark closes all other windows.
    """

    events: list[list[Row]]
    factors: list[list[Row]]

    kind: ClassVar = "join_aggregation"
    # Tests disturb batch 4, and read it, the one before it, and the last one.
    versions: ClassVar[list[int]] = [3, 4, 6]

    @staticmethod
    def generate(files: int = 5, rows: int = 300, seed: int = 2) -> JoinAggregation:
        chance = random.Random(seed)
        sentinel: Row = {"time": EPOCH + (files + 1000) * FILE_SPAN, "key": "sentinel", "value": 0}
        events = [*_files(chance, files, rows), [sentinel]]
        no_match: Row = {**sentinel, "key": "no match"}
        factors = [*_files(chance, files, rows // 3), [no_match]]
        return JoinAggregation(events, factors)

    def write(self, directory: Path) -> None:
        _write(directory / "events", self.events)
        _write(directory / "factors", self.factors)

    @property
    def batches(self) -> int:
        """One for each pair of files, and one without data for the sentinel's watermark."""
        return len(self.events) + 1

    def result(self) -> Windows:
        events = [row for rows in self.events for row in rows]
        factors = [row for rows in self.factors for row in rows]
        return _sums(
            (event["time"], event["key"], int(event["value"]) * int(factor["value"]))
            for event in events
            for factor in factors
            if event["key"] == factor["key"] and 0 <= int(event["time"]) - int(factor["time"]) <= JOIN_RANGE
        )


@dataclass(frozen=True)
class Ticks:
    """Counts and sums per key of the numbers from 0 on, `rows` of them in each batch, without an end."""

    rows: int = 60
    keys: int = KEYS

    kind: ClassVar = "ticks"
    versions: ClassVar[list[int]] = []

    def write(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        (directory / "ticks.json").write_text(json.dumps({"rows": self.rows, "keys": self.keys}), encoding="utf-8")

    def result(self) -> Windows:
        raise NotImplementedError("the input has no end")

    def after(self, batches: int) -> Windows:
        """The result after that many batches."""
        values = range(batches * self.rows)
        of_keys = {key: [value for value in values if value % self.keys == key] for key in range(self.keys)}
        return {(0, f"key-{key}"): (len(of), sum(of)) for key, of in of_keys.items()}


Scenario = Aggregation | JoinAggregation | Ticks


def _files(chance: random.Random, files: int, rows: int) -> list[list[Row]]:
    return [
        [
            {
                "time": EPOCH + number * FILE_SPAN + chance.randrange(FILE_SPAN),
                "key": f"key-{chance.randrange(KEYS)}",
                "value": chance.randrange(1000),
            }
            for _ in range(rows)
        ]
        for number in range(files)
    ]


def _sums(rows: Iterable[tuple[int | str, int | str, int | str]]) -> Windows:
    counts: Counter[tuple[int, str]] = Counter()
    sums: Counter[tuple[int, str]] = Counter()
    for time, key, value in rows:
        last = int(time) // SLIDE * SLIDE
        for start in range(last, last - WINDOW, -SLIDE):
            counts[start, str(key)] += 1
            sums[start, str(key)] += int(value)
    return {window: (count, sums[window]) for window, count in counts.items()}


def _write(directory: Path, files: Sequence[Iterable[Row]]) -> None:
    """Write one file for each batch; Spark's file source reads them in the order of their modification times."""
    directory.mkdir(parents=True)
    for number, rows in enumerate(files):
        path = directory / f"{number:04d}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        os.utime(path, (FIRST_MODIFIED + number, FIRST_MODIFIED + number))
