"""The objects that an export writes, and the source of their bytes.

The log has changelogs, snapshots and the files of snapshots in Spark's own encoding. The export writes the same bytes
as plain files under Spark's names.
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
    """Bytes that the export generates."""

    content: bytes

    @property
    def size(self) -> int:
        """The number of bytes."""
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
        """Yield the bytes; raise `MissingLogObject` if the object is deleted or has become shorter."""
        offset = 0
        while offset < self.size:
            piece = self.storage.range(self.name, offset, min(_PIECE, self.size - offset))
            if not piece:
                raise MissingLogObject(f"{self.storage.shown(self.name)} has changed: a query runs on the checkpoint")
            yield piece
            offset += len(piece)


@dataclass(frozen=True)
class FromLog:
    """The bytes of a segment of the log, checked while they are read."""

    reader: SegmentReader
    entry: LoadedEntry
    segment: Segment

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.segment.length

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes; raise `DamagedLog` at the first damaged part."""
        for part in self.segment.parts:
            yield self.reader.part(self.entry, self.segment, part)


Source = FromText | FromObject | FromLog


@dataclass(frozen=True)
class Planned:
    """An object of the new checkpoint."""

    name: str
    source: Source


def planned(checkpoint: CheckpointAccess, batches: list[int]) -> Iterator[Planned]:
    """Yield all objects of the new checkpoint in the order of their writes; `metadata` is the last.

    `commits/` and `offsets/` have the entries of `batches`, and `offsets/` also that of a batch that was begun later.
    """
    storage = checkpoint.storage
    written: set[str] = set()
    for one in _logged_state(checkpoint):
        if one.name not in written:
            written.add(one.name)
            yield one
    for directory in ("state", "sources"):
        for stored in storage.objects(directory, recursive=True):
            # A plain file with the name of a segment belongs to an attempt that is not the winner.
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
    # The newest first. A file that several snapshots name is the same in each.
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
    """Whether the object is the checksum file, of Hadoop or Spark, of an object from the log."""
    directory, _, last = name.rpartition("/")
    if last.endswith(".crc"):
        return f"{directory}/{last.removesuffix('.crc').removeprefix('.')}" in written
    return False
