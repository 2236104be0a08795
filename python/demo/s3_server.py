# SPDX-License-Identifier: Apache-2.0
"""An S3 server on the loopback interface for the demo: versitygw, which keeps objects as files and logs requests."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway import CACHE, REGION, Gateway, connector, keys
from spark_dstl.release import installed_line

BUCKET = "demo"
# Of a server that ends with the demo.
ACCESS_KEY = "demo"
SECRET_KEY = "demo-demo"
START_SECONDS = 30
POLL_SECONDS = 0.05


class NoServer(Exception):
    """What the demo needs for this storage is not on the machine, or did not start."""


@dataclass(frozen=True)
class Server:
    """A server that runs; `stored` is where the objects of its bucket are, as files."""

    address: str
    stored: Path
    gateway: Gateway

    def settings(self) -> dict[str, str]:
        """Tell a session how to reach it."""
        jars = sorted(connector().glob("*.jar"))
        if not jars:
            line = installed_line().name
            raise NoServer(f"{connector()} has no jars of the S3 connector: run `make storage-tools SPARK={line}`")
        s3a = "spark.hadoop.fs.s3a"
        return {
            "spark.jars": ",".join(map(str, jars)),
            f"{s3a}.endpoint": self.address,
            f"{s3a}.endpoint.region": REGION,
            f"{s3a}.path.style.access": "true",
            # This server refuses to delete those of directories that are not empty, which Hadoop 3.3 asks of it.
            f"{s3a}.directory.marker.retention": "keep",
            f"{s3a}.connection.ssl.enabled": "false",
            f"{s3a}.access.key": ACCESS_KEY,
            f"{s3a}.secret.key": SECRET_KEY,
        }

    def requests(self) -> Counter[str]:
        """Count the requests that it has answered, by kind."""
        return Counter(request.operation for request in self.gateway.requests())


@contextmanager
def s3_server(work: Path) -> Iterator[Server]:
    """Run a server with an empty bucket `BUCKET` in the directory `work`; it ends with the block."""
    program = CACHE / "tools" / "versitygw"
    if not program.exists():
        raise NoServer("there is no versitygw: run `make storage-tools`, which needs Go 1.26 or newer")
    gateway = Gateway.in_directory(work)
    stored = gateway.stored / BUCKET
    stored.mkdir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    said = work / "server.log"
    with said.open("wb") as out:
        process = subprocess.Popen(
            gateway.command(str(program), port),
            env={**os.environ, **keys(ACCESS_KEY, SECRET_KEY)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(f"http://127.0.0.1:{port}", process, said)
        yield Server(f"http://127.0.0.1:{port}", stored, gateway)
    finally:
        process.kill()
        process.wait()


def _wait(address: str, process: subprocess.Popen[bytes], said: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(address, timeout=START_SECONDS).close()
            return
        except urllib.error.HTTPError:
            # It answers that this one is not allowed.
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise NoServer(f"versitygw did not start, its log is {said}") from None
        time.sleep(POLL_SECONDS)
