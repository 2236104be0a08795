# SPDX-License-Identifier: Apache-2.0
"""Conversion: writes the state store by store, then the other objects that Spark needs, and compares everything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.convert.point import Point, find_point
from spark_dstl.checkpoint.convert.stores import (
    NamedStores,
    StoreConversion,
    find_stores,
    refuse_if_done,
    refuse_old_spark,
)
from spark_dstl.checkpoint.export.target import Planned, Target, content_of, copies, of_bytes
from spark_dstl.checkpoint.locate import Place
from spark_dstl.checkpoint.sparkfiles import MAX_METADATA, numbered_directories
from spark_dstl.errors import CannotConvert, QuerySeemsToRun

# The first object at the target: it identifies the conversion.
NOTE = "dstl/conversion.json"


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion, or its plan, which has no `written`, `kept` and numbers of rows."""

    path: str
    """The checkpoint that is converted."""
    target: str
    """The path of the new checkpoint."""
    batch: int
    """The newest committed batch, after which the new checkpoint continues."""
    begun: int | None
    """The next batch, if it was begun; it runs again."""
    stores: list[NamedStores]
    """The stores, by operator and name."""
    written: int = 0
    """Stores that were written."""
    kept: int = 0
    """Stores that an earlier try had written."""


def plan_conversion(checkpoint: CheckpointAccess, place: Place) -> Conversion:
    """Plan a conversion; see `Checkpoint.plan_conversion`."""
    refuse_old_spark(CannotConvert)
    point, stores, _ = _planned(checkpoint, Target(place, checkpoint, CannotConvert))
    return Conversion(checkpoint.path, place.shown, point.batch, point.begun, stores)


def convert(checkpoint: CheckpointAccess, place: Place, stopped: bool = False) -> Conversion:
    """Convert a checkpoint; see `Checkpoint.convert`."""
    refuse_old_spark(CannotConvert)
    target = Target(place, checkpoint, CannotConvert)
    activity.refuse_if_running(checkpoint, stopped)
    point, stores, needed = _planned(checkpoint, target)
    target.write(NOTE, [note_of(checkpoint, point)])
    # Spark starts no query on a checkpoint without offsets, so they are written after the state.
    target.write_missing([one for one in needed if one.name.startswith("state/")])
    converted, written = StoreConversion(checkpoint, checkpoint.gateway(), point, target).convert(stores)

    def refuse_if_changed() -> None:
        if find_point(checkpoint) != point:
            raise QuerySeemsToRun(
                f"{checkpoint.path} has changed during the conversion: stop the query, delete {place.shown}, and "
                "begin again"
            )

    target.write_all(needed, refuse_if_changed)
    kept = sum(one.partitions for one in stores) - written
    return Conversion(checkpoint.path, place.shown, point.batch, point.begun, converted, written, kept)


def _planned(checkpoint: CheckpointAccess, target: Target) -> tuple[Point, list[NamedStores], list[Planned]]:
    point = find_point(checkpoint)
    stores = find_stores(checkpoint)
    refuse_if_done(checkpoint, point, stores)
    needed = list(_needed(checkpoint, point))
    _refuse_others(target, checkpoint, point, needed)
    return point, stores, needed


def _needed(checkpoint: CheckpointAccess, point: Point) -> Iterator[Planned]:
    """Yield the objects besides the state, copied except for the provider's name; `metadata` is the last."""
    storage = checkpoint.storage
    for operator in numbered_directories(storage, "state"):
        yield from (one for one in copies(storage, f"state/{operator}") if "/_metadata/" in one.name)
    yield from copies(storage, "sources")
    for one in point.offsets:
        yield of_bytes(f"offsets/{one.batch}", one.content(one.converted()))
    yield of_bytes(f"commits/{point.batch}", point.commit)
    yield of_bytes("metadata", content_of(storage, "metadata", MAX_METADATA))


def note_of(checkpoint: CheckpointAccess, point: Point) -> bytes:
    """Return the content of the note at the target, which identifies the conversion."""
    facts = {"conversion": 1, "query": checkpoint.query, "batch": point.batch, "begun": point.begun}
    return f"{json.dumps(facts)}\n".encode()


def _refuse_others(target: Target, checkpoint: CheckpointAccess, point: Point, needed: list[Planned]) -> None:
    """Raise `CannotConvert` if the target has objects of anything but this conversion."""
    there = [stored.name for stored in target.objects(recursive=True)]
    if not there:
        return
    place = target.place.shown
    note = target.read(NOTE, MAX_METADATA)
    if note is None:
        raise CannotConvert(
            f"{place} is not empty: it has {there[0]}, and no {NOTE}, which a conversion begins with. Name a directory "
            "that is empty"
        )
    # A killed conversion may have written a part of it.
    if not note_of(checkpoint, point).startswith(note):
        raise CannotConvert(
            f"{target.shown(NOTE)} is of another conversion, or of this query at another batch than now: {point.batch} "
            "is committed. Name a directory that is empty"
        )
    ours = {NOTE, *(one.name for one in needed)}
    operators = "|".join(map(str, numbered_directories(checkpoint.storage, "state")))
    written = re.compile(rf"state/(?:{operators})/[0-9]+/.+")
    others = [name for name in there if name not in ours and not written.fullmatch(name)]
    if others:
        raise CannotConvert(
            f"{place} has {others[0]}, which does not come from this conversion: a query has continued it since, or "
            "uses it as well. Name a directory that is empty"
        )
