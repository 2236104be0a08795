# SPDX-License-Identifier: Apache-2.0
"""Objects of S3, and of servers that speak its protocol.

The client is boto3: pyarrow cannot create exclusively (`If-None-Match: *`), and it retries, which hides the time of one
attempt.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from spark_dstl.checkpoint.locate import StorageOptions, server_of
from spark_dstl.dependencies import PROBE, needed
from spark_dstl.probing.storage import PURPOSE, Refused, Unanswered

# With these answers the outcome of the request is unknown.
_NOT_DEFINITE = (408, 409, 429, 499)
_EXISTS = 412
_NOT_IMPLEMENTED = 501
_MISSING = 404
_CONNECTIONS = 64


class S3Objects:
    """The objects below a prefix of a bucket. Thread-safe."""

    not_exclusive_because = None

    def __init__(self, shown: str, path: str, options: StorageOptions, timeout_seconds: float) -> None:
        """`path` is the bucket, and the prefix after a slash; a request may be silent for `timeout_seconds`."""
        needed("boto3", PURPOSE, PROBE)
        self.shown = shown
        self._bucket, _, self._prefix = path.partition("/")
        self._library = needed("botocore.exceptions", PURPOSE, PROBE)
        self._client = _client(options, timeout_seconds)

    def make_folder(self, folder: str) -> None:
        """Do nothing: S3 has no folders."""

    def put(self, name: str, content: bytes) -> None:
        self._unless(None, self._client.put_object, name, Body=content)

    def get(self, name: str) -> bytes | None:
        found = self._unless(_MISSING, self._client.get_object, name)
        with self._errors():
            return None if found is None else bytes(found["Body"].read())

    def exists(self, name: str) -> bool:
        return self._unless(_MISSING, self._client.head_object, name) is not None

    def create(self, name: str, content: bytes) -> bool:
        return self._unless(_EXISTS, self._client.put_object, name, Body=content, IfNoneMatch="*") is not None

    def objects(self, folder: str) -> list[str]:
        start = len(self._key(""))
        return [found["Key"][start:] for page in self._pages(f"{folder}/") for found in page.get("Contents", ())]

    def folders(self) -> list[str]:
        start = len(self._key(""))
        return [
            found["Prefix"][start:].rstrip("/")
            for page in self._pages("", Delimiter="/")
            for found in page.get("CommonPrefixes", ())
        ]

    def delete(self, name: str) -> None:
        self._unless(None, self._client.delete_object, name)

    def delete_folder(self, folder: str) -> None:
        """Do nothing: S3 has no folders."""

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _unless(self, status: int | None, request: Callable[..., Any], name: str, **more: object) -> Any:
        """Send a request about an object; None if the answer has this status."""
        with self._errors():
            try:
                return request(Bucket=self._bucket, Key=self._key(name), **more)
            except self._library.ClientError as error:
                if _status(error) == status:
                    return None
                raise

    def _pages(self, prefix: str, **more: str) -> Iterator[dict[str, Any]]:
        pages = self._client.get_paginator("list_objects_v2")
        with self._errors():
            yield from pages.paginate(Bucket=self._bucket, Prefix=self._key(prefix), **more)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._library.ClientError as error:
            status = _status(error)
            definite = (400 <= status < 500 and status not in _NOT_DEFINITE) or status == _NOT_IMPLEMENTED
            raise (Refused if definite else Unanswered)(str(error)) from error
        except (
            self._library.NoCredentialsError,
            self._library.PartialCredentialsError,
            self._library.ParamValidationError,
        ) as error:
            raise Refused(str(error)) from error
        except self._library.BotoCoreError as error:
            raise Unanswered(str(error)) from error


def _status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _client(options: StorageOptions, timeout_seconds: float) -> Any:
    boto3 = needed("boto3", PURPOSE, PROBE)
    botocore = needed("botocore", PURPOSE, PROBE)
    settings: dict[str, Any] = {
        "connect_timeout": timeout_seconds,
        "read_timeout": timeout_seconds,
        # One attempt is what is measured, and what has one outcome.
        "retries": {"total_max_attempts": 1, "mode": "standard"},
        "max_pool_connections": _CONNECTIONS,
        # Servers other than Amazon's do not all know the checksums that boto3 would add.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
    }
    endpoint, region = server_of(options)
    if endpoint:
        settings["s3"] = {"addressing_style": "path"}
    if options.anonymous:
        settings["signature_version"] = botocore.UNSIGNED
    session = boto3.session.Session(region_name=region)
    if endpoint and "://" not in endpoint:
        endpoint = f"https://{endpoint}"
    return session.client(
        "s3",
        endpoint_url=endpoint,
        region_name=session.region_name or "us-east-1",
        config=needed("botocore.config", PURPOSE, PROBE).Config(**settings),
    )
