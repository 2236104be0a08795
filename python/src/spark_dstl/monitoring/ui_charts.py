# SPDX-License-Identifier: Apache-2.0
"""The figures of the log that Spark's UI draws as charts, on the page of a query below "Structured Streaming"."""

from collections.abc import Mapping

SETTING = "spark.sql.streaming.ui.enabledCustomMetricList"
"""Spark reads it once, at its start."""

CHARTS = (
    "dstlBarrierWaitMs",
    "dstlCommitEntryWriteMs",
    "dstlBackPressureTimeMs",
    "dstlLogBytes",
    "dstlSnapshotBytes",
    "dstlReplayedBytes",
)
"""The barrier, back-pressure, the log and its snapshots, and recovery; see docs/metrics.md."""


def chart_settings(transform_with_state: bool, given: Mapping[str, object]) -> dict[str, str]:
    """Return the setting for the charts, after the charts that the settings `given` name.

    With the name of Spark's own provider there is no setting, because its queries do not report these figures.
    """
    if transform_with_state:
        return {}
    own = [name.strip() for name in str(given.get(SETTING) or "").split(",") if name.strip()]
    # Names are case-insensitive in Spark.
    missing = [name for name in CHARTS if name.lower() not in {named.lower() for named in own}]
    return {SETTING: ",".join([*own, *missing])}
