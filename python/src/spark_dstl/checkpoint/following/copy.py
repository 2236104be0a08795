# SPDX-License-Identifier: Apache-2.0
"""A local copy of the state, in the Java process: keys are looked up in it, and tables read, as of one batch."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from reprlib import Repr
from typing import TYPE_CHECKING, Any

from spark_dstl.checkpoint.java.gateway import PURPOSE
from spark_dstl.checkpoint.java.state import Selection, StateReader
from spark_dstl.dependencies import needed
from spark_dstl.errors import InvalidKey, ResultTooLarge

if TYPE_CHECKING:
    import pyarrow

# A committed batch whose storage has no time.
_UNKNOWN = -1
_NUMBERS = {"operator", "partitions"}
# A program may pass anything as a key, however large and deep it is.
SHOWN = Repr()
SHOWN.maxstring = SHOWN.maxother = SHOWN.maxlong = 200
SHOWN.maxdict = SHOWN.maxlist = SHOWN.maxtuple = 20


@dataclass(frozen=True)
class StateValue:
    """The value of a key as of a batch."""

    value: Any
    """A dict of the value's columns, a list of them if a key has several values, or None without the key."""
    partition: int | None
    """The partition that has the key; None without the key."""
    batch: int
    """The newest batch that was applied to the key's part of the local copy."""
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
        """Apply the changes of the next batch, during which the copy can be read. After an error it is not loaded."""
        try:
            with self._reader.java_errors():
                self._java.apply(entry, batch, _millis(committed_at))
        except BaseException:
            self.run = None
            raise

    def close(self) -> None:
        """Close the stores."""
        self.run = None
        with self._reader.java_errors():
            self._java.close()

    def tables(self) -> list[dict[str, Any]]:
        """Return the tables, with the schemas of their keys and values in Spark's notation."""
        with self._reader.java_errors():
            lines = self._java.tables().splitlines()
        names = ("operator", "operator_name", "store", "column_family", "partitions", "key", "value")
        return [
            {
                name: int(value) if name in _NUMBERS else value
                for name, value in zip(names, line.split("\t"), strict=True)
            }
            for line in lines
        ]

    def get(self, keys: Sequence[Any], operator: int | None, store: str, column_family: str | None) -> list[StateValue]:
        """Look keys up: several as of one batch."""
        return [
            StateValue(row["value"], row["partition"], row["batch"], age_of(row["committed_at"]))
            for row in self.found(keys, operator, store, column_family).to_pylist()
        ]

    def found(self, keys: Sequence[Any], operator: int | None, store: str, column_family: str | None) -> pyarrow.Table:
        """Look keys up, and return a row for each, in their order: batch, committed_at, partition, value."""
        arrow = needed("pyarrow", PURPOSE)
        java, columns = self._lookup(operator, store, column_family)
        sink = arrow.BufferOutputStream()
        with arrow.ipc.new_stream(sink, columns) as stream:
            stream.write_batch(keys_in(columns, keys))
        with self._reader.java_errors():
            found = java.get(sink.getvalue().to_pybytes())
        return arrow.ipc.open_stream(b64decode(found)).read_all()

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
        # Not the end of the reader: an error that is kept keeps it, and the process would hold its lock.
        with ExitStack() as until_read, self._reader.rows(send, until_read) as stream:
            for batch in stream:
                read.append(batch)
                rows += batch.num_rows
                size += batch.nbytes
                for has, most, what in ((rows, max_rows, "rows"), (size, max_bytes, "bytes")):
                    if most is not None and has > most:
                        raise ResultTooLarge(
                            f"the selected state has more than {most} {what}: select a table, a partition or keys"
                        )
            schema = stream.schema
        millis = sent[0].committed()
        age = None if millis == _UNKNOWN else age_of(datetime.fromtimestamp(millis / 1000, timezone.utc))
        as_of = {"batch": str(sent[0].batch()), **({} if age is None else {"age_seconds": str(age.total_seconds())})}
        return arrow.Table.from_batches(read, schema).replace_schema_metadata(as_of)

    def _lookup(self, operator: int | None, store: str, column_family: str | None) -> tuple[Any, Any]:
        name = (operator, store, column_family)
        found = self._lookups.get(name)
        if found is None:
            arrow = needed("pyarrow", PURPOSE)
            with self._reader.java_errors():
                java = self._java.lookup(self._reader.selection(Selection(operator, store, column_family)))
                found = (java, arrow.ipc.open_stream(b64decode(java.keys())).schema)
            self._lookups[name] = found
        return found


