# SPDX-License-Identifier: Apache-2.0
"""State as of a batch, its change records, and the difference of two batches, read by Spark's own readers.

The Java process sends rows as an Arrow stream to a loopback port, and this process passes them on.
"""

from __future__ import annotations

import secrets
import selectors
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import finalize

from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.java.gateway import PURPOSE, Gateway, unconverted
from spark_dstl.checkpoint.locate import hadoop_path, hadoop_settings
from spark_dstl.checkpoint.pins import pin_if_possible, pinned_offsets
from spark_dstl.checkpoint.reading import read_entry
from spark_dstl.checkpoint.survey import no_entry
from spark_dstl.dependencies import needed
from spark_dstl.errors import CheckpointNotFound, JvmFailed, UnreadableState

if TYPE_CHECKING:
    import pyarrow

_BASE_PATH = "spark.sql.streaming.stateStore.dstl.basePath"
_LOOK_SECONDS = 0.5
# The largest number of an operator or a partition: an Integer of Java.
MOST = 2**31 - 1


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
        given = {} if base is None else {_BASE_PATH: hadoop_path(base)}
        settings = {**given, **hadoop_settings(checkpoint.storage_options)}
        self._place = (hadoop_path(checkpoint.path), settings)
        self._tools = self.tool("StateTools")
        # Those whose rows are not all read: each has its connection and its pin.
        self._open: set[ExitStack] = set()

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._gateway.is_running

    def read(self, what: str, batches: Sequence[int], wanted: Selection | None) -> pyarrow.RecordBatchReader:
        """Return the rows of `what`, a method of `StateTools`, of one batch or of two."""
        pin = pin_if_possible(self._checkpoint, min(batches))
        until_read = ExitStack()
        self._open.add(until_read)
        until_read.callback(self._open.discard, until_read)
        if pin is not None:
            until_read.callback(pin.end)

        def abandon() -> None:
            self._open.discard(until_read)
            if pin is not None:
                pin.abandon()

        try:
            self._refuse_moved(what, batches)
            arguments = [*map(self.batch, batches), self.selection(wanted)]
            return self.rows(
                lambda port, token: getattr(self._tools, what)(*arguments, port, token), until_read, abandon
            )
        except BaseException:
            until_read.close()
            raise

    def close(self) -> None:
        """End the reads whose rows were not read to their end, and their pins."""
        for until_read in list(self._open):
            until_read.close()

    def _refuse_moved(self, what: str, batches: Sequence[int]) -> None:
        """Raise `UnreadableState` where rows moved between partitions, and nothing else about them changed."""
        path = self._checkpoint.path
        numbers = [sparkfiles.partitions_in(self.settings(one)) for one in batches]
        if what == "diff" and None not in numbers and len({*numbers}) > 1:
            raise UnreadableState(
                f"batch {batches[0]} of {path} has {numbers[0]} partitions, and batch {batches[-1]} has {numbers[-1]}: "
                "states of different numbers of partitions cannot be compared. Compare with the batch of the "
                "repartition, or the one before it"
            )
        if what == "changes":
            entry = read_entry(self._checkpoint.storage, batches[0])
            if entry is not None and entry.is_repartition:
                raise UnreadableState(
                    f"batch {batches[0]} of {path} has no changes: it only wrote the state of batch {batches[0] - 1} "
                    f"into {numbers[0]} partitions"
                )

    def tool(self, name: str, *others: Any) -> Any:
        """Return an object of a class of the process that takes the checkpoint, its settings, and perhaps others.

        Raises `UnreadableState` if Hadoop cannot open the checkpoint's storage.
        """
        try:
            with self.java_errors():
                return self._gateway.tool(name)(*self._place, *others)
        except UnreadableState as error:
            raise UnreadableState(
                f"{error}. Storage other than local disks needs its jars: --jars, or JvmOptions.jars; and perhaps "
                "settings: --conf, or JvmOptions.conf"
            ) from error

    @contextmanager
    def java_errors(self) -> Iterator[None]:
        """Raise exceptions of the process as errors of this package."""
        py4j = needed("py4j.protocol", PURPOSE)
        try:
            with unconverted():
                yield
        except py4j.Py4JJavaError as error:
            text = self._gateway.tool("SentRows").text(error.java_exception)
            raise UnreadableState(f"{self._checkpoint.path}: {text}") from error
        except (py4j.Py4JError, OSError) as error:
            raise JvmFailed(f"the process that reads state ended too early: {self._gateway.last_words()}") from error

    def selection(self, wanted: Selection | None) -> Any:
        """Return a selection for the process. Raises `UnreadableState` for what its types cannot hold."""
        chosen = wanted or Selection()
        for name, value in vars(chosen).items():
            if isinstance(value, int) and not 0 <= value <= MOST:
                raise UnreadableState(
                    f"{self._checkpoint.path}: {name} {value} is not in the state: numbers of operators and partitions "
                    "begin with 0, and `dstl ls PATH operators` shows them"
                )
            if isinstance(value, str) and not _is_unicode(value):
                raise UnreadableState(
                    f"{self._checkpoint.path}: {name} {value!r} is not valid text: it has half of a surrogate pair, "
                    "which UTF-8 cannot encode. Write the whole character"
                )
        with self.java_errors():
            return self._gateway.tool("StateSelection")(
                chosen.operator, chosen.store, chosen.column_family, chosen.partition, chosen.where
            )

    def settings(self, number: int) -> dict[str, Any]:
        """Return the second line of a batch's entry in `offsets/`, or of its copy in a pin; empty without both."""
        storage = self._checkpoint.storage
        return sparkfiles.offsets(storage, number) or sparkfiles.offsets_in(pinned_offsets(storage, number))

    def batch(self, number: int, otherwise: Mapping[str, Any] | None = None) -> Any:
        """Return a committed batch for the process, with the settings that it was run with, or else these."""
        entry = read_entry(self._checkpoint.storage, number)
        if entry is None:
            raise no_entry(self._checkpoint.storage, number)
        offsets = self.settings(number) or otherwise
        if not offsets:
            raise CheckpointNotFound(
                f"{self._checkpoint.path} has no entry of batch {number} in offsets/, which has the settings of "
                "its state: Spark retains the newest batches only (spark.sql.streaming.minBatchesToRetain), and no pin "
                "has a copy"
            )
        with self.java_errors():
            batch = self._gateway.state_batch(number, offsets)
            for operator, ids in sparkfiles.state_ids(entry.metadata).items():
                if None not in ids:
                    batch.note(operator, ids)
        return batch

    def rows(
        self, send: Any, until_read: ExitStack, abandon: Callable[[], object] = lambda: None
    ) -> pyarrow.RecordBatchReader:
        """Return the rows that `send`, given a port and a token, lets the process send.

        `until_read` is closed when all are read. The process stops sending if its owner closes it before, or if the
        rows are dropped; then the collector of garbage calls `abandon`, perhaps in a thread that holds locks.
        """
        arrow = needed("pyarrow", PURPOSE)
        token = secrets.token_hex(32)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            sent = send(listener.getsockname()[1], token)
            source = self._connected(listener, token.encode(), sent)
        try:
            with self._whole(sent):
                stream = arrow.ipc.open_stream(source)
        except BaseException:
            source.close()
            raise
        until_read.callback(source.close)
        batches = self._batches(stream, sent, source, until_read)
        # A generator that has not begun runs no `finally`.
        for dropped in (source.close, abandon):
            finalize(batches, dropped).atexit = False
        return arrow.RecordBatchReader.from_batches(stream.schema, batches)

    def _connected(self, listener: socket.socket, token: bytes, sent: Any) -> Any:
        """Return what the process sends behind the token, and close the connections of others, such as port scanners.

        A silent one of them delays nothing: all are read at the same time.
        """
        # The returned file keeps its connection open.
        with ExitStack() as connections, selectors.DefaultSelector() as readable:
            readable.register(listener, selectors.EVENT_READ)
            while True:
                found = readable.select(_LOOK_SECONDS)
                if not found and (sent.isEnded() or not self._gateway.is_running):
                    self._raise_failure(sent, None)
                    raise JvmFailed("the process that reads state sent nothing")
                for key, _ in found:
                    if key.fileobj is listener:
                        accepted = connections.enter_context(listener.accept()[0])
                        readable.register(accepted, selectors.EVENT_READ, bytearray())
                        continue
                    connection: Any = key.fileobj
                    is_open = _receive(connection, key.data, len(token))
                    if secrets.compare_digest(key.data, token):
                        return connection.makefile("rb", buffering=1024 * 1024)
                    if not is_open or len(key.data) == len(token):
                        readable.unregister(connection)
                        connection.close()

    def _batches(self, stream: Any, sent: Any, source: Any, until_read: ExitStack) -> Iterator[Any]:
        try:
            with self._whole(sent):
                yield from stream
        finally:
            source.close()
        # An interrupted stream looks like one that has ended.
        self._raise_failure(sent, None)
        until_read.close()

    @contextmanager
    def _whole(self, sent: Any) -> Iterator[None]:
        """Raise `UnreadableState` with the cause that the process names where its rows are cut off, else `JvmFailed`.

        A process that was killed may seem to run for a moment.
        """
        try:
            yield
        except (OSError, needed("pyarrow", PURPOSE).ArrowInvalid) as error:
            self._raise_failure(sent, error)
            raise JvmFailed(f"the rows of the process that reads state are cut off: {error}") from error

    def _raise_failure(self, sent: Any, cause: BaseException | None) -> None:
        if not self._gateway.is_running:
            raise JvmFailed(f"the process that reads state ended too early: {self._gateway.last_words()}") from cause
        with self.java_errors():
            failure = sent.failure()
        if failure is not None:
            raise UnreadableState(f"{self._checkpoint.path}: {failure}") from cause


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _receive(connection: socket.socket, received: bytearray, most: int) -> bool:
    """Append what has come to `received`, of `most` bytes in all; return whether more can come."""
    try:
        part = connection.recv(most - len(received))
    except OSError:
        return False
    received += part
    return bool(part)
