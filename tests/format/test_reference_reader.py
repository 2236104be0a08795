"""The golden files, read by the reference reader: the specification and the bytes agree."""

from __future__ import annotations

import json
import re
import struct
import uuid
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
import reference_reader as reader

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "jvm/log/src/test/resources/golden/v2"
SPECIFICATION = ROOT / "docs/log-file-format.md"

RUN = uuid.UUID("cccccccc-0000-4000-8000-000000000003")
DATA = f"data/4-{RUN}/1-0-5eed.log"
OTHER = f"data/4-{RUN}/driver-4-1beef.log"
FIRST_ID = "d0d0d0d0-0000-4000-8000-00000000000a"
SECOND_ID = "d0d0d0d0-0000-4000-8000-00000000000b"
READABLE = {
    "data.log": DATA,
    "no-segment.entry": "0",
    "one-segment.entry": "3",
    "optional.entry": "3",
    "snapshots.entry": "7",
    "with-ids.entry": "7",
    "without-ids.entry": "7",
}
UNSUPPORTED = {
    "later-version.entry": "version 3",
    "required-flag.entry": "flags 00000002",
    "required-section.entry": "sections .*16",
}


def golden(file: str) -> bytes:
    return (GOLDEN / file).read_bytes()


def read(file: str, content: bytes | None = None) -> reader.Log:
    content = golden(file) if content is None else content
    if file == "data.log":
        return reader.read_data_file(DATA, content)
    log = reader.read_commit_entry(READABLE.get(file, "3"), content)
    assert log is not None
    return log


def segments(file: str, content: bytes | None = None) -> dict[str, bytes]:
    """Name and bytes of every segment whose parts are in `file` or in the golden data file."""
    log = read(file, content)
    files = {DATA: golden("data.log")}
    return {
        segment.name: reader.read_segment(log, segment, files.__getitem__)
        for segment in log.index.segments
        if all(part.file is None or part.file in files for part in segment.parts)
    }


def test_the_checksum_is_crc32c() -> None:
    assert reader.crc32c(b"123456789") == 0xE3069283
    assert reader.crc32c(b"") == 0


def test_the_golden_files_are_there() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == READABLE.keys() | UNSUPPORTED.keys()


def test_an_entry_says_who_wrote_it_and_what_it_was_built_on() -> None:
    index = read("with-ids.entry").index
    assert index.writer == ("spark-dstl 0.1.0", RUN, 4, "driver.example", "app-0001")
    assert index.entry == (
        7,
        uuid.UUID("eeeeeeee-0000-4000-8000-000000000007"),
        uuid.UUID("eeeeeeee-0000-4000-8000-000000000006"),
    )
    assert (index.base, index.name) == ("s3a://bucket/log ☃", None)


def test_an_entry_names_every_segment() -> None:
    assert segments("without-ids.entry") == {
        "0/0/8.changelog": b"inline changes",
        "1/0/left-keyToNumValues/8.changelog": b"changes of a named store",
        "1/199/Zähler ☃/8.changelog": b"odd names",
        "300/0/8.changelog": b"",
        "300/1/8.changelog": b"",
    }
    assert [segment.attempt for segment in read("without-ids.entry").index.segments] == [39, -1, 40, 44, 45, 46]


def test_an_entry_names_segments_with_checkpoint_ids() -> None:
    assert segments("with-ids.entry") == {
        f"0/0/8_{FIRST_ID}.changelog": b"inline changes",
        f"0/0/8_{FIRST_ID}.changelog.crc": b"its checksum",
        f"0/1/8_{SECOND_ID}.changelog": b"the first part of a large segment; its second part; an inline tail",
        "1/5/8_not-a-uuid.changelog": b"an odd id",
    }


def test_an_entry_has_snapshots_and_names_those_before_it() -> None:
    index = read("snapshots.entry").index
    names = [segment.name for segment in index.segments]
    assert names == [
        "0/0/8.changelog",
        "0/0/8.zip",
        "0/1/7.zip",
        "0/1/7_000012-d0d0d0d0-0000-4000-8000-00000000000c.sst",
    ]
    assert index.segments[3].parts == (reader.Part(OTHER, 24, 1_048_576, 0xDEADBEEF),)
    data = "data/4-cccccccc-0000-4000-8000-000000000003/1-0-5eed.log"
    held = (("1/0/left/6.zip", 6, (data, OTHER)), ("0/0/8.zip", 7, ()), ("0/1/7.zip", 7, (OTHER,)))
    assert index.snapshots == reader.Snapshots(5, 2, held)
    assert read("with-ids.entry").index.snapshots is None


