# SPDX-License-Identifier: Apache-2.0
"""Findings of a verification."""

from dataclasses import dataclass, field

from spark_dstl.checkpoint.format.model import Segment
from spark_dstl.checkpoint.format.names import Store
from spark_dstl.checkpoint.storage import Readers, Storage
from spark_dstl.checkpoint.survey import NamedPart, Survey
from spark_dstl.errors import DamagedLog

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


@dataclass
class Look:
    """One look at a checkpoint: its survey, where to read more, and the findings.

    `links` are entries that were built on another one than the one before them, with the reason. `unusable` are
    segments that cannot be read, with the reason; `unusable_zips` are plain snapshots that cannot be loaded, by store,
    version and id.
    """

    survey: Survey
    storage: Storage
    base: Storage
    readers: Readers
    deep: bool
    links: dict[int, str]
    damages: list[Finding] = field(default_factory=list)
    leftovers: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    unusable: dict[SegmentKey, str] = field(default_factory=dict)
    unusable_zips: dict[tuple[Store, int, str | None], str] = field(default_factory=dict)

    def damage(self, name: str, what: str, offset: int | None = None) -> None:
        """Add damage of an object of the checkpoint."""
        self.damages.append(Finding(self.storage.shown(name), what, offset))

    def error(self, file: str, error: Exception) -> None:
        """Add the damage that reading an object has raised."""
        if isinstance(error, DamagedLog):
            self.damages.append(Finding(error.file, error.damage, error.offset))
        else:
            self.damages.append(Finding(file, str(error)))

    def note(self, name: str, what: str) -> None:
        """Add a note about an object of the checkpoint."""
        self.notes.append(Finding(self.storage.shown(name), what))

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
    """Bytes that were compared with checksums; 0 without `deep`."""


@dataclass(frozen=True)
class Verification:
    """The result of a verification."""

    path: str
    """The path of the checkpoint."""
    deep: bool
    """Whether every byte was read."""
    newest_batch: int | None
    """The last committed batch; None without one."""
    newest_intact: int | None
    """The newest batch that the query can continue from or be rolled back to; None without one."""
    running: str | None
    """Why a query seems to run, which may name the leftovers later; None if none seems to."""
    damages: list[Finding]
    """Objects that are damaged or missing."""
    lost: dict[int, str]
    """The batches whose state Spark retains and that cannot be rebuilt, each with a reason."""
    held_above: dict[int, str]
    """Batches that can be rebuilt, but not after a rollback has deleted the entries above them."""
    leftovers: list[Finding]
    """Objects that nothing needs."""
    notes: list[Finding]
    """Harmless findings."""
    counts: Counts
    """The numbers of checked objects."""

    @property
    def is_intact(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damages and not self.lost

    @property
    def way_back(self) -> int | None:
        """The batch that the query must be rolled back to; None if there is no need, or no such batch."""
        if self.is_intact or self.newest_intact == self.newest_batch:
            return None
        return self.newest_intact
