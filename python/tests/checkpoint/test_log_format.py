# SPDX-License-Identifier: Apache-2.0
import struct
import zlib

import google_crc32c
import pytest
import written_checkpoint as written
from documents import ROOT, in_a_checkout
from written_checkpoint import Held, Listed, Written

from spark_dstl.checkpoint.format import logfile, names
from spark_dstl.checkpoint.format.checksum import before_part, crc32c
from spark_dstl.checkpoint.format.logfile import Log, NeedsTail, Tail
from spark_dstl.errors import DamagedLog, UnsupportedLog

GOLDEN = ROOT / "jvm/log/src/test/resources/golden/v2"
DATA = f"data/4-{written.RUN}/1-0-5eed.log"
ENTRIES = {"no-segment": 0, "one-segment": 3, "optional": 3, "snapshots": 7, "with-ids": 7, "without-ids": 7}


def entry(content: bytes, name: str = "3", end: int | None = None) -> Log:
    tail = content if end is None else content[-end:]
    found = logfile.read_entry("file", name, Tail(tail, len(content)))
    assert isinstance(found, Log)
    return found


def one_segment() -> bytes:
    content, _ = written.log(1, [Written(0, 1, 4, b"a change")], batch=3, entry=written.entry_id(3))
    return b"v1\n{}\n" + b'{"dstl":2}'.ljust(2047) + b"\n" + content


def test_the_checksum_is_crc32c() -> None:
    assert crc32c(b"1234", b"56789") == 0xE3069283
    assert crc32c(b"a change", start=before_part("0/1/4.changelog")) == 0xC73E4723


@in_a_checkout
@pytest.mark.parametrize(("file", "batch"), ENTRIES.items())
def test_golden_entries_are_read_and_hold_their_segments(file: str, batch: int) -> None:
    content = (GOLDEN / f"{file}.entry").read_bytes()
    data = (GOLDEN / "data.log").read_bytes()
    log = entry(content, str(batch))
    for segment in log.index.segments:
        for part in segment.parts:
            if part.file in (None, DATA):
                source, start = (content, log.start) if part.file is None else (data, 0)
                piece = source[start + part.offset : start + part.offset + part.length]
                assert crc32c(piece, start=before_part(segment.name)) == part.crc


@in_a_checkout
def test_the_golden_data_file_is_read() -> None:
    content = (GOLDEN / "data.log").read_bytes()
    log = logfile.read_data_file("file", DATA, Tail(content, len(content)))
    assert isinstance(log, Log)
    assert log.index.name == DATA
    assert log.index.segments


@in_a_checkout
@pytest.mark.parametrize(
    ("file", "why"),
    {"later-version": "format version 3", "required-flag": "flags", "required-section": "section 18"}.items(),
)
def test_golden_files_of_later_releases_are_unsupported_and_not_damaged(file: str, why: str) -> None:
    content = (GOLDEN / f"{file}.entry").read_bytes()
    with pytest.raises(UnsupportedLog, match=why):
        entry(content)


@in_a_checkout
@pytest.mark.parametrize("file", [*(f"{name}.entry" for name in ENTRIES), "data.log"])
def test_no_flipped_bit_and_no_truncation_of_a_golden_file_passes(file: str) -> None:
    content = (GOLDEN / file).read_bytes()
    name = DATA if file == "data.log" else str(ENTRIES[file.removesuffix(".entry")])
    read = logfile.read_data_file if file == "data.log" else logfile.read_entry
    whole = read("file", name, Tail(content, len(content)))
    assert isinstance(whole, Log)
    parts = {
        whole.start + at
        for segment in whole.index.segments
        for part in segment.parts
        if part.file is None
        for at in range(part.offset, part.offset + part.length)
    }
    for at in range(whole.start, len(content)):
        flipped = bytearray(content)
        flipped[at] ^= 1 << at % 8
        if at in parts:
            continue
        with pytest.raises((DamagedLog, UnsupportedLog)):
            read("file", name, Tail(bytes(flipped), len(content)))
    for length in range(whole.start + 1, len(content)):
        with pytest.raises(DamagedLog):
            read("file", name, Tail(content[:length], length))


def test_a_log_is_read_as_the_writer_of_the_tests_wrote_it() -> None:
    place = written.Place(DATA, 24, 9, 7)
    segments = [
        Written(3, 2, 8, b"x", store="left", qualifier="d0d0d0d0-0000-4000-8000-00000000000a", attempt=-5),
        Written(0, 1, 4, [place, place]),
    ]
    listed = Listed(2, 1, [Held(0, 1, 6, 6, qualifier="an id", files=[DATA])])
    content, _ = written.log(1, segments, batch=7, entry=written.entry_id(7), base="s3a://b/c", listed=listed)
    index = entry(content, "7").index
    assert [segment.name for segment in index.segments] == [segment.name for segment in segments]
    assert index.segments[0].attempt == -5
    assert index.segments[1].parts == ((DATA, 24, 9, 7), (DATA, 24, 9, 7))
    assert index.base == "s3a://b/c"
    assert index.snapshots is not None
    assert (index.snapshots.complete, index.snapshots.plain_up_to) == (5, 1)
    assert index.snapshots.held[0].files == (DATA,)


def test_a_short_tail_returns_the_needed_length() -> None:
    content = one_segment()
    needed = logfile.read_entry("file", "3", Tail(content[-68:], len(content)))
    assert isinstance(needed, NeedsTail)
    assert not entry(content, end=needed.length).header_was_read
    assert entry(content).header_was_read


