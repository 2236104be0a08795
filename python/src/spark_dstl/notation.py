"""Spark's notation for durations and sizes, as its `JavaUtils` reads it."""

import re
from datetime import timedelta
from decimal import Decimal

_MILLISECONDS = {
    "us": Decimal("0.001"),
    "ms": Decimal(1),
    "": Decimal(1),
    "s": Decimal(1000),
    "m": Decimal(60_000),
    "min": Decimal(60_000),
    "h": Decimal(3_600_000),
    "d": Decimal(86_400_000),
}
_BYTES = {"": Decimal(1), "b": Decimal(1)} | {
    unit + suffix: Decimal(1024**power) for power, unit in enumerate("kmgtp", start=1) for suffix in ("", "b")
}
_NUMBER_AND_UNIT = re.compile(r"([0-9]+)([a-z]*)")


def milliseconds(text: str) -> Decimal | None:
    """Return how long `text` is, such as `10min` or `500ms`; None if it is not a duration. A plain number counts ms."""
    return _scaled(text, _MILLISECONDS)


def size_in_bytes(text: str) -> Decimal | None:
    """Return how much `text` is, such as `64k` or `100m`; None if it is not a size. A plain number counts bytes."""
    return _scaled(text, _BYTES)


def duration(value: timedelta) -> str:
    """Return `value` in Spark's notation, without loss."""
    microseconds = value // timedelta(microseconds=1)
    return f"{microseconds}us" if microseconds % 1000 else f"{microseconds // 1000}ms"


def _scaled(text: str, units: dict[str, Decimal]) -> Decimal | None:
    match = _NUMBER_AND_UNIT.fullmatch(text.strip().lower())
    if match is None or match[2] not in units:
        return None
    return Decimal(match[1]) * units[match[2]]
