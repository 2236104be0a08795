"""Writing planned objects to a target, and comparing them."""

from __future__ import annotations

from collections.abc import Sequence

from spark_dstl.checkpoint.export.plan import Planned
from spark_dstl.checkpoint.export.target import Target
from spark_dstl.checkpoint.survey import Progress
from spark_dstl.errors import DstlError


def write_missing(target: Target, plan: Sequence[Planned], progress: Progress) -> tuple[int, int]:
    """Write the objects that are missing or have another length; return their number and bytes."""
    there = {stored.name: stored.size for stored in target.objects(recursive=True)}
    written = total = 0
    for done, one in enumerate(plan, start=1):
        if there.get(one.name) != one.source.size:
            target.write(one.name, one.source.pieces())
            written += 1
            total += one.source.size
        progress("Writing objects", done, len(plan))
    return written, total


def check(target: Target, plan: Sequence[Planned], progress: Progress) -> None:
    """Compare every object. One that an interrupted try left in full length with other bytes is written again."""
    for done, one in enumerate(plan, start=1):
        if not target.has(one.name, one.source.pieces()):
            target.write(one.name, one.source.pieces())
            if not target.has(one.name, one.source.pieces()):
                raise DstlError(
                    f"{target.shown(one.name)} is not what was written to it. Check the storage; do not use what is at "
                    f"{target.place.shown}"
                )
        progress("Reading what was written", done, len(plan))
