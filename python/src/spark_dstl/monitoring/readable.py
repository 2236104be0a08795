# SPDX-License-Identifier: Apache-2.0
"""Figures as text."""

import re

_BYTES = ("bytes", "kB", "MB", "GB", "TB", "PB")
_STEPS = " ▁▂▃▄▅▆▇█"


def readable(name: str, value: int | None) -> str:
    """Return the value of a figure with the unit that ends its name; a dash for None."""
    if value is None:
        return "-"
    if name.endswith("_bytes"):
        return readable_bytes(value)
    if name.endswith("_ms"):
        return f"{value:,} ms"
    return f"{value:,}"


def readable_bytes(value: float) -> str:
    """Return a number of bytes in the unit that makes it less than 1,000."""
    power = 0
    while abs(value) >= 1000 and power < len(_BYTES) - 1:
        value, power = value / 1000, power + 1
    return f"{value:,.0f} {_BYTES[power]}" if power == 0 else f"{value:,.1f} {_BYTES[power]}"


def label(name: str) -> str:
    """Return the name of a figure in words."""
    return re.sub("_ms$", " time", re.sub("_bytes$", " size", name)).replace("_", " ")


def sparkline(values: list[int | None], width: int) -> str:
    """Draw the newest values, one character each, from 0 to the largest; a blank for None."""
    shown = values[-width:]
    largest = max((value for value in shown if value is not None), default=0)
    return "".join(" " if value is None else _STEPS[_level(value, largest)] for value in shown)


def _level(value: int, largest: int) -> int:
    # A small value does not look like 0.
    return 1 if largest <= 0 or value <= 0 else max(2, 1 + round(value / largest * (len(_STEPS) - 2)))
