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
from spark_dstl.probing.advice import Shape
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
_BAR = 40
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
    help="How long a request of S3 may be silent; other clients have limits of their own. It may take effect later.",
)
@_number("--partitions", _DEFAULTS.shape.partitions, 10_000, "Of a query, for what a batch of it would save.")
@_number("--stores", _DEFAULTS.shape.stores, 16, "Its state stores in each partition: a stream-stream join has 4.")
@_number("--slots", _DEFAULTS.shape.slots, 10_000, "How many of its tasks run at once.")
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
    remove_leftovers: bool,
    output: str,
) -> None:
    """Measure the storage of PATH, a directory in which checkpoints are or will be.

    Small objects are written, asked for, read, listed, created exclusively and deleted, in a folder of their own below
    PATH, .dstl-probe-<random>, which is removed, also after errors and when interrupted; what could not be removed is
    named. Nothing else is touched. Printed are latencies and how they are spread, whether storage creates exclusively,
    what to set, and what a batch of a stateful query would save.

    Storage creates exclusively if of several creators of one object, all at once, just one wins each time. That is
    tried on local disks, S3, and what Hadoop's clients reach, such as hdfs://; gs:// and abfs:// are measured through
    pyarrow, which cannot ask for it. S3 needs pip install "spark-dstl[probe]".

    Exits with 5 if storage does not create exclusively, or creates went unanswered so that nobody knows; with 1 if it
    could not be measured, or something could not be removed.
    """
    place = storage_at(path, storage, timeout)
    here = console.same_place(path, None, storage)
    if remove_leftovers:
        _remove(place, output)
        return
    plan = Plan(objects, object_bytes, concurrency, Shape(partitions, stores, slots))
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
        lambda: [*(f"removed {folder}" for folder in removed)] or ["Nothing was left by earlier probes."],
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
            "histogram": [dataclasses.asdict(bar) for bar in figures.histogram(one.seconds)],
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
    for one in report.series:
        yield ""
        yield from _histogram(one.kind, one.seconds)
    yield ""
    yield f"Exclusive creation: {_VERDICTS[report.exclusive.verdict]}. {_sentence(report.exclusive.why)}"
    yield ""
    yield from _hedges(report)
    yield from _settings(report)
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


def _histogram(kind: str, seconds: list[float]) -> Iterator[str]:
    bars = figures.histogram(seconds)
    most = max((bar.count for bar in bars), default=1)
    for place, bar in enumerate(bars):
        span = f"{bar.from_seconds * 1000:g} to {bar.to_seconds * 1000:g} ms"
        # What is there is seen, however few.
        length = max(round(bar.count / most * _BAR), 1) if bar.count else 0
        yield f"{kind if place == 0 else '':<16}{span:>20}  {'#' * length} {bar.count}"


def _hedges(report: Report) -> Iterator[str]:
    for one in report.hedging:
        yield (
            f"Hedging {one.kind}: another attempt after {_milliseconds(one.after_seconds)} ms, of "
            f"{one.early_share:.1%} of the requests; {_tail(one.p99_seconds, one.hedged_p99_seconds)}"
        )
    if report.hedging:
        yield ""


def _tail(plain: float | None, hedged: float | None) -> str:
    if plain is None or hedged is None:
        return f"p99 takes {figures.needed_for(990)} requests."
    return f"p99 from {_milliseconds(plain)} to {_milliseconds(hedged)} ms, if attempts are independent."


def _settings(report: Report) -> Iterator[str]:
    for one in report.recommendations:
        if one.is_default:
            yield f"Keep {one.option} at {one.value}: {one.why}."
        else:
            yield f"SET {one.option}={one.value} (default {one.default}): {one.why}."


def _saved(report: Report) -> Iterator[str]:
    found, shape = report.saved, report.plan.shape
    yield (
        f"A batch with {shape.partitions} partitions of {shape.stores} stores on {shape.slots} slots waits for "
        f"{found.stock_requests} requests one after the other with stock Spark, directly written, and for "
        f"{found.log_requests} with the log."
    )
    stock, log = _milliseconds(found.stock_median), _milliseconds(found.log_median)
    median, most = _milliseconds(found.saved_median), _milliseconds(found.saved_p90)
    yield (
        f"In the median that is {stock} ms against {log} ms of storage: {median} ms saved, and more than {most} ms in "
        "one batch of ten."
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
