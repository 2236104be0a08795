# SPDX-License-Identifier: Apache-2.0
"""Reads a log from its end: trailer, index, header; and the commit entry around it.

Each check makes the next one safe; docs/log-file-format.md has their order. A failed check raises `DamagedLog`; a
feature of a later release, or an object larger than any that is written, raises `UnsupportedLog`.
"""

import struct
import zlib
from dataclasses import dataclass
from typing import NamedTuple

from spark_dstl.checkpoint.format.checksum import crc32c
from spark_dstl.checkpoint.format.fields import Malformed, uuid_text
from spark_dstl.checkpoint.format.index import NotUnderstood, read_index
from spark_dstl.checkpoint.format.model import DATA_FILE, ENTRY, HEADER_LENGTH, Index
from spark_dstl.errors import DamagedLog, UnsupportedLog

VERSION = 2
HEADER = struct.Struct(">8sHHIII")
TRAILER = struct.Struct(">QQIII16sHHIII8s")
HEADER_MAGIC = b"DSTLLOG\n"
TRAILER_MAGIC = b"DSTLEND\n"
TRAILER_LENGTH = TRAILER.size
MAX_INDEX_LENGTH = 256 * 1024 * 1024
MAX_INDEX_RATIO = 64
MAX_ENTRY_WITHOUT_TRAILER = 256 * 1024 * 1024
_HEADER_CHECKED = 20
_TRAILER_CHECKED = 56
_NOTE = b'{"dstl":'
_NO_ENTRY = "00000000-0000-0000-0000-000000000000"
_LABELS = {ENTRY: "the log of a commit entry", DATA_FILE: "a data file"}


@dataclass(frozen=True)
class Tail:
    """The last bytes of an object of `length` bytes; all of them if it is no longer."""

    content: bytes
    length: int

    @property
    def is_whole(self) -> bool:
        """Whether the content is the whole object."""
        return len(self.content) == self.length


@dataclass(frozen=True)
class NeedsTail:
    """The number of bytes needed of the object's end."""

    length: int


class _Trailer(NamedTuple):
    """The last 68 bytes of a log."""

    log_length: int
    index_offset: int
    index_length: int
    body_length: int
    index_crc: int
    entry: bytes
    version: int
    kind: int
    required: int
    optional: int
    crc: int
    magic: bytes


# Version, kind, and required and optional flags, which header and trailer have in common.
Meaning = tuple[int, int, int, int]


@dataclass(frozen=True)
class Log:
    """An index, and where log and index begin in the object; `header_was_read` if the tail has the header."""

    index: Index
    start: int
    index_start: int
    meaning: Meaning
    header_was_read: bool


def read_entry(file: str, name: str, tail: Tail) -> Log | NeedsTail | None:
    """Return the log of the commit entry `name`, given its end; None if it has none. Errors name it `file`."""
    if not _ends_in_trailer(tail):
        return _without_trailer(file, tail)
    log = _read_log(file, ENTRY, tail)
    if isinstance(log, Log) and str(log.index.batch) != name:
        raise DamagedLog(file, log.index_start, f"it is the entry of batch {log.index.batch}")
    return log


def read_data_file(file: str, name: str, tail: Tail) -> Log | NeedsTail:
    """Return the log of the data file `name`, given its end; the name is relative to the base path."""
    log = _read_log(file, DATA_FILE, tail)
    if isinstance(log, Log):
        if log.start:
            raise DamagedLog(file, 0, f"{log.start} bytes stand before its log")
        if log.index.name != name:
            raise DamagedLog(file, log.index_start, f"it is the data file {log.index.name}")
    return log


def check_header(file: str, offset: int, content: bytes, meaning: Meaning) -> None:
    """Raise unless `content`, the bytes at `offset`, are a header with the meaning of its trailer."""
    if len(content) < HEADER_LENGTH or not content.startswith(HEADER_MAGIC):
        raise DamagedLog(file, offset, "no log begins where its trailer says")
    _, *found, crc = HEADER.unpack_from(content)
    if crc32c(content[:_HEADER_CHECKED]) != crc:
        raise DamagedLog(file, offset, "its header's checksum is wrong")
    if tuple(found) != meaning:
        raise DamagedLog(file, offset, "its header and its trailer differ")


def sparks_lines(content: bytes) -> list[bytes]:
    """Return the lines before the log of an entry, given its beginning: two of Spark's, and a note.

    What stands behind Spark's version is left out: it keeps Spark from starting without the file manager.
    """
    version, *others = (line.rstrip(b" \r") for line in content.split(b"\n", 3)[:3])
    return [version.partition(b" ")[0], *others]


