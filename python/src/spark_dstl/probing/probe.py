# SPDX-License-Identifier: Apache-2.0
"""One probe of a place: objects are written, asked for, read, created, listed and deleted, and nothing stays."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from spark_dstl.checkpoint.survey import Progress, silent
from spark_dstl.errors import CannotProbe
from spark_dstl.probing.cost import Saved, Shape, saved
from spark_dstl.probing.exclusiveness import NOT_ASKED, NOT_EXCLUSIVE, Exclusiveness, judged, raced
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
    """How much is measured: objects of each kind, their bytes, and how many requests are under way at once."""

    objects: int = 200
    object_bytes: int = 16 * 1024
    concurrency: int = 5
    shape: Shape = field(default_factory=Shape)


@dataclass(frozen=True)
class Report:
    """What was found. `earlier` are folders that earlier probes have left, or that another is using now.

    `may_appear` are objects whose write was not answered: it may take effect after everything was removed.
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
        # What may be on storage: noted before it is asked for.
        self._names: dict[str, None] = {}
        self._unanswered_writes: list[str] = []
        self.left_behind: list[str] = []

    def run(self) -> Report:
        """Measure, and remove everything, also after an error or an interrupt.

        `left_behind` names afterwards what could not be removed. Raises `CannotProbe` if storage refuses or is silent.
        """
        earlier = earlier_folders(self._storage)
        try:
            self._once(lambda: self._storage.make_folder(self._folder), "making a folder")
            series, exclusive = self._measured()
        except BaseException:
            self._remove()
            raise
        series.append(self._removed())
        return self._report(series, exclusive, [self._shown(folder) for folder in earlier])

    def _measured(self) -> tuple[list[Series], Exclusiveness]:
        count, storage, content = self._plan.objects, self._storage, secrets.token_bytes(self._plan.object_bytes)
        puts = [self._name(PUT, number) for number in range(count)]
        missing = [f"{self._folder}/missing-{number}" for number in range(count)]
        series = [
            self._measuring.each(PUT, [self._write(lambda name: storage.put(name, content), name) for name in puts]),
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
        fresh = self._measuring.each(
            CREATE, [self._write(lambda name: storage.create(name, content), name) for name in creates]
        )
        made: list[str] = []

        def again(name: str) -> None:
            if storage.create(name, content):
                made.append(name)

        # These are known to be there, which a create that was not answered would not be.
        there = [name for name in puts if name not in self._unanswered_writes]
        refused = self._measuring.each(CREATE_REFUSED, [self._write(again, name) for name in there])
        races = [self._name("race", number) for number in range(RACES)]
        found = raced(storage, races, CREATORS, content, lambda done: self._progress("races", done, RACES))
        self._unanswered_writes += [name for name, one in zip(races, found, strict=True) if one.unanswered]
        return [*series, fresh, refused], judged(found, CREATORS, len(made), refused.unanswered)

    def _write(self, write: Callable[[str], object], name: str) -> Callable[[], None]:
        def request() -> None:
            try:
                write(name)
            except Unanswered:
                self._unanswered_writes.append(name)
                raise

        return request

    def _name(self, kind: str, number: int) -> str:
        name = f"{self._folder}/{kind}-{number}"
        self._names[name] = None
        return name

    def _once(self, request: Callable[[], object], what: str) -> None:
        try:
            request()
        except (Refused, Unanswered) as error:
            raise CannotProbe(
                f"{self._storage.shown} cannot be probed, {what} failed: {error}. Check that it is there, and the "
                "permission to write to it"
            ) from error

    def _removed(self) -> Series:
        """Delete every object, and take the time that it takes."""
        names = list(self._names)
        try:
            series = self._measuring.each(DELETE, [partial(self._storage.delete, name) for name in names])
        finally:
            self._remove()
        return series

    def _remove(self) -> None:
        """Delete what is there still; what cannot be deleted is named in `left_behind`."""
        # If this is interrupted, all of it may be there.
        self.left_behind = [self._shown(self._folder)]
        self.left_behind = [self._shown(name) for name in removed_folder(self._storage, self._folder)]

    def _report(self, series: list[Series], exclusive: Exclusiveness, earlier: list[str]) -> Report:
        times = {one.kind: one.seconds for one in series}
        return Report(
            self._storage.shown,
            self._plan,
            series,
            exclusive,
            saved(times[PUT], times.get(CREATE) or times[PUT], times[ASK], self._plan.shape),
            earlier,
            sorted(self._shown(name) for name in self._unanswered_writes),
        )

    def _shown(self, name: str) -> str:
        return f"{self._storage.shown.rstrip('/')}/{name}"


def earlier_folders(storage: ProbedStorage) -> list[str]:
    """Return the folders that earlier probes have left in a place, or that another is using now."""
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
        # It is unknown whether there is anything.
        left.append(folder)
    return left
