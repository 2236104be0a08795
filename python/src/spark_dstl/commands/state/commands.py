# SPDX-License-Identifier: Apache-2.0
"""`dstl state`, `dstl changes` and `dstl diff`: what is in the state, what a batch did to it, and what has changed."""

import click

from spark_dstl.checkpoint.java.gateway import JvmOptions
from spark_dstl.checkpoint.java.state import Selection
from spark_dstl.checkpoint.locate import StorageOptions
from spark_dstl.commands import console
from spark_dstl.commands.state.options import HELP, print_state, selecting

_BATCH = click.IntRange(min=0)


@click.command(
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
@console.located
@click.option("--batch", type=_BATCH, metavar="N", help="As of batch N. By default the newest.")
@selecting
@console.rows_options
def state(
    path: str,
    base_path: str | None,
    storage: StorageOptions,
    batch: int | None,
    selection: Selection,
    jvm: JvmOptions,
    form: str,
) -> None:
    """Show state; the help is above."""
    with console.opened(path, base_path, storage, jvm) as checkpoint:
        print_state(form, checkpoint.state(batch, selection))


@click.command(
    help=f"""Show what batch N changed in the state in the checkpoint at PATH.

A row for each change record: update for a value that was put, append for one that was added to those of its key (a
merge), delete. There may be several for a key.

{HELP}
""",
    epilog="""\b
Example:
  dstl changes s3a://bucket/checkpoints/clicks --batch 1041 --jars hadoop-aws-3.5.0.jar,bundle.jar
""",
)
@console.located
@click.option("--batch", type=_BATCH, required=True, metavar="N", help="The batch.")
@selecting
@console.rows_options
def changes(
    path: str,
    base_path: str | None,
    storage: StorageOptions,
    batch: int,
    selection: Selection,
    jvm: JvmOptions,
    form: str,
) -> None:
    """Show change records; the help is above."""
    with console.opened(path, base_path, storage, jvm) as checkpoint:
        print_state(form, checkpoint.changes(batch, selection))


@click.command(
    help=f"""Show in which rows the state as of batch M differs from that as of batch N, in the checkpoint at PATH.

A row for each key that was added, removed or changed, with its value before and after. Both states are rebuilt on local
disk meanwhile, one partition at a time.

{HELP}
""",
    epilog="""\b
Example:
  dstl diff /checkpoints/clicks 1040 1041
""",
)
@console.located
@click.argument("before", type=_BATCH, metavar="N")
@click.argument("after", type=_BATCH, metavar="M")
@selecting
@console.rows_options
def diff(
    path: str,
    base_path: str | None,
    storage: StorageOptions,
    before: int,
    after: int,
    selection: Selection,
    jvm: JvmOptions,
    form: str,
) -> None:
    """Show differences; the help is above."""
    with console.opened(path, base_path, storage, jvm) as checkpoint:
        print_state(form, checkpoint.diff(before, after, selection))
