# SPDX-License-Identifier: Apache-2.0
"""The stores of a repartition: Spark's own classes read and write them in the Java process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.format.names import SNAPSHOT, Store, plain_file
from spark_dstl.checkpoint.java.gateway import Gateway
from spark_dstl.checkpoint.java.state import StateReader
from spark_dstl.checkpoint.repartition.plan import Plan
from spark_dstl.checkpoint.sparkfiles import Operator, json_object, state_ids
from spark_dstl.checkpoint.storage import StoredObject, at_once
from spark_dstl.errors import QuerySeemsToRun, UnreadableState

# Each pass over the old partitions has that many files of rows open.
_FILES = 400
# Each takes some 200 MiB of memory, most of it outside of the heap.
_AT_ONCE = 4


class StoreRepartition:
    """Writes all stores of the batch after the newest, in another number of partitions."""

    def __init__(
        self,
        checkpoint: CheckpointAccess,
        reader: StateReader,
        gateway: Gateway,
        plan: Plan,
        offsets: bytes,
        number: int,
    ) -> None:
        self._checkpoint = checkpoint
        self._reader = reader
        self._plan = plan
        self._number = number
        before = reader.batch(plan.batch)
        after = gateway.state_batch(plan.batch + 1, json_object(offsets.split(b"\n", 2)[1]) or {})
        for operator, ids in state_ids(plan.commit.metadata).items():
            # Spark's writer makes ids if the settings have the format that has them.
            after.note(operator, [of or [] for of in ids])
        self._java = reader.tool("StateRepartition", before, after, number)
        # The new snapshots as they were listed when they were written; None for a missing one.
        self._snapshots: dict[Store, StoredObject | None] = {}
        self._done = 0
        self._total = sum(self._steps(one) * len(one.stores) for one in plan.operators)

    def write(self) -> tuple[dict[int, list[list[str]]], list[int]]:
        """Write all stores; return the checkpoint ids, by operator and partition, and the rows of each store name."""
        ids: dict[int, list[list[str]]] = {}
        rows: list[int] = []
        for operator in self._plan.operators:
            of_partitions: list[dict[int, str]] = [{} for _ in range(operator.partitions(self._number))]
            for name in operator.stores:
                rows.append(self._store(operator, name, of_partitions))
            if any(of_partitions):
                ids[operator.id] = [[of[place] for place in sorted(of)] for of in of_partitions]
        self._refuse_if_deleted()
        return ids, rows

    def create(self, name: str, content: bytes) -> bool:
        """Create an object of the checkpoint exclusively, as a run of the query does; return whether it was missing."""
        with self._reader.java_errors():
            return bool(self._reader.tool("HadoopFiles").createExclusively(name, content))

    def _refuse_if_deleted(self) -> None:
        """Raise `QuerySeemsToRun` if a snapshot is missing or another: nothing names them yet, so commands delete them.

        Another repartition then writes its own under the same names.
        """
        storage = self._checkpoint.storage
        there = {*storage.objects("state", recursive=True)}
        for store, snapshot in self._snapshots.items():
            if snapshot not in there:
                raise QuerySeemsToRun(
                    f"the new snapshot in {storage.shown(f'state/{store.directory}')} was deleted meanwhile, for "
                    "example by dstl gc, dstl rollback or another dstl repartition. The state of batch "
                    f"{self._plan.batch} is as it was. Begin again"
                )

    def _listed(self, store: Store, unique: str | None) -> StoredObject | None:
        """Return the new snapshot of a store with this checkpoint id."""
        for stored in self._checkpoint.storage.objects(f"state/{store.directory}"):
            plain = plain_file(stored.name.removeprefix("state/"))
            if plain and (plain.kind, plain.version, plain.id) == (SNAPSHOT, self._plan.batch + 2, unique):
                return stored
        return None

    def _store(self, operator: Operator, name: str, ids: list[dict[int, str]]) -> int:
        with self._reader.java_errors():
            java = self._java.store(operator.id, name, operator.is_whole)
        rows = 0
        number = operator.partitions(self._number)
        for first in range(0, number, _FILES):
            until = min(first + _FILES, number)

            def read(old: Store, first: int = first, until: int = until) -> Any:
                return self._ask(old, java.read, old.partition, first, until)

            def write(new: Store) -> Any:
                found = self._ask(new, java.write, new.partition)
                self._snapshots[new] = self._listed(new, found.id())
                return found

            self._at_once(read, [Store(operator.id, old, name) for old in range(operator.stores[name])])
            written = self._at_once(write, [Store(operator.id, new, name) for new in range(first, until)])
            for new, of in enumerate(written, start=first):
                rows += int(of.rows())
                if of.id() is not None:
                    ids[new][int(of.place())] = str(of.id())
        with self._reader.java_errors():
            is_complete = java.isComplete()
        if not is_complete:
            raise UnreadableState(
                f"what was written of store {name!r} of operator {operator.id} is not what was read. The state of "
                f"batch {self._plan.batch} is as it was. Check the storage, and begin again"
            )
        return rows

    def _at_once(self, work: Callable[[Store], Any], stores: list[Store]) -> list[Any]:
        before, total = self._done, self._total
        found = at_once(
            _AT_ONCE, work, stores, lambda done: self._checkpoint.progress("Writing partitions", before + done, total)
        )
        self._done += len(stores)
        return found

    def _ask(self, store: Store, question: Any, *arguments: int) -> Any:
        with self._reader.java_errors():
            found = question(*arguments)
            failure = found.failure()
        if failure is not None:
            raise UnreadableState(
                f"state/{store.directory} of {self._checkpoint.path} could not be written anew: {failure}. The state "
                f"of batch {self._plan.batch} is as it was"
            )
        return found

    def _steps(self, operator: Operator) -> int:
        new = operator.partitions(self._number)
        return new + -(-new // _FILES) * max(operator.stores.values())
