# SPDX-License-Identifier: Apache-2.0
"""Maps a path of Spark to a file system of pyarrow and a path on it, and options for storage to settings of Spark."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from spark_dstl.checkpoint.java.gateway import JvmOptions
from spark_dstl.checkpoint.java.hadoop import hadoop_files
from spark_dstl.dependencies import needed
from spark_dstl.errors import UnreadableStorage

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
# Schemes with a client in pyarrow, which is used unless jars of Hadoop's are given.
_BY_ARROW = ("gs", "gcs", "abfs", "abfss")
_CONNECT_SECONDS = 10.0
# The first version of pyarrow with the option.
_DELAYS_OPEN = 21
_REQUEST_SECONDS = 60.0
_S3A = "spark.hadoop.fs.s3a"
PURPOSE = "Reading checkpoints"
# In place of keys and passwords in messages.
HIDDEN = "*****"
_PASSWORD = re.compile("(//[^:@/?]*:)[^@]*@")


@dataclass(frozen=True)
class StorageOptions:
    """Options for access to storage.

    Credentials come from the provider's usual sources: the environment, its files, or the machine's role.
    """

    endpoint: str | None = None
    """The URL of an S3-compatible server; by default the environment's `AWS_ENDPOINT_URL_S3`, else `AWS_ENDPOINT_URL`,
    else Amazon's."""
    region: str | None = None
    """By default the environment's `AWS_REGION` or `AWS_DEFAULT_REGION`, else `us-east-1` with an endpoint, else the
    region of the bucket."""
    anonymous: bool = False
    """Whether to send no credentials."""
    jvm: JvmOptions = field(default_factory=JvmOptions)
    """Options of the Java process, for state, and for storage that only Hadoop has a client for, such as `hdfs://`."""


@dataclass(frozen=True)
class Place:
    """A directory: its file system, its path there, and its name in messages."""

    files: Any
    path: str
    shown: str

    def beneath(self, name: str) -> "Place":
        """Return a directory below this one."""
        return Place(self.files, f"{self.path.rstrip('/')}/{name}", f"{self.shown.rstrip('/')}/{name}")

    @property
    def lists_marked_only(self) -> bool:
        """Whether a directory is listed only if an object marks it, as by pyarrow's client of GCS. Spark marks few."""
        of_gcs: bool = self.files.type_name == "gcs"
        return of_gcs

    def is_inside(self, other: "Place") -> bool:
        """Whether this is the other place, or below it."""
        mine, theirs = (place.path.rstrip("/") + "/" for place in (self, other))
        kind: bool = self.files.type_name == other.files.type_name
        return kind and mine.startswith(theirs)

    def is_same(self, other: "Place") -> bool:
        """Whether this is the other place, on local disks also by another name that links lead to."""
        is_local = self.files.type_name == other.files.type_name == "local"
        is_linked = is_local and os.path.realpath(self.path) == os.path.realpath(other.path)
        return is_linked or (self.is_inside(other) and other.is_inside(self))


def scheme_of(place: str) -> tuple[str | None, str]:
    """Return the scheme of a URI in lower case and the rest; for a local path None and the path."""
    match = _SCHEME.fullmatch(place)
    return (None, place) if match is None else (match["scheme"].lower(), match["rest"])


