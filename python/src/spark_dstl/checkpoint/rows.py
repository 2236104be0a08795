# SPDX-License-Identifier: Apache-2.0
"""The rows of the tables of a checkpoint."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from math import inf
from typing import Any, TypeVar

from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.format.names import CHANGELOG, KINDS, SNAPSHOT, SNAPSHOT_FILE, Store
from spark_dstl.checkpoint.pins import Pin
from spark_dstl.checkpoint.reading import LoadedEntry, read_entry
from spark_dstl.checkpoint.storage import StoredObject, caught
from spark_dstl.checkpoint.survey import StoreFacts, Survey, entries_of, newest_partitions, no_entry, numbered
from spark_dstl.errors import DamagedLog, UnsupportedLog

Row = dict[str, Any]
T = TypeVar("T")
_COUNTED = ("log_changelogs", "log_bytes", "log_snapshots", "plain_changelogs", "plain_snapshots", "plain_bytes")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def query(checkpoint: CheckpointAccess) -> Row:
    """Return the row of `queries`. Reads no commit entry."""
    there = entries_of(checkpoint.storage)
    return {
        "path": checkpoint.path,
        "query": checkpoint.query,
        "batches": len(there),
        "oldest": min(there, default=None),
        "newest": max(there, default=None),
        "committed_at": there[max(there)].modified if there else None,
        "entry_bytes": sum(stored.size for stored in there.values()),
    }


def operators(checkpoint: CheckpointAccess) -> Iterator[Row]:
    """Yield the rows of `operators`."""
    for operator in sparkfiles.operators(checkpoint.storage, newest_partitions(checkpoint.storage)):
        for name, partitions in operator.stores.items():
            named = {"operator": operator.id, "operator_name": operator.name, "store": name}
            yield {**named, "partitions": partitions}


def stores(survey: Survey) -> list[Row]:
    """Return the rows of `stores`, sorted: of those that the newest batch has. A repartition leaves others."""
    there = sorted(survey.stores.items())
    upto = inf if survey.partitions is None else survey.partitions
    return [_of_store(store, facts, survey) for store, facts in there if store.partition < upto]


def claims(checkpoint: CheckpointAccess) -> Iterator[Row]:
    """Yield the rows of `claims`."""
    stored = numbered(checkpoint.storage.objects("dstl/epochs"))
    for epoch, claim in checkpoint.readers.each(partial(sparkfiles.claim, checkpoint.storage), stored):
        if claim is not None:
            yield {"epoch": epoch, "run": claim.run, "host": claim.host, "claimed_at": stored[epoch].modified}


def of_pin(pin: Pin) -> Row:
    """Return a row of `pins`."""
    row: Row = {"pin": pin.name, "batch": pin.batch, "lasts_seconds": int(pin.lasts.total_seconds())}
    return {**row, "pinned_at": pin.pinned_at, "ends_at": pin.ends_at}


def entries(checkpoint: CheckpointAccess, batch: int | None) -> Iterator[Row]:
    """Yield the rows of `entries`, or that of one batch."""
    read = caught(partial(read_entry, checkpoint.storage), DamagedLog, UnsupportedLog)
    for number, stored, entry in _read(checkpoint, read, batch):
        row = {"batch": number, "committed_at": stored.modified, "bytes": stored.size}
        yield row | (_facts(entry) if isinstance(entry, LoadedEntry) else {"damage": str(entry)})


def segments(checkpoint: CheckpointAccess, batch: int | None) -> Iterator[Row]:
    """Yield the rows of `segments`, or those of one batch."""
    for number, _, entry in _read(checkpoint, partial(read_entry, checkpoint.storage), batch):
        for segment in entry.segments:
            yield {
                "batch": number,
                "name": segment.name,
                **_named(segment.store),
                "version": segment.version,
                "kind": KINDS[segment.kind],
                "id": segment.qualifier,
                "attempt": segment.attempt,
                "bytes": segment.length,
                "inline_bytes": sum(part.length for part in segment.parts if part.file is None),
                "parts": len(segment.parts),
                "files": sorted({part.file for part in segment.parts if part.file is not None}),
            }


def _read(
    checkpoint: CheckpointAccess, read: Callable[[int], T | None], batch: int | None
) -> Iterator[tuple[int, StoredObject, T]]:
    there = entries_of(checkpoint.storage)
    wanted = [one for one in there if batch in (None, one)]
    if batch is not None and not wanted:
        raise no_entry(checkpoint.storage, batch)
    for number, found in checkpoint.readers.each(read, wanted, "Reading commit entries"):
        # The query deletes entries that it does not need.
        if found is not None:
            yield number, there[number], found
        elif batch is not None:
            raise no_entry(checkpoint.storage, batch)


def objects(checkpoint: CheckpointAccess) -> Iterator[Row]:
    """Yield the rows of `objects`."""
    for directory in ("commits", "offsets", "sources", "state", "dstl"):
        yield from _of_objects(checkpoint.storage.objects(directory, recursive=True))
    yield from _of_objects(checkpoint.storage.objects())
    base = checkpoint.newest_base()
    if not base.place.is_inside(checkpoint.storage.place):
        yield from _of_objects(base.objects("data", recursive=True), below=f"{base.place.shown.rstrip('/')}/")


def _of_store(store: Store, facts: StoreFacts, survey: Survey) -> Row:
    """Return a row of `stores`: a store's objects, and what its newest version is rebuilt from."""
    version = newest_version(survey)
    base, base_bytes, base_at = newest_snapshot(facts, survey)
    # The log has precedence over plain files.
    changelogs = {one: stored.size for (one, _), stored in facts.plain.items()} | facts.logged
    replayed = [size for one, size in changelogs.items() if (base or 0) < one <= (version or 0)]
    return {
        **_named(store),
        "version": version,
        "log_changelogs": len(facts.logged),
        "log_bytes": sum(facts.logged.values()),
        "log_snapshots": len(facts.held),
        "plain_changelogs": len(facts.plain),
        "plain_snapshots": len(facts.zips),
        "plain_bytes": sum(stored.size for found in (facts.plain, facts.zips) for stored in found.values()),
        "snapshot": base,
        "snapshot_at": base_at,
        "snapshot_bytes": base_bytes,
        "replay_changelogs": len(replayed),
        "replay_bytes": sum(replayed),
    }


