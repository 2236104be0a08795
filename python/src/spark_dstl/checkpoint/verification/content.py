# SPDX-License-Identifier: Apache-2.0
"""Checks of `offsets/`; and deep ones, of every byte that commit entries name, and plain files with a checksum."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import partial

from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.format.checksum import crc32c
from spark_dstl.checkpoint.reading import LoadedEntry, PartOf, damages, read_entry, stretches
from spark_dstl.checkpoint.repartition.entries import is_lock
from spark_dstl.checkpoint.sparkfiles import MAX_OFFSETS, is_version, json_object, offsets_in, partitions_in
from spark_dstl.checkpoint.storage import caught
from spark_dstl.checkpoint.survey import NamedPart
from spark_dstl.checkpoint.verification.findings import Look, SegmentKey, key_of
from spark_dstl.checkpoint.verification.rebuild import Plan
from spark_dstl.errors import DamagedLog, UnsupportedLog

_MAX_CHECKSUM = 64 * 1024
_LOCK = "it is the lock of an interrupted dstl repartition or rollback: repeat the command, or roll back"
# The kinds of bytes that are not read.
CHANGELOGS, SNAPSHOTS, WITHOUT_CHECKSUM = "changelogs", "snapshots", "without checksum"
_CALLED = {
    names.CHANGELOG: CHANGELOGS, names.CHECKSUM: CHANGELOGS, names.SNAPSHOT: SNAPSHOTS, names.SNAPSHOT_FILE: SNAPSHOTS,
}  # fmt: skip
_PLAIN = {kind: _CALLED[number] for number, kind in names.KINDS.items() if number != names.CHECKSUM}


def check_all(look: Look) -> None:
    """Read all parts of all segments, and all plain files with a checksum."""
    check_entries(look, [batch for batch, entry in look.survey.entries.items() if entry.index])
    check_data_files(look, lambda _named: True)
    check_plain(look, look.survey.state)


def check_plan(look: Look, plan: Plan) -> bool:
    """Read what a plan names: entries, and changelogs in other objects; return whether that found damage."""
    before = len(look.damages), len(look.unusable)
    check_entries(look, plan.entries)
    check_data_files(look, plan.replays)
    check_plain(look, plan.files)
    return (len(look.damages), len(look.unusable)) != before


def check_entries(look: Look, batches: Iterable[int]) -> None:
    """Read entries whole."""
    storage = look.storage
    load = caught(partial(read_entry, storage), DamagedLog, UnsupportedLog)

    def read(batch: int) -> tuple[LoadedEntry, list[tuple[PartOf, Exception]]] | None:
        entry = load(batch)
        if not isinstance(entry, LoadedEntry) or entry.log is None:
            return None
        own = [(segment, part) for segment in entry.segments for part in segment.parts if part.file is None]
        name, start = f"commits/{batch}", entry.log.start
        return entry, [one for stretch in stretches(own) for one in damages(storage, name, start, stretch)]

    wanted = sorted(set(batches) - look.was_read.entries)
    for batch, answer in look.readers.each(read, wanted, "Reading whole commit entries"):
        if answer is None:
            continue
        look.was_read.entry(batch, sum(look.survey.entries[batch].inline.values()))
        for (segment, _), error in answer[1]:
            _note(look, {key_of(batch, segment)}, error)


def check_data_files(look: Look, wanted: Callable[[NamedPart], bool]) -> None:
    """Read parts in data files."""
    asked: list[tuple[str, list[PartOf]]] = []
    for file, parts in look.survey.parts.items():
        there = [named for named in parts if wanted(named) and key_of(named.batch, named.segment) not in look.unusable]
        # Many entries name the same part of an unchanged file; it is read once.
        new = [(named.segment, named.part) for named in there if look.was_read.part(named.part)]
        asked += [(file, stretch) for stretch in stretches(new)]

    def read(one: tuple[str, list[PartOf]]) -> list[tuple[PartOf, Exception]]:
        return damages(look.base, one[0], 0, one[1])

    for (file, _), answer in look.readers.each(read, asked, "Reading data files"):
        for (_, part), error in answer:
            named = [one for one in look.survey.parts[file] if one.part == part]
            _note(look, {key_of(one.batch, one.segment) for one in named}, error)


def unread(look: Look, missing: Collection[str]) -> dict[str, int]:
    """Return the bytes of changelogs and snapshots that exist and were not read, by kind, without zeros."""
    survey, was_read = look.survey, look.was_read
    found: Counter[str] = Counter()
    for batch, entry in survey.entries.items():
        if batch not in was_read.entries:
            for kind, length in entry.inline.items():
                found[_CALLED[kind]] += length
    for (_, _, _, kind, _), length in was_read.zips.items():
        found[_CALLED[kind]] -= length
    parts = {
        named.part: named.segment.kind
        for file, all_ in survey.parts.items()
        for named in all_
        if file not in missing and named.part not in was_read.parts
    }
    for part, kind in parts.items():
        found[_CALLED[kind]] += part.length
    for path, stored in survey.state.items():
        kind_of = names.kind_of(stored.name)
        if path not in was_read.files and kind_of in _PLAIN:
            found[_PLAIN[kind_of] if f"{path}.crc" in survey.state else WITHOUT_CHECKSUM] += stored.size
    return {kind: length for kind, length in sorted(found.items()) if length > 0}


def _note(look: Look, keys: set[SegmentKey], error: Exception) -> None:
    """Note segments with a part that cannot be read. The check of data files reports missing ones."""
    if isinstance(error, DamagedLog) and not keys <= look.unusable.keys():
        look.error(error.file, error)
    why = f"its bytes are damaged: {error.damage if isinstance(error, DamagedLog) else error}"
    for key in keys:
        look.unusable.setdefault(key, why)


def check_plain(look: Look, paths: Iterable[str]) -> None:
    """Check those of these plain files that have a checksum file of Spark."""
    state, storage = look.survey.state, look.storage
    # The checksum file of Hadoop that a checksum file of Spark has on a local disk is none of a hidden file.
    visible = (path for path in paths if not path.rpartition("/")[2].startswith("."))
    wanted = [path for path in visible if f"{path}.crc" in state and path not in look.was_read.files]

    def read(path: str) -> tuple[str | None, int]:
        # A longer file is not one of Spark's.
        checksum = json_object(storage.range(f"state/{path}.crc", 0, _MAX_CHECKSUM)) or {}
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

    for path, (why, length) in look.readers.each(read, wanted, "Reading plain files"):
        look.was_read.files.add(path)
        look.was_read.bytes += length
        if why is not None:
            look.damage(f"state/{path}", why)
            for store, facts in look.survey.stores.items():
                for version, unique in [key for key, one in facts.zips.items() if one == state[path]]:
                    look.unusable_zips[store, version, unique] = why
                for key in [key for key, one in facts.plain.items() if one == state[path]]:
                    del facts.plain[key]


def check_offsets(look: Look) -> tuple[dict[int, str], dict[int, list[bytes]], dict[int, int]]:
    """Read the entries of `offsets/`.

    Return the batches with which Spark cannot start, each with a reason; and of the others the version with the lines
    of sources, and the numbers of partitions.
    """
    storage, entries = look.storage, look.survey.entries
    damaged: dict[int, str] = {}
    named: dict[int, list[bytes]] = {}
    partitions: dict[int, int] = {}
    for batch, content in look.readers.each(
        lambda one: storage.read(f"offsets/{one}", MAX_OFFSETS), look.survey.offsets
    ):
        if content is None:
            continue
        lines = content.split(b"\n")
        index = entries[batch].index if batch in entries else None
        written = index.spark.offsets if index and index.spark else None
        if (number := partitions_in(offsets_in(content))) is not None:
            partitions[batch] = number
        if is_lock(content):
            damaged[batch] = _LOCK
        elif not is_version(lines[0]) or len(lines) == 1 or json_object(lines[1]) is None:
            damaged[batch] = "it is not what Spark writes"
        elif written is not None and crc32c(content) != written:
            damaged[batch] = f"it is not what batch {batch} was computed from, by the checksum in commits/{batch}"
        else:
            named[batch] = [lines[0], *lines[2:]]
    for batch, what in damaged.items():
        look.damage(f"offsets/{batch}", what, 0)
    if damaged and look.survey.newest is None and [*look.survey.offsets] == [0]:
        # No batch is committed: without the entry a start begins the first one again.
        look.in_the_way.append(storage.shown("offsets/0"))
    # A start reads the entry of its newest batch, and the one before.
    before = {batch + 1: f"offsets/{batch} is damaged, without which Spark does not start" for batch in damaged}
    return before | {batch: f"offsets/{batch} is damaged" for batch in damaged}, named, partitions
