# SPDX-License-Identifier: Apache-2.0
"""The tables of a checkpoint: their columns, and rows as batches of Arrow."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from spark_dstl.checkpoint.locate import PURPOSE
from spark_dstl.dependencies import needed

# The columns of each table with their Arrow types.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "queries": {
        "path": "string", "query": "string", "batches": "int64", "oldest": "int64", "newest": "int64",
        "committed_at": "timestamp", "entry_bytes": "int64",
    },
    "operators": {
        "operator": "int64", "operator_name": "string", "store": "string", "partitions": "int64",
    },
    "stores": {
        "operator": "int64", "partition": "int64", "store": "string", "version": "int64",
        "log_changelogs": "int64", "log_bytes": "int64", "log_snapshots": "int64",
        "plain_changelogs": "int64", "plain_snapshots": "int64", "plain_bytes": "int64",
        "snapshot": "int64", "snapshot_at": "timestamp", "snapshot_bytes": "int64",
        "replay_changelogs": "int64", "replay_bytes": "int64",
    },
    "versions": {
        "batch": "int64", "version": "int64", "committed_at": "timestamp", "retained": "bool", "damage": "string",
        "entry_bytes": "int64", "log_changelogs": "int64", "log_bytes": "int64", "log_snapshots": "int64",
        "plain_changelogs": "int64", "plain_snapshots": "int64", "plain_bytes": "int64",
    },
    "entries": {
        "batch": "int64", "committed_at": "timestamp", "bytes": "int64", "has_log": "bool", "damage": "string",
        "watermark": "timestamp", "epoch": "int64", "run": "string", "host": "string", "application": "string",
        "software": "string", "entry": "string", "previous": "string", "base": "string",
        "stores": "int64", "changelogs": "int64", "changelog_bytes": "int64", "inline_bytes": "int64",
        "data_files": "int64", "data_file_bytes": "int64", "snapshots": "int64", "snapshot_bytes": "int64",
        "listed_snapshots": "int64", "list_continues": "int64", "plain_up_to": "int64",
    },
    "segments": {
        "batch": "int64", "name": "string", "operator": "int64", "partition": "int64", "store": "string",
        "version": "int64", "kind": "string", "id": "string", "attempt": "int64", "bytes": "int64",
        "inline_bytes": "int64", "parts": "int64", "files": "strings",
    },
    "snapshots": {
        "operator": "int64", "partition": "int64", "store": "string", "version": "int64", "id": "string",
        "place": "string", "batch": "int64", "written_at": "timestamp", "bytes": "int64", "files": "int64",
    },
    "claims": {
        "epoch": "int64", "run": "string", "host": "string", "claimed_at": "timestamp",
    },
    "pins": {
        "pin": "string", "batch": "int64", "lasts_seconds": "int64", "pinned_at": "timestamp", "ends_at": "timestamp",
    },
    "objects": {
        "name": "string", "kind": "string", "bytes": "int64", "written_at": "timestamp",
    },
}  # fmt: skip

ROWS_IN_BATCH = 4096


def schema(table: str) -> Any:
    """Return the Arrow schema of a table."""
    arrow = needed("pyarrow", PURPOSE)
    types = {
        "int64": arrow.int64(),
        "string": arrow.string(),
        "bool": arrow.bool_(),
        "timestamp": arrow.timestamp("ms", tz="UTC"),
        "strings": arrow.list_(arrow.string()),
    }
    return arrow.schema([(column, types[type_]) for column, type_ in COLUMNS[table].items()])


def table(name: str, rows: Iterable[Mapping[str, object]]) -> Any:
    """Return a `pyarrow.Table`. Missing values are null."""
    return stream(name, rows).read_all()


def stream(name: str, rows: Iterable[Mapping[str, object]]) -> Any:
    """Return a `pyarrow.RecordBatchReader` that takes rows while it is read."""
    arrow = needed("pyarrow", PURPOSE)
    return arrow.RecordBatchReader.from_batches(schema(name), _batches(name, rows))


def _batches(name: str, rows: Iterable[Mapping[str, object]]) -> Iterator[Any]:
    arrow = needed("pyarrow", PURPOSE)
    left = iter(rows)
    while batch := list(islice(left, ROWS_IN_BATCH)):
        yield arrow.RecordBatch.from_pylist(batch, schema=schema(name))
