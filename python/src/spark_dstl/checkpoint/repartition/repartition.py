# SPDX-License-Identifier: Apache-2.0
"""Writes the state of a stopped query into another number of partitions, as a batch without input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.convert.stores import NamedStores, refuse_old_spark
from spark_dstl.checkpoint.format.names import SNAPSHOT, checksums_of, file_of, plain_file
from spark_dstl.checkpoint.repartition.entries import commit_of, is_locked, lock_of, offsets_of
from spark_dstl.checkpoint.repartition.plan import Plan, find_plan, state_bytes
from spark_dstl.checkpoint.repartition.stores import StoreRepartition
from spark_dstl.checkpoint.storage import AT_ONCE, at_once
from spark_dstl.checkpoint.survey import entries_of
from spark_dstl.errors import CannotRepartition, QuerySeemsToRun, UnreadableStorage

if TYPE_CHECKING:
    from spark_dstl.checkpoint.java.state import StateReader


@dataclass(frozen=True)
class Repartition:
    """The result of a repartition, or its plan, which has no numbers of rows."""

    path: str
    """The path of the checkpoint."""
    batch: int
    """The newest batch before; the repartition is the batch after it."""
    before: int
    """The number of partitions until then."""
    partitions: int
    """The number from then on."""
    state_bytes: int
    """The bytes that a start of the query reads to rebuild the state before."""
    stores: list[NamedStores]
    """The stores, by operator and name, with their new numbers of partitions."""
    is_applied: bool = False
    """Whether it was done."""


def plan_repartition(checkpoint: CheckpointAccess, partitions: int, stopped: bool = False) -> Repartition:
    """Return what a repartition does; see `Checkpoint.repartition`."""
    return _planned(checkpoint, partitions, stopped)[1]


def _planned(checkpoint: CheckpointAccess, partitions: int, stopped: bool) -> tuple[Plan, Repartition]:
    refuse_old_spark(CannotRepartition)
    plan = find_plan(checkpoint, partitions, stopped)
    stores = [
        NamedStores(one.id, one.name, store, one.partitions(partitions))
        for one in plan.operators
        for store in one.stores
    ]
    size = state_bytes(checkpoint)
    return plan, Repartition(checkpoint.path, plan.batch, plan.before, partitions, size, stores)


def repartition(
    checkpoint: CheckpointAccess,
    partitions: int,
    reader: Callable[[], StateReader],
    stopped: bool = False,
) -> Repartition:
    """Write the state into another number of partitions; see `Checkpoint.repartition`."""
    plan, planned = _planned(checkpoint, partitions, stopped)
    activity.refuse_if_running(checkpoint, stopped)
    offsets = offsets_of(plan.offsets, partitions)
    stores = planned.stores
    if plan.unfinished is None:
        if plan.needs_lock:
            checkpoint.storage.replace(f"offsets/{plan.batch + 1}", lock_of(checkpoint.path, plan.batch))
        _delete_earlier_tries(checkpoint, plan)
        writer = StoreRepartition(checkpoint, reader(), checkpoint.gateway(), plan, offsets, partitions)
        ids, rows = writer.write()
        stores = [replace(one, rows=found) for one, found in zip(stores, rows, strict=True)]
        _refuse_if_changed(checkpoint, plan)
        # From here on the new number counts: the next start finds the offsets in the entry.
        _decide(checkpoint, writer, plan, commit_of(plan.commit, offsets, partitions, ids))
    else:
        offsets = plan.unfinished.offsets
    _finish(checkpoint, plan, offsets)
    return replace(planned, stores=stores, is_applied=True)


def _delete_earlier_tries(checkpoint: CheckpointAccess, plan: Plan) -> None:
    """Delete the plain snapshots of interrupted repartitions, also in partitions that the newest batch does not have.

    The new commit entry makes all plain snapshots up to its version visible: batches that the query has committed since
    such a try would be rebuilt from its snapshots. Until then no provider loads them, so an interruption is harmless.
    """
    survey = checkpoint.look_again()
    # Where the query does not write to the log, the snapshots of a later batch are its own.
    activity.refuse_if_changed(checkpoint, plan.batch)
    there = {f"state/{path}" for path in survey.state}
    found = {stored.name for facts in survey.stores.values() for stored in facts.abandoned.values()}
    for path in survey.state:
        plain = plain_file(file_of(path))
        if plain and plain.kind == SNAPSHOT and plain.version > plan.batch + 1:
            # The zip may be missing, and only its checksum file there.
            found.add(f"state/{file_of(path)}")

    def delete(name: str) -> None:
        for one in (*checksums_of(name, there), name):
            checkpoint.storage.delete(one)

    at_once(AT_ONCE, delete, sorted(found), lambda done: checkpoint.progress("Deleting", done, len(found)))


def _refuse_if_changed(checkpoint: CheckpointAccess, plan: Plan) -> None:
    activity.refuse_if_changed(checkpoint, plan.batch)
    begun = checkpoint.storage.look(f"offsets/{plan.batch + 1}")
    if plan.needs_lock and not is_locked(checkpoint.storage, plan.batch + 1):
        raise QuerySeemsToRun(
            f"offsets/{plan.batch + 1} of {checkpoint.path}, which locks it, was deleted or written anew meanwhile, "
            "for example by dstl rollback. Begin again"
        )
    if begun is not None and not plan.needs_lock:
        raise QuerySeemsToRun(
            f"{begun.name} of {checkpoint.path} was written meanwhile: a query runs on it. Stop it, and begin again"
        )


def _decide(checkpoint: CheckpointAccess, writer: StoreRepartition, plan: Plan, entry: bytes) -> None:
    """Create the commit entry, unless a query has committed the batch meanwhile."""
    name = f"commits/{plan.batch + 1}"
    # The client of the storage may repeat a request, and be refused for what the first one has created.
    if not writer.create(name, entry) and checkpoint.storage.range(name, 0, len(entry) + 1) != entry:
        raise QuerySeemsToRun(
            f"{checkpoint.storage.shown(name)} was written meanwhile: a query runs, with its number of partitions as "
            "before. Stop it, and begin again"
        )


def _finish(checkpoint: CheckpointAccess, plan: Plan, offsets: bytes) -> None:
    """Write what the commit entry has decided; the offsets last, because with them the repartition is finished."""
    entry = f"commits/{plan.batch + 1}"
    try:
        for name, content in {**plan.metadata, f"offsets/{plan.batch + 1}": offsets}.items():
            checkpoint.storage.replace(name, content)
    except UnreadableStorage as error:
        raise UnreadableStorage(
            f"{error}. The new number counts, by {entry}: repeat the command, which writes the rest"
        ) from error
    if plan.batch not in entries_of(checkpoint.storage):
        raise QuerySeemsToRun(
            f"commits/{plan.batch} of {checkpoint.path} was deleted, and {entry} written: a rollback ran. Repeat it"
        )
