# SPDX-License-Identifier: Apache-2.0
"""Verifying a checkpoint: every checksum, every reference, every retained version, and what is left over.

A query may run meanwhile, and delete what it does not need. So damage counts only if a second look finds it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from spark_dstl.checkpoint import activity, sparkfiles
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.format.names import Store
from spark_dstl.checkpoint.survey import Survey
from spark_dstl.checkpoint.verification import content, objects, rebuild, snapshots
from spark_dstl.checkpoint.verification.findings import Counts, Found, Verification

SECOND_LOOK_SECONDS = 1.0


def verify(
    checkpoint: CheckpointAccess, deep: bool = False, wait: Callable[[float], None] = time.sleep
) -> Verification:
    """Verify a checkpoint; see `Checkpoint.verify`. `wait` is called between the looks, with seconds."""
    first = _look(checkpoint, deep)
    if first.is_intact:
        return first
    wait(SECOND_LOOK_SECONDS)
    checkpoint.look_again()
    second = _look(checkpoint, deep)
    again = {(one.object, one.what) for one in first.damages}
    return Verification(
        path=second.path,
        deep=deep,
        newest_batch=second.newest_batch,
        newest_intact=second.newest_intact,
        running=second.running,
        damages=[one for one in second.damages if (one.object, one.what) in again],
        lost={batch: why for batch, why in second.lost.items() if batch in first.lost},
        leftovers=second.leftovers,
        held_above=second.held_above,
        notes=second.notes,
        counts=second.counts,
    )


def _look(checkpoint: CheckpointAccess, deep: bool) -> Verification:
    survey = checkpoint.survey()
    storage, readers, progress = checkpoint.storage, checkpoint.readers, checkpoint.progress
    base = checkpoint.base(survey.base)
    found = Found()
    links = rebuild.broken_links(survey)
    # Listed after the entries, which name nothing that is not there yet.
    listed = base.objects("data", recursive=True)
    objects.check_entries(survey, storage, found, links)
    missing = objects.check_data_files(survey, base, {one.name: one for one in listed}, readers, found, progress)
    checked = 0
    if deep:
        checked += content.check_segments(survey, storage, base, readers, found, progress)
        checked += content.check_plain(survey, storage, readers, found, progress)
        content.check_offsets(survey, storage, readers, found)
    number = snapshots.check(survey, storage, base, readers, found, deep, progress)
    bad = rebuild.bad_changelogs(found)
    stores = rebuild.expected_stores(survey, sparkfiles.operators(storage))
    rebuilt = {store: rebuild.rebuild(store, survey, found, bad, links) for store in stores}
    lowest = {store: one.lowest_needed for store, one in rebuilt.items()}
    objects.check_missing(survey, base, missing, lowest, found)
    objects.check_gaps(survey, storage, found, min(lowest.values(), default=0))
    objects.check_partitions(survey, storage, stores, found)
    objects.check_claims(storage, found, survey, readers)
    objects.check_leftovers(survey, storage, base, listed, found)
    lost = _lost(survey, rebuilt)
    held_above = _held_above(survey, rebuilt)
    return Verification(
        path=checkpoint.path,
        deep=deep,
        newest_batch=survey.newest,
        newest_intact=max(
            (batch for batch in survey.retained if rollback_obstacle(survey, batch, {**held_above, **lost}) is None),
            default=None,
        ),
        running=activity.signs(checkpoint),
        damages=found.damages,
        lost=lost,
        held_above=held_above,
        leftovers=found.leftovers,
        notes=found.notes,
        counts=Counts(
            entries=len(survey.entries),
            segments=sum(len(facts.logged) + len(facts.held) for facts in survey.stores.values()),
            data_files=len(survey.parts),
            snapshots=number,
            stores=len(stores),
            checked_bytes=checked,
        ),
    )


def _lost(survey: Survey, rebuilt: dict[Store, rebuild.Rebuilt]) -> dict[int, str]:
    """Return the retained batches whose state cannot be rebuilt, each with the reason for one store."""
    lost: dict[int, str] = {}
    retained = survey.retained
    newest = retained[-1] if retained else 0
    for batch in sorted(survey.offsets):
        if retained and retained[0] < batch < newest and batch not in survey.entries:
            lost[batch] = f"commits/{batch} is missing"
    for batch in retained:
        broken = [(store, one.lost[batch + 1]) for store, one in rebuilt.items() if batch + 1 in one.lost]
        entry = survey.entries[batch]
        if broken:
            others = f", and of {len(broken) - 1} more stores" if len(broken) > 1 else ""
            lost[batch] = f"state of {broken[0][0].directory}{others}: {broken[0][1]}"
        elif entry.error is not None:
            lost[batch] = f"commits/{batch} cannot be read"
    return dict(sorted(lost.items()))


def _held_above(survey: Survey, rebuilt: dict[Store, rebuild.Rebuilt]) -> dict[int, str]:
    """Return the retained batches whose state would be gone with the entries above, each with the reason."""
    above: dict[int, str] = {}
    for batch in survey.retained:
        for store, one in rebuilt.items():
            if batch + 1 in one.held_above:
                above[batch] = f"state of {store.directory}: {one.held_above[batch + 1]}, and would be deleted with it"
                break
    return above


def rollback_obstacle(survey: Survey, batch: int, lost: dict[int, str]) -> str | None:
    """Return why the query cannot be rolled back to a batch, or None. `lost` has the reasons of lost batches."""
    if batch not in survey.entries:
        return f"there is no commits/{batch}"
    if batch not in survey.offsets:
        return f"there is no offsets/{batch}"
    if batch in lost:
        return lost[batch]
    if batch > 0 and batch - 1 not in survey.offsets:
        return f"there is no offsets/{batch - 1}, without which Spark does not start"
    return None
