# SPDX-License-Identifier: Apache-2.0
"""Checks of single objects: entries, data files, claims, and objects that are no part of a checkpoint."""

from collections.abc import Iterable
from functools import partial
from itertools import pairwise

from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.changing import leftovers
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.format.logfile import Log
from spark_dstl.checkpoint.reading import read_data_file
from spark_dstl.checkpoint.storage import StoredObject, caught
from spark_dstl.checkpoint.survey import NamedPart, StoreFacts, Survey, numbered
from spark_dstl.checkpoint.verification.findings import Finding, Look
from spark_dstl.errors import DamagedLog, UnsupportedLog

# Partitions that one finding lists.
_SHOWN = 10


def check_entries(look: Look) -> None:
    """Find damaged entries, and entries that do not follow each other."""
    epoch = 0
    for batch, entry in look.survey.entries.items():
        name = f"commits/{batch}"
        if entry.error is not None:
            look.error(look.storage.shown(name), entry.error)
        if not entry.is_spark:
            look.damage(name, "its second line is not what Spark writes", 0)
        for strange in (*entry.strange, *([look.links[batch]] if batch in look.links else ())):
            look.damage(name, strange)
        if entry.index is not None:
            of = entry.index.writer.epoch
            if of < epoch:
                look.damage(name, f"it is of epoch {of}, after one of epoch {epoch}: written late by a fenced driver")
            epoch = max(epoch, of)
    _check_list(look)


def check_gaps(look: Look, lowest: dict[names.Store, int]) -> None:
    """Find missing entries between others, and contradictions of `commits/` and `offsets/`.

    `lowest` are the versions of stores above which retained versions need changes.
    """
    survey = look.survey
    lowest_needed = min(lowest.values(), default=0)
    for directory, there in (("commits", survey.entries), ("offsets", survey.offsets)):
        for before, after in pairwise(sorted(there)):
            if after == before + 1:
                continue
            missing = f"{directory}/{before + 1}" + (f" to {after - 1}" if after - before > 2 else "")
            # What fences a driver stays when Spark purges the entries after it, also those whose changes are in files.
            is_purged = before in survey.fences and _are_in_files(survey, range(before + 1, after), lowest)
            if directory == "offsets" or (after - 1 >= lowest_needed and not is_purged):
                look.damage(missing, "it is missing: there are earlier and later ones")
            elif before not in survey.fences:
                look.note(missing, "it is missing, and no retained version needs it: a deletion was interrupted")
    for batch in survey.fenced:
        what = "a driver that was stopped has written it later than others: Spark deletes it after the next start"
        look.note(f"offsets/{batch}", what)
    newest = survey.committed_since
    begun = [batch for batch in survey.offsets if batch > (-1 if newest is None else newest) + 1]
    if begun:
        committed = "none is committed" if newest is None else f"batch {newest} is the newest one that is committed"
        what = f"{committed}, so Spark cannot have begun this one: later entries of commits/ were deleted"
        look.damage(f"offsets/{begun[0]}", what)
    if survey.newest is not None and survey.newest not in survey.offsets:
        name = f"offsets/{survey.newest}"
        if survey.entries[survey.newest].is_repartition:
            what = f"it is missing, and commits/{survey.newest} has it: dstl repartition was interrupted"
            look.note(name, f"{what}. Repeat it, or start the query with the log, which writes it")
        else:
            look.damage(name, "it is missing, and the batch is committed: Spark does not start without it")


def _are_in_files(survey: Survey, batches: range, lowest: dict[names.Store, int]) -> bool:
    """Whether plain changelogs have all changes of these batches that are needed."""
    for store, version in lowest.items():
        above = max(batches.start, version)
        plain = {of for of, _ in survey.stores.get(store, StoreFacts()).plain if above < of <= batches.stop}
        if len(plain) < batches.stop - above:
            return False
    return True


def check_data_files(look: Look, listed: dict[str, StoredObject]) -> dict[str, list[NamedPart]]:
    """Check the data files that entries name; return the missing ones, with the parts that are named in them."""
    base = look.base
    missing = {file: parts for file, parts in look.survey.parts.items() if file not in listed}
    there = {file: parts for file, parts in look.survey.parts.items() if file in listed}
    for file, parts in there.items():
        size = listed[file].size
        if cut := [named for named in parts if named.part.offset + named.part.length > size]:
            what = f"it ends after {size} bytes, before {cut[0].segment.name} at {cut[0].part.offset} ends"
            look.damages.append(Finding(base.shown(file), what, size))
            look.cannot_use(cut, f"the data file {file} is cut off")

    def read(file: str) -> Log | None:
        return read_data_file(base, file)

    for file, log in look.readers.each(caught(read, DamagedLog, UnsupportedLog), there, "Checking data files"):
        if log is None:
            missing[file] = there[file]
        elif isinstance(log, Log):
            written = {part[1:] for segment in log.index.segments for part in segment.parts}
            other = next((named for named in there[file] if named.part[1:] not in written), None)
            if other is not None:
                what = f"its own index has no such part as commits/{other.batch} names for {other.segment.name}"
                look.damages.append(Finding(base.shown(file), what, other.part.offset))
        else:
            look.error(base.shown(file), log)
    for file, parts in missing.items():
        look.cannot_use(parts, f"the data file {file} is missing")
    return missing


