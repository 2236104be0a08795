# SPDX-License-Identifier: Apache-2.0
"""Findings of a verification."""

from dataclasses import dataclass, field

from spark_dstl.checkpoint.format.model import Part, Segment
from spark_dstl.checkpoint.format.names import Store
from spark_dstl.checkpoint.storage import Readers, Storage
from spark_dstl.checkpoint.survey import NamedPart, Survey
from spark_dstl.errors import DamagedLog, UnsupportedLog

# The batch of an entry, and a segment in it: store, version, kind and qualifier.
SegmentKey = tuple[int, Store, int, int, str | None]


def key_of(batch: int, segment: Segment) -> SegmentKey:
    """Return the key of a segment in the entry of a batch."""
    return (batch, segment.store, segment.version, segment.kind, segment.qualifier)


@dataclass(frozen=True)
class Finding:
    """A finding about an object."""

    object: str
    """The object's path."""
    what: str
    """The damage, or another fact."""
    offset: int | None = None
    """Its position in bytes from the object's start; None if the finding is about the whole object."""
    later: bool = False
    """Whether a later release may have written the object, which this one cannot read."""


@dataclass
class Read:
    """What was read and compared with checksums: whole entries, parts in data files, plain files, and their bytes."""

    entries: set[int] = field(default_factory=set)
    parts: set[Part] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    zips: dict[SegmentKey, int] = field(default_factory=dict)
    bytes: int = 0

    def zip(self, batch: int, segment: Segment) -> None:
        """Note that the zip of a snapshot was read: its parts in data files, and its bytes in the entry."""
        parts = {part for part in segment.parts if part.file is not None}
        self.bytes += sum(part.length for part in parts - self.parts)
        self.parts |= parts
        inline = sum(part.length for part in segment.parts if part.file is None)
        if inline and batch not in self.entries and key_of(batch, segment) not in self.zips:
            self.zips[key_of(batch, segment)] = inline
            self.bytes += inline

    def entry(self, batch: int, length: int) -> None:
        """Note that an entry was read, with so many bytes of segments in it."""
        self.entries.add(batch)
        known = [key for key in self.zips if key[0] == batch]
        self.bytes += length - sum(self.zips.pop(key) for key in known)

    def part(self, part: Part) -> bool:
        """Note that a part in a data file was read; return whether it had not been read before."""
        if part in self.parts:
            return False
        self.parts.add(part)
        self.bytes += part.length
        return True


@dataclass
class Look:
    """One look at a checkpoint: its survey, where to read more, and the findings.

    `links` are entries that were built on another one than the one before them, with the reason. `unusable` are
    segments that cannot be read, with the reason; `unusable_zips` are plain snapshots that cannot be loaded, by store,
    version and id. `listed` are the files in an entry that the zip of a snapshot in it lists. `in_the_way` are damaged
    objects that a start writes anew once they are deleted.
    """

    survey: Survey
    storage: Storage
    base: Storage
    readers: Readers
    deep: bool
    links: dict[int, str]
    was_read: Read = field(default_factory=Read)
    damages: list[Finding] = field(default_factory=list)
    leftovers: list[Finding] = field(default_factory=list)
    leftover_bytes: int = 0
    notes: list[Finding] = field(default_factory=list)
    unusable: dict[SegmentKey, str] = field(default_factory=dict)
    unusable_zips: dict[tuple[Store, int, str | None], str] = field(default_factory=dict)
    listed: dict[SegmentKey, list[SegmentKey]] = field(default_factory=dict)
    in_the_way: list[str] = field(default_factory=list)

    def damage(self, name: str, what: str, offset: int | None = None) -> None:
        """Add damage of an object of the checkpoint."""
        self.damages.append(Finding(self.storage.shown(name), what, offset))

    def error(self, file: str, error: Exception) -> None:
        """Add the damage that reading an object has raised."""
        if isinstance(error, DamagedLog):
            self.damages.append(Finding(error.file, error.damage, error.offset))
        else:
            self.damages.append(Finding(file, str(error), later=isinstance(error, UnsupportedLog)))

    def note(self, name: str, what: str) -> None:
        """Add a note about an object of the checkpoint."""
        self.notes.append(Finding(self.storage.shown(name), what))

    def loads(self, zipped: SegmentKey) -> bool:
        """Whether a snapshot in an entry can be loaded: its zip, and the files in the entry that the zip lists."""
        return self.unusable.keys().isdisjoint((zipped, *self.listed.get(zipped, ())))

    def cannot_use(self, parts: list[NamedPart], why: str) -> None:
        """Add the segments of these parts to the unusable ones."""
        for named in parts:
            self.unusable.setdefault(key_of(named.batch, named.segment), why)


@dataclass(frozen=True)
class Counts:
    """The numbers of checked objects."""

    entries: int = 0
    """Commit entries."""
    segments: int = 0
    """Segments in them."""
    data_files: int = 0
    """Data files."""
    snapshots: int = 0
    """Snapshots of stores."""
    stores: int = 0
    """Stores."""
    checked_bytes: int = 0
    """Bytes of changelogs and snapshots that were compared with checksums."""


@dataclass(frozen=True)
class Verification:
    """The result of a verification."""

    path: str
    """The path of the checkpoint."""
    deep: bool
    """Whether all changelogs and snapshots were read, and not only what a restart replays."""
    newest_batch: int | None
    """The last committed batch; None without one."""
    newest_undamaged: int | None
    """The newest batch that the query can continue from or be rolled back to, by what was read; None without one."""
    unread: dict[str, int]
    """Bytes that were not read, by kind: changelogs, snapshots, and plain files without checksum."""
    running: str | None
    """Why a query seems to run, which may name the leftovers later; None if none seems to."""
    damages: list[Finding]
    """Objects that are damaged or missing."""
    in_the_way: list[str]
    """Damaged objects with which no query starts: once they are deleted, a start of the unchanged query writes them."""
    lost: dict[int, str]
    """The batches from which the query cannot continue, each with a reason: of those whose state Spark retains, and of
    the one that was begun and is not committed."""
    held_above: dict[int, str]
    """Batches that can be rebuilt, but not after a rollback has deleted the entries above them."""
    given_up: dict[int, str]
    """The oldest batches if Spark's maintenance has deleted their state, and not yet their entries: no damage."""
    leftovers: list[Finding]
    """Objects that nothing needs."""
    leftover_bytes: int
    """Their bytes."""
    notes: list[Finding]
    """Harmless findings."""
    counts: Counts
    """The numbers of checked objects."""

    @property
    def is_damaged(self) -> bool:
        """Whether damage was found in what was read."""
        return bool(self.damages or self.lost)

    @property
    def no_way_back(self) -> dict[int, str]:
        """The batches that the query cannot be rolled back to, each with a reason."""
        return {**self.held_above, **self.given_up, **self.lost}

    @property
    def has_read_all(self) -> bool:
        """Whether a deep verification left no byte unread, so that a batch without damage is intact."""
        return self.deep and not self.unread

    @property
    def way_back(self) -> int | None:
        """The batch that the query must be rolled back to; None if there is no need, or no such batch."""
        continues = self.newest_undamaged == self.newest_batch and self.lost_begun is None
        return None if continues or not self.is_damaged else self.newest_undamaged

    @property
    def lost_begun(self) -> int | None:
        """The batch that was begun after the newest committed one, if the query does not start with it."""
        return next((batch for batch in self.lost if self.newest_batch is None or batch > self.newest_batch), None)
