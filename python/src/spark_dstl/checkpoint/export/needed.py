# SPDX-License-Identifier: Apache-2.0
"""What batches need of the state in a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.format.model import Segment
from spark_dstl.checkpoint.format.names import SNAPSHOT, SNAPSHOT_FILE
from spark_dstl.checkpoint.verification.findings import SegmentKey, key_of
from spark_dstl.checkpoint.verification.verify import Judged


class Needed:
    """Selects what rebuilds some successive batches, without snapshots that cannot be loaded.

    Stock Spark loads the newest plain snapshot up to a version, whatever the commit entries name.
    """

    def __init__(self, judged: Judged, batches: Sequence[int], begun: Sequence[int]) -> None:
        """`batches` are committed; `begun` are those after them that run again as they were begun."""
        self._look = judged.look
        versions = range(batches[0] + 1, batches[-1] + 2)
        self._upto = versions[-1]
        self._last = max((*batches, *begun))
        found = {store: [one.bases[of] for of in versions if of in one.bases] for store, one in judged.rebuilt.items()}
        # A store without a version was left by a repartition.
        self._bases = {store: min(bases) for store, bases in found.items() if bases}

    def segments(self, batch: int, segments: Iterable[Segment]) -> list[Segment]:
        """Return those of the segments in the entry of `batch` that are needed."""
        there = [one for one in segments if one.store in self._bases]
        zips = [key_of(batch, one) for one in there if one.kind == SNAPSHOT and self._is_loaded(batch, one)]
        snapshots: set[SegmentKey] = {*zips, *(file for zipped in zips for file in self._look.listed[zipped])}
        return [
            one
            for one in there
            if (
                key_of(batch, one) in snapshots
                if one.kind in (SNAPSHOT, SNAPSHOT_FILE)
                else self._bases[one.store] < one.version <= self._upto
            )
        ]

    def _is_loaded(self, batch: int, zipped: Segment) -> bool:
        # Of a snapshot that several entries have, one was checked.
        key = key_of(batch, zipped)
        return zipped.version >= self._bases[zipped.store] and key in self._look.listed and self._look.loads(key)

    def is_kept(self, path: str) -> bool:
        """Whether the plain file at this path below `state/` does not harm the batches."""
        directory, _, last = path.rpartition("/")
        if directory.endswith("/_metadata/v2"):
            return (names.number(last) or 0) <= self._last
        plain = names.plain_file(path)
        if plain is None or plain.kind != SNAPSHOT:
            return True
        facts = self._look.survey.of(plain.store)
        is_state = plain.version <= self._upto and (plain.version, plain.id) in facts.zips
        return is_state and (plain.store, plain.version, plain.id) not in self._look.unusable_zips
