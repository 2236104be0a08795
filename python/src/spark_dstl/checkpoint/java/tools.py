# SPDX-License-Identifier: Apache-2.0
"""Arguments for the Java process: batches, paths, and settings of Hadoop."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from spark_dstl.checkpoint.access import CheckpointAccess
from spark_dstl.checkpoint.java.gateway import Gateway, tool
from spark_dstl.checkpoint.locate import server_of

_S3A = "spark.hadoop.fs.s3a"


def state_batch(gateway: Gateway, number: int, offsets: Mapping[str, Any]) -> Any:
    """Return a batch for the Java process, given the second line of its `offsets/` entry."""
    return tool(gateway, "StateBatch")(number, json.dumps(offsets))


def hadoop_path(shown: str) -> str:
    """Return a path as Hadoop writes it."""
    scheme, separator, rest = shown.partition("://")
    return f"s3a://{rest}" if separator and scheme in ("s3", "s3n") else shown


def hadoop_settings(checkpoint: CheckpointAccess) -> dict[str, str]:
    """Return the access to storage as settings of Spark; the user's settings have precedence."""
    settings: dict[str, str] = {}
    options = checkpoint.storage_options
    # S3A reads neither from the environment.
    endpoint, region = server_of(options)
    if endpoint:
        settings |= {f"{_S3A}.endpoint": endpoint, f"{_S3A}.path.style.access": "true"}
    if region:
        settings[f"{_S3A}.endpoint.region"] = region
    if options.anonymous:
        provider = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
        settings[f"{_S3A}.aws.credentials.provider"] = provider
    return {**settings, **checkpoint.jvm_options.conf}
