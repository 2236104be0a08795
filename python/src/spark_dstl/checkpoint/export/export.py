# SPDX-License-Identifier: Apache-2.0
"""Export: plan the objects of the new checkpoint, write them, then compare them.

The log has changelogs, snapshots and the files of snapshots in Spark's own encoding. The export writes the same bytes
as plain files under Spark's names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.export.needed import Needed
from spark_dstl.checkpoint.export.target import Planned, Target, content_of, copies, deleted, of_bytes
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.locate import Place
from spark_dstl.checkpoint.pins import pin_if_possible
from spark_dstl.checkpoint.reading import SegmentReader, read_entry
from spark_dstl.checkpoint.sparkfiles import OURS, STOCKS
from spark_dstl.checkpoint.survey import numbered
from spark_dstl.checkpoint.verification.verify import look_once, rollback_obstacle
from spark_dstl.errors import CannotExport

_DESCRIPTION = re.compile("state/[0-9]+/_metadata/v2/[0-9]+")


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    path: str
    """The checkpoint that was exported."""
    target: str
    """The path of the new checkpoint."""
    newest: int
    """The last committed batch of both."""
    begun: int | None
    """The next batch, if it was begun; it runs again. If its sink skips it, stock Spark lacks its state."""
    batches: list[int]
    """The retained batches of the new checkpoint: the newest, and those to which it can be rolled back."""
    left_out: dict[int, str]
    """Batches that cannot be rebuilt, and one that was begun and cannot run, each with a reason."""
    written: int
    """Objects that were written."""
    kept: int
    """Objects that an earlier try had written."""
    bytes: int
    """The bytes of the written objects."""


def export(checkpoint: CheckpointAccess, place: Place, stopped: bool = False) -> Exported:
    """Export a checkpoint; see `Checkpoint.export`."""
    target = Target(place, checkpoint, CannotExport)
    activity.refuse_if_running(checkpoint, stopped)
    # Every byte is copied, so every byte is read before. The query is stopped, and one look is enough.
    judged = look_once(checkpoint, deep=True)
    found, survey = judged.found, judged.look.survey
    newest = survey.newest
    if newest is None:
        raise CannotExport(
            f"{checkpoint.path} has no committed batch: start the query on {place.shown} with stock Spark"
        )
    why = rollback_obstacle(survey, newest, found.lost)
    if why is not None:
        raise CannotExport(
            f"{checkpoint.path} cannot be exported, because its newest batch {newest} cannot be rebuilt: {why}. "
            "`dstl verify` names the damage, and the batch to roll back to"
        )
    there = (*survey.entries, found.lost_begun)
    left_out = {batch: reason for batch, reason in (found.given_up | found.lost).items() if batch in there}
    # Spark expects no gaps between batches.
    batches: list[int] = []
    for batch in reversed(survey.retained):
        if batch in left_out or (batches and batch != batches[0] - 1):
            break
        batches.insert(0, batch)
    with pin_if_possible(checkpoint, batches[0]) or nullcontext():
        begun = survey.begun if found.lost_begun is None else []
        plan = list(_planned(checkpoint, place.shown, Needed(judged, batches, begun), batches, begun))
        _refuse_others(target, plan)
        # A query that waited for input was not noticed.
        written, total = target.write_all(plan, lambda: activity.refuse_if_changed(checkpoint, newest))
    next_ = max(begun, default=None)
    return Exported(checkpoint.path, place.shown, newest, next_, batches, left_out, written, len(plan) - written, total)


def _planned(
    checkpoint: CheckpointAccess, target: str, needed: Needed, batches: list[int], begun: list[int]
) -> Iterator[Planned]:
    """Yield all objects of a checkpoint with these batches in the order of their writes; `metadata` is the last."""
    storage = checkpoint.storage
    written: set[str] = set()
    for one in _logged_state(checkpoint, needed):
        if one.name not in written:
            written.add(one.name)
            yield one
    # A plain file with the name of a segment belongs to an attempt that is not the winner.
    for directory in ("state", "sources"):
        for one in copies(storage, directory):
            of = names.file_of(one.name)
            if one.name in written or of in written or not needed.is_kept(of.removeprefix("state/")):
                continue
            if not _DESCRIPTION.fullmatch(of):
                yield one
            elif of == one.name:
                # A checksum of Hadoop would be that of other bytes.
                yield of_bytes(of, sparkfiles.moved(content_of(storage, of, sparkfiles.MAX_OPERATOR), target))
    # A start reads the offsets of the batch before as well. A batch that was begun and is not committed runs again.
    there = numbered(storage.objects("offsets"))
    before = [one for one in (batches[0] - 1,) if one in there]
    offsets = [*before, *batches, *begun]
    read = checkpoint.readers.each
    for batch, content in read(lambda one: content_of(storage, f"offsets/{one}", sparkfiles.MAX_OFFSETS), offsets):
        yield of_bytes(f"offsets/{batch}", content.replace(OURS.encode(), STOCKS.encode()))
    for batch, entry in read(partial(read_entry, storage), batches):
        if entry is None:
            raise deleted(storage, f"commits/{batch}")
        yield of_bytes(f"commits/{batch}", f"{entry.version_line}\n{entry.metadata_line}".encode())
    yield of_bytes("metadata", content_of(storage, "metadata", sparkfiles.MAX_METADATA))


def _logged_state(checkpoint: CheckpointAccess, needed: Needed) -> Iterator[Planned]:
    survey = checkpoint.survey()
    segments = SegmentReader(checkpoint.storage, checkpoint.base(survey.base))
    # The newest first. A file that several snapshots name is the same in each.
    newest_first = [batch for batch, facts in reversed(survey.entries.items()) if facts.index]
    for batch, entry in checkpoint.readers.each(partial(read_entry, checkpoint.storage), newest_first):
        if entry is None:
            raise deleted(checkpoint.storage, f"commits/{batch}")
        for segment in needed.segments(batch, entry.segments):
            name = segment.name
            if segment.kind == names.SNAPSHOT_FILE:
                name = f"{segment.store.directory}/SSTs/{segment.qualifier}.sst"
            yield Planned(f"state/{name}", segment.length, partial(segments.parts, entry, segment))


def _refuse_others(target: Target, plan: list[Planned]) -> None:
    ours = {one.name for one in plan}
    others = [stored.name for stored in target.objects(recursive=True) if stored.name not in ours]
    metadata = b"".join(plan[-1].pieces())
    # A killed export may have written a part of it.
    if not metadata.startswith(target.range("metadata", 0, len(metadata) + 1) or b""):
        others.insert(0, "metadata")
    if others:
        raise CannotExport(
            f"{target.place.shown} has {others[0]}, which does not come from this checkpoint as it is now: it is of "
            "another query, of an export that began before the checkpoint changed, or of one that a query has "
            "continued since. Name a directory that is empty"
        )
