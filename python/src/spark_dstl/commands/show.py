# SPDX-License-Identifier: Apache-2.0
"""`dstl show`: a checkpoint on one screen."""

from collections.abc import Iterator
from datetime import datetime, timezone

import click

from spark_dstl.checkpoint.summary import Summary
from spark_dstl.commands.console.options import Location, located, report_option
from spark_dstl.commands.console.printing import fields, moment, print_report, size


@click.command(
    epilog="""\b
Example:
  dstl show s3a://bucket/checkpoints/clicks
"""
)
@located
@report_option
def show(at: Location, output: str) -> None:
    """Show the checkpoint at PATH on one screen.

    Its sizes and objects, its last commit and the run that made it, its newest claim, its oldest snapshot, its pins,
    and the reads of a restart. The newest claim is that of the run that started last, which may not have committed a
    batch, and may have ended. Nothing is written, and the query may run.
    """
    with at.opened() as checkpoint:
        found = checkpoint.summary()
    print_report(output, found, lambda: _lines(found, datetime.now(timezone.utc)))


def _lines(found: Summary, now: datetime) -> Iterator[str]:
    recovery = found.recovery
    yield from fields(
        (
            ("checkpoint", found.path),
            ("query", found.query),
            ("provider", found.provider),
            ("base path", found.base_path),
            ("stores", found.stores),
            ("batches", _batches(found)),
            ("last commit", _ago(found.committed_at, now)),
            ("committed by", _run(found.committed_epoch, found.committed_run, found.committed_host)),
            ("newest claim", _claim(found, now)),
            ("oldest snapshot", _oldest(found, now)),
            ("pins", _pins(found)),
            ("no snapshot", f"{found.stores_without_snapshot} stores" if found.stores_without_snapshot else None),
            ("damaged entries", f"{found.damaged_entries}; see dstl verify" if found.damaged_entries else None),
            (
                "a restart reads",
                f"{size(recovery.snapshot_bytes)} of snapshots, and {recovery.changelogs} changelogs of "
                f"{size(recovery.changelog_bytes)}, {recovery.longest} for the store with most",
            ),
        )
    )
    yield ""
    sized = [(kind, one.objects, one.bytes) for kind, one in found.sizes.items()]
    sized.append(("all", sum(objects for _, objects, _ in sized), sum(count for _, _, count in sized)))
    width = max(len(kind) for kind, _, _ in sized)
    for kind, objects, count in sized:
        yield f"{kind:<{width}}  {objects:>8} objects  {size(count):>10}"


def _batches(found: Summary) -> str:
    if found.newest_batch is None:
        return "none committed"
    under_way = "" if found.begun_batch in (None, found.newest_batch) else f"; batch {found.begun_batch} has begun"
    retained = found.oldest_retained_batch
    kept = "" if retained is None else f", state retained from {retained} on"
    return f"{found.oldest_batch} to {found.newest_batch}{kept}{under_way}"


def _ago(when: datetime | None, now: datetime) -> str | None:
    if when is None:
        return None
    seconds = max(int((now - when).total_seconds()), 0)
    units = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    length, unit = next((one for one in units if seconds >= 2 * one[0]), units[-1])
    return f"{moment(when)}, {seconds // length} {unit} ago"


def _run(epoch: int | None, run: str | None, host: str | None) -> str | None:
    return None if epoch is None else f"epoch {epoch}, " + (f"run {run} on {host}" if run else "which cannot be read")


def _claim(found: Summary, now: datetime) -> str:
    claim = _run(found.claim_epoch, found.claim_run, found.claim_host)
    if claim is None:
        return "none: no run with the log has begun"
    if found.committed_epoch == found.claim_epoch:
        committed = "it has committed the newest batch"
    elif found.committed_epoch is None and found.newest_batch is not None:
        committed = "the newest batch names no run"
    else:
        committed = "no batch of it is committed"
    return f"{claim}, since {_ago(found.claimed_at, now)}; {committed}"


def _pins(found: Summary) -> str | None:
    if not found.pins:
        return None
    until = f"; the last ends {moment(found.last_pin_ends_at)}" if found.last_pin_ends_at else ""
    return f"{found.pins}, of batch {found.oldest_pinned_batch} and later{until}"


def _oldest(found: Summary, now: datetime) -> str | None:
    if found.oldest_snapshot is None:
        return None
    return f"version {found.oldest_snapshot}, of {_ago(found.oldest_snapshot_at, now)}"
