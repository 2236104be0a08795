# SPDX-License-Identifier: Apache-2.0
"""Leftovers: objects of a stopped query's checkpoint that nothing needs, and their deletion."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.locate import locate
from spark_dstl.checkpoint.repartition.entries import is_locked
from spark_dstl.checkpoint.sparkfiles import json_object, query_id
from spark_dstl.checkpoint.storage import AT_ONCE, Storage, StoredObject, at_once
from spark_dstl.checkpoint.survey import Survey
from spark_dstl.errors import CheckpointNotFound, DstlError

_MAX_OWNER = 64 * 1024
_ABANDONED = "an interrupted repartition has left it, and without the log Spark would take it for the state"


@dataclass(frozen=True)
class Leftover:
    """An object that nothing needs."""

    name: str
    """Its name below the base path, if it is `in_base`, or below the checkpoint."""
    shown: str
    """Its path."""
    size: int
    """Its bytes."""
    why: str
    """Why nothing needs it."""
    in_base: bool
    """Whether it is below the base path."""


@dataclass(frozen=True)
class Leftovers:
    """All leftovers of a checkpoint."""

    path: str
    """The path of the checkpoint."""
    objects: list[Leftover]
    """The leftovers."""
    newest: int | None
    """The last committed batch at that time; None without one."""
    deleted: int = 0
    """The number of deleted objects."""

    @property
    def bytes(self) -> int:
        """Their bytes."""
        return sum(one.size for one in self.objects)


def find_leftovers(checkpoint: CheckpointAccess) -> Leftovers:
    """Return the leftovers. Raises `DstlError` if an entry cannot be read, because they are then unknown."""
    survey = checkpoint.look_again()
    for batch, entry in survey.entries.items():
        if entry.error is not None:
            raise DstlError(
                f"commits/{batch} cannot be read, so it is unknown what it names and what is a leftover: "
                f"{entry.error}. Restore it, or roll back to a batch before it"
            )
    begun = max(survey.offsets, default=-1)
    if is_locked(checkpoint.storage, begun):
        raise DstlError(
            f"{checkpoint.storage.shown(f'offsets/{begun}')} is the lock of a change of the partitions, whose new "
            "snapshots no entry names yet: let it end or repeat it, or go back with dstl rollback"
        )
    base = checkpoint.base(survey.base)
    listed = base.objects("data", recursive=True)
    found = list(among(survey, checkpoint.storage, base, listed))
    if any(one.in_base for one in found):
        _check_owner(checkpoint, base)
    return Leftovers(checkpoint.path, found, survey.newest)


def among(survey: Survey, storage: Storage, base: Storage, listed: Iterable[StoredObject]) -> Iterator[Leftover]:
    """Yield the leftovers, given the objects below `data/` of the base path."""

    def left(place: Storage, stored: StoredObject, why: str) -> Leftover:
        return Leftover(stored.name, place.shown(stored.name), stored.size, why, in_base=place is base)

    for stored in listed:
        if names.is_unfinished(stored.name):
            yield left(base, stored, "it was never finished")
        elif names.is_data_file(stored.name) and stored.name not in survey.parts:
            yield left(base, stored, "no commit entry names it")
    claims = storage.objects("dstl/epochs")
    # A claim fences the run before it, which may be paused; a later run deletes it.
    for stored in claims:
        if names.kind_of(stored.name) == "trial":
            yield left(storage, stored, "a check of exclusive creation has left it")
    for stored in (*claims, *storage.objects("commits"), *storage.objects("offsets")):
        if names.is_unfinished(stored.name):
            yield left(storage, stored, "it was never finished")
    for stored in survey.state.values():
        # An executor or a repartition may be writing one that is new.
        if names.is_unfinished(stored.name) and activity.is_quiet(stored):
            yield left(storage, stored, "it was never finished")
    newest = -1 if survey.newest is None else survey.newest
    for facts in survey.stores.values():
        for (version, unique), stored in facts.zips.items():
            if unique is None and version > newest + 1:
                why = "which is not committed: Spark would take it for what a new batch makes"
                yield left(storage, stored, f"a snapshot of version {version}, {why}")
        for (version, _), stored in facts.abandoned.items():
            yield left(storage, stored, f"a snapshot of version {version}: {_ABANDONED}")
    ahead = [one for facts in survey.stores.values() for one in facts.ahead.items()]
    # A repartition, which writes these, shows no other sign; its first ones may be old.
    if all(activity.is_quiet(stored) for _, stored in ahead):
        for (version, _), stored in ahead:
            yield left(storage, stored, f"a snapshot of version {version}, which is not committed: {_ABANDONED}")


def _check_owner(checkpoint: CheckpointAccess, base: Storage) -> None:
    """Raise unless the base path belongs to this query: inside its checkpoint, or marked with its id."""
    if base.place.is_inside(checkpoint.storage.place):
        return
    mark = json_object(base.read("owner.json", _MAX_OWNER)) or {}
    owner, marked = mark.get("query"), mark.get("checkpoint")
    if owner != checkpoint.query:
        raise DstlError(
            f"{base.place.shown} is not marked as the base path of query {checkpoint.query}: owner.json there names "
            f"{owner or 'none'}. What is left over there may be another query's, and is not deleted"
        )
    if isinstance(marked, str) and _is_copied(checkpoint, marked):
        raise DstlError(
            f"{base.place.shown} is marked as the base path of the checkpoint {marked}, of which {checkpoint.path} is "
            "a copy: that one needs files that no entry here names, and nothing is deleted. Look for leftovers there; "
            "or delete that one, if it is not this one under another name"
        )


def _is_copied(checkpoint: CheckpointAccess, marked: str) -> bool:
    """Whether the checkpoint `marked` by a base path is another of the same query, as a start of the query asks."""
    place, here = locate(marked, checkpoint.storage_options), checkpoint.storage.place
    if place.is_same(here):
        return False
    with suppress(CheckpointNotFound):
        return query_id(Storage(place)) == checkpoint.query
    return False


def delete_leftovers(
    checkpoint: CheckpointAccess, found: Leftovers, stopped: bool = False, wait: Callable[[float], None] = time.sleep
) -> Leftovers:
    """Delete leftovers; see `Checkpoint.delete_leftovers`."""
    activity.refuse_if_running(checkpoint, stopped, wait)
    activity.refuse_if_changed(checkpoint, found.newest)
    survey = checkpoint.survey()
    base = checkpoint.base(survey.base)
    there = {f"state/{path}" for path in survey.state} - {one.name for one in found.objects}

    def delete(one: Leftover) -> bool:
        if one.in_base:
            return base.delete(one.name)
        for checksum in names.checksums_of(one.name, there):
            checkpoint.storage.delete(checksum)
        return checkpoint.storage.delete(one.name)

    def done(count: int) -> None:
        checkpoint.progress("Deleting", count, len(found.objects))

    return replace(found, deleted=sum(at_once(AT_ONCE, delete, found.objects, done)))