def locate(place: str, options: StorageOptions | None = None) -> Place:
    """Return the place of a local path, or of a URI of S3 (`s3://`, `s3a://`) or of pyarrow's or Hadoop's clients."""
    if not place:
        # A variable of a shell that is not set.
        raise UnreadableStorage("the path is empty: name a directory, . for the current one")
    try:
        place.encode()
    except UnicodeEncodeError as error:
        raise UnreadableStorage(
            f"{place!r} has bytes that are no characters in the locale of this process: name a path in UTF-8, and set "
            "LC_ALL=C.UTF-8"
        ) from error
    scheme, rest = scheme_of(place)
    options = options or StorageOptions()
    if scheme is None or scheme == "file":
        # Hadoop writes file:/x as well as file:///x, and escapes nothing.
        # `is_inside` compares names: `..` must not be one. Links keep their names.
        path = os.path.abspath("/" + rest.lstrip("/") if scheme else place)  # noqa: PTH100
        return Place(needed("pyarrow.fs", PURPOSE).LocalFileSystem(), path, path)
    if scheme in ("s3", "s3a", "s3n"):
        path = rest.strip("/")
        if not path:
            raise UnreadableStorage(f"{place} names no bucket")
        if "@" in path.partition("/")[0]:
            raise UnreadableStorage(
                f"{scheme}:// takes no keys before the bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        return Place(_s3(path.split("/")[0], options), path, f"{scheme}://{path}")
    # Azure's client of pyarrow ends this process if it finds no credentials.
    if scheme in _BY_ARROW and not options.jvm.jars:
        return _by_uri(place)
    try:
        authority, _, path = rest.removeprefix("//").partition("/") if rest.startswith("//") else ("", "", rest)
        return Place(hadoop_files(f"{scheme}://{authority}/", jvm_options(options)), f"/{path.lstrip('/')}", place)
    except OSError as error:
        raise UnreadableStorage(
            f"{place} cannot be opened by Hadoop: {error}. Check the address; give the jars of its client with --jars "
            "and settings with --conf spark.hadoop.…"
        ) from error


def server_of(options: StorageOptions, environment: Mapping[str, str] = os.environ) -> tuple[str | None, str | None]:
    """Return the endpoint and the region of S3, from the options or the environment; None for unknown.

    With an endpoint the region has a default, because most other servers ignore it.
    """
    endpoint = options.endpoint or environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    region = options.region or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    return endpoint or None, region or ("us-east-1" if endpoint else None)


def hadoop_path(place: str) -> str:
    """Return a local path or a URI as Hadoop reads it in any directory."""
    scheme, rest = scheme_of(place)
    if scheme is None:
        return os.path.abspath(place)  # noqa: PTH100
    return f"s3a:{rest}" if scheme in ("s3", "s3a", "s3n") else place


def hadoop_settings(options: StorageOptions) -> dict[str, str]:
    """Return the access to storage as settings of Spark; the user's settings have precedence."""
    # The default stream asks for the length of each file, also if it is known.
    settings = {f"{_S3A}.input.stream.type": "classic"}
    # S3A reads neither from the environment.
    endpoint, region = server_of(options)
    if endpoint:
        settings |= {f"{_S3A}.endpoint": endpoint, f"{_S3A}.path.style.access": "true"}
    if region:
        settings[f"{_S3A}.endpoint.region"] = region
    if options.anonymous:
        settings[f"{_S3A}.aws.credentials.provider"] = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    return {**settings, **options.jvm.conf}


def jvm_options(options: StorageOptions) -> JvmOptions:
    """Return the options of the Java process: Hadoop's clients in it keep the settings that they were opened with."""
    return replace(options.jvm, conf=hadoop_settings(options))


def _s3(bucket: str, options: StorageOptions) -> Any:
    filesystems = needed("pyarrow.fs", PURPOSE)
    endpoint, region = server_of(options)
    settings: dict[str, Any] = {
        "anonymous": options.anonymous,
        "connect_timeout": _CONNECT_SECONDS,
        "request_timeout": _REQUEST_SECONDS,
    }
    if int(needed("pyarrow", PURPOSE).__version__.partition(".")[0]) >= _DELAYS_OPEN:
        # A small object takes one request instead of three, and leaves no unfinished upload behind.
        settings["allow_delayed_open"] = True
    if endpoint:
        scheme, _, address = endpoint.rpartition("://")
        settings |= {"endpoint_override": address.rstrip("/"), "scheme": scheme or "https"}
    try:
        region = region or filesystems.resolve_s3_region(bucket)
    except (OSError, ValueError) as error:
        raise UnreadableStorage(
            f"the region of the bucket {bucket} could not be found out: {error}. Set AWS_REGION, or the endpoint "
            "of your server"
        ) from error
    return filesystems.S3FileSystem(region=region, **settings)


def _by_uri(place: str) -> Place:
    # Hadoop escapes nothing in a path; pyarrow decodes it.
    path, mark, settings = place.partition("?")
    uri = quote(path, safe="/:@") + mark + settings
    if scheme_of(place)[0] in ("gs", "gcs") and "retry_limit_seconds=" not in place:
        # The client of GCS retries for 15 minutes by default.
        uri += f"{'&' if '?' in place else '?'}retry_limit_seconds={_REQUEST_SECONDS:.0f}"
    try:
        files, path = needed("pyarrow.fs", PURPOSE).FileSystem.from_uri(uri)
    except (OSError, ValueError) as error:
        # The error has the place as well.
        raise UnreadableStorage(_without_password(f"{place} cannot be opened: {error}")) from None
    return Place(files, path, _without_password(place))


def _without_password(text: str) -> str:
    return _PASSWORD.sub(rf"\1{HIDDEN}@", text)
