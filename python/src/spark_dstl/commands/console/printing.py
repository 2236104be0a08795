# SPDX-License-Identifier: Apache-2.0
"""What commands print on standard output: rows in several forms, and reports as text or JSON."""

import base64
import csv
import dataclasses
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from itertools import product
from typing import Any, TextIO, TypeAlias

import click

from spark_dstl.commands.console.progress import PURPOSE
from spark_dstl.dependencies import needed
from spark_dstl.errors import DstlError

Rows: TypeAlias = Iterable[list[dict[str, Any]]]
"""Rows by column, some at a time."""

# A key or value may have megabytes, and all cells of a column are as wide as its widest.
_WIDEST = 200
_PIPE_CLOSED = 141  # as the shell has it for programs that end by SIGPIPE


@contextmanager
def standard_output() -> Iterator[None]:
    """Write to standard output. A closed pipe ends the command without a message, and any other error with one."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if isinstance(error, DstlError):
            raise
        raise unwritten(error) from None


def unwritten(error: OSError) -> Exception:
    """Return what ends the command because of an error of standard output, to which nothing more is written."""
    # Python's flush at its exit would fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return click.exceptions.Exit(_PIPE_CLOSED)
    return click.ClickException(
        f"standard output could not be written: {error.strerror or error}. Send it to another place"
    )


def print_rows(form: str, table: Any, shown: Sequence[str] | None = None) -> None:
    """Print the rows of a `RecordBatchReader` or a `Table`. For people only the columns `shown`, by default all."""
    batches = table.to_reader() if hasattr(table, "to_reader") else table
    if form in _TEXT:
        columns = shown if shown and form == "table" else batches.schema.names
        if form == "csv" and isinstance(sys.stdout, io.TextIOWrapper):
            # For programs, as in a file.
            sys.stdout.reconfigure(encoding="utf-8")
        with standard_output():
            _TEXT[form](map(_listed, batches), columns, sys.stdout)
        return
    if sys.stdout.isatty():
        raise click.UsageError(f"--format {form} is not for terminals: redirect it to a file")
    with standard_output(), _BINARY[form](batches.schema, sys.stdout.buffer) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_rows(form: str, table: Any, file: Any) -> None:
    """Write the rows of a table to a file that is open for bytes."""
    if form in _BINARY:
        with _BINARY[form](table.schema, file) as writer:
            writer.write(table)
        return
    text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
    _TEXT[form]([_listed(table)], table.schema.names, text)
    # Without this it would close the file.
    text.detach()


def print_report(output: str, document: Any, text: Callable[[], Iterable[str]]) -> None:
    """Print a report: a dataclass or a mapping as JSON, or lines of text."""
    with standard_output():
        if output == "json":
            found = document if isinstance(document, Mapping) else dataclasses.asdict(document)
            click.echo(json.dumps(found, indent=2, default=_plain))
        else:
            for line in text():
                click.echo(line)


def fields(pairs: Iterable[tuple[str, Any]]) -> list[str]:
    """Return a line for each name and value, with the values in a column; None is left out."""
    known = [(name, value) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in known), default=0)
    return [f"{name:<{width}}  {value}" for name, value in known]


def size(count: int) -> str:
    """Return a number of bytes for people."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def moment(when: datetime) -> str:
    """Return a time for people, in UTC."""
    return f"{when.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S}Z"


def cell(column: str, value: Any) -> str:
    """Return a value of a column for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return moment(value)
    if column == "bytes" or column.endswith("_bytes"):
        return size(value)
    return str(_flat(column, value)).replace("\n", " ") or "-"


def _listed(rows: Any) -> list[dict[str, Any]]:
    """Return rows as dicts. Raises `DstlError` for values that Python has no type for, such as the year 10000."""
    columns = {}
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            columns[name] = column.to_pylist()
        except (ValueError, OverflowError) as error:
            raise DstlError(
                f"the column {name} has a value that cannot be printed as text: {error}. --format "
                "parquet and --format arrow have it as it is"
            ) from error
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: bytes as base64, times as ISO 8601 in UTC, maps as lists of pairs."""
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no such numbers; Spark writes these texts.
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
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
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


def _flat(column: str, value: Any) -> Any:
    """Return a value as a cell has it: nested values are JSON."""
    if column == "files" and isinstance(value, list):
        return " ".join(value)
    plain = _plain(value)
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, dict | list) else plain


def _write_table(batches: Rows, columns: Sequence[str], out: TextIO) -> None:
    titles = {column: column.replace("_", " ") for column in columns}
    widths = {column: len(column) for column in columns}
    headed = False
    is_cut = False
    for rows in batches:
        cells = [{column: cell(column, row[column]) for column in columns} for row in rows]
        for row, column in product(cells, columns):
            if len(row[column]) > _WIDEST:
                row[column] = f"{row[column][: _WIDEST - 1]}…"
                if not is_cut:
                    click.echo(f"Cells are cut to {_WIDEST} characters: --format jsonl has the whole values.", err=True)
                is_cut = True
            widths[column] = max(widths[column], len(row[column]))
        numbers = {column for column in columns if rows and isinstance(rows[0][column], int)}
        for row in cells if headed else [titles, *cells]:
            click.echo(_line(row, widths, numbers), file=out)
        headed = True
    if not headed:
        click.echo(_line(titles, widths, set()), file=out)


def _line(cells: Mapping[str, str], widths: Mapping[str, int], numbers: set[str]) -> str:
    return "  ".join(
        f"{cells[column]:>{width}}" if column in numbers else f"{cells[column]:<{width}}"
        for column, width in widths.items()
    ).rstrip()


def _write_json_lines(batches: Rows, _columns: Sequence[str], out: TextIO) -> None:
    for rows in batches:
        for row in rows:
            out.write(json.dumps(_plain(row)) + "\n")
        out.flush()


def _write_csv(batches: Rows, columns: Sequence[str], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for rows in batches:
        writer.writerows([_flat(column, row[column]) for column in columns] for row in rows)
        out.flush()


def _arrow_writer(schema: Any, file: Any) -> Any:
    return needed("pyarrow", PURPOSE).ipc.new_stream(file, schema)


def _parquet_writer(schema: Any, file: Any) -> Any:
    arrow, parquet = needed("pyarrow", PURPOSE), needed("pyarrow.parquet", PURPOSE)
    try:
        return parquet.ParquetWriter(file, schema)
    except arrow.ArrowNotImplementedError as error:
        for field in schema:
            try:
                parquet.ParquetWriter(io.BytesIO(), arrow.schema([field])).close()
            except arrow.ArrowNotImplementedError:
                raise DstlError(
                    f"Parquet has no type for the column {field.name}, {field.type}: take --format arrow or --format "
                    "jsonl"
                ) from error
        raise


_TEXT = {"table": _write_table, "jsonl": _write_json_lines, "csv": _write_csv}
_BINARY = {"arrow": _arrow_writer, "parquet": _parquet_writer}
FORMATS = sorted([*_TEXT, *_BINARY])
