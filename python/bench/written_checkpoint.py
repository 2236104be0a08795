# SPDX-License-Identifier: Apache-2.0
"""Writes checkpoints without Spark, of any size and shape: for tests and for the benchmark of commands.

The writer follows docs/log-file-format.md. It checks nothing: tests write damaged checkpoints with it.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import time
import uuid
import zipfile
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import google_crc32c

RUN = "cccccccc-0000-4000-8000-000000000003"
NO_ENTRY = bytes(16)
CHANGELOG, CHECKSUM, SNAPSHOT, SST = 0, 1, 2, 3
SUFFIXES = {CHANGELOG: ".changelog", CHECKSUM: ".changelog.crc", SNAPSHOT: ".zip", SST: ".sst"}


@dataclass(frozen=True)
class Place:
    """The place of a part of a segment in a data file."""

    file: str
    offset: int
    length: int
    crc: int


@dataclass
class Written:
    """A segment to be written: its bytes, for the log itself, or their places in data files."""

    operator: int
    partition: int
    version: int
    content: bytes | Sequence[Place]
    store: str = ""
    kind: int = CHANGELOG
    qualifier: str | None = None
    attempt: int = 1

    @property
    def name(self) -> str:
        """Return Spark's path of it below `state/`."""
        directory = f"{self.operator}/{self.partition}" + (f"/{self.store}" if self.store else "")
        unique = "" if self.qualifier is None else f"_{self.qualifier}"
        return f"{directory}/{self.version}{unique}{SUFFIXES[self.kind]}"


@dataclass
class Held:
    """A snapshot in the list of an entry."""

    operator: int
    partition: int
    version: int
    batch: int
    qualifier: str | None = None
    files: Sequence[str] = ()


@dataclass
class Listed:
    """The list of snapshots of an entry."""

    since: int = 0
    plain_up_to: int = 0
    held: Sequence[Held] = ()


def crc_of(name: str, content: bytes) -> int:
    encoded = name.encode()
    value: int = google_crc32c.value(len(encoded).to_bytes(4, "big") + encoded + content)
    return value


def number(value: int) -> bytes:
    """Encode an unsigned number."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value: int) -> bytes:
    return number((value << 1 ^ value >> 63) & (2**64 - 1))


def text(value: str) -> bytes:
    return number(len(value.encode())) + value.encode()


def qualifier(value: str | None) -> bytes:
    """Encode an id."""
    if value is None:
        return b"\0"
    try:
        parsed = uuid.UUID(value)
    except ValueError:
        parsed = None
    if parsed is not None and str(parsed) == value:
        return b"\1" + parsed.bytes
    return b"\2" + text(value)


def section(tag: int, content: bytes) -> bytes:
    return number(tag) + number(len(content)) + content


def log(
    kind: int,
    segments: Sequence[Written],
    *,
    epoch: int = 1,
    batch: int = 0,
    entry: bytes = NO_ENTRY,
    previous: bytes | None = None,
    name: str = "",
    base: str | None = None,
    listed: Listed | None = None,
    spark: tuple[bytes, bytes] | None = None,
) -> tuple[bytes, dict[str, list[Place]]]:
    """Return a log, and where it has the parts of each segment, by the names of segments.

    `spark` is what is before the log, and the batch's entry in `offsets`: the log has their checksums.
    """
    header = struct.pack(">8sHHII", b"DSTLLOG\n", 2, kind, 0, 0)
    body = bytearray(header + struct.pack(">I", google_crc32c.value(header)))
    files: list[str] = []
    stores: list[tuple[int, str]] = []
    encoded = bytearray()
    own: dict[str, list[Place]] = {}
    ends: dict[int, int] = {}
    last = (0, 0, 0)

    def index_of(known: list, item: object) -> int:  # type: ignore[type-arg]
        if item not in known:
            known.append(item)
        return known.index(item)

    for segment in segments:
        now = (segment.partition, segment.version, segment.attempt)
        encoded += number(index_of(stores, (segment.operator, segment.store)))
        encoded += b"".join(signed(a - b) for a, b in zip(now, last, strict=True))
        last = now
        encoded += bytes([segment.kind]) + qualifier(segment.qualifier)
        if isinstance(segment.content, bytes):
            crc = crc_of(segment.name, segment.content)
            parts = [(0, len(body), len(segment.content), crc)]
            own[segment.name] = [Place(name, len(body), len(segment.content), crc)]
            body += segment.content
        else:
            parts = [(index_of(files, part.file) + 1, part.offset, part.length, part.crc) for part in segment.content]
        encoded += number(len(parts))
        for file, offset, length, crc in parts:
            encoded += number(file) + signed(offset - ends.get(file, 24)) + number(length) + crc.to_bytes(4, "big")
            ends[file] = offset + length
    snapshots = bytearray()
    for held in listed.held if listed else ():
        snapshots += number(index_of(stores, (held.operator, ""))) + number(held.partition)
        snapshots += number(held.version) + qualifier(held.qualifier) + number(batch - held.batch)
        snapshots += number(len(held.files)) + b"".join(number(index_of(files, file)) for file in held.files)
    writer = text("spark-dstl 0.1.0") + uuid.UUID(RUN).bytes + number(epoch) + text("driver.example") + text("app-0001")
    sections = section(2, writer)
    if kind == 1:
        sections += section(4, number(batch) + entry + (b"\1" + previous if previous else b"\0"))
    else:
        sections += section(6, text(name))
    if base is not None:
        sections += section(7, text(base))
    sections += section(8, number(len(files)) + b"".join(map(text, files)))
    sections += section(10, number(len(stores)) + b"".join(number(op) + text(store) for op, store in stores))
    sections += section(12, number(len(segments)) + encoded)
    if listed is not None:
        sections += section(
            14, number(listed.since) + number(listed.plain_up_to) + number(len(listed.held)) + snapshots
        )
    if spark is not None:
        before, offsets = (google_crc32c.value(content).to_bytes(4, "big") for content in spark)
        sections += section(15, before + b"\1" + offsets)
    stored = zlib.compress(sections)
    if len(sections) > 64 * len(stored):
        stored = zlib.compress(sections, 0)
    length = len(body) + len(stored) + 68
    places = struct.pack(">QQIII", length, len(body), len(stored), len(sections), google_crc32c.value(stored))
    trailer = places + entry + struct.pack(">HHII", 2, kind, 0, 0)
    trailer += struct.pack(">I8s", google_crc32c.value(trailer), b"DSTLEND\n")
    return bytes(body) + stored + trailer, own


def entry_id(batch: int, run: int = 0) -> bytes:
    """Return an id for the entry of a batch."""
    return uuid.UUID(int=0xEEEEEEEE_0000_4000_8000_000000000000 + run * 2**32 + batch).bytes


def zip_of(files: Mapping[str, bytes]) -> bytes:
    """Return the zip file of a snapshot with these SST files, by Spark's names."""
    listed = [
        {"localFileName": f"{number:06d}.sst", "dfsSstFileName": name, "sizeBytes": len(content)}
        for number, (name, content) in enumerate(files.items(), start=8)
    ]
    metadata = "v1\n" + json.dumps({"sstFiles": listed, "numKeys": 1})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("MANIFEST-000005", b"manifest")
        archive.writestr("CURRENT", b"MANIFEST-000005\n")
        archive.writestr("metadata", metadata)
    return packed.getvalue()


