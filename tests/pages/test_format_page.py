# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/log-file-format.md are the golden files, byte for byte."""

from __future__ import annotations

import json
import re
import struct
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "jvm/log/src/test/resources/golden/v2/one-segment.entry"
PAGE = (ROOT / "docs/log-file-format.md").read_text("utf-8")
LOG_MAGIC = b"DSTLLOG\n"
TRAILER_LENGTH = 68


def test_the_note_of_the_page_is_that_of_the_golden_entry() -> None:
    (example,) = re.findall(r"```text\n(v1 .*?)\n```", PAGE, re.DOTALL)
    before = GOLDEN.read_bytes().partition(LOG_MAGIC)[0]
    assert before.decode("ascii").rstrip() == example
    lines = before.split(b"\n", 2)
    assert len(lines[2]) == 2048
    note = json.loads(lines[2])
    assert next(iter(note)) == "dstl"
    assert (note["dstl"], note["batch"]) == (2, 3)


@pytest.mark.parametrize("heading", ["### The log\n", "### The index, unpacked"])
def test_the_hexdump_of_the_page_is_the_golden_entry(heading: str) -> None:
    content = GOLDEN.read_bytes()
    log = content[content.index(LOG_MAGIC) :]
    # Two fields of the trailer.
    offset, stored_length = struct.unpack(">QI", log[8 - TRAILER_LENGTH : 20 - TRAILER_LENGTH])
    expected = log if heading == "### The log\n" else zlib.decompress(log[offset : offset + stored_length])
    text = PAGE.split(heading)[1].split("```")[1]
    rows = re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)", text, re.MULTILINE)
    pieces = [bytes.fromhex(row) for _, row in rows]
    assert b"".join(pieces) == expected
    lengths = [len(piece) for piece in pieces]
    assert [int(offset, 16) for offset, _ in rows] == [sum(lengths[:row]) for row in range(len(lengths))]
