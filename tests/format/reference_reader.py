"""A reader for logs of format version 2, written from `docs/log-file-format.md` alone.

It needs nothing but Python's standard library and shares no code with the project: what it reads proves the
specification. It favours the order of the text over speed.
"""

from __future__ import annotations

import re
import struct
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass

HEADER = struct.Struct(">8sHHIII")
TRAILER = struct.Struct(">QQIII16sHHIII8s")
HEADER_MAGIC = b"DSTLLOG\n"
TRAILER_MAGIC = b"DSTLEND\n"
NOTE = b'{"dstl":'
VERSION = 2
ENTRY, DATA_FILE = 1, 2
SUFFIXES = {0: ".changelog", 1: ".changelog.crc", 2: ".zip", 3: ".sst"}
MAX_INDEX_LENGTH = 256 * 1024 * 1024
MAX_INDEX_RATIO = 64
NUMBER = "(?:0|[1-9][0-9]{0,17})"
RUN = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
DATA_NAME = re.compile(rf"data/{NUMBER}-{RUN}/[A-Za-z0-9][A-Za-z0-9_-]{{0,199}}-{NUMBER}-[a-z0-9]{{1,64}}\.log")
KNOWN_TAGS = {2, 4, 6, 7, 8, 10, 12, 14}


class DamagedError(Exception):
    """The bytes are not what a writer of this format writes."""


class UnsupportedError(Exception):
    """The log is whole, but needs a later reader, or is too large."""


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


@dataclass(frozen=True)
class Part:
    file: str | None  # None: the log that the index belongs to
    offset: int
    length: int
    crc: int


@dataclass(frozen=True)
class Segment:
    operator: int
    partition: int
    store: str
    version: int
    attempt: int
    checkpoint_id: str | None
    suffix: str
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        """Where Spark would have this file, below `<checkpoint>/state`."""
        directory = f"{self.operator}/{self.partition}" + (f"/{self.store}" if self.store else "")
        unique = f"_{self.checkpoint_id}" if self.checkpoint_id is not None else ""
        return f"{directory}/{self.version}{unique}{self.suffix}"


@dataclass(frozen=True)
class Snapshots:
    complete: int  # the batch of the entry whose list this one continues; its own if it tells of all
    plain_up_to: int
    held: tuple[tuple[str, int, tuple[str, ...]], ...]  # name, batch of the entry that holds it, data files


@dataclass(frozen=True)
class Index:
    writer: tuple[str, uuid.UUID, int, str, str]  # software, run, epoch, host, application
    entry: tuple[int, uuid.UUID, uuid.UUID | None] | None  # batch, id, previous
    name: str | None
    base: str | None
    segments: tuple[Segment, ...]
    snapshots: Snapshots | None


@dataclass(frozen=True)
class Log:
    content: bytes  # without what stands before the log
    index: Index


def read_commit_entry(name: str, content: bytes) -> Log | None:
    """Read the log of the whole object `commits/<name>`; None where stock Spark wrote it."""
    if len(content) < TRAILER.size or not content.endswith(TRAILER_MAGIC):
        third = content.split(b"\n", 2)[2:]
        start = third[0][: len(NOTE)] if third else b""
        _require(not start or not NOTE.startswith(start), "the entry is cut off")
        return None
    log = _read(content, ENTRY)
    batch = log.index.entry[0] if log.index.entry else None
    _require(name == str(batch), f"the entry of batch {batch} is called {name}")
    return log


def read_data_file(name: str, content: bytes) -> Log:
    """Read the whole data file `name`, a path relative to the base path."""
    log = _read(content, DATA_FILE)
    _require(len(log.content) == len(content), "bytes before the log")
    _require(log.index.name == name, f"{log.index.name} is called {name}")
    return log


