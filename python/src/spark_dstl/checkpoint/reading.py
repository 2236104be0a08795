# SPDX-License-Identifier: Apache-2.0
"""Commit entries, data files and segments, read from storage and checked."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spark_dstl.checkpoint.format import logfile
from spark_dstl.checkpoint.format.checksum import before_part, crc32c
from spark_dstl.checkpoint.format.logfile import Log, NeedsTail, Plain
from spark_dstl.checkpoint.format.model import HEADER_LENGTH, Index, Part, Segment
from spark_dstl.checkpoint.sparkfiles import json_object
from spark_dstl.checkpoint.storage import Storage
from spark_dstl.errors import DamagedLog, DstlError, MissingLogObject

TAIL = 64 * 1024
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


class EntryReader:
    """Reads commit entries of a checkpoint: their ends, then their beginnings."""

    def __init__(self, checkpoint: Storage, tail: int = TAIL) -> None:
        self._checkpoint = checkpoint
        self._tail = tail

    def read(self, batch: int) -> LoadedEntry | None:
        """Return the entry of a batch; None if it is missing. Raises `DamagedLog` or `UnsupportedLog`."""
        name = f"commits/{batch}"
        file = self._checkpoint.shown(name)
        asked = self._tail
        while True:
            tail = self._checkpoint.tail(name, asked)
            if tail is None:
                return None
            found = logfile.read_entry(file, str(batch), tail)
            if not isinstance(found, NeedsTail):
                break
            if found.length <= asked:
                raise DamagedLog(file, tail.length, f"its index needs {found.length} bytes of it")
            asked = found.length
        if isinstance(found, Plain):
            return self._loaded(file, batch, tail.length, tail.content, None)
        # The bytes before the log, and the log's header.
        upto = found.start + HEADER_LENGTH
        if tail.is_whole:
            beginning = tail.content[:upto]
        else:
            if found.start > _MAX_BEGINNING:
                raise DamagedLog(file, 0, f"{found.start} bytes stand before its log")
            read = self._checkpoint.range(name, 0, upto)
            if read is None:
                return None
            beginning = read
        if not found.header_was_read:
            logfile.check_header(file, found.start, beginning[found.start :], found.trailer)
        return self._loaded(file, batch, tail.length, beginning[: found.start], found)

    def _loaded(self, file: str, batch: int, size: int, beginning: bytes, log: Log | None) -> LoadedEntry:
        lines = logfile.sparks_lines(beginning)
        try:
            texts = [line.decode("utf-8") for line in lines]
        except UnicodeDecodeError as error:
            raise DamagedLog(file, 0, "its first lines are not text") from error
        if not texts or not texts[0].startswith("v"):
            raise DamagedLog(file, 0, "it does not begin with Spark's version line")
        return LoadedEntry(batch, size, texts[0], texts[1] if len(texts) > 1 else "", log)


class SegmentReader:
    """Reads segments, part by part, and checks each."""

    def __init__(self, checkpoint: Storage, base: Storage | None) -> None:
        self._checkpoint = checkpoint
        self._base = base

    def place(self, entry: LoadedEntry, part: Part) -> tuple[Storage, str, int]:
        """Return where a part is: the storage, the object's name, and the offset in the object."""
        if part.file is None:
            start = entry.log.start if entry.log else 0
            return self._checkpoint, f"commits/{entry.batch}", start + part.offset
        if self._base is None:
            raise MissingLogObject(f"the base path of {part.file} is not known")
        return self._base, part.file, part.offset

    def check(self, entry: LoadedEntry, segment: Segment) -> int:
        """Read a segment piece by piece and return its number of bytes; raises as `parts` does."""
        return sum(len(piece) for part in segment.parts for piece in self._pieces(entry, segment, part))

    def parts(self, entry: LoadedEntry, segment: Segment) -> Iterator[bytes]:
        """Yield the bytes of each part. Raises `DamagedLog` for other bytes, and `MissingLogObject` for no object."""
        for part in segment.parts:
            yield b"".join(self._pieces(entry, segment, part))

    def _pieces(self, entry: LoadedEntry, segment: Segment, part: Part) -> Iterator[bytes]:
        storage, name, offset = self.place(entry, part)
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
            raise DamagedLog(
                storage.shown(name), offset, f"the {part.length} bytes of {segment.name} have another checksum"
            )

    def content(self, entry: LoadedEntry, segment: Segment, limit: int) -> bytes:
        """Return all bytes of a segment of at most `limit` bytes."""
        if segment.length > limit:
            raise DstlError(f"{segment.name} has {segment.length} bytes, more than the {limit} that are read at once")
        return b"".join(self.parts(entry, segment))


def read_data_file(base: Storage, name: str) -> Log | None:
    """Return the log that a data file is; None if it is not there."""
    file = base.shown(name)
    asked = TAIL
    while True:
        tail = base.tail(name, asked)
        if tail is None:
            return None
        found = logfile.read_data_file(file, name, tail)
        if isinstance(found, Log):
            break
        if found.length <= asked:
            raise DamagedLog(file, tail.length, f"its index needs {found.length} bytes of it")
        asked = found.length
    if not found.header_was_read:
        header = base.range(name, 0, HEADER_LENGTH)
        if header is None:
            return None
        logfile.check_header(file, 0, header, found.trailer)
    return found
