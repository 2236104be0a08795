"""`Checkpoint`: what a user asks of a checkpoint, and `open_checkpoint`, which finds one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from spark_dstl.checkpoint import leftovers as left_over
from spark_dstl.checkpoint import rollback as rolling_back
from spark_dstl.checkpoint import rows, sparkfiles, tables
from spark_dstl.checkpoint.convert import conversion as converting
from spark_dstl.checkpoint.convert.conversion import Conversion
from spark_dstl.checkpoint.export import export as exporting
from spark_dstl.checkpoint.export.export import Exported
from spark_dstl.checkpoint.gateway import Gateway, JvmOptions, refuse_spark_without_readers
from spark_dstl.checkpoint.hadoop import shared_gateway
from spark_dstl.checkpoint.leftovers import Leftovers
from spark_dstl.checkpoint.locate import StorageOptions, locate
from spark_dstl.checkpoint.reading import EntryReader
from spark_dstl.checkpoint.rollback import Rollback
from spark_dstl.checkpoint.rows import Row
from spark_dstl.checkpoint.state import Selection, StateReader
from spark_dstl.checkpoint.storage import Readers, Storage
from spark_dstl.checkpoint.summary import Summary, summarize
from spark_dstl.checkpoint.survey import Progress, Survey, entries_of, look, no_entry, numbered, silent
from spark_dstl.checkpoint.verification import verify as verification
from spark_dstl.checkpoint.verification.findings import Verification
from spark_dstl.errors import DamagedLog, UnsupportedLog

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


class Checkpoint:
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

    def __init__(
        self,
        storage: Storage,
        query: str,
        base_path: str | None = None,
        options: StorageOptions | None = None,
        progress: Progress = silent,
        jvm: JvmOptions | None = None,
    ) -> None:
        self.storage = storage
        self.query = query
        self.progress = progress
        self.readers = Readers()
        self._base_path = base_path
        self._options = options or StorageOptions()
        self._survey: Survey | None = None
        self.jvm_options = jvm or JvmOptions()
        self._gateway: Gateway | None = None
        self._state: StateReader | None = None

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the threads that read, and the Java process if there is one."""
        self.readers.close()
        if self._gateway is not None:
            self._gateway.close()
            self._gateway = self._state = None

    @property
    def path(self) -> str:
        """Where it is."""
        return self.storage.place.shown

    def survey(self) -> Survey:
        """Return what one look at all of it has found. The first call reads every commit entry, later ones nothing."""
        if self._survey is None:
            self._survey = look(self.storage, self.readers, self.progress)
        return self._survey

    def look_again(self) -> Survey:
        """Forget what was found, and look again."""
        self._survey = None
        return self.survey()

    def base(self, named: str | None) -> Storage:
        """Return where data files are, given the base path that the newest commit entry names."""
        wanted = self._base_path or named
        if wanted is None:
            return Storage(self.storage.place.beneath("dstl"))
        return Storage(locate(wanted, self._options))

    @property
    def storage_options(self) -> StorageOptions:
        """How storage is reached."""
        return self._options

    def named_base(self) -> str | None:
        """Return where data files are, as it was given or as the newest commit entry names it; None beside the rest."""
        return self._base_path or self._newest_named_base()

    def summary(self) -> Summary:
        """Return what fits on one screen: sizes, last commit, owner, snapshots, what a restart reads."""
        return summarize(self)

    def verify(self, deep: bool = False) -> Verification:
        """Check every checksum of entries, indexes and data files' own, every reference, and every retained version.

        With `deep`, also every byte that a commit entry names, everything in snapshots' zips, plain files that Spark
        keeps checksums for, and `offsets/`. What needs RocksDB is not checked: the content of SST files, and whether
        changelogs can be decoded. A query may run: damage counts only if a second look finds it again.
        """
        return verification.verify(self, deep)

    def plan_rollback(self, to: int, deep: bool = False) -> Rollback:
        """Return what a rollback to the batch `to` deletes. Raises `CannotRollBack` if its state cannot be rebuilt.

        That is verified as by `verify`, with `deep` as there. Nothing is changed.
        """
        return rolling_back.plan(self, to, deep=deep)

    def apply_rollback(self, planned: Rollback, stopped: bool = False) -> Rollback:
        """Do what was `planned` by `plan_rollback`, and return it with the number of objects that are deleted.

        Raises `QuerySeemsToRun` if a query seems to be at work, unless you say with `stopped` that it is stopped; one
        that commits meanwhile is noticed either way.
        """
        return rolling_back.apply(self, planned, stopped)

    def export(self, target: str, stopped: bool = False) -> Exported:
        """Write a checkpoint to `target` that stock Spark continues: without the jar, with its own RocksDB provider.

        All retained batches are exported, so the new one can be rolled back to the same batches. This one is not
        changed. What was interrupted can be done again, and goes on where it was; at the end every object is read again
        and compared. Raises `CannotExport` if the newest batch cannot be rebuilt, or if something else is at `target`,
        and `QuerySeemsToRun` if a query seems to, unless you say with `stopped` that it is stopped.
        """
        return exporting.export(self, locate(target, self._options), stopped)

    def plan_conversion(self, target: str) -> Conversion:
        """Return what `convert` would do, as far as that is known without reading state; nothing is written.

        `target` is a path or a URI where nothing is, or an unfinished conversion of this checkpoint. Raises
        `CannotConvert` where `convert` would.
        """
        return converting.plan(self, locate(target, self._options))

    def convert(self, target: str, stopped: bool = False) -> Conversion:
        """Write a checkpoint to `target` whose query keeps its state in the log, of one of Spark's default provider.

        It goes on after the newest committed batch of this one, which is not changed; a batch that was begun runs
        again. State is read and written by Spark's own classes, in a Java process, and compared row by row at the end.
        What was interrupted can be done again, and goes on where it was. Raises `CannotConvert` if this is no
        checkpoint of the HDFS-backed provider with committed state, or if something else is at `target`,
        `UnreadableState` if Spark cannot read the state, and `QuerySeemsToRun` if a query seems to, unless you say with
        `stopped` that it is stopped.
        """
        return converting.convert(self, locate(target, self._options), stopped)

    def leftovers(self) -> Leftovers:
        """Return what nothing needs once the query is stopped.

        Raises `DstlError` if a commit entry cannot be read: nobody knows then what it names.
        """
        return left_over.find(self)

    def delete_leftovers(self, found: Leftovers, stopped: bool = False) -> Leftovers:
        """Delete what was `found` by `leftovers`, and return it with the number of objects that are deleted.

        Raises `QuerySeemsToRun` if a query seems to be at work, unless you say with `stopped` that it is stopped.
        """
        return left_over.delete(self, found, stopped)

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
        return tables.table("operators", self._operators())

    def stores(self) -> pyarrow.Table:
        """Return a row for each store: what is in the log, what in plain files, and what it is rebuilt from."""
        survey = self.survey()
        found = (rows.of_store(store, survey.stores[store], survey) for store in sorted(survey.stores))
        return tables.table("stores", found)

    def versions(self) -> pyarrow.Table:
        """Return a row for each state version of which there is anything: where, how much, whether Spark retains it."""
        return tables.table("versions", rows.of_versions(self.survey()))

    def snapshots(self) -> pyarrow.Table:
        """Return a row for each snapshot of a store, in commit entries and in plain files."""
        return tables.table("snapshots", rows.of_snapshots(self.survey()))

    def claims(self) -> pyarrow.Table:
        """Return a row for each claim of an epoch: who began a run, and when."""
        stored = numbered(self.storage.objects("dstl/epochs"))
        found = self.readers.each(lambda epoch: sparkfiles.claim(self.storage, epoch), stored)
        listed = [
            {"epoch": epoch, "run": claim.run, "host": claim.host, "claimed_at": stored[epoch].modified}
            for epoch, claim in found
            if claim is not None
        ]
        return tables.table("claims", listed)

    def entries(self, batch: int | None = None) -> pyarrow.RecordBatchReader:
        """Return a row for each commit entry, or for that of `batch`. What is damaged says so in `damage`.

        Raises `CheckpointNotFound` if there is no entry of the batch.
        """
        return tables.stream("entries", self._entries(batch))

    def segments(self, batch: int | None = None) -> pyarrow.RecordBatchReader:
        """Return a row for each segment that commit entries name, or that of `batch`.

        Raises `DamagedLog` at an entry that is damaged, and `CheckpointNotFound` if there is no entry of the batch.
        """
        return tables.stream("segments", self._segments(batch))

    def objects(self) -> pyarrow.RecordBatchReader:
        """Return a row for each object of the checkpoint and of its base path."""
        return tables.stream("objects", self._objects())

    def overview(self) -> Row:
        """Return the row of `queries` for this one. Reads no commit entry."""
        there = entries_of(self.storage)
        return {
            "path": self.path,
            "query": self.query,
            "batches": len(there),
            "oldest": min(there, default=None),
            "newest": max(there, default=None),
            "committed_at": there[max(there)].modified if there else None,
            "entry_bytes": sum(stored.size for stored in there.values()),
        }

    def newest_base(self) -> Storage:
        """Return where data files are, without reading more than the newest entries."""
        return self.base(self._newest_named_base())

    def _newest_named_base(self) -> str | None:
        reader = EntryReader(self.storage)
        for batch in reversed(entries_of(self.storage)):
            with suppress(DamagedLog, UnsupportedLog):
                entry = reader.read(batch)
                if entry is not None and entry.index is not None:
                    return entry.index.base
        return None

    def gateway(self) -> Gateway:
        """Return the Java process, which is started when it is first asked for; that of the storage, if it has one."""
        shared = shared_gateway(self.jvm_options)
        if shared is not None:
            return shared
        if self._gateway is None:
            self._gateway = Gateway(self.jvm_options)
        return self._gateway

    def _reader(self) -> StateReader:
        if self._state is None:
            refuse_spark_without_readers()
            self._state = StateReader(self, self.gateway())
        return self._state

    def _operators(self) -> Iterator[Row]:
        for operator in sparkfiles.operators(self.storage):
            for name, partitions in operator.stores.items():
                named = {"operator": operator.id, "operator_name": operator.name}
                yield {**named, "store": name, "partitions": partitions}

    def _entries(self, batch: int | None) -> Iterator[Row]:
        there = entries_of(self.storage)
        reader = EntryReader(self.storage)
        wanted = there if batch is None else {one: there[one] for one in there if one == batch}
        if batch is not None and not wanted:
            raise no_entry(self.storage, batch)

        def read(one: int) -> Row | None:
            try:
                found = reader.read(one)
            except (DamagedLog, UnsupportedLog) as error:
                stored = there[one]
                return {"batch": one, "committed_at": stored.modified, "bytes": stored.size, "damage": str(error)}
            return rows.of_entry(found, there[one]) if found else None

        for done, (_, row) in enumerate(self.readers.each(read, wanted), start=1):
            self.progress("Reading commit entries", done, len(wanted))
            # One that has gone was let go by the query.
            if row is not None:
                yield row

    def _segments(self, batch: int | None) -> Iterator[Row]:
        there = list(entries_of(self.storage))
        if batch is not None and batch not in there:
            raise no_entry(self.storage, batch)
        reader = EntryReader(self.storage)
        wanted = there if batch is None else [batch]
        for done, (_, entry) in enumerate(self.readers.each(reader.read, wanted), start=1):
            self.progress("Reading commit entries", done, len(wanted))
            if entry is not None:
                yield from rows.of_segments(entry)

    def _objects(self) -> Iterator[Row]:
        for directory in ("commits", "offsets", "sources", "state", "dstl"):
            yield from rows.of_objects(self.storage.objects(directory, recursive=True))
        yield from rows.of_objects(self.storage.objects())
        base = self.newest_base()
        if not base.place.is_inside(self.storage.place):
            yield from rows.of_objects(base.objects("data", recursive=True), below=f"{base.place.shown.rstrip('/')}/")