def _read(content: bytes, expected_kind: int) -> Log:
    _require(len(content) >= TRAILER.size, "the object is cut off")
    trailer = content[-TRAILER.size :]
    log_length, offset, stored_length, body_length, index_crc, entry, *meaning, crc, magic = TRAILER.unpack(trailer)
    _require(magic == TRAILER_MAGIC, "the object does not end in a trailer")
    _require(crc32c(trailer[:56]) == crc, "the trailer's checksum is wrong")
    version, kind, required_flags, _ = meaning
    _support(version <= VERSION, f"format version {version}")
    _require(version == VERSION, f"format version {version}")
    _support(required_flags == 0, f"flags {required_flags:08x}")
    _support(kind in (ENTRY, DATA_FILE), f"kind {kind}")
    _require(kind == expected_kind, f"a log of kind {kind}")
    _require(log_length <= len(content), "the log is longer than its object")
    _require(offset >= HEADER.size and offset + stored_length + TRAILER.size == log_length, "the index is not there")
    _support(max(stored_length, body_length) <= MAX_INDEX_LENGTH, "the index is too large")
    _require(body_length <= stored_length * MAX_INDEX_RATIO, "the index is packed too tightly")
    log = content[len(content) - log_length :]
    magic, *header_meaning, crc = HEADER.unpack_from(log)
    _require(magic == HEADER_MAGIC, "no log begins where the trailer says")
    _require(crc32c(log[:20]) == crc, "the header's checksum is wrong")
    _require(header_meaning == meaning, "header and trailer disagree")
    stored = log[offset : -TRAILER.size]
    _require(crc32c(stored) == index_crc, "the index's checksum is wrong")
    index = _read_index(_unpack(stored, body_length), kind)
    _require((index.entry[1].bytes if index.entry else bytes(16)) == entry, "the trailer names another entry")
    for segment in index.segments:
        _check(segment, offset, kind)
    return Log(log, index)


def read_segment(log: Log, segment: Segment, open_file: Callable[[str], bytes]) -> bytes:
    """Read the bytes of a segment that the index of `log` names and verify them."""
    name = segment.name.encode()
    pieces = []
    for part in segment.parts:
        source = log.content if part.file is None else open_file(part.file)
        piece = source[part.offset : part.offset + part.length]
        crc = crc32c(len(name).to_bytes(4, "big") + name + piece)
        _require(len(piece) == part.length and crc == part.crc, f"{segment.name} is damaged at {part.offset}")
        pieces.append(piece)
    return b"".join(pieces)


def _require(condition: bool, damage: str) -> None:
    if not condition:
        raise DamagedError(damage)


def _support(condition: bool, feature: str) -> None:
    if not condition:
        raise UnsupportedError(feature)