def test_an_entry_of_stock_spark_has_no_log_and_one_that_was_cut_off_is_damaged() -> None:
    stock = b'v1\n{"nextBatchWatermarkMs":0}'
    assert logfile.read_entry("file", "3", Tail(stock, len(stock))) is None
    for cut in (b'v1\n{}\n{"ds', one_segment()[:1000]):
        with pytest.raises(DamagedLog, match="cut off"):
            logfile.read_entry("file", "3", Tail(cut, len(cut)))
    with pytest.raises(UnsupportedLog, match="bytes and no log at its end"):
        logfile.read_entry("file", "3", Tail(b"x" * 100, 2**40))


def test_an_error_names_file_offset_and_the_way_out() -> None:
    content = bytearray(one_segment())
    content[-70] ^= 1
    with pytest.raises(
        DamagedLog, match=r"^file is damaged at offset \d+: its index's checksum is wrong\. Restore"
    ) as raised:
        entry(bytes(content))
    assert 2078 < raised.value.offset < len(content)


def test_an_entry_under_another_name_is_damaged() -> None:
    with pytest.raises(DamagedLog, match="it is the entry of batch 3"):
        entry(one_segment(), "4")


def with_index(sections: bytes) -> bytes:
    """Return a log with these sections as its index, and with right checksums."""
    header = struct.pack(">8sHHII", b"DSTLLOG\n", 2, 1, 0, 0)
    header += struct.pack(">I", google_crc32c.value(header))
    stored = zlib.compress(sections, 0)
    trailer = struct.pack(">QQIII", 92 + len(stored), 24, len(stored), len(sections), google_crc32c.value(stored))
    trailer += written.entry_id(3) + struct.pack(">HHII", 2, 1, 0, 0)
    return header + stored + trailer + struct.pack(">I8s", google_crc32c.value(trailer), b"DSTLEND\n")


WRITER = written.section(2, written.text("x") + bytes(16) + b"\1" + b"\0\0")
PLACE = written.section(4, b"\3" + written.entry_id(3) + b"\0")
STORE = written.section(10, b"\1\0\0")
NO_FILE = written.section(8, b"\0")


@pytest.mark.parametrize(
    ("sections", "damage"),
    {
        "a number that does not end": (b"\x80" * 11, "more than 64 bits"),
        "a signed number that is too large": (
            WRITER + PLACE + NO_FILE + STORE + written.section(12, b"\1\0" + b"\xff" * 9 + b"\x7f" + b"\2\2\0\0\0"),
            "more than 64 bits",
        ),
        "a section beyond the end": (b"\2\x7f", "ends early"),
        "sections out of order": (written.section(4, b"") + written.section(2, b""), "section 2 follows section 4"),
        "a section that is missing": (WRITER + PLACE, "it has the sections 2, 4"),
        "bytes left over": (WRITER + PLACE + NO_FILE + STORE + written.section(12, b"\0x"), "1 bytes are left over"),
        "a count beyond its section": (WRITER + PLACE + NO_FILE + STORE + written.section(12, b"\x7f"), "127 items in"),
        "a part outside": (
            WRITER + PLACE + NO_FILE + STORE + written.section(12, b"\1\0\2\2\2\0\0\1\0\0\x7f\0\0\0\0"),
            "127 bytes at 24 are outside",
        ),
        "a kind that is unknown": (
            WRITER + PLACE + NO_FILE + STORE + written.section(12, b"\1\0\2\2\2\x09\0\0"),
            "a segment of kind 9",
        ),
        "a segment that is named twice": (
            WRITER + PLACE + NO_FILE + STORE + written.section(12, b"\2" + 2 * b"\0\0\0\0\0\0\0"),
            "0/0/0.changelog is named twice",
        ),
        "a name that leads out": (
            WRITER
            + PLACE
            + written.section(8, b"\1" + written.text("data/../../x.log"))
            + STORE
            + written.section(12, b"\0"),
            "is not the name of a data file",
        ),
        "a store that leads out": (
            WRITER + PLACE + NO_FILE + written.section(10, b"\1\0" + written.text("..")) + written.section(12, b"\0"),
            "is not a store's name",
        ),
    }.values(),
)
def test_an_index_that_breaks_a_rule_is_damage(sections: bytes, damage: str) -> None:
    content = with_index(sections)
    with pytest.raises(DamagedLog, match=damage):
        entry(content)


def test_an_unknown_mandatory_section_is_reported_before_other_damage() -> None:
    with pytest.raises(UnsupportedLog, match="written by x, cannot be read without understanding section 18"):
        entry(with_index(WRITER + written.section(18, b"")))


def test_an_index_that_would_unpack_to_much_is_not_unpacked() -> None:
    content = bytearray(one_segment())
    for length, error, why in ((2**31, UnsupportedLog, "the limit is"), (10**6, DamagedLog, "would unpack to 1000000")):
        struct.pack_into(">I", content, len(content) - 68 + 20, length)
        struct.pack_into(">I", content, len(content) - 12, google_crc32c.value(bytes(content[-68:-12])))
        with pytest.raises(error, match=why):
            entry(bytes(content))


def test_names_are_parsed_strictly() -> None:
    assert names.number("12") == 12
    assert [names.number(name) for name in ("012", "-1", "1.tmp", "", "٣", "1" * 19)] == [None] * 6
    others = (f"data/04-{written.RUN}/1-0-5eed.log", DATA + "\n")
    assert [names.is_data_file(name) for name in (DATA, *others)] == [True, False, False]
    plain = names.plain_file("1/2/left/7_an-id.zip")
    assert plain is not None
    assert (plain.store, plain.version, plain.id, plain.kind) == ((1, 2, "left"), 7, "an-id", names.SNAPSHOT)
    assert names.plain_file("0/1/SSTs/000008-x.sst") is None


def test_an_id_stays_inside_the_directory_of_its_store() -> None:
    assert [names.is_qualifier(one) for one in ("a", "..", "", "../a", "a/b", "a\0")] == [True, True, *[False] * 4]