def _named(store: Store) -> Row:
    return {"operator": store.operator, "partition": store.partition, "store": store.name}


def newest_version(survey: Survey) -> int | None:
    """Return the state version after the newest batch; None if none is committed."""
    return None if survey.newest is None else survey.newest + 1


def newest_snapshot(facts: StoreFacts, survey: Survey) -> tuple[int | None, int | None, datetime | None]:
    """Return version, bytes and time of a store's newest snapshot; Nones without one. A plain one counts by its zip."""
    upto = newest_version(survey)
    versions = (version for version, _ in (*facts.held, *facts.zips) if upto is None or version <= upto)
    newest = max(versions, default=None)
    if newest is None:
        return None, None, None
    for (version, _), held in facts.held.items():
        if version == newest:
            return newest, held.length, survey.entries[held.batch].stored.modified
    stored = next(stored for (version, _), stored in facts.zips.items() if version == newest)
    return newest, stored.size, stored.modified


def of_versions(survey: Survey) -> Iterator[Row]:
    """Yield the rows of `versions`, in ascending order."""
    sums = {batch + 1: dict.fromkeys(_COUNTED, 0) for batch in survey.entries}

    def add(version: int, what: str, size: int = 0) -> None:
        row = sums.setdefault(version, dict.fromkeys(_COUNTED, 0))
        row[what] += 1
        row["log_bytes" if what.startswith("log") else "plain_bytes"] += size

    for facts in survey.stores.values():
        for version, size in facts.logged.items():
            add(version, "log_changelogs", size)
        for version, _ in facts.held:
            add(version, "log_snapshots")
        for (version, _), stored in facts.plain.items():
            add(version, "plain_changelogs", stored.size)
        for (version, _), stored in facts.zips.items():
            add(version, "plain_snapshots", stored.size)
    retained = set(survey.retained)
    for version, row in sorted(sums.items()):
        entry = survey.entries.get(version - 1)
        yield {
            "batch": version - 1,
            "version": version,
            "committed_at": entry.stored.modified if entry else None,
            "retained": version - 1 in retained,
            "damage": str(entry.error) if entry and entry.error else None,
            "entry_bytes": entry.stored.size if entry else None,
            **row,
        }


def of_snapshots(survey: Survey) -> Iterator[Row]:
    """Yield the rows of `snapshots`: of each store, in ascending order of versions."""
    for store, facts in sorted(survey.stores.items()):
        found: list[Row] = []
        for (version, unique), held in facts.held.items():
            row: Row = {"version": version, "id": unique, "place": "log", "batch": held.batch, "files": len(held.files)}
            found.append({**row, "written_at": survey.entries[held.batch].stored.modified, "bytes": held.length})
        for (version, unique), stored in facts.zips.items():
            row = {"version": version, "id": unique, "place": "plain"}
            found.append({**row, "written_at": stored.modified, "bytes": stored.size})
        for row in sorted(found, key=lambda row: (row["version"], row["place"])):
            yield {**_named(store), **row}


def _facts(entry: LoadedEntry) -> Row:
    watermark = _time((entry.metadata or {}).get("nextBatchWatermarkMs"))
    row: Row = {"bytes": entry.size, "has_log": entry.log is not None, "watermark": watermark}
    if (index := entry.index) is None:
        return row
    writer, listed = index.writer, index.snapshots
    changelogs = [segment for segment in index.segments if segment.kind == CHANGELOG]
    snapshots = [segment for segment in index.segments if segment.kind in (SNAPSHOT, SNAPSHOT_FILE)]
    parts = [part for segment in index.segments for part in segment.parts]
    return row | {
        "epoch": writer.epoch,
        "run": writer.run,
        "host": writer.host,
        "application": writer.application,
        "software": writer.software,
        "entry": index.entry,
        "previous": index.previous,
        "base": index.base,
        "stores": len({segment.store for segment in changelogs}),
        "changelogs": len(changelogs),
        "changelog_bytes": sum(segment.length for segment in changelogs),
        "inline_bytes": sum(part.length for part in parts if part.file is None),
        "data_files": len({part.file for part in parts if part.file is not None}),
        "data_file_bytes": sum(part.length for part in parts if part.file is not None),
        "snapshots": sum(segment.kind == SNAPSHOT for segment in snapshots),
        "snapshot_bytes": sum(segment.length for segment in snapshots),
        "listed_snapshots": len(listed.held) if listed else None,
        "list_continues": listed.complete if listed and listed.complete != entry.batch else None,
        "plain_up_to": listed.plain_up_to if listed else None,
    }


def _of_objects(stored: Iterable[StoredObject], below: str = "") -> Iterator[Row]:
    """Yield rows of `objects`, with names below a directory."""
    for one in stored:
        kind = names.kind_of(f"dstl/{one.name}" if below else one.name)
        yield {"name": f"{below}{one.name}", "kind": kind, "bytes": one.size, "written_at": one.modified}


def _time(millis: object) -> datetime | None:
    # Spark starts watermarks at 0, and ends some at the largest number.
    return _EPOCH + timedelta(milliseconds=millis) if isinstance(millis, int) and 0 < millis < 2**47 else None
