# SPDX-License-Identifier: Apache-2.0
"""The cost of a batch and a month of a query, by formulas."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

SECONDS_A_MONTH = 30 * 24 * 3600
# Dollars a request, at the list prices of S3 Standard in us-east-1; a list request costs as much as a write.
WRITE_DOLLARS, READ_DOLLARS = 0.005 / 1000, 0.0004 / 1000

# Requests to S3 of one batch: a constant and a share for each store, fitted to docs/results/storage-0.1.0.md.
_LOG_WRITES = (2.13, 0.0146)
_STOCK_WRITES = (14.0, 6.01)
_STOCK_READS = (12.0, 3.6)


@dataclass(frozen=True)
class Shape:
    """A query: its partitions, the stores in each, the slots for tasks, and the seconds between two batches."""

    partitions: int = 200
    stores: int = 1
    slots: int = 16
    interval_seconds: float = 10


# What `assumed` takes for a request: the median of the benchmark's storage.
ASSUMED_SECONDS = 0.040


@dataclass(frozen=True)
class Saved:
    """A batch and a month of a query, with stock Spark that writes directly and with the log.

    `stock_requests` and `log_requests` are the requests that a batch waits for one after the other, the medians their
    time in seconds. A month has 30 days; its requests are those that S3 charges for, its dollars S3's list prices.
    """

    shape: Shape
    stock_requests: int
    log_requests: int
    stock_median: float
    log_median: float
    saved_median: float
    batches_a_month: int
    stock_requests_a_month: int
    log_requests_a_month: int
    stock_dollars_a_month: float
    log_dollars_a_month: float


def saved(write: Sequence[float], create: Sequence[float], ask: Sequence[float], shape: Shape) -> Saved:
    """Return what a query costs, from the latencies of writes, of exclusive creates, and of existence checks.

    With stock Spark a slot writes a changelog for each of its stores, one after the other, and the batch waits for the
    slot with the most; then the driver checks and writes `offsets/N` and `commits/N`. With the log a batch with small
    changes waits for these two writes alone.
    """
    changelogs = -(-shape.partitions // shape.slots) * shape.stores
    log = 2 * statistics.median(create)
    stock = changelogs * statistics.median(write) + 2 * statistics.median(ask) + log
    batches = round(SECONDS_A_MONTH / shape.interval_seconds)
    stores = shape.partitions * shape.stores
    log_writes, stock_writes, stock_reads = (
        batches * (constant + share * stores) for constant, share in (_LOG_WRITES, _STOCK_WRITES, _STOCK_READS)
    )
    return Saved(
        shape,
        changelogs + 4,
        2,
        stock,
        log,
        stock - log,
        batches,
        round(stock_writes + stock_reads),
        round(log_writes),
        round(stock_writes * WRITE_DOLLARS + stock_reads * READ_DOLLARS, 2),
        round(log_writes * WRITE_DOLLARS, 2),
    )


def assumed(shape: Shape) -> Saved:
    """Return what a query costs if each request takes `ASSUMED_SECONDS`."""
    return saved([ASSUMED_SECONDS], [ASSUMED_SECONDS], [ASSUMED_SECONDS], shape)
