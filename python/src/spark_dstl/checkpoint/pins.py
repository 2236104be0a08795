# SPDX-License-Identifier: Apache-2.0
"""Pins: small objects by which readers ask a query to keep what a batch needs, and all later batches.

A pin holds if Spark had not purged its batch when the pin was created. Spark deletes `offsets/N` before it purges
`commits/N`, and a query deletes nothing of what is purged before it has listed the pins. So a pin holds if `offsets/N`
still exists after the pin was created. The pin has a copy of `offsets/N`, without which the state cannot be read.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.storage import Storage
from spark_dstl.checkpoint.survey import entries_of, newest_of, no_entry
from spark_dstl.errors import CannotPin, CheckpointNotFound, DstlError, PinTooLate, UnreadableStorage

# How long a pin lasts that its reader renews while it reads.
RENEWED = timedelta(minutes=10)
_DIRECTORY = "dstl/epochs"
_MAX_PIN = sparkfiles.MAX_OFFSETS + 4096
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pin:
    """A pin on storage. Its query may end it earlier: see the option `pins.maxDuration`."""

    name: str
    """The name of its object, by which it is ended."""
    batch: int
    """The batch that it keeps, with all later ones."""
    lasts: timedelta
    """How long it was asked for."""
    pinned_at: datetime | None
    """When it was created, by the storage's clock."""

    @property
    def object_name(self) -> str:
        """The name of its object below the checkpoint."""
        return f"{_DIRECTORY}/{self.name}"

    @property
    def ends_at(self) -> datetime | None:
        """When it ends, by the storage's clock."""
        return self.pinned_at and self.pinned_at + self.lasts


def create_pin(checkpoint: CheckpointAccess, batch: int | None, lasts: timedelta) -> Pin:
    """Pin a batch, by default the newest. Raises `PinTooLate` if Spark does not retain it, or `CannotPin`."""
    storage = checkpoint.storage
    if not storage.objects(_DIRECTORY):
        raise CannotPin(
            f"{checkpoint.path} cannot be pinned: no run with the log has begun on it, and stock Spark ignores pins"
        )
    there = entries_of(storage)
    number = newest_of(there, storage) if batch is None else batch
    if number not in there:
        raise no_entry(storage, number)
    offsets = storage.read(f"offsets/{number}", sparkfiles.MAX_OFFSETS)
    if offsets is None:
        raise _too_late(checkpoint, number)
    header = json.dumps({"pin": 1, "host": socket.gethostname()}).encode()
    made = _write(storage, number, lasts, header + b"\n" + offsets)
    try:
        if storage.size(f"offsets/{number}") is None:
            raise _too_late(checkpoint, number)
    except BaseException:
        # Also if it is unknown whether it holds: the caller does not know its name.
        with suppress(UnreadableStorage):
            end_pin(checkpoint, made.name)
        raise
    return made


def _write(storage: Storage, batch: int, lasts: timedelta, content: bytes) -> Pin:
    seconds = max(1, int(lasts.total_seconds()))
    name = f"{batch}-{seconds}-{uuid.uuid4()}.pin"
    storage.create(f"{_DIRECTORY}/{name}", content)
    return Pin(name, batch, timedelta(seconds=seconds), None)


def _too_late(checkpoint: CheckpointAccess, batch: int) -> PinTooLate:
    return PinTooLate(
        f"batch {batch} of {checkpoint.path} cannot be pinned: Spark retains it no more, and the query may delete what "
        "it needs. Pin a newer batch; `dstl ls PATH versions` shows which are retained"
    )


def was_ended(checkpoint: CheckpointAccess, pin: Pin) -> PinTooLate:
    """Return the error for a pin that another has ended."""
    return PinTooLate(
        f"the pin {pin.name} of batch {pin.batch} of {checkpoint.path} was ended by `dstl unpin`, by `dstl rollback`, "
        "or by the query when its time was over (at most pins.maxDuration): the query may delete what the batch needs"
    )


def pins_of(storage: Storage) -> list[Pin]:
    """Return the pins of a checkpoint, of the oldest batches first."""
    found = []
    for stored in storage.objects(_DIRECTORY):
        parsed = names.pin(stored.last_name)
        if parsed is not None:
            batch, seconds = parsed
            # More than a thousand years are not shown.
            lasts = timedelta(seconds=min(seconds, 2**35))
            found.append(Pin(stored.last_name, batch, lasts, stored.modified))
    return sorted(found, key=lambda pin: (pin.batch, pin.name))


