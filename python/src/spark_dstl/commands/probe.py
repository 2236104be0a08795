# SPDX-License-Identifier: Apache-2.0
"""`dstl probe`: what storage is like for the log of a query."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from spark_dstl import notation
from spark_dstl.checkpoint.locate import StorageOptions
from spark_dstl.commands import console
from spark_dstl.probing import exclusiveness, figures
from spark_dstl.probing.cost import Shape
from spark_dstl.probing.places import storage_at
from spark_dstl.probing.probe import (
    LARGEST_OBJECT,
    MOST_OBJECTS,
    Plan,
    Probe,
    Report,
    earlier_folders,
    removed_folder,
)
from spark_dstl.probing.storage import ProbedStorage

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
_PERCENTILES = {"p50": 500, "p90": 900, "p99": 990, "p99.9": 999}
_NAMED_ONE_BY_ONE = 5
_DEFAULTS = Plan()


def _size(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    size = notation.size_in_bytes(value)
    if size is None or not 1 <= size <= LARGEST_OBJECT:
        raise click.BadParameter(f"{value} is not a size from 1 to 16m, such as 512 or 64k")
    return size


def _number(name: str, default: int, most: int, text: str) -> Callable[[_Decorated], _Decorated]:
    return click.option(
        name, type=click.IntRange(1, most), default=default, show_default=True, metavar="NUMBER", help=text
    )


@click.command(
    epilog="""\b
Examples:
  dstl probe s3a://bucket/checkpoints
  dstl probe s3a://bucket/checkpoints --objects 1000 --partitions 64 --slots 16
  dstl probe /checkpoints --output json
  dstl probe s3a://bucket/checkpoints --remove-leftovers
