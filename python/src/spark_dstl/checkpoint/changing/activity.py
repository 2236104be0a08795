# SPDX-License-Identifier: Apache-2.0
"""Detection of a query that runs on a checkpoint.

A checkpoint has no lock and no lease. A query counts as running if an object is written while the command watches, or
was written recently: the first is certain, the second goes by the clocks of storage and of this machine. A query that
waits for input writes nothing and is not detected. A run that has written its end mark counts as stopped, by storage's
clock alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.repartition.entries import is_locked
from spark_dstl.checkpoint.storage import StoredObject
from spark_dstl.checkpoint.survey import entries_of, numbered
from spark_dstl.errors import QuerySeemsToRun

# A request of a query may take up to `commit.timeout`, 10 minutes by default.
QUIET = timedelta(minutes=15)
LOOK_SECONDS = 5.0
# Looks at a run that seems to end: it waits half a minute for its last requests.
_LOOKS = 6
# Where only a batch writes; a run that ends deletes there.
_OF_BATCHES = ("commits/", "offsets/", "sources/")


def signs(checkpoint: CheckpointAccess, before: list[StoredObject] | None = None) -> str | None:
    """Return why a query seems to run; None if nothing shows one.

    `before` are the objects of an earlier look: an object that has changed since proves that a query ran after it.
    Without a change the age of the newest object is a hint, by two clocks that may differ. If the newest run has
    written its end mark, and nothing later, there is no sign.
    """
    now = written(checkpoint)
    newest, has_ended = _newest(now)
    if has_ended:
        return None
    if before is not None and (changed := {*before} ^ {*now}):
        return f"{max(stored.name for stored in changed)} changed while this command looked"
    age = None if newest is None else _age(newest)
    if newest is None or age is None or age >= QUIET:
        return None
    ago = f"{max(int(age.total_seconds()), 0)} s ago"
    return f"{newest.name} was written {ago}, if the clocks here and of storage agree, and no run has ended since"


def refuse_if_seen(checkpoint: CheckpointAccess, known_to_be_stopped: bool) -> None:
    """Raise `QuerySeemsToRun` if an object was written recently, unless the query is known to be stopped."""
    if not known_to_be_stopped and (sign := signs(checkpoint)) is not None:
        raise QuerySeemsToRun(
            f"a query seems to run on {checkpoint.path}: {sign}. Stop it. If you have made sure that it is stopped, "
            "pass --stopped, or wait: objects written more than "
            f"{QUIET // timedelta(minutes=1)} minutes ago are no sign"
        )


def refuse_if_running(
    checkpoint: CheckpointAccess, known_to_be_stopped: bool, wait: Callable[[float], None] = time.sleep
) -> None:
    """Raise `QuerySeemsToRun` if an object was written recently, or is written within the next seconds.

    With `known_to_be_stopped` only the second check applies. A run that was just stopped may still upload and delete:
    half a minute is waited for its end mark.
    """
    refuse_if_seen(checkpoint, known_to_be_stopped)
    before = written(checkpoint)
    for _ in range(_LOOKS):
        wait(LOOK_SECONDS)
        after = written(checkpoint)
        _, has_ended = _newest(after)
        changed = {*before} ^ {*after}
        if has_ended or not changed:
            return
        if _newest_batch(after) < _newest_batch(before):
            raise QuerySeemsToRun(
                f"a rollback runs on {checkpoint.path}: its newest batches were deleted while this command "
                "looked. Let it end, and begin again"
            )
        if any(stored.name.startswith(_OF_BATCHES) for stored in {*after} - {*before}):
            break
    name = max(stored.name for stored in changed)
    runs = "dstl repartition" if name.startswith("state/") else "a query"
    raise QuerySeemsToRun(f"{runs} runs on {checkpoint.path}: {name} changed while this command looked. Stop it first")


def refuse_if_changed(checkpoint: CheckpointAccess, newest: int | None) -> None:
    """Raise `QuerySeemsToRun` if `newest` is no longer the newest batch."""
    there = max(entries_of(checkpoint.storage), default=None)
    if there != newest:
        is_rollback = newest is not None and (there is None or there < newest)
        cause = "A rollback has begun: let it end" if is_rollback else "Stop the query"
        raise QuerySeemsToRun(
            f"{checkpoint.path} has changed: its newest batch is {there} and was {newest}. {cause}, and begin again"
        )


def is_quiet(stored: StoredObject) -> bool:
    """Whether an object is older than what counts as a sign."""
    age = _age(stored)
    return age is not None and age >= QUIET


def written(checkpoint: CheckpointAccess) -> list[StoredObject]:
    """Return the objects that a running query changes; below its lock a repartition changes the state."""
    storage = checkpoint.storage
    found = checkpoint.newest_base().objects("data", recursive=True)
    for directory in ("commits", "offsets", "dstl/epochs", "sources"):
        listed = storage.objects(directory, recursive=directory == "sources")
        # Hadoop writes the checksum file of a local file together with the file, and readers write pins.
        found += [stored for stored in listed if not stored.last_name.endswith((".crc", ".pin"))]
        if directory == "offsets" and is_locked(storage, max(numbered(listed), default=-1)):
            found += storage.objects("state", recursive=True)
    return found


def _newest_batch(written: list[StoredObject]) -> int:
    """Return the newest batch in `commits/` and `offsets/`: a query never deletes it."""
    of_batches = (stored for stored in written if stored.name.startswith(("commits/", "offsets/")))
    return max((number for one in of_batches if (number := names.number(one.last_name)) is not None), default=-1)


def _age(stored: StoredObject) -> timedelta | None:
    return None if stored.modified is None else datetime.now(timezone.utc) - stored.modified


def _newest(written: list[StoredObject]) -> tuple[StoredObject | None, bool]:
    """Return the newest object, and whether it is the end mark of the newest run, which the run writes last."""
    marks = [stored for stored in written if stored.name.startswith("dstl/epochs/")]
    ends = {stored.name: epoch for stored in marks if (epoch := names.end_of_epoch(stored.last_name)) is not None}
    epochs = [epoch for stored in marks if (epoch := names.number(stored.last_name)) is not None]
    # Times may be whole seconds: of equal ones the end mark is the newest.
    newest = max(
        (stored for stored in written if stored.modified is not None),
        key=lambda stored: (stored.modified, stored.name in ends),
        default=None,
    )
    return newest, bool(newest and epochs and ends.get(newest.name) == max(epochs))
