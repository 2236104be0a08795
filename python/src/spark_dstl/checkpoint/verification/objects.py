# SPDX-License-Identifier: Apache-2.0
"""Objects one by one: entries, data files, claims, and what has no business in a checkpoint."""

from collections.abc import Iterable
from itertools import pairwise

from spark_dstl.checkpoint import leftovers, sparkfiles
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.format.logfile import Log
from spark_dstl.checkpoint.format.model import SnapshotList
from spark_dstl.checkpoint.reading import read_data_file
from spark_dstl.checkpoint.storage import Readers, Storage, StoredObject
from spark_dstl.checkpoint.survey import NamedPart, Progress, Survey, numbered
from spark_dstl.checkpoint.verification.findings import Finding, Found, key_of
from spark_dstl.errors import DamagedLog, UnsupportedLog

# Of partitions that are listed in one finding.
_SHOWN = 10


def check_entries(survey: Survey, storage: Storage, found: Found, links: dict[int, str]) -> None:
    """Find entries that are damaged, and those that do not belong to each other."""
    epoch = 0
    for batch, entry in survey.entries.items():
        name = storage.shown(f"commits/{batch}")
        if isinstance(entry.error, DamagedLog):
            found.damages.append(Finding(entry.error.file, entry.error.damage, entry.error.offset))
        elif entry.error is not None:
            found.damages.append(Finding(name, str(entry.error)))
        else:
            if not entry.is_spark:
                found.damages.append(Finding(name, "its second line is not what Spark writes", 0))
            found.damages += [Finding(name, strange) for strange in entry.strange]
        if batch in links:
            found.damages.append(Finding(name, links[batch]))
        if entry.writer is not None:
            if entry.writer.epoch < epoch:
                what = (
                    f"it is of epoch {entry.writer.epoch}, after one of epoch {epoch}: written late by a fenced driver"
                )
                found.damages.append(Finding(name, what))
            epoch = max(epoch, entry.writer.epoch)
    _check_list(survey, storage, found)


def check_gaps(survey: Survey, storage: Storage, found: Found, lowest_needed: int) -> None:
    """Find batches in between that have no entry."""
    for directory, there in (("commits", survey.entries), ("offsets", survey.offsets)):
        batches = sorted(there)
        for before, after in pairwise(batches):
            if after == before + 1:
                continue
            missing = f"{directory}/{before + 1}" + (f" to {after - 1}" if after - before > 2 else "")
            is_needless = directory == "commits" and after - 1 < lowest_needed - 1
            if is_needless and before in survey.fences:
                continue
            if is_needless:
                what = "there is none, and no retained version needs it: a deletion was interrupted"
                found.notes.append(Finding(storage.shown(missing), what))
            else:
                found.damages.append(Finding(storage.shown(missing), "it is missing: there are earlier and later ones"))
    for batch in survey.fenced:
        what = f"a driver that was stopped has written it, and commits/{batch} keeps it out: Spark deletes it"
        found.notes.append(Finding(storage.shown(f"offsets/{batch}"), what))
    newest = survey.committed_since
    begun = [batch for batch in survey.offsets if newest is not None and batch > newest + 1]
    if begun:
        what = f"batch {newest} is the newest one that is committed, so Spark cannot have begun this one"
        found.damages.append(Finding(storage.shown(f"offsets/{begun[0]}"), what))
    if survey.newest is not None and survey.newest not in survey.offsets:
        what = "it is missing, and the batch is committed: Spark does not start without it"
        found.damages.append(Finding(storage.shown(f"offsets/{survey.newest}"), what))


def check_data_files(
    survey: Survey, base: Storage, listed: dict[str, StoredObject], readers: Readers, found: Found, progress: Progress
) -> dict[str, list[NamedPart]]:
    """Check the data files that entries name; returns those that are missing, with what is named in them."""
    missing: dict[str, list[NamedPart]] = {}
    there = []
    for file, parts in survey.parts.items():
        if file not in listed:
            missing[file] = parts
            _unusable(found, parts, f"the data file {file} is missing")
            continue
        there.append(file)
        size = listed[file].size
        cut = [named for named in parts if named.part.offset + named.part.length > size]
        if cut:
            what = f"it ends after {size} bytes, before {cut[0].segment.name} at {cut[0].part.offset} ends"
            found.damages.append(Finding(base.shown(file), what, size))
            _unusable(found, cut, f"the data file {file} is cut off")

    def read(file: str) -> Log | DamagedLog | UnsupportedLog | None:
        try:
            return read_data_file(base, file)
        except (DamagedLog, UnsupportedLog) as error:
            return error

    for done, (file, log) in enumerate(readers.each(read, there), start=1):
        progress("Checking data files", done, len(there))
        parts = survey.parts[file]
        if isinstance(log, DamagedLog):
            found.damages.append(Finding(log.file, log.damage, log.offset))
        elif isinstance(log, UnsupportedLog):
            found.damages.append(Finding(base.shown(file), str(log)))
        elif log is None:
            missing[file] = parts
            _unusable(found, parts, f"the data file {file} is missing")
        else:
            written = {(part.offset, part.length, part.crc) for one in log.index.segments for part in one.parts}
            others = [named for named in parts if (named.part.offset, named.part.length, named.part.crc) not in written]
            if others:
                first = others[0]
                what = f"its own index has no such part as commits/{first.batch} names for {first.segment.name}"
                found.damages.append(Finding(base.shown(file), what, first.part.offset))
    return missing


