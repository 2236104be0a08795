# SPDX-License-Identifier: Apache-2.0
"""Percentiles of times."""

import math
from collections.abc import Sequence
from typing import TypeVar

Value = TypeVar("Value", int, float)

PERCENTILES = (50, 90, 99, 99.9)
"""Those that a table shows."""


def percentile(values: Sequence[Value], percent: float) -> Value | None:
    """Return the nearest rank; None if there are so few values that it would be the largest."""
    rank = math.ceil(round(len(values) * percent / 100, 6))
    return sorted(values)[rank - 1] if 0 < rank < len(values) else None
