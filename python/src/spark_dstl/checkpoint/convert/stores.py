# SPDX-License-Identifier: Apache-2.0
"""The stores of a conversion, and how the Java process converts each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.convert.point import Point
from spark_dstl.checkpoint.export.target import Target
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.format.names import Store
from spark_dstl.checkpoint.java.gateway import PURPOSE, Gateway, spark_jars
from spark_dstl.checkpoint.java.hadoop import storage_errors
from spark_dstl.checkpoint.locate import hadoop_path, hadoop_settings
from spark_dstl.checkpoint.sparkfiles import Operator, numbered_directories
from spark_dstl.checkpoint.storage import Storage, at_once
from spark_dstl.dependencies import needed
from spark_dstl.errors import CannotConvert, DstlError, JvmFailed, UnreadableState, UnreadableStorage, UnsupportedSpark
from spark_dstl.release import LINES

# Stores of this provider are held in memory as a whole, and the Java process has a gigabyte by default.
_AT_ONCE = 4
# Every operator of Spark 4.2 that can have state in this provider: they use neither column families nor merges.
_CONVERTIBLE = {
    "stateStoreSave", "sessionWindowStateStoreSaveExec", "symmetricHashJoin", "dedupe", "dedupeWithinWatermark",
    "flatMapGroupsWithState", "applyInPandasWithState", "globalLimit",
}  # fmt: skip


@dataclass(frozen=True)
class NamedStores:
    """The stores of one name of an operator, one in each partition."""

    operator: int
    """The operator's number in the query."""
    operator_name: str
    """The operator's name in Spark."""
    store: str
    """The name of the stores."""
    partitions: int
    """The number of partitions of the operator."""
    rows: int | None = None
    """The number of their rows; None before they are read."""

    def __str__(self) -> str:
        store = f", store {self.store}" if self.store else ""
        rows = "" if self.rows is None else f", {self.rows} rows"
        return f"operator {self.operator} ({self.operator_name}){store}: {self.partitions} partitions{rows}"


def find_stores(checkpoint: CheckpointAccess) -> list[NamedStores]:
    """Return the stores. Raises `CannotConvert` if an operator or a partition cannot be converted."""
    path = checkpoint.path
    found = stateful_operators(checkpoint.storage, CannotConvert)
    if not found:
        raise CannotConvert(
            f"{path} has no state: the query has no stateful operator, and nothing that the log could keep"
        )
    for operator in found:
        if operator.name not in _CONVERTIBLE:
            raise CannotConvert(
                f"operator {operator.id} of {path} is {operator.name}, whose state cannot be converted: Spark 4.2 "
                "does not keep it with the HDFS-backed provider"
            )
        _check_partitions(checkpoint, operator)
    return [
        NamedStores(operator.id, operator.name, store, partitions)
        for operator in found
        for store, partitions in operator.stores.items()
    ]


def stateful_operators(storage: Storage, refusal: type[DstlError], partitions: int | None = None) -> list[Operator]:
    """Return the operators with state; `partitions` is the number of the newest batch, if it is known.

    Raises `refusal` if the metadata of one is missing or damaged.
    """
    known = {one.id: one for one in sparkfiles.operators(storage, partitions)}
    there = numbered_directories(storage, "state")
    for operator in there:
        file = storage.shown(f"state/{operator}/_metadata/metadata")
        if operator not in known:
            raise refusal(
                f"{file} is missing, or cannot be read: Spark writes it since 4.0. Let the query run one batch with "
                "Spark 4.2 as it is, and stop it"
            )
        if not all(names.is_store_name(store) for store in known[operator].stores):
            raise refusal(f"{file} is damaged: it names a store that is no directory. Restore it")
    return [known[operator] for operator in there]


def refuse_if_done(checkpoint: CheckpointAccess, point: Point, stores: list[NamedStores]) -> None:
    """Raise `CannotConvert` if all tasks of a batch that is not committed have ended.

    Its sink may have the batch and skip it when it runs again; then no task writes its state.
    """
    if point.begun is None:
        return
    places = [Store(of.operator, partition, of.store).directory for of in stores for partition in range(of.partitions)]
    if any(checkpoint.storage.size(f"state/{place}/{point.begun + 1}.delta") is None for place in places):
        return
    raise CannotConvert(
        f"all tasks of batch {point.begun} of {checkpoint.path} were done, and it is not committed: its sink may have "
        "its output, and drop the batch when it comes again. Start the query as it is until the batch is committed, "
        "and stop it"
    )


