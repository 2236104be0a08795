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
    """Something about an object. `offset` counts bytes from its start; it is None if it is about all of it."""

    object: str
    what: str
    offset: int | None = None


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
    segments: int = 0
    data_files: int = 0
    snapshots: int = 0
    stores: int = 0
    checked_bytes: int = 0


@dataclass(frozen=True)
class Verification:
    """The outcome of verifying a checkpoint.

    `lost` are the batches whose state Spark retains and that cannot be rebuilt, each with a reason; `held_above` those
    that can be, and could not once the entries above them were deleted, which going back does. `newest_intact` is
    the newest batch that can be gone back to, or on; None if there is none. `running` says why a query seems to be at
    work, None if none seems to; then leftovers may be what it is about to name.
    """

    path: str
    deep: bool
    newest_batch: int | None
    newest_intact: int | None
    running: str | None
    damages: list[Finding]
    lost: dict[int, str]
    held_above: dict[int, str]
    leftovers: list[Finding]
    notes: list[Finding]
    counts: Counts

    @property
    def is_intact(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damages and not self.lost

    @property
    def way_back(self) -> int | None:
        """The batch that the query must go back to, to go on; None if there is no need, or no such batch."""
        if self.is_intact or self.newest_intact == self.newest_batch:
            return None
        return self.newest_intact
