# SPDX-License-Identifier: Apache-2.0
"""Follows a query: the changes of each committed batch, once and in order.

A batch takes two requests: one that looks whether its commit entry exists, and one that reads the entry. While nothing
is new it is the first alone, and a list of the entries every ten seconds. The query and its executors do not notice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.following.changes import ChangedBatch, Position, one_batch
from spark_dstl.checkpoint.following.copy import SHOWN, LocalCopy, StateValue, age_of
from spark_dstl.checkpoint.java.gateway import refuse_spark_without_follower
from spark_dstl.checkpoint.java.state import Selection, StateReader
from spark_dstl.checkpoint.pins import pin_if_possible
from spark_dstl.checkpoint.reading import LoadedEntry, read_entry
from spark_dstl.checkpoint.sparkfiles import partitions_in
from spark_dstl.checkpoint.survey import entries_of, newest_of, no_entry
from spark_dstl.errors import (
    CannotPin,
    CheckpointNotFound,
    DstlError,
    FellBehind,
    HistoryChanged,
    InvalidKey,
    JvmFailed,
    UnreadableState,
    UnreadableStorage,
)

if TYPE_CHECKING:
    import pyarrow

_logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.25
# A look at the list of all entries, which shows a rollback, for so many looks in vain at the next one: ten seconds.
_LOOKS_FOR_A_LIST = 40
# Followed batches whose ids are kept, to find the last one before a rollback.
_REMEMBERED = 1000
# How often the pin moves to the last batch.
_MOVES = timedelta(minutes=1)


class Followed:
    """A query that is followed. A context manager, which ends its pin.

    One thread at a time follows, by `changes` or `batches`; any number of threads may call `get` and `table`.
    """

    def __init__(
        self,
        checkpoint: CheckpointAccess,
        reader: StateReader,
        after: int | Position | None,
        selection: Selection | None,
        copies: bool = False,
        starts_anew: bool | None = None,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin after a batch, by default the newest; see `Checkpoint.follow`."""
        refuse_spark_without_follower()
        self._checkpoint = checkpoint
        self._reader = reader
        self._wait = wait
        self._clock = clock
        self._selection = reader.selection(selection)
        self._java = reader.tool("StateFollower")
        batch = after.batch if isinstance(after, Position) else after
        # Spark may retain later batches alone: what a follower that died has left to do is kept by its pin for a while.
        self._pin = pin_if_possible(checkpoint, *([] if batch is None else [max(batch, 0)]), None)
        self._pinned_at = clock()
        self._opened: str | None = None
        # For batches whose own Spark has deleted.
        self._settings: dict[str, Any] = {}
        self._known: deque[Position] = deque(maxlen=_REMEMBERED)
        self._starts_anew = copies if starts_anew is None else starts_anew
        self._is_new_start = False
        self._committed_at: datetime | None = None
        # Held while the copy is loaded or changed, with the position that it is of.
        self._copying = threading.RLock()
        self._copy: LocalCopy | None = None
        self.starts = 1
        """How often the follower has started: more than once if it has fallen behind, or could not follow a batch."""
        try:
            begins_after = self._pin.batch if batch is None and self._pin else batch
            self._position, self._run = self._begin(begins_after, isinstance(after, Position))
            if isinstance(after, Position) and after.entry not in (None, self._position.entry):
                raise self._rolled_back(after.batch)
            self._known.append(self._position)
            if copies:
                self._copy = LocalCopy(reader, self._java, self._selection)
                if self._position.batch >= 0:
                    self.local_copy()
        except BaseException:
            self.close()
            raise

    @property
    def position(self) -> Position:
        """The position after the last batch that was returned."""
        return self._position

    @property
    def age(self) -> timedelta | None:
        """The time since the last batch was committed, by the clocks of storage and of this machine."""
        return age_of(self._committed_at)

    def changes(self, until: int | None = None, waits: bool = True) -> Iterator[ChangedBatch]:
        """Yield the changes of each batch, once and in order, as soon as it is committed.

        Ends after the batch `until`, or, unless it `waits`, after the newest batch. It can be called again, and
        continues after the last batch that was returned.

        Raises `HistoryChanged` if the query was rolled back below a returned batch, `FellBehind` if the query has
        deleted the next batch, and `UnreadableState` if Spark cannot decode the changes.
        """
        for batch, committed_at, entry in self._steps(until, waits):
            changed = self._decoded(batch, committed_at, entry)
            self._advance(batch, committed_at, entry)
            yield changed

    def batches(self, until: int | None = None, waits: bool = True) -> Iterator[Position]:
        """Yield the position after each batch, as soon as it is committed and applied to the local copy.

        As `changes`, with `until` and `waits`, but without rows: they are not decoded, and `changes` does not return
        them any more.
        """
        for step in self._steps(until, waits):
            self._advance(*step)
            yield self._position

    def get(
        self, key: Any, operator: int | None = 0, store: str = "default", column_family: str | None = None
    ) -> StateValue:
        """Return the value of a key as of the newest batch that `changes` or `batches` has returned.

        While another thread applies the next batch, the value can be of that one already: `batch` says of which it is.

        `key` is a dict of the key's columns, a tuple of their values, or the value of the only column. Its values may
        be as `dstl state --format jsonl` prints them: texts for times and decimals, base64 for binary values, seconds
        for intervals. `operator`, `store` and `column_family` are those of `Selection`; name them if the query has
        several tables. The first call loads the local copy: a database in the Java process for each partition of each
        selected store.

        Raises `InvalidKey` if the key has other columns or types, `UnreadableState` if there is no such table, and
        `CheckpointNotFound` if no batch was followed yet.
        """
        return self.local_copy().get([key], operator, store, column_family)[0]

    def get_many(
        self, keys: Iterable[Any], operator: int | None = 0, store: str = "default", column_family: str | None = None
    ) -> list[StateValue]:
        """Return the values of `keys` of one table, in their order and all as of one batch.

        Each takes a fraction of the time that it takes with `get`, which is mostly the way to the Java process and
        back. `operator`, `store`, `column_family` and errors are those of `get`; the error names the first wrong key.
        """
        if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
            raise InvalidKey(f"get_many takes a list of keys, and {SHOWN.repr(keys)} is a single one")
        return self.local_copy().get(list(keys), operator, store, column_family)

    def table(
        self, selection: Selection | None = None, max_rows: int | None = None, max_bytes: int | None = None
    ) -> pyarrow.Table:
        """Return the rows of the state as of the newest batch that `changes` or `batches` has returned.

        Rows and `selection` are those of `Checkpoint.state`; metadata of the schema has `batch` and `age_seconds`.
        Until the rows are read no further batch is applied. Loads the local copy as `get` does.

        Raises `ResultTooLarge` if there are more than `max_rows`, or than `max_bytes` in memory, by default any number;
        `UnreadableState` if there is no such state, and `CheckpointNotFound` if no batch was followed yet.
        """
        return self.local_copy().table(selection, max_rows, max_bytes)

    def tables(self) -> list[dict[str, Any]]:
        """Return the tables of the local copy, with the schemas of their keys and values in Spark's notation."""
        return self.local_copy().tables()

    def close(self) -> None:
        """End the pin, and close the local copies of Spark's stores."""
        if self._pin is not None:
            self._pin.end()
        with suppress(JvmFailed), self._reader.java_errors():
            self._java.close()
        if self._copy is not None:
            with suppress(JvmFailed):
                self._copy.close()

    def __enter__(self) -> Followed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, batch: int | None, was_followed: bool = False) -> tuple[Position, str | None]:
        storage = self._checkpoint.storage
        if batch is None:
            batch = newest_of(entries_of(storage), storage)
        entry = read_entry(storage, max(batch, 0))
        self._settings = self._settings_of(entry) if entry else {}
        if batch < 0:
            return Position(-1, None), None
        if entry is None:
            missing = no_entry(storage, batch)
            if not was_followed:
                raise missing
            raise CheckpointNotFound(
                f"{missing}. A follower has had it: the query was rolled back, or has deleted it. Continue after a "
                "batch that exists (dstl follow --from), and undo those that were rolled back"
            )
        index = entry.index
        return Position(batch, index.entry if index else None), index.writer.run if index else None

    def _settings_of(self, entry: LoadedEntry) -> dict[str, Any]:
        """Return the settings of a batch, else of a newer one if the batch has as many partitions; else none.

        Spark keeps all other settings on which the form of the state depends.
        """
        found = self._reader.settings(entry.batch)
        if found or entry.index is None:
            return found
        storage = self._checkpoint.storage
        newer = self._reader.settings(self._pin.batch if self._pin else newest_of(entries_of(storage), storage))
        partitions = max((segment.store.partition for segment in entry.index.segments), default=-1) + 1
        return newer if partitions_in(newer) == partitions else {}

    def _steps(self, until: int | None, waits: bool) -> Iterator[tuple[int, datetime | None, Any]]:
        """Yield the number, time and entry of each next batch."""
        looks = 0
        while until is None or self._position.batch < until:
            following = self._position.batch + 1
            stored = self._checkpoint.storage.look(f"commits/{following}")
            if stored is None:
                looks += 1
                if not waits or looks % _LOOKS_FOR_A_LIST == 0:
                    try:
                        self._check_history()
                    except (FellBehind, HistoryChanged) as error:
                        self._start_anew(error)
                        continue
                if not waits:
                    return
                self._wait(_LOOK_SECONDS)
                continue
            with self._reader.java_errors():
                entry = self._java.entry(following, stored.size)
            if entry is None:
                continue
            looks = 0
            if not entry.hasChangelogs():
                self._start_anew(self._not_in_log(following))
                continue
            previous, before = entry.previous(), self._position
            if before.entry is not None and previous != before.entry:
                self._start_anew(self._rolled_back(following))
                continue
            yield following, stored.modified, entry

    def _decoded(self, batch: int, committed_at: datetime | None, entry: Any) -> ChangedBatch:
        run = entry.run()
        if run != self._opened:
            # Another run may have changed a schema.
            asked = self._reader.batch(batch, self._settings)
            with self._reader.java_errors():
                self._java.open(asked, self._selection)
            self._opened = run
        rows = self._reader.rows(lambda port, token: self._java.changes(entry, port, token), ExitStack()).read_all()
        is_new_run = self._run is not None and run != self._run
        return ChangedBatch(
            batch, committed_at, entry.id(), run, entry.host(), is_new_run, one_batch(rows, batch), self._is_new_start
        )

    def _advance(self, batch: int, committed_at: datetime | None, entry: Any) -> None:
        run = entry.run()
        with self._copying:
            if self._copy is not None:
                if run == self._copy.run:
                    self._copy.apply(entry, batch, committed_at)
                else:
                    self._copy.load(self._reader.batch(batch, self._settings), committed_at, run)
            self._run = run
            self._position = Position(batch, entry.id())
            self._committed_at = committed_at
        self._is_new_start = False
        self._known.append(self._position)
        self._move_pin()

    def local_copy(self) -> LocalCopy:
        """Return the local copy, loaded as of the position unless it is."""
        copy = self._copy
        if copy is None or copy.run is None:
            with self._copying:
                if self._copy is None:
                    self._copy = LocalCopy(self._reader, self._java, self._selection)
                if self._copy.run is None:
                    self._load(self._copy)
                copy = self._copy
        return copy

    def _load(self, copy: LocalCopy) -> None:
        batch = self._position.batch
        if batch < 0:
            raise CheckpointNotFound(f"no batch of {self._checkpoint.path} was followed yet: there is no state")
        stored = self._checkpoint.storage.look(f"commits/{batch}")
        self._committed_at = stored.modified if stored else None
        copy.load(self._reader.batch(batch, self._settings), self._committed_at, self._run or "")

    def _start_anew(self, error: DstlError) -> None:
        """Continue after the newest batch, or raise the error."""
        if not self._starts_anew:
            raise error
        with self._copying:
            if self._copy is not None:
                # Until it is loaded again: its batch is not that of the new position.
                self._copy.run = None
            with self._reader.java_errors():
                self._java.startAnew()
            if self._pin is not None:
                self._pin.end()
            self._pin = pin_if_possible(self._checkpoint, None)
            self._position, self._run = self._begin(self._pin.batch if self._pin else None)
            self._known.clear()
            self._known.append(self._position)
            self._opened = None
            self._is_new_start = True
            self.starts += 1
            if self._copy is not None:
                self._load(self._copy)
        _logger.warning("%s. The follower has started anew after batch %d", error, self._position.batch)

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

    def _not_in_log(self, batch: int) -> UnreadableState:
        return UnreadableState(
            f"the changes of batch {batch} of {self._checkpoint.path} are in plain files: only those in the log can be "
            "followed. It was run by stock Spark, with enabled=false or commit.mode=sync, or is one of dstl "
            "repartition, which changes no row: continue after it"
        )

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
