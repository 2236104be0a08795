# SPDX-License-Identifier: Apache-2.0
"""What a repartition starts from: the newest committed batch, its stores, and what an earlier try has left."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from spark_dstl.checkpoint import rows, sparkfiles
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.convert.point import Offsets, read_offsets
from spark_dstl.checkpoint.convert.stores import stateful_operators
from spark_dstl.checkpoint.format.names import Store
from spark_dstl.checkpoint.reading import LoadedEntry, read_entry
from spark_dstl.checkpoint.repartition.entries import Note, is_locked, note_in
from spark_dstl.checkpoint.sparkfiles import MAX_OPERATOR, MAX_PARTITIONS, OURS, PROVIDER, STOCKS, Operator
from spark_dstl.checkpoint.survey import entries_of, numbered
from spark_dstl.errors import CannotRepartition


@dataclass(frozen=True)
class Plan:
    """The newest committed batch with its two entries, the operators, and the numbers of partitions.

    `unfinished` is the note of a repartition whose commit entry exists and whose other entry is missing: that batch is
    then not the newest one here, because a start needs both. `needs_lock` says whether only a lock keeps a query from
    what is written before the commit entry. `metadata` has the contents of the operators' metadata of the new batch, by
    name: read before anything is decided, because metadata that cannot be read is a reason not to begin.
    """

    batch: int
    offsets: Offsets
    commit: LoadedEntry
    operators: list[Operator]
    metadata: dict[str, bytes]
    before: int
    unfinished: Note | None
    needs_lock: bool


def find_plan(checkpoint: CheckpointAccess, partitions: int, stopped: bool = False) -> Plan:
    """Return the plan of a repartition. Raises `CannotRepartition` if there is none.

    Raises `QuerySeemsToRun` if a batch was begun by a query that seems to run, unless it is known to be `stopped`.
    """
    storage, path = checkpoint.storage, checkpoint.path
    if not 0 < partitions <= MAX_PARTITIONS:
        raise CannotRepartition(f"{partitions} is no number of partitions: give one from 1 to {MAX_PARTITIONS}")
    committed = max(entries_of(storage), default=None)
    if committed is None:
        raise CannotRepartition(
            f"no batch of {path} is committed, so there is no state: start the query with a new checkpoint and "
            f"{sparkfiles.PARTITIONS}={partitions}"
        )
    begun = max(numbered(storage.objects("offsets")), default=-1)
    locked = begun if begun >= committed and is_locked(storage, begun) else None
    if locked is not None:
        # It may have been interrupted after its commit entry.
        begun -= 1
    commit = _entry(checkpoint, committed)
    unfinished = None
    if begun == committed - 1 and (unfinished := note_in(commit)) is not None:
        committed -= 1
        commit = _entry(checkpoint, committed)
    if begun != committed:
        activity.refuse_if_seen(checkpoint, stopped)
        raise CannotRepartition(
            f"{path} has begun batch {begun}, and committed batch {committed}: start the query with its present number "
            "until the batch is committed, and stop it; or go back with dstl rollback"
        )
    offsets = read_offsets(checkpoint, committed, CannotRepartition)
    provider = offsets.settings.get(PROVIDER)
    if provider not in (OURS, STOCKS):
        raise CannotRepartition(
            f"{path} is of the provider {provider}: only RocksDB's, this project's and Spark's, can be written anew. "
            "Convert the checkpoint first: dstl convert"
        )
    before = sparkfiles.partitions_in(offsets.metadata)
    if before is None:
        raise CannotRepartition(
            f"{storage.shown(f'offsets/{committed}')} has no {sparkfiles.PARTITIONS}, as Spark 4.2 writes it with "
            "spark.sql.streaming.offsetLog.formatVersion=2: it takes the number from the session at each start"
        )
    if unfinished is not None and unfinished.partitions != partitions:
        raise CannotRepartition(
            f"an interrupted change to {unfinished.partitions} partitions of {path} is not finished: repeat it with "
            f"--partitions {unfinished.partitions}, or go back with dstl rollback {shlex.quote(path)} --to {committed}"
        )
    if before == partitions:
        ways_out = f"go back with dstl rollback {shlex.quote(path)} --to {committed}, or name another number"
        lock = f", and offsets/{locked} locks it: {ways_out}" if locked is not None else ""
        raise CannotRepartition(f"{path} has {partitions} partitions already{lock}")
    operators = _operators(checkpoint, before)
    metadata = dict(_metadata(checkpoint, operators, committed, partitions))
    # Above a log, plain snapshots are only of batches whose commit entry has none.
    needs_lock = provider != OURS or not commit.segments
    return Plan(committed, offsets, commit, operators, metadata, before, unfinished, needs_lock)


def _entry(checkpoint: CheckpointAccess, batch: int) -> LoadedEntry:
    entry = read_entry(checkpoint.storage, batch)
    if entry is None or entry.metadata is None:
        raise CannotRepartition(
            f"{checkpoint.storage.shown(f'commits/{batch}')} is missing or damaged: restore it, or go back with dstl "
            "rollback"
        )
    return entry


def _operators(checkpoint: CheckpointAccess, partitions: int) -> list[Operator]:
    path = checkpoint.path
    found = stateful_operators(checkpoint.storage, CannotRepartition, partitions)
    if not found:
        raise CannotRepartition(f"{path} has no state: its query can be started with any number of partitions")
    for of in found:
        if not of.is_whole and of.name not in _BY_KEY:
            raise CannotRepartition(
                f"operator {of.id} of {path} is {of.name}, of which it is not known by which part of the key Spark "
                "distributes it"
            )
    if all(of.is_whole for of in found):
        raise CannotRepartition(
            f"all state of {path} is in one partition, whatever their number: an aggregation without keys, or a limit"
        )
    return found


def _metadata(
    checkpoint: CheckpointAccess, operators: list[Operator], batch: int, partitions: int
) -> Iterator[tuple[str, bytes]]:
    """Yield the metadata of operators of which Spark keeps it by batch, unless it exists; a start writes its own."""
    storage = checkpoint.storage
    for operator in operators:
        directory = f"{operator.id}/_metadata/v2"
        newest = max(numbered(storage.objects(f"state/{directory}")), default=None)
        if newest is None or newest > batch:
            continue
        content = storage.read(f"state/{directory}/{newest}", MAX_OPERATOR) or b""
        if sparkfiles.schemas(directory, content) is None:
            raise CannotRepartition(
                f"{storage.shown(f'state/{directory}/{newest}')} is missing or damaged: restore it, or go back with "
                "dstl rollback; dstl verify checks all metadata"
            )
        version, _, line = content.partition(b"\n")
        metadata = json.loads(line)
        for store in metadata["stateStoreInfo"]:
            store["numPartitions"] = partitions
        text = json.dumps(metadata, separators=(",", ":")).encode()
        yield f"state/{directory}/{batch + 1}", version + b"\n" + text


# The operators whose state Spark 4.2 can distribute by its keys.
_BY_KEY = {
    "stateStoreSave", "sessionWindowStateStoreSaveExec", "symmetricHashJoin", "dedupe", "dedupeWithinWatermark",
    "flatMapGroupsWithState", "applyInPandasWithState", "transformWithStateExec", "transformWithStateInPandasExec",
    "transformWithStateInPySparkExec",
}  # fmt: skip


def state_bytes(checkpoint: CheckpointAccess) -> int:
    """Return the bytes that a start of the query reads to rebuild the state: an estimate of its size.

    All SST files in the directory of a store with a plain snapshot count, because only its zip names those that it has.
    """
    survey = checkpoint.look_again()
    found = rows.stores(survey)
    logged: int = sum((row["snapshot_bytes"] or 0) + row["replay_bytes"] for row in found)
    plain = {
        Store(row["operator"], row["partition"], row["store"]).directory for row in found if row["plain_snapshots"]
    }
    return logged + sum(
        stored.size
        for path, stored in survey.state.items()
        if path.partition("/SSTs/")[0] in plain and "/SSTs/" in path
    )
