# SPDX-License-Identifier: Apache-2.0
"""A local copy of the state, in the Java process: keys are looked up in it, and tables read, as of one batch."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from spark_dstl.checkpoint.java.gateway import PURPOSE
from spark_dstl.checkpoint.java.state import Selection, StateReader
from spark_dstl.dependencies import needed
from spark_dstl.errors import InvalidKey, ResultTooLarge

if TYPE_CHECKING:
    import pyarrow

# A committed batch whose storage has no time.
_UNKNOWN = -1


@dataclass(frozen=True)
class StateValue:
    """The value of a key as of a batch."""

    value: Any
    """A dict of the value's columns, a list of them if a key has several values, or None without the key."""
    partition: int | None
    """The partition that has the key; None without the key."""
    batch: int
    """The newest batch that was applied to the local copy."""
    age: timedelta | None
    """The time since that batch was committed, by the clocks of storage and of this machine."""


class LocalCopy:
    """The copy of a follower. Any number of threads may read; one thread loads and applies."""

    def __init__(self, reader: StateReader, follower: Any, selection: Any) -> None:
        """Begin with a copy that is not loaded."""
        self._reader = reader
        self._follower = follower
        with reader.java_errors():
            self._java = follower.copy(selection)
        self._lookups: dict[tuple[int | None, str, str | None], tuple[Any, Any]] = {}
        self.run: str | None = None
        """The run of the query that committed the newest batch; None while the copy is not loaded."""

    def load(self, asked: Any, committed_at: datetime | None, run: str) -> None:
        """Load the state as of a batch; what was loaded before can be read meanwhile."""
        with self._reader.java_errors():
            self._follower.load(self._java, asked, _millis(committed_at))
        self._lookups.clear()
        self.run = run

    def apply(self, entry: Any, batch: int, committed_at: datetime | None) -> None:
        """Apply the changes of the next batch. After an error the copy is not loaded."""
        run, self.run = self.run, None
        with self._reader.java_errors():
            self._java.apply(entry, batch, _millis(committed_at))
        self.run = run

    def close(self) -> None:
        """Close the stores."""
        self.run = None
        with self._reader.java_errors():
            self._java.close()

    def keys(self, operator: int | None, store: str, column_family: str | None) -> pyarrow.Schema:
        """Return the columns of the keys of a table."""
        return self._lookup(operator, store, column_family)[1]

    def get(self, key: Any, operator: int | None, store: str, column_family: str | None) -> StateValue:
        """Look a key up."""
        arrow = needed("pyarrow", PURPOSE)
        java, columns = self._lookup(operator, store, column_family)
        sink = arrow.BufferOutputStream()
        with arrow.ipc.new_stream(sink, columns) as stream:
            stream.write_batch(one_key(key, columns))
        with self._reader.java_errors():
            found = java.get(sink.getvalue().to_pybytes())
        row = arrow.ipc.open_stream(found).read_next_batch().to_pylist()[0]
        return StateValue(row["value"], row["partition"], row["batch"], _age(row["committed"]))

    def table(
        self, wanted: Selection | None, max_rows: int | None = None, max_bytes: int | None = None
    ) -> pyarrow.Table:
        """Return rows. Raises `ResultTooLarge` if there are more than `max_rows`, or than `max_bytes` in memory."""
        arrow = needed("pyarrow", PURPOSE)
        sent: list[Any] = []

        def send(port: int, token: str) -> Any:
            sent.append(self._java.table(self._reader.selection(wanted), port, token))
            return sent[0].rows()

        read, rows, size = [], 0, 0
        with self._reader.rows(send, ExitStack()) as stream:
            for batch in stream:
                read.append(batch)
                rows += batch.num_rows
                size += batch.nbytes
                if (max_rows is not None and rows > max_rows) or (max_bytes is not None and size > max_bytes):
                    raise ResultTooLarge(
                        f"the selected state has more than {max_rows} rows or {max_bytes} bytes: select a table, a "
                        "partition or keys"
                    )
            schema = stream.schema
        age = _age(sent[0].committed())
        as_of = {"batch": str(sent[0].batch()), **({} if age is None else {"age_seconds": str(age.total_seconds())})}
        return arrow.Table.from_batches(read, schema).replace_schema_metadata(as_of)

    def _lookup(self, operator: int | None, store: str, column_family: str | None) -> tuple[Any, Any]:
        name = (operator, store, column_family)
        found = self._lookups.get(name)
        if found is None:
            arrow = needed("pyarrow", PURPOSE)
            with self._reader.java_errors():
                java = self._java.lookup(self._reader.selection(Selection(operator, store, column_family)))
                found = (java, arrow.ipc.open_stream(java.keys()).schema)
            self._lookups[name] = found
        return found


def one_key(key: Any, columns: Any) -> Any:
    """Return a key as a record batch of these columns. Raises `InvalidKey`, which names them."""
    arrow = needed("pyarrow", PURPOSE)
    struct = arrow.struct(list(columns))
    try:
        named = named_key(key, columns)
        _check(named, struct)
        return arrow.RecordBatch.from_struct_array(arrow.array([named], struct))
    except (arrow.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidKey(f"{key!r} is not a key: {error}. Its columns are {_text(columns)}") from error


def named_key(key: Any, columns: Any) -> Mapping[str, Any]:
    """Return a key as a dict of its columns: a dict of them, a tuple of their values, or the only value."""
    if isinstance(key, Mapping) and set(key) == set(columns.names):
        return key
    values = key if isinstance(key, tuple) else (key,)
    if len(values) != len(columns) or (isinstance(key, Mapping) and not arrow_struct(columns[0].type)):
        raise ValueError("it has other columns")
    return dict(zip(columns.names, values, strict=True))


def arrow_struct(of: Any) -> bool:
    """Whether this type is a struct."""
    return bool(needed("pyarrow", PURPOSE).types.is_struct(of))


def _check(value: Any, of: Any) -> None:
    """Raise `ValueError` if a dict has other names than its struct, which pyarrow does not check."""
    if arrow_struct(of) and isinstance(value, Mapping):
        names = [field.name for field in of]
        if set(value) != set(names):
            raise ValueError(f"{dict(value)} has other columns than {', '.join(names)}")
        for field in of:
            _check(value[field.name], field.type)


def _text(columns: Any) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in columns)


def _millis(time: datetime | None) -> int:
    return _UNKNOWN if time is None else int(time.timestamp() * 1000)


def _age(millis: int) -> timedelta | None:
    return None if millis < 0 else datetime.now(UTC) - datetime.fromtimestamp(millis / 1000, UTC)
