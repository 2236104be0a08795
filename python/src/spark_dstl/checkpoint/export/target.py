# SPDX-License-Identifier: Apache-2.0
"""The target of an export or a conversion: planned objects are written to it, then compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.locate import PURPOSE, Place
from spark_dstl.checkpoint.storage import AT_ONCE, PIECE, Storage, StoredObject, at_once
from spark_dstl.dependencies import needed
from spark_dstl.errors import DstlError, MissingLogObject, UnreadableStorage


@dataclass(frozen=True)
class Planned:
    """An object to be written: its name, its number of bytes, and a function that returns them in pieces."""

    name: str
    size: int
    pieces: Callable[[], Iterable[bytes]]


def of_bytes(name: str, content: bytes) -> Planned:
    """Return the plan of an object with this content."""
    return Planned(name, len(content), lambda: [content])


def content_of(storage: Storage, name: str, limit: int) -> bytes:
    """Return an object of at most `limit` bytes. Raises `MissingLogObject` if it is deleted."""
    content = storage.read(name, limit)
    if content is None:
        raise deleted(storage, name)
    return content


def deleted(storage: Storage, name: str) -> MissingLogObject:
    """Return the error for an object that is deleted while the checkpoint is copied."""
    return MissingLogObject(f"{storage.shown(name)} was deleted: a query runs on the checkpoint")


def copies(storage: Storage, directory: str) -> Iterator[Planned]:
    """Yield the plans of copies of all finished objects below a directory."""
    for stored in storage.objects(directory, recursive=True):
        if not names.is_unfinished(stored.name):
            yield _copy_of(storage, stored)


def _copy_of(storage: Storage, stored: StoredObject) -> Planned:
    """Return the plan of a copy; its pieces raise `MissingLogObject` if the object is deleted or becomes shorter."""

    def pieces() -> Iterable[bytes]:
        left = stored.size
        for piece in storage.pieces(stored.name, 0, stored.size):
            left -= len(piece)
            yield piece
        if left:
            raise MissingLogObject(f"{storage.shown(stored.name)} has changed: a query runs on the checkpoint")

    return Planned(stored.name, stored.size, pieces)


class Target(Storage):
    """A directory that objects are written to, apart from the checkpoint; else the constructor raises `refusal`."""

    def __init__(self, place: Place, checkpoint: CheckpointAccess, refusal: type[DstlError]) -> None:
        if place.is_inside(checkpoint.storage.place) or checkpoint.storage.place.is_inside(place):
            raise refusal(f"{place.shown} and {checkpoint.path} are not apart: name a separate directory")
        super().__init__(place)
        self._progress = checkpoint.progress
        self._made: set[str] = set()

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write or replace an object; an interrupted write may leave one that is too short."""
        arrow = needed("pyarrow", PURPOSE)
        path = self._path(name)
        try:
            directory = path.rpartition("/")[0]
            if directory not in self._made:
                self.place.files.create_dir(directory, recursive=True)
                self._made.add(directory)
            with self.place.files.open_output_stream(path) as out:
                for piece in pieces:
                    out.write(piece)
        except DstlError:
            # Of the source, whose errors are those of the system as well.
            raise
        except (OSError, arrow.ArrowException) as error:
            raise UnreadableStorage(
                f"{self.shown(name)} could not be written: {error}. Check the path, the permission to write there, and "
                "that storage can be reached; then begin again: objects that exist are not written again"
            ) from error

    def has(self, planned: Planned) -> bool:
        """Whether the object exists and has exactly the planned bytes."""
        offset = 0
        for piece in planned.pieces():
            for start in range(0, len(piece), PIECE):
                wanted = piece[start : start + PIECE]
                if self.range(planned.name, offset, len(wanted)) != wanted:
                    return False
                offset += len(wanted)
        return self.size(planned.name) == offset

    def write_all(self, plan: Sequence[Planned], confirm: Callable[[], object]) -> tuple[int, int]:
        """Write and compare all objects; return the number and bytes of the written ones.

        `confirm`, which may raise, is called before the last one, without which the others are no checkpoint.
        """
        others = self._write_and_check(plan[:-1])
        confirm()
        last = self._write_and_check(plan[-1:])
        return others[0] + last[0], others[1] + last[1]

    def _write_and_check(self, plan: Sequence[Planned]) -> tuple[int, int]:
        written = self.write_missing(plan)
        self.check(plan)
        return written

    def write_missing(self, plan: Sequence[Planned]) -> tuple[int, int]:
        """Write the objects that are missing or have another length; return their number and bytes."""
        there = {stored.name: stored.size for stored in self.objects(recursive=True)}

        def write(one: Planned) -> bool:
            is_missing = there.get(one.name) != one.size
            if is_missing:
                self.write(one.name, one.pieces())
            return is_missing

        def done(count: int) -> None:
            self._progress("Writing objects", len(written) + count, len(plan))

        written: list[bool] = []
        # A directory is whole before the next is begun: Spark starts from what `offsets` and `commits` have.
        for _, of_directory in groupby(plan, key=lambda one: one.name.partition("/")[0]):
            written += at_once(AT_ONCE, write, list(of_directory), done)
        return sum(written), sum(one.size for one, is_new in zip(plan, written, strict=True) if is_new)

    def check(self, plan: Sequence[Planned]) -> None:
        """Compare every object. One that an interrupted try left in full length with other bytes is written again."""
        at_once(AT_ONCE, self._check, plan, lambda done: self._progress("Comparing objects", done, len(plan)))

    def _check(self, one: Planned) -> None:
        if not self.has(one):
            self.write(one.name, one.pieces())
            if not self.has(one):
                raise self.spoilt(one.name)

    def spoilt(self, name: str) -> DstlError:
        """Return the error for an object that does not have the bytes that were written to it."""
        return DstlError(
            f"{self.shown(name)} has other bytes than were written to it. Check the storage, and do not use "
            f"{self.place.shown}"
        )
