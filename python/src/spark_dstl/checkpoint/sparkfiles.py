# SPDX-License-Identifier: Apache-2.0
"""Reads the JSON files of Spark in a checkpoint, of all its versions, with limits of size."""

import json
import re
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NoReturn

from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.locate import hadoop_path, scheme_of
from spark_dstl.checkpoint.storage import Storage
from spark_dstl.errors import CheckpointNotFound

MAX_METADATA = 64 * 1024
MAX_OPERATOR = 16 * 1024 * 1024
MAX_OFFSETS = 64 * 1024 * 1024
_MAX_CLAIM = 4096
# A number of partitions is read from a file; Spark writes no larger one.
MAX_PARTITIONS = 100_000
_VERSION = re.compile(rb"v[1-9][0-9]*")
_S3 = re.compile("s3[an]?:")
_DEFAULT_STORE = "default"
_SCHEMAS = "stateSchemaFilePaths"
_PROVIDERS = "org.apache.spark.sql.execution.streaming.state"
OURS = f"{_PROVIDERS}.dstl.DstlStateStoreProvider"
STOCKS = f"{_PROVIDERS}.RocksDBStateStoreProvider"
HDFS_BACKED = f"{_PROVIDERS}.HDFSBackedStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class Operator:
    """A stateful operator of Spark's metadata: its stores by name, each with its number of partitions."""

    id: int
    name: str
    stores: dict[str, int]
    schemas: tuple[str, ...] = ()
    """The schema files that it names, by their paths below `state/`."""
    is_whole: bool = False
    """Whether it has one partition, whatever Spark's number of shuffle partitions."""

    def partitions(self, shuffled: int) -> int:
        """Return its number of partitions, given Spark's number."""
        return 1 if self.is_whole else shuffled


@dataclass(frozen=True)
class Claim:
    """A claim of an epoch: its run, host and first batch, or None for values that the object lacks."""

    epoch: int
    run: str | None = None
    host: str | None = None
    first: int | None = None


def query_id(storage: Storage) -> str:
    """Return the id of the query of a checkpoint. Raises `CheckpointNotFound` if this is no checkpoint."""
    content = storage.read("metadata", MAX_METADATA)
    if content is None:
        why = "there is no such directory, or it is empty" if storage.is_empty() else "it has no file `metadata`"
        raise CheckpointNotFound(
            f"{storage.place.shown} is not a query's checkpoint: {why}. Name the directory that is given to the "
            "query as checkpointLocation"
        )
    identity = (json_object(content) or {}).get("id")
    if not isinstance(identity, str) or not names.is_uuid(identity):
        raise CheckpointNotFound(f"{storage.shown('metadata')} is not what Spark writes: it names no query")
    return identity


def numbered_directories(storage: Storage, directory: str) -> list[int]:
    """Return the numbers that are names of directories in a directory, in ascending order: operators, or partitions."""
    found = (names.number(one) for one in storage.directories(directory))
    return sorted(number for number in found if number is not None)


def operators(storage: Storage, partitions: int | None = None) -> list[Operator]:
    """Return the stateful operators sorted by id, without unreadable ones.

    `partitions` is the number of the newest batch; without it the number in the metadata counts, which in version 1 is
    that of the first batch.
    """
    found = []
    for number in numbered_directories(storage, "state"):
        below = f"state/{number}/_metadata"
        batches = (names.number(stored.last_name) for stored in storage.objects(f"{below}/v2"))
        later = sorted((batch for batch in batches if batch is not None), reverse=True)
        # The newest description counts.
        for name in (*(f"{below}/v2/{batch}" for batch in later), f"{below}/metadata"):
            # Longer metadata is damaged.
            operator = _operator(storage.range(name, 0, MAX_OPERATOR), number)
            if operator is not None:
                found.append(_with_its_partitions(storage, operator, partitions))
                break
    return found


def offsets(storage: Storage, batch: int) -> dict[str, Any]:
    """Return the second line of an entry of `offsets/`: watermark, time and settings; empty if it is missing."""
    return offsets_in(storage.read(f"offsets/{batch}", MAX_OFFSETS))


def offsets_in(content: bytes | None) -> dict[str, Any]:
    """Return the second line of the content of an entry of `offsets/`; empty if there is none."""
    lines = (content or b"").split(b"\n", 2)
    return json_object(lines[1] if len(lines) > 1 else None) or {}


