# SPDX-License-Identifier: Apache-2.0
"""Detection of a query that runs on a checkpoint.

A checkpoint has no lock and no lease. A query counts as running if an object was written recently, or is written while
the command watches. A query that waits for input writes nothing and is not detected. A run that has written its end
mark counts as stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, timezone

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.storage import StoredObject
from spark_dstl.checkpoint.survey import entries_of
from spark_dstl.errors import QuerySeemsToRun

# A request of a query may take up to `commit.timeout`, 10 minutes by default.
QUIET = timedelta(minutes=15)
LOOK_SECONDS = 5.0


def now() -> datetime:
    """Return the time."""
    return datetime.now(timezone.utc)


def minutes(length: timedelta) -> int:
    """Return a length of time in minutes."""
    return int(length.total_seconds() // 60)


def _watched(checkpoint: CheckpointAccess) -> list[StoredObject]:
    return [*_written(checkpoint), *checkpoint.newest_base().objects("data", recursive=True)]


def _written(checkpoint: CheckpointAccess) -> Iterator[StoredObject]:
    for directory in ("commits", "offsets", "dstl/epochs", "sources"):
        for stored in checkpoint.storage.objects(directory, recursive=directory == "sources"):
            # Hadoop writes the checksum file of a local file together with the file.
            if not stored.last_name.endswith(".crc"):
                yield stored


def signs(checkpoint: CheckpointAccess, at: datetime | None = None) -> str | None:
    """Return the newest object and its age if it was written recently, else None.

    Return None as well if the object is the end mark of the newest run.
    """
    written = _watched(checkpoint)
    newest = _newest(written)
    if newest is None or newest.modified is None or _is_end_mark(newest, written):
        return None
    age = (at or now()) - newest.modified
    if age >= QUIET:
        return None
    return f"{newest.name} was written {max(int(age.total_seconds()), 0)} s ago"


def _newest(written: Iterable[StoredObject]) -> StoredObject | None:
    # Times may be whole seconds: of equal ones the end mark is the newest.
    return max(
        (stored for stored in written if stored.modified is not None),
        key=lambda stored: (stored.modified, _ended(stored) is not None),
        default=None,
    )


def _is_end_mark(newest: StoredObject, written: Iterable[StoredObject]) -> bool:
    """Whether `newest` is the last object that the newest run writes."""
    epochs = [epoch for stored in written if (epoch := _claimed(stored)) is not None]
    return bool(epochs) and _ended(newest) == max(epochs)


def _claimed(stored: StoredObject) -> int | None:
    return names.number(stored.last_name) if stored.name.startswith("dstl/epochs/") else None


def _ended(stored: StoredObject) -> int | None:
    return names.end_of_epoch(stored.last_name) if stored.name.startswith("dstl/epochs/") else None


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
    before = _state(_watched(checkpoint))
    wait(LOOK_SECONDS)
    after = _watched(checkpoint)
    changed = before ^ _state(after)
    newest = _newest(after)
    if changed and (newest is None or not _is_end_mark(newest, after)):
        name = max(name for name, _, _ in changed)
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


def _state(written: Iterable[StoredObject]) -> set[tuple[str, int, datetime | None]]:
    return {(stored.name, stored.size, stored.modified) for stored in written}
