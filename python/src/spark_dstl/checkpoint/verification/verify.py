# SPDX-License-Identifier: Apache-2.0
"""Verification of a checkpoint: every reference, every retained version, leftovers, and checksums of what is read.

What a restart replays is read, and with `deep` every byte that a commit entry names or that has a checksum of Spark.

A query may run, and delete what it does not need. So damage counts only if a second look confirms it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.format.names import Store
from spark_dstl.checkpoint.survey import Survey
from spark_dstl.checkpoint.verification import content, metadata, objects, rebuild, snapshots
from spark_dstl.checkpoint.verification.findings import Counts, Look, Verification

SECOND_LOOK_SECONDS = 1.0
# Spark keeps the entry of one batch more than states, and of another one until the batch under way is committed.
_GIVEN_UP = 2


def verify(
    checkpoint: CheckpointAccess,
    deep: bool = False,
    wait: Callable[[float], None] = time.sleep,
    batch: int | None = None,
) -> Verification:
    """Verify a checkpoint; see `Checkpoint.verify`.

    `wait` is called between the looks, with seconds. `batch` is one whose recovery plan is read as well.
    """
    before = activity.written(checkpoint)
    found = look_once(checkpoint, deep, batch).found
    if found.is_damaged:
        wait(SECOND_LOOK_SECONDS)
        second = look_once(checkpoint, deep, batch).found
        confirmed = {(one.object, one.what) for one in found.damages}
        found = replace(
            second,
            damages=[one for one in second.damages if (one.object, one.what) in confirmed],
            in_the_way=[one for one in second.in_the_way if one in found.in_the_way],
            lost={lost: why for lost, why in second.lost.items() if lost in found.lost},
        )
        found = replace(found, newest_undamaged=_newest_undamaged(checkpoint.survey(), found.no_way_back))
    return replace(found, running=activity.signs(checkpoint, before))


@dataclass(frozen=True)
class Judged:
    """What one look has found, the look, and what each store is rebuilt from."""

    found: Verification
    look: Look
    rebuilt: dict[Store, rebuild.Rebuilt]


@dataclass(frozen=True)
class _Judgement:
    """Of all stores what they are rebuilt from, and of retained batches which are lost."""

    rebuilt: dict[Store, rebuild.Rebuilt]
    lost: dict[int, str]
    held_above: dict[int, str]
    given_up: dict[int, str]
    newest_undamaged: int | None


def look_once(checkpoint: CheckpointAccess, deep: bool, batch: int | None = None) -> Judged:
    """Verify a checkpoint by one look, which takes for damage what a running query deletes meanwhile."""
    survey, storage = checkpoint.look_again(), checkpoint.storage
    base, links = checkpoint.base(survey.base), rebuild.broken_links(survey)
    look = Look(survey, storage, base, checkpoint.readers, deep, links)
    # Listed after the entries, which name only files that exist.
    listed = base.objects("data", recursive=True)
    if survey.provider == sparkfiles.HDFS_BACKED:
        look.note("state", f"files of {sparkfiles.HDFS_BACKED} are not checked: only RocksDB's and the log's are")
    objects.check_entries(look)
    missing = objects.check_data_files(look, {one.name: one for one in listed})
    unstartable, named, partitions = content.check_offsets(look)
    unstartable |= metadata.check_sources(look, named)
    unstartable |= metadata.check_state(look)
    if deep:
        content.check_all(look)
    number = snapshots.check(look)
    stores = rebuild.expected_stores(survey, sparkfiles.operators(storage, survey.partitions))
    judged = _judge(look, stores, partitions, unstartable)
    while not deep and _check_plans(look, judged, {judged.newest_undamaged, batch}):
        judged = _judge(look, stores, partitions, unstartable)
    for given_up, why in judged.given_up.items():
        look.note(
            f"commits/{given_up}", f"{why}, as it does for a while: the query cannot be rolled back to this batch"
        )
    lowest = {store: one.lowest_needed for store, one in judged.rebuilt.items()}
    objects.check_missing(look, missing, lowest)
    objects.check_gaps(look, lowest)
    objects.check_partitions(look, stores)
    objects.check_claims(look)
    objects.check_leftovers(look, listed)
    found = Verification(
        path=checkpoint.path,
        deep=deep,
        newest_batch=survey.newest,
        newest_undamaged=judged.newest_undamaged,
        unread=content.unread(look, missing),
        running=None,
        damages=look.damages,
        in_the_way=look.in_the_way,
        lost=judged.lost,
        held_above=judged.held_above,
        given_up=judged.given_up,
        leftovers=look.leftovers,
        leftover_bytes=look.leftover_bytes,
        notes=look.notes,
        counts=Counts(
            entries=len(survey.entries),
            segments=sum(len(facts.logged) + len(facts.held) for facts in survey.stores.values()),
            data_files=len(survey.parts),
            snapshots=number,
            stores=len(stores),
            checked_bytes=look.was_read.bytes,
        ),
    )
    return Judged(found, look, judged.rebuilt)


def _check_plans(look: Look, judged: _Judgement, batches: set[int | None]) -> bool:
    """Read the recovery plans of batches; return whether that found damage, after which other plans count."""
    plans = [rebuild.plan(look.survey, batch, judged.rebuilt) for batch in batches if batch in look.survey.entries]
    found = [content.check_plan(look, one) for one in plans]
    return any(found)


def _judge(look: Look, stores: list[Store], partitions: dict[int, int], unstartable: dict[int, str]) -> _Judgement:
    """Judge the retained batches by the damage that is known; `unstartable` are some with which Spark cannot start."""
    survey, bad = look.survey, rebuild.bad_changelogs(look)
    rebuilt = {store: rebuild.rebuild(store, look, bad, partitions) for store in stores}
    lost = _lost(survey, rebuilt, unstartable)
    given_up = {
        batch: "Spark's maintenance has deleted its state, and not yet its entry"
        for batch in survey.retained[:_GIVEN_UP]
        if batch in lost and _is_given_up(survey, batch, rebuilt)
    }
    lost = {batch: why for batch, why in lost.items() if batch not in given_up}
    held_above = {
        batch: f"state of {store.directory}: {one.held_above[batch + 1]}, and would be deleted with it"
        for batch in survey.retained
        for store, one in reversed(rebuilt.items())
        if batch + 1 in one.held_above
    }
    newest_undamaged = _newest_undamaged(survey, {**held_above, **given_up, **lost})
    return _Judgement(rebuilt, lost, held_above, given_up, newest_undamaged)


def _is_given_up(survey: Survey, batch: int, rebuilt: dict[Store, rebuild.Rebuilt]) -> bool:
    """Whether a lost batch can be one whose state was deleted: nothing of it is left in the stores that lost it.

    With this project's provider no batch in the log is one: its driver deletes nothing that an entry needs.
    """
    entry = survey.entries[batch]
    if entry.error is not None or (entry.changelogs and survey.provider != sparkfiles.STOCKS):
        return False
    without = [one for one in rebuilt.values() if batch + 1 in one.lost]
    return bool(without) and all(batch + 1 < one.deleted_below for one in without)


def _newest_undamaged(survey: Survey, obstacles: dict[int, str]) -> int | None:
    """Return the newest batch that the query can continue from or be rolled back to."""
    return max((one for one in survey.retained if rollback_obstacle(survey, one, obstacles) is None), default=None)


def _lost(survey: Survey, rebuilt: dict[Store, rebuild.Rebuilt], unstartable: dict[int, str]) -> dict[int, str]:
    """Return the retained batches, and the begun one, from which the query cannot continue, each with a reason."""
    lost: dict[int, str] = {}
    retained = survey.retained
    for batch in survey.offsets:
        if retained and retained[0] < batch < retained[-1] and batch not in survey.entries:
            lost[batch] = f"commits/{batch} is missing"
    for batch in retained:
        broken = [(store, one.lost[batch + 1]) for store, one in rebuilt.items() if batch + 1 in one.lost]
        if broken:
            others = f", and of {len(broken) - 1} more stores" if len(broken) > 1 else ""
            lost[batch] = f"state of {broken[0][0].directory}{others}: {broken[0][1]}"
        elif survey.entries[batch].error is not None:
            lost[batch] = f"commits/{batch} cannot be read"
        elif not survey.entries[batch].is_spark:
            lost[batch] = f"commits/{batch} is damaged, and Spark does not start from it"
        elif batch in unstartable:
            lost[batch] = unstartable[batch]
    if begun := max(survey.begun, default=None):
        first = 0 if survey.committed_since is None else survey.committed_since + 1
        if begun > first:
            lost[begun] = f"commits/{first} is missing"
        elif begun in unstartable:
            lost[begun] = unstartable[begun]
    return dict(sorted(lost.items()))


def rollback_obstacle(survey: Survey, batch: int, lost: dict[int, str]) -> str | None:
    """Return why the query cannot be rolled back to a batch, or None. `lost` has the reasons of lost batches."""
    for directory, there in (("commits", survey.entries), ("offsets", survey.offsets)):
        if batch not in there:
            return f"there is no {directory}/{batch}"
    if batch in lost:
        return lost[batch]
    if batch > 0 and batch - 1 not in survey.offsets:
        return f"there is no offsets/{batch - 1}, without which Spark does not start"
    return None
