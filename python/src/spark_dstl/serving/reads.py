# SPDX-License-Identifier: Apache-2.0
"""The open scans and reads of changes of a server: so many at a time, and none for longer than its client reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pyarrow import flight


@dataclass(eq=False)
class OpenRead:
    """One read. It works, or waits until the client asks for more than what was sent at `sent_at`."""

    close: Callable[[], None] | None = None
    """What is called once, at the end."""
    sent_at: float | None = None
    has_ended: bool = False


class OpenReads:
    """The open reads of all clients."""

    def __init__(self, limit: int, idle: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Open at most `limit` at a time; a client takes what it is sent within `idle` seconds."""
        self._limit = limit
        self._idle = idle
        self._clock = clock
        # Guards the reads as well: another thread ends one only while it waits.
        self._lock = threading.Lock()
        self._open: set[OpenRead] = set()

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    @contextmanager
    def begin(self) -> Iterator[OpenRead]:
        """Open a read. Raises `FlightUnavailableError` beyond the limit."""
        read = OpenRead()
        self.end_stalled()
        with self._lock:
            if len(self._open) >= self._limit:
                raise flight.FlightUnavailableError(
                    f"{self._limit} reads are open, which is the limit: try again later"
                )
            self._open.add(read)
        try:
            yield read
        finally:
            self._end(lambda one: one is read)

    @contextmanager
    def sending(self, read: OpenRead) -> Iterator[None]:
        """Wait for the client. Raises `FlightTimedOutError` if the read has ended meanwhile."""
        with self._lock:
            read.sent_at = self._clock()
        yield
        with self._lock:
            read.sent_at = None
            if read.has_ended:
                raise flight.FlightTimedOutError("the client has taken nothing for too long: ask again")

    def end_stalled(self, idle: float | None = None) -> None:
        """End reads whose clients have taken nothing for longer than `idle` seconds, by default those of all reads."""
        before = self._clock() - (self._idle if idle is None else idle)
        self._end(lambda read: read.sent_at is not None and read.sent_at < before)

    def _end(self, is_over: Callable[[OpenRead], bool]) -> None:
        # The lock is released before anything is closed, which may take requests to storage.
        with ExitStack() as closing, self._lock:
            for read in [one for one in self._open if is_over(one)]:
                self._open.discard(read)
                read.has_ended = True
                if read.close is not None:
                    closing.callback(read.close)
