# SPDX-License-Identifier: Apache-2.0
"""`dstl convert`: convert a checkpoint of Spark's default provider to one for the log."""

from collections.abc import Iterator

import click

from spark_dstl.checkpoint.convert.conversion import Conversion
from spark_dstl.commands.console.options import Location, java_process, located, report_option, stopped_option
from spark_dstl.commands.console.printing import print_report


@click.command(
    short_help="Convert a checkpoint of Spark's default provider.",
    help="""Convert the checkpoint at PATH, of Spark's default provider, to one at TARGET for the log.

PATH is of the HDFS-backed provider, which is Spark's default and is pinned in the checkpoint; its query is
stopped. TARGET gets a snapshot of each store as of the newest committed batch, the offsets and the commit entry from
which Spark continues, the progress of sources, and the query's id; it names DstlStateStoreProvider as its provider.
A batch that was interrupted in its tasks runs again from TARGET, with the same input. Earlier batches are not
converted. PATH does not change. Then start the same query with TARGET as its checkpointLocation and with the log
configured (spark_dstl.configure), and never again with PATH.

Spark's own classes read and write the state, four stores at a time, in a separate process without a Spark
application. It holds four whole stores of the HDFS-backed provider in memory: --memory. Storage other than local disks
needs its jars: --jars. At the end all objects are read again and compared, the state row by row. An interrupted
conversion can be repeated, and continues.

\b
Converted are aggregations, session windows, stream-stream joins, dropDuplicates,
dropDuplicatesWithinWatermark, mapGroupsWithState, flatMapGroupsWithState,
applyInPandasWithState and limits: all that Spark 4.2 keeps with that provider.
Not needed for a checkpoint of Spark's RocksDB provider: docs/operations.md.

Refused with exit code 1 for other checkpoints, if a batch has finished all tasks and is not committed (its sink may
have it: let the query commit it first), if an object is missing or damaged, or if TARGET has other objects; and with
4 if a query seems to run.
""",
    epilog="""\b
Examples:
  dstl convert /checkpoints/clicks /checkpoints/clicks-logged --dry-run
  dstl convert /checkpoints/clicks /checkpoints/clicks-logged
""",
)
@located
@click.argument("target")
@click.option("--dry-run", is_flag=True, help="Only print what a conversion would do.")
@java_process
@stopped_option
@report_option
def convert(at: Location, target: str, dry_run: bool, stopped: bool, output: str) -> None:
    """Convert; the help is above."""
    with at.opened() as checkpoint:
        done = checkpoint.plan_conversion(target) if dry_run else checkpoint.convert(target, stopped)
    print_report(output, done, lambda: _lines(done, dry_run))


def _lines(done: Conversion, dry_run: bool) -> Iterator[str]:
    yield from map(str, done.stores)
    if done.begun is not None:
        yield f"Batch {done.begun} was begun and is not committed: it runs again, with the same input."
    if dry_run:
        yield f"Would convert {done.path} as of batch {done.batch}. Nothing is written yet: stop the query first."
        return
    yield f"{done.target} continues after batch {done.batch} of {done.path}, and all state was read again and compared."
    yield f"{done.written} stores written; {done.kept} were there already."
    yield "Start the query with it as checkpointLocation, with the log configured, and no more with the old one."
