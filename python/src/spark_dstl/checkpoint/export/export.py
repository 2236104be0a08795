"""Export: write the planned objects, then compare them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from spark_dstl.checkpoint import activity
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.export.copying import check, write_missing
from spark_dstl.checkpoint.export.plan import Planned, planned
from spark_dstl.checkpoint.export.target import Target
from spark_dstl.checkpoint.locate import Place
from spark_dstl.checkpoint.verification.verify import rollback_obstacle, verify
from spark_dstl.errors import CannotExport


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    path: str
    """The checkpoint that was exported."""
    target: str
    """The path of the new checkpoint."""
    newest: int
    """The last committed batch of both."""
    batches: list[int]
    """The retained batches of the new checkpoint: the newest, and those to which it can be rolled back."""
    left_out: dict[int, str]
    """Batches that cannot be rebuilt, each with a reason."""
    written: int
    """Objects that were written."""
    kept: int
    """Objects that an earlier try had written."""
    bytes: int
    """The bytes of the written objects."""


def export(
    checkpoint: CheckpointAccess, place: Place, stopped: bool = False, wait: Callable[[float], None] = time.sleep
) -> Exported:
    """Export a checkpoint; see `Checkpoint.export`."""
    if not place.is_apart_from(checkpoint.storage.place):
        raise CannotExport(f"{place.shown} and {checkpoint.path} are not apart: name a separate directory")
    activity.refuse_if_running(checkpoint, stopped, wait)
    checkpoint.look_again()
    found = verify(checkpoint, wait=wait)
    survey = checkpoint.survey()
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
    left_out = {batch: reason for batch, reason in found.lost.items() if batch in survey.entries}
    # Spark expects no gaps between batches.
    batches: list[int] = []
    for batch in sorted(survey.retained, reverse=True):
        if batch in left_out or (batches and batch != batches[-1] - 1):
            break
        batches.append(batch)
    target = Target(place)
    plan = list(planned(checkpoint, sorted(batches)))
    _refuse_others(target, plan)
    written, total = write_missing(target, plan, checkpoint.progress)
    check(target, plan, checkpoint.progress)
    return Exported(
        checkpoint.path, place.shown, newest, sorted(batches), left_out, written, len(plan) - written, total
    )


def _refuse_others(target: Target, plan: list[Planned]) -> None:
    ours = {one.name for one in plan}
    metadata = next(one.source for one in plan if one.name == "metadata")
    others = [stored.name for stored in target.objects(recursive=True) if stored.name not in ours]
    if target.size("metadata") is not None and not target.has("metadata", metadata.pieces()):
        others.insert(0, "metadata")
    if others:
        raise CannotExport(
            f"{target.place.shown} has {others[0]}, which does not come from this checkpoint as it is now: another "
            "query's, or of an export that a query has continued since. Name a directory that is empty"
        )
