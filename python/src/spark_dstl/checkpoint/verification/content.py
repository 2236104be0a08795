# SPDX-License-Identifier: Apache-2.0
"""Every byte that commit entries name, read and checked; and what Spark has checksums for."""

import json
from collections.abc import Iterator

from spark_dstl.checkpoint.format.checksum import crc32c
from spark_dstl.checkpoint.format.model import Segment
from spark_dstl.checkpoint.reading import EntryReader, LoadedEntry, SegmentReader
from spark_dstl.checkpoint.sparkfiles import MAX_OFFSETS, json_object
from spark_dstl.checkpoint.storage import Readers, Storage
from spark_dstl.checkpoint.survey import Progress, Survey
from spark_dstl.checkpoint.verification.findings import Finding, Found, SegmentKey, key_of
from spark_dstl.errors import DamagedLog, MissingLogObject, UnsupportedLog

_MAX_CHECKSUM = 64 * 1024


def check_segments(
    survey: Survey, storage: Storage, base: Storage, readers: Readers, found: Found, progress: Progress
) -> int:
    """Read all parts of all segments; returns how many bytes were checked."""
    entries = EntryReader(storage)
    segments = SegmentReader(storage, base)
    batches = [batch for batch, entry in survey.entries.items() if entry.has_log]

    def read_entry(batch: int) -> LoadedEntry | None:
        try:
            return entries.read(batch)
        except (DamagedLog, UnsupportedLog):
            return None

    def each() -> Iterator[tuple[LoadedEntry, Segment]]:
        # A part of an unchanged file is named by many entries: once is enough.
        seen: set[tuple[str, int, int, int]] = set()
        for done, (_, entry) in enumerate(readers.each(read_entry, batches), start=1):
            progress("Checking segments", done, len(batches))
            for segment in entry.segments if entry else ():
                places = {(part.file or "", part.offset, part.length, part.crc) for part in segment.parts}
                if entry is not None and (not places <= seen or any(part.file is None for part in segment.parts)):
                    seen |= {place for place in places if place[0]}
                    yield entry, segment

    def read(asked: tuple[LoadedEntry, Segment]) -> int | DamagedLog | MissingLogObject:
        entry, segment = asked
        try:
            return segments.check(entry, segment)
        except (DamagedLog, MissingLogObject) as error:
            return error

    checked = 0
    for (entry, segment), answer in readers.each(read, each()):
        if isinstance(answer, int):
            checked += answer
            continue
        key = key_of(entry.batch, segment)
        known = key in found.unusable
        why = answer.damage if isinstance(answer, DamagedLog) else str(answer)
        for other in _naming(survey, entry, segment):
            found.unusable.setdefault(other, f"its bytes are damaged: {why}")
        found.unusable.setdefault(key, f"its bytes are damaged: {why}")
        if isinstance(answer, DamagedLog) and not known:
            found.damages.append(Finding(answer.file, why, answer.offset))
    return checked


def _naming(survey: Survey, entry: LoadedEntry, segment: Segment) -> Iterator[SegmentKey]:
    """Return the same segment as other entries name it."""
    for part in segment.parts:
        for named in survey.parts.get(part.file, ()) if part.file else ():
            if named.part == part and named.batch != entry.batch:
                yield key_of(named.batch, named.segment)


def check_plain(survey: Survey, storage: Storage, readers: Readers, found: Found, progress: Progress) -> int:
    """Check plain files that have a checksum file of Spark's beside them; returns the bytes checked."""
    wanted = [path for path in survey.state if f"{path}.crc" in survey.state and not path.endswith(".crc")]

    def read(path: str) -> tuple[str | None, int]:
        checksum = storage.read(f"state/{path}.crc", _MAX_CHECKSUM)
        try:
            said = json.loads(checksum or b"")
            if said["algorithm"] != "CRC32C":
                return None, 0
            value, size = int(said["value"]) & 0xFFFFFFFF, int(said["mainFileSize"])
        except (ValueError, KeyError, TypeError):
            return "its checksum file is not what Spark writes", 0
        actual, length = 0, 0
        for piece in storage.pieces(f"state/{path}", 0, survey.state[path].size + 1):
            actual = crc32c(piece, start=actual)
            length += len(piece)
        if (actual, length) != (value, size):
            return (
                f"it is not what Spark wrote: {length} bytes with CRC32C {actual:08x}, not {size} with {value:08x}",
                0,
            )
        return None, length

    checked = 0
    for done, (path, (why, length)) in enumerate(readers.each(read, wanted), start=1):
        progress("Checking plain files", done, len(wanted))
        checked += length
        if why is not None:
            found.damages.append(Finding(storage.shown(f"state/{path}"), why))
            _note_unusable(survey, path, why, found)
    return checked


def _note_unusable(survey: Survey, path: str, why: str, found: Found) -> None:
    for store, facts in survey.stores.items():
        for version, unique in [key for key, one in facts.zips.items() if one.name == f"state/{path}"]:
            found.unusable_zips[store, version, unique] = why
        for key in [key for key, one in facts.plain.items() if one.name == f"state/{path}"]:
            del facts.plain[key]


def check_offsets(survey: Survey, storage: Storage, readers: Readers, found: Found) -> None:
    """Read the entries of `offsets/`."""
    for batch, content in readers.each(lambda one: storage.read(f"offsets/{one}", MAX_OFFSETS), survey.offsets):
        lines = (content or b"v1\n{}").split(b"\n")
        if not lines[0].startswith(b"v") or len(lines) == 1 or json_object(lines[1]) is None:
            found.damages.append(Finding(storage.shown(f"offsets/{batch}"), "it is not what Spark writes", 0))
