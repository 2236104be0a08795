"""Asks for the log where Spark runs without the jar: `refusals_driver.py [sc://...]`, and prints what it was told.

One line for each refusal: the kind of the error and its text.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from pyspark.sql import SparkSession

import spark_dstl


def main() -> None:
    """Ask with a session and without one, in a Spark of this process, or a session of the server that is named."""
    if len(sys.argv) > 1:
        session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
        tell(lambda: spark_dstl.configure_session(session))
    elif "PYSPARK_GATEWAY_PORT" in os.environ:
        print(f"from {spark_dstl.__file__}", flush=True)
        tell(lambda: spark_dstl.configure(SparkSession.builder))
    else:
        session = SparkSession.builder.getOrCreate()
        tell(lambda: spark_dstl.configure(SparkSession.builder))
        tell(lambda: spark_dstl.configure_session(session))
        session.stop()
        tell(lambda: spark_dstl.configure(SparkSession.builder))


def tell(refused: Callable[[], object]) -> None:
    """Print what `refused` raises, or that it was not refused."""
    try:
        refused()
        print("not refused", flush=True)
    except spark_dstl.DstlError as error:
        print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
