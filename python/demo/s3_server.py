# SPDX-License-Identifier: Apache-2.0
"""An S3 server on the loopback interface for the demo: versitygw, which stores objects as files and logs requests."""

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
# Keys of a server that ends with the demo.
ACCESS_KEY = "demo"
SECRET_KEY = "demo-demo"
START_SECONDS = 30
POLL_SECONDS = 0.05


class NoServer(Exception):
    """The server or the connector is not installed, or the server did not start."""


@dataclass(frozen=True)
class Server:
    """A running server; `stored` is the local directory of its bucket."""

    address: str
    stored: Path
    gateway: Gateway

    def settings(self) -> dict[str, str]:
        """Return the settings of a session that uses the server."""
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
            # The server refuses to delete a marker of a directory that is not empty, as Hadoop 3.3 requests.
            f"{s3a}.directory.marker.retention": "keep",
            f"{s3a}.connection.ssl.enabled": "false",
            f"{s3a}.access.key": ACCESS_KEY,
            f"{s3a}.secret.key": SECRET_KEY,
        }

    def requests(self) -> Counter[str]:
        """Count the answered requests by kind."""
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
    log = work / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            gateway.command(str(program), port),
            env={**os.environ, **keys(ACCESS_KEY, SECRET_KEY)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(f"http://127.0.0.1:{port}", process, log)
        yield Server(f"http://127.0.0.1:{port}", stored, gateway)
    finally:
        process.kill()
        process.wait()


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(address, timeout=START_SECONDS).close()
            return
        except urllib.error.HTTPError:
            # The server answers, although it refuses this request.
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise NoServer(f"versitygw did not start, its log is {log}") from None
        time.sleep(POLL_SECONDS)
