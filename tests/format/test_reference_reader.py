"""The golden files, read by the reference reader: the specification and the bytes agree."""

from __future__ import annotations

import re
import struct
import uuid
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
import reference_reader as reader

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "jvm/log/src/test/resources/golden/v1"
SPECIFICATION = ROOT / "docs/log-file-format.md"
NAMES = sorted(path.name for path in GOLDEN.glob("*.log"))

RUN_A = uuid.UUID("aaaaaaaa-0000-4000-8000-000000000001")
RUN_B = uuid.UUID("bbbbbbbb-0000-4000-8000-000000000002")
RUN_C = uuid.UUID("cccccccc-0000-4000-8000-000000000003")
DATA = f"data/{RUN_C}/1-0-0-5eed.log"
FIRST_ID = "d0d0d0d0-0000-4000-8000-00000000000a"
SECOND_ID = "d0d0d0d0-0000-4000-8000-00000000000b"


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def segments(name: str) -> dict[str, bytes]:
    """Path and bytes of every segment whose parts are in `name` or in the golden data file."""
    content = golden(name)
    files = {DATA: golden("data.log")}
    return {
        entry.path: reader.read_segment(content, entry, files.__getitem__)
        for entry in reader.read_index(content).entries
        if all(part.file is None or part.file in files for part in entry.parts)
    }


def test_the_checksum_is_crc32c() -> None:
    assert reader.crc32c(b"123456789") == 0xE3069283
    assert reader.crc32c(b"") == 0


def test_the_golden_files_are_there() -> None:
    assert NAMES == ["batch.log", "data.log", "empty-batch.log", "one-segment.log"]


def test_a_batch_log_says_who_wrote_it_and_which_runs_count() -> None:
    index = reader.read_index(golden("batch.log"))
    assert (index.kind, index.batch, index.run) == ("batch log", 7, RUN_C)
    assert (index.host, index.application) == ("driver.example", "app-0001")
    assert index.history == ((0, 2, RUN_A), (3, 3, RUN_B), (5, 6, RUN_C))
    assert [reader.run_of(index, batch) for batch in range(9)] == [
        *[RUN_A] * 3, RUN_B, None, RUN_C, RUN_C, RUN_C, None
    ]  # fmt: skip


def test_a_batch_log_names_every_segment() -> None:
    assert segments("batch.log") == {
        f"0/0/8_{FIRST_ID}.changelog": b"inline changes",
        f"0/0/8_{FIRST_ID}.changelog.crc": b"its checksum",
        f"0/1/8_{SECOND_ID}.changelog": b"the first part of a large segment; its second part; an inline tail",
        "1/0/left-keyToNumValues/8.changelog": b"changes of a named store",
        "1/199/Zähler ☃/8_not-a-uuid.changelog": b"odd names",
        "300/0/8.changelog": b"",
        "300/1/8.changelog": b"",
    }


def test_a_part_may_be_far_inside_another_file() -> None:
    last = reader.read_index(golden("batch.log")).entries[-1]
    assert last.path == "300/2/8.changelog"
    assert last.parts == (reader.Part(f"data/{RUN_C}/2-4-1-beef.log", 5_000_000_000, 1_048_576, 0xDEADBEEF),)


def test_a_data_file_names_what_it_holds() -> None:
    index = reader.read_index(golden("data.log"))
    assert (index.kind, index.batch, index.history, index.host) == ("data file", None, (), "executor.example")
    assert segments("data.log") == {
        f"0/1/8_{SECOND_ID}.changelog": b"the first part of a large segment; its second part; ",
        "1/0/left-keyToNumValues/8.changelog": b"changes of a named store",
    }


def test_a_batch_log_may_be_empty() -> None:
    index = reader.read_index(golden("empty-batch.log"))
    assert (index.batch, index.history, index.entries) == (0, (), ())


def read_all(content: bytes, entries: tuple[reader.Entry, ...]) -> None:
    """Read everything that is in a file itself."""
    others: dict[str, bytes] = {}
    reader.read_index(content)
    for entry in entries:
        own = tuple(part for part in entry.parts if part.file is None)
        reader.read_segment(content, replace(entry, parts=own), others.__getitem__)


@pytest.mark.parametrize("name", NAMES)
def test_every_flipped_bit_is_found(name: str) -> None:
    content = golden(name)
    entries = reader.read_index(content).entries
    for bit in range(len(content) * 8):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(reader.DamagedError):
            read_all(bytes(flipped), entries)


@pytest.mark.parametrize("name", NAMES)
def test_every_truncation_is_found(name: str) -> None:
    content = golden(name)
    for length in range(len(content)):
        with pytest.raises(reader.DamagedError):
            reader.read_index(content[:length])


def test_a_later_version_is_refused_as_such() -> None:
    content = golden("one-segment.log")
    header = struct.pack(">8sHH", b"DSTLLOG\n", 2, 1)
    with pytest.raises(reader.UnsupportedError):
        reader.read_index(header + struct.pack(">I", reader.crc32c(header)) + content[16:])


def test_a_commit_entry_of_stock_spark_has_no_mark() -> None:
    assert reader.read_commit_mark('v1\n{"nextBatchWatermarkMs":0}') is None
    assert reader.read_commit_mark('v1\n{"nextBatchWatermarkMs":0}\n') is None


def test_a_commit_entry_names_the_run_that_committed_it() -> None:
    (entry,) = re.findall(r"```text\n(v2\n.*?)```", SPECIFICATION.read_text("utf-8"), re.DOTALL)
    mark = reader.read_commit_mark(entry)
    assert mark is not None
    assert mark["dstl"] == 1
    assert mark["batchLog"] is True
    assert uuid.UUID(mark["run"]) == RUN_C


def test_a_commit_mark_of_a_later_version_is_refused() -> None:
    with pytest.raises(reader.UnsupportedError):
        reader.read_commit_mark('v1\n{}\n{"dstl":2}')


def dump(heading: str) -> tuple[bytes, list[int]]:
    """Bytes and offsets of the annotated hexdump below `heading` in the specification."""
    text = SPECIFICATION.read_text("utf-8").split(heading)[1].split("```")[1]
    rows = re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)", text, re.MULTILINE)
    return b"".join(bytes.fromhex(row) for _, row in rows), [int(offset, 16) for offset, _ in rows]


@pytest.mark.parametrize("heading", ["### The file", "### The index, unpacked"])
def test_the_example_of_the_specification_is_the_golden_file(heading: str) -> None:
    content = golden("one-segment.log")
    offset, stored_length = struct.unpack(">QI", content[-36:-24])
    expected = content if heading == "### The file" else zlib.decompress(content[offset : offset + stored_length])
    dumped, offsets = dump(heading)
    assert dumped == expected
    text = SPECIFICATION.read_text("utf-8").split(heading)[1].split("```")[1]
    lengths = [len(bytes.fromhex(row)) for row in re.findall(r"^[0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+)", text, re.M)]
    assert offsets == [sum(lengths[:row]) for row in range(len(lengths))]


def test_the_command_line_prints_an_index(capsys: pytest.CaptureFixture[str]) -> None:
    reader.main([str(GOLDEN / "batch.log")])
    printed = capsys.readouterr().out
    assert "batch log, batch 7" in printed
    assert "300/2/8.changelog" in printed
