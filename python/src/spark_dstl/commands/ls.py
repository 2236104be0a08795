# SPDX-License-Identifier: Apache-2.0
"""`dstl ls`: the tables of a checkpoint."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import click

from spark_dstl.checkpoint import tables
from spark_dstl.checkpoint.checkpoint import find_checkpoints
from spark_dstl.checkpoint.rows import Row, query
from spark_dstl.commands.console.options import Location, located, rows_options
from spark_dstl.commands.console.printing import print_rows
from spark_dstl.errors import CheckpointNotFound, DstlError

# Columns that a terminal has room for.
SHOWN: Mapping[str, Sequence[str]] = {
    "queries": ("path", "query", "batches", "newest", "committed_at"),
    "operators": ("operator", "operator_name", "store", "partitions"),
    "stores": (
        "operator", "partition", "store", "version", "log_changelogs", "log_bytes", "log_snapshots",
        "plain_changelogs", "plain_snapshots", "plain_bytes", "snapshot", "replay_changelogs", "replay_bytes",
    ),
    "versions": (
        "batch", "version", "committed_at", "retained", "log_changelogs", "log_bytes", "log_snapshots",
        "plain_changelogs", "plain_snapshots", "plain_bytes",
    ),
    "snapshots": ("operator", "partition", "store", "version", "place", "batch", "written_at", "bytes", "files"),
    "claims": ("epoch", "run", "host", "claimed_at"),
    "pins": ("pin", "batch", "pinned_at", "ends_at"),
    "objects": ("name", "kind", "bytes", "written_at"),
}  # fmt: skip


@click.command(
    short_help="List the content of a checkpoint.",
    epilog="""\b
Examples:
  dstl ls s3a://bucket/checkpoints/clicks
  dstl ls /checkpoints queries
  dstl ls /checkpoints/clicks versions --format csv > versions.csv
""",
)
@located
@click.argument("table", type=click.Choice(list(SHOWN)), required=False, metavar="[TABLE]")
@rows_options
def ls(at: Location, table: str | None, form: str) -> None:
    """List the content of the checkpoint at PATH: the log, snapshots, and plain files.

    TABLE is queries, operators, stores, versions, snapshots, claims, pins or objects; by default stores, or queries if
    PATH is a directory of checkpoints. Batch N makes version N+1. Nothing is written, and the query may run.
    """
    found = find_checkpoints(at.path, at.storage) if table in (None, "queries") else [at.path]
    if table == "queries" or (table is None and found != [at.path]):
        if not found:
            raise CheckpointNotFound(
                f"there is no checkpoint at {at.path}, nor in the directories in it. Name the directory that is given "
                "to the query as checkpointLocation, or the one above it"
            )
        failed: list[str] = []
        print_rows(form, tables.stream("queries", _queries(at, found, failed)), SHOWN["queries"])
        for error in failed:
            click.echo(f"Error: {error}", err=True)
        if failed:
            raise click.exceptions.Exit(1)
        return
    chosen = table or "stores"
    with at.opened() as checkpoint:
        print_rows(form, getattr(checkpoint, chosen)(), SHOWN[chosen])


def _queries(at: Location, paths: Sequence[str], failed: list[str]) -> Iterator[Row]:
    """Yield the rows of checkpoints; add the errors of those that cannot be read to `failed`."""
    for path in paths:
        try:
            with replace(at, path=path).opened() as checkpoint:
                row = query(checkpoint)
        except DstlError as error:
            failed.append(str(error))
        else:
            yield row
