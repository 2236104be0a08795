# SPDX-License-Identifier: Apache-2.0
"""What verification finds."""

from dataclasses import dataclass, field

from spark_dstl.checkpoint.format.model import Segment
from spark_dstl.checkpoint.format.names import Store

# A segment of the entry of a batch.
SegmentKey = tuple[int, Store, int, int, str | None]


def key_of(batch: int, segment: Segment) -> SegmentKey:
    """Return what a segment is known by."""
    return (batch, segment.store, segment.version, segment.kind, segment.qualifier)


@dataclass(frozen=True)
class Finding:
    """Something about an object."""

    object: str
    """The object's path."""
    what: str
    """What is the matter with it."""
    offset: int | None = None
    """Where, in bytes from its start; None if it is about all of it."""


@dataclass
class Found:
    """What one look has found.

    `damages` are objects that are not what they must be, or not there. `unusable` are segments that cannot be read,
    with the reason; `unusable_zips` the same of plain snapshots, by store, version and id. `leftovers` are objects that
    nothing names, and `notes` all else that is worth a look and harms nothing.
    """

    damages: list[Finding] = field(default_factory=list)
    leftovers: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    unusable: dict[SegmentKey, str] = field(default_factory=dict)
    unusable_zips: dict[tuple[Store, int, str | None], str] = field(default_factory=dict)


@dataclass(frozen=True)
class Counts:
    """How much was looked at."""

    entries: int = 0
    """Commit entries."""
    segments: int = 0
    """Segments that these name."""
    data_files: int = 0
    """Data files."""
    snapshots: int = 0
    """Snapshots of stores."""
    stores: int = 0
    """Stores."""
    checked_bytes: int = 0
    """Bytes of segments that were compared with their checksums; 0 unless it went deep."""


@dataclass(frozen=True)
class Verification:
    """The outcome of verifying a checkpoint."""

    path: str
    """Where the checkpoint is."""
    deep: bool
    """Whether every byte was read."""
    newest_batch: int | None
    """The last batch that is committed; None if there is none."""
    newest_intact: int | None
    """The newest batch that the query can continue from or be rolled back to; None if there is none."""
    running: str | None
    """Why a query seems to be at work, whose leftovers may be what it is about to name; None if none seems to."""
    damages: list[Finding]
    """Objects that are not what they must be, or not there."""
    lost: dict[int, str]
    """The batches whose state Spark retains and that cannot be rebuilt, each with a reason."""
    held_above: dict[int, str]
    """Those that can be rebuilt, but not once a rollback has deleted the entries above them."""
    leftovers: list[Finding]
    """Objects that nothing names."""
    notes: list[Finding]
    """All else that is worth a look and harms nothing."""
    counts: Counts
    """How much was looked at."""

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