def _unpack(stored: bytes, body_length: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(stored, body_length + 1)
    except zlib.error as error:
        raise DamagedError(f"the index does not unpack: {error}") from error
    whole = inflater.eof and not inflater.unused_data and not inflater.unconsumed_tail
    _require(whole and len(body) == body_length, f"the index does not unpack to {body_length} bytes")
    return body


class _Fields:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._content) - self._position

    def take(self, length: int) -> bytes:
        _require(length <= self.left, "the index ends early")
        self._position += length
        return self._content[self._position - length : self._position]

    def _leb128(self) -> int:
        value, shift, byte = 0, 0, 0x80
        while byte >= 0x80:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            _require(shift <= 70 and value < 2**64, "a number of more than 64 bits")
        return value

    def number(self, limit: int = 2**63) -> int:
        value = self._leb128()
        _require(value < limit, f"{value} where less than {limit} is allowed")
        return value

    def integer(self) -> int:
        return self.number(2**31)

    def signed(self) -> int:
        value = self._leb128()
        return value >> 1 ^ -(value & 1)

    def count(self, minimum_size: int) -> range:
        count = self.number()
        _require(count * minimum_size <= self.left, "a count larger than its section")
        return range(count)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self.take(16))

    def text(self) -> str:
        try:
            return self.take(self.integer()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise DamagedError("text that is not UTF-8") from error


def _sections(body: bytes) -> dict[int, _Fields]:
    fields = _Fields(body)
    sections: dict[int, _Fields] = {}
    while fields.left:
        tag = fields.number()
        _require(tag > max(sections, default=-1), f"section {tag} is out of order")
        sections[tag] = _Fields(fields.take(fields.integer()))
    _support(all(tag % 2 or tag in KNOWN_TAGS for tag in sections), f"sections {sorted(sections)}")
    return {tag: section for tag, section in sections.items() if tag in KNOWN_TAGS}


def _read_index(body: bytes, kind: int) -> Index:
    sections = _sections(body)
    expected = {2, 8, 10, 12} | ({4} if kind == ENTRY else {6})
    found = set(sections)
    allowed = expected | ({7, 14} if kind == ENTRY else set())
    _require(expected <= found <= allowed, f"sections {sorted(found)}")
    writer = (
        sections[2].text(), sections[2].uuid(), sections[2].number(), sections[2].text(), sections[2].text()
    )  # fmt: skip
    name = sections[6].text() if kind == DATA_FILE else None
    _require(name is None or DATA_NAME.fullmatch(name) is not None, f"name of a data file: {name!r}")
    entry = None
    if place := sections.get(4):
        entry = (place.number(), place.uuid(), place.uuid() if place.number(2) else None)
    base = sections[7].text() if 7 in sections else None
    files = [sections[8].text() for _ in sections[8].count(1)]
    stores = [(sections[10].number(), sections[10].text()) for _ in sections[10].count(2)]
    segments = _segments(sections[12], files, stores)
    snapshots = _snapshots(sections[14], entry[0], files, stores) if entry and 14 in sections else None
    _require(not any(section.left for section in sections.values()), "bytes left over in a section")
    names = {segment.name for segment in segments}
    _require(kind == DATA_FILE or len(names) == len(segments), "a segment is named twice")
    return Index(writer, entry, name, base, segments, snapshots)


def _snapshots(fields: _Fields, batch: int, files: list[str], stores: list[tuple[int, str]]) -> Snapshots:
    complete, plain_up_to = batch - fields.number(), fields.number()
    held = []
    for _ in fields.count(6):
        (operator, store), partition = stores[fields.number(len(stores))], fields.integer()
        version, checkpoint_id = fields.number(), _checkpoint_id(fields)
        by = batch - fields.number()
        _require(by >= max(version - 1, 0) and (complete == batch or by > complete), f"a snapshot in batch {by}")
        snapshot = Segment(operator, partition, store, version, 0, checkpoint_id, SUFFIXES[2], ())
        held.append((snapshot.name, by, tuple(files[fields.number(len(files))] for _ in fields.count(1))))
    _require(complete >= 0 and plain_up_to <= batch + 1, "a list of snapshots")
    _require(len({name for name, _, _ in held}) == len(held), "a snapshot is listed twice")
    return Snapshots(complete, plain_up_to, tuple(held))


def _checkpoint_id(fields: _Fields) -> str | None:
    kind = fields.take(1)[0]
    _require(kind <= 2, f"an id of kind {kind}")
    return (lambda: None, lambda: str(fields.uuid()), fields.text)[kind]()


def _wrap(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63  # back into 64 bits, signed


def _segments(fields: _Fields, files: list[str], stores: list[tuple[int, str]]) -> tuple[Segment, ...]:
    ends = [HEADER.size] * (len(files) + 1)
    partition, version, attempt = 0, 0, 0
    segments = []
    for _ in fields.count(7):
        store = fields.number(len(stores))
        partition = _wrap(partition + fields.signed())
        version = _wrap(version + fields.signed())
        attempt = _wrap(attempt + fields.signed())
        kind, checkpoint_id = fields.take(1)[0], _checkpoint_id(fields)
        _require(kind in SUFFIXES and (kind != 3 or checkpoint_id is not None), f"kind {kind}")
        parts = []
        for _ in fields.count(7):
            file = fields.number(len(files) + 1)
            offset, length = _wrap(ends[file] + fields.signed()), fields.integer()
            ends[file] = _wrap(offset + length)
            crc = int.from_bytes(fields.take(4), "big")
            parts.append(Part(files[file - 1] if file else None, offset, length, crc))
        operator, name = stores[store]
        segments.append(
            Segment(operator, partition, name, version, attempt, checkpoint_id, SUFFIXES[kind], tuple(parts))
        )
    return tuple(segments)


def _check(segment: Segment, index_offset: int, kind: int) -> None:
    _require(0 <= segment.partition < 2**31 and segment.version >= 0, "a partition or version out of range")
    _require("/" not in segment.store and segment.store not in (".", ".."), f"store name {segment.store!r}")
    _require(segment.checkpoint_id != "" and "/" not in (segment.checkpoint_id or ""), "checkpoint id")
    for part in segment.parts:
        limit = index_offset if part.file is None else 2**63 - 1
        _require(HEADER.size <= part.offset <= limit - part.length, "a part outside its file's segments")
        if part.file is not None:
            _require(kind == ENTRY, "a data file that names others")
            _require(DATA_NAME.fullmatch(part.file) is not None, f"name of a data file: {part.file!r}")
