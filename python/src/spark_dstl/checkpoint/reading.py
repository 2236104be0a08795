"""Commit entries, data files and segments, read from storage and checked."""

from collections.abc import Iterator
from dataclasses import dataclass

from spark_dstl.checkpoint.format import logfile
from spark_dstl.checkpoint.format.checksum import before_part, crc32c
from spark_dstl.checkpoint.format.logfile import Log, NeedsTail, Plain
from spark_dstl.checkpoint.format.model import HEADER_LENGTH, Index, Part, Segment
from spark_dstl.checkpoint.storage import Storage
from spark_dstl.errors import DamagedLog, DstlError, MissingLogObject

TAIL = 64 * 1024
_PIECE = 4 * 1024 * 1024
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

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments that its log names."""
        return self.log.index.segments if self.log else ()

    def data_files(self) -> set[str]:
        """Return the data files that its segments lie in, relative to the base path."""
        return {part.file for segment in self.segments for part in segment.parts if part.file is not None}


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

    def check(self, entry: LoadedEntry, segment: Segment, part: Part) -> int:
        """Read a part piece by piece and return its bytes' number; raises as `part` does."""
        return sum(map(len, self._pieces(entry, segment, part)))

    def part(self, entry: LoadedEntry, segment: Segment, part: Part) -> bytes:
        """Return the bytes of a part. Raises `DamagedLog` if they are others, `MissingLogObject` if none are there."""
        return b"".join(self._pieces(entry, segment, part))

    def _pieces(self, entry: LoadedEntry, segment: Segment, part: Part) -> Iterator[bytes]:
        storage, name, offset = self.place(entry, part)
        value, taken = before_part(segment.name), 0
        while True:
            piece = storage.range(name, offset + taken, min(part.length - taken, _PIECE))
            if piece is None:
                raise MissingLogObject(f"{storage.shown(name)}, which {segment.name} needs, does not exist")
            value = crc32c(piece, start=value)
            taken += len(piece)
            if not piece and taken < part.length:
                end = offset + part.length
                raise DamagedLog(storage.shown(name), offset, f"it ends before {end}, within {segment.name}")
            yield piece
            if taken == part.length:
                break
        if value != part.crc:
            raise DamagedLog(
                storage.shown(name), offset, f"the {part.length} bytes of {segment.name} have another checksum"
            )

    def content(self, entry: LoadedEntry, segment: Segment, limit: int) -> bytes:
        """Return all bytes of a segment of at most `limit` bytes."""
        if segment.length > limit:
            raise DstlError(f"{segment.name} has {segment.length} bytes, more than the {limit} that are read at once")
        return b"".join(self.part(entry, segment, part) for part in segment.parts)


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