def refuse_old_spark(refusal: type[DstlError]) -> None:
    """Raise `refusal` if the installed Spark cannot write a state at a batch; without Spark do nothing."""
    try:
        _, line = spark_jars()
    except UnsupportedSpark:
        return
    if not line.converts:
        newer = ", ".join(other.name for other in reversed(LINES) if other.converts)
        raise refusal(
            f"Spark {line.name}, which is installed here, cannot write a state at a batch of choice: do this where a "
            f"newer one is installed ({newer}), and continue with that"
        )


def _check_partitions(checkpoint: CheckpointAccess, operator: Operator) -> None:
    there = set(numbered_directories(checkpoint.storage, f"state/{operator.id}"))
    noted = min(max(operator.stores.values(), default=0), sparkfiles.MAX_PARTITIONS)
    for partition in sorted(there ^ set(range(noted))):
        place = checkpoint.storage.shown(f"state/{operator.id}/{partition}")
        problem = "should not be there" if partition in there else "is missing"
        raise CannotConvert(
            f"{place} {problem}: operator {operator.id} ({operator.name}) has {noted} partitions. Restore the state "
            "from a backup"
        )


class StoreConversion:
    """Converts stores in the Java process, with Spark's own classes."""

    def __init__(self, checkpoint: CheckpointAccess, gateway: Gateway, point: Point, target: Target) -> None:
        self._checkpoint = checkpoint
        self._gateway = gateway
        self._point = point
        self._target = target
        try:
            with storage_errors():
                self._conversion = gateway.tool("StateConversion")(
                    hadoop_path(checkpoint.path),
                    hadoop_path(target.place.shown),
                    hadoop_settings(checkpoint.storage_options),
                    gateway.state_batch(point.batch, point.committed.metadata),
                    gateway.state_batch(point.batch, point.committed.converted()),
                )
        except OSError as error:
            raise UnreadableStorage(
                f"{checkpoint.path} and {target.place.shown} cannot be opened by Hadoop: {error}. Give the jars of its "
                "client with --jars, separated by commas, and settings with --conf spark.hadoop.…"
            ) from error

    def convert(self, named: list[NamedStores]) -> tuple[list[NamedStores], int]:
        """Convert all partitions of these stores; return them with their rows, and the number of written stores."""
        stores = [Store(of.operator, partition, of.store) for of in named for partition in range(of.partitions)]
        progress = self._checkpoint.progress
        found = at_once(_AT_ONCE, self._one, stores, lambda done: progress("Converting stores", done, len(stores)))
        rows = iter([of_store for of_store, _ in found])
        with_rows = [replace(of, rows=sum(islice(rows, of.partitions))) for of in named]
        return with_rows, sum(is_new for _, is_new in found)

    def _one(self, store: Store) -> tuple[int, bool]:
        is_there = self._target.size(f"state/{store.directory}/{self._point.batch + 1}.zip") is not None
        if is_there:
            rows = self._ask(store, is_there=True)
            if rows is not None:
                return rows, False
        # Files of an earlier try would be left over.
        for stored in self._target.objects(f"state/{store.directory}", recursive=True):
            if "/_metadata/" not in stored.name:
                self._target.delete(stored.name)
        rows = self._ask(store, is_there=False)
        if rows is None:
            raise self._target.spoilt(f"state/{store.directory}")
        return rows, True

    def _ask(self, store: Store, is_there: bool) -> int | None:
        """Return the number of rows of the store; None if the rows at the target differ."""
        # Exceptions of Spark's classes are part of the result; an error of py4j means that the process has ended.
        broken = needed("py4j.protocol", PURPOSE).Py4JError
        try:
            found = self._conversion.convert(store.operator, store.name, store.partition, is_there)
            failure, is_same, rows = found.failure(), found.isSame(), found.rows()
        except broken as failed:
            raise JvmFailed(
                f"the process that converts stores ended too early: {self._gateway.last_words()}"
            ) from failed
        if failure is not None and not is_there:
            raise UnreadableState(
                f"state/{store.directory} of {self._checkpoint.path} could not be converted: {failure}. What is at "
                f"{self._target.place.shown} is unfinished; begin again when that is mended"
            )
        return int(rows) if is_same else None
