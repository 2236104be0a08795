# SPDX-License-Identifier: Apache-2.0
"""Deep checks: every byte that commit entries name, plain files with a checksum of Spark, and `offsets/`."""

from collections.abc import Iterator
from functools import partial

from spark_dstl.checkpoint.format.checksum import crc32c
from spark_dstl.checkpoint.format.model import Part, Segment
from spark_dstl.checkpoint.reading import LoadedEntry, SegmentReader, read_entry
from spark_dstl.checkpoint.sparkfiles import MAX_OFFSETS, json_object
from spark_dstl.checkpoint.storage import caught
from spark_dstl.checkpoint.verification.findings import Look, key_of
from spark_dstl.errors import DamagedLog, MissingLogObject, UnsupportedLog

_MAX_CHECKSUM = 64 * 1024


def check_segments(look: Look) -> int:
    """Read all parts of all segments; return the number of checked bytes."""
    survey, segments = look.survey, SegmentReader(look.storage, look.base)
    loaded = caught(partial(read_entry, look.storage), DamagedLog, UnsupportedLog)

    def each() -> Iterator[tuple[LoadedEntry, Segment]]:
        # Many entries name the same part of an unchanged file; it is read once.
        seen: set[Part] = set()
        logged = [batch for batch, entry in survey.entries.items() if entry.index]
        for _, entry in look.readers.each(loaded, logged, "Checking segments"):
            if not isinstance(entry, LoadedEntry):
                continue
            for segment in entry.segments:
                if not seen.issuperset(segment.parts):
                    seen |= {part for part in segment.parts if part.file is not None}
                    yield entry, segment

    def read(asked: tuple[LoadedEntry, Segment]) -> int:
        return segments.check(*asked)

    checked = 0
    for (entry, segment), answer in look.readers.each(caught(read, DamagedLog, MissingLogObject), each()):
        if isinstance(answer, int):
            checked += answer
            continue
        key = key_of(entry.batch, segment)
        is_known = key in look.unusable
        why = f"its bytes are damaged: {answer.damage if isinstance(answer, DamagedLog) else answer}"
        look.unusable.setdefault(key, why)
        for part in segment.parts:
            look.cannot_use([named for named in survey.parts.get(part.file or "", ()) if named.part == part], why)
        if isinstance(answer, DamagedLog) and not is_known:
            look.error(answer.file, answer)
    return checked


def check_plain(look: Look) -> int:
    """Check plain files that have a checksum file of Spark; return the number of checked bytes."""
    state, storage = look.survey.state, look.storage
    wanted = [path for path in state if f"{path}.crc" in state and not path.endswith(".crc")]

    def read(path: str) -> tuple[str | None, int]:
        checksum = json_object(storage.read(f"state/{path}.crc", _MAX_CHECKSUM)) or {}
        try:
            if checksum["algorithm"] != "CRC32C":
                return None, 0
            value, size = int(checksum["value"]) & 0xFFFFFFFF, int(checksum["mainFileSize"])
        except (ValueError, KeyError, TypeError):
            return "its checksum file is not what Spark writes", 0
        actual, length = 0, 0
        for piece in storage.pieces(f"state/{path}", 0, state[path].size + 1):
            actual = crc32c(piece, start=actual)
            length += len(piece)
        if (actual, length) == (value, size):
            return None, length
        what = f"{length} bytes with CRC32C {actual:08x}, not {size} with {value:08x}"
        return f"it is not what Spark wrote: {what}", 0

    checked = 0
    for path, (why, length) in look.readers.each(read, wanted, "Checking plain files"):
        checked += length
        if why is not None:
            look.damage(f"state/{path}", why)
            for store, facts in look.survey.stores.items():
                for version, unique in [key for key, one in facts.zips.items() if one == state[path]]:
                    look.unusable_zips[store, version, unique] = why
                for key in [key for key, one in facts.plain.items() if one == state[path]]:
                    del facts.plain[key]
    return checked


def check_offsets(look: Look) -> None:
    """Read the entries of `offsets/`."""
    storage = look.storage
    for batch, content in look.readers.each(
        lambda one: storage.read(f"offsets/{one}", MAX_OFFSETS), look.survey.offsets
    ):
        lines = (content or b"v1\n{}").split(b"\n")
        if not lines[0].startswith(b"v") or len(lines) == 1 or json_object(lines[1]) is None:
            look.damage(f"offsets/{batch}", "it is not what Spark writes", 0)
