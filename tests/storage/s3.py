# SPDX-License-Identifier: Apache-2.0
"""Queries whose checkpoints are on an S3 server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gateway import REGION
from harness import Run
from programs import connector, with_jars
from scenarios import Scenario
from servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server
from settings import log_confs, profile

ROOT = f"s3a://{BUCKET}"


def s3a(address: str) -> dict[str, str]:
    """Return the shipped profile for such servers, with the address of this one."""
    of_server = {
        "endpoint": address,
        "endpoint.region": REGION,
        "connection.ssl.enabled": "false",
        "access.key": ACCESS_KEY,
        "secret.key": SECRET_KEY,
        # A proxy's faults apply to new connections: kept ones would escape them.
        "connection.ttl": "1s",
    }
    return {**profile("minio"), **{f"spark.hadoop.fs.s3a.{name}": value for name, value in of_server.items()}}


def environment(address: str) -> dict[str, str]:
    """Return the environment of commands: the server's address and keys."""
    keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    return {"AWS_ENDPOINT_URL": address, "AWS_REGION": REGION, **keys}


def names_on(server: S3Server) -> Callable[[str], list[str]]:
    """Return a function that lists a directory of the server."""

    def names(directory: str) -> list[str]:
        bucket, _, prefix = directory.removeprefix("s3a://").partition("/")
        return [key.removeprefix(f"{prefix}/") for key in server.keys(f"{prefix}/", bucket)]

    return names


def on_s3(
    work: Path,
    server: S3Server,
    *scenarios: Scenario,
    confs: Mapping[str, str] | None = None,
    address: str | None = None,
) -> Run:
    """Return queries with their checkpoints on the server; `address` is that of a proxy."""
    kept = with_jars(log_confs() if confs is None else confs, connector())
    reached = s3a(address or server.address)
    return Run.create(work, *scenarios, confs={**kept, **reached}, checkpoints=ROOT, names=names_on(server))
