"""What measured latencies mean for the options of the log, and for a batch."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_dstl import notation
from spark_dstl.options import all_options
from spark_dstl.probing import exclusiveness
from spark_dstl.probing.exclusiveness import Exclusiveness
from spark_dstl.probing.figures import FEWEST_FOR_HEDGES, hedge_after, hedged_percentile, percentile, slow

# The longest answer is to fit into the deadline so many times: an attempt that failed late is made again.
_ANSWERS_IN_A_DEADLINE = 20
_BATCHES = 400


@dataclass(frozen=True)
class Recommendation:
    """A value for an option of the log, which is its default unless something measured speaks against that."""

    option: str
    value: str
    default: str
    why: str

    @property
    def is_default(self) -> bool:
        """Whether nothing has to be set."""
        return self.value == self.default


@dataclass(frozen=True)
class Hedging:
    """What hedges make of one kind of request: another attempt after `after_seconds`, the first answer counts.

    `early_share` (0 to 1) of the requests get one. The 99th percentiles are None where there are too few requests.
    """

    kind: str
    after_seconds: float
    early_share: float
    p99_seconds: float | None
    hedged_p99_seconds: float | None


@dataclass(frozen=True)
class Shape:
    """A query: its partitions, its stores in each of them, and the slots in which its tasks run."""

    partitions: int = 200
    stores: int = 1
    slots: int = 16


@dataclass(frozen=True)
class Saved:
    """What storage takes of a batch, in seconds: with stock Spark, with the log, and what lies between.

    Percentiles of batches that are put together from the measured latencies at random.
    """

    shape: Shape
    stock_requests: int
    log_requests: int
    stock_median: float
    log_median: float
    saved_median: float
    saved_p90: float


def hedging(series: Mapping[str, Sequence[float]]) -> list[Hedging]:
    """Return what hedges make of each kind of request; of those that are too few to hedge by nothing."""
    return [_hedged(kind, latencies) for kind, latencies in series.items() if len(latencies) >= FEWEST_FOR_HEDGES]


def _hedged(kind: str, latencies: Sequence[float]) -> Hedging:
    after = hedge_after(latencies, _default_seconds("upload.timeout"))
    early = sum(latency > after for latency in latencies) / len(latencies)
    return Hedging(kind, after, early, percentile(latencies, 990), hedged_percentile(latencies, 990, after))


def recommendations(series: Mapping[str, Sequence[float]], exclusive: Exclusiveness) -> list[Recommendation]:
    """Return values for the options that the latencies of storage, or whether it is exclusive, have to do with."""
    return [
        _retry_policy(),
        _upload_timeout(series),
        _commit_timeout(series),
        _exclusive(exclusive),
    ]


def _retry_policy() -> Recommendation:
    return _kept(
        "upload.retryPolicy",
        "it follows the latencies that it sees, and makes at most one early attempt in ten requests",
    )


def _upload_timeout(series: Mapping[str, Sequence[float]]) -> Recommendation:
    option = "upload.timeout"
    default = _default_seconds(option)
    known = {kind: slow(latencies) for kind, latencies in series.items() if len(latencies) >= FEWEST_FOR_HEDGES}
    if not known:
        return _kept(option, f"fewer than {FEWEST_FOR_HEDGES} requests of a kind say nothing")
    kind, longest = max(known.items(), key=lambda one: one[1])
    if longest <= default:
        return _kept(
            option, f"it is the upper bound of hedges, which begin after {_words(longest)} at most here ({kind})"
        )
    return Recommendation(
        option,
        f"{math.ceil(2 * longest)}s",
        _default(option),
        f"{kind} often takes longer than the default: hedges would begin after {_words(longest)}, and what begins "
        "after this time is not held back by their budget, so that slow storage would be asked several times as much",
    )


def _commit_timeout(series: Mapping[str, Sequence[float]]) -> Recommendation:
    option = "commit.timeout"
    kind, slowest = max(
        ((kind, max(latencies)) for kind, latencies in series.items() if latencies),
        key=lambda one: one[1],
        default=("no request", 0.0),
    )
    if slowest * _ANSWERS_IN_A_DEADLINE <= _default_seconds(option):
        return _kept(option, f"the slowest answer took {_words(slowest)} ({kind})")
    return Recommendation(
        option,
        f"{math.ceil(slowest * _ANSWERS_IN_A_DEADLINE / 60)}min",
        _default(option),
        f"{kind} took up to {_words(slowest)}, and the deadline should have room for {_ANSWERS_IN_A_DEADLINE} such "
        "attempts",
    )


def _exclusive(found: Exclusiveness) -> Recommendation:
    option = "storage.requireExclusiveCreate"
    if found.verdict == exclusiveness.EXCLUSIVE:
        return _kept(option, "storage creates exclusively; each run tries it at its start and warns if not")
    if found.verdict == exclusiveness.NOT_ASKED:
        return _kept(option, "it could not be asked here; each run tries it at its start and warns if not")
    return Recommendation(
        option,
        "true",
        _default(option),
        f"{found.why}: two drivers could both commit a batch. With this a query refuses to start where that is so; "
        "without it make sure that only one driver runs",
    )


def saved(
    write: Sequence[float], create: Sequence[float], ask: Sequence[float], shape: Shape, chance: random.Random
) -> Saved:
    """Return what a batch would save, from the latencies of writes, of exclusive creates, and of questions.

    Stock Spark with direct writes: each slot's tasks write a changelog for each of their stores, one after the other,
    and the batch waits for the slowest slot; besides it asks for `offsets/N` and `commits/N` and writes them. The log
    creates these two. Nothing is hedged here on either side.
    """
    tasks = [shape.partitions // shape.slots + (slot < shape.partitions % shape.slots) for slot in range(shape.slots)]
    stock, log = [], []
    for _ in range(_BATCHES):
        entries = sum(chance.choices(create, k=2))
        slots = (sum(chance.choices(write, k=count * shape.stores)) for count in tasks if count)
        log.append(entries)
        stock.append(max(slots, default=0.0) + entries + sum(chance.choices(ask, k=2)))
    differences = sorted(theirs - ours for theirs, ours in zip(stock, log, strict=True))
    return Saved(
        shape,
        max(tasks) * shape.stores + 4,
        2,
        statistics.median(stock),
        statistics.median(log),
        statistics.median(differences),
        percentile(differences, 900) or differences[-1],
    )


def _kept(option: str, why: str) -> Recommendation:
    return Recommendation(option, _default(option), _default(option), why)


def _default(option: str) -> str:
    found = next(one.default for one in all_options() if one.key == option)
    assert found is not None, option
    return found


def _default_seconds(option: str) -> float:
    length = notation.milliseconds(_default(option))
    assert length is not None, option
    return length / 1000


def _words(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"
