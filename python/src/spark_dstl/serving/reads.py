# SPDX-License-Identifier: Apache-2.0
"""The open scans and reads of changes of a server: so many at a time, and none for longer than its client reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyarrow import flight


class OpenReads:
    """The open reads of all clients."""

    def __init__(self, limit: int, idle: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Open at most `limit` at a time; a client takes what it is sent within `idle` seconds."""
        self._limit = limit
        self._idle = idle
        self._clock = clock
        self._lock = threading.Lock()
        self._open: set[OpenRead] = set()

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    @contextmanager
    def begin(self) -> Iterator[OpenRead]:
        """Open a read. Raises `FlightUnavailableError` beyond the limit."""
        read = OpenRead(self._clock)
        with self._lock:
            if len(self._open) >= self._limit:
                raise flight.FlightUnavailableError(
                    f"{self._limit} reads are open, which is the limit: try again later"
                )
            self._open.add(read)
        try:
            yield read
        finally:
            read.end()
            self._discard(read)

    def end_stalled(self, idle: float | None = None) -> None:
        """End reads whose clients have taken nothing for longer than `idle` seconds, by default those of all reads."""
        with self._lock:
            there = list(self._open)
        for read in there:
            if read.end_if_stalled(self._idle if idle is None else idle):
                self._discard(read)

    def _discard(self, read: OpenRead) -> None:
        with self._lock:
            self._open.discard(read)


class OpenRead:
    """One read. It works, or it has sent something and waits until the client asks for more."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with a read that works."""
        self._clock = clock
        # Held to change the two below: another thread ends the read only while it waits.
        self._lock = threading.Lock()
        self._sent_at: float | None = None
        self._close: Callable[[], None] | None = None
        self._has_ended = False

    def closes(self, close: Callable[[], None]) -> None:
        """Name what is called once, at the end."""
        self._close = close

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Wait for the client. Raises `FlightTimedOutError` if the read has ended meanwhile."""
        with self._lock:
            self._sent_at = self._clock()
        yield
        with self._lock:
            self._sent_at = None
            if self._has_ended:
                raise flight.FlightTimedOutError("the client has taken nothing for too long: ask again")

    def end_if_stalled(self, idle: float) -> bool:
        """End it if the client has taken nothing for longer than `idle` seconds; return whether it has ended."""
        with self._lock:
            if self._sent_at is not None and self._clock() - self._sent_at > idle:
                self._end()
            return self._has_ended

    def end(self) -> None:
        """Close what it has open, unless that is closed."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        self._has_ended = True
        close, self._close = self._close, None
        if close is not None:
            close()
