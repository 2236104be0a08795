# SPDX-License-Identifier: Apache-2.0
"""`dstl pin` and `dstl unpin`: keep what a batch needs for later reads."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import click

from spark_dstl.checkpoint import rows
from spark_dstl.checkpoint.pins import Pin, create_pin, end_pin, pins_of, was_ended
from spark_dstl.commands.console.options import NUMBER, Location, located, report_option
from spark_dstl.commands.console.printing import moment, print_report
from spark_dstl.notation import milliseconds
from spark_dstl.options import all_options

# A pin is shown with its end, and Python has no dates after the year 9999.
_LONGEST = timedelta(days=36_500)
_LIMIT = next(option for option in all_options() if option.key == "pins.maxDuration")


class _Duration(click.ParamType):  # type: ignore[type-arg]
    """A length of time in Spark's notation."""

    name = "duration"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        millis = milliseconds(value)
        if millis is None or not 1000 <= millis <= _LONGEST // timedelta(milliseconds=1):
            limits = f"a second or more, up to {_LONGEST.days}d"
            self.fail(f"{value} is not a duration of {limits}, such as 90s, 30min or 2h", param, ctx)
        return timedelta(milliseconds=millis)


@click.command(
    short_help="Keep what a batch needs for later reads.",
    epilog="""\b
Examples:
  dstl pin /checkpoints/clicks --for 2h
  dstl pin s3a://bucket/checkpoints/clicks --batch 1041 --for 30min
""",
)
@located
@click.option("--batch", type=NUMBER, metavar="N", help="The batch. By default the newest.")
@click.option(
    "--for", "lasts", type=_Duration(), default="1h", show_default=True, metavar="TIME", help="How long it is kept."
)
@report_option
def pin(at: Location, batch: int | None, lasts: timedelta, output: str) -> None:
    """Pin batch N in the checkpoint at PATH: its query keeps the log from there on, and what its state is rebuilt from.

    Without a pin a query deletes what Spark does not retain (spark.sql.streaming.minBatchesToRetain, 100 batches by
    default). The time runs from when the query sees the pin, at most for its option pins.maxDuration, a day by default.
    dstl state, changes, diff and export pin what they read by themselves. A small object is written, and the query may
    run.
    """
    with at.opened() as checkpoint:
        made = create_pin(checkpoint, batch, lasts)
        stored = checkpoint.storage.look(made.object_name)
    if stored is None:
        raise was_ended(checkpoint, made)
    timed = replace(made, pinned_at=stored.modified)
    print_report(output, rows.of_pin(timed), lambda: _lines(timed, at))


def _lines(made: Pin, at: Location) -> Iterator[str]:
    until = f" until {moment(made.ends_at)}" if made.ends_at else ""
    yield f"Batch {made.batch} is pinned{until}, with all later batches."
    if made.lasts > timedelta(milliseconds=milliseconds(_LIMIT.default or "") or 0):
        yield f"Its query ends the pin before, after its option {_LIMIT.key}: {_LIMIT.default_text} by default."
    yield f"To end it before: dstl unpin {at} {made.name}"


@click.command(
    short_help="End pins.",
    epilog="""\b
Examples:
  dstl unpin /checkpoints/clicks --batch 1041
  dstl unpin /checkpoints/clicks --all
""",
)
@located
@click.argument("pin", required=False)
@click.option("--batch", type=NUMBER, metavar="N", help="All pins of batch N.")
@click.option("--all", "every", is_flag=True, help="All pins, also those of readers that read now.")
@report_option
def unpin(at: Location, pin: str | None, batch: int | None, every: bool, output: str) -> None:
    """End a pin, or several, in the checkpoint at PATH; dstl ls PATH pins shows them.

    The query deletes what only these pins have kept after its next batches. It may run.
    """
    if (pin is not None) + (batch is not None) + every != 1:
        raise click.UsageError("name a PIN, or use --batch N, or --all")
    with at.opened() as checkpoint:
        wanted = (
            [pin]
            if pin is not None
            else [one.name for one in pins_of(checkpoint.storage) if every or one.batch == batch]
        )
        ended = [name for name in wanted if end_pin(checkpoint, name)]
    print_report(output, {"ended": ended}, lambda: [f"{len(ended)} pins ended." if ended else "There was no such pin."])
