# SPDX-License-Identifier: Apache-2.0
"""CRC32C, the checksum of the format."""

from spark_dstl.dependencies import needed

_ENGINE = None


def crc32c(*pieces: bytes, start: int = 0) -> int:
    """Return the CRC32C of bytes with the CRC32C `start` that are followed by the pieces."""
    global _ENGINE
    if _ENGINE is None:
        _ENGINE = needed("google_crc32c", "Checking a log")
    value = start
    for piece in pieces:
        value = _ENGINE.extend(value, piece)
    return value


def before_part(segment: str) -> int:
    """Return the checksum of a segment's name, with which the checksum of each of its parts begins."""
    name = segment.encode("utf-8")
    return crc32c(len(name).to_bytes(4, "big"), name)
