"""`Checkpoint`: the public class of a checkpoint, and `open_checkpoint`, which finds one.

Each operation is a function in a module of its own that takes a `CheckpointAccess`; none of them imports this module.
"""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from spark_dstl.checkpoint import rows, sparkfiles, tables
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.convert.conversion import Conversion, convert, plan_conversion
from spark_dstl.checkpoint.export.export import Exported, export
from spark_dstl.checkpoint.java.gateway import JvmOptions, refuse_spark_without_readers
from spark_dstl.checkpoint.java.state import Selection, StateReader
from spark_dstl.checkpoint.leftovers import Leftovers, delete_leftovers, find_leftovers
from spark_dstl.checkpoint.locate import StorageOptions, locate
from spark_dstl.checkpoint.rollback import Rollback, apply_rollback, plan_rollback
from spark_dstl.checkpoint.storage import Storage
from spark_dstl.checkpoint.summary import Summary, summarize
from spark_dstl.checkpoint.survey import Progress, silent
from spark_dstl.checkpoint.verification.findings import Verification
from spark_dstl.checkpoint.verification.verify import verify

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

    `path` is what the query has as `checkpointLocation`: a local path, or a URI of S3 (`s3://`, `s3a://`) or of
    another storage that pyarrow or Hadoop knows. The query may run meanwhile: what is seen are its committed batches.
    Opening and reading change nothing. `base_path` is where data files are, if that is not where the newest commit
    entry says; `options` say how storage is reached; `progress` is told what is read, how much of it, and of how much;
    `jvm` says what the Java process gets that reads state, and storage that only Hadoop knows.

    ```python
    with spark_dstl.open("/checkpoints/clicks") as checkpoint:
        print(checkpoint.verify().is_intact)
    ```

    Raises `CheckpointNotFound` if there is no checkpoint of a query, `UnreadableStorage` if storage does not answer,
    and `MissingPackage` if pyarrow is not installed.
    """
    options = options or StorageOptions()
    if jvm is not None:
        options = replace(options, jvm=jvm)
    storage = Storage(locate(path, options))
    return Checkpoint(storage, sparkfiles.query_id(storage), base_path, options, progress, jvm)


def find_checkpoints(path: str, options: StorageOptions | None = None) -> list[str]:
    """Return the paths of the checkpoints at `path` and in the directories in it."""
    storage = Storage(locate(path, options or StorageOptions()))
    if storage.size("metadata") is not None:
        return [path]
    return [
        f"{path.rstrip('/')}/{directory}"
        for directory in storage.directories()
        if storage.size(f"{directory}/metadata") is not None and storage.directories(directory)
    ]


class Checkpoint(CheckpointAccess):
    """The checkpoint of one query, as it lies on storage.

    Tables are `pyarrow.Table`s; what can be long is a `pyarrow.RecordBatchReader`, which reads as it is iterated over
    and keeps a few commit entries in memory at a time. Only `apply_rollback` and `delete_leftovers` change anything,
    and `export` and `convert` write somewhere else. Each may raise `UnreadableStorage`; what reads commit entries, and
    does not say otherwise, `DamagedLog` or `UnsupportedLog`. It is a context manager, which closes it.

    ```python
    with spark_dstl.open("/checkpoints/clicks") as checkpoint:
        print(checkpoint.summary().newest_batch)
        print(checkpoint.stores().column("log_bytes").to_pylist())
    ```
    """

    _state: StateReader | None = None

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the reader threads, and the Java process if there is one."""
        super().close()
        self._state = None

    def summary(self) -> Summary:
        """Return what fits on one screen: sizes, last commit, owner, snapshots, what a restart reads."""
        return summarize(self)

    def verify(self, deep: bool = False) -> Verification:
        """Check every checksum of entries, indexes and data files' own, every reference, and every retained version.

        With `deep`, also every byte that a commit entry names, everything in snapshots' zips, plain files that Spark
        keeps checksums for, and `offsets/`. What needs RocksDB is not checked: the content of SST files, and whether
        changelogs can be decoded. A query may run: damage counts only if a second look finds it again.
        """
        return verify(self, deep)

    def plan_rollback(self, to: int, deep: bool = False) -> Rollback:
        """Return what a rollback to the batch `to` deletes. Raises `CannotRollBack` if its state cannot be rebuilt.

        That is verified as by `verify`, with `deep` as there. Nothing is changed.
        """
        return plan_rollback(self, to, deep=deep)

    def apply_rollback(self, planned: Rollback, stopped: bool = False) -> Rollback:
        """Do what was `planned` by `plan_rollback`, and return it with the number of objects that are deleted.

        Raises `QuerySeemsToRun` if a query seems to be at work, unless you say with `stopped` that it is stopped; one
        that commits meanwhile is noticed either way.
        """
        return apply_rollback(self, planned, stopped)

    def export(self, target: str, stopped: bool = False) -> Exported:
        """Write a checkpoint to `target` that stock Spark continues: without the jar, with its own RocksDB provider.

        All retained batches are exported, so the new one can be rolled back to the same batches. This one is not
        changed. What was interrupted can be done again, and goes on where it was; at the end every object is read again
        and compared. Raises `CannotExport` if the newest batch cannot be rebuilt, or if something else is at `target`,
        and `QuerySeemsToRun` if a query seems to, unless you say with `stopped` that it is stopped.
        """
        return export(self, locate(target, self.storage_options), stopped)

    def plan_conversion(self, target: str) -> Conversion:
        """Return what `convert` would do, as far as that is known without reading state; nothing is written.

        `target` is a path or a URI where nothing is, or an unfinished conversion of this checkpoint. Raises
        `CannotConvert` where `convert` would.
        """
        return plan_conversion(self, locate(target, self.storage_options))

    def convert(self, target: str, stopped: bool = False) -> Conversion:
        """Write a checkpoint to `target` whose query keeps its state in the log, of one of Spark's default provider.

        It goes on after the newest committed batch of this one, which is not changed; a batch that was begun runs
        again. State is read and written by Spark's own classes, in a Java process, and compared row by row at the end.
        What was interrupted can be done again, and goes on where it was. Raises `CannotConvert` if this is no
        checkpoint of the HDFS-backed provider with committed state, or if something else is at `target`,
        `UnreadableState` if Spark cannot read the state, and `QuerySeemsToRun` if a query seems to, unless you say with
        `stopped` that it is stopped.
        """
        return convert(self, locate(target, self.storage_options), stopped)

    def leftovers(self) -> Leftovers:
        """Return what nothing needs once the query is stopped.

        Raises `DstlError` if a commit entry cannot be read: nobody knows then what it names.
        """
        return find_leftovers(self)

    def delete_leftovers(self, found: Leftovers, stopped: bool = False) -> Leftovers:
        """Delete what was `found` by `leftovers`, and return it with the number of objects that are deleted.

        Raises `QuerySeemsToRun` if a query seems to be at work, unless you say with `stopped` that it is stopped.
        """
        return delete_leftovers(self, found, stopped)

    def state(self, batch: int | None = None, selection: Selection | None = None) -> pyarrow.RecordBatchReader:
        """Return the state as of `batch`, by default the newest, as Spark's state reader gives it.

        `selection` says which rows, by default all. Columns are operator, partition, store, column_family, and those of
        Spark's reader, mostly key and value. If what is selected has several schemas, because there are several stores
        or column families, key and value are JSON. A Java process is started that reads; the checkpoint is not changed.

        Raises `UnreadableState` if Spark cannot read it, `JvmFailed` if there is no Java process, and
        `CheckpointNotFound` if there is no entry of the batch.
        """
        return self._reader().state(batch, selection or Selection())

    def changes(self, batch: int, selection: Selection | None = None) -> pyarrow.RecordBatchReader:
        """Return the change records of `batch`: `change_type` is update, append or delete.

        `selection`, other columns and errors are as with `state`.
        """
        return self._reader().changes(batch, selection or Selection())

    def diff(self, before: int, after: int, selection: Selection | None = None) -> pyarrow.RecordBatchReader:
        """Return in which rows the state as of the batch `before` differs from that as of the batch `after`.

        The column `change` is added, removed or changed; beside the key there are the values before and after.
        `selection`, other columns and errors are as with `state`; both states are on local disk meanwhile, a partition
        at a time.
        """
        return self._reader().diff(before, after, selection or Selection())

    def operators(self) -> pyarrow.Table:
        """Return a row for each store name of each stateful operator, as Spark noted them."""
        return tables.table("operators", rows.operators(self))

    def stores(self) -> pyarrow.Table:
        """Return a row for each store: what is in the log, what in plain files, and what it is rebuilt from."""
        return tables.table("stores", rows.stores(self.survey()))

    def versions(self) -> pyarrow.Table:
        """Return a row for each state version of which there is anything: where, how much, whether Spark retains it."""
        return tables.table("versions", rows.of_versions(self.survey()))

    def snapshots(self) -> pyarrow.Table:
        """Return a row for each snapshot of a store, in commit entries and in plain files."""
        return tables.table("snapshots", rows.of_snapshots(self.survey()))

    def claims(self) -> pyarrow.Table:
        """Return a row for each claim of an epoch: who began a run, and when."""
        return tables.table("claims", rows.claims(self))

    def entries(self, batch: int | None = None) -> pyarrow.RecordBatchReader:
        """Return a row for each commit entry, or for that of `batch`. What is damaged says so in `damage`.

        Raises `CheckpointNotFound` if there is no entry of the batch.
        """
        return tables.stream("entries", rows.entries(self, batch))

    def segments(self, batch: int | None = None) -> pyarrow.RecordBatchReader:
        """Return a row for each segment that commit entries name, or that of `batch`.

        Raises `DamagedLog` at an entry that is damaged, and `CheckpointNotFound` if there is no entry of the batch.
        """
        return tables.stream("segments", rows.segments(self, batch))

    def objects(self) -> pyarrow.RecordBatchReader:
        """Return a row for each object of the checkpoint and of its base path."""
        return tables.stream("objects", rows.objects(self))

    def _reader(self) -> StateReader:
        if self._state is None:
            refuse_spark_without_readers()
            self._state = StateReader(self, self.gateway())
        return self._state
