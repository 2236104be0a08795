"""CRC32C, the checksum of the format."""

from spark_dstl.checkpoint.dependencies import needed

_ENGINE = None


def crc32c(*pieces: bytes) -> int:
    """Return the CRC32C of the pieces, one after another."""
    global _ENGINE
    if _ENGINE is None:
        _ENGINE = needed("google_crc32c", "Checking a log")
    value: int = 0
    for piece in pieces:
        value = _ENGINE.extend(value, piece)
    return value


def of_part(segment: str, content: bytes) -> int:
    """Return the checksum of a part of a segment: it covers the segment's name as well."""
    name = segment.encode("utf-8")
    return crc32c(len(name).to_bytes(4, "big"), name, content)
