# SPDX-License-Identifier: Apache-2.0
"""The figures of many batches: as a table, and read from files."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_dstl.dependencies import MONITORING, needed
from spark_dstl.errors import InvalidProgress
from spark_dstl.monitoring.query_metrics import QueryMetrics

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_LINE = 16 * 1024 * 1024
"""In bytes. The progress of a batch has some kilobytes."""

_PARQUET_MAGIC = b"PAR1"


def table_of(metrics: Iterable[QueryMetrics]) -> pa.Table:
    """Return a row for each batch and a column for each field.

    Raises `MissingPackage` if pyarrow is not installed.
    """
    pyarrow = _pyarrow()
    fields = typing.get_type_hints(QueryMetrics)
    types = {str: pyarrow.string(), int: pyarrow.int64(), datetime: pyarrow.timestamp("ms", tz="UTC")}
    columns = [pyarrow.field(name, types[_plain(hint)], nullable=hint != _plain(hint)) for name, hint in fields.items()]
    rows = [dataclasses.asdict(batch) for batch in metrics]
    return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(columns))


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write a table to a file, and replace an existing file in one step."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        _pyarrow().parquet.write_table(table, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_history(path: Path) -> list[QueryMetrics]:
    """Return the batches in a file: lines of progress in JSON, or Parquet of `MetricsListener`.

    A last line without an end is ignored: it may be incomplete. Raises `InvalidProgress` with the place if the file
    holds anything else, `MissingPackage` if it is Parquet and pyarrow is not installed, and `OSError` if it cannot be
    read.
    """
    with path.open("rb") as file:
        if file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC:
            return _read_parquet(path)
        file.seek(0)
        return [batch for _, _, batch in progress_lines(file, path)]


def progress_lines(file: typing.BinaryIO, path: Path, before: int = 0) -> Iterator[tuple[int, int, QueryMetrics]]:
    """Yield `(offset, lines, batch)` for each whole line from the position of `file` on.

    `offset` is the end of the line in bytes, and `lines` its number, of which `before` were read earlier.
    """
    number = before
    while line := file.readline(LONGEST_LINE):
        if not line.endswith(b"\n"):
            if len(line) == LONGEST_LINE:
                raise InvalidProgress(f"{path}, line {number + 1}: longer than {LONGEST_LINE >> 20} MiB")
            return
        number += 1
        if line.strip():
            try:
                batch = QueryMetrics.from_progress(line.decode("utf-8"))
            except (InvalidProgress, UnicodeDecodeError) as error:
                raise InvalidProgress(f"{path}, line {number}: {error}") from error
            yield file.tell(), number, batch


def _read_parquet(path: Path) -> list[QueryMetrics]:
    pyarrow = _pyarrow()
    names = [field.name for field in dataclasses.fields(QueryMetrics)]
    try:
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path, columns=names).to_pylist()
        return [QueryMetrics(**row) for row in rows]
    except (pyarrow.ArrowException, OSError, KeyError, TypeError) as error:
        # Arrow's own error of a damaged file has no number of the system's.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        what = " ".join(str(error).split())
        raise InvalidProgress(f"{path}: not the history of a MetricsListener: {what}") from error


def _plain(hint: Any) -> Any:
    """Return the type of a field without None."""
    return next((part for part in typing.get_args(hint) if part is not type(None)), hint)


def _pyarrow() -> Any:
    needed("pyarrow.parquet", "A table or a Parquet file", MONITORING)
    return needed("pyarrow", "A table", MONITORING)
