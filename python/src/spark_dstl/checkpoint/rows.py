# SPDX-License-Identifier: Apache-2.0
"""The rows of the tables of a checkpoint."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.format.names import CHANGELOG, KINDS, SNAPSHOT, SNAPSHOT_FILE, Store
from spark_dstl.checkpoint.reading import EntryReader, LoadedEntry
from spark_dstl.checkpoint.storage import StoredObject
from spark_dstl.checkpoint.survey import StoreFacts, Survey, entries_of, no_entry, numbered
from spark_dstl.errors import DamagedLog, UnsupportedLog

Row = dict[str, Any]
T = TypeVar("T")
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
    for operator in sparkfiles.operators(checkpoint.storage):
        for name, partitions in operator.stores.items():
            named = {"operator": operator.id, "operator_name": operator.name}
            yield {**named, "store": name, "partitions": partitions}


def stores(survey: Survey) -> list[Row]:
    """Return the rows of `stores`."""
    return [of_store(store, facts, survey) for store, facts in sorted(survey.stores.items())]


def claims(checkpoint: CheckpointAccess) -> Iterator[Row]:
    """Yield the rows of `claims`."""
    stored = numbered(checkpoint.storage.objects("dstl/epochs"))
    for epoch, claim in checkpoint.readers.each(lambda one: sparkfiles.claim(checkpoint.storage, one), stored):
        if claim is not None:
            yield {"epoch": epoch, "run": claim.run, "host": claim.host, "claimed_at": stored[epoch].modified}


def entries(checkpoint: CheckpointAccess, batch: int | None) -> Iterator[Row]:
    """Yield the rows of `entries`, or that of one batch."""
    there = entries_of(checkpoint.storage)
    reader = EntryReader(checkpoint.storage)

    def read(one: int) -> Row | None:
        try:
            found = reader.read(one)
        except (DamagedLog, UnsupportedLog) as error:
            stored = there[one]
            return {"batch": one, "committed_at": stored.modified, "bytes": stored.size, "damage": str(error)}
        return of_entry(found, there[one]) if found else None

    yield from _read(checkpoint, read, _wanted(checkpoint, there, batch))


def segments(checkpoint: CheckpointAccess, batch: int | None) -> Iterator[Row]:
    """Yield the rows of `segments`, or those of one batch."""
    wanted = _wanted(checkpoint, entries_of(checkpoint.storage), batch)
    for entry in _read(checkpoint, EntryReader(checkpoint.storage).read, wanted):
        yield from of_segments(entry)


def _wanted(checkpoint: CheckpointAccess, there: Iterable[int], batch: int | None) -> list[int]:
    wanted = [one for one in there if batch in (None, one)]
    if batch is not None and not wanted:
        raise no_entry(checkpoint.storage, batch)
    return wanted


def _read(checkpoint: CheckpointAccess, read: Callable[[int], T | None], wanted: list[int]) -> Iterator[T]:
    for done, (_, found) in enumerate(checkpoint.readers.each(read, wanted), start=1):
        checkpoint.progress("Reading commit entries", done, len(wanted))
        # The query deletes entries that it does not need.
        if found is not None:
            yield found


def objects(checkpoint: CheckpointAccess) -> Iterator[Row]:
    """Yield the rows of `objects`."""
    for directory in ("commits", "offsets", "sources", "state", "dstl"):
        yield from of_objects(checkpoint.storage.objects(directory, recursive=True))
    yield from of_objects(checkpoint.storage.objects())
    base = checkpoint.newest_base()
    if not base.place.is_inside(checkpoint.storage.place):
        yield from of_objects(base.objects("data", recursive=True), below=f"{base.place.shown.rstrip('/')}/")


def of_store(store: Store, facts: StoreFacts, survey: Survey) -> Row:
    """Return a row of `stores`: a store's objects, and what its newest version is rebuilt from."""
    version = newest_version(survey)
    base, base_bytes, base_at = newest_snapshot(facts, survey, version)
    replayed = [size for one, size in changelogs(facts).items() if (base or 0) < one <= (version or 0)]
    return {
        "operator": store.operator,
        "partition": store.partition,
        "store": store.name,
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


def newest_version(survey: Survey) -> int | None:
    """Return the state version after the newest batch; None if none is committed."""
    return None if survey.newest is None else survey.newest + 1


def changelogs(facts: StoreFacts) -> dict[int, int]:
    """Return the bytes of a store's changelogs by version; the log has precedence over plain files."""
    return {version: stored.size for (version, _), stored in facts.plain.items()} | facts.logged


def newest_snapshot(
    facts: StoreFacts, survey: Survey, upto: int | None
) -> tuple[int | None, int | None, datetime | None]:
    """Return version, bytes and time of the newest snapshot of a store up to a version; Nones without one.

    The bytes of a plain snapshot are those of its zip, which lists its other files.
    """
    versions = {version for version, _ in (*facts.held, *facts.zips) if upto is None or version <= upto}
    if not versions:
        return None, None, None
    newest = max(versions)
    for (version, _), held in facts.held.items():
        if version == newest:
            return newest, held.length, survey.entries[held.batch].stored.modified
    stored = next(stored for (version, _), stored in facts.zips.items() if version == newest)
    return newest, stored.size, stored.modified


def of_versions(survey: Survey) -> Iterator[Row]:
    """Return the rows of `versions`, in ascending order."""
    sums: dict[int, dict[str, int]] = {}

    def add(version: int, what: str, size: int | None) -> None:
        into = sums.setdefault(version, {})
        into[what] = into.get(what, 0) + 1
        if size is not None:
            bytes_of = f"{what.split('_')[0]}_bytes"
            into[bytes_of] = into.get(bytes_of, 0) + size

    for facts in survey.stores.values():
        for version, size in facts.logged.items():
            add(version, "log_changelogs", size)
        for version, _ in facts.held:
            add(version, "log_snapshots", None)
        for (version, _), stored in facts.plain.items():
            add(version, "plain_changelogs", stored.size)
        for (version, _), stored in facts.zips.items():
            add(version, "plain_snapshots", stored.size)
    retained = set(survey.retained)
    counted = (
        "log_changelogs", "log_bytes", "log_snapshots", "plain_changelogs", "plain_snapshots", "plain_bytes",
    )  # fmt: skip
    for version in sorted(sums.keys() | {batch + 1 for batch in survey.entries}):
        entry = survey.entries.get(version - 1)
        yield {
            "batch": version - 1,
            "version": version,
            "committed_at": entry.stored.modified if entry else None,
            "retained": version - 1 in retained,
            "damage": str(entry.error) if entry and entry.error else None,
            "entry_bytes": entry.stored.size if entry else None,
            **{column: sums.get(version, {}).get(column, 0) for column in counted},
        }


def of_snapshots(survey: Survey) -> Iterator[Row]:
    """Return the rows of `snapshots`: of each store, in ascending order of versions."""
    for store in sorted(survey.stores):
        facts = survey.stores[store]
        found: list[tuple[int, Row]] = []
        for (version, unique), held in facts.held.items():
            more = {
                "batch": held.batch,
                "written_at": survey.entries[held.batch].stored.modified,
                "bytes": held.length,
                "files": len(held.files),
            }
            found.append((version, {"version": version, "id": unique, "place": "log", **more}))
        for (version, unique), stored in facts.zips.items():
            more = {"written_at": stored.modified, "bytes": stored.size}
            found.append((version, {"version": version, "id": unique, "place": "plain", **more}))
        for _, row in sorted(found, key=lambda pair: (pair[0], pair[1]["place"])):
            yield {"operator": store.operator, "partition": store.partition, "store": store.name, **row}


def of_entry(entry: LoadedEntry, stored: StoredObject) -> Row:
    """Return a row of `entries`."""
    row: Row = {
        "batch": entry.batch,
        "committed_at": stored.modified,
        "bytes": entry.size,
        "has_log": entry.log is not None,
        "watermark": _time((entry.metadata or {}).get("nextBatchWatermarkMs")),
    }
    index = entry.index
    if index is None:
        return row
    changelogs = [segment for segment in index.segments if segment.kind == CHANGELOG]
    snapshots = [segment for segment in index.segments if segment.kind in (SNAPSHOT, SNAPSHOT_FILE)]
    parts = [part for segment in index.segments for part in segment.parts]
    listed = index.snapshots
    return row | {
        "epoch": index.writer.epoch,
        "run": index.writer.run,
        "host": index.writer.host,
        "application": index.writer.application,
        "software": index.writer.software,
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


def of_segments(entry: LoadedEntry) -> Iterator[Row]:
    """Return the rows of `segments` of an entry."""
    for segment in entry.segments:
        files = sorted({part.file for part in segment.parts if part.file is not None})
        yield {
            "batch": entry.batch,
            "name": segment.name,
            "operator": segment.store.operator,
            "partition": segment.store.partition,
            "store": segment.store.name,
            "version": segment.version,
            "kind": KINDS[segment.kind],
            "id": segment.qualifier,
            "attempt": segment.attempt,
            "bytes": segment.length,
            "inline_bytes": sum(part.length for part in segment.parts if part.file is None),
            "parts": len(segment.parts),
            "files": files,
        }


def of_objects(stored: Iterable[StoredObject], below: str = "") -> Iterator[Row]:
    """Return rows of `objects`, with names below a directory."""
    for one in stored:
        kind = kind_of(one.name if not below else f"dstl/{one.name}")
        yield {"name": f"{below}{one.name}", "kind": kind, "bytes": one.size, "written_at": one.modified}


def kind_of(name: str) -> str:
    """Return the kind of an object of a checkpoint, by its name."""
    directory, _, rest = name.partition("/")
    last = name.rsplit("/", 1)[-1]
    if names.is_unfinished(last):
        return "unfinished"
    if last.startswith(".") and last.endswith(".crc"):
        return "checksum"
    if name == "metadata":
        return "metadata"
    if directory in ("commits", "offsets") and names.number(rest) is not None:
        return "commit entry" if directory == "commits" else "offsets"
    if directory == "sources":
        return "source"
    if directory == "dstl":
        return _kind_in_log(rest)
    if directory == "state":
        return _kind_of_state(rest)
    return "other"


def _kind_in_log(name: str) -> str:
    directory, _, last = name.partition("/")
    if directory == "epochs":
        if names.number(last) is not None:
            return "claim"
        if names.end_of_epoch(last) is not None:
            return "end of run"
        return "trial" if names.trial(last) is not None else "other"
    if name == "owner.json":
        return "owner"
    return "data file" if names.data_file(name) else "other"


def _kind_of_state(path: str) -> str:
    plain = names.plain_file(path)
    if plain is not None:
        return KINDS[plain.kind]
    if "/SSTs/" in path or "/logs/" in path:
        return KINDS[SNAPSHOT_FILE]
    if "_metadata/" in path:
        return "metadata"
    return "checksum" if path.endswith(".crc") else "other"


def _time(millis: object) -> datetime | None:
    # Spark starts watermarks at 0, and ends some at the largest number.
    return _EPOCH + timedelta(milliseconds=millis) if isinstance(millis, int) and 0 < millis < 2**47 else None
