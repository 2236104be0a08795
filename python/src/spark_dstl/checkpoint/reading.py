# SPDX-License-Identifier: Apache-2.0
"""Commit entries, data files and segments, read from storage and checked."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from spark_dstl.checkpoint.format import logfile
from spark_dstl.checkpoint.format.checksum import before_part, crc32c
from spark_dstl.checkpoint.format.logfile import Log, NeedsTail, Tail
from spark_dstl.checkpoint.format.model import HEADER_LENGTH, Index, Part, Segment
from spark_dstl.checkpoint.sparkfiles import json_object
from spark_dstl.checkpoint.storage import Storage, TooLarge
from spark_dstl.errors import DamagedLog, MissingLogObject

_TAIL = 64 * 1024
R = TypeVar("R")
# Spark's two lines, the second with the ids of all stores, and the note.
_MAX_BEGINNING = 64 * 1024 * 1024
# What stands between two parts that one read covers, and the most bytes of such a read.
_GAP = 64 * 1024
_STRETCH = 32 * 1024 * 1024


@dataclass(frozen=True)
class LoadedEntry:
    """A commit entry: its size in bytes, its lines, of which two are Spark's, and its log, if it has one."""

    batch: int
    size: int
    version_line: str
    metadata_line: str
    log: Log | None
    note_line: str = ""

    @property
    def index(self) -> Index | None:
        """The index of its log; None without a log."""
        return self.log.index if self.log else None

    @cached_property
    def metadata(self) -> dict[str, Any] | None:
        """The JSON object of Spark's second line; None if it is none."""
        return json_object(self.metadata_line.encode("utf-8"))

    @property
    def is_repartition(self) -> bool:
        """Whether its batch only changed the number of partitions."""
        return self.note_line.startswith('{"repartition":')

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
    if log and log.index.spark and crc32c(beginning[:start]) != log.index.spark.before_log:
        raise DamagedLog(file, 0, "Spark's lines, or the note after them, are not what was written")
    try:
        lines = [line.decode("utf-8") for line in logfile.sparks_lines(beginning[:start])]
    except UnicodeDecodeError as error:
        raise DamagedLog(file, 0, "its first lines are not text") from error
    if not lines[0].startswith("v"):
        raise DamagedLog(file, 0, "it does not begin with Spark's version line")
    version_line, metadata_line, note_line = (*lines, "", "")[:3]
    return LoadedEntry(batch, tail.length, version_line, metadata_line, log, note_line)


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

    def parts(self, entry: LoadedEntry, segment: Segment) -> Iterator[bytes]:
        """Yield the bytes of each part. Raises `DamagedLog` for other bytes, and `MissingLogObject` for no object."""
        for part in segment.parts:
            yield b"".join(self._pieces(entry, segment, part))

    def content(self, entry: LoadedEntry, segment: Segment, limit: int) -> bytes:
        """Return all bytes of a segment of at most `limit` bytes."""
        if segment.length > limit:
            raise TooLarge(f"{segment.name} has {segment.length} bytes, more than the {limit} that are read at once")
        return b"".join(self.parts(entry, segment))

    def _pieces(self, entry: LoadedEntry, segment: Segment, part: Part) -> Iterator[bytes]:
        if part.file is None:
            storage, name, start = self._checkpoint, f"commits/{entry.batch}", entry.log.start if entry.log else 0
        else:
            storage, name, start = self._base, part.file, 0
        pieces = storage.pieces(name, start + part.offset, part.length)
        return checked(pieces, storage, name, start, segment, part)


def checked(
    pieces: Iterator[bytes], storage: Storage, name: str, start: int, segment: Segment, part: Part
) -> Iterator[bytes]:
    """Yield the pieces of a part of the log that begins at `start` of an object; raises as `SegmentReader.parts`."""
    value, left, offset = before_part(segment.name), part.length, start + part.offset
    for piece in pieces:
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


PartOf = tuple[Segment, Part]


def stretches(parts: Iterable[PartOf]) -> Iterator[list[PartOf]]:
    """Yield the parts of one log as stretches of neighbours, each of which one read covers."""
    stretch: list[PartOf] = []
    end = 0
    for named in sorted(parts, key=lambda named: named[1].offset):
        part = named[1]
        is_near = 0 <= part.offset - end <= _GAP
        if stretch and not (is_near and part.offset + part.length - stretch[0][1].offset <= _STRETCH):
            yield stretch
            stretch = []
        stretch.append(named)
        end = part.offset + part.length
    if stretch:
        yield stretch


def damages(storage: Storage, name: str, start: int, stretch: list[PartOf]) -> list[tuple[PartOf, Exception]]:
    """Read a stretch of the log that begins at `start` of an object; return the parts that cannot be used, with why."""
    first, last = stretch[0][1], stretch[-1][1]
    stream = _Stream(storage.pieces(name, start + first.offset, last.offset + last.length - first.offset))
    found: list[tuple[PartOf, Exception]] = []
    at = first.offset
    for segment, part in stretch:
        for _ in stream.take(part.offset - at):
            pass
        try:
            for _ in checked(stream.take(part.length), storage, name, start, segment, part):
                pass
        except (DamagedLog, MissingLogObject) as error:
            found.append(((segment, part), error))
        at = part.offset + part.length
    return found


class _Stream:
    """Takes bytes from pieces of any size."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = b""

    def take(self, length: int) -> Iterator[bytes]:
        """Yield the next bytes, fewer at the end."""
        while length > 0 and (piece := self._piece or next(self._pieces, b"")):
            self._piece = piece[length:]
            yield piece[:length]
            length -= len(piece[:length])
