# SPDX-License-Identifier: Apache-2.0
"""Verification of the schemas of stores, of which Spark keeps no checksums."""

import struct

import pytest
from verified import verified
from written_checkpoint import WrittenCheckpoint

PIECE = b'{"type":"struct","fields":[]}'


def schema(*pieces: bytes, begin: bytes = b"\0\2v2") -> bytes:
    return begin + b"".join(struct.pack(">IH", 1, len(piece)) + piece for piece in pieces)


@pytest.mark.parametrize(
    ("content", "is_damaged"),
    [
        (schema(PIECE, PIECE), False),
        (schema(PIECE, PIECE, begin=b"\0\3v12"), False),
        # Of keys alone.
        (schema(PIECE), True),
        (schema(PIECE, PIECE, begin=b"\0\2x2"), True),
        (schema(PIECE, PIECE[:-1]), True),
        # Spark writes longer ones in several pieces, whose JSON is not parsed.
        (schema(PIECE) + b"{" * 64 * 1024, False),
    ],
)
def test_a_schema_has_a_key_and_a_value(written: WrittenCheckpoint, content: bytes, is_damaged: bool) -> None:
    (written.root / "state/0/0/_metadata/schema").write_bytes(content)
    assert verified(written.root).is_damaged == is_damaged