def end_pin(checkpoint: CheckpointAccess, name: str) -> bool:
    """End a pin; return whether it existed."""
    if names.pin(name) is None:
        raise DstlError(f"{name} is not the name of a pin; `dstl ls {checkpoint.path} pins` shows them")
    return checkpoint.storage.delete(f"{_DIRECTORY}/{name}")


def pinned_offsets(storage: Storage, batch: int) -> bytes | None:
    """Return the copy of `offsets/N` in a pin of the batch; None if no pin has one."""
    for pin in pins_of(storage):
        if pin.batch == batch:
            copy = (storage.read(pin.object_name, _MAX_PIN) or b"").partition(b"\n")[2]
            # A reader that was killed may have written a part of it.
            if sparkfiles.offsets_in(copy):
                return copy
    return None


class HeldPin:
    """A pin that is renewed until it is ended. A context manager, which ends it."""

    def __init__(self, checkpoint: CheckpointAccess, batch: int | None, lasts: timedelta) -> None:
        """Pin a batch; raises as `create_pin`."""
        self._checkpoint = checkpoint
        self._lasts = lasts
        self._lock = threading.Lock()
        self._ended = threading.Event()
        # Whether it was noticed that another has ended the present pin.
        self._is_gone = False
        self._is_abandoned = False
        self._pin = create_pin(checkpoint, batch, lasts)
        threading.Thread(target=self._keep_renewing, name="dstl-pin", daemon=True).start()

    @property
    def batch(self) -> int:
        """The batch from which on the log is kept."""
        return self._pin.batch

    def move(self, batch: int) -> None:
        """Pin a later batch instead."""
        with self._lock:
            if not self._ended.is_set():
                older, newer = self._pin, create_pin(self._checkpoint, batch, self._lasts)
                was_gone, self._is_gone = self._is_gone, False
                if not self._replace(newer) and not was_gone:
                    _logger.warning("%s. Batch %d is pinned instead", was_ended(self._checkpoint, older), batch)

    def end(self) -> None:
        """End the pin. Storage that does not answer is no error: the pin ends after its time."""
        with self._lock:
            if not self._ended.is_set():
                self._ended.set()
                with suppress(UnreadableStorage):
                    end_pin(self._checkpoint, self._pin.name)

    def abandon(self) -> None:
        """Have the pin ended instead of renewed next time. Takes no lock and makes no request, as a finalizer must."""
        self._is_abandoned = True

    def __enter__(self) -> HeldPin:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def renew(self) -> None:
        """Create the pin anew, whose time begins again. The log has its batch, because of the present pin.

        Raises `PinTooLate` if the present pin was ended by another.
        """
        with self._lock:
            if self._ended.is_set():
                return
            storage = self._checkpoint.storage
            older = self._pin
            content = storage.read(older.object_name, _MAX_PIN)
            if content is not None:
                newer = _write(storage, self.batch, self._lasts, content)
                if self._replace(newer):
                    return
                end_pin(self._checkpoint, newer.name)
            self._is_gone = True
            raise was_ended(self._checkpoint, older)

    def _replace(self, newer: Pin) -> bool:
        """Hold the newer pin, also if the older cannot be ended; return whether the older existed."""
        older, self._pin = self._pin, newer
        return end_pin(self._checkpoint, older.name)

    def _keep_renewing(self) -> None:
        # The query ends a pin after its own limit, however long it was asked for.
        while not self._ended.wait(min(self._pin.lasts, RENEWED).total_seconds() / 3):
            if self._is_abandoned:
                self.end()
                return
            if self._is_gone:
                continue
            try:
                self.renew()
            except PinTooLate as error:
                _logger.warning(
                    "%s. Reads continue without a pin; a follower pins the batch that it reaches next", error
                )
            except DstlError as error:
                _logger.warning("The pin of batch %s was not renewed, which is tried again: %s", self.batch, error)


def pin_if_possible(checkpoint: CheckpointAccess, *batches: int | None) -> HeldPin | None:
    """Pin the first of these batches that can be pinned, None being the newest.

    None without the permission, or if there is nothing to pin.
    """
    for batch in batches:
        try:
            return HeldPin(checkpoint, batch, RENEWED)
        except (CannotPin, CheckpointNotFound) as error:
            _logger.debug("%s is read without a pin of batch %s: %s", checkpoint.path, batch, error)
        except UnreadableStorage as error:
            _logger.warning("%s is read without a pin: its query may delete what is read. %s", checkpoint.path, error)
            break
    return None
