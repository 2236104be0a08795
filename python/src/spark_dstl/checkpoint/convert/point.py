# SPDX-License-Identifier: Apache-2.0
"""The position of a query of Spark's HDFS-backed provider: its newest committed batch, and a begun one after it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.reading import read_entry
from spark_dstl.checkpoint.sparkfiles import HDFS_BACKED, OURS, PROVIDER, STOCKS
from spark_dstl.checkpoint.survey import entries_of, numbered
from spark_dstl.errors import CannotConvert, DstlError

# What Spark 4.2 reads.
_OFFSETS_VERSIONS = ("v1", "v2")
_COMMIT_VERSIONS = ("v1", "v3")
# What is wrong with a checkpoint of another provider, or of none.
_INSTEAD = {
    None: "does not name a state store provider: run a batch with Spark 4.2 first, which notes it",
    OURS: "has its state in the log already: it needs no conversion",
    STOCKS: "is of Spark's RocksDB provider, which needs no conversion: set the file manager, and start the query "
    "(docs/operations.md)",
}


@dataclass(frozen=True)
class Offsets:
    """An entry of `offsets/`: its version line, the JSON object of the second line, and the rest unchanged."""

    batch: int
    version_line: str
    metadata: dict[str, Any]
    rest: bytes

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that Spark has pinned."""
        return sparkfiles.settings_in(self.metadata)

    def converted(self) -> dict[str, Any]:
        """Return the second line with this project's provider."""
        pinned = {
            # Entries of earlier releases lack it, and Spark would take it from the session.
            "spark.sql.streaming.stateStore.rocksdb.formatVersion": "5",
            **self.settings,
            PROVIDER: OURS,
        }
        return {**self.metadata, "conf": pinned}

    def content(self, metadata: dict[str, Any]) -> bytes:
        """Return the whole entry with another second line."""
        line = json.dumps(metadata, separators=(",", ":"), ensure_ascii=False)
        return f"{self.version_line}\n{line}\n".encode() + self.rest


@dataclass(frozen=True)
class Point:
    """The position of a query.

    `batch` is the newest committed batch, `begun` the next one if it was begun. `offsets` are the entries that Spark
    needs to continue, in ascending order; `commit` is the content of the newest entry of `commits/`.
    """

    batch: int
    begun: int | None
    offsets: tuple[Offsets, ...]
    commit: bytes

    @property
    def committed(self) -> Offsets:
        """The entry of the newest committed batch."""
        return next(one for one in self.offsets if one.batch == self.batch)


def find_point(checkpoint: CheckpointAccess) -> Point:
    """Return the position of the query. Raises `CannotConvert` if the query cannot continue from it on the log."""
    storage, path = checkpoint.storage, checkpoint.path
    committed = max(entries_of(storage), default=None)
    begun = max(numbered(storage.objects("offsets")), default=None)
    if begun is None:
        raise CannotConvert(f"no batch of {path} was begun: start the query with the log on, and a new checkpoint")
    newest = _offsets(checkpoint, begun)
    if committed is None:
        raise CannotConvert(
            f"no batch of {path} is committed, so there is no state: start the query with the log on, and a new "
            f"checkpoint, or let it finish batch {begun} and stop it"
        )
    if begun not in (committed, committed + 1):
        raise CannotConvert(
            f"{path} is not as Spark leaves it: the newest batch in commits/ is {committed}, in offsets/ {begun}. "
            "Restore the entries that are missing"
        )
    # Spark continues from the newest entry, and reads the one before it.
    needed = [one for one in (begun - 1, begun) if one >= 0]
    offsets = tuple(newest if one == begun else _offsets(checkpoint, one) for one in needed)
    return Point(committed, None if begun == committed else begun, offsets, _commit(checkpoint, committed))


def _offsets(checkpoint: CheckpointAccess, batch: int) -> Offsets:
    found = read_offsets(checkpoint, batch, CannotConvert)
    provider = found.settings.get(PROVIDER)
    if provider != HDFS_BACKED:
        why = f"is of the provider {provider}; only that of Spark's default, {HDFS_BACKED}, can be converted"
        if provider is None or isinstance(provider, str):
            why = _INSTEAD.get(provider, why)
        raise CannotConvert(f"{checkpoint.path} {why} (offsets/{batch})")
    return found


def read_offsets(checkpoint: CheckpointAccess, batch: int, refusal: type[DstlError]) -> Offsets:
    """Return an entry of `offsets/`. Raises `refusal` if it is missing, or is not as Spark 4.2 writes it."""
    name = f"offsets/{batch}"
    file = checkpoint.storage.shown(name)
    content = checkpoint.storage.read(name, sparkfiles.MAX_OFFSETS)
    if content is None:
        raise refusal(f"{file} is missing, without which Spark does not start. Restore it")
    version, _, others = content.partition(b"\n")
    line, _, rest = others.partition(b"\n")
    version_line = version.decode("utf-8", "replace").strip()
    if version_line not in _OFFSETS_VERSIONS:
        raise refusal(f"{file} begins with {version_line[:20]!r}, which is no version that Spark 4.2 writes")
    metadata = sparkfiles.json_object(line)
    if metadata is None:
        raise refusal(
            f"{file} is damaged, or of a Spark before 2.1: its second line is no JSON object. Restore it, or run a "
            "batch with Spark 4.2"
        )
    return Offsets(batch, version_line, metadata, rest)


def _commit(checkpoint: CheckpointAccess, batch: int) -> bytes:
    file = checkpoint.storage.shown(f"commits/{batch}")
    entry = read_entry(checkpoint.storage, batch)
    if entry is None:
        raise CannotConvert(f"{file} was deleted: a query runs on the checkpoint. Stop it")
    if entry.version_line not in _COMMIT_VERSIONS or sparkfiles.state_ids(entry.metadata):
        raise CannotConvert(
            f"{file} has version {entry.version_line[:20]!r}, with checkpoint ids or of a later Spark, which cannot be "
            "where state is kept by the HDFS-backed provider. Use the Spark that wrote it"
        )
    if entry.metadata is None:
        raise CannotConvert(f"{file} is damaged: its second line is no JSON object. Restore it")
    return f"{entry.version_line}\n{entry.metadata_line}".encode()
