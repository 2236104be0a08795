# SPDX-License-Identifier: Apache-2.0
"""The two entries of a repartition: a batch without input, of which `offsets/` and `commits/` have one each.

The commit entry carries the content of the other: it is created first, and decides. A start of the query on the log
writes the other one if it is missing.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from spark_dstl.checkpoint.convert.point import Offsets
from spark_dstl.checkpoint.format.names import number
from spark_dstl.checkpoint.reading import LoadedEntry
from spark_dstl.checkpoint.sparkfiles import MAX_OFFSETS, MAX_PARTITIONS, PARTITIONS, json_object
from spark_dstl.checkpoint.storage import Storage

_NOTE = "repartition"
_LOCK = b"dstl repartition"


@dataclass(frozen=True)
class Note:
    """The note in the commit entry of a repartition: the new number of partitions, and the content of `offsets/`."""

    partitions: int
    offsets: bytes


def note_in(entry: LoadedEntry) -> Note | None:
    """Return the note of a repartition; None if the entry has none."""
    found = (json_object(entry.note_line.encode()) if entry.is_repartition else None) or {}
    content, partitions = found.get("offsets"), number(str(found.get("partitions")))
    if found.get(_NOTE) != 1 or not isinstance(content, str) or not partitions or partitions > MAX_PARTITIONS:
        return None
    return Note(partitions, content.encode())


def offsets_of(before: Offsets, partitions: int) -> bytes:
    """Return the entry of `offsets/`: that of the batch before, with the new number."""
    pinned = {**before.settings, PARTITIONS: str(partitions)}
    return before.content({**before.metadata, "conf": pinned})


def commit_of(before: LoadedEntry, offsets: bytes, partitions: int, ids: dict[int, list[list[str]]]) -> bytes:
    """Return the entry of `commits/`: that of the batch before, with the ids of the new stores, and the note."""
    metadata = dict(before.metadata or {})
    if ids:
        metadata["stateUniqueIds"] = {str(operator): of for operator, of in ids.items()}
    note = {_NOTE: 1, "partitions": partitions, "offsets": offsets.decode()}
    lines = (before.version_line, json.dumps(metadata, separators=(",", ":")), json.dumps(note))
    return "".join(f"{line}\n" for line in lines).encode()


def lock_of(path: str, batch: int) -> bytes:
    """Return an entry of `offsets/` with which Spark does not start: its error quotes the line."""
    way_back = f"dstl rollback {shlex.quote(path)} --to {batch}"
    return _LOCK + f" changes the partitions of {path}, or was interrupted. Repeat it, or {way_back}\n".encode()


def is_lock(content: bytes | None) -> bool:
    """Whether this is such an entry."""
    return content is not None and content.startswith(_LOCK)


def is_locked(storage: Storage, batch: int) -> bool:
    """Whether the entry of `offsets/` of a batch is such an entry."""
    return is_lock(storage.read(f"offsets/{batch}", MAX_OFFSETS))
