# SPDX-License-Identifier: Apache-2.0
"""Pinned batches of real queries outlive what their query deletes, and only as long as they are pinned."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_dstl
from clicks import RETAIN_LITTLE, SNAPSHOTS, Clicks
from contests import rows_of
from settings import FORMAT_VERSION
from spark_facts import READABLE_FORMATS


@pytest.mark.parametrize("version", READABLE_FORMATS[-1:])
def test_a_pinned_batch_is_read_long_after_spark_has_purged_it(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    settings = {**RETAIN_LITTLE, **SNAPSHOTS, FORMAT_VERSION: str(version)}
    files = 60
    clicks = Clicks.create(spark, tmp_path / "query", files, settings)
    clicks.resume(2)
    # Snapshots are made in the background. Until each store has one, a pinned batch needs the entry of batch 0.
    clicks.resume_until(partial(can_do_without_batch_0, clicks), 1, "a store has no snapshot")
    with spark_dstl.open(str(clicks.checkpoint)) as checkpoint, checkpoint.pin() as pin:
        assert pin.batch == files - len(clicks.later) - 1
        before, pinned = (rows_of(checkpoint.state(batch).read_all()) for batch in (pin.batch - 1, pin.batch))
        clicks.resume_until_deleted(f"offsets/{pin.batch}", 6)
        clicks.resume_until_deleted("commits/0", 1)
        assert (clicks.checkpoint / f"commits/{pin.batch}").exists()
        assert rows_of(checkpoint.state(pin.batch).read_all()) == pinned != before
        assert not checkpoint.verify(deep=True).is_damaged
    assert not list((clicks.checkpoint / "dstl/epochs").glob("*.pin"))
    clicks.resume_until_deleted(f"commits/{pin.batch}", 5)
    clicks.check()


def can_do_without_batch_0(clicks: Clicks) -> bool:
    with spark_dstl.open(str(clicks.checkpoint)) as checkpoint:
        later = {row["partition"] for row in checkpoint.snapshots().to_pylist() if row["version"] > 1}
        return later == {row["partition"] for row in checkpoint.stores().to_pylist()}
