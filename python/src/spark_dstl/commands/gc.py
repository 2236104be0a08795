# SPDX-License-Identifier: Apache-2.0
"""`dstl gc`: remove what a stopped query has left behind."""

from collections.abc import Iterator

import click

from spark_dstl.checkpoint import activity
from spark_dstl.checkpoint.leftovers import Leftovers
from spark_dstl.checkpoint.locate import StorageOptions
from spark_dstl.commands import console


@click.command(
    epilog="""\b
Examples:
  dstl gc s3a://bucket/checkpoints/clicks --dry-run
  dstl gc s3a://bucket/checkpoints/clicks --apply
"""
)
@console.located
@click.option("--dry-run/--apply", "dry", default=True, show_default=True, help="Only list, or delete.")
@console.stopped_option
@console.report_option
def gc(path: str, base_path: str | None, storage: StorageOptions, dry: bool, stopped: bool, output: str) -> None:
    """Remove what a stopped query has left behind in the checkpoint at PATH.

    Data files that no commit entry names, objects that were never finished, and plain snapshots of versions that are
    not committed. A query does that itself after its first batch, where storage creates
    exclusively; this is for queries that do not run any more, and for other storage.

    Refused with exit code 4 if a query seems to run, as dstl rollback has it; with 1 if a commit entry cannot be read,
    as it is unknown then what it names.
    """
    with console.opened(path, base_path, storage) as checkpoint:
        if not dry:
            activity.refuse_if_seen(checkpoint, stopped)
        found = checkpoint.leftovers()
        done = found if dry else checkpoint.delete_leftovers(found, stopped)
    console.print_report(output, done, lambda: _lines(done, dry))


def _lines(done: Leftovers, dry: bool) -> Iterator[str]:
    if dry:
        for one in done.objects:
            yield f"would delete {one.shown}: {one.why}"
    what = f"{len(done.objects)} objects of {console.size(done.bytes)}"
    if not done.objects:
        yield "Nothing is left over."
    elif dry:
        yield f"{what} are left over. Nothing is deleted yet: stop the query, then use --apply."
    else:
        yield f"{done.deleted} of {what} deleted."
