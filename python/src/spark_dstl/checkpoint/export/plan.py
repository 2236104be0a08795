"""What an export writes: an object for each that stock Spark expects, and where its bytes come from.

Changelogs, snapshots and the files that these consist of are in the log as Spark itself wrote them, so they become
plain files byte by byte, under the names that they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.format.model import Segment
from spark_dstl.checkpoint.format.names import SNAPSHOT_FILE
from spark_dstl.checkpoint.reading import EntryReader, LoadedEntry, SegmentReader
from spark_dstl.checkpoint.storage import Storage
from spark_dstl.errors import MissingLogObject

OURS = "org.apache.spark.sql.execution.streaming.state.dstl.DstlStateStoreProvider"
STOCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PIECE = 4 * 1024 * 1024
_MAX_OFFSETS = 64 * 1024 * 1024


@dataclass(frozen=True)
class FromText:
    """Bytes that the export makes itself."""

    content: bytes

    @property
    def size(self) -> int:
        """How many."""
        return len(self.content)

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes."""
        yield self.content


@dataclass(frozen=True)
class FromObject:
    """The bytes of an object of the checkpoint."""

    storage: Storage
    name: str
    size: int

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes; raises `MissingLogObject` if it has gone, or is shorter than it was."""
        offset = 0
        while offset < self.size:
            piece = self.storage.range(self.name, offset, min(_PIECE, self.size - offset))
            if not piece:
                raise MissingLogObject(f"{self.storage.shown(self.name)} has changed: a query runs on the checkpoint")
            yield piece
            offset += len(piece)


@dataclass(frozen=True)
class FromLog:
    """The bytes of a segment of the log, checked as they are read."""

    reader: SegmentReader
    entry: LoadedEntry
    segment: Segment

    @property
    def size(self) -> int:
        """How many."""
        return self.segment.length

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes; raises `DamagedLog` at the first part that is not what was written."""
        for part in self.segment.parts:
            yield self.reader.part(self.entry, self.segment, part)


Source = FromText | FromObject | FromLog


@dataclass(frozen=True)
class Planned:
    """An object of the new checkpoint."""

    name: str
    source: Source


def planned(checkpoint: CheckpointAccess, batches: list[int]) -> Iterator[Planned]:
    """Yield all objects of the new checkpoint, in the order in which they are written; `metadata` is the last.

    Of `commits/` and `offsets/` those of `batches`, and of `offsets/` also that of a batch that was begun after these.
    """
    storage = checkpoint.storage
    written: set[str] = set()
    for one in _logged_state(checkpoint):
        if one.name not in written:
            written.add(one.name)
            yield one
    for directory in ("state", "sources"):
        for stored in storage.objects(directory, recursive=True):
            # A file of the same name as what is in the log is of an attempt that does not count.
            is_logged = stored.name in written or _is_beside(stored.name, written)
            if not is_logged and not names.is_unfinished(stored.name):
                yield Planned(stored.name, FromObject(storage, stored.name, stored.size))
    kept = set(batches)
    for stored in storage.objects("offsets"):
        batch = names.number(stored.last_name)
        if batch is not None and (batch in kept or batch > max(batches)):
            content = storage.read(stored.name, _MAX_OFFSETS) or b""
            yield Planned(stored.name, FromText(content.replace(OURS.encode(), STOCKS.encode())))
    entries = EntryReader(storage)
    for batch in batches:
        entry = entries.read(batch)
        if entry is None:
            raise MissingLogObject(f"{storage.shown(f'commits/{batch}')} has gone: a query runs on the checkpoint")
        yield Planned(f"commits/{batch}", FromText(f"{entry.version_line}\n{entry.metadata_line}".encode()))
    metadata = storage.read("metadata", 64 * 1024) or b""
    yield Planned("metadata", FromText(metadata))


def _logged_state(checkpoint: CheckpointAccess) -> Iterator[Planned]:
    survey = checkpoint.survey()
    entries = EntryReader(checkpoint.storage)
    segments = SegmentReader(checkpoint.storage, checkpoint.base(survey.base))
    good = [batch for batch, facts in survey.entries.items() if facts.has_log and facts.error is None]
    # The newest first: of a file that several snapshots name it does not matter which tells where it is.
    for batch in reversed(good):
        entry = entries.read(batch)
        if entry is None:
            continue
        for segment in entry.segments:
            yield Planned(f"state/{_place(segment)}", FromLog(segments, entry, segment))


def _place(segment: Segment) -> str:
    if segment.kind == SNAPSHOT_FILE:
        return f"{segment.store.directory}/SSTs/{segment.qualifier}.sst"
    return segment.name


def _is_beside(name: str, written: set[str]) -> bool:
    """Whether it is the checksum file, Hadoop's or Spark's, of an object that comes from the log."""
    directory, _, last = name.rpartition("/")
    if last.endswith(".crc"):
        return f"{directory}/{last.removesuffix('.crc').removeprefix('.')}" in written
    return False
