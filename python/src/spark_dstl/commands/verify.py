# SPDX-License-Identifier: Apache-2.0
"""`dstl verify`: check a checkpoint."""

import dataclasses
from collections.abc import Iterator

import click

from spark_dstl.checkpoint.verification.content import CHANGELOGS, SNAPSHOTS, WITHOUT_CHECKSUM
from spark_dstl.checkpoint.verification.findings import Finding, Verification
from spark_dstl.commands.console import DAMAGED
from spark_dstl.commands.console.options import Location, located, report_option
from spark_dstl.commands.console.printing import print_report, size

_MOST = 50


@click.command(
    short_help="Find damage, and the newest batch without it.",
    epilog="""\b
Examples:
  dstl verify s3a://bucket/checkpoints/clicks
  dstl verify /checkpoints/clicks --deep --output json
""",
)
@located
@click.option("--deep", is_flag=True, help="Also read snapshots and changelogs that a restart does not need.")
@click.option("--leftovers", is_flag=True, help="List leftovers instead of their sum.")
@report_option
def verify(at: Location, deep: bool, leftovers: bool, output: str) -> None:
    """Find damage in the checkpoint at PATH, and the newest batch without it.

    The command reads what a restart replays: commit entries, and changelogs in data files. It also checks header, index
    and trailer of all entries and data files, what Spark wrote into commit entries and offsets/, the chain of entries,
    the existence and length of all objects that they name, the zips of snapshots with their lists of files, that each
    retained batch can be rebuilt, and that sources/ and the metadata and schemas in state/ are there and can be parsed.

    --deep reads every byte that an entry names, and plain files with a checksum of Spark. No store is opened: the
    content of SST files and the encoding of changelogs are not checked, and Spark keeps no checksums of sources/ and of
    the metadata in state/. If a query names several sources, a missing newest entry of one is found only with
    spark.sql.streaming.offsetLog.formatVersion=2.

    Exits with 3 if there is damage; then it prints each damage, the newest batch without damage, and the command
    that rolls back to it; if there is no such batch, the damaged objects to delete that a start writes anew. The
    command prints how many bytes it has not read, and "Intact" only if there are none. Leftovers, which no entry
    names, are no damage. Nothing is written. The query may run: an object that it deletes meanwhile is no damage,
    and a leftover may be an object that it is about to name.
    """
    with at.opened() as checkpoint:
        found = checkpoint.verify(deep)
    back = None if found.way_back is None else f"dstl rollback {at} --to {found.way_back}"
    document = dataclasses.asdict(found) | {"damaged": found.is_damaged, "way_back": back}
    print_report(output, document, lambda: _lines(found, at, back, leftovers))
    if found.is_damaged:
        raise click.exceptions.Exit(DAMAGED)


def _lines(found: Verification, at: Location, back: str | None, leftovers: bool) -> Iterator[str]:
    yield from _findings("damage", found.damages)
    for batch, why in list(found.lost.items())[:_MOST]:
        yield f"lost: batch {batch}: {why}"
    yield from _more("lost", len(found.lost))
    if found.leftovers:
        if leftovers:
            yield from (f"left over: {one.object}: {one.what}" for one in found.leftovers)
        else:
            objects = f"{len(found.leftovers)} object{'s' if len(found.leftovers) > 1 else ''}"
            yield f"left over: {objects}, {size(found.leftover_bytes)} (--leftovers lists them)"
        running = f"A query seems to run ({found.running}): it may be about to name them." if found.running else None
        yield running or f"Once the query is stopped, dstl gc {at} --dry-run lists what it would delete."
    yield from _findings("note", found.notes)
    counts = found.counts
    yield (
        f"Checked {counts.entries} commit entries, {counts.segments} changelogs and snapshots in them, "
        f"{counts.data_files} data files, {counts.snapshots} snapshots and {counts.stores} stores; "
        f"{size(counts.checked_bytes)} of data was read."
    )
    if found.unread:
        yield f"Not read: {_unread(found.unread)}."
    yield from _verdict(found, back)


def _unread(unread: dict[str, int]) -> str:
    words = {CHANGELOGS: "changelogs that a restart does not need", SNAPSHOTS: "snapshots"}
    read_by_deep = [f"{size(unread[kind])} of {word}" for kind, word in words.items() if kind in unread]
    parts = [f"{' and '.join(read_by_deep)} (--deep reads them)"] if read_by_deep else []
    if WITHOUT_CHECKSUM in unread:
        parts.append(f"{size(unread[WITHOUT_CHECKSUM])} of plain files, for which Spark keeps no checksum")
    return "; ".join(parts)


def _verdict(found: Verification, back: str | None) -> Iterator[str]:
    if any(one.later for one in found.damages):
        yield "A later release may have written what this one cannot read: verify with that before you change anything."
    is_whole = "is intact" if found.has_read_all else "has no damage in what was read"
    whole = "that is intact" if found.has_read_all else "without damage in what was read"
    if found.is_damaged and found.newest_undamaged is None:
        yield "DAMAGED. No batch is without damage: restore the checkpoint from a backup or older object versions."
        if found.in_the_way:
            yield "Or stop the query, delete what a start of the same query writes anew, and run dstl verify again:"
            yield from (f"  {name}" for name in found.in_the_way)
    elif found.is_damaged and back is None:
        yield f"DAMAGED. The newest batch, {found.newest_batch}, {is_whole}: the query can continue from it."
    elif found.is_damaged:
        if found.newest_undamaged == found.newest_batch:
            begun = f"but the query does not start: batch {found.lost_begun} was begun after it, and cannot run"
            yield f"DAMAGED. The newest batch, {found.newest_batch}, {is_whole}, {begun}."
        else:
            yield f"DAMAGED. The newest batch {whole} is {found.newest_undamaged}, of {found.newest_batch}."
        yield "Restore what is damaged from a backup or older object versions; or stop the query and roll back:"
        yield f"  {back}"
    elif found.newest_batch is None:
        yield "No damage found. No batch is committed yet."
    else:
        verdict = "Intact" if found.has_read_all else "No damage found in what was read"
        yield f"{verdict}. The newest batch is {found.newest_batch}."


def _findings(kind: str, findings: list[Finding]) -> Iterator[str]:
    for one in findings[:_MOST]:
        where = "" if one.offset is None else f" at offset {one.offset}"
        yield f"{kind}: {one.object}{where}: {one.what}"
    yield from _more(kind, len(findings))


def _more(kind: str, count: int) -> Iterator[str]:
    if count > _MOST:
        yield f"{kind}: {count - _MOST} more, which --output json lists"
