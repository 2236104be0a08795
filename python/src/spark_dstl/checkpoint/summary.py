# SPDX-License-Identifier: Apache-2.0
"""The summary that `dstl show` prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from spark_dstl.checkpoint import rows, sparkfiles
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.pins import pins_of
from spark_dstl.checkpoint.survey import numbered


@dataclass(frozen=True)
class Size:
    """Number and size of a kind of object."""

    objects: int = 0
    """The number of objects."""
    bytes: int = 0
    """Their bytes."""


@dataclass(frozen=True)
class Recovery:
    """The reads of a restart, to rebuild the newest version of all stores."""

    snapshot_bytes: int
    """Bytes of snapshots to load."""
    changelogs: int
    """Changelogs to replay, of all stores."""
    changelog_bytes: int
    """The bytes of these changelogs."""
    longest: int
    """The most changelogs of one store."""


@dataclass(frozen=True)
class Summary:
    """The summary of a checkpoint. Times are by the storage's clock; missing values are None."""

    path: str
    """The path of the checkpoint."""
    query: str
    """The id of its query."""
    provider: str | None
    """The state store provider of the newest batch: its class without the package."""
    base_path: str | None
    """The base path, if one was configured."""
    stores: int
    """The number of stores."""
    oldest_batch: int | None
    """The first batch with a commit entry."""
    newest_batch: int | None
    """The last committed batch."""
    begun_batch: int | None
    """The last begun batch: the newest one, or the next one."""
    oldest_retained_batch: int | None
    """The first batch whose state Spark retains."""
    committed_at: datetime | None
    """When the newest batch was committed."""
    committed_epoch: int | None
    """The epoch of the run that committed it."""
    committed_run: str | None
    """The id of that run."""
    committed_host: str | None
    """The host of its driver."""
    claim_epoch: int | None
    """The highest claimed epoch: that of the newest run, which may not have committed a batch, and may have ended."""
    claim_run: str | None
    """The id of that run."""
    claim_host: str | None
    """The host of its driver."""
    claimed_at: datetime | None
    """When it claimed the checkpoint."""
    damaged_entries: int
    """Commit entries that cannot be read."""
    stores_without_snapshot: int
    """Stores without a snapshot, rebuilt from changelogs alone."""
    oldest_snapshot: int | None
    """The lowest version of the newest snapshots of all stores."""
    oldest_snapshot_at: datetime | None
    """When that snapshot was written."""
    recovery: Recovery
    """The reads of a restart."""
    pins: int = 0
    """The number of pins."""
    oldest_pinned_batch: int | None = None
    """The oldest batch that one of them keeps."""
    last_pin_ends_at: datetime | None = None
    """When the last of them ends."""
    sizes: dict[str, Size] = field(default_factory=dict)
    """Number and size of objects by kind."""


def summarize(checkpoint: CheckpointAccess) -> Summary:
    """Summarize a checkpoint: read all commit entries and list all objects."""
    survey = checkpoint.look_again()
    newest = survey.entries[survey.newest] if survey.newest is not None else None
    claims = numbered(checkpoint.storage.objects("dstl/epochs"))
    claim = sparkfiles.claim(checkpoint.storage, max(claims)) if claims else None
    pins = pins_of(checkpoint.storage)
    stores = rows.stores(survey)
    based = [row for row in stores if row["snapshot"] is not None]
    oldest = min(based, key=lambda row: int(row["snapshot"]), default=None)
    begun = max(survey.offsets, default=None)
    offsets = sparkfiles.offsets(checkpoint.storage, begun) if begun is not None else {}
    provider = sparkfiles.settings_in(offsets).get(sparkfiles.PROVIDER)
    writer = newest.index.writer if newest and newest.index else None
    return Summary(
        path=checkpoint.path,
        query=checkpoint.query,
        provider=str(provider).rsplit(".", 1)[-1] if provider else None,
        base_path=survey.base,
        stores=len(stores),
        oldest_batch=min(survey.entries, default=None),
        newest_batch=survey.newest,
        begun_batch=begun,
        oldest_retained_batch=min(survey.retained, default=None),
        committed_at=newest.stored.modified if newest else None,
        committed_epoch=writer.epoch if writer else None,
        committed_run=writer.run if writer else None,
        committed_host=writer.host if writer else None,
        claim_epoch=claim.epoch if claim else None,
        claim_run=claim.run if claim else None,
        claim_host=claim.host if claim else None,
        claimed_at=claims[claim.epoch].modified if claim else None,
        damaged_entries=sum(entry.error is not None for entry in survey.entries.values()),
        stores_without_snapshot=len(stores) - len(based),
        oldest_snapshot=oldest["snapshot"] if oldest else None,
        oldest_snapshot_at=oldest["snapshot_at"] if oldest else None,
        recovery=Recovery(
            snapshot_bytes=sum(row["snapshot_bytes"] or 0 for row in stores),
            changelogs=sum(row["replay_changelogs"] for row in stores),
            changelog_bytes=sum(row["replay_bytes"] for row in stores),
            longest=max((row["replay_changelogs"] for row in stores), default=0),
        ),
        pins=len(pins),
        oldest_pinned_batch=min((pin.batch for pin in pins), default=None),
        last_pin_ends_at=max((pin.ends_at for pin in pins if pin.ends_at), default=None),
        sizes=_sizes(checkpoint),
    )


def _sizes(checkpoint: CheckpointAccess) -> dict[str, Size]:
    survey = checkpoint.survey()
    found = [("commit entry", entry.stored.size) for entry in survey.entries.values()]
    found += [("offsets", stored.size) for stored in survey.offsets.values()]
    found += [(f"plain {names.kind_of(stored.name)}", stored.size) for stored in survey.state.values()]
    data = checkpoint.base(survey.base).objects("data", recursive=True)
    found += [(names.kind_of(f"dstl/{stored.name}"), stored.size) for stored in data]
    found += [(names.kind_of(stored.name), stored.size) for stored in checkpoint.storage.objects("dstl/epochs")]
    sizes: dict[str, Size] = {}
    for kind, size in sorted(found):
        so_far = sizes.get(kind, Size())
        sizes[kind] = Size(so_far.objects + 1, so_far.bytes + size)
    return sizes
