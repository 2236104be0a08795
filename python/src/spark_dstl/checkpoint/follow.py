# SPDX-License-Identifier: Apache-2.0
"""Follows a query: the changes of each committed batch, once and in order.

A batch takes two requests: one that looks whether its commit entry exists, and one that reads the entry. While nothing
is new it is the first alone, and a list of the entries every ten seconds. The query and its executors do not notice.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.java.gateway import PURPOSE, refuse_spark_without_follower
from spark_dstl.checkpoint.java.state import Selection, StateReader
from spark_dstl.checkpoint.pins import pin_if_possible
from spark_dstl.checkpoint.reading import read_entry
from spark_dstl.checkpoint.survey import entries_of, no_entry
from spark_dstl.dependencies import needed
from spark_dstl.errors import (
    CannotPin,
    CheckpointNotFound,
    FellBehind,
    HistoryChanged,
    JvmFailed,
    UnreadableState,
    UnreadableStorage,
)

if TYPE_CHECKING:
    import pyarrow

_LOOK = timedelta(milliseconds=250)
# A look at the list of all entries, which shows a rollback, for so many looks in vain at the next one: ten seconds.
_LOOKS_FOR_A_LIST = 40
# Followed batches whose ids are kept, to find the last one before a rollback.
_REMEMBERED = 1000
# How often the pin moves to the last batch.
_MOVES = timedelta(minutes=1)


@dataclass(frozen=True)
class ChangedBatch:
    """The changes of one committed batch."""

    batch: int
    """The number of the batch."""
    committed_at: datetime | None
    """When it was committed, by the storage's clock."""
    entry: str
    """The id of its commit entry: another after a rollback."""
    run: str
    """The run of the query that committed it."""
    host: str
    """The host of the driver of that run."""
    is_new_run: bool
    """Whether another run has committed the batch before."""
    changes: pyarrow.RecordBatch
    """The rows that changed, in the order of the changes in each store: `change_type` is update, append or delete."""


@dataclass(frozen=True)
class Position:
    """The place in the history of a query after a batch."""

    batch: int
    """The last followed batch."""
    entry: str | None
    """The id of its commit entry; None if the batch is not in the log."""