def _without_trailer(file: str, tail: Tail) -> NeedsTail | None:
    if not tail.is_whole:
        if tail.length > MAX_ENTRY_WITHOUT_TRAILER:
            raise UnsupportedLog(
                f"{file} has {tail.length} bytes and no log at its end; no commit entry is larger than "
                f"{MAX_ENTRY_WITHOUT_TRAILER}. It was not written by Spark, or it is damaged"
            )
        return NeedsTail(tail.length)
    first, *others = tail.content.split(b"\n", 2)
    start = others[1][: len(_NOTE)] if others[1:] else b""
    if (first.startswith(b"v") and b" " in first) or (start and _NOTE.startswith(start)):
        raise DamagedLog(file, tail.length, "it does not end in a trailer: it was cut off")
    return None


def _ends_in_trailer(tail: Tail) -> bool:
    return len(tail.content) >= TRAILER_LENGTH and tail.content.endswith(TRAILER_MAGIC)


def _read_trailer(file: str, kind: int, tail: Tail) -> _Trailer:
    at = max(tail.length - TRAILER_LENGTH, 0)
    if len(tail.content) < TRAILER_LENGTH:
        raise DamagedLog(file, tail.length, f"it ends after {tail.length} bytes")
    if not _ends_in_trailer(tail):
        raise DamagedLog(file, at, "it does not end in a trailer; it was cut off, or is not a log")
    content = tail.content[-TRAILER_LENGTH:]
    found = _Trailer(*TRAILER.unpack(content))
    if crc32c(content[:_TRAILER_CHECKED]) != found.crc:
        raise DamagedLog(file, at, "its trailer's checksum is wrong")
    if found.version > VERSION:
        raise _later(file, f"format version {found.version}", None)
    if found.version < VERSION:
        raise DamagedLog(file, at, f"its format version is {found.version}")
    if found.required:
        raise _later(file, f"the flags {found.required:08x}", None)
    if found.kind not in _LABELS:
        raise _later(file, f"logs of kind {found.kind}", None)
    if found.kind != kind:
        raise DamagedLog(file, at, f"it is {_LABELS[found.kind]}, not {_LABELS[kind]}")
    length, offset, stored, body = found[:4]
    if length > tail.length or offset < HEADER_LENGTH or offset + stored + TRAILER_LENGTH != length:
        raise DamagedLog(file, at, f"its trailer places an index of {stored} bytes at {offset} of {length}")
    if max(stored, body) > MAX_INDEX_LENGTH:
        raise UnsupportedLog(
            f"{file} has an index of {max(stored, body)} bytes; the limit is {MAX_INDEX_LENGTH}. It was not written "
            "by spark-dstl, or it is damaged"
        )
    if body > stored * MAX_INDEX_RATIO:
        raise DamagedLog(file, at, f"its index of {stored} bytes would unpack to {body}")
    return found


def _read_log(file: str, kind: int, tail: Tail) -> Log | NeedsTail:
    trailer = _read_trailer(file, kind, tail)
    needed = trailer.index_length + TRAILER_LENGTH
    if len(tail.content) < needed:
        return NeedsTail(needed)
    start = tail.length - trailer.log_length
    meaning = (trailer.version, trailer.kind, trailer.required, trailer.optional)
    begin = len(tail.content) - trailer.log_length
    if begin >= 0:
        check_header(file, start, tail.content[begin : begin + HEADER_LENGTH], meaning)
    at = start + trailer.index_offset
    stored = tail.content[len(tail.content) - needed : len(tail.content) - TRAILER_LENGTH]
    if crc32c(stored) != trailer.index_crc:
        raise DamagedLog(file, at, "its index's checksum is wrong")
    entry = uuid_text(trailer.entry)
    try:
        index = read_index(_unpacked(stored, trailer.body_length), kind, trailer.index_offset)
        if (index.entry or _NO_ENTRY) != entry:
            raise Malformed(f"its trailer names another entry, {entry}")
    except NotUnderstood as error:
        raise _later(file, str(error), error.software) from error
    except Malformed as error:
        raise DamagedLog(file, at, f"its index cannot be read: {error}") from error
    return Log(index, start, at, meaning, header_was_read=begin >= 0)


def _unpacked(stored: bytes, length: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(stored, length + 1)
    except zlib.error as error:
        raise Malformed(f"it does not unpack: {error}") from error
    if len(body) != length or not inflater.eof or inflater.unused_data or inflater.unconsumed_tail:
        raise Malformed(f"it does not unpack to {length} bytes")
    return body


def _later(file: str, feature: str, software: str | None) -> UnsupportedLog:
    written = f", written by {software}," if software else ""
    return UnsupportedLog(
        f"{file}{written} cannot be read without understanding {feature}, which this release does not know. Use the "
        "release of spark-dstl that wrote it, or a later one"
    )
