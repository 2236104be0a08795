# SPDX-License-Identifier: Apache-2.0
"""Detection of a query that runs on a checkpoint.

A checkpoint has no lock and no lease. A query counts as running if an object was written recently, or is written while
the command watches. A query that waits for input writes nothing and is not detected. A run that has written its end
mark counts as stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.storage import StoredObject
from spark_dstl.checkpoint.survey import entries_of
from spark_dstl.errors import QuerySeemsToRun

# A request of a query may take up to `commit.timeout`, 10 minutes by default.
QUIET = timedelta(minutes=15)
LOOK_SECONDS = 5.0


def minutes(length: timedelta) -> int:
    """Return a length of time in minutes."""
    return int(length.total_seconds() // 60)


def signs(checkpoint: CheckpointAccess) -> str | None:
    """Return the newest object and its age if it was written recently and is not the end mark of the newest run."""
    newest, has_ended = _newest(_written(checkpoint))
    if newest is None or newest.modified is None or has_ended:
        return None
    age = datetime.now(timezone.utc) - newest.modified
    return f"{newest.name} was written {max(int(age.total_seconds()), 0)} s ago" if age < QUIET else None


def refuse_if_seen(checkpoint: CheckpointAccess, known_to_be_stopped: bool) -> None:
    """Raise `QuerySeemsToRun` if an object was written recently, unless the query is known to be stopped."""
    if not known_to_be_stopped and (sign := signs(checkpoint)) is not None:
        raise QuerySeemsToRun(
            f"a query seems to run on {checkpoint.path}: {sign}. Stop it. If you have made sure that it is stopped, "
            f"pass --stopped, or wait: objects written more than {minutes(QUIET)} minutes ago are no sign"
        )


def refuse_if_running(checkpoint: CheckpointAccess, known_to_be_stopped: bool, wait: Callable[[float], None]) -> None:
    """Raise `QuerySeemsToRun` if an object was written recently, or is written within the next seconds.

    With `known_to_be_stopped` only the second check applies. A run that ends in these seconds may delete objects.
    """
    refuse_if_seen(checkpoint, known_to_be_stopped)
    before = _written(checkpoint)
    wait(LOOK_SECONDS)
    after = _written(checkpoint)
    changed = {*before} ^ {*after}
    _, has_ended = _newest(after)
    if changed and not has_ended:
        name = max(stored.name for stored in changed)
        raise QuerySeemsToRun(
            f"a query runs on {checkpoint.path}: {name} changed within {LOOK_SECONDS:.0f} s. Stop it first"
        )


def refuse_if_changed(checkpoint: CheckpointAccess, newest: int | None) -> None:
    """Raise `QuerySeemsToRun` if `newest` is no longer the newest batch."""
    there = max(entries_of(checkpoint.storage), default=None)
    if there != newest:
        raise QuerySeemsToRun(
            f"{checkpoint.path} has changed: its newest batch is {there} and was {newest}. Stop the query, and "
            "begin again"
        )


def _written(checkpoint: CheckpointAccess) -> list[StoredObject]:
    found = checkpoint.newest_base().objects("data", recursive=True)
    for directory in ("commits", "offsets", "dstl/epochs", "sources"):
        listed = checkpoint.storage.objects(directory, recursive=directory == "sources")
        # Hadoop writes the checksum file of a local file together with the file.
        found += [stored for stored in listed if not stored.last_name.endswith(".crc")]
    return found


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
