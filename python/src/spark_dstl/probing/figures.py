# SPDX-License-Identifier: Apache-2.0
"""Percentiles of latencies, in seconds."""

from collections.abc import Sequence


def percentile(latencies: Sequence[float], per_mille: int) -> float | None:
    """Return the smallest latency that a share of all, in thousandths, do not exceed.

    None if that is the slowest one: there are too few latencies for this percentile.
    """
    rank = -(-len(latencies) * per_mille // 1000)
    return None if rank >= len(latencies) else sorted(latencies)[max(rank, 1) - 1]


def needed_for(per_mille: int) -> int:
    """Return the number of latencies that this percentile needs."""
    return -(-1000 // (1000 - per_mille))