def test_a_part_may_be_far_inside_another_file() -> None:
    last = read("without-ids.entry").index.segments[-1]
    assert last.name == "300/2/8.changelog"
    assert last.parts == (reader.Part(OTHER, 5_000_000_000, 1_048_576, 0xDEADBEEF),)


def test_a_data_file_names_itself_and_what_it_holds() -> None:
    index = read("data.log").index
    assert (index.entry, index.base, index.name, index.writer[3]) == (None, None, DATA, "executor.example")
    assert segments("data.log") == {
        f"0/1/8_{SECOND_ID}.changelog": b"the first part of a large segment; its second part; ",
        "1/0/left-keyToNumValues/8.changelog": b"changes of a named store",
    }


def test_an_entry_may_be_without_segments() -> None:
    index = read("no-segment.entry").index
    assert (index.entry, index.segments) == ((0, uuid.UUID("eeeeeeee-0000-4000-8000-000000000000"), None), ())


def test_what_need_not_be_understood_is_skipped() -> None:
    assert read("optional.entry").index == read("one-segment.entry").index
    assert segments("optional.entry") == {"0/1/4.changelog": b"a change"}


@pytest.mark.parametrize("file", UNSUPPORTED)
def test_what_must_be_understood_is_unsupported_and_not_damaged(file: str) -> None:
    with pytest.raises(reader.UnsupportedError, match=UNSUPPORTED[file]):
        read(file)


def test_an_object_under_another_name_is_not_believed() -> None:
    for name in ("4", "03", "3.tmp"):
        with pytest.raises(reader.DamagedError):
            reader.read_commit_entry(name, golden("one-segment.entry"))
    with pytest.raises(reader.DamagedError):
        reader.read_data_file(OTHER, golden("data.log"))
    with pytest.raises(reader.DamagedError):
        reader.read_commit_entry("3", golden("data.log"))


def test_the_bytes_of_another_segment_are_not_believed() -> None:
    log = read("without-ids.entry")
    first, other = log.index.segments[0], log.index.segments[1]
    with pytest.raises(reader.DamagedError):
        reader.read_segment(log, replace(other, parts=first.parts), lambda _: b"")


@pytest.mark.parametrize("file", ["data.log", "one-segment.entry", "with-ids.entry"])
def test_every_flipped_bit_of_a_log_is_found(file: str) -> None:
    content = golden(file)
    for bit in range((len(content) - len(read(file).content)) * 8, len(content) * 8):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(reader.DamagedError):
            segments(file, bytes(flipped))


@pytest.mark.parametrize("file", READABLE)
def test_every_truncation_is_found(file: str) -> None:
    content = golden(file)
    spark = 0 if file == "data.log" else len(b"\n".join(content.split(b"\n", 2)[:2])) + 2
    for length in range(spark, len(content)):
        with pytest.raises(reader.DamagedError):
            read(file, content[:length])


def test_an_entry_of_stock_spark_has_no_log() -> None:
    for content in (b'v1\n{"nextBatchWatermarkMs":0}', b'v1\n{"nextBatchWatermarkMs":0}\n', b"v1"):
        assert reader.read_commit_entry("3", content) is None


def test_the_note_says_to_people_what_the_index_says() -> None:
    (example,) = re.findall(r"```text\n(v1\n.*?)\n```", SPECIFICATION.read_text("utf-8"), re.DOTALL)
    content = golden("one-segment.entry")
    before = content[: -len(read("one-segment.entry").content)]
    assert before.decode("ascii").rstrip() == example
    assert len(before.split(b"\n", 2)[2]) == 2048
    note = json.loads(before.split(b"\n")[2])
    assert next(iter(note)) == "dstl"
    assert (note["dstl"], note["batch"], note["run"]) == (2, 3, str(RUN))


def dump(heading: str) -> tuple[bytes, list[int], list[int]]:
    """Bytes, offsets and lengths of the annotated hexdump below `heading` in the specification."""
    text = SPECIFICATION.read_text("utf-8").split(heading)[1].split("```")[1]
    rows = re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)", text, re.MULTILINE)
    pieces = [bytes.fromhex(row) for _, row in rows]
    return b"".join(pieces), [int(offset, 16) for offset, _ in rows], [len(piece) for piece in pieces]


@pytest.mark.parametrize("heading", ["### The log\n", "### The index, unpacked"])
def test_the_example_of_the_specification_is_the_golden_file(heading: str) -> None:
    log = read("one-segment.entry").content
    offset, stored_length = struct.unpack(">QI", log[-60:-48])
    expected = log if heading == "### The log\n" else zlib.decompress(log[offset : offset + stored_length])
    dumped, offsets, lengths = dump(heading)
    assert dumped == expected
    assert offsets == [sum(lengths[:row]) for row in range(len(lengths))]
