# SPDX-License-Identifier: Apache-2.0
"""`dstl probe`: measure storage for the log of a query."""

import dataclasses
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import click

from spark_dstl import notation
from spark_dstl.commands.console import NOT_EXCLUSIVE
from spark_dstl.commands.console.options import Command, Location, reached, report_option
from spark_dstl.commands.console.printing import print_report, size
from spark_dstl.commands.console.progress import ProgressLine
from spark_dstl.percentiles import PERCENTILES, percentile
from spark_dstl.probing import exclusiveness
from spark_dstl.probing.cost import ASSUMED_SECONDS, Saved, Shape, assumed
from spark_dstl.probing.places import storage_at
from spark_dstl.probing.probe import LARGEST_OBJECT, MOST_OBJECTS, Plan, Probe, Report, earlier_folders, removed_folder
from spark_dstl.probing.storage import ProbedStorage

_NAMED_ONE_BY_ONE = 5
# The figures of a query, and the largest of each.
_QUERY = {"partitions": 10_000, "stores": 16, "slots": 10_000, "batches-per-hour": 36_000}
_DEFAULTS = Plan()


def _size(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    count = notation.size_in_bytes(value)
    if count is None or not 1 <= count <= LARGEST_OBJECT:
        raise click.BadParameter(f"{value} is not a size from 1 to 16m, such as 512 or 64k")
    return count


def _number(name: str, default: int, most: int, text: str) -> Callable[[Command], Command]:
    limits = click.IntRange(1, most)
    return click.option(name, type=limits, default=default, show_default=True, metavar="NUMBER", help=text)


def _shape(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Shape | None:
    if value is None:
        return None
    given: dict[str, int] = {}
    for part in value.split(","):
        name, _, text = part.partition("=")
        number = int(text) if re.fullmatch(r"[0-9]{1,5}", text) else 0
        if not 1 <= number <= _QUERY.get(name, 0):
            limits = ", ".join(f"{name} up to {most}" for name, most in _QUERY.items())
            raise click.BadParameter(f"{part} is not NAME=NUMBER with one of {limits}")
        given[name] = number
    batches = given.pop("batches-per-hour", None)
    return Shape(**given) if batches is None else Shape(**given, interval_seconds=3600 / batches)


@click.command(
    epilog="""\b
Examples:
  dstl probe s3a://bucket/checkpoints
  dstl probe s3a://bucket/checkpoints --objects 1000 --query partitions=64,slots=16
  dstl probe --query partitions=64,stores=1,batches-per-hour=600
  dstl probe /checkpoints --output json
  dstl probe s3a://bucket/checkpoints --remove-leftovers
"""
)
@partial(reached, path_required=False)
@_number(
    "--objects",
    _DEFAULTS.objects,
    MOST_OBJECTS,
    "The number of objects to write, and as many to create, at most 10000.",
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
@_number("--concurrency", _DEFAULTS.concurrency, 64, "The number of concurrent requests, at most 64.")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 600),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest wait for an answer of S3; other clients have their own limits.",
)
@click.option(
    "--query",
    "shape",
    metavar="FIGURES",
    callback=_shape,
    help="The query whose cost is printed, by default partitions=200,stores=1,slots=16,batches-per-hour=360; omitted "
    "figures have that default. Stores are those of a partition: a stream-stream join has 4. Slots run tasks.",
)
@click.option(
    "--remove-leftovers",
    is_flag=True,
    help="Measure nothing: remove the leftovers of earlier probes at PATH. No other probe may run there meanwhile.",
)
@report_option
def probe(
    at: Location,
    objects: int,
    object_bytes: int,
    concurrency: int,
    timeout: float,
    shape: Shape | None,
    remove_leftovers: bool,
    output: str,
) -> None:
    """Measure the storage of PATH, a directory for checkpoints.

    The command writes, checks, reads, lists, creates and deletes small objects in the folder .dstl-probe-<random> below
    PATH, and removes the folder, also after an error or an interrupt. It names what it could not remove. It prints the
    percentiles of latencies, whether storage creates exclusively, and what a batch and a month of a stateful query cost
    with stock Spark and with the log. Without PATH it measures nothing, and prints the cost of --query for requests of
    40 ms.

    Storage creates exclusively if exactly one of several concurrent creates of one object succeeds. This is tested on
    local disks, on S3, and through Hadoop's clients, such as hdfs://; not on gs:// and abfs://, because pyarrow has no
    exclusive create. S3 needs pip install "spark-dstl[probe]".

    Exits with 5 if storage does not create exclusively, or if that is unknown, as after creates without an answer; with
    1 if storage could not be measured, or something could not be removed.
    """
    if not at.path:
        if shape is None or remove_leftovers:
            raise click.UsageError("Missing argument 'PATH'. Name it, or the --query whose cost is printed")
        cost = assumed(shape)
        print_report(output, dataclasses.asdict(cost), lambda: _assumed(cost))
        return
    place = storage_at(at.path, at.storage, timeout)
    if remove_leftovers:
        _remove(place, output)
        return
    plan = Plan(objects, object_bytes, concurrency, shape or _DEFAULTS.shape)
    with ProgressLine() as progress:
        measuring = Probe(place, plan, progress=progress)
        try:
            report = measuring.run()
        finally:
            _name_what_stays(measuring.left_behind, at)
    print_report(output, _document(report), lambda: _lines(report, at))
    if measuring.left_behind:
        raise click.exceptions.Exit(1)
    if report.exclusive.verdict in (exclusiveness.NOT_EXCLUSIVE, exclusiveness.UNKNOWN):
        raise click.exceptions.Exit(NOT_EXCLUSIVE)


def _remove(place: ProbedStorage, output: str) -> None:
    removed, left = [], []
    for folder in earlier_folders(place):
        stayed = removed_folder(place, folder)
        left += [f"{place.shown}/{name}" for name in stayed]
        removed += [] if stayed else [f"{place.shown}/{folder}"]
    print_report(
        output,
        {"removed": removed, "left_behind": left},
        lambda: [f"removed {one}" for one in removed] if removed or left else ["Nothing was left by earlier probes."],
    )
    if left:
        _name_what_stays(left, None)
        raise click.exceptions.Exit(1)


def _name_what_stays(names: list[str], at: Location | None) -> None:
    folders: dict[str, list[str]] = defaultdict(list)
    for name in names:
        folders[name.rpartition("/")[0]].append(name)
    for folder, inside in folders.items():
        # Storage may refuse every deletion.
        for stays in inside if len(inside) <= _NAMED_ONE_BY_ONE else [f"{len(inside)} objects in {folder}"]:
            click.echo(f"could not be removed: {stays}", err=True)
    if names and at:
        click.echo(f"dstl probe {at} --remove-leftovers tries again", err=True)


def _document(report: Report) -> dict[str, Any]:
    plain = dataclasses.asdict(report)
    plain["series"] = [
        {
            "kind": one.kind,
            "requests": len(one.seconds),
            "unanswered": one.unanswered,
            **{f"p{percent}_seconds".replace(".", ""): percentile(one.seconds, percent) for percent in PERCENTILES},
            "max_seconds": max(one.seconds, default=None),
        }
        for one in report.series
    ]
    return plain


def _lines(report: Report, at: Location) -> Iterator[str]:
    plan = report.plan
    yield (f"{report.place}: {plan.objects} objects of {size(plan.object_bytes)}, {plan.concurrency} requests at once")
    yield ""
    yield from _table(report)
    yield ""
    yield f"Exclusive creation: {_VERDICTS[report.exclusive.verdict]}. {_sentence(report.exclusive.why)}"
    yield ""
    yield from _saved(report.saved)
    yield from _left(report, at)


_VERDICTS = {
    exclusiveness.EXCLUSIVE: "yes",
    exclusiveness.NOT_EXCLUSIVE: "NO",
    exclusiveness.UNKNOWN: "unknown",
    exclusiveness.NOT_ASKED: "cannot be asked here",
}


def _table(report: Report) -> Iterator[str]:
    titles = [*(f"p{percent}" for percent in PERCENTILES), "max", "unanswered"]
    yield f"{'ms':<16}{'requests':>9}" + "".join(f"{title:>12}" for title in titles)
    missing = False
    for one in report.series:
        shares = [percentile(one.seconds, percent) for percent in PERCENTILES]
        missing = missing or shares[-1] is None
        cells = [*map(_milliseconds, shares), _milliseconds(max(one.seconds, default=None)), str(one.unanswered)]
        yield f"{one.kind:<16}{len(one.seconds):>9}" + "".join(f"{cell:>12}" for cell in cells)
    if missing:
        yield "- stands for too few requests: p99 takes 100 of a kind, p99.9 1000, as of --objects 1000."


def _assumed(found: Saved) -> Iterator[str]:
    yield from _saved(found)
    yield ""
    yield f"Each request takes {_milliseconds(ASSUMED_SECONDS)} ms here; dstl probe PATH measures those of a storage."


def _saved(found: Saved) -> Iterator[str]:
    shape = found.shape
    yield (
        f"A query with {shape.partitions} partitions of {shape.stores} {'store' if shape.stores == 1 else 'stores'}, "
        f"{shape.slots} slots and {3600 / shape.interval_seconds:g} batches an hour, with small changes:"
    )
    rows: list[tuple[str, object, object]] = [
        ("", "stock Spark*", "spark-dstl"),
        ("requests that a batch waits for", found.stock_requests, found.log_requests),
        ("ms of waiting, with medians", _milliseconds(found.stock_median), _milliseconds(found.log_median)),
        ("requests a month", f"{found.stock_requests_a_month:,}", f"{found.log_requests_a_month:,}"),
        ("list price on S3", f"${found.stock_dollars_a_month:,.0f}", f"${found.log_dollars_a_month:,.0f}"),
    ]
    for title, stock, log in rows:
        yield f"{title:<32}{stock:>14}{log:>14}"
    yield "* that writes each file directly under its name; its default writes two and renames"


def _left(report: Report, at: Location) -> Iterator[str]:
    if report.may_appear:
        yield ""
        yield f"{len(report.may_appear)} writes had no answer, and may take effect later:"
        yield from report.may_appear
    if report.earlier:
        yield ""
        yield "Left by earlier probes, or in use by one that runs:"
        yield from report.earlier
    if report.may_appear or report.earlier:
        yield f"dstl probe {at} --remove-leftovers removes it."


def _milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    amount = seconds * 1000
    return f"{amount:.0f}" if amount >= 100 else f"{amount:.1f}" if amount >= 1 else f"{amount:.3f}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")
