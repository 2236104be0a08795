# SPDX-License-Identifier: Apache-2.0
"""`dstl gc`: delete the leftovers of a stopped query."""

from collections.abc import Iterator

import click

from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.changing.leftovers import Leftovers
from spark_dstl.commands.console.options import Location, located, report_option, stopped_option
from spark_dstl.commands.console.printing import print_report, size


@click.command(
    short_help="Delete the leftovers of a stopped query.",
    epilog="""\b
Examples:
  dstl gc s3a://bucket/checkpoints/clicks --dry-run
  dstl gc s3a://bucket/checkpoints/clicks --apply
""",
)
@located
@click.option("--dry-run/--apply", "dry", default=True, show_default=True, help="Only list, or delete.")
@stopped_option
@report_option
def gc(at: Location, dry: bool, stopped: bool, output: str) -> None:
    """Delete the leftovers of a stopped query in the checkpoint at PATH.

    Leftovers are data files that no commit entry names, unfinished objects, objects of checks of exclusive creation,
    and plain snapshots of versions that are not committed. On storage that creates exclusively a query deletes the data
    files, unfinished objects beside them and objects of checks after its first batch; the command is for queries that
    no longer run, for other storage, and for the rest. Snapshots of the next version are none if one was written within
    15 minutes, because dstl repartition may be writing them; nor are unfinished objects of the state that are as new.

    Refused with exit code 4 if a query seems to run, by the signs of dstl rollback; with 1 if a commit entry cannot be
    read, because the objects that it names are then unknown.
    """
    with at.opened() as checkpoint:
        if not dry:
            activity.refuse_if_seen(checkpoint, stopped)
        found = checkpoint.leftovers()
        done = found if dry else checkpoint.delete_leftovers(found, stopped)
    print_report(output, done, lambda: _lines(done, dry))


def _lines(done: Leftovers, dry: bool) -> Iterator[str]:
    if dry:
        for one in done.objects:
            yield f"would delete {one.shown}: {one.why}"
    what = f"{len(done.objects)} objects of {size(done.bytes)}"
    if not done.objects:
        yield "Nothing is left over."
    elif dry:
        yield f"{what} are left over. Nothing is deleted yet: stop the query, then use --apply."
    else:
        yield f"{done.deleted} of {what} deleted."