def keys_in(columns: Any, keys: Sequence[Any]) -> Any:
    """Return keys as a record batch of these columns. Raises `InvalidKey`, which names the columns and a wrong key."""
    arrow = needed("pyarrow", PURPOSE)
    struct = arrow.struct(list(columns))
    try:
        typed = [_typed(_named(key, columns), struct) for key in keys]
        return arrow.RecordBatch.from_struct_array(arrow.array(typed, struct))
    except Exception as error:
        if len(keys) > 1:
            for key in keys:
                keys_in(columns, [key])
        expected = ", ".join(f"{field.name} ({field.type})" for field in columns)
        raise InvalidKey(f"{SHOWN.repr(keys[0])} is not a key: {error}. Its columns are {expected}") from error


def _named(key: Any, columns: Any) -> Mapping[str, Any]:
    """Return a dict of the columns, for a tuple of their values or for the only value."""
    names = columns.names
    if isinstance(key, Mapping) and (len(names) > 1 or set(key) == set(names)):
        return key
    values = key if isinstance(key, tuple) else (key,)
    if len(values) != len(names):
        raise ValueError(f"it has {len(values)} columns and not {len(names)}")
    return dict(zip(names, values, strict=True))


def _typed(value: Any, of: Any) -> Any:
    """Return a value of a type, for what JSON has for it. Raises `ValueError` where pyarrow would take another."""
    types = needed("pyarrow", PURPOSE).types
    if types.is_struct(of) and isinstance(value, Mapping | list | tuple):
        names = [field.name for field in of]
        if not isinstance(value, Mapping):
            if len(value) != len(names):
                raise ValueError(f"{value!r} has {len(value)} values and not {len(names)}")
            value = dict(zip(names, value, strict=True))
        if set(value) != set(names):
            raise ValueError(f"its columns are {', '.join(map(repr, value))} and not {', '.join(map(repr, names))}")
        return {field.name: _typed(value[field.name], field.type) for field in of}
    if types.is_list(of) and isinstance(value, list | tuple):
        return [_typed(one, of.value_type) for one in value]
    if types.is_map(of) and isinstance(value, Mapping | list | tuple):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(_typed(key, of.key_type), _typed(one, of.item_type)) for key, one in pairs]
    return _from_text(value, of) if isinstance(value, str) else _from_number(value, of)


def _from_text(value: str, of: Any) -> Any:
    types = (arrow := needed("pyarrow", PURPOSE)).types
    if types.is_duration(of):
        raise ValueError(f"{value!r} is not a number of seconds")
    if types.is_binary(of) or types.is_large_binary(of):
        return b64decode(value, validate=True)
    if any(is_of(of) for is_of in (types.is_temporal, types.is_decimal, types.is_floating)):
        return arrow.scalar(value).cast(of).as_py()
    return value


def _from_number(value: Any, of: Any) -> Any:
    types = needed("pyarrow", PURPOSE).types
    if isinstance(value, bool) and not types.is_boolean(of):
        raise ValueError(f"{value} is not of the type {of}")
    if isinstance(value, float) and types.is_integer(of):
        # pyarrow would cut a fraction off.
        raise ValueError(f"{value} is not a whole number")
    if isinstance(value, int | float) and types.is_duration(of):
        return timedelta(seconds=value)
    if isinstance(value, int | float) and types.is_temporal(of):
        # pyarrow would count microseconds or days.
        raise ValueError(f"{value} is not a time")
    return value


def _millis(time: datetime | None) -> int:
    return _UNKNOWN if time is None else int(time.timestamp() * 1000)


def age_of(committed_at: datetime | None) -> timedelta | None:
    """Return the time since a batch was committed, by the clocks of storage and of this machine."""
    return None if committed_at is None else datetime.now(timezone.utc) - committed_at