def _unusable(found: Found, parts: Iterable[NamedPart], why: str) -> None:
    for named in parts:
        found.unusable.setdefault(key_of(named.batch, named.segment), why)


def check_missing(
    survey: Survey, base: Storage, missing: dict[str, list[NamedPart]], lowest: dict[names.Store, int], found: Found
) -> None:
    """Tell data files that are missing from those that nothing needs any more."""
    for file, parts in missing.items():
        needed = [named for named in parts if named.segment.version >= lowest.get(named.segment.store, 0)]
        first = (needed or parts)[0]
        named_by = f"commits/{first.batch} names it for {first.segment.name}"
        if needed:
            where = "" if survey.base is None else "; if it was moved, say where it is with --base-path"
            found.damages.append(Finding(base.shown(file), f"it is missing: {named_by}{where}"))
        else:
            what = f"it is missing: {named_by}, which no retained version needs: a deletion was interrupted"
            found.notes.append(Finding(base.shown(file), what))


def check_partitions(survey: Survey, storage: Storage, stores: Iterable[names.Store], found: Found) -> None:
    """Find partitions without a directory, which Spark's state reader does not find."""
    if survey.newest is None:
        return
    expected: dict[int, set[int]] = {}
    for store in stores:
        expected.setdefault(store.operator, set()).add(store.partition)
    for operator, partitions in expected.items():
        there = set(storage.directories(f"state/{operator}"))
        missing = [str(partition) for partition in sorted(partitions) if str(partition) not in there]
        if missing:
            shown = ", ".join(missing[:_SHOWN]) + (
                f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
            )
            what = (
                f"it lacks the directories of {len(missing)} of {len(partitions)} partitions ({shown}): Spark's state "
                "reader finds partitions by them. The next start of the query creates them"
            )
            found.notes.append(Finding(storage.shown(f"state/{operator}"), what))


def check_claims(storage: Storage, found: Found, survey: Survey, readers: Readers) -> None:
    """Find claims that cannot be read, and epochs without a claim."""
    claims = numbered(storage.objects("dstl/epochs"))
    for epoch, claim in readers.each(lambda number: sparkfiles.claim(storage, number), claims):
        if claim is not None and claim.run is None:
            what = "it does not say who has claimed the epoch; no state is lost by that"
            found.damages.append(Finding(storage.shown(f"dstl/epochs/{epoch}"), what, 0))
    newest = max((entry.writer.epoch for entry in survey.entries.values() if entry.writer), default=0)
    if claims and newest > max(claims):
        what = f"there is none of epoch {newest}, which has committed batches; the next run takes a higher one anyway"
        found.notes.append(Finding(storage.shown("dstl/epochs"), what))


def check_leftovers(survey: Survey, storage: Storage, base: Storage, listed: list[StoredObject], found: Found) -> None:
    """Find what nothing needs, and what is no part of a checkpoint."""
    found.leftovers += [Finding(one.shown, one.why) for one in leftovers.among(survey, storage, base, listed)]
    for stored in listed:
        if names.data_file(stored.name) is None:
            _foreign(base, stored, found)
    for directory in ("commits", "offsets", "dstl/epochs"):
        for stored in storage.objects(directory):
            known = (names.number, names.trial, names.end_of_epoch)
            if all(kind(stored.last_name) is None for kind in known):
                _foreign(storage, stored, found)


def _foreign(storage: Storage, stored: StoredObject, found: Found) -> None:
    # Hadoop keeps checksums of local files beside them.
    is_checksum = stored.last_name.startswith(".") and stored.last_name.endswith(".crc")
    if not is_checksum and not names.is_unfinished(stored.name):
        found.notes.append(Finding(storage.shown(stored.name), "it is not part of a checkpoint: nothing reads it"))


def _check_list(survey: Survey, storage: Storage, found: Found) -> None:
    """Find snapshots that the newest entries list and that no entry holds."""
    batch = survey.newest
    while batch is not None:
        entry = survey.entries.get(batch)
        listed: SnapshotList | None = entry.listed if entry else None
        if listed is None:
            batch = max((one for one in survey.entries if one < batch), default=None)
            continue
        for held in listed.held:
            by = survey.entries.get(held.batch)
            if by is None or by.error is not None:
                continue
            there = survey.stores[held.store].held.get((held.version, held.id)) if held.store in survey.stores else None
            if there is None or there.batch != held.batch:
                what = f"it lists a snapshot of version {held.version} of {held.store.directory} in "
                found.damages.append(
                    Finding(storage.shown(f"commits/{batch}"), f"{what}commits/{held.batch}, which has none")
                )
        if listed.complete == batch:
            return
        batch = max((one for one in survey.entries if one <= listed.complete), default=None)
