"""What requests cost on Amazon S3: list prices of S3 Standard in us-east-1, from https://aws.amazon.com/s3/pricing/."""

from __future__ import annotations

from collections.abc import Mapping

# US dollars for a thousand.
WRITE_OR_LIST = 0.005
READ = 0.0004
_FREE = ("Delete", "Abort")
_READS = ("Get", "Head")
BATCHES_A_MONTH = 30 * 24 * 3600 // 10


def dollars(requests: Mapping[str, float]) -> float:
    """The price of so many requests of each operation. Deletions are free; what is no read costs as much as a write."""
    return sum(count * _of_one(operation) for operation, count in requests.items())


def _of_one(operation: str) -> float:
    if operation.startswith(_FREE):
        return 0
    return (READ if operation.startswith(_READS) else WRITE_OR_LIST) / 1000
