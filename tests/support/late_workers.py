# SPDX-License-Identifier: Apache-2.0
"""Queries whose Python processes start late.

Spark gives a Python process of its driver, as a stateful processor has one, ten seconds to connect: too few on a busy
machine. The query ends then, and an operator starts it again.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import PySparkException

ATTEMPTS = 6
WORKER_WAS_LATE = "Python worker failed to connect back"


def until_workers_connect(run: Callable[[], None]) -> None:
    """Run a query; again, from its checkpoint, while Spark does not wait for its Python process."""
    for _ in range(ATTEMPTS - 1):
        try:
            return run()
        except PySparkException as failed:
            if WORKER_WAS_LATE not in str(failed):
                raise
    return run()
