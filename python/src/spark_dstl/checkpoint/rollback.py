"""A rollback to an earlier batch: which objects are deleted, and in which order.

Spark starts from the newest entry of `offsets/`, and expects that its batch, or the one before it, is the newest in
`commits/`. So batches go one by one, the newest first, and of each `commits/` goes before `offsets/`: wherever this is
interrupted the batch that is left half deleted is one that has begun and not been committed, as after a crash.

A plain snapshot that has no checkpoint id in its name would be taken for the state of a batch that is run again. It
goes before the commit entry of its batch: as long as that stands, the state is rebuilt from an earlier one and the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from spark_dstl.checkpoint import activity
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.survey import Survey, numbered
from spark_dstl.checkpoint.verification.verify import rollback_obstacle, verify
from spark_dstl.errors import CannotRollBack, QuerySeemsToRun


@dataclass(frozen=True)
class Rollback:
    """What a rollback deletes."""

    path: str
    """Where the checkpoint is."""
    to: int
    """The batch that the query is rolled back to."""
    newest: int
    """The last batch that was committed."""
    objects: list[str]
    """The names of objects, below the checkpoint, in the order in which they are deleted."""
    deleted: int = 0
    """How many of them were deleted; 0 in a plan."""


def plan_rollback(
    checkpoint: CheckpointAccess, to: int, wait: Callable[[float], None] = time.sleep, deep: bool = False
) -> Rollback:
    """Return what a rollback to a batch deletes. Raises `CannotRollBack` if its state cannot be rebuilt.

    That is verified before, and with `deep` all data is read for it.
    """
    found = verify(checkpoint, deep, wait)
    survey = checkpoint.survey()
    if survey.newest is None:
        raise CannotRollBack(f"{checkpoint.path} has no committed batch")
    why = rollback_obstacle(survey, to, {**found.held_above, **found.lost})
    if why is not None:
        rather = (
            f"The newest batch that the query can be rolled back to is {found.newest_intact}"
            if found.newest_intact is not None
            else "The query cannot be rolled back to any batch: restore the checkpoint from a backup"
        )
        raise CannotRollBack(f"{checkpoint.path} cannot be rolled back to batch {to}: {why}. {rather}")
    return Rollback(checkpoint.path, to, survey.newest, list(_deletions(checkpoint, survey, to)))


def _deletions(checkpoint: CheckpointAccess, survey: Survey, to: int) -> list[str]:
    zips: dict[int, list[str]] = {}
    for facts in survey.stores.values():
        for (version, unique), stored in facts.zips.items():
            if unique is None and version > to + 1:
                zips.setdefault(version - 1, []).append(stored.name)
    batches = {batch for batch in (*survey.entries, *survey.offsets, *zips) if batch > to}
    there = {stored.name for directory in ("commits", "offsets") for stored in checkpoint.storage.objects(directory)}
    there |= {f"state/{path}" for path in survey.state}
    ordered: list[str] = []
    for batch in sorted(batches, reverse=True):
        wanted = [*sorted(zips.get(batch, [])), f"commits/{batch}", f"offsets/{batch}"]
        for name in wanted:
            if name in there:
                # What is kept beside a file says nothing once the file is gone, and nothing misses it before.
                ordered += [one for one in _beside(name) if one in there]
                ordered.append(name)
    return ordered


def _beside(name: str) -> list[str]:
    """Return the names of checksum files: of Hadoop's on local disks, of Spark's, and Hadoop's of those."""
    directory, _, last = name.rpartition("/")
    return [f"{directory}/.{last}.crc.crc", f"{directory}/.{last}.crc", f"{directory}/{last}.crc"]


def apply_rollback(
    checkpoint: CheckpointAccess, rollback: Rollback, stopped: bool = False, wait: Callable[[float], None] = time.sleep
) -> Rollback:
    """Delete what was planned. Raises `QuerySeemsToRun` if a query seems to, or shows itself meanwhile.

    `stopped` says that the caller has made sure that none does. Interrupted at any point, it can be done again.
    """
    activity.refuse_if_running(checkpoint, stopped, wait)
    activity.refuse_if_changed(checkpoint, rollback.newest)
    deleted = 0
    for done, name in enumerate(rollback.objects, start=1):
        deleted += checkpoint.storage.delete(name)
        checkpoint.progress("Deleting", done, len(rollback.objects))
    checkpoint.look_again()
    above = [batch for batch in numbered(checkpoint.storage.objects("commits")) if batch > rollback.to]
    if above:
        raise QuerySeemsToRun(
            f"commits/{above[0]} of {checkpoint.path} was written while the later batches were deleted: a query runs "
            "on it. Stop it, and repeat the rollback"
        )
    return Rollback(rollback.path, rollback.to, rollback.newest, rollback.objects, deleted)
