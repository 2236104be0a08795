# SPDX-License-Identifier: Apache-2.0
"""One probe of a place: it writes, checks, reads, creates, lists and deletes objects, and removes everything."""

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from spark_dstl.checkpoint.storage import Progress, silent
from spark_dstl.errors import CannotProbe
from spark_dstl.probing.cost import Saved, Shape, saved
from spark_dstl.probing.exclusiveness import NOT_ASKED, NOT_EXCLUSIVE, Exclusiveness, judged, race
from spark_dstl.probing.measurement import Measuring, Series
from spark_dstl.probing.storage import ProbedStorage, Refused, Unanswered

MOST_OBJECTS = 10_000
LARGEST_OBJECT = 16 * 1024 * 1024
RACES = 10
CREATORS = 8

PUT = "put"
ASK = "exists"
GET = "get"
CREATE = "create"
CREATE_REFUSED = "create, refused"
LIST = "list"
DELETE = "delete"

_FOLDER = re.compile(r"\.dstl-probe-[0-9a-f]{16}")


@dataclass(frozen=True)
class Plan:
    """How much is measured: objects of each kind, their bytes, and the number of concurrent requests."""

    objects: int = 200
    object_bytes: int = 16 * 1024
    concurrency: int = 5
    shape: Shape = field(default_factory=Shape)


@dataclass(frozen=True)
class Report:
    """The result. `earlier` are folders of earlier probes, or of one that runs.

    `may_appear` are objects whose write had no answer: they may appear after everything is removed.
    """

    place: str
    plan: Plan
    series: list[Series]
    exclusive: Exclusiveness
    saved: Saved
    earlier: list[str]
    may_appear: list[str]


class Probe:
    """Measures one place, once.

    `clock` returns seconds, `token` the random part of the folder's name, as 16 hexadecimal digits.
    """

    def __init__(
        self,
        storage: ProbedStorage,
        plan: Plan,
        clock: Callable[[], float] = time.perf_counter,
        token: Callable[[], str] = lambda: secrets.token_hex(8),
        progress: Progress = silent,
    ) -> None:
        self._storage = storage
        self._plan = plan
        self._progress = progress
        self._measuring = Measuring(storage.shown, plan.concurrency, clock, progress)
        self._folder = f".dstl-probe-{token()}"
        self._may_have_folder = True
        # The objects that may exist: noted before the request.
        self._names: dict[str, None] = {}
        self._unanswered_writes: list[str] = []
        self.left_behind: list[str] = []

    def run(self) -> Report:
        """Measure, and remove everything, also after an error or an interrupt.

        `left_behind` then names what could not be removed. Raises `CannotProbe` if storage rejects requests, or does
        not answer.
        """
        earlier = earlier_folders(self._storage)
        try:
            self._make_folder()
            series, exclusive = self._measured()
            deletes = [partial(self._storage.delete, name) for name in self._names]
            series.append(self._measuring.each(DELETE, deletes))
        finally:
            if self._may_have_folder:
                self._remove()
        times = {one.kind: one.seconds for one in series}
        return Report(
            self._storage.shown,
            self._plan,
            series,
            exclusive,
            saved(times[PUT], times.get(CREATE) or times[PUT], times[ASK], self._plan.shape),
            [self._shown(folder) for folder in earlier],
            sorted(self._shown(name) for name in self._unanswered_writes),
        )

    def _measured(self) -> tuple[list[Series], Exclusiveness]:
        count, storage, content = self._plan.objects, self._storage, secrets.token_bytes(self._plan.object_bytes)
        puts = [self._name(PUT, number) for number in range(count)]
        missing = [f"{self._folder}/missing-{number}" for number in range(count)]
        series = [
            self._measuring.each(PUT, [partial(self._write, storage.put, name, content) for name in puts]),
            self._measuring.each(ASK, [partial(storage.exists, name) for name in missing]),
            self._measuring.each(GET, [partial(storage.get, name) for name in puts]),
            self._measuring.each(LIST, [partial(storage.objects, self._folder)] * count),
        ]
        if storage.not_exclusive_because is not None:
            return series, Exclusiveness(NOT_ASKED, storage.not_exclusive_because)
        try:
            storage.create(self._name("trial", 0), content)
        except Refused as error:
            return series, Exclusiveness(NOT_EXCLUSIVE, f"storage does not take exclusive creates: {error}")
        except Unanswered:
            self._unanswered_writes.append(self._name("trial", 0))
        creates = [self._name(CREATE, number) for number in range(count)]
        fresh = self._measuring.each(CREATE, [partial(self._write, storage.create, name, content) for name in creates])
        made: list[str] = []

        def again(name: str, content: bytes) -> None:
            if storage.create(name, content):
                made.append(name)

        # These exist for certain.
        there = [name for name in puts if name not in self._unanswered_writes]
        refused = self._measuring.each(CREATE_REFUSED, [partial(self._write, again, name, content) for name in there])
        races = []
        for number in range(RACES):
            name = self._name("race", number)
            races.append(race(storage, name, CREATORS, content))
            self._unanswered_writes += [name] if races[-1].unanswered else []
            self._progress("races", number + 1, RACES)
        return [*series, fresh, refused], judged(races, CREATORS, len(made), refused.unanswered)

    def _write(self, write: Callable[[str, bytes], object], name: str, content: bytes) -> None:
        try:
            write(name, content)
        except Unanswered:
            self._unanswered_writes.append(name)
            raise

    def _name(self, kind: str, number: int) -> str:
        name = f"{self._folder}/{kind}-{number}"
        self._names[name] = None
        return name

    def _make_folder(self) -> None:
        try:
            self._storage.make_folder(self._folder)
        except (Refused, Unanswered) as error:
            self._may_have_folder = isinstance(error, Unanswered)
            raise CannotProbe(
                f"{self._storage.shown} cannot be probed, making a folder failed: {error}. Check that it is there, and "
                "the permission to write to it"
            ) from error

    def _remove(self) -> None:
        # After an interrupt everything may remain.
        self.left_behind = [self._shown(self._folder)]
        self.left_behind = [self._shown(name) for name in removed_folder(self._storage, self._folder)]

    def _shown(self, name: str) -> str:
        return f"{self._storage.shown.rstrip('/')}/{name}"


def earlier_folders(storage: ProbedStorage) -> list[str]:
    """Return the folders of earlier probes in a place, or of one that runs."""
    try:
        return [folder for folder in storage.folders() if _FOLDER.fullmatch(folder)]
    except (Refused, Unanswered) as error:
        raise CannotProbe(
            f"{storage.shown} could not be listed: {error}. Check that it is there, and the permission to list it"
        ) from error


def removed_folder(storage: ProbedStorage, folder: str) -> list[str]:
    """Delete a folder of a probe with all objects in it; return the names of what could not be deleted."""
    left = []
    try:
        for name in storage.objects(folder):
            try:
                storage.delete(name)
            except (Refused, Unanswered):
                left.append(name)
        if not left:
            storage.delete_folder(folder)
    except (Refused, Unanswered):
        # It is unknown whether anything remains.
        left.append(folder)
    return left
