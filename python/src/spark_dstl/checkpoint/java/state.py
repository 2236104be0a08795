# SPDX-License-Identifier: Apache-2.0
"""State as of a batch, its change records, and the difference of two batches, read by Spark's own readers.

The Java process sends rows as an Arrow stream to a loopback port, and this process passes them on.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.java.gateway import PURPOSE, Gateway
from spark_dstl.checkpoint.locate import hadoop_path, hadoop_settings
from spark_dstl.checkpoint.reading import read_entry
from spark_dstl.checkpoint.survey import entries_of, no_entry
from spark_dstl.dependencies import needed
from spark_dstl.errors import CheckpointNotFound, JvmFailed, UnreadableState

if TYPE_CHECKING:
    import pyarrow

_BASE_PATH = "spark.sql.streaming.stateStore.dstl.basePath"
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Selection:
    """A selection of rows of the state; None selects all."""

    operator: int | None = None
    """The number of the stateful operator."""
    store: str | None = None
    """The name of the store; "" is the default store."""
    column_family: str | None = None
    """The name of the column family, which is that of the state variable; "" is the default one."""
    partition: int | None = None
    """The number of the partition."""
    where: str | None = None
    """A condition in Spark's SQL on the columns of its state reader: `key.page = '/' AND value.count > 10`."""


class StateReader:
    """Reads the state in a checkpoint by the Java process."""

    def __init__(self, checkpoint: CheckpointAccess, gateway: Gateway) -> None:
        self._checkpoint = checkpoint
        self._gateway = gateway
        base = checkpoint.named_base()
        settings = {**({} if base is None else {_BASE_PATH: base}), **hadoop_settings(checkpoint.storage_options)}
        self._tools = gateway.tool("StateTools")(hadoop_path(checkpoint.path), settings)

    def newest(self) -> int:
        """Return the newest batch. Raises `CheckpointNotFound` if no batch is committed."""
        there = entries_of(self._checkpoint.storage)
        if not there:
            raise CheckpointNotFound(f"{self._checkpoint.path} has no commit entry yet, so there is no state")
        return max(there)

    def read(self, what: str, batches: Sequence[int], wanted: Selection | None) -> pyarrow.RecordBatchReader:
        """Return the rows of `what`, a method of `StateTools`, of one batch or of two."""
        arguments = [self._batch(one) for one in batches]
        chosen = wanted or Selection()
        arguments.append(
            self._gateway.tool("StateSelection")(
                chosen.operator, chosen.store, chosen.column_family, chosen.partition, chosen.where
            )
        )
        return self._rows(lambda port, token: getattr(self._tools, what)(*arguments, port, token))

    def _batch(self, number: int) -> Any:
        entry = read_entry(self._checkpoint.storage, number)
        if entry is None:
            raise no_entry(self._checkpoint.storage, number)
        offsets = sparkfiles.offsets(self._checkpoint.storage, number)
        if not offsets:
            raise CheckpointNotFound(
                f"{self._checkpoint.path} has no entry of batch {number} in offsets/, which has the settings of "
                "its state: Spark retains the newest batches only (spark.sql.streaming.minBatchesToRetain)"
            )
        batch = self._gateway.state_batch(number, offsets)
        for operator, ids in sparkfiles.state_ids(entry.metadata).items():
            if None not in ids:
                batch.note(operator, ids)
        return batch

    def _rows(self, send: Any) -> pyarrow.RecordBatchReader:
        arrow = needed("pyarrow", PURPOSE)
        token = secrets.token_hex(32)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            sent = send(listener.getsockname()[1], token)
            # The file keeps the connection open.
            with self._accepted(listener, sent) as connection:
                source = connection.makefile("rb", buffering=1024 * 1024)
        try:
            if not secrets.compare_digest(source.read(len(token)), token.encode()):
                raise JvmFailed("another process than the Java process sent rows; they were not used")
            stream = arrow.ipc.open_stream(source)
        except BaseException as error:
            source.close()
            self._raise_failure(sent, error)
            raise
        return arrow.RecordBatchReader.from_batches(stream.schema, self._batches(stream, sent, source))

    def _accepted(self, listener: socket.socket, sent: Any) -> socket.socket:
        listener.settimeout(_LOOK_SECONDS)
        while True:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                if sent.isEnded() or not self._gateway.is_running:
                    self._raise_failure(sent, None)
                    raise JvmFailed("the Java process sent nothing") from None
                continue
            connection.settimeout(None)
            return connection

    def _batches(self, stream: Any, sent: Any, source: Any) -> Iterator[Any]:
        try:
            yield from stream
        except (OSError, needed("pyarrow", PURPOSE).ArrowInvalid) as error:
            self._raise_failure(sent, error)
            raise
        finally:
            source.close()
        # An interrupted stream looks like one that has ended.
        self._raise_failure(sent, None)

    def _raise_failure(self, sent: Any, cause: BaseException | None) -> None:
        if not self._gateway.is_running:
            raise JvmFailed(f"the Java process ended too early: {self._gateway.last_words()}") from cause
        failure = sent.failure()
        if failure is not None:
            raise UnreadableState(f"{self._checkpoint.path}: {failure}") from cause
