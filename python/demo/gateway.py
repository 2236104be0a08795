# SPDX-License-Identifier: Apache-2.0
"""versitygw, an S3 server that stores objects as files: its command line and its access log."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyspark

REGION = "us-east-1"
# `make storage-tools` writes programs and jars there.
CACHE = Path(os.environ.get("SPARK_DSTL_CACHE", Path.home() / ".cache" / "spark-dstl"))


def connector() -> Path:
    """Return the directory for the jars of the S3 connector of the installed Spark; it may not exist."""
    (hadoop,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    return CACHE / "jars" / f"s3a-{hadoop.stem.rpartition('-')[2]}"


@dataclass(frozen=True)
class Request:
    """A request that the server has answered; `target` is the address with its query."""

    operation: str
    target: str
    status: int


@dataclass(frozen=True)
class Gateway:
    """The directory of the objects, in which each directory is a bucket, and the access log."""

    stored: Path
    log: Path

    @staticmethod
    def in_directory(work: Path) -> Gateway:
        """Create the directories and an empty log."""
        gateway = Gateway(work / "stored", work / "access.log")
        gateway.stored.mkdir(parents=True)
        gateway.log.touch()
        return gateway

    def command(self, program: str, port: int) -> list[str]:
        """Return the command that starts the server on a port of the loopback interface."""
        listen = ["--port", f"127.0.0.1:{port}", "--region", REGION]
        return [program, *listen, "--access-log", str(self.log), "posix", str(self.stored)]

    def requests(self) -> list[Request]:
        """Return the answered requests, in the order of the answers; an incomplete last line is not read.

        The access log has the fields of Amazon's: the operation is the 8th, the target the 10th, the status the 11th.
        """
        found = []
        for line in self.log.read_text(encoding="utf-8").split("\n")[1:-1]:
            fields = line.split()
            found.append(Request(fields[7].removeprefix("s3_"), fields[9], int(fields[10])))
        return found


def keys(access: str, secret: str) -> dict[str, str]:
    """Return the environment variables with the keys of the root account."""
    return {"ROOT_ACCESS_KEY": access, "ROOT_SECRET_KEY": secret}
