# SPDX-License-Identifier: Apache-2.0
"""Pinned batches of real queries outlive what their query deletes, and only as long as they are pinned."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_dstl
from clicks import RETAIN_LITTLE, SNAPSHOTS, Clicks
from settings import FORMAT_VERSION
from spark_facts import READABLE_FORMATS

PINNED = 2


@pytest.mark.parametrize("version", READABLE_FORMATS[-1:])
def test_a_pinned_batch_is_read_long_after_spark_has_purged_it(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    settings = {**RETAIN_LITTLE, **SNAPSHOTS, FORMAT_VERSION: str(version)}
    clicks = Clicks.create(spark, tmp_path / "query", 40, settings)
    clicks.resume(PINNED + 1)
    entry = clicks.checkpoint / f"commits/{PINNED}"
    with spark_dstl.open(str(clicks.checkpoint)) as checkpoint, checkpoint.pin() as pin:
        assert pin.batch == PINNED
        states = {batch: sorted(map(str, checkpoint.state(batch).read_all().to_pylist())) for batch in (1, PINNED)}
        clicks.resume_until_deleted(f"offsets/{PINNED}", 6)
        clicks.resume_until_deleted("commits/0", 1)
        assert entry.exists()
        assert sorted(map(str, checkpoint.state(PINNED).read_all().to_pylist())) == states[PINNED]
        assert states[PINNED] != states[1]
        assert not checkpoint.verify(deep=True).is_damaged
    assert not list((clicks.checkpoint / "dstl/epochs").glob("*.pin"))
    clicks.resume_until_deleted(f"commits/{PINNED}", 5)
    clicks.check()
