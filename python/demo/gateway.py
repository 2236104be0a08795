# SPDX-License-Identifier: Apache-2.0
"""versitygw, an S3 server that keeps objects as files: how it is started, and what its access log says."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyspark

REGION = "us-east-1"
# Where `make storage-tools` puts programs and jars.
CACHE = Path(os.environ.get("SPARK_DSTL_CACHE", Path.home() / ".cache" / "spark-dstl"))


def connector() -> Path:
    """Return the directory with the jars of the S3 connector for the installed Spark, whether or not they are there."""
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
    """Where one keeps its objects and writes its log: each directory in `stored` is a bucket."""

    stored: Path
    log: Path

    @staticmethod
    def in_directory(work: Path) -> Gateway:
        """Make the directories, and an empty log."""
        gateway = Gateway(work / "stored", work / "access.log")
        gateway.stored.mkdir(parents=True)
        gateway.log.touch()
        return gateway

    def command(self, program: str, port: int) -> list[str]:
        """Return what starts it on that port of the loopback interface."""
        listen = ["--port", f"127.0.0.1:{port}", "--region", REGION]
        return [program, *listen, "--access-log", str(self.log), "posix", str(self.stored)]

    def requests(self) -> list[Request]:
        """Return every request it has answered, in the order of the answers.

        Its access log has the fields of Amazon's, of which the operation is the 8th, the target the 10th and the status
        the 11th. A line that is still being written is left out.
        """
        found = []
        for line in self.log.read_text(encoding="utf-8").split("\n")[1:-1]:
            fields = line.split()
            found.append(Request(fields[7].removeprefix("s3_"), fields[9], int(fields[10])))
        return found


def keys(access: str, secret: str) -> dict[str, str]:
    """Return the variables that tell it which keys are good for everything."""
    return {"ROOT_ACCESS_KEY": access, "ROOT_SECRET_KEY": secret}
