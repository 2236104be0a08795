"""A reader for log files of format version 1, written from `docs/log-file-format.md` alone.

It needs nothing but Python's standard library and shares no code with the project: what it reads proves the
specification. It favours the order of the text over speed. From a shell: `python reference_reader.py FILE...`
"""

from __future__ import annotations

import json
import re
import struct
import sys
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEADER = struct.Struct(">8sHHI")
TRAILER = struct.Struct(">QIIIHHI8s")
HEADER_MAGIC = b"DSTLLOG\n"
TRAILER_MAGIC = b"DSTLEND\n"
VERSION = 1
KINDS = {1: "batch log", 2: "data file"}
SUFFIXES = {0: ".changelog", 1: ".changelog.crc"}
MAX_INDEX_LENGTH = 256 * 1024 * 1024
MAX_INDEX_RATIO = 64


class DamagedError(Exception):
    """The bytes are not what a writer of this format writes."""


class UnsupportedError(Exception):
    """The file is whole, but of a later version or too large."""


def _crc32c_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc32c_table()


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


@dataclass(frozen=True)
class Part:
    """Bytes of a segment; `file` is None where they are in the file that the index belongs to."""

    file: str | None
    offset: int
    length: int
    crc: int


@dataclass(frozen=True)
class Entry:
    operator: int
    partition: int
    store: str
    version: int
    checkpoint_id: str | None
    suffix: str
    parts: tuple[Part, ...]

    @property
    def path(self) -> str:
        """Where Spark would have this file, below `<checkpoint>/state`."""
        directory = f"{self.operator}/{self.partition}" + (f"/{self.store}" if self.store else "")
        unique = f"_{self.checkpoint_id}" if self.checkpoint_id is not None else ""
        return f"{directory}/{self.version}{unique}{self.suffix}"


@dataclass(frozen=True)
class Index:
    kind: str
    run: uuid.UUID
    host: str
    application: str
    batch: int | None
    history: tuple[tuple[int, int, uuid.UUID], ...]
    entries: tuple[Entry, ...]


def read_index(content: bytes) -> Index:
    """Read the index of a whole log file and verify it."""
    _require(len(content) >= HEADER.size + TRAILER.size, "the file is cut off")
    magic, version, header_kind, header_crc = HEADER.unpack_from(content)
    _require(magic == HEADER_MAGIC, "not a log file")
    _require(crc32c(content[:12]) == header_crc, "the header's checksum is wrong")
    _check_version(version)
    trailer_start = len(content) - TRAILER.size
    offset, stored_length, body_length, index_crc, version, kind, trailer_crc, magic = TRAILER.unpack_from(
        content, trailer_start
    )
    _require(magic == TRAILER_MAGIC, "the file does not end in a trailer")
    _require(crc32c(content[trailer_start : trailer_start + 24]) == trailer_crc, "the trailer's checksum is wrong")
    _check_version(version)
    _require(kind in KINDS, f"unknown kind {kind}")
    _require(kind == header_kind, "header and trailer disagree about the kind")
    _require(offset >= HEADER.size and offset + stored_length == trailer_start, "the index is not before the trailer")
    if max(stored_length, body_length) > MAX_INDEX_LENGTH:
        raise UnsupportedError("the index is too large")
    _require(body_length <= stored_length * MAX_INDEX_RATIO, "the index is packed too tightly")
    stored = content[offset:trailer_start]
    _require(crc32c(stored) == index_crc, "the index's checksum is wrong")
    index = _Decoder(_unpack(stored, body_length)).index(KINDS[kind])
    _check(index, offset)
    return index


def read_segment(content: bytes, entry: Entry, open_file: Callable[[str], bytes]) -> bytes:
    """Read the bytes of a segment that the index of the file `content` names and verify them."""
    pieces = []
    for part in entry.parts:
        source = content if part.file is None else open_file(part.file)
        piece = source[part.offset : part.offset + part.length]
        _require(len(piece) == part.length and crc32c(piece) == part.crc, f"{entry.path} is damaged at {part.offset}")
        pieces.append(piece)
    return b"".join(pieces)


def read_commit_mark(entry: str) -> dict[str, Any] | None:
    """Return line 3 of an entry of `commits/`, or None where stock Spark wrote it."""
    lines = entry.split("\n")
    if len(lines) < 3 or not lines[2].strip():
        return None
    mark = json.loads(lines[2])
    _require(isinstance(mark, dict) and isinstance(mark.get("dstl"), int), "line 3 is not this project's")
    if mark["dstl"] > VERSION:
        raise UnsupportedError(f"commit mark of version {mark['dstl']}")
    return dict(mark)


def run_of(index: Index, batch: int) -> uuid.UUID | None:
    """Say whose batch log counts for a batch up to that of `index`; None: its changelogs are plain files."""
    if batch == index.batch:
        return index.run
    return next((run for first, last, run in index.history if first <= batch <= last), None)


