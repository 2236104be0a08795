"""What an index says."""

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
    """Changes of a store that lead to a version, or another file that belongs to that version; see `names.KINDS`."""

    store: Store
    version: int
    attempt: int
    kind: int
    qualifier: str | None
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        """The path of the file it stands for, below `<checkpoint>/state`."""
        unique = "" if self.qualifier is None else f"_{self.qualifier}"
        return f"{self.store.directory}/{self.version}{unique}{SUFFIXES[self.kind]}"

    @property
    def length(self) -> int:
        """Its bytes, in all parts."""
        return sum(part.length for part in self.parts)


class HeldSnapshot(NamedTuple):
    """A snapshot, by the batch whose entry holds it, and the data files that hold parts of it."""

    store: Store
    version: int
    id: str | None
    batch: int
    files: tuple[str, ...]


@dataclass(frozen=True)
class SnapshotList:
    """Where the snapshots are that stood when an entry was written.

    `complete` is the batch of the entry whose list this one continues, its own if this list tells of all. Up to the
    version `plain_up_to` there may be plain files; 0 if there never were any.
    """

    complete: int
    plain_up_to: int
    held: tuple[HeldSnapshot, ...]


@dataclass(frozen=True)
class Writer:
    """Who wrote a log."""

    software: str
    run: str
    epoch: int
    host: str
    application: str


@dataclass(frozen=True)
class Index:
    """The index of a log. `batch` and `entry` are those of a commit entry, `name` is that of a data file."""

    writer: Writer
    batch: int | None
    entry: str | None
    previous: str | None
    name: str | None
    base: str | None
    files: tuple[str, ...]
    segments: tuple[Segment, ...]
    snapshots: SnapshotList | None


@dataclass(frozen=True)
class Trailer:
    """The last 68 bytes of a log: what is where. Checked against the length of the object."""

    log_length: int
    index_offset: int
    index_length: int
    body_length: int
    index_crc: int
    entry: str
    kind: int
    meaning: tuple[int, int, int, int]
