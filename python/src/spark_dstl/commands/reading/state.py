# SPDX-License-Identifier: Apache-2.0
"""`dstl state`, `dstl changes` and `dstl diff`: rows of state, changes of a batch, and differences of batches."""

import functools
from typing import Any

import click

from spark_dstl.checkpoint.java.state import Selection
from spark_dstl.commands.console.options import (
    NUMBER,
    Command,
    Location,
    java_process,
    located,
    rows_options,
    with_options,
)
from spark_dstl.commands.console.printing import print_rows

# Operators and partitions are counted in Java's ints.
_INT = click.IntRange(min=0, max=2**31 - 1)

# Part of the help of each command that shows rows of state.
# click does not wrap a paragraph after a line with a backspace alone.
HELP = """\b
Key and value are structs, with the types that Spark's state reader gives them.
If the selection has several schemas they are JSON: choose with --operator and --store,
which dstl ls PATH operators shows, and --column-family, which is a column of the rows.
A state variable of transformWithState is a column family.

A separate process with Spark's classes reads the state, without a Spark application: it takes Java 17 and PySpark.
The query may run: the batch is pinned while it is read, or read without a pin where nothing may be written. Storage
other than local disks needs its jars: --jars.
"""


def selecting(command: Command) -> Command:
    """Give a command the options for its rows and their form; it gets `selection` and `form`."""

    @functools.wraps(command)
    def run(
        *,
        operator: int | None,
        store: str | None,
        column_family: str | None,
        partition: int | None,
        where: str | None,
        **others: Any,
    ) -> Any:
        return command(selection=Selection(operator, store, column_family, partition, where), **others)

    return with_options(
        java_process(rows_options(run)),
        click.option("--operator", type=_INT, metavar="ID", help="Only of this operator."),
        click.option("--store", metavar="NAME", help='Only the store of this name; "" is the store without a name.'),
        click.option("--column-family", metavar="NAME", help="Only this column family or state variable."),
        click.option("--partition", type=_INT, metavar="P", help="Only of this partition."),
        click.option(
            "--where",
            metavar="CONDITION",
            help="Only rows for which this is true: Spark's SQL, such as \"key.page = '/' AND value.count > 10\".",
        ),
    )


@click.command(
    short_help="Show the rows of the state.",
    help=f"""Show the rows of the state in the checkpoint at PATH, as of the newest batch or of batch N.

{HELP}
""",
    epilog="""\b
Examples:
  dstl state /checkpoints/clicks
  dstl state /checkpoints/clicks --where "key.page = '/'" --format jsonl
  dstl state /checkpoints/clicks --batch 1041 --operator 0 --format parquet > state.parquet
""",
)
@located
@click.option("--batch", type=NUMBER, metavar="N", help="As of batch N. By default the newest.")
@selecting
def state(at: Location, batch: int | None, selection: Selection, form: str) -> None:
    """Show state; the help is above."""
    with at.opened() as checkpoint:
        print_rows(form, checkpoint.state(batch, selection))


@click.command(
    short_help="Show the changes of a batch to the state.",
    help=f"""Show the changes of batch N to the state in the checkpoint at PATH.

A row for each change record: update for a put value, append for a merge into the values of its key, delete. A key may
have several.

{HELP}
""",
    epilog="""\b
Example:
  dstl changes s3a://bucket/checkpoints/clicks --batch 1041 --jars hadoop-aws-3.5.0.jar,bundle.jar
""",
)
@located
@click.option("--batch", type=NUMBER, required=True, metavar="N", help="The batch.")
@selecting
def changes(at: Location, batch: int, selection: Selection, form: str) -> None:
    """Show change records; the help is above."""
    with at.opened() as checkpoint:
        print_rows(form, checkpoint.changes(batch, selection))


@click.command(
    short_help="Show the differences between two batches' states.",
    help=f"""Show the differences between the states as of batches N and M in the checkpoint at PATH.

A row for each added, removed or changed key, with its value before and after. The command rebuilds both states on local
disk, one partition at a time.

{HELP}
""",
    epilog="""\b
Example:
  dstl diff /checkpoints/clicks 1040 1041
""",
)
@located
@click.argument("before", type=NUMBER, metavar="N")
@click.argument("after", type=NUMBER, metavar="M")
@selecting
def diff(at: Location, before: int, after: int, selection: Selection, form: str) -> None:
    """Show differences; the help is above."""
    with at.opened() as checkpoint:
        print_rows(form, checkpoint.diff(before, after, selection))
