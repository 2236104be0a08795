# SPDX-License-Identifier: Apache-2.0
"""`dstl watch`: the figures of running queries."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import chain, count

import click

from spark_dstl.commands.console.keys import Left, keyboard, sleep
from spark_dstl.errors import NotWatchable
from spark_dstl.monitoring.live_view import Board
from spark_dstl.monitoring.sources import Sample, Source, source_of

# A driver does not answer during a long garbage collection.
_PATIENCE = 3


@click.command(
    short_help="Show the figures of running queries.",
    epilog="""\b
Examples:
  dstl watch http://localhost:4040
  dstl watch /var/log/clicks.jsonl
  dstl watch --once --output json http://localhost:4040 | jq .figures.log_bytes

\b
Exit codes: 0 left by q or Ctrl-C, or done with --once; 1 PLACE cannot be read, is no UI with
figures of the log, or is a file with other lines; 2 the command line is wrong.
""",
)
@click.argument("place")
@click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="On a terminal text is a live view, otherwise a line for each sample; json is a line with an object for each.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1, max=3600),
    default=2,
    show_default=True,
    metavar="SECONDS",
    help="The time between two samples.",
)
@click.option("--once", is_flag=True, help="Print the newest sample of each query or process, and end.")
def watch(place: str, output: str, interval: float, once: bool) -> None:
    """Show the figures of queries with the log, from PLACE, until q or Ctrl-C.

    PLACE is the address of a driver's UI, or a file with a line of JSON for each batch: the progress of queries, as
    spark_dstl.MetricsListener(progress_file=...) writes it. A UI has the figures of the driver's process, over all its
    queries, and needs no setting of Spark.
    """
    show = _as_json if output == "json" else _as_line
    try:
        with source_of(place) as source:
            if output == "text" and not once and sys.stdout.isatty():
                with keyboard() as wait:
                    _live(polled(source, interval, wait or sleep, once), "q: leave" if wait else "Ctrl-C: leave")
            else:
                for sample in chain.from_iterable(polled(source, interval, sleep, once)):
                    click.echo(show(sample))
    except (KeyboardInterrupt, Left):
        return
    except BrokenPipeError:
        # Python would report the closed pipe again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def polled(source: Source, interval: float, wait: Callable[[float], None], once: bool) -> Iterator[list[Sample]]:
    """Yield new samples: forever, or once the newest ones. A source that has answered before may fail some times."""
    failed = 0
    for number in count():
        try:
            samples = source.poll()
            failed = 0
        except NotWatchable:
            failed += 1
            if number < failed or failed > _PATIENCE:
                raise
            samples = []
        yield list({sample.of: sample for sample in samples}.values()) if once else samples
        if once:
            return
        wait(interval)


def _live(rounds: Iterator[list[Sample]], hint: str) -> None:
    board = Board(hint)
    from rich.live import Live

    with Live(board.show(), auto_refresh=False) as live:
        for samples in rounds:
            for sample in samples:
                board.add(sample)
            live.update(board.show(), refresh=True)


def _as_line(sample: Sample) -> str:
    figures = " ".join(f"{name}={value}" for name, value in sample.figures.items() if value is not None)
    return f"{sample.at:%Y-%m-%dT%H:%M:%SZ} {sample.of} {figures}"


def _as_json(sample: Sample) -> str:
    return json.dumps({"of": sample.of, "at": sample.at.isoformat(), "figures": sample.figures}, ensure_ascii=False)
