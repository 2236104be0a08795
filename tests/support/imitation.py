# SPDX-License-Identifier: Apache-2.0
"""An imitation of S3 in this process; `make test-storage` has real servers."""

from __future__ import annotations

import logging
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer

from servers import BUCKET, S3Server, client


@contextmanager
def imitation() -> Iterator[S3Server]:
    """An imitation of S3 with an empty bucket, on a port of the loopback interface."""
    # Otherwise it logs each request.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        address = f"http://127.0.0.1:{port}"
        # All imitations of a process share their buckets.
        urllib.request.urlopen(urllib.request.Request(f"{address}/moto-api/reset", method="POST")).close()
        client(address).create_bucket(Bucket=BUCKET)
        yield S3Server("moto", port)
    finally:
        server.stop()
