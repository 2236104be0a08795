# SPDX-License-Identifier: Apache-2.0
"""Spark's notation of durations and sizes, as the JVM side reads options: in whole milliseconds and bytes."""

import re
from datetime import timedelta

_MILLISECONDS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_BYTES = {"": 1, "b": 1} | {
    unit + suffix: 1024**power for power, unit in enumerate("kmgt", start=1) for suffix in ("", "b")
}
_NUMBER_AND_UNIT = re.compile(r"([0-9]{1,18})\s*([a-z]*)", re.ASCII)


def milliseconds(text: str) -> int | None:
    """Return the duration `text`, such as `10min` or `500ms`; None if it is none. A plain number is milliseconds."""
    return _scaled(text, _MILLISECONDS)


def size_in_bytes(text: str) -> int | None:
    """Return the size `text`, such as `64k` or `100m`; None if it is none. A plain number is bytes."""
    return _scaled(text, _BYTES)


def duration(value: timedelta) -> str | None:
    """Return `value` in Spark's notation, or None if it is not a whole number of milliseconds."""
    count, rest = divmod(value, timedelta(milliseconds=1))
    return None if rest else f"{count}ms"


def _scaled(text: str, units: dict[str, int]) -> int | None:
    match = _NUMBER_AND_UNIT.fullmatch(text.strip().lower())
    return None if match is None or match[2] not in units else int(match[1]) * units[match[2]]
