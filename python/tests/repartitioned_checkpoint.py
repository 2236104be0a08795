# SPDX-License-Identifier: Apache-2.0
"""A checkpoint with two numbers of partitions in its history."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from written_checkpoint import Listed, WrittenCheckpoint, aged, zip_of

from spark_dstl.checkpoint.sparkfiles import OURS, PARTITIONS, PROVIDER

# The batch of the repartition.
MOVED = 3


@dataclass
class Repartitioned(WrittenCheckpoint):
    """A checkpoint whose entries of `offsets/` note the number of partitions."""

    provider: str = OURS

    def offsets(self, batch: int, source: str = '{"logOffset":0}') -> bytes:
        conf = {PROVIDER: self.provider, PARTITIONS: str(self.partitions)}
        content = f"v1\n{json.dumps({'batchWatermarkMs': 0, 'conf': conf})}\n{source}".encode()
        (self.root / f"offsets/{batch}").write_bytes(content)
        return content

    def repartition(self, batch: int, partitions: int) -> None:
        """Write the batch of a repartition."""
        self.partitions = partitions
        offsets = self.offsets(batch).decode()
        note = json.dumps({"repartition": 1, "partitions": partitions, "offsets": offsets})
        (self.root / f"commits/{batch}").write_text(f'v1\n{{"nextBatchWatermarkMs":0}}\n{note}\n')
        for partition in range(partitions):
            store = self.root / f"state/0/{partition}"
            store.mkdir(parents=True, exist_ok=True)
            (store / f"{batch + 1}.zip").write_bytes(zip_of({}))

    def later(self, batch: int) -> None:
        """Write a batch after it."""
        self.entry(batch, self.changes(batch), listed=Listed(since=batch, plain_up_to=MOVED + 1))


def repartitioned(root: Path, before: int, after: int, provider: str = OURS) -> Repartitioned:
    """Batches 0 to 5: 3 is a repartition, and later ones have the new number."""
    checkpoint = Repartitioned(root, partitions=before, provider=provider)
    checkpoint.begin().batches(range(MOVED))
    checkpoint.repartition(MOVED, after)
    for batch in range(MOVED + 1, 6):
        checkpoint.later(batch)
    aged(root)
    return checkpoint