@dataclass
class WrittenCheckpoint:
    """A checkpoint in a directory; each call adds to it."""

    root: Path
    partitions: int = 2
    epoch: int = 1
    held: list[Held] = field(default_factory=list)
    sequence: int = 0
    provider: str = "x.DstlStateStoreProvider"

    def begin(self) -> WrittenCheckpoint:
        """Write the checkpoint of a query before its first batch."""
        partitions = [f"state/0/{partition}" for partition in range(self.partitions)]
        for directory in ("commits", "offsets", "dstl/epochs", "dstl/data", "state/0/_metadata", *partitions):
            (self.root / directory).mkdir(parents=True, exist_ok=True)
        (self.root / "metadata").write_text(json.dumps({"id": "57c15062-eb55-4686-807b-a1d00b27765d"}))
        stores = [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": self.partitions}]
        operator = {"operatorInfo": {"operatorId": 0, "operatorName": "stateStoreSave"}, "stateStoreInfo": stores}
        (self.root / "state/0/_metadata/metadata").write_text("v1\n" + json.dumps(operator) + " ")
        schema = b'{"type":"struct","fields":[{"name":"f"}]}'
        piece = struct.pack(">IH", 1, len(schema)) + schema
        (self.root / "state/0/0/_metadata").mkdir()
        (self.root / "state/0/0/_metadata/schema").write_bytes(b"\0\2v2" + piece + piece)
        source = self.root / "sources/0"
        source.mkdir(parents=True)
        (source / "0").write_text('v1\n{"path":"file:///input/0","timestamp":0,"batchId":0}')
        self.claim()
        return self

    @property
    def pins(self) -> list[str]:
        """The names of the pins that readers have."""
        return sorted(path.name for path in (self.root / "dstl/epochs").glob("*.pin"))

    def column_families(self) -> Path:
        """Write the description of an operator whose stores have column families; return its schema file."""
        state = self.root / "state/0"
        schema = state / "_stateSchema/default/0_x"
        schema.parent.mkdir(parents=True)
        schema.write_bytes((state / "0/_metadata/schema").read_bytes())
        (state / "_metadata/v2").mkdir()
        stores = [
            {"storeName": "default", "numPartitions": self.partitions, "stateSchemaFilePaths": [f"file:{schema}"]}
        ]
        operator = {"operatorInfo": {"operatorId": 0, "operatorName": "x"}, "stateStoreInfo": stores}
        (state / "_metadata/v2/0").write_text("v2\n" + json.dumps(operator))
        return schema

    def claim(self, first: int = 0) -> None:
        """Write the claim of the epoch, which commits that batch first."""
        text = f"claim {RUN} driver.example {first} {self.epoch - 1}\n"
        (self.root / f"dstl/epochs/{self.epoch}").write_text(text)

    def offsets(self, batch: int, source: str = '{"logOffset":0}') -> bytes:
        """Write the `offsets` entry of a batch, with the line of its source, and return it."""
        conf = {"spark.sql.streaming.stateStore.providerClass": self.provider}
        head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": conf})
        content = f"v1\n{head}\n{source}".encode()
        (self.root / f"offsets/{batch}").write_bytes(content)
        return content

    def data_file(self, segments: Sequence[Written]) -> dict[str, list[Place]]:
        """Write a data file with these segments; returns their places, by their names."""
        self.sequence += 1
        name = f"data/{self.epoch}-{RUN}/1-{self.sequence}-5eed.log"
        content, places = log(2, segments, epoch=self.epoch, name=name)
        path = self.root / "dstl" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return places

    def entry(
        self,
        batch: int,
        segments: Sequence[Written],
        *,
        run: int = 0,
        previous: bytes | None = None,
        base: str | None = None,
        listed: Listed | None = None,
        ids: object = None,
    ) -> None:
        """Write the commit entry of a batch, and its `offsets` entry; it follows the batch before by default.

        `ids` are the state store checkpoint ids in Spark's second line.
        """
        before = entry_id(batch - 1, run) if previous is None and batch else previous
        note = json.dumps({"dstl": 2, "run": RUN, "epoch": self.epoch, "batch": batch}, separators=(",", ":"))
        metadata = {"nextBatchWatermarkMs": 0} | ({} if ids is None else {"stateUniqueIds": ids})
        spark = json.dumps(metadata, separators=(",", ":")).encode()
        lines = b"v1\n" + spark + b"\n" + note.encode().ljust(2047) + b"\n"
        content, _ = log(
            1, segments, epoch=self.epoch, batch=batch, entry=entry_id(batch, run), previous=before, base=base,
            listed=listed or Listed(held=self.held), spark=(lines, self.offsets(batch)),
        )  # fmt: skip
        (self.root / f"commits/{batch}").write_bytes(lines + content)

    def changes(self, batch: int, size: int = 40) -> list[Written]:
        """Return a changelog of each store for a batch."""
        return [Written(0, partition, batch + 1, bytes([batch % 251]) * size) for partition in range(self.partitions)]

    def batch(self, batch: int, snapshots: bool = False, large: bool = False, size: int = 40) -> None:
        """Write a whole batch: its changes, in a data file if they are large; and a snapshot of each store."""
        segments = self.changes(batch, size)
        if large:
            places = self.data_file(segments)
            for segment in segments:
                segment.content = places[segment.name]
        if snapshots:
            segments += self.snapshots(batch)
        self.entry(batch, segments)

    def batches(
        self, numbers: Iterable[int], snapshots: Container[int] = (), large: Container[int] = ()
    ) -> WrittenCheckpoint:
        """Write whole batches, some with snapshots or with large changes."""
        for batch in numbers:
            self.batch(batch, batch in snapshots, batch in large)
        return self

    def snapshots(self, batch: int) -> list[Written]:
        """Return a snapshot of each store of the version after the batch, its files in a data file."""
        files = [
            Written(0, partition, batch + 1, b"sst" * 20, kind=SST, qualifier=f"{batch:06d}-{partition}")
            for partition in range(self.partitions)
        ]
        contents = {file.name: bytes(file.content) for file in files if isinstance(file.content, bytes)}
        places = self.data_file(files)
        zips = []
        for file in files:
            packed = zip_of({f"{file.qualifier}.sst": contents[file.name]})
            zips.append(Written(0, file.partition, batch + 1, packed, kind=SNAPSHOT))
            file.content = places[file.name]
            of = sorted({place.file for place in file.content})
            self.held.append(Held(0, file.partition, batch + 1, batch, files=of))
        return zips + files

    def plain_entry(self, batch: int, changelogs: bool = True) -> None:
        """Write a batch as stock Spark does: an entry without a log, changelogs as files."""
        self.offsets(batch)
        (self.root / f"commits/{batch}").write_text('v1\n{"nextBatchWatermarkMs":0}')
        if changelogs:
            for segment in self.changes(batch):
                path = self.root / "state" / segment.name
                path.parent.mkdir(parents=True, exist_ok=True)
                assert isinstance(segment.content, bytes)
                path.write_bytes(segment.content)


def after_each_deletion(root: Path, names: Sequence[str], work: Path) -> Iterator[tuple[Path, Sequence[str]]]:
    """Yield copies of a checkpoint with the first objects of `names` deleted, from none to all, and their names."""
    for number in range(len(names) + 1):
        copy = work / f"after-{number}"
        shutil.copytree(root, copy)
        for name in names[:number]:
            (copy / name).unlink()
        yield copy, names[:number]


def aged(root: Path) -> Path:
    """Set the modification times below a directory to two hours ago; returns the directory."""
    then = time.time() - 7200
    for path in root.rglob("*"):
        os.utime(path, (then, then))
    return root