def _require(condition: bool, damage: str) -> None:
    if not condition:
        raise DamagedError(damage)


def _check_version(version: int) -> None:
    _require(version >= 1, f"format version {version}")
    if version > VERSION:
        raise UnsupportedError(f"format version {version}")


def _unpack(stored: bytes, body_length: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(stored, body_length + 1)
    except zlib.error as error:
        raise DamagedError(f"the index does not unpack: {error}") from error
    whole = inflater.eof and not inflater.unused_data and not inflater.unconsumed_tail
    _require(whole and len(body) == body_length, f"the index does not unpack to {body_length} bytes")
    return body


class _Decoder:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._position = 0

    def index(self, kind: str) -> Index:
        run, host, application = self._uuid(), self._text(), self._text()
        batch = self._number() - 1
        history = []
        for _ in self._count(18):
            first = self._number()
            history.append((first, first + self._number(), self._uuid()))
        files = [self._text() for _ in self._count(1)]
        entries = tuple(self._entry(files) for _ in self._count(7))
        _require(self._position == len(self._body), "bytes after the index")
        return Index(kind, run, host, application, None if batch < 0 else batch, tuple(history), entries)

    def _entry(self, files: list[str]) -> Entry:
        operator, partition, store, version = self._number(), self._int(), self._text(), self._number()
        id_kind = self._take(1)[0]
        _require(id_kind <= 2, f"kind of checkpoint id {id_kind}")
        checkpoint_id = (lambda: None, lambda: str(self._uuid()), self._text)[id_kind]()
        segment_kind = self._take(1)[0]
        _require(segment_kind in SUFFIXES, f"kind of segment {segment_kind}")
        parts = []
        for _ in self._count(7):
            file = self._number()
            _require(file <= len(files), f"file number {file}")
            offset, length = self._number(), self._int()
            parts.append(Part(files[file - 1] if file else None, offset, length, self._fixed32()))
        return Entry(operator, partition, store, version, checkpoint_id, SUFFIXES[segment_kind], tuple(parts))

    def _take(self, length: int) -> bytes:
        _require(length <= len(self._body) - self._position, "the index ends early")
        self._position += length
        return self._body[self._position - length : self._position]

    def _number(self) -> int:
        value = 0
        for shift in range(0, 63, 7):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise DamagedError("a number of more than 63 bits")

    def _int(self) -> int:
        value = self._number()
        _require(value < 2**31, "a number of more than 31 bits")
        return value

    def _count(self, minimum_size: int) -> range:
        count = self._number()
        _require(count * minimum_size <= len(self._body) - self._position, "a count larger than the index")
        return range(count)

    def _fixed32(self) -> int:
        return int.from_bytes(self._take(4), "big")

    def _uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._take(16))

    def _text(self) -> str:
        try:
            return self._take(self._int()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise DamagedError("text that is not UTF-8") from error


def _check(index: Index, index_offset: int) -> None:
    """Check what an index must satisfy beyond its encoding."""
    previous = -1
    for first, last, _ in index.history:
        _require(first > previous and last < 2**63, "ranges of the history overlap or descend")
        previous = last
    if index.kind == "batch log":
        _require(index.batch is not None, "a batch log without a batch")
        _require(len({entry.path for entry in index.entries}) == len(index.entries), "a segment is named twice")
    else:
        _require(index.batch is None and not index.history, "a data file with a batch or a history")
    for entry in index.entries:
        _require("/" not in entry.store and entry.store not in (".", ".."), f"store name {entry.store!r}")
        _require(entry.checkpoint_id != "" and "/" not in (entry.checkpoint_id or ""), "checkpoint id")
        for part in entry.parts:
            limit = index_offset if part.file is None else 2**63 - 1
            _require(HEADER.size <= part.offset <= limit - part.length, "a part outside its file's segments")
            _require(part.file is None or is_data_file(part.file), f"name of a data file: {part.file!r}")


def is_data_file(path: str) -> bool:
    names = path.split("/")
    return (
        len(names) == 3
        and names[0] == "data"
        and not any(name in ("", ".", "..") for name in names)
        and not re.search(r"[:\\\x00-\x1f\x7f-\x9f]", path)
    )


def main(files: list[str]) -> None:
    for file in files:
        content = Path(file).read_bytes()
        index = read_index(content)
        print(f"{file}: {index.kind}, batch {index.batch}, run {index.run}, {index.host}, {index.application}")
        for first, last, run in index.history:
            print(f"  batches {first} to {last}: run {run}")
        for entry in index.entries:
            print(f"  {entry.path}")
            for part in entry.parts:
                print(f"    {part.file or 'here'} at {part.offset}: {part.length} bytes, CRC32C {part.crc:08x}")


if __name__ == "__main__":
    main(sys.argv[1:])
