# SPDX-License-Identifier: Apache-2.0
"""Concurrent requests, with the time and outcome of each."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spark_dstl.checkpoint.storage import Progress, at_once
from spark_dstl.errors import CannotProbe
from spark_dstl.probing.storage import Refused, Unanswered

# A probe ends at the first request without an answer after so many.
MOST_UNANSWERED = 10


@dataclass
class Series:
    """The times of requests of one kind, in seconds; one without an answer counts with the time until it ended."""

    kind: str
    seconds: list[float] = field(default_factory=list)
    unanswered: int = 0


class Measuring:
    """Makes requests, at most `threads` at once, and measures their times by `clock`, in seconds.

    Messages call the place `shown`.
    """

    def __init__(self, shown: str, threads: int, clock: Callable[[], float], progress: Progress) -> None:
        self._shown = shown
        self._threads = threads
        self._clock = clock
        self._progress = progress
        # Guards the fields that the threads change.
        self._lock = threading.Lock()
        self._unanswered = 0

    def each(self, kind: str, requests: Sequence[Callable[[], Any]]) -> Series:
        """Make requests of one kind. Raises `CannotProbe` if one is refused, or too many have no answer."""
        series = Series(kind)
        total = len(requests)
        at_once(self._threads, partial(self._timed, series), requests, lambda done: self._progress(kind, done, total))
        return series

    def _timed(self, series: Series, request: Callable[[], Any]) -> None:
        began = self._clock()
        try:
            request()
            answered, said = True, ""
        except Unanswered as error:
            answered, said = False, str(error)
        except Refused as error:
            raise CannotProbe(
                f"{self._shown} cannot be probed, {series.kind} was refused: {error}. Check the path, and the "
                "permission to write, read, list and delete there"
            ) from error
        took = self._clock() - began
        with self._lock:
            series.seconds.append(took)
            series.unanswered += not answered
            self._unanswered += not answered
            if self._unanswered > MOST_UNANSWERED:
                raise CannotProbe(
                    f"{self._shown} did not answer {self._unanswered} requests, the last time {series.kind}: {said}. "
                    "Check the path, the endpoint, and that storage can be reached"
                )
