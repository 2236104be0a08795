# SPDX-License-Identifier: Apache-2.0
"""`dstl log`: the commit entries and their segments."""

from collections.abc import Iterable, Iterator
from typing import Any

import click

from spark_dstl.commands.console import DAMAGED, Damaged
from spark_dstl.commands.console.options import NUMBER, Location, located, rows_options
from spark_dstl.commands.console.printing import cell, fields, print_report, print_rows
from spark_dstl.errors import DamagedLog, UnsupportedLog

_ENTRIES = (
    "batch", "committed_at", "bytes", "epoch", "host", "stores", "changelogs", "changelog_bytes", "data_files",
    "snapshots", "snapshot_bytes", "damage",
)  # fmt: skip
_SEGMENTS = ("batch", "name", "kind", "attempt", "bytes", "inline_bytes", "parts", "files")


@click.command(
    epilog="""\b
Examples:
  dstl log s3a://bucket/checkpoints/clicks
  dstl log /checkpoints/clicks --batch 1041
  dstl log /checkpoints/clicks --segments --format parquet > segments.parquet
"""
)
@located
@click.option("--batch", type=NUMBER, metavar="N", help="Only the entry of batch N, with its segments.")
@click.option("--segments", is_flag=True, help="A row for each segment instead of each entry.")
@rows_options
def log(at: Location, batch: int | None, segments: bool, form: str) -> None:
    """Show the commit entries of the checkpoint at PATH.

    A row for each entry has its time, its run, and the size of the changes and snapshots that it names. The row of an
    entry that is damaged, or that a later release wrote, has the reason why it cannot be read, and the exit code is 3;
    --segments ends there. Nothing is written, and the query may run.
    """
    damaged = False

    def noted(batches: Iterable[Any]) -> Iterator[Any]:
        nonlocal damaged
        for one in batches:
            damaged = damaged or one.column("damage").null_count < one.num_rows
            yield one

    with at.opened() as checkpoint:
        if batch is not None and form == "table":
            (row,) = checkpoint.entries(batch).read_all().to_pylist()
            lines = fields((name, cell(name, value)) for name, value in row.items() if value is not None)
            print_report("text", row, lambda: [*lines, ""])
            damaged = bool(row.get("damage"))
        if batch is None and not segments:
            entries = checkpoint.entries()
            print_rows(form, type(entries).from_batches(entries.schema, noted(entries)), _ENTRIES)
        elif not damaged:
            try:
                print_rows(form, checkpoint.segments(batch), _SEGMENTS)
            except (DamagedLog, UnsupportedLog) as error:
                raise Damaged(str(error)) from error
    if damaged:
        raise click.exceptions.Exit(DAMAGED)
