# SPDX-License-Identifier: Apache-2.0
"""Which of the log's figures Spark's UI draws as charts, on the page of a query below "Structured Streaming"."""

from collections.abc import Mapping

SETTING = "spark.sql.streaming.ui.enabledCustomMetricList"
"""Read once, when Spark starts."""

CHARTS = (
    "dstlBarrierWaitMs",
    "dstlCommitEntryWriteMs",
    "dstlBackPressureTimeMs",
    "dstlLogBytes",
    "dstlSnapshotBytes",
    "dstlReplayedBytes",
)
"""The barrier, back-pressure, the log and its snapshots, and recovery; docs/metrics.md says what each means."""


def chart_settings(transform_with_state: bool, given: Mapping[str, object]) -> dict[str, str]:
    """Return the setting that makes Spark draw the charts, beside those that the settings `given` name already.

    Nothing is to be set for queries under the name of Spark's own provider, which has no such figures.
    """
    if transform_with_state:
        return {}
    own = [name.strip() for name in str(given.get(SETTING) or "").split(",") if name.strip()]
    # Spark does not look at the case of names.
    missing = [name for name in CHARTS if name.lower() not in {named.lower() for named in own}]
    return {SETTING: ",".join([*own, *missing])}
