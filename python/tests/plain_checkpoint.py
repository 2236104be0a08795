# SPDX-License-Identifier: Apache-2.0
"""Writes checkpoints of Spark's own providers."""

import json
from pathlib import Path
from typing import Any

from spark_dstl.checkpoint.sparkfiles import PARTITIONS, PROVIDER

QUERY = "aaaaaaaa-0000-4000-8000-000000000001"


class PlainCheckpoint:
    """A checkpoint with batches 0 to 2 in two partitions, without the content of its state."""

    def __init__(self, root: Path, provider: str) -> None:
        self.root = root
        self._provider = provider
        self.put("metadata", json.dumps({"id": QUERY}))
        for batch in range(3):
            self.offsets(batch)
            self.put(f"commits/{batch}", 'v1\n{"nextBatchWatermarkMs":7}')
        self.operator(0, "stateStoreSave")

    def put(self, name: str, content: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def remove(self, *names: str) -> None:
        for name in names:
            (self.root / name).unlink()

    def offsets(self, batch: int, **conf: Any) -> None:
        """Write a batch's offsets; `conf` adds to what they pin of the session, replaces or, by None, removes it."""
        settings = {PROVIDER: self._provider, PARTITIONS: "2", **conf}
        pinned = {key: value for key, value in settings.items() if value is not None}
        line = json.dumps({"batchWatermarkMs": 0, "conf": pinned})
        self.put(f"offsets/{batch}", f'v1\n{line}\n{{"logOffset":{batch}}}')

    def operator(self, number: int, name: str, store: str = "default", key: str = '{"name":"key"}') -> None:
        stores = [{"storeName": store, "numColsPrefixKey": 0, "numPartitions": 2}]
        line = json.dumps({"operatorInfo": {"operatorId": number, "operatorName": name}, "stateStoreInfo": stores})
        self.put(f"state/{number}/_metadata/metadata", f"v1\n{line}")
        self.put(f"state/{number}/0/_metadata/schema", f'{{"fields":[{key}]}}{{"fields":[]}}')
        for partition in range(2):
            self.put(f"state/{number}/{partition}/3.delta", "")
