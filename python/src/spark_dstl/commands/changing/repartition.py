# SPDX-License-Identifier: Apache-2.0
"""`dstl repartition`: change the number of partitions of a stopped query."""

from collections.abc import Iterator

import click

from spark_dstl.checkpoint.repartition.repartition import Repartition
from spark_dstl.commands.console.options import Location, java_process, located, report_option, stopped_option
from spark_dstl.commands.console.printing import print_report, size


@click.command(
    short_help="Change the number of partitions of a stopped query.",
    epilog="""\b
Examples:
  dstl repartition /checkpoints/clicks --partitions 3
  dstl repartition /checkpoints/clicks --partitions 3 --apply
""",
    help="""Change the number of partitions of the state in the checkpoint at PATH, whose query is stopped.

The number is spark.sql.shuffle.partitions, which the first batch pins in the checkpoint. Without --apply the command
only says what it would do. With it, all stores are written as snapshots of the state after the newest batch, each row
in the partition in which the query will look for it, and are read again and compared. Then a batch without input is
committed with the new number. Start the query as before: it continues from there, and its settings need no change. The
batches before stay, and dstl rollback goes back to them.

Spark's own classes read and write the state, in a separate process without a Spark application. Rows are kept on the
local disk meanwhile (TMPDIR), uncompressed. Storage other than local disks needs its jars: --jars.

An interrupted command leaves the old checkpoint, or the new one, and can be repeated. A checkpoint whose state is not
in the log, but in Spark's own files, is locked meanwhile: if the command is killed, the query fails at its start until
the command was repeated, or until dstl rollback.

\b
For aggregations, session windows, stream-stream joins, dropDuplicates,
dropDuplicatesWithinWatermark, flatMapGroupsWithState, applyInPandasWithState and
transformWithState. An aggregation without keys and a limit stay in one partition.

Refused with exit code 1 if a batch was begun and is not committed, or if an operator does not allow it, and with 4 if a
query seems to run.
""",
)
@located
@click.option("--partitions", type=click.IntRange(min=1), required=True, metavar="N", help="The new number.")
@click.option("--apply", is_flag=True, help="Write the state, and commit the batch.")
@java_process
@stopped_option
@report_option
def repartition(at: Location, partitions: int, apply: bool, stopped: bool, output: str) -> None:
    """Change the number of partitions; the help is above."""
    with at.opened() as checkpoint:
        done = checkpoint.repartition(partitions, apply, stopped)
    print_report(output, done, lambda: _lines(done, at))


def _lines(done: Repartition, at: Location) -> Iterator[str]:
    yield from map(str, done.stores)
    if done.is_applied:
        yield f"{done.path} has {done.partitions} partitions since batch {done.batch + 1}, and had {done.before}."
        yield f"Start the query. dstl rollback {at} --to {done.batch} goes back."
    else:
        yield (
            f"Would write {size(done.state_bytes)} of state into {done.partitions} partitions instead of "
            f"{done.before}. Nothing is written yet: stop the query, add --apply."
        )
