# SPDX-License-Identifier: Apache-2.0
"""`dstl rollback`: roll back to an earlier batch."""

from collections.abc import Iterator
from datetime import timedelta

import click

from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.changing.rollback import Rollback, is_changelog
from spark_dstl.commands.console.options import NUMBER, Location, located, report_option, stopped_option
from spark_dstl.commands.console.printing import print_report

_QUIET = activity.QUIET // timedelta(minutes=1)


@click.command(
    short_help="Roll a stopped query back to an earlier batch.",
    epilog="""\b
Examples:
  dstl rollback s3a://bucket/checkpoints/clicks --to 1041
  dstl rollback s3a://bucket/checkpoints/clicks --to 1041 --apply
""",
    help=f"""Roll back to batch M in the checkpoint at PATH, whose query is stopped.

Without --apply it only lists what a rollback deletes: the pins of batches above M, the entries of commits/ and offsets/
above M, the newest first, plain snapshots of later versions that Spark would read as new ones, the metadata of
operators of batches above M (_metadata/v2), plain changelogs of later versions, and the checksum files of these. After
an interrupt at any point the checkpoint still starts, and the command can be repeated; over a dstl repartition of a
query with Spark's own provider it may be locked until then. The query, when started, runs the batches after M again,
and its sink gets their output again. Its next run, or dstl gc, deletes data files that only the deleted entries name.

Refused with exit code 1 if the state of batch M cannot be rebuilt, which is verified before, and with 4 if a query
seems to run: if an object was written in the last {_QUIET} minutes or is written during {activity.LOOK_SECONDS:.0f}
seconds, unless the newest run has since marked its end. A query that waits for input is not detected, so make sure that
it is stopped.
""",
)
@located
@click.option("--to", type=NUMBER, required=True, metavar="M", help="The batch to roll back to.")
@click.option("--apply", is_flag=True, help="Delete these objects.")
@click.option("--deep", is_flag=True, help="Read and check all data before, as dstl verify --deep.")
@stopped_option
@report_option
def rollback(at: Location, to: int, apply: bool, deep: bool, stopped: bool, output: str) -> None:
    """Roll back; the help is above."""
    with at.opened() as checkpoint:
        if apply:
            # Reading may take long.
            activity.refuse_if_seen(checkpoint, stopped)
        planned = checkpoint.plan_rollback(to, deep)
        done = checkpoint.apply_rollback(planned, stopped) if apply else planned
    print_report(output, done, lambda: _lines(done, apply))


def _lines(done: Rollback, applied: bool) -> Iterator[str]:
    if not done.objects and not done.deleted:
        yield f"Batch {done.to} is the newest: there is nothing to delete."
    elif applied and done.newest == done.to:
        yield f"What was begun after batch {done.to} is gone: {done.deleted} objects deleted."
    elif applied:
        yield f"Rolled back from batch {done.newest} to {done.to}: {done.deleted} objects deleted."
    else:
        for name in done.objects:
            if not is_changelog(name):
                yield f"would delete {name}"
        if changelogs := sum(map(is_changelog, done.objects)):
            yield f"would delete {changelogs} changelogs and checksum files of undone batches in state/"
        what = (
            f"undo what was begun after batch {done.to}"
            if done.newest == done.to
            else f"roll back from batch {done.newest} to {done.to}"
        )
        yield f"Would {what}. Nothing is deleted yet: stop the query, add --apply."
