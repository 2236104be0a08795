# SPDX-License-Identifier: Apache-2.0
"""Snapshots: the zip with the list of a snapshot's files, and whether all of them are there."""

import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from spark_dstl.checkpoint.format.names import Store
from spark_dstl.checkpoint.reading import SegmentReader, read_entry
from spark_dstl.checkpoint.storage import TooLarge, caught
from spark_dstl.checkpoint.survey import HeldZip
from spark_dstl.checkpoint.verification.findings import Look, key_of
from spark_dstl.errors import DamagedLog, MissingLogObject, UnsupportedLog

_MAX_ZIP = 64 * 1024 * 1024
_MAX_UNPACKED = 256 * 1024 * 1024
_WHAT = "Checking snapshots"


class Listed(NamedTuple):
    """A file of a snapshot; a plain one is in `directory` below that of the store."""

    directory: str
    name: str
    size: int


class NotASnapshot(Exception):
    """A zip is not that of a snapshot of Spark."""


# Storage that does not answer is none of these.
_DAMAGES = (NotASnapshot, DamagedLog, UnsupportedLog, MissingLogObject, TooLarge)


def contents(zipped: bytes, deep: bool) -> list[Listed]:
    """Return the files that a snapshot's zip lists; with `deep`, check everything in the zip."""
    try:
        with zipfile.ZipFile(io.BytesIO(zipped)) as archive:
            if sum(info.file_size for info in archive.infolist()) > _MAX_UNPACKED:
                raise NotASnapshot(f"it would unpack to more than {_MAX_UNPACKED} bytes")
            if deep and (bad := archive.testzip()) is not None:
                raise NotASnapshot(f"{bad} in it has another checksum")
            with archive.open("metadata") as file:
                metadata = file.read(_MAX_ZIP)
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, OverflowError, EOFError, RuntimeError) as error:
        raise NotASnapshot(f"it is not the zip of a snapshot: {error}") from error
    try:
        return list(_listed(json.loads(metadata.split(b"\n", 1)[1])))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise NotASnapshot(f"its list of files cannot be read: {error!r}") from error


def _listed(metadata: dict[str, list[dict[str, object]]]) -> Iterator[Listed]:
    for kind, directory, name in (("sstFiles", "SSTs", "dfsSstFileName"), ("logFiles", "logs", "dfsLogFileName")):
        for file in metadata.get(kind) or ():
            listed = Listed(directory, str(file[name]), int(str(file["sizeBytes"])))
            if "/" in listed.name or listed.name in ("", ".", ".."):
                raise NotASnapshot(f"it names a file {listed.name!r}")
            yield listed


def check(look: Look) -> int:
    """Check every snapshot; return their number. A snapshot that cannot be loaded is damaged and unusable."""
    by_batch: dict[int, list[tuple[Store, HeldZip]]] = {}
    for store, facts in look.survey.stores.items():
        for held in facts.held.values():
            by_batch.setdefault(held.batch, []).append((store, held))
    segments = SegmentReader(look.storage, look.base)

    def read(batch: int) -> list[tuple[Store, HeldZip, list[Listed] | Exception]]:
        entry = read_entry(look.storage, batch)
        if entry is None:
            return []

        def listed(held: HeldZip) -> list[Listed]:
            return contents(segments.content(entry, held.zip, _MAX_ZIP), look.deep)

        return [(store, held, caught(listed, *_DAMAGES)(held)) for store, held in by_batch[batch]]

    def read_plain(key: tuple[Store, int, str | None]) -> list[Listed] | None:
        content = look.storage.read(plain[key].name, _MAX_ZIP)
        return None if content is None else contents(content, look.deep)

    number = 0
    for batch, answers in look.readers.each(read, sorted(by_batch), _WHAT):
        number += len(answers)
        for store, held, listed in answers:
            look.was_read.zip(batch, held.zip)
            _note_held(look, store, held, listed)
    plain = {(store, *key): one for store, facts in look.survey.stores.items() for key, one in facts.zips.items()}
    incomplete: set[tuple[Store, int, str | None]] = set()
    for key, found in look.readers.each(caught(read_plain, *_DAMAGES), plain, _WHAT):
        if look.deep:
            # Every entry of a zip has a checksum.
            look.was_read.files.add(plain[key].name.removeprefix("state/"))
        if found is None:
            look.unusable_zips[key] = "it was deleted"
        elif why := _lacks(look, key[0], {}, found) if isinstance(found, list) else str(found):
            look.unusable_zips[key] = why
            if isinstance(found, list) and any(_path(key[0], one) not in look.survey.state for one in found):
                incomplete.add(key)
            else:
                look.damage(plain[key].name, why)
    usable = plain.keys() - look.unusable_zips.keys()
    for key in sorted(incomplete, key=lambda key: plain[key].name):
        (store, version, _), name, why = key, plain[key].name, look.unusable_zips[key]
        if version < min((good for of, good, _ in usable if of == store), default=0):
            look.note(name, f"{why}: Spark deletes these first, and a deletion of its oldest snapshots was interrupted")
        else:
            look.damage(name, why)
    return number + len(plain)


def _note_held(look: Look, store: Store, held: HeldZip, listed: list[Listed] | Exception) -> None:
    key = key_of(held.batch, held.zip)
    entry = f"commits/{held.batch}"
    if isinstance(listed, list):
        why = _lacks(look, store, {name: segment.length for name, segment in held.files.items()}, listed)
        if why:
            look.damage(entry, f"its snapshot {held.zip.name} cannot be loaded: {why}")
            look.unusable[key] = why
        look.listed[key] = [key_of(held.batch, held.files[one.name]) for one in listed if one.name in held.files]
    elif key not in look.unusable:
        # The check of data files reports a missing one.
        if isinstance(listed, DamagedLog):
            look.error(entry, listed)
        elif not isinstance(listed, MissingLogObject):
            look.damage(entry, f"its snapshot {held.zip.name}: {listed}")
        look.unusable[key] = listed.damage if isinstance(listed, DamagedLog) else str(listed)


def _path(store: Store, file: Listed) -> str:
    return f"{store.directory}/{file.directory}/{file.name}"


def _lacks(look: Look, store: Store, held: dict[str, int], listed: list[Listed]) -> str | None:
    """Return why a snapshot cannot be loaded; None if all its files are in the log or in the store's directory."""
    for file in listed:
        path = _path(store, file)
        size = held.get(file.name)
        if size is None:
            plain = look.survey.state.get(path)
            if plain is None:
                return f"{file.name} is missing: its entry names no such segment, and there is no state/{path}"
            size = plain.size
        if size != file.size:
            return f"{file.name} has {size} bytes and not {file.size}"
    return None