def check_missing(look: Look, missing: dict[str, list[NamedPart]], lowest: dict[names.Store, int]) -> None:
    """Report missing data files: as damage if a retained version needs them."""
    for file, parts in missing.items():
        needed = [named for named in parts if named.segment.version >= lowest.get(named.segment.store, 0)]
        first = (needed or parts)[0]
        what = f"it is missing: commits/{first.batch} names it for {first.segment.name}"
        if needed:
            where = "" if look.survey.base is None else "; if it was moved, name its directory with --base-path"
            look.damages.append(Finding(look.base.shown(file), f"{what}{where}"))
        else:
            why = f"{what}, which no retained version needs: a deletion was interrupted"
            look.notes.append(Finding(look.base.shown(file), why))


def check_partitions(look: Look, stores: Iterable[names.Store]) -> None:
    """Find partitions without a directory, which Spark's state reader does not find."""
    expected: dict[int, set[int]] = {}
    for store in stores if look.survey.newest is not None else ():
        expected.setdefault(store.operator, set()).add(store.partition)
    for operator, partitions in expected.items():
        there = set(look.storage.directories(f"state/{operator}"))
        missing = [str(partition) for partition in sorted(partitions) if str(partition) not in there]
        if missing:
            more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
            what = (
                f"it lacks the directories of {len(missing)} of {len(partitions)} partitions "
                f"({', '.join(missing[:_SHOWN])}{more}): Spark's state reader finds partitions by them. The next start "
                "of the query creates them"
            )
            look.note(f"state/{operator}", what)


def check_claims(look: Look) -> None:
    """Find claims that cannot be read, and epochs without a claim."""
    claims = numbered(look.storage.objects("dstl/epochs"))
    for epoch, claim in look.readers.each(partial(sparkfiles.claim, look.storage), claims):
        if claim is not None and claim.run is None:
            look.damage(f"dstl/epochs/{epoch}", "it does not name the run of the epoch; no state is lost by that", 0)
    newest = max((entry.index.writer.epoch for entry in look.survey.entries.values() if entry.index), default=0)
    if claims and newest > max(claims):
        what = (
            f"the claim of epoch {newest} is missing, which has committed batches; the next run claims a higher epoch"
        )
        look.note("dstl/epochs", what)


def check_leftovers(look: Look, listed: list[StoredObject]) -> None:
    """Find objects that nothing needs, and objects that are no part of a checkpoint."""
    found = list(leftovers.among(look.survey, look.storage, look.base, listed))
    look.leftover_bytes = sum(one.size for one in found)
    look.leftovers += [Finding(one.shown, one.why) for one in found]
    foreign = [look.base.shown(one.name) for one in listed if names.kind_of(f"dstl/{one.name}") == "other"]
    for directory in ("commits", "offsets", "dstl/epochs"):
        there = look.storage.objects(directory)
        foreign += [look.storage.shown(one.name) for one in there if names.kind_of(one.name) == "other"]
    look.notes += [Finding(name, "it is not part of a checkpoint: nothing reads it") for name in foreign]


def _check_list(look: Look) -> None:
    """Find snapshots that the newest entries list and no entry has."""
    entries, stores = look.survey.entries, look.survey.stores
    upto = max(entries, default=0)
    for batch in sorted(entries, reverse=True):
        index = entries[batch].index
        if batch > upto or index is None or index.snapshots is None:
            continue
        for held in index.snapshots.held:
            by = entries.get(held.batch)
            if by is None or by.error is not None:
                continue
            there = stores[held.store].held.get((held.version, held.id)) if held.store in stores else None
            if there is None or there.batch != held.batch:
                what = f"it lists a snapshot of version {held.version} of {held.store.directory}"
                look.damage(f"commits/{batch}", f"{what} in commits/{held.batch}, which has none")
        if index.snapshots.complete == batch:
            return
        upto = index.snapshots.complete
