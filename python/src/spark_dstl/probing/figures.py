"""Figures of latencies: percentiles, a histogram, and what a hedge would make of them. In seconds throughout."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

# As `sparkdstl.log.request.RequestOptions` has them.
FEWEST_FOR_HEDGES = 20
HEDGE_FLOOR = 0.010

# Sums and differences of binary fractions are not exact.
_ROUNDING = 1e-9
_EDGES = tuple(step * 10.0**power for power in range(-6, 4) for step in (1, 2, 5))


@dataclass(frozen=True)
class Bar:
    """How many latencies are at least `from_seconds` and less than `to_seconds`."""

    from_seconds: float
    to_seconds: float
    count: int


def percentile(latencies: Sequence[float], per_mille: int) -> float | None:
    """Return the smallest latency that a share, in thousandths, of all do not exceed.

    None if that is the slowest of them: then there are too few to tell.
    """
    rank = _rank(len(latencies), per_mille)
    return None if rank >= len(latencies) else sorted(latencies)[max(rank, 1) - 1]


def needed_for(per_mille: int) -> int:
    """Return how many latencies there must be for this percentile to be told."""
    return -(-1000 // (1000 - per_mille))


def histogram(latencies: Sequence[float]) -> list[Bar]:
    """Return bars from the fastest to the slowest, whose edges are 1, 2 and 5 times powers of ten."""
    if not latencies:
        return []
    counts = [0] * (len(_EDGES) - 1)
    for latency in latencies:
        counts[min(max(bisect_right(_EDGES, latency) - 1, 0), len(counts) - 1)] += 1
    filled = [place for place, count in enumerate(counts) if count]
    return [Bar(_EDGES[place], _EDGES[place + 1], counts[place]) for place in range(filled[0], filled[-1] + 1)]


def hedge_after(latencies: Sequence[float], longest: float) -> float:
    """Return after how long a silence the log starts another attempt, where latencies are as these.

    That is the 95th percentile or twice the median, whichever is longer; at least 10 ms, and at most `longest`, which
    it is as long as fewer than 20 are known. Budgets are left out.
    """
    if len(latencies) < FEWEST_FOR_HEDGES:
        return longest
    return min(longest, max(HEDGE_FLOOR, slow(latencies)))


def slow(latencies: Sequence[float]) -> float:
    """Return what the log takes for slow, whatever the limits of that are."""
    ordered = sorted(latencies)
    half, most = (ordered[max(_rank(len(ordered), share), 1) - 1] for share in (500, 950))
    return max(most, 2 * half)


def hedged_percentile(latencies: Sequence[float], per_mille: int, after: float) -> float | None:
    """Return the percentile that remains if another attempt starts `after` seconds, and the first answer counts.

    Latencies of two attempts are taken to be independent of each other. None as with `percentile`.
    """
    if percentile(latencies, per_mille) is None:
        return None
    ordered = sorted(latencies)

    def slower(than: float) -> float:
        """Return the share of attempts that take longer."""
        return 1 - bisect_right(ordered, than + _ROUNDING) / len(ordered)

    share = 1 - per_mille / 1000
    instants = sorted({*ordered, *(after + latency for latency in ordered)})
    return next(at for at in instants if slower(at) * (slower(at - after) if at >= after else 1) <= share + _ROUNDING)


def _rank(count: int, per_mille: int) -> int:
    return -(-count * per_mille // 1000)