"""
)
@console.reached
@click.argument("path")
@_number(
    "--objects", _DEFAULTS.objects, MOST_OBJECTS, "How many objects are written, and as many created, at most 10000."
)
@click.option(
    "--size",
    "object_bytes",
    default="16k",
    show_default=True,
    metavar="SIZE",
    callback=_size,
    help="The bytes of each, at most 16m.",
)
@_number("--concurrency", _DEFAULTS.concurrency, 64, "How many requests are under way at once, at most 64.")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 600),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How long a request of S3 may be silent; other clients use their own limits. It may take effect later.",
)
@_number(
    "--partitions",
    _DEFAULTS.shape.partitions,
    10_000,
    "Partitions of a query, for what it costs.",
)
@_number("--stores", _DEFAULTS.shape.stores, 16, "Its state stores in each partition: a stream-stream join has 4.")
@_number("--slots", _DEFAULTS.shape.slots, 10_000, "How many of its tasks run at once.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 86_400),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="Seconds from one of its batches to the next, for the cost of a month.",
)
@click.option(
    "--remove-leftovers",
    is_flag=True,
    help="Measure nothing: remove what earlier probes have left at PATH. No other probe may run there meanwhile.",
)
@console.report_option
def probe(
    path: str,
    storage: StorageOptions,
    objects: int,
    object_bytes: int,
    concurrency: int,
    timeout: float,
    partitions: int,
    stores: int,
    slots: int,
    interval: float,
    remove_leftovers: bool,
    output: str,
) -> None:
    """Measure the storage of PATH, a directory for checkpoints.

    The command writes, checks, reads, lists, creates and deletes small objects in the folder .dstl-probe-<random> below
    PATH, and removes the folder, also after an error or an interrupt. It names what it could not remove. It prints the
    percentiles of latencies, whether storage creates exclusively, and what a batch and a month of a stateful query cost
    with stock Spark and with the log.

    Storage creates exclusively if exactly one of several concurrent creates of one object succeeds. This is tested on
    local disks, on S3, and through Hadoop's clients, such as hdfs://; not on gs:// and abfs://, because pyarrow has no
    exclusive create. S3 needs pip install "spark-dstl[probe]".

    Exits with 5 if storage does not create exclusively, or if creates without an answer leave that unknown; with 1 if
    storage could not be measured, or something could not be removed.
    """
    place = storage_at(path, storage, timeout)
    here = console.same_place(path, None, storage)
    if remove_leftovers:
        _remove(place, output)
        return
    plan = Plan(objects, object_bytes, concurrency, Shape(partitions, stores, slots, interval))
    with console.ProgressLine() as progress:
        measuring = Probe(place, plan, progress=progress)
        try:
            report = measuring.run()
        finally:
            _name_what_stays(measuring.left_behind, here)
    console.print_report(output, _document(report), lambda: _lines(report, here))
    if measuring.left_behind:
        raise click.exceptions.Exit(1)
    if report.exclusive.verdict in (exclusiveness.NOT_EXCLUSIVE, exclusiveness.UNKNOWN):
        raise click.exceptions.Exit(console.NOT_EXCLUSIVE)


def _remove(place: ProbedStorage, output: str) -> None:
    removed, left = [], []
    for folder in earlier_folders(place):
        stayed = removed_folder(place, folder)
        left += [f"{place.shown}/{name}" for name in stayed]
        removed += [] if stayed else [f"{place.shown}/{folder}"]
    console.print_report(
        output,
        {"removed": removed, "left_behind": left},
        lambda: [f"removed {one}" for one in removed] if removed or left else ["Nothing was left by earlier probes."],
    )
    if left:
        _name_what_stays(left, None)
        raise click.exceptions.Exit(1)


def _name_what_stays(names: list[str], here: str | None) -> None:
    folders: dict[str, list[str]] = defaultdict(list)
    for name in names:
        folders[name.rpartition("/")[0]].append(name)
    for folder, inside in folders.items():
        # Where deletions are refused, it is all of them.
        for stays in inside if len(inside) <= _NAMED_ONE_BY_ONE else [f"{len(inside)} objects in {folder}"]:
            click.echo(f"could not be removed: {stays}", err=True)
    if names and here:
        click.echo(f"dstl probe {here} --remove-leftovers tries again", err=True)


def _document(report: Report) -> dict[str, Any]:
    plain = dataclasses.asdict(report)
    plain["series"] = [
        {
            "kind": one.kind,
            "requests": len(one.seconds),
            "unanswered": one.unanswered,
            **{
                f"{name.replace('.', '')}_seconds": figures.percentile(one.seconds, share)
                for name, share in _PERCENTILES.items()
            },
            "max_seconds": max(one.seconds, default=None),
        }
        for one in report.series
    ]
    return plain


def _lines(report: Report, here: str) -> Iterator[str]:
    plan = report.plan
    yield (
        f"{report.place}: {plan.objects} objects of {console.size(plan.object_bytes)}, "
        f"{plan.concurrency} requests at once"
    )
    yield ""
    yield from _table(report)
    yield ""
    yield f"Exclusive creation: {_VERDICTS[report.exclusive.verdict]}. {_sentence(report.exclusive.why)}"
    yield ""
    yield from _saved(report)
    yield from _left(report, here)


_VERDICTS = {
    exclusiveness.EXCLUSIVE: "yes",
    exclusiveness.NOT_EXCLUSIVE: "NO",
    exclusiveness.UNKNOWN: "unknown",
    exclusiveness.NOT_ASKED: "cannot be asked here",
}


def _table(report: Report) -> Iterator[str]:
    yield f"{'ms':<16}{'requests':>9}" + "".join(f"{name:>12}" for name in (*_PERCENTILES, "max", "unanswered"))
    missing = False
    for one in report.series:
        shares = [figures.percentile(one.seconds, share) for share in _PERCENTILES.values()]
        missing = missing or shares[-1] is None
        cells = [*map(_milliseconds, shares), _milliseconds(max(one.seconds, default=None)), str(one.unanswered)]
        yield f"{one.kind:<16}{len(one.seconds):>9}" + "".join(f"{cell:>12}" for cell in cells)
    if missing:
        few, most = figures.needed_for(990), figures.needed_for(999)
        yield f"- stands for too few requests: p99 takes {few} of a kind, p99.9 {most}, as of --objects {most}."


def _saved(report: Report) -> Iterator[str]:
    found, shape = report.saved, report.plan.shape
    yield (
        f"A batch with {shape.partitions} partitions of {shape.stores} stores on {shape.slots} slots waits for "
        f"{found.stock_requests} requests one after the other with stock Spark, directly written, and for "
        f"{found.log_requests} with the log."
    )
    stock, log, median = map(_milliseconds, (found.stock_median, found.log_median, found.saved_median))
    yield f"With median latencies that is {stock} ms against {log} ms: {median} ms saved."
    yield (
        f"A month of these batches, one every {shape.interval_seconds:g} s, makes {found.stock_requests_a_month:,} "
        f"requests with stock Spark and {found.log_requests_a_month:,} with the log; at S3's list prices "
        f"${found.stock_dollars_a_month:,.0f} and ${found.log_dollars_a_month:,.0f}."
    )


def _left(report: Report, here: str) -> Iterator[str]:
    if report.may_appear:
        yield ""
        yield f"{len(report.may_appear)} writes were not answered, and may take effect yet; look again later:"
        yield from report.may_appear
    if report.earlier:
        yield ""
        yield "Left by earlier probes, or in use by one that runs:"
        yield from report.earlier
    if report.may_appear or report.earlier:
        yield f"dstl probe {here} --remove-leftovers removes it."


def _milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    amount = seconds * 1000
    return f"{amount:.0f}" if amount >= 100 else f"{amount:.1f}" if amount >= 1 else f"{amount:.3f}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")