def settings_in(offsets: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that Spark has pinned in the second line of an entry of `offsets/`; empty if it has none."""
    found = offsets.get("conf")
    return found if isinstance(found, dict) else {}


def partitions_in(offsets: dict[str, Any]) -> int | None:
    """Return the number of partitions in the second line of an entry of `offsets/`; None if it has none."""
    number = names.number(str(settings_in(offsets).get(PARTITIONS)))
    return number if number and number <= MAX_PARTITIONS else None


def state_ids(metadata: dict[str, Any] | None) -> dict[int, list[list[str] | None]]:
    """Return the state store checkpoint ids in the second line of a commit entry, by operator and partition.

    A partition is None if its ids are not what Spark writes.
    """
    ids = (metadata or {}).get("stateUniqueIds")
    return {
        number: [[str(one) for one in stores] if isinstance(stores, list) else None for stores in partitions]
        for operator, partitions in (ids.items() if isinstance(ids, dict) else ())
        if (number := names.number(operator)) is not None and isinstance(partitions, list)
    }


def claim(storage: Storage, epoch: int) -> Claim | None:
    """Return the claim of an epoch; None if the object is missing."""
    name = f"dstl/epochs/{epoch}"
    # A longer object is not a claim.
    content = storage.range(name, 0, _MAX_CLAIM)
    if content is None:
        return None
    words = content.decode("utf-8", "replace").split()
    if len(words) != 5 or words[0] != "claim" or not names.is_uuid(words[1]) or not content.endswith(b"\n"):
        return Claim(epoch)
    return Claim(epoch, words[1], words[2], names.number(words[3]))


def is_version(line: bytes) -> bool:
    """Whether this is the first line of a file of Spark."""
    return _VERSION.fullmatch(line) is not None


def schemas(path: str, content: bytes) -> tuple[str, ...] | None:
    """Return the schema files that an operator's metadata names; None if this is not what Spark writes.

    `path` is that of the metadata below `state/`, and begins with the operator's number.
    """
    operator = _operator(content, int(path.split("/")[0])) if is_version(content.partition(b"\n")[0]) else None
    return None if operator is None else operator.schemas


def moved(content: bytes, place: str) -> bytes:
    """Return the metadata of an operator for a checkpoint at this path or URI: it has the full paths of schemas."""
    version, _, line = content.partition(b"\n")
    found = json_object(line) or {}
    root = hadoop_path(place).rstrip("/")
    root = root if scheme_of(root)[0] else f"file:{root}"

    def here(path: str) -> str:
        # The query names S3 as its Spark does.
        s3 = _S3.match(path)
        return f"{_S3.sub(s3[0], root) if s3 else root}/state/{path.rpartition('/state/')[2]}"

    try:
        for store in _list(found["stateStoreInfo"]):
            if paths := store.get(_SCHEMAS):
                store[_SCHEMAS] = [here(_text(path)) for path in _list(paths)]
    except (AttributeError, KeyError, TypeError):
        return content
    return version + b"\n" + json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()


def _operator(content: bytes | None, number: int) -> Operator | None:
    found = json_object((content or b"").partition(b"\n")[2]) or {}
    try:
        info, described = found["operatorInfo"], _list(found["stateStoreInfo"])
        stores = dict(map(_store, described))
        schemas = tuple(
            _text(path).rpartition("/state/")[2] for store in described for path in _list(store.get(_SCHEMAS) or [])
        )
        operator = Operator(_number(info["operatorId"]), _text(info["operatorName"]), stores, schemas)
        return operator if operator.id == number and stores else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _store(described: dict[str, Any]) -> tuple[str, int]:
    """Return a store's name, and its number of partitions."""
    name = _text(described["storeName"])
    # Spark does not read the description without this number.
    _number(described.get("numColsPrefixKey", 0))
    return "" if name == _DEFAULT_STORE else name, _number(described["numPartitions"])


def _number(value: object) -> int:
    """Return a number that Spark has counted. Raises `ValueError` for anything else."""
    number = names.number(str(value))
    if number is None:
        raise ValueError(value)
    return number


def _list(value: Any) -> list[Any]:
    """Return a list of Spark. Raises `TypeError` for anything else, as text would be one of characters."""
    if not isinstance(value, list):
        raise TypeError(value)
    return value


def _text(value: Any) -> str:
    """Return a text of Spark. Raises `TypeError` for anything else."""
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _with_its_partitions(storage: Storage, operator: Operator, partitions: int | None) -> Operator:
    """Correct the number of partitions: Spark notes its shuffle partitions, and keeps ungrouped state in one."""
    is_whole = operator.name == "globalLimit" or (operator.name == "stateStoreSave" and _has_no_key(storage, operator))
    number = 1 if is_whole else partitions
    stores = operator.stores if number is None else dict.fromkeys(operator.stores, number)
    return replace(operator, stores=stores, is_whole=is_whole)


def _has_no_key(storage: Storage, operator: Operator) -> bool:
    content = storage.range(f"state/{operator.id}/0/_metadata/schema", 0, MAX_OPERATOR) or b""
    # The file has two schemas as JSON, first that of the key.
    _, _, fields = content.partition(b'"fields":[')
    return fields.startswith(b"]")


def json_object(content: bytes | None) -> dict[str, Any] | None:
    """Return the bytes as a JSON object; None if they are not one."""
    try:
        found = json.loads(content or b"", parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _finite(number: str) -> float:
    """Return a number. Raises `ValueError` for `1e999`, which Python reads as infinite."""
    found = float(number)
    return found if isfinite(found) else _refuse(number)


def _refuse(constant: str) -> NoReturn:
    """Refuse `NaN` and `Infinity`, which Python reads, and Spark does not. Raises `ValueError`."""
    raise ValueError(constant)
