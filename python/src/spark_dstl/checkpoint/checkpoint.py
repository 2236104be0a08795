# SPDX-License-Identifier: Apache-2.0
"""`Checkpoint`: the public class of a checkpoint, and `open_checkpoint`, which finds one.

Each operation is a function in a separate module that takes a `CheckpointAccess`; none of them imports this module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from spark_dstl.checkpoint import rows, sparkfiles, tables
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.changing.leftovers import Leftovers, delete_leftovers, find_leftovers
from spark_dstl.checkpoint.changing.rollback import Rollback, apply_rollback, plan_rollback
from spark_dstl.checkpoint.convert.conversion import Conversion, convert, plan_conversion
from spark_dstl.checkpoint.export.export import Exported, export
from spark_dstl.checkpoint.following.changes import Position
from spark_dstl.checkpoint.following.follow import Followed
from spark_dstl.checkpoint.java.gateway import JvmOptions, refuse_spark_without_readers
from spark_dstl.checkpoint.java.state import Selection, StateReader
from spark_dstl.checkpoint.locate import StorageOptions, locate
from spark_dstl.checkpoint.pins import RENEWED, HeldPin, pins_of
from spark_dstl.checkpoint.repartition.repartition import Repartition, plan_repartition, repartition
from spark_dstl.checkpoint.storage import Progress, Storage, silent
from spark_dstl.checkpoint.summary import Summary, summarize
from spark_dstl.checkpoint.survey import entries_of, newest_of
from spark_dstl.checkpoint.verification.findings import Verification
from spark_dstl.checkpoint.verification.verify import verify
from spark_dstl.errors import UnreadableStorage

if TYPE_CHECKING:
    import pyarrow


def open_checkpoint(
    path: str,
    *,
    base_path: str | None = None,
    options: StorageOptions | None = None,
    progress: Progress = silent,
    jvm: JvmOptions | None = None,
) -> Checkpoint:
    """Open the checkpoint at `path` for reading.

    `path` is the `checkpointLocation` of the query: a local path, or a URI of S3 (`s3://`, `s3a://`) or of another
    storage that pyarrow or Hadoop supports. The query may run; its committed batches are visible. Readers of state
    write pins where they may; reading changes nothing else. `base_path` is the directory of the data files, if it is
    not the one that the newest commit entry names. `options` configure access to storage. `progress` is called with a
    description, the count so far and the total. `jvm` configures the Java process, which reads state and storage that
    only Hadoop supports. Open checkpoints with the same options share it; it ends with the last of them.

    ```python
    with spark_dstl.open("/checkpoints/clicks") as checkpoint:
        print(checkpoint.verify().is_damaged)
    ```

    Raises `CheckpointNotFound` if `path` has no checkpoint of a query, `UnreadableStorage` if storage does not answer,
    and `MissingPackage` if pyarrow is not installed.
    """
    options = options or StorageOptions()
    if jvm is not None:
        options = replace(options, jvm=jvm)
    storage = Storage(locate(path, options))
    return Checkpoint(storage, sparkfiles.query_id(storage), base_path, options, progress)


@contextmanager
def follow(
    path: str,
    after: int | Position | None = None,
    selection: Selection | None = None,
    *,
    copies: bool = False,
    starts_anew: bool | None = None,
    base_path: str | None = None,
    options: StorageOptions | None = None,
    jvm: JvmOptions | None = None,
) -> Iterator[Followed]:
    """Open the checkpoint at `path`, and follow its query from the batch after `after` on, by default the newest.

    ```python
    with spark_dstl.follow("/checkpoints/clicks", after=1) as followed:
        for batch in followed.changes(waits=False):
            print(batch.batch, batch.changes.num_rows)
    ```

    `selection`, `copies`, `starts_anew` and the errors are those of `Checkpoint.follow`; `base_path`, `options` and
    `jvm` are those of `open`.
    """
    with (
        open_checkpoint(path, base_path=base_path, options=options, jvm=jvm) as checkpoint,
        checkpoint.follow(after, selection, copies, starts_anew) as followed,
    ):
        yield followed


def find_checkpoints(path: str, options: StorageOptions | None = None) -> list[str]:
    """Return the paths of the checkpoints at `path` and in the directories in it, and of directories not readable."""
    storage = Storage(locate(path, options or StorageOptions()))

    def may_be_one(directory: str) -> bool:
        try:
            return storage.size(f"{directory}/metadata") is not None and bool(storage.directories(directory))
        except UnreadableStorage:
            return True

    if storage.size("metadata") is not None:
        return [path]
    return [f"{path.rstrip('/')}/{directory}" for directory in storage.directories() if may_be_one(directory)]


class Checkpoint(CheckpointAccess):
    """The checkpoint of one query on storage. A context manager, which closes it.

    Short tables are `pyarrow.Table`s; long ones are `pyarrow.RecordBatchReader`s, which keep a few commit entries in
    memory at a time. `apply_rollback`, `repartition` and `delete_leftovers` change the checkpoint; `export` and
    `convert` write to another directory. `state`, `changes`, `diff` and `export` pin what they read, and read without a
    pin where they may not write. Each method may raise `UnreadableStorage`; methods that read commit entries raise
    `DamagedLog` or `UnsupportedLog` unless their description says otherwise.

    ```python
    with spark_dstl.open("/checkpoints/clicks") as checkpoint:
        print(checkpoint.summary().newest_batch)
        print(checkpoint.stores().column("log_bytes").to_pylist())
    ```
    """

    _state: StateReader | None = None

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the reader threads, and the Java process if no other checkpoint uses it."""
        if self._state is not None:
            self._state.close()
            self._state = None
        super().close()

    def summary(self) -> Summary:
        """Return sizes, last commit, newest claim, snapshots, and the reads of a restart."""
        return summarize(self)

    def verify(self, deep: bool = False) -> Verification:
        """Check what a restart replays, and the entries, references, versions and metadata of the checkpoint.

        Commit entries and changelogs that a restart reads are compared with their checksums; of other data the
        existence and size are checked, and `unread` has its bytes. With `deep`, also check every byte that a commit
        entry names, the content of snapshots' zips, and plain files for which Spark keeps checksums. Checks that need
        RocksDB are not made: of the content of SST files, and of the encoding of changelogs. The query may run: only
        damage that a second survey confirms is reported.
        """
        return verify(self, deep)

    def plan_rollback(self, to: int, deep: bool = False) -> Rollback:
        """Return the objects that a rollback to the batch `to` deletes; nothing is changed.

        Runs `verify`, with `deep`, and raises `CannotRollBack` if the state of the batch cannot be rebuilt.
        """
        return plan_rollback(self, to, deep)

    def apply_rollback(self, planned: Rollback, stopped: bool = False) -> Rollback:
        """Delete the objects `planned` by `plan_rollback`, and return the plan with the number of deleted objects.

        Raises `QuerySeemsToRun` if a query seems to run; `stopped` skips the check of recent writes, but a commit
        during the rollback is always detected.
        """
        return apply_rollback(self, planned, stopped)

    def export(self, target: str, stopped: bool = False) -> Exported:
        """Write a checkpoint to `target` that stock Spark continues: without the jar, with its own RocksDB provider.

        The newest batch is exported, with the unbroken run of retained batches before it that can be rebuilt: the new
        checkpoint can be rolled back to these. A batch that was begun runs again. Of this checkpoint all data are read,
        and only a pin is written. An interrupted export can be repeated and continues; at the end every object is read
        again and compared. Raises `CannotExport` if the newest batch cannot be rebuilt, or if `target` has other
        objects, and `QuerySeemsToRun` if a query seems to run; `stopped` skips the check of recent writes.
        """
        return export(self, locate(target, self.storage_options), stopped)

    def plan_conversion(self, target: str) -> Conversion:
        """Return what `convert` would do, without reading state; nothing is written.

        `target` is an empty path or URI, or has an unfinished conversion of this checkpoint. Raises `CannotConvert` as
        `convert` does.
        """
        return plan_conversion(self, locate(target, self.storage_options))

    def convert(self, target: str, stopped: bool = False) -> Conversion:
        """Convert this checkpoint of Spark's default provider: write one to `target` with its state for the log.

        The new checkpoint continues after the newest committed batch; a batch that was begun runs again. This
        checkpoint does not change. Spark's own classes read and write the state in a Java process, and compare it row
        by row at the end. An interrupted conversion can be repeated and continues. Raises `CannotConvert` if this is
        not a checkpoint of the HDFS-backed provider with committed state, or if `target` has other objects,
        `UnreadableState` if Spark cannot read the state, and `QuerySeemsToRun` if a query seems to run; `stopped` skips
        the check of recent writes.
        """
        return convert(self, locate(target, self.storage_options), stopped)

    def repartition(self, partitions: int, apply: bool = False, stopped: bool = False) -> Repartition:
        """Write the state of the stopped query into another number of partitions; without `apply`, only plan it.

        `partitions` is the new `spark.sql.shuffle.partitions`, which Spark pins in the checkpoint. The result is a
        batch without input after the newest one, with snapshots of all stores, from which the query continues; earlier
        batches stay, so that `plan_rollback` goes back over it. Spark's own classes read and write the state in a Java
        process, and all rows are compared. An interrupted call leaves the old checkpoint, or the new one, and can be
        repeated.

        ```python
        with spark_dstl.open("/checkpoints/clicks") as checkpoint:
            print(checkpoint.repartition(3).state_bytes)
        ```

        Raises `CannotRepartition` if a batch was begun and is not committed, if the number is the present one, or if an
        operator does not allow it; `UnreadableState` if Spark cannot read or write the state; and `QuerySeemsToRun` if
        a query seems to run. `stopped` skips the check of recent writes.
        """
        if not apply:
            return plan_repartition(self, partitions, stopped)
        return repartition(self, partitions, self._reader, stopped)

    def leftovers(self) -> Leftovers:
        """Return the objects that nothing needs once the query is stopped.

        Raises `DstlError` if a commit entry cannot be read, because the objects that it names are then unknown.
        """
        return find_leftovers(self)

    def delete_leftovers(self, found: Leftovers, stopped: bool = False) -> Leftovers:
        """Delete the objects `found` by `leftovers`, and return them with the number of deleted objects.

        Raises `QuerySeemsToRun` if a query seems to run; `stopped` skips the check of recent writes.
        """
        return delete_leftovers(self, found, stopped)

    def state(self, batch: int | None = None, selection: Selection | None = None) -> pyarrow.RecordBatchReader:
        """Return the state as of `batch`, by default the newest, as Spark's state reader returns it.

        `selection` selects rows, by default all. Columns are operator, partition, store, column_family, and those of
        Spark's reader, mostly key and value. If the selection has several schemas (several stores or column families),
        key and value are JSON. A Java process reads the state, whose batch is pinned.

        Raises `UnreadableState` if Spark cannot read the state, `JvmFailed` if the Java process fails, and
        `CheckpointNotFound` if the batch has no entry.
        """
        reader = self._reader()
        number = newest_of(entries_of(self.storage), self.storage) if batch is None else batch
        return reader.read("state", [number], selection)

    def changes(self, batch: int, selection: Selection | None = None) -> pyarrow.RecordBatchReader:
        """Return the change records of `batch`: `change_type` is update, append or delete.

        `selection`, the other columns and the errors are those of `state`.
        """
        return self._reader().read("changes", [batch], selection)

    def diff(self, before: int, after: int, selection: Selection | None = None) -> pyarrow.RecordBatchReader:
        """Return the rows in which the states as of the batches `before` and `after` differ.

        The column `change` is added, removed or changed; further columns are the key and both values. `selection`, the
        other columns and the errors are those of `state`. Both states are on local disk, one partition at a time.
        """
        return self._reader().read("diff", [before, after], selection)

    def follow(
        self,
        after: int | Position | None = None,
        selection: Selection | None = None,
        copies: bool = False,
        starts_anew: bool | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> Followed:
        """Follow the query: return the changes of each batch after the batch `after`, by default the newest.

        `after` may be the `position` of an earlier follower, which shows whether the query was rolled back since. The
        batches are pinned. `selection` is that of `state`; timers have no changes. Key and value are the rows of
        Spark's state stores; with several schemas they are JSON. A Java process decodes them, which takes Spark 4.1.

        ```python
        with spark_dstl.open("/checkpoints/clicks") as checkpoint, checkpoint.follow(after=1) as followed:
            for batch in followed.changes(waits=False):
                print(batch.batch, batch.changes.num_rows)
        ```

        With `copies` it loads a local copy of the state at once, and otherwise when `get` or `table` is first called.
        With `starts_anew`, by default that of `copies`, it continues after the newest batch instead of raising
        `FellBehind` or `HistoryChanged`: then `starts` counts, and the next changes have `is_new_start`.

        `wait` is called with the seconds between two looks at storage; an exception that it raises ends them.

        Raises `CheckpointNotFound` if there is no such batch, `HistoryChanged` if it is another batch than that of the
        position, and `UnsupportedSpark` if Spark is older.
        """
        return Followed(self, self._reader(), after, selection, copies, starts_anew, wait=wait)

    def pin(self, batch: int | None = None, lasts: timedelta = RENEWED) -> HeldPin:
        """Pin `batch`, by default the newest: its query keeps what it and all later batches need.

        The pin is renewed until its `end` is called, or the context is left. If this process dies, it ends after
        `lasts`, a whole number of seconds, or after the query's option `pins.maxDuration` if that is less.

        ```python
        with spark_dstl.open("/checkpoints/clicks") as checkpoint, checkpoint.pin() as pin:
            print(checkpoint.state(pin.batch).read_all().num_rows)
        ```

        Raises `PinTooLate` if Spark does not retain the batch, `CannotPin` if stock Spark has run the query,
        `CheckpointNotFound` if the batch has no entry, and `UnreadableStorage` without the permission to write.
        """
        return HeldPin(self, batch, lasts)

    def pins(self) -> pyarrow.Table:
        """Return a row for each pin: its batch, and when it ends by the storage's clock."""
        return tables.table("pins", map(rows.of_pin, pins_of(self.storage)))

    def operators(self) -> pyarrow.Table:
        """Return a row for each store name of each stateful operator, from Spark's metadata."""
        return tables.table("operators", rows.operators(self))

    def stores(self) -> pyarrow.Table:
        """Return a row for each store: its share of the log, its plain files, and what it is rebuilt from."""
        return tables.table("stores", rows.stores(self.look_again()))

    def versions(self) -> pyarrow.Table:
        """Return a row for each state version: where it is, its size, and whether Spark retains it."""
        return tables.table("versions", rows.of_versions(self.look_again()))

    def snapshots(self) -> pyarrow.Table:
        """Return a row for each snapshot of a store, in commit entries and in plain files."""
        return tables.table("snapshots", rows.of_snapshots(self.look_again()))

    def claims(self) -> pyarrow.Table:
        """Return a row for each claim of an epoch: the run, its host and its start."""
        return tables.table("claims", rows.claims(self))

    def entries(self, batch: int | None = None) -> pyarrow.RecordBatchReader:
        """Return a row for each commit entry, or for that of `batch`; `damage` describes a damaged entry.

        Raises `CheckpointNotFound` if the batch has no entry.
        """
        return tables.stream("entries", rows.entries(self, batch))

    def segments(self, batch: int | None = None) -> pyarrow.RecordBatchReader:
        """Return a row for each segment that the commit entries name, or the entry of `batch`.

        Raises `DamagedLog` at a damaged entry, and `CheckpointNotFound` if the batch has no entry.
        """
        return tables.stream("segments", rows.segments(self, batch))

    def objects(self) -> pyarrow.RecordBatchReader:
        """Return a row for each object of the checkpoint and of its base path."""
        return tables.stream("objects", rows.objects(self))

    def _reader(self) -> StateReader:
        if self._state is not None and not self._state.is_running:
            # Ends the pins of rows that were not read.
            self._state.close()
            self._state = None
        if self._state is None:
            refuse_spark_without_readers()
            self._state = StateReader(self, self.gateway())
        return self._state
