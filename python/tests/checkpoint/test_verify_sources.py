# SPDX-License-Identifier: Apache-2.0
"""What `verify` reads of the logs of sources."""

import shutil
from pathlib import Path

import pytest
from verified import ten_batches, verified
from written_checkpoint import WrittenCheckpoint


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    return ten_batches(tmp_path / "q")


@pytest.mark.parametrize("source", ["0", "clicks"])
@pytest.mark.parametrize(
    ("entries", "latest", "missing"),
    [
        (["0", "1", "2"], 2, None),
        (["9.compact", "10", "11"], 11, None),
        (["3", "9.compact", "10"], 10, None),
        (["0", "2"], 2, "1"),
        (["0", "1"], 2, "2"),
        (["10", "11"], 11, "0 to 9"),
        (["9.compact", "11"], 11, "10"),
    ],
)
def test_the_entries_of_a_file_source_that_a_start_reads_must_exist(
    written: WrittenCheckpoint, source: str, entries: list[str], latest: int, missing: str | None
) -> None:
    """A start reads the newest compacted entry, and all later ones. Queries may give sources names."""
    (written.root / "sources/0/0").unlink()
    directory = (written.root / "sources/0").rename(written.root / f"sources/{source}")
    for name in entries:
        number = name.removesuffix(".compact")
        (directory / name).write_text(f'v1\n{{"path":"file:///in","timestamp":0,"batchId":{number}}}')
    written.offsets(10, source=f'{{"logOffset":{latest}}}')
    found = verified(written.root)
    assert [one.object for one in found.damages] == ([] if missing is None else [f"{directory}/{missing}"])


def test_of_several_sources_with_names_the_newest_entries_are_unknown(written: WrittenCheckpoint) -> None:
    (written.root / "sources/0").rename(written.root / "sources/views")
    for offsets in (['{"logOffset":0}', '{"logOffset":0}'], ['{"logOffset":0}', '{"logOffset":1}'], ['"7"', "1"]):
        written.offsets(10, source="\n".join(offsets))
        shutil.copytree(written.root / "sources/views", written.root / "sources/clicks", dirs_exist_ok=True)
        assert verified(written.root).damages == []
        (written.root / "sources/clicks/0").write_bytes(b"")
        assert [one.object for one in verified(written.root).damages] == [str(written.root / "sources/clicks/0")]


@pytest.mark.parametrize("others", ["0", "views"])
def test_offsets_of_format_2_tell_the_source_of_each_line(written: WrittenCheckpoint, others: str) -> None:
    (written.root / "sources/0").rename(written.root / f"sources/{others}")
    lines = [f'{others}:{{"logOffset":0}}', "kafka:{}", 'clicks:{"logOffset":1}', "new:-"]
    content = written.offsets(10, source="\n".join(lines))
    (written.root / "offsets/10").write_bytes(content.replace(b"v1", b"v2", 1))
    assert [one.object for one in verified(written.root).damages] == [str(written.root / "sources/clicks/1")]


def test_a_log_of_files_beyond_the_limit_is_not_read_and_no_damage(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_dstl.checkpoint.verification.metadata._MOST_BYTES", 5000)
    file = '{"path":"file:///in","timestamp":0,"batchId":0}'
    (written.root / "sources/0/9.compact").write_text("v1\n" + "\n".join([file] * 200))
    written.offsets(10, source='{"logOffset":9}')
    found = verified(written.root)
    assert (found.damages, found.lost) == ([], {})
    (note,) = (one for one in found.notes if one.object.endswith("9.compact"))
    assert "more than the 5000 that it may have" in note.what


def test_a_source_that_a_query_uses_twice_has_two_lines_of_offsets_and_one_directory(
    written: WrittenCheckpoint,
) -> None:
    for offsets in (["0", "0"], ['{"logOffset":0}', '{"logOffset":0}'], ['"7"', '"7"', '{"logOffset":0}']):
        written.offsets(10, source="\n".join(offsets))
        assert verified(written.root).damages == []
    written.offsets(10, source='{"logOffset":1}\n{"logOffset":1}')
    assert [one.object for one in verified(written.root).damages] == [str(written.root / "sources/0/1")]
    written.offsets(10, source='{"logOffset":0}\n{"logOffset":1}')
    assert [one.object for one in verified(written.root).damages] == [str(written.root / "sources/1/1")]


@pytest.mark.parametrize("content", [b"v1\n1795669655872", b'\0v1\n{"t":{"0":4}}', b"anything"])
def test_the_log_of_another_source_may_be_anything_but_empty(written: WrittenCheckpoint, content: bytes) -> None:
    written.offsets(10, source='11\n{"logOffset":0}')
    (written.root / "sources/1").mkdir()
    (written.root / "sources/1/0").write_bytes((written.root / "sources/0/0").read_bytes())
    (written.root / "sources/0/0").write_bytes(content)
    assert not verified(written.root).is_damaged
    (written.root / "sources/0/0").write_bytes(b"")
    assert [one.what for one in verified(written.root).damages] == ["it is empty"]
