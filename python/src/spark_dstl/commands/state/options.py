# SPDX-License-Identifier: Apache-2.0
"""What commands that read state share: which rows, how the Java process is started, how nested values are printed."""

import base64
import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import Any, TypeVar

import click

from spark_dstl.checkpoint.java.state import Selection
from spark_dstl.checkpoint.locate import StorageOptions
from spark_dstl.commands import console

Command = TypeVar("Command", bound=Callable[..., Any])

# Part of each command's help. To click a backspace, alone in its line, begins a paragraph whose lines stay as they are.
HELP = """\b
Key and value are structs, with the types that Spark's state reader gives them.
If what is asked for has several schemas they are JSON: choose with --operator,
--store and --column-family, which dstl ls PATH operators shows. A state variable
of transformWithState is a column family.

A Java process with Spark's classes is started for it, without a Spark application, and ended. Nothing is written to the
checkpoint, and the query may run. Storage other than local disks needs its jars: --jars.
"""


def java_process(command: Command) -> Command:
    """Give a command the options how its Java process is started; it gets `jvm`."""

    @functools.wraps(command)
    def run(*args: Any, storage: StorageOptions, memory: str, **kwargs: Any) -> Any:
        return command(*args, storage=storage, jvm=replace(storage.jvm, memory=memory), **kwargs)

    memory = click.option("--memory", default="1g", show_default=True, metavar="SIZE", help="The Java process's heap.")
    return memory(run)  # type: ignore[return-value]


def selecting(command: Command) -> Command:
    """Give a command the options which rows it shows; it gets `selection` and `jvm`."""

    @functools.wraps(command)
    def run(
        *args: Any,
        operator: int | None,
        store: str | None,
        column_family: str | None,
        partition: int | None,
        where: str | None,
        **kwargs: Any,
    ) -> Any:
        return command(*args, selection=Selection(operator, store, column_family, partition, where), **kwargs)

    run = java_process(run)
    number = click.IntRange(min=0)
    for decorate in (
        click.option(
            "--where",
            metavar="CONDITION",
            help="Only rows for which this is true: Spark's SQL, such as \"key.page = '/' AND value.count > 10\".",
        ),
        click.option("--partition", type=number, metavar="P", help="Only of this partition."),
        click.option("--column-family", metavar="NAME", help="Only this column family or state variable."),
        click.option("--store", metavar="NAME", help='Only the store of this name; "" is the one without.'),
        click.option("--operator", type=number, metavar="ID", help="Only of this operator."),
    ):
        run = decorate(run)
    return run  # type: ignore[return-value]


class Readable:
    """Rows whose nested values are text, for what is printed as text; for JSON lines they stay nested."""

    def __init__(self, reader: Any, form: str) -> None:
        self._reader = reader
        self._flat = form != "jsonl"
        self.schema = reader.schema

    def __iter__(self) -> "Iterator[_ReadableBatch]":
        for batch in self._reader:
            yield _ReadableBatch(batch, self._flat)


class _ReadableBatch:
    def __init__(self, batch: Any, flat: bool) -> None:
        self._batch = batch
        self._flat = flat

    def to_pylist(self) -> list[dict[str, Any]]:
        rows = [{column: _plain(value) for column, value in row.items()} for row in self._batch.to_pylist()]
        if self._flat:
            return [{column: _flat(value) for column, value in row.items()} for row in rows]
        return rows


def print_state(form: str, reader: Any) -> None:
    """Print rows of state, with all their columns, in a form."""
    rows = reader if form in ("arrow", "parquet") else Readable(reader, form)
    console.print_rows(form, rows, reader.schema.names)


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: bytes as base64, times as ISO 8601 in UTC, maps as lists of pairs."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime):
        return (value.astimezone(timezone.utc) if value.tzinfo else value).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)
