# SPDX-License-Identifier: Apache-2.0
"""Snapshots: the zip with the list of what one consists of, and whether all of that is there."""

import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from spark_dstl.checkpoint.format.names import Store
from spark_dstl.checkpoint.reading import EntryReader, LoadedEntry, SegmentReader
from spark_dstl.checkpoint.storage import Readers, Storage, StoredObject
from spark_dstl.checkpoint.survey import HeldZip, Progress, Survey
from spark_dstl.checkpoint.verification.findings import Finding, Found, key_of
from spark_dstl.errors import DamagedLog, DstlError, MissingLogObject

_MAX_ZIP = 64 * 1024 * 1024
_MAX_METADATA = 64 * 1024 * 1024
_MAX_UNPACKED = 256 * 1024 * 1024


@dataclass(frozen=True)
class Consists:
    """A file that a snapshot consists of: where a plain one is below the store's directory, and its bytes."""

    directory: str
    name: str
    size: int


class NotASnapshot(Exception):
    """A zip is not what Spark calls the zip of a snapshot."""


def contents(zipped: bytes, deep: bool) -> list[Consists]:
    """Return what a snapshot's zip says that it consists of; with `deep`, check everything in the zip."""
    try:
        with zipfile.ZipFile(io.BytesIO(zipped)) as archive:
            if sum(info.file_size for info in archive.infolist()) > _MAX_UNPACKED:
                raise NotASnapshot(f"it would unpack to more than {_MAX_UNPACKED} bytes")
            if deep and (bad := archive.testzip()) is not None:
                raise NotASnapshot(f"{bad} in it has another checksum")
            with archive.open("metadata") as file:
                metadata = file.read(_MAX_METADATA)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError, RuntimeError) as error:
        raise NotASnapshot(f"it is not the zip of a snapshot: {error}") from error
    return list(_listed(metadata))


def _listed(metadata: bytes) -> Iterator[Consists]:
    try:
        found = json.loads(metadata.split(b"\n", 1)[1])
        for kind, directory, name in (("sstFiles", "SSTs", "dfsSstFileName"), ("logFiles", "logs", "dfsLogFileName")):
            for file in found.get(kind) or ():
                consists = Consists(directory, str(file[name]), int(file["sizeBytes"]))
                if "/" in consists.name or consists.name in ("", ".", ".."):
                    raise NotASnapshot(f"it names a file {consists.name!r}")
                yield consists
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise NotASnapshot(f"its list of files cannot be read: {error!r}") from error


def check(
    survey: Survey, storage: Storage, base: Storage, readers: Readers, found: Found, deep: bool, progress: Progress
) -> int:
    """Look into every snapshot; returns how many there are. What cannot be loaded is damage, and unusable."""
    held = [(store, zipped) for store, facts in survey.stores.items() for zipped in facts.held.values()]
    reader = SegmentReader(storage, base)
    entries = EntryReader(storage)
    by_batch: dict[int, list[tuple[Store, HeldZip]]] = {}
    for store, zipped in held:
        by_batch.setdefault(zipped.batch, []).append((store, zipped))

    def read(batch: int) -> list[tuple[Store, HeldZip, list[Consists] | DstlError | NotASnapshot]]:
        entry = entries.read(batch)
        if entry is None:
            return []
        return [(store, one, _consists(reader, entry, one, deep)) for store, one in by_batch[batch]]

    done = 0
    plain = [(store, key, one) for store, facts in survey.stores.items() for key, one in facts.zips.items()]
    for _, answers in readers.each(read, sorted(by_batch)):
        for store, zipped, consists in answers:
            done += 1
            progress("Checking snapshots", done, len(held) + len(plain))
            _note_held(survey, storage, found, store, zipped, consists)

    def read_plain(one: tuple[Store, tuple[int, str | None], StoredObject]) -> bytes | DstlError | None:
        try:
            return storage.read(one[2].name, _MAX_ZIP)
        except DstlError as error:
            return error

    for (store, (version, unique), stored), content in readers.each(read_plain, plain):
        done += 1
        progress("Checking snapshots", done, len(held) + len(plain))
        if content is None:
            found.unusable_zips[store, version, unique] = "it has gone"
            continue
        try:
            why = str(content) if isinstance(content, DstlError) else _lacks(survey, store, {}, contents(content, deep))
        except NotASnapshot as error:
            why = str(error)
        if why:
            found.unusable_zips[store, version, unique] = why
            found.damages.append(Finding(storage.shown(stored.name), why))
    return done


def _consists(
    reader: SegmentReader, entry: LoadedEntry, zipped: HeldZip, deep: bool
) -> list[Consists] | DstlError | NotASnapshot:
    try:
        return contents(reader.content(entry, zipped.zip, _MAX_ZIP), deep)
    except (DstlError, NotASnapshot) as error:
        return error


def _note_held(
    survey: Survey,
    storage: Storage,
    found: Found,
    store: Store,
    zipped: HeldZip,
    consists: list[Consists] | DstlError | NotASnapshot,
) -> None:
    key = key_of(zipped.batch, zipped.zip)
    file = storage.shown(f"commits/{zipped.batch}")
    if isinstance(consists, list):
        sizes = {name: segment.length for name, segment in zipped.files.items()}
        why = _lacks(survey, store, sizes, consists)
        unusable = [
            found.unusable[key_of(zipped.batch, segment)]
            for one in consists
            if (segment := zipped.files.get(one.name)) and key_of(zipped.batch, segment) in found.unusable
        ]
        if why:
            found.damages.append(Finding(file, f"its snapshot {zipped.zip.name} cannot be loaded: {why}"))
        if why or unusable:
            found.unusable[key] = why or unusable[0]
        return
    why = consists.damage if isinstance(consists, DamagedLog) else str(consists)
    if key not in found.unusable:
        # The check of data files reports a missing one.
        if isinstance(consists, DamagedLog):
            found.damages.append(Finding(consists.file, why, consists.offset))
        elif not isinstance(consists, MissingLogObject):
            found.damages.append(Finding(file, f"its snapshot {zipped.zip.name}: {why}"))
        found.unusable[key] = why


def _lacks(survey: Survey, store: Store, held: dict[str, int], consists: list[Consists]) -> str | None:
    """Return what a snapshot lacks; None if all that it consists of is there, in the log or beside it."""
    for file in consists:
        path = f"{store.directory}/{file.directory}/{file.name}"
        size = held.get(file.name)
        if size is None:
            plain = survey.state.get(path)
            if plain is None:
                return f"{file.name} is missing: its entry names no such segment, and there is no state/{path}"
            size = plain.size
        if size != file.size:
            return f"{file.name} has {size} bytes and not {file.size}"
    return None
