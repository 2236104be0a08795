# SPDX-License-Identifier: Apache-2.0
"""`dstl export`: a checkpoint for stock Spark."""

from collections.abc import Iterator

import click

from spark_dstl.checkpoint.export.export import Exported
from spark_dstl.commands.console.options import Location, located, report_option, stopped_option
from spark_dstl.commands.console.printing import print_report, size


@click.command(
    short_help="Export a checkpoint that stock Spark continues.",
    help="""Export the checkpoint at PATH, whose query is stopped, to one at TARGET that stock Spark continues.

Changelogs and snapshots become plain files in Spark's layout, commit entries lose their log, and the provider that the
checkpoint names is Spark's own RocksDB provider. The newest batch is exported, with the unbroken run of retained
batches before it that can be rebuilt, so TARGET may be as large as the log and its snapshots. Of the checkpoint at PATH
all data are read, and only a pin is written. Then start the query with TARGET as its checkpointLocation, without
provider class and file manager of this package, and with
spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled=true.

A batch that was begun runs again. If its sink has its output and skips it, as file sinks and Delta's do, stock Spark
lacks its state and stops at the next batch: let the query at PATH commit it before the export.

An interrupted export can be repeated, and continues. At the end every object of TARGET is read again and compared.

An export is needed for a query that began with DstlStateStoreProvider, which Spark pins. A query that began with
Spark's own provider can instead run some batches with the log off (docs/operations.md). For another release of this
package start the query with it on the same checkpoint; to move a checkpoint, move or copy its directory.

Refused with exit code 1 if the newest batch cannot be rebuilt or TARGET has other objects, and with 4 if a query
seems to run.
""",
    epilog="""\b
Example:
  dstl export s3a://bucket/checkpoints/clicks s3a://bucket/checkpoints/clicks-stock
""",
)
@located
@click.argument("target")
@stopped_option
@report_option
def export(at: Location, target: str, stopped: bool, output: str) -> None:
    """Export; the help is above."""
    with at.opened() as checkpoint:
        done = checkpoint.export(target, stopped)
    print_report(output, done, lambda: _lines(done))


def _lines(done: Exported) -> Iterator[str]:
    first, last = done.batches[0], done.batches[-1]
    yield f"{done.target} has batches {first} to {last} of {done.path}, and every object of it was compared."
    yield f"{done.written} objects written, {size(done.bytes)}; {done.kept} were there already."
    if done.begun is not None:
        yield f"Batch {done.begun} was begun and is not committed: it runs again. If its sink has its output and skips"
        yield f"it (files, Delta), stock Spark lacks its state: let {done.path} commit it, and name a new TARGET then."
    for batch, why in sorted(done.left_out.items()):
        what = "which cannot be rebuilt" if batch <= done.newest else "which the query runs again"
        yield f"left out batch {batch}, {what}: {why}"
