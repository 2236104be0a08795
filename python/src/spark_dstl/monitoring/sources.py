# SPDX-License-Identifier: Apache-2.0
"""The sources of `dstl watch`: a file of progress, or the UI of a driver."""

import dataclasses
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from spark_dstl.errors import NotWatchable
from spark_dstl.monitoring.history import progress_lines
from spark_dstl.monitoring.query_metrics import QueryMetrics

_SERVLET = "/metrics/json"
_ANSWER_SECONDS = 10
# An answer of a driver with hundreds of queries is smaller.
_LONGEST_ANSWER = 16 * 1024 * 1024
_OURS = ".dstl."

Figures = Mapping[str, int | None]
"""By name, which ends in the unit, `_ms` or `_bytes`; other figures are counts."""


@dataclass(frozen=True)
class Sample:
    """The figures of a query or a process at one time."""

    of: str
    """The query, or the process."""
    at: datetime
    """In UTC."""
    figures: Figures


class Source(Protocol):
    """A source of samples."""

    def poll(self) -> list[Sample]:
        """Return the samples since the previous call, the oldest first."""


class ProgressFile:
    """A file with a line of JSON for each batch, the newest at the end, as `MetricsListener` writes it.

    Between two polls it may grow, be cut, or be rotated: the file that was open is read to its end, then the new one
    from its beginning. `path` is the file's; `close` closes it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Open between polls: a renamed file has lines to read, and its inode is not that of a new file.
        self._file: BinaryIO | None = None
        self._read_bytes = 0
        self._read_lines = 0

    def poll(self) -> list[Sample]:
        """Return a sample for each new line; none while a file that was read before is missing.

        Raises `NotWatchable` if the file cannot be read, and `InvalidProgress` with the number of an invalid line.
        """
        samples: list[Sample] = []
        try:
            # Looked at before the old file is read: nothing is written to that one after its rename.
            is_new = self._is_new()
            samples = self._unread()
            if is_new:
                self._open()
                samples += self._unread()
        except FileNotFoundError as error:
            if self._file is None:
                raise NotWatchable(
                    f"there is no file {self._path}; a driver's UI is named by its address, such as "
                    "http://localhost:4040"
                ) from error
        except OSError as error:
            raise NotWatchable(f"{self._path}: {error.strerror or error}") from error
        return samples

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _is_new(self) -> bool:
        """Return whether the path is that of another file than the open one."""
        if self._file is None:
            return True
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            # A rotation renames the file, and the query's next batch creates it again.
            return False

    def _open(self) -> None:
        file = self._path.open("rb")
        self.close()
        self._file, self._read_bytes, self._read_lines = file, 0, 0

    def _unread(self) -> list[Sample]:
        file, samples = self._file, []
        if file is not None:
            if file.seek(0, 2) < self._read_bytes:
                self._read_bytes = self._read_lines = 0
            file.seek(self._read_bytes)
            for offset, lines, batch in progress_lines(file, self._path, self._read_lines):
                self._read_bytes, self._read_lines = offset, lines
                samples.append(sample_of(batch))
        return samples


class MetricsServlet:
    """The servlet `/metrics/json` in the UI of a driver, with the figures of its source `dstl`.

    `address` is that of the UI, such as `http://localhost:4040`, with a path if a proxy needs one. Raises
    `NotWatchable` for another address.
    """

    def __init__(self, address: str, now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)) -> None:
        # Before an error repeats the address.
        if "@" in re.split("[/?#]", address.partition("://")[2])[0]:
            raise NotWatchable("the address of a UI cannot have a user or a password in it")
        try:
            parts = urlsplit(address)
            is_of_ui = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            is_of_ui = False
        if not is_of_ui:
            raise NotWatchable(f"{address} is not the address of a UI, such as http://localhost:4040")
        path = parts.path.rstrip("/").removesuffix(_SERVLET)
        self._address = f"{parts.scheme}://{parts.netloc}{path}{_SERVLET}/"
        self._now = now

    def poll(self) -> list[Sample]:
        """Return a sample of the process. Raises `NotWatchable` if no driver with metrics of the log answers."""
        gauges = self._gauges()
        prefixes = {name.partition(_OURS)[0] for name in gauges if _OURS in name}
        if not prefixes:
            raise NotWatchable(
                f"{self._address}: the driver has no metrics of the log: no query of it keeps its state there, or none "
                "has ended its first batch yet"
            )
        return [Sample(prefix, self._now(), _figures(gauges, f"{prefix}{_OURS}")) for prefix in sorted(prefixes)]

    def _gauges(self) -> dict[str, int]:
        try:
            with urlopen(self._address, timeout=_ANSWER_SECONDS) as answer:
                text = answer.read(_LONGEST_ANSWER + 1)
            if len(text) > _LONGEST_ANSWER:
                raise NotWatchable(f"{self._address}: an answer of more than {_LONGEST_ANSWER >> 20} MiB")
            found: Mapping[str, Mapping[str, Any]] = json.loads(text)["gauges"]
            return {name: int(gauge["value"]) for name, gauge in found.items() if _OURS in name}
        except HTTPError as error:
            raise NotWatchable(f"{self._address}: HTTP status {error.code}; is it the UI of a driver?") from error
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise NotWatchable(f"{self._address}: {reason}") from error
        except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise NotWatchable(f"{self._address}: not an answer of Spark's metrics servlet") from error


def source_of(place: str) -> AbstractContextManager[Source]:
    """Return the source at an address or a path, `place`; its context closes it."""
    if "://" in place:
        return nullcontext(MetricsServlet(place))
    return closing(ProgressFile(Path(place)))


def sample_of(batch: QueryMetrics) -> Sample:
    """Return the figures of a batch."""
    values = dataclasses.asdict(batch)
    figures = {name: values[name] for name in values if name not in ("query_id", "run_id", "name", "started_at")}
    return Sample(batch.name or batch.query_id, batch.started_at, figures)


def _figures(gauges: Mapping[str, int], prefix: str) -> Figures:
    """Return the figures of a process."""

    def one(name: str) -> int | None:
        return gauges.get(prefix + name)

    def over_operations(name: str) -> int:
        start, end = f"{prefix}requests.", f".{name}"
        return sum(value for key, value in gauges.items() if key.startswith(start) and key.endswith(end))

    return {
        "commits": one("commits.count"),
        "commit_failures": one("commits.failures"),
        "refused_seals": one("commits.refusedSeals"),
        "barrier_wait_p50_ms": one("commits.barrierWaitP50Ms"),
        "barrier_wait_p99_ms": one("commits.barrierWaitP99Ms"),
        "entry_write_p50_ms": one("commits.entryWriteP50Ms"),
        "entry_write_p99_ms": one("commits.entryWriteP99Ms"),
        "log_entries": one("commits.retainedEntries"),
        "log_bytes": one("commits.retainedBytes"),
        "uploads_in_flight_bytes": one("uploads.bytesInFlight"),
        "writers_waiting": one("uploads.waiting"),
        "back_pressure_ms": one("uploads.blockedMs"),
        "requests": over_operations("count"),
        "hedges": over_operations("hedges"),
        "retries": over_operations("retries"),
        "request_failures": over_operations("failures"),
        "snapshots": one("materializations.completed"),
        "snapshot_failures": one("materializations.failed"),
        "stores_loading": one("recovery.storesLoading"),
        "replayed_bytes": one("replay.bytes"),
        "replayed_records": one("replay.records"),
    }