class Followed:
    """A query that is followed. A context manager, which ends its pin."""

    def __init__(
        self,
        checkpoint: CheckpointAccess,
        reader: StateReader,
        after: int | Position | None,
        selection: Selection | None,
        look: timedelta = _LOOK,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin after a batch, by default the newest; see `Checkpoint.follow`."""
        refuse_spark_without_follower()
        self._checkpoint = checkpoint
        self._reader = reader
        self._look = look.total_seconds()
        self._wait = wait
        self._clock = clock
        self._selection = reader.selection(selection)
        self._java = reader.tool("StateFollower")
        batch = after.batch if isinstance(after, Position) else after
        self._pin = pin_if_possible(checkpoint, None if batch is None else max(batch, 0))
        self._pinned_at = clock()
        self._opened: str | None = None
        # Spark may have deleted those of a pinned batch.
        self._settings: dict[str, Any] = {}
        self._known: deque[Position] = deque(maxlen=_REMEMBERED)
        try:
            self._position, self._run = self._begin(self._pin.batch if batch is None and self._pin else batch)
            if isinstance(after, Position) and after.entry not in (None, self._position.entry):
                raise self._rolled_back(after.batch)
        except BaseException:
            self.close()
            raise
        self._known.append(self._position)

    @property
    def position(self) -> Position:
        """The position after the last batch that was returned."""
        return self._position

    def changes(self, until: int | None = None, waits: bool = True) -> Iterator[ChangedBatch]:
        """Yield the changes of each batch, once and in order, as soon as it is committed.

        Ends after the batch `until`, or, unless it `waits`, after the newest batch. It can be called again, and
        continues after the last batch that was returned.

        Raises `HistoryChanged` if the query was rolled back below a returned batch, `FellBehind` if the query has
        deleted the next batch, and `UnreadableState` if Spark cannot decode the changes.
        """
        looks = 0
        while until is None or self._position.batch < until:
            following = self._position.batch + 1
            stored = self._checkpoint.storage.look(f"commits/{following}")
            if stored is None:
                looks += 1
                if not waits or looks % _LOOKS_FOR_A_LIST == 0:
                    self._check_history()
                if not waits:
                    return
                self._wait(self._look)
                continue
            with self._reader.java_errors():
                entry = self._java.entry(following, stored.size)
            if entry is None:
                continue
            looks = 0
            yield self._applied(following, stored.modified, entry)

    def close(self) -> None:
        """End the pin, and close the local copies of Spark's stores."""
        if self._pin is not None:
            self._pin.end()
        with suppress(JvmFailed), self._reader.java_errors():
            self._java.close()

    def __enter__(self) -> Followed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, batch: int | None) -> tuple[Position, str | None]:
        storage = self._checkpoint.storage
        if batch is None:
            there = entries_of(storage)
            if not there:
                raise CheckpointNotFound(f"{self._checkpoint.path} has no commit entry yet: start the query first")
            batch = max(there)
        if batch < 0:
            return Position(-1, None), None
        entry = read_entry(storage, batch)
        if entry is None:
            raise no_entry(storage, batch)
        self._settings = self._reader.settings(batch)
        index = entry.index
        return Position(batch, index.entry if index else None), index.writer.run if index else None

    def _applied(self, batch: int, committed_at: datetime | None, entry: Any) -> ChangedBatch:
        if not entry.hasLog():
            raise UnreadableState(
                f"the changes of batch {batch} of {self._checkpoint.path} are in plain files: only those in the log "
                "can be followed. It was run by stock Spark, with enabled=false or commit.mode=sync, or is one of dstl "
                "repartition, which changes no row: continue after it"
            )
        previous, before = entry.previous(), self._position
        if before.entry is not None and previous is not None and previous != before.entry:
            raise self._rolled_back(batch)
        if entry.run() != self._opened:
            # Another run may have changed a schema.
            asked = self._reader.batch(batch, self._settings)
            with self._reader.java_errors():
                self._java.open(asked, self._selection)
            self._opened = entry.run()
        rows = self._reader.rows(lambda port, token: self._java.changes(entry, port, token), ExitStack()).read_all()
        changed = ChangedBatch(
            batch,
            committed_at,
            entry.id(),
            entry.run(),
            entry.host(),
            self._run is not None and entry.run() != self._run,
            _one_batch(rows),
        )
        self._run = entry.run()
        self._position = Position(batch, entry.id())
        self._known.append(self._position)
        self._move_pin()
        return changed

    def _move_pin(self) -> None:
        if self._clock() - self._pinned_at < _MOVES.total_seconds():
            return
        self._pinned_at = self._clock()
        if self._pin is None:
            self._pin = pin_if_possible(self._checkpoint, self._position.batch)
        else:
            # A follower that lags behind what Spark retains keeps its pin, which keeps all later batches.
            with suppress(CannotPin, UnreadableStorage, CheckpointNotFound):
                self._pin.move(self._position.batch)

    def _check_history(self) -> None:
        """Raise if the next batch will not come: the query was rolled back, or has deleted it."""
        there = entries_of(self._checkpoint.storage)
        position = self._position
        batch = position.batch
        if batch + 1 not in there and max(there, default=-1) > batch:
            oldest = next(one for one in there if one > batch)
            raise FellBehind(
                f"batch {batch + 1} of {self._checkpoint.path} was deleted before it was followed: Spark does not "
                f"retain it, and no pin has kept it. Begin anew, with the state as of batch {oldest} or later"
            )
        if max(there, default=-1) < batch or (position.entry and not self._is_there(position, there)):
            raise self._rolled_back(batch)

    def _is_there(self, position: Position, there: Container[int]) -> bool:
        if position.batch not in there:
            return False
        found = read_entry(self._checkpoint.storage, position.batch)
        return found is not None and found.index is not None and found.index.entry == position.entry

    def _rolled_back(self, batch: int) -> HistoryChanged:
        there = entries_of(self._checkpoint.storage)
        last = next((one.batch for one in reversed(self._known) if self._is_there(one, there)), None)
        again = (
            "Begin anew, with the state as of a batch that exists"
            if last is None
            else (
                f"Batch {last} is the last one that is still in its history: undo the later ones, and continue after it"
            )
        )
        return HistoryChanged(
            f"{self._checkpoint.path} was rolled back: batch {batch} is not what follows the batches that were read. "
            f"{again}",
            last,
        )


def _one_batch(rows: Any) -> Any:
    arrow = needed("pyarrow", PURPOSE)
    batches = rows.combine_chunks().to_batches()
    return batches[0] if batches else arrow.RecordBatch.from_pylist([], schema=rows.schema)
