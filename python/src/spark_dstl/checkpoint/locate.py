"""From a path as Spark takes it to a file system of pyarrow and a path on it."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_dstl.checkpoint.java.gateway import JvmOptions
from spark_dstl.checkpoint.java.hadoop import hadoop_files
from spark_dstl.dependencies import needed
from spark_dstl.errors import UnreadableStorage

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
# What pyarrow has a client for that needs nothing of Hadoop's.
_BY_ARROW = ("gs", "gcs", "abfs", "abfss")
_CONNECT_SECONDS = 10.0
_REQUEST_SECONDS = 60.0
PURPOSE = "Reading checkpoints"


@dataclass(frozen=True)
class StorageOptions:
    """How storage is reached.

    Credentials are none of these: they are found as by other programs of the provider, in the environment, in its
    files, or by the machine's role.
    """

    endpoint: str | None = None
    """The URL of an S3-compatible server; by default the environment's `AWS_ENDPOINT_URL_S3`, else `AWS_ENDPOINT_URL`,
    else Amazon's."""
    region: str | None = None
    """By default the environment's `AWS_REGION` or `AWS_DEFAULT_REGION`, else where the bucket is."""
    anonymous: bool = False
    """Whether no credentials are sent."""
    jvm: JvmOptions = field(default_factory=JvmOptions)
    """What the Java process gets that opens storage which only Hadoop has a client for, such as `hdfs://`."""


@dataclass(frozen=True)
class Place:
    """A directory: on which file system, by which path there, and what messages call it."""

    files: Any
    path: str
    shown: str

    def beneath(self, name: str) -> "Place":
        """Return a directory below it."""
        return Place(self.files, f"{self.path.rstrip('/')}/{name}", f"{self.shown.rstrip('/')}/{name}")

    def is_inside(self, other: "Place") -> bool:
        """Whether it is the other place, or below it."""
        mine, theirs = (place.path.rstrip("/") + "/" for place in (self, other))
        kind: bool = self.files.type_name == other.files.type_name
        return kind and mine.startswith(theirs)

    def is_apart_from(self, other: "Place") -> bool:
        """Whether neither is in the other."""
        return not self.is_inside(other) and not other.is_inside(self)


def scheme_of(place: str) -> tuple[str | None, str]:
    """Return the scheme of a URI, in small letters, and what follows its colon; of a local path None, and the path."""
    match = _SCHEME.fullmatch(place)
    return (None, place) if match is None else (match["scheme"].lower(), match["rest"])


def locate(place: str, options: StorageOptions | None = None) -> Place:
    """Return where `place` is: a local path, or a URI of S3 (`s3://`, `s3a://`), or of what pyarrow or Hadoop knows."""
    scheme, rest = scheme_of(place)
    if scheme is None:
        path = str(Path(place).absolute())
        return Place(needed("pyarrow.fs", PURPOSE).LocalFileSystem(), path, path)
    if scheme == "file":
        # Hadoop writes file:/x as well as file:///x, and escapes nothing.
        path = "/" + rest.lstrip("/")
        return Place(needed("pyarrow.fs", PURPOSE).LocalFileSystem(), path, path)
    if scheme in ("s3", "s3a", "s3n"):
        path = rest.strip("/")
        return Place(_s3(path.split("/")[0], options or StorageOptions(), os.environ), path, f"{scheme}://{path}")
    if scheme in _BY_ARROW:
        return _by_uri(place)
    jvm = (options or StorageOptions()).jvm
    try:
        authority, _, path = rest.removeprefix("//").partition("/") if rest.startswith("//") else ("", "", rest)
        return Place(hadoop_files(f"{scheme}://{authority}/", jvm), f"/{path.lstrip('/')}", place)
    except OSError as error:
        raise UnreadableStorage(
            f"{place} cannot be opened by Hadoop: {error}. Check the address; give the jars of its client with --jars "
            "and settings with --conf spark.hadoop.…"
        ) from error


def server_of(options: StorageOptions, environment: Mapping[str, str] = os.environ) -> tuple[str | None, str | None]:
    """Return the endpoint and the region of S3, as they are given or as the environment has them; None for unknown.

    With an endpoint there is always a region: a server of one's own hardly ever cares for it, and need not be asked.
    """
    endpoint = options.endpoint or environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    region = options.region or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    return endpoint or None, region or ("us-east-1" if endpoint else None)


def _s3(bucket: str, options: StorageOptions, environment: Mapping[str, str]) -> Any:
    filesystems = needed("pyarrow.fs", PURPOSE)
    endpoint, region = server_of(options, environment)
    settings: dict[str, Any] = {
        "anonymous": options.anonymous,
        "connect_timeout": _CONNECT_SECONDS,
        "request_timeout": _REQUEST_SECONDS,
    }
    if endpoint:
        scheme, _, address = endpoint.rpartition("://")
        settings |= {
            "endpoint_override": address.rstrip("/"),
            "scheme": scheme or "https",
            "region": region,
        }
    elif region:
        settings["region"] = region
    else:
        try:
            settings["region"] = filesystems.resolve_s3_region(bucket)
        except OSError as error:
            raise UnreadableStorage(
                f"the region of the bucket {bucket} could not be found out: {error}. Set AWS_REGION, or the endpoint "
                "of your server"
            ) from error
    return filesystems.S3FileSystem(**settings)


def _by_uri(place: str) -> Place:
    filesystems = needed("pyarrow.fs", PURPOSE)
    try:
        files, path = filesystems.FileSystem.from_uri(_bounded(place))
    except (OSError, ValueError) as error:
        raise UnreadableStorage(f"{place} cannot be opened: {error}") from error
    return Place(files, path, place)


def _bounded(place: str) -> str:
    """Return the URI with a limit to how long the client of GCS tries what fails: a quarter of an hour otherwise."""
    if scheme_of(place)[0] not in ("gs", "gcs") or "retry_limit_seconds=" in place:
        return place
    return f"{place}{'&' if '?' in place else '?'}retry_limit_seconds={_REQUEST_SECONDS:.0f}"
