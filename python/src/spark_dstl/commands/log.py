# SPDX-License-Identifier: Apache-2.0
"""`dstl log`: what commit entries carry."""

import click

from spark_dstl.checkpoint.locate import StorageOptions
from spark_dstl.commands import console

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
@console.located
@click.option("--batch", type=click.IntRange(min=0), metavar="N", help="Only the entry of batch N, with its segments.")
@click.option("--segments", is_flag=True, help="A row for each segment instead of each entry.")
@console.rows_options
def log(
    path: str, base_path: str | None, storage: StorageOptions, batch: int | None, segments: bool, form: str
) -> None:
    """Show what the commit entries of the checkpoint at PATH carry.

    A row for each entry: when it was written and by whom, and how much of changes and snapshots it names. An entry that
    cannot be read says why in its row; then the exit code is 3. Nothing is written, and the query may run.
    """
    with console.opened(path, base_path, storage) as checkpoint:
        if segments or batch is not None:
            if form == "table" and batch is not None:
                (row,) = checkpoint.entries(batch).read_all().to_pylist() or [{}]
                lines = console.fields(
                    (name, console.cell(name, value)) for name, value in row.items() if value is not None
                )
                console.print_report("text", row, lambda: [*lines, ""])
                if row.get("damage"):
                    raise click.exceptions.Exit(console.DAMAGED)
            console.print_rows(form, checkpoint.segments(batch), _SEGMENTS)
            return
        entries = console.Watched(checkpoint.entries(), "damage")
        console.print_rows(form, entries, _ENTRIES)
    if entries.seen:
        raise click.exceptions.Exit(console.DAMAGED)
