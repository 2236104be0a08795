# SPDX-License-Identifier: Apache-2.0
"""Configures the log on a Spark without the jar: `refusals_driver.py [sc://...]`, and prints the errors.

Each error is one line: its class and its text.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from pyspark.sql import SparkSession

import spark_dstl


def main() -> None:
    """Configure a builder and a session, in this process or on the given Spark Connect server."""
    if len(sys.argv) > 1:
        session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
        report(lambda: spark_dstl.configure_session(session))
    elif "PYSPARK_GATEWAY_PORT" in os.environ:
        print(f"from {spark_dstl.__file__}", flush=True)
        report(lambda: spark_dstl.configure(SparkSession.builder))
    else:
        session = SparkSession.builder.getOrCreate()
        report(lambda: spark_dstl.configure(SparkSession.builder))
        report(lambda: spark_dstl.configure_session(session))
        session.stop()
        report(lambda: spark_dstl.configure(SparkSession.builder))


def report(refused: Callable[[], object]) -> None:
    """Print the error that `refused` raises."""
    try:
        refused()
        print("not refused", flush=True)
    except spark_dstl.DstlError as error:
        print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
