# SPDX-License-Identifier: Apache-2.0
"""An imitation of S3 in this process; `make test-storage` has real servers."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from s3_imitation import s3_imitation

from servers import BUCKET, S3Server, client


@contextmanager
def imitation() -> Iterator[S3Server]:
    """An imitation of S3 with an empty bucket, on a port of the loopback interface."""
    with s3_imitation() as port:
        address = f"http://127.0.0.1:{port}"
        urllib.request.urlopen(urllib.request.Request(f"{address}/moto-api/reset", method="POST")).close()
        client(address).create_bucket(Bucket=BUCKET)
        yield S3Server("moto", port)
