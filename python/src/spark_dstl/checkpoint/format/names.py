# SPDX-License-Identifier: Apache-2.0
"""Strict parsers for the names of a log's objects."""

import re
from collections.abc import Container
from typing import NamedTuple

CHANGELOG, CHECKSUM, SNAPSHOT, SNAPSHOT_FILE = 0, 1, 2, 3
SUFFIXES = {CHANGELOG: ".changelog", CHECKSUM: ".changelog.crc", SNAPSHOT: ".zip", SNAPSHOT_FILE: ".sst"}
KINDS = {CHANGELOG: "changelog", CHECKSUM: "checksum", SNAPSHOT: "snapshot", SNAPSHOT_FILE: "snapshot file"}

_NUMBER = "(?:0|[1-9][0-9]{0,17})"
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NUMBER_NAME = re.compile(_NUMBER)
_DATA_FILE = re.compile(rf"data/{_NUMBER}-{_UUID}/[A-Za-z0-9][A-Za-z0-9_-]{{0,199}}-{_NUMBER}-[a-z0-9]{{1,64}}\.log")
_END = re.compile(rf"(?P<epoch>{_NUMBER})\.ended")
_PIN = re.compile(rf"(?P<batch>{_NUMBER})-(?P<seconds>{_NUMBER})-{_UUID}\.pin")
_UNFINISHED = re.compile(r"\.[^/]*\.tmp(?:\.crc)?")
_PLAIN = re.compile(
    rf"(?P<operator>{_NUMBER})/(?P<partition>0|[1-9][0-9]{{0,8}})/(?:(?P<store>[^/]+)/)?"
    rf"(?P<version>{_NUMBER})(?:_(?P<id>[^/]+?))?(?P<suffix>\.changelog|\.zip)"
)
# The kinds of the objects of a checkpoint by their names; the first match counts.
_OBJECTS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (rf"(?:.*/)?{_UNFINISHED.pattern}", "unfinished"),
        (r"(?:.*/)?\.[^/]*\.crc", "checksum"),
        (r"metadata", "metadata"),
        (rf"commits/{_NUMBER}", "commit entry"),
        (rf"offsets/{_NUMBER}", "offsets"),
        (r"sources/.*", "source"),
        (rf"dstl/epochs/{_NUMBER}", "claim"),
        (rf"dstl/epochs/{_END.pattern}", "end of run"),
        (rf"dstl/epochs/{_NUMBER}-[0-9a-f-]{{1,64}}\.trial", "trial"),
        (rf"dstl/epochs/{_PIN.pattern}", "pin"),
        (r"dstl/owner\.json", "owner"),
        (rf"dstl/{_DATA_FILE.pattern}", "data file"),
        (rf"state/{_PLAIN.pattern}(?<=changelog)", KINDS[CHANGELOG]),
        (rf"state/{_PLAIN.pattern}", KINDS[SNAPSHOT]),
        (r"state/.*/(?:SSTs|logs)/.*", KINDS[SNAPSHOT_FILE]),
        (r"state/.*_metadata/.*", "metadata"),
        (r"state/.*\.crc", "checksum"),
    )
)


class Store(NamedTuple):
    """One (operator, partition, store name) of a query; the name is empty for Spark's default store."""

    operator: int
    partition: int
    name: str

    @property
    def directory(self) -> str:
        """The directory of its plain files below `<checkpoint>/state`."""
        return f"{self.operator}/{self.partition}" + (f"/{self.name}" if self.name else "")


class PlainFile(NamedTuple):
    """A changelog or a snapshot's zip as a plain file in Spark's layout."""

    store: Store
    version: int
    id: str | None
    kind: int


def number(name: str) -> int | None:
    """Return the number in the name of a commit entry, an entry of `offsets/` or a claim; else None."""
    return int(name) if _NUMBER_NAME.fullmatch(name) else None


def is_data_file(name: str) -> bool:
    """Whether this is the name of a data file, relative to the base path."""
    return _DATA_FILE.fullmatch(name) is not None


def is_uuid(text: str) -> bool:
    """Whether the text is an id as Spark gives queries and runs."""
    return re.fullmatch(_UUID, text) is not None


def end_of_epoch(name: str) -> int | None:
    """Return the epoch of an end mark, by its name in `dstl/epochs`; None for other names."""
    match = _END.fullmatch(name)
    return int(match["epoch"]) if match else None


def pin(name: str) -> tuple[int, int] | None:
    """Return batch and seconds of a pin, by its name in `dstl/epochs`; None for other names."""
    match = _PIN.fullmatch(name)
    return (int(match["batch"]), int(match["seconds"])) if match else None


def is_unfinished(name: str) -> bool:
    """Whether this is the name of an unpublished object, or of its checksum file."""
    return _UNFINISHED.fullmatch(name.rsplit("/", 1)[-1]) is not None


def kind_of(name: str) -> str:
    """Return the kind of an object of a checkpoint, by its name."""
    return next((kind for pattern, kind in _OBJECTS if pattern.fullmatch(name)), "other")


def plain_file(path: str) -> PlainFile | None:
    """Return the changelog or snapshot at a path below `state/`; None for other files."""
    match = _PLAIN.fullmatch(path)
    if match is None:
        return None
    store = Store(int(match["operator"]), int(match["partition"]), match["store"] or "")
    kind = CHANGELOG if match["suffix"] == SUFFIXES[CHANGELOG] else SNAPSHOT
    return PlainFile(store, int(match["version"]), match["id"], kind)


def file_of(name: str) -> str:
    """Return the name of the file that a checksum file, of Hadoop or Spark, is of; other names as they are."""
    directory, slash, last = name.rpartition("/")
    if not last.endswith(".crc"):
        return name
    # Hadoop's checksum file of Spark's has both.
    return directory + slash + last.removeprefix(".").removesuffix(".crc").removesuffix(".crc")


def checksums_of(name: str, there: Container[str]) -> list[str]:
    """Return the names of a file's checksum files, of Hadoop and Spark, that are among `there`.

    They are deleted before the file, which is readable without them: one that is left makes a later file of the same
    name unreadable.
    """
    directory, _, last = name.rpartition("/")
    checksums = (f"{directory}/.{last}.crc.crc", f"{directory}/.{last}.crc", f"{directory}/{last}.crc")
    return [one for one in checksums if one in there]


def is_store_name(name: str) -> bool:
    """Whether a store's name stays inside its partition's directory."""
    return name not in (".", "..") and "/" not in name and "\0" not in name


def is_qualifier(qualifier: str) -> bool:
    """Whether this is a valid checkpoint id, or name of a snapshot file."""
    return qualifier != "" and "/" not in qualifier and "\0" not in qualifier
