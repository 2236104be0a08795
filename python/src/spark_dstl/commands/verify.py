# SPDX-License-Identifier: Apache-2.0
"""`dstl verify`: check a checkpoint."""

import dataclasses
from collections.abc import Iterator

import click

from spark_dstl.checkpoint.verification.findings import Finding, Verification
from spark_dstl.commands.console import DAMAGED
from spark_dstl.commands.console.options import Location, located, report_option
from spark_dstl.commands.console.printing import print_report, size

_MOST = 50


@click.command(
    epilog="""\b
Examples:
  dstl verify s3a://bucket/checkpoints/clicks
  dstl verify /checkpoints/clicks --deep --output json
"""
)
@located
@click.option("--deep", is_flag=True, help="Read and check every byte that a commit entry names.")
@report_option
def verify(at: Location, deep: bool, output: str) -> None:
    """Check the checkpoint at PATH, and print the newest intact batch.

    The command checks the checksums of commit entries and data files (header, index, trailer), the chain of entries,
    the existence and length of all objects that they name, the zips of snapshots with their lists of files, and that
    each retained batch can be rebuilt: from a snapshot and an unbroken chain of changelogs after it.

    --deep also reads all data: every segment, in entries and data files; the content of snapshots' zips; plain files
    with a checksum of Spark; offsets/. No store is opened: the content of SST files, the encoding of changelogs,
    sources/ and the schemas in state/ are not checked.

    Exits with 3 if there is damage; then it prints each damage, the newest intact batch, and the command that rolls
    back to it. Leftovers, which no entry names, are no damage. Nothing is written. The query may run: an object that it
    deletes meanwhile is no damage, and a leftover may be an object that it is about to name.
    """
    with at.opened() as checkpoint:
        found = checkpoint.verify(deep)
    back = None if found.way_back is None else f"dstl rollback {at} --to {found.way_back}"
    document = dataclasses.asdict(found) | {"intact": found.is_intact, "way_back": back}
    print_report(output, document, lambda: _lines(found, at, back))
    if not found.is_intact:
        raise click.exceptions.Exit(DAMAGED)


def _lines(found: Verification, at: Location, back: str | None) -> Iterator[str]:
    yield from _findings("damage", found.damages)
    for batch, why in list(found.lost.items())[:_MOST]:
        yield f"lost: batch {batch}: {why}"
    yield from _more("lost", len(found.lost))
    yield from _findings("left over", found.leftovers)
    if found.leftovers:
        running = f"A query seems to run ({found.running}): it may be about to name them." if found.running else None
        yield running or f"Once the query is stopped, dstl gc {at} --dry-run lists what it would delete."
    yield from _findings("note", found.notes)
    counts = found.counts
    checked = f", {size(counts.checked_bytes)} of data" if found.deep else ""
    yield (
        f"Checked {counts.entries} commit entries, {counts.segments} changelogs and snapshots in them, "
        f"{counts.data_files} data files, {counts.snapshots} snapshots and {counts.stores} stores{checked}."
    )
    yield from _verdict(found, back)


def _verdict(found: Verification, back: str | None) -> Iterator[str]:
    if found.newest_batch is None and found.is_intact:
        yield "No batch is committed yet."
    elif found.is_intact:
        yield f"Intact. The newest batch is {found.newest_batch}."
    elif found.newest_intact is None:
        yield "DAMAGED. No batch is intact: restore the checkpoint from a backup or older object versions."
    elif back is None:
        yield f"DAMAGED. The newest batch, {found.newest_batch}, is intact: the query can continue from it."
    else:
        yield f"DAMAGED. The newest batch that is intact is {found.newest_intact}, of {found.newest_batch}."
        yield "Restore what is damaged from a backup or older object versions; or stop the query and roll back:"
        yield f"  {back}"


def _findings(kind: str, findings: list[Finding]) -> Iterator[str]:
    for one in findings[:_MOST]:
        where = "" if one.offset is None else f" at offset {one.offset}"
        yield f"{kind}: {one.object}{where}: {one.what}"
    yield from _more(kind, len(findings))


def _more(kind: str, count: int) -> Iterator[str]:
    if count > _MOST:
        yield f"{kind}: {count - _MOST} more, which --output json lists"
