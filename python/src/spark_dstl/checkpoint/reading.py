# SPDX-License-Identifier: Apache-2.0
"""Commit entries, data files and segments, read from storage and checked."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from spark_dstl.checkpoint.format import logfile
from spark_dstl.checkpoint.format.checksum import before_part, crc32c
from spark_dstl.checkpoint.format.logfile import Log, NeedsTail, Tail
from spark_dstl.checkpoint.format.model import HEADER_LENGTH, Index, Part, Segment
from spark_dstl.checkpoint.sparkfiles import json_object
from spark_dstl.checkpoint.storage import Storage
from spark_dstl.errors import DamagedLog, DstlError, MissingLogObject

_TAIL = 64 * 1024
R = TypeVar("R")
# Spark's two lines, the second with the ids of all stores, and the note.
_MAX_BEGINNING = 64 * 1024 * 1024


@dataclass(frozen=True)
class LoadedEntry:
    """A commit entry: its size in bytes, Spark's first two lines, and its log, if it has one."""

    batch: int
    size: int
    version_line: str
    metadata_line: str
    log: Log | None

    @property
    def index(self) -> Index | None:
        """The index of its log; None without a log."""
        return self.log.index if self.log else None

    @cached_property
    def metadata(self) -> dict[str, Any] | None:
        """The JSON object of Spark's second line; None if it is none."""
        return json_object(self.metadata_line.encode("utf-8"))

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments that its log names."""
        return self.log.index.segments if self.log else ()


def read_entry(storage: Storage, batch: int) -> LoadedEntry | None:
    """Return the commit entry of a batch; None if it is missing. Raises `DamagedLog` or `UnsupportedLog`."""
    name = f"commits/{batch}"
    file = storage.shown(name)
    read = _read_end(storage, name, lambda tail: logfile.read_entry(file, str(batch), tail))
    if read is None:
        return None
    tail, log = read
    # The bytes before the log, and the log's header.
    start = log.start if log else tail.length
    beginning: bytes | None = tail.content[: start + HEADER_LENGTH]
    if not tail.is_whole:
        if start > _MAX_BEGINNING:
            raise DamagedLog(file, 0, f"{start} bytes stand before its log")
        beginning = storage.range(name, 0, start + HEADER_LENGTH)
    if beginning is None:
        return None
    if log and not log.header_was_read:
        logfile.check_header(file, start, beginning[start:], log.meaning)
    try:
        lines = [line.decode("utf-8") for line in logfile.sparks_lines(beginning[:start])]
    except UnicodeDecodeError as error:
        raise DamagedLog(file, 0, "its first lines are not text") from error
    if not lines[0].startswith("v"):
        raise DamagedLog(file, 0, "it does not begin with Spark's version line")
    return LoadedEntry(batch, tail.length, lines[0], lines[1] if len(lines) > 1 else "", log)


def read_data_file(base: Storage, name: str) -> Log | None:
    """Return the log of a data file; None if it is missing. Raises `DamagedLog` or `UnsupportedLog`."""
    file = base.shown(name)
    read = _read_end(base, name, lambda tail: logfile.read_data_file(file, name, tail))
    if read is None:
        return None
    log = read[1]
    if not log.header_was_read:
        header = base.range(name, 0, HEADER_LENGTH)
        if header is None:
            return None
        logfile.check_header(file, 0, header, log.meaning)
    return log


def _read_end(storage: Storage, name: str, read: Callable[[Tail], R | NeedsTail]) -> tuple[Tail, R] | None:
    """Return what `read` makes of the end of an object, and as much of its end as `read` needs."""
    asked = _TAIL
    while (tail := storage.tail(name, asked)) is not None:
        found = read(tail)
        if not isinstance(found, NeedsTail):
            return tail, found
        if found.length <= asked:
            raise DamagedLog(storage.shown(name), tail.length, f"its index needs {found.length} bytes of it")
        asked = found.length
    return None


class SegmentReader:
    """Reads segments, part by part, and checks each."""

    def __init__(self, checkpoint: Storage, base: Storage) -> None:
        self._checkpoint = checkpoint
        self._base = base

    def check(self, entry: LoadedEntry, segment: Segment) -> int:
        """Read a segment piece by piece and return its number of bytes; raises as `parts` does."""
        return sum(len(piece) for part in segment.parts for piece in self._pieces(entry, segment, part))

    def parts(self, entry: LoadedEntry, segment: Segment) -> Iterator[bytes]:
        """Yield the bytes of each part. Raises `DamagedLog` for other bytes, and `MissingLogObject` for no object."""
        for part in segment.parts:
            yield b"".join(self._pieces(entry, segment, part))

    def content(self, entry: LoadedEntry, segment: Segment, limit: int) -> bytes:
        """Return all bytes of a segment of at most `limit` bytes."""
        if segment.length > limit:
            raise DstlError(f"{segment.name} has {segment.length} bytes, more than the {limit} that are read at once")
        return b"".join(self.parts(entry, segment))

    def _pieces(self, entry: LoadedEntry, segment: Segment, part: Part) -> Iterator[bytes]:
        storage, name, offset = self._base, part.file, part.offset
        if name is None:
            storage, name = self._checkpoint, f"commits/{entry.batch}"
            offset += entry.log.start if entry.log else 0
        value, left = before_part(segment.name), part.length
        for piece in storage.pieces(name, offset, part.length):
            value = crc32c(piece, start=value)
            left -= len(piece)
            yield piece
        if (left or not part.length) and storage.size(name) is None:
            raise MissingLogObject(f"{storage.shown(name)}, which {segment.name} needs, does not exist")
        if left:
            end = offset + part.length
            raise DamagedLog(storage.shown(name), offset, f"it ends before {end}, within {segment.name}")
        if value != part.crc:
            what = f"the {part.length} bytes of {segment.name} have another checksum"
            raise DamagedLog(storage.shown(name), offset, what)
