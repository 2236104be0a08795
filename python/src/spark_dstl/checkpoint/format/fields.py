# SPDX-License-Identifier: Apache-2.0
"""Reads the fields of an index, from bytes of which only the checksum was checked."""


class Malformed(Exception):
    """The bytes break a rule of the format."""


class Fields:
    """A cursor over the content of a section. Every method raises `Malformed` at the end of the content."""

    __slots__ = ("_content", "_end", "_position")

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0
        self._end = len(content)

    @property
    def left(self) -> int:
        """The number of unread bytes."""
        return self._end - self._position

    def take(self, length: int) -> bytes:
        """Return the next bytes."""
        start = self._position
        if length > self._end - start:
            raise Malformed("it ends early")
        self._position = start + length
        return self._content[start : start + length]

    def _unsigned(self) -> int:
        position = self._position
        if position >= self._end:
            raise Malformed("it ends early")
        byte = self._content[position]
        if byte < 0x80:
            self._position = position + 1
            return byte
        value, shift = 0, 0
        while True:
            if position >= self._end:
                raise Malformed("it ends early")
            byte = self._content[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 70 or value >= 2**64:
                raise Malformed("a number of more than 64 bits")
            if byte < 0x80:
                self._position = position
                return value

    def number(self, limit: int = 2**63) -> int:
        """Return an unsigned number less than `limit`."""
        value = self._unsigned()
        if value >= limit:
            raise Malformed(f"{value} where less than {limit} is allowed")
        return value

    def integer(self) -> int:
        """Return a number less than 2^31."""
        return self.number(2**31)

    def signed(self) -> int:
        """Return a signed 64-bit number."""
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)

    def count(self, least_size: int) -> range:
        """Return the range of a count of items that have at least `least_size` bytes each."""
        count = self.number()
        if count * least_size > self.left:
            raise Malformed(f"{count} items in {self.left} bytes")
        return range(count)

    def byte(self) -> int:
        """Return the next byte."""
        return self.take(1)[0]

    def u32(self) -> int:
        """Return four bytes as a number."""
        return int.from_bytes(self.take(4), "big")

    def uuid(self) -> str:
        """Return a UUID in lower case with hyphens."""
        return uuid_text(self.take(16))

    def text(self) -> str:
        """Return a text."""
        try:
            return self.take(self.integer()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Malformed("a text that is not UTF-8") from error


def uuid_text(content: bytes) -> str:
    """Return the UUID of these 16 bytes in lower case with hyphens."""
    digits = content.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def wrapped(value: int) -> int:
    """Return the value modulo 2^64, as a signed number."""
    return (value + 2**63) % 2**64 - 2**63
