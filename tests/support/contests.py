# SPDX-License-Identifier: Apache-2.0
"""Queries of one operator that have run to their end, and rows of their state."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from shared_session import Contest, Operator, contender
from width_operators import OPERATORS


def played(spark: SparkSession, operator: Operator, work: Path, provider: str = "dstl", version: int = 1) -> Contest:
    """Run an operator's query in a session with that provider and checkpoint format."""
    contest = Contest(contender(spark, provider, version), operator, work)
    contest.run()
    return contest


def join_in(layout: int) -> Operator:
    """A join with its state in that format; Spark enables the fourth only in its own tests yet."""
    setting = "spark.sql.streaming.join.stateFormat"
    return replace(OPERATORS[1], confs={f"{setting}Version": str(layout), f"{setting}V4.enabled": "true"})


def rows_of(table: Any, *left_out: str) -> Counter[str]:
    """Rows in no order."""
    return Counter(
        repr(sorted((name, value) for name, value in row.items() if name not in left_out)) for row in table.to_pylist()
    )
