# SPDX-License-Identifier: Apache-2.0
"""A rollback to an earlier batch: which objects are deleted, and in which order.

Spark starts from the newest entry of `offsets/`, and expects that its batch, or the one before it, is the newest in
`commits/`. So batches are deleted one by one, the newest first, and `commits/N` before `offsets/N`. After an interrupt
the last batch has begun and is not committed, as after a crash.

Spark would use a plain snapshot without a checkpoint id in its name as the state of a batch that runs again. Such a
snapshot is deleted before the commit entry of its batch: until then the state is rebuilt from an earlier one. Spark's
maintenance may write one during the rollback: those are deleted last. So are plain changelogs without an id: a batch
needs its own until its entry is deleted, and if it runs again without changelogs, they would be read as its changes.

Spark never loads a later snapshot with an id, but its maintenance takes it for the newest, and would delete those that
the state is rebuilt from. It is deleted after the commit entry of its batch: the state may be in it alone.

With `offsets/N` of a repartition alone, Spark would run the batch with the new number of partitions on the state of the
old number; with `commits/N` alone, a start on the log would write the other one, and stock Spark repeat the batch
before. Our provider ignores snapshots above its log: `offsets/N` is deleted first, and the snapshots, all that the
batch is rebuilt from, last. For others a lock takes the place of `offsets/N`, and is deleted last.

Pins of deleted batches are deleted before, and those that readers have created since afterwards: they fail by name.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.format.names import CHANGELOG, SNAPSHOT, checksums_of, file_of, number, plain_file
from spark_dstl.checkpoint.pins import pins_of
from spark_dstl.checkpoint.repartition.entries import lock_of
from spark_dstl.checkpoint.sparkfiles import HDFS_BACKED
from spark_dstl.checkpoint.storage import AT_ONCE, at_once
from spark_dstl.checkpoint.survey import Survey, entries_of, numbered
from spark_dstl.checkpoint.verification.verify import rollback_obstacle, verify
from spark_dstl.errors import CannotRollBack, DstlError, QuerySeemsToRun, UnreadableStorage

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rollback:
    """The plan or the result of a rollback."""

    path: str
    """The path of the checkpoint."""
    to: int
    """The batch to which the query is rolled back."""
    newest: int
    """The last committed batch."""
    objects: list[str]
    """Names of objects below the checkpoint, in the order of their deletion."""
    deleted: int = 0
    """The number of deleted objects; 0 in a plan."""


def plan_rollback(checkpoint: CheckpointAccess, to: int, deep: bool = False) -> Rollback:
    """Return what a rollback to a batch deletes; see `Checkpoint.plan_rollback`."""
    found = verify(checkpoint, deep, batch=to)
    survey = checkpoint.survey()
    if survey.newest is None:
        raise CannotRollBack(f"{checkpoint.path} has no committed batch")
    if survey.provider == HDFS_BACKED:
        raise CannotRollBack(
            f"{checkpoint.path} has its state with {HDFS_BACKED}, whose files are not known here: snapshots of later "
            "batches would stay, and become the state. Convert the checkpoint first: dstl convert"
        )
    obstacles = found.no_way_back
    why = rollback_obstacle(survey, to, obstacles)
    if why is not None:
        oldest = min(
            (one for one in survey.retained if rollback_obstacle(survey, one, obstacles) is None), default=None
        )
        rather = (
            f"The newest batch that the query can be rolled back to is {found.newest_undamaged}, the oldest {oldest}"
            if oldest is not None
            else "The query cannot be rolled back to any batch: restore the checkpoint from a backup"
        )
        raise CannotRollBack(f"{checkpoint.path} cannot be rolled back to batch {to}: {why}. {rather}")
    return Rollback(checkpoint.path, to, survey.newest, list(_deletions(checkpoint, survey, to)))


def _deletions(checkpoint: CheckpointAccess, survey: Survey, to: int) -> Iterator[str]:
    # A pin's copy of `offsets/N` must not become that of another batch with this number.
    yield from _pins_above(checkpoint, to)
    zips: dict[int, list[str]] = {}
    with_ids: dict[int, list[str]] = {}
    for facts in survey.stores.values():
        for (version, unique), stored in (facts.zips | facts.abandoned | facts.ahead).items():
            (zips if unique is None else with_ids).setdefault(version - 1, []).append(stored.name)
    described: dict[int, list[str]] = {}
    for path in survey.state:
        below, _, last = path.rpartition("/")
        batch = number(last)
        if batch is not None and below.endswith("/_metadata/v2"):
            # Spark does not write it again when the batch runs again.
            described.setdefault(batch, []).append(f"state/{path}")
    batches = {batch for batch in (*survey.entries, *survey.offsets, *zips, *with_ids, *described) if batch > to}
    there = {stored.name for directory in ("commits", "offsets") for stored in checkpoint.storage.objects(directory)}
    there |= {f"state/{path}" for path in survey.state}
    for batch in sorted(batches, reverse=True):
        entry, offsets, snapshots = f"commits/{batch}", f"offsets/{batch}", sorted(zips.get(batch, []))
        later = sorted(with_ids.get(batch, []))
        if batch not in survey.entries or not survey.entries[batch].is_repartition:
            order = (*snapshots, entry, offsets, *later)
        elif survey.is_ours:
            order = (offsets, entry, *snapshots, *later)
        else:
            order = (entry, *snapshots, *later, offsets)
            there.add(offsets)
        for name in (*order, *described.get(batch, [])):
            if name in there:
                yield from checksums_of(name, there)
                yield name
    for name in filter(is_changelog, _plain_above(sorted(there), to)):
        yield from checksums_of(name, there)
        yield name


def _pins_above(checkpoint: CheckpointAccess, to: int) -> list[str]:
    return [pin.object_name for pin in pins_of(checkpoint.storage) if pin.batch > to]


def is_changelog(name: str) -> bool:
    """Whether this is the name of a plain changelog, or of a checksum file of one."""
    plain = plain_file(file_of(name).removeprefix("state/"))
    return plain is not None and plain.kind == CHANGELOG


def _plain_above(there: Iterable[str], to: int) -> Iterator[str]:
    """Yield the plain snapshots of later versions, and those changelogs whose names have no checkpoint id."""
    for name in there:
        plain = plain_file(name.removeprefix("state/"))
        if plain and (plain.id is None or plain.kind == SNAPSHOT) and plain.version > to + 1:
            yield name


def apply_rollback(
    checkpoint: CheckpointAccess, rollback: Rollback, stopped: bool = False, wait: Callable[[float], None] = time.sleep
) -> Rollback:
    """Delete the planned objects; see `Checkpoint.apply_rollback`. An interrupted rollback can be repeated."""
    deleted: list[str] = []
    survey = checkpoint.survey()
    moved = [n for n, entry in survey.entries.items() if entry.is_repartition and n > rollback.to]
    locked = {} if survey.is_ours else {f"commits/{batch}": f"offsets/{batch}" for batch in moved}

    def delete(name: str) -> None:
        if name in locked:
            checkpoint.storage.replace(locked[name], lock_of(checkpoint.path, rollback.to))
        if checkpoint.storage.delete(name):
            deleted.append(name)

    def delete_plain(name: str) -> None:
        for one in (*checksums_of(name, there), name):
            delete(one)

    try:
        activity.refuse_if_running(checkpoint, stopped, wait)
        activity.refuse_if_changed(checkpoint, rollback.newest)
        for batch in numbered(checkpoint.storage.objects("offsets")):
            if batch > rollback.to and f"offsets/{batch}" not in rollback.objects:
                raise QuerySeemsToRun(
                    f"offsets/{batch} of {checkpoint.path} was written after this rollback was planned: a query ran on "
                    "it. Stop it, and plan the rollback again"
                )
        in_order = [name for name in rollback.objects if not is_changelog(name)]
        for done, name in enumerate(in_order, start=1):
            delete(name)
            checkpoint.progress("Deleting", done, len(in_order))
        _refuse_if_other(checkpoint, rollback)
        # Readers renew their pins under other names.
        for name in _pins_above(checkpoint, rollback.to):
            delete(name)
        # Executors write snapshots for some time after the end of a query.
        there = {stored.name for stored in checkpoint.storage.objects("state", recursive=True)}
        plain = list(_plain_above(there, rollback.to))
        at_once(AT_ONCE, delete_plain, plain, lambda done: checkpoint.progress("Deleting changelogs", done, len(plain)))
    except BaseException as error:
        starts = "may be locked until the rest is deleted" if locked else "still starts"
        state = (
            f"{len(deleted)} of {len(rollback.objects)} objects are deleted, the newest batches first. The checkpoint "
            f"{starts}; to delete the rest, roll back again: dstl rollback {shlex.quote(checkpoint.path)} --to "
            f"{rollback.to} --apply"
        )
        if isinstance(error, UnreadableStorage):
            raise UnreadableStorage(f"{error}. {state}") from error
        if not isinstance(error, DstlError):
            # The interrupt of a command.
            _logger.warning("The rollback is interrupted: %s", state)
        raise
    _refuse_if_other(checkpoint, rollback)
    return replace(rollback, deleted=len(deleted))


def _refuse_if_other(checkpoint: CheckpointAccess, rollback: Rollback) -> None:
    """Raise if a query or another rollback has changed which entries there are."""
    storage = checkpoint.storage
    there = entries_of(storage)
    both = {"commits": there, "offsets": numbered(storage.objects("offsets"))}
    above = [f"{of}/{batch}" for of, batches in both.items() for batch in batches if batch > rollback.to]
    if above:
        raise QuerySeemsToRun(
            f"{above[0]} of {checkpoint.path} was written while the later batches were deleted: a query runs "
            "on it. Stop it, and repeat the rollback"
        )
    if rollback.to not in there:
        raise QuerySeemsToRun(
            f"commits/{rollback.to} of {checkpoint.path} was deleted meanwhile: another rollback continues to an "
            "earlier batch. Let it end"
        )
