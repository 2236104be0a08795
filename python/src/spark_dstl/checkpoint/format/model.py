# SPDX-License-Identifier: Apache-2.0
"""The content of an index."""

from dataclasses import dataclass
from typing import NamedTuple

from spark_dstl.checkpoint.format.names import SUFFIXES, Store

ENTRY, DATA_FILE = 1, 2
HEADER_LENGTH = 24


class Part(NamedTuple):
    """A range of bytes of a segment.

    `file` is the data file's name relative to the base path, or None for the log that the index belongs to; `offset`
    counts bytes from that log's start.
    """

    file: str | None
    offset: int
    length: int
    crc: int


class Segment(NamedTuple):
    """The changelog of a store's version, or another file of that version; see `names.KINDS`."""

    store: Store
    version: int
    attempt: int
    kind: int
    qualifier: str | None
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        """The path of the corresponding plain file below `<checkpoint>/state`."""
        unique = "" if self.qualifier is None else f"_{self.qualifier}"
        return f"{self.store.directory}/{self.version}{unique}{SUFFIXES[self.kind]}"

    @property
    def length(self) -> int:
        """The bytes of all parts."""
        return sum(part.length for part in self.parts)


class HeldSnapshot(NamedTuple):
    """A snapshot: the batch whose entry holds it, and the data files with parts of it."""

    store: Store
    version: int
    id: str | None
    batch: int
    files: tuple[str, ...]


@dataclass(frozen=True)
class SnapshotList:
    """The snapshots at the time of an entry.

    `complete` is the batch of the entry whose list this one continues, or its own batch for a complete list. Plain
    files may exist up to the version `plain_up_to`; 0 for none.
    """

    complete: int
    plain_up_to: int
    held: tuple[HeldSnapshot, ...]


@dataclass(frozen=True)
class Writer:
    """The writer of a log."""

    software: str
    run: str
    epoch: int
    host: str
    application: str


class SparkChecksums(NamedTuple):
    """CRC32C of what Spark wrote: of all bytes before an entry's log, and of `offsets/<batch>`, if it was known."""

    before_log: int
    offsets: int | None


@dataclass(frozen=True)
class Index:
    """The index of a log. Commit entries have `batch` and `entry`, data files have `name`."""

    writer: Writer
    batch: int | None
    entry: str | None
    previous: str | None
    name: str | None
    base: str | None
    files: tuple[str, ...]
    segments: tuple[Segment, ...]
    snapshots: SnapshotList | None
    spark: SparkChecksums | None = None
