# SPDX-License-Identifier: Apache-2.0
"""Verification finds damage, and the batches that it loses."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import pytest
from invoked import dstl, ended, succeeded
from verified import HEADER, cut, data, entry, flip, purge, ten_batches, verified
from written_checkpoint import Held, Listed, Written, WrittenCheckpoint, zip_of

import spark_dstl
from spark_dstl.checkpoint.verification.findings import Verification
from spark_dstl.commands import console


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    return ten_batches(tmp_path / "q")


@pytest.mark.parametrize("deep", [False, True])
def test_an_undamaged_checkpoint_has_no_damage(written: WrittenCheckpoint, deep: bool) -> None:
    found = verified(written.root, deep)
    assert not found.is_damaged
    assert (found.newest_batch, found.newest_undamaged, found.way_back, found.running) == (9, 9, None, None)
    assert (found.leftovers, found.notes) == ([], [])
    assert (found.counts.entries, found.counts.data_files, found.counts.snapshots) == (10, 3, 2)


def truncate_entry(length: int) -> Callable[[Path], None]:
    return lambda root: cut(entry(root, 6), length)


def flip_entry(at: int) -> Callable[[Path], None]:
    return lambda root: flip(entry(root, 6), at)


@pytest.mark.parametrize(
    ("damage", "what"),
    {
        "emptied": (truncate_entry(0), "does not begin with Spark's version line"),
        "cut in Spark's lines": (truncate_entry(2), "does not begin|not what Spark writes|no plain changelog"),
        "cut in the note": (truncate_entry(60), "it was cut off"),
        "cut in the log": (truncate_entry(HEADER + 60), "it was cut off"),
        "cut by a byte": (truncate_entry(-1), "it was cut off"),
        "a digit of the watermark": (flip_entry(27), "Spark's lines, or the note after them, are not what was written"),
        "a bit of the note": (flip_entry(60), "Spark's lines, or the note after them, are not what was written"),
        "a bit of the header": (flip_entry(HEADER + 9), "its header's checksum is wrong"),
        "a bit of the header's magic": (flip_entry(HEADER), "no log begins where its trailer says"),
        "a bit of the index": (flip_entry(-70), "its index's checksum is wrong"),
        "a bit of the trailer": (flip_entry(-60), "its trailer's checksum is wrong"),
        "a bit of the trailer's magic": (flip_entry(-3), "it was cut off"),
        "another entry's content": (
            lambda root: entry(root, 6).write_bytes(entry(root, 5).read_bytes()), "it is the entry of batch 5",
        ),
        "missing": (lambda root: entry(root, 6).unlink(), "it is missing: there are earlier and later ones"),
    }.values(),
)  # fmt: skip
def test_a_damaged_entry_is_named_with_the_batch_to_roll_back_to(
    written: WrittenCheckpoint, damage: Callable[[Path], None], what: str
) -> None:
    damage(written.root)
    found = verified(written.root)
    assert found.is_damaged
    named = [f"{one.what} {one.object}" for one in found.damages] + list(found.lost.values())
    assert any(re.search(what, one) for one in named), named
    assert (found.newest_undamaged, sorted(found.lost)) == (5, [6, 7, 8, 9])
    assert found.way_back == 5
    assert all(one.object.startswith(str(written.root)) for one in found.damages)


@pytest.mark.parametrize("deep", [False, True])
def test_offsets_that_are_not_those_of_the_batch_are_named_with_the_batch_to_roll_back_to(
    written: WrittenCheckpoint, deep: bool
) -> None:
    offsets = written.root / "offsets/9"
    offsets.write_text(offsets.read_text().replace('"batchWatermarkMs": 0', '"batchWatermarkMs": 1'))
    found = verified(written.root, deep)
    (damage,) = found.damages
    assert (damage.object, damage.offset) == (str(offsets), 0)
    assert damage.what == "it is not what batch 9 was computed from, by the checksum in commits/9"
    assert found.lost == {9: "offsets/9 is damaged"}
    assert (found.newest_undamaged, found.way_back) == (8, 8)


def test_the_offsets_of_a_batch_that_is_not_committed_may_be_anything_of_spark(written: WrittenCheckpoint) -> None:
    written.offsets(10)
    assert not verified(written.root).is_damaged


def test_the_command_prints_the_damage_and_the_rollback_command(written: WrittenCheckpoint) -> None:
    flip(entry(written.root, 6), -70)
    result = ended(console.DAMAGED, "verify", written.root)
    assert f"damage: {entry(written.root, 6)} at offset " in result.output
    assert "lost: batch 6: state of 0/0, and of 1 more stores: version 7: commits/6 cannot be read" in result.output
    assert "The newest batch without damage in what was read is 5, of 9." in result.output
    assert result.output.endswith(f"  dstl rollback {written.root} --to 5\n")


def test_the_command_that_repairs_names_settings_without_secrets(written: WrittenCheckpoint) -> None:
    flip(entry(written.root, 6), -80)
    settings = ("spark.hadoop.fs.s3a.secret.key=abc", "spark.hadoop.fs.azure.account.key.a.b=abc", "spark.hadoop.x=1")
    conf = [word for setting in settings for word in ("--conf", setting)]
    output = dstl("verify", str(written.root), *conf).output
    assert "--conf spark.hadoop.x=1" in output
    assert "abc" not in output
    assert "secret.key=*****" in output
    document = json.loads(dstl("verify", str(written.root), "--output", "json").output)
    assert (document["damaged"], document["newest_undamaged"]) == (True, 5)
    assert document["damages"][0]["offset"] > HEADER


def test_the_rollback_command_names_the_same_place(written: WrittenCheckpoint, tmp_path: Path) -> None:
    flip(entry(written.root, 6), -70)
    moved = written.root.rename(tmp_path / "a directory")
    base = moved / "dstl"
    result = dstl("verify", str(moved), "--base-path", str(base))
    assert result.output.endswith(f"  dstl rollback '{moved}' --base-path '{base}' --to 5\n")


@pytest.mark.parametrize(
    ("damage", "what"),
    {
        "missing": (lambda file: file.unlink(), "it is missing: commits/7 names it for 0/0/8.changelog"),
        "cut off": (lambda file: cut(file, 60), "it ends after 60 bytes, before 0/0/8.changelog"),
        "a bit of a segment": (lambda file: flip(file, 30), "the 40 bytes of 0/0/8.changelog have another"),
    }.values(),
)
def test_damage_of_a_data_file_loses_the_batches_that_need_it(
    written: WrittenCheckpoint, damage: Callable[[Path], None], what: str
) -> None:
    damage(data(written.root, 3))
    found = verified(written.root)
    assert any(what in one.what for one in found.damages), found.damages
    assert (found.newest_undamaged, sorted(found.lost)) == (6, [7, 8, 9])


def test_damage_of_a_data_files_own_index_loses_nothing(written: WrittenCheckpoint) -> None:
    flip(data(written.root, 3), -70)
    found = verified(written.root)
    assert [one.what for one in found.damages] == ["its index's checksum is wrong"]
    assert (found.newest_undamaged, found.lost, found.way_back) == (9, {}, None)
    result = ended(console.DAMAGED, "verify", written.root)
    assert "The newest batch, 9, has no damage in what was read: the query can continue from it." in result.output


def test_a_data_file_with_the_content_of_another_is_damage(written: WrittenCheckpoint) -> None:
    data(written.root, 3).write_bytes(data(written.root, 1).read_bytes())
    assert any("it is the data file" in one.what for one in verified(written.root).damages)


def test_a_damaged_snapshot_loses_the_batches_that_only_it_can_rebuild(written: WrittenCheckpoint) -> None:
    data(written.root, 2).unlink()
    found = verified(written.root)
    assert any("it is missing: commits/4 names it" in one.what for one in found.damages)
    # All changelogs exist.
    assert (found.lost, found.newest_undamaged) == ({}, 9)
    purge(written.root, 4)
    found = verified(written.root)
    assert (sorted(found.lost), found.newest_undamaged) == ([4, 5, 6, 7, 8, 9], None)


@pytest.mark.parametrize("families", [False, True])
def test_a_store_with_column_families_cannot_be_rebuilt_without_a_snapshot(tmp_path: Path, families: bool) -> None:
    """Spark takes one at the end of the first batch, because the changelogs do not name column families."""
    written = WrittenCheckpoint(tmp_path / "q").begin().batches(range(3), snapshots=(0,))
    if families:
        written.column_families()
    assert (verified(written.root).is_damaged, verified(written.root).newest_undamaged) == (False, 2)
    data(written.root, 1).unlink()
    found = verified(written.root)
    assert found.newest_undamaged == (None if families else 2)
    why = "state of 0/0, and of 1 more stores: there is no snapshot, without which Spark does not load a store with "
    assert found.lost == (dict.fromkeys(range(3), f"{why}column families") if families else {})


def test_without_the_snapshot_purged_batches_cannot_be_rebuilt(written: WrittenCheckpoint) -> None:
    purge(written.root, 4)
    assert verified(written.root).newest_undamaged == 9
    flip(entry(written.root, 4), HEADER + 24 + 80 + 10)
    found = verified(written.root)
    assert any("0/0/5.zip have another checksum" in one.what for one in found.damages)
    assert found.lost[9] == "state of 0/0: version 4 is missing, and so is a snapshot of version 5"
    assert found.newest_undamaged is None
    assert "restore the checkpoint from a backup" in dstl("verify", str(written.root)).output


def snapshot_of(written: WrittenCheckpoint, zipped: bytes) -> Verification:
    """Verify after a batch whose commit entry has this as a snapshot of the store 0/0."""
    held = Held(0, 0, 11, 10)
    packed = Written(0, 0, 11, zipped, kind=2)
    written.entry(10, [*written.changes(10), packed], listed=Listed(held=[*written.held, held]))
    return verified(written.root, deep=True)


def test_the_files_that_a_snapshots_zip_names_must_exist(written: WrittenCheckpoint) -> None:
    found = snapshot_of(written, zip_of({"000008-x.sst": b"content"}))
    (damage,) = found.damages
    assert "0/0/11.zip cannot be loaded: 000008-x.sst is missing" in damage.what
    plain = written.root / "state/0/0/SSTs/000008-x.sst"
    plain.parent.mkdir(parents=True)
    plain.write_bytes(b"too long content")
    assert "000008-x.sst has 16 bytes and not 7" in verified(written.root).damages[0].what
    plain.write_bytes(b"content")
    assert not verified(written.root).is_damaged


@pytest.mark.parametrize(
    ("zipped", "what"),
    {
        "no zip": (b"not a zip", "it is not the zip of a snapshot"),
        "a name that leads out": (zip_of({"../../x.sst": b""}), "it names a file '../../x.sst'"),
        "a cut zip": (zip_of({})[:-10], "it is not the zip of a snapshot"),
    }.values(),
)
def test_a_file_that_is_not_the_zip_of_a_snapshot_is_damage(
    written: WrittenCheckpoint, zipped: bytes, what: str
) -> None:
    found = snapshot_of(written, zipped)
    assert any(what in one.what for one in found.damages), found.damages
    # The state is rebuilt from the snapshot before.
    assert found.lost == {}


def test_an_entry_of_another_lineage_is_damage(written: WrittenCheckpoint) -> None:
    written.entry(6, written.changes(6), run=1)
    found = verified(written.root)
    assert [one.object for one in found.damages] == [str(entry(written.root, batch)) for batch in (6, 7)]
    assert "it was built on another entry of batch 5" in found.damages[0].what
    assert found.newest_undamaged == 5


def test_a_stock_entry_in_between_needs_plain_changelogs(written: WrittenCheckpoint) -> None:
    written.plain_entry(6, changelogs=False)
    found = verified(written.root)
    assert found.newest_undamaged == 5
    assert "commits/6 has no log, and there is no plain changelog" in found.lost[6]
    written.plain_entry(6)
    assert not verified(written.root).is_damaged


def test_an_entry_that_lacks_a_store_is_damage(written: WrittenCheckpoint) -> None:
    written.entry(6, written.changes(6)[:1])
    found = verified(written.root)
    assert found.lost[6] == "state of 0/1: version 7: commits/6 has changelogs of other stores, and none of this one"
    assert found.newest_undamaged == 5


def test_a_changelog_whose_id_sparks_line_does_not_name_is_damage(written: WrittenCheckpoint) -> None:
    written.entry(9, written.changes(9), ids={"0": [["a"], ["b"]]})
    found = verified(written.root)
    assert "Spark's second line names others" in found.damages[0].what


def test_ids_that_are_no_list_are_ignored(written: WrittenCheckpoint) -> None:
    written.entry(9, written.changes(9), ids={"0": [7, []]})
    with spark_dstl.open(str(written.root)) as checkpoint:
        assert checkpoint.survey().entries[9].ids == {(0, 1): frozenset()}


def test_a_listed_snapshot_that_its_entry_lacks_is_damage(written: WrittenCheckpoint) -> None:
    written.entry(9, written.changes(9), listed=Listed(held=[Held(0, 0, 7, 6)]))
    found = verified(written.root)
    assert "it lists a snapshot of version 7 of 0/0 in commits/6, which has none" in found.damages[0].what


def test_the_error_for_an_entry_of_a_later_release_names_its_version(written: WrittenCheckpoint) -> None:
    golden = Path(__file__).resolve().parents[3] / "jvm/log/src/test/resources/golden/v2/later-version.entry"
    if not golden.exists():
        pytest.skip("only in a checkout of the whole project")
    entry(written.root, 9).write_bytes(golden.read_bytes())
    found = verified(written.root)
    assert "format version 3, which this release does not know" in found.damages[0].what
    assert (found.damages[0].later, found.newest_undamaged) == (True, 8)
    assert "A later release may have written what this one cannot read" in dstl("verify", written.root).output


@pytest.mark.parametrize("content", [b"", b"garbage", b"claim not-a-run host\n", b"\xff" * 10_000])
def test_a_garbage_claim_is_damage_and_loses_nothing(written: WrittenCheckpoint, content: bytes) -> None:
    (written.root / "dstl/epochs/1").write_bytes(content)
    found = verified(written.root)
    assert [one.object for one in found.damages] == [str(written.root / "dstl/epochs/1")]
    assert (found.newest_undamaged, found.lost) == (9, {})


@pytest.mark.parametrize(("missing", "intact"), [(9, 8), (5, 9), (8, 7)])
def test_missing_offsets_are_damage(written: WrittenCheckpoint, missing: int, intact: int) -> None:
    (written.root / f"offsets/{missing}").unlink()
    found = verified(written.root)
    assert any(f"offsets/{missing}" in one.object for one in found.damages)
    assert found.newest_undamaged == intact


def test_a_batch_is_lost_with_the_offsets_before_it(written: WrittenCheckpoint) -> None:
    (written.root / "offsets/8").write_bytes(b"")
    found = verified(written.root)
    assert found.lost.keys() == {8, 9}
    assert found.lost[9] == "offsets/8 is damaged, without which Spark does not start"
    assert (found.newest_undamaged, found.way_back) == (7, 7)


def test_a_lack_of_all_commit_entries_is_damage(written: WrittenCheckpoint) -> None:
    shutil.rmtree(written.root / "commits")
    found = verified(written.root)
    assert [one.object for one in found.damages] == [str(written.root / "offsets/1")]
    assert found.newest_undamaged is None


def test_a_lack_of_all_files_in_state_is_damage(written: WrittenCheckpoint) -> None:
    shutil.rmtree(written.root / "state")
    found = verified(written.root)
    assert [one.object for one in found.damages] == [str(written.root / "state")]
    assert found.newest_undamaged is None


@pytest.mark.parametrize("settings", ['["a setting"]', '"a setting"', "1"])
def test_settings_of_a_batch_that_are_no_object_are_found(written: WrittenCheckpoint, settings: str) -> None:
    (written.root / "offsets/9").write_text(f'v1\n{{"conf": {settings}}}\n')
    found = verified(written.root)
    assert [one.object for one in found.damages] == [str(written.root / "offsets/9")]
    assert found.newest_undamaged == 8


def test_offsets_that_are_no_text_are_found(written: WrittenCheckpoint) -> None:
    (written.root / "offsets/3").write_bytes(b"\0\1")
    (damage,) = verified(written.root).damages
    assert "offsets/3" in damage.object
    assert damage.what == "it is not what Spark writes"


def test_a_plain_file_is_checked_against_sparks_checksum(tmp_path: Path) -> None:
    written = WrittenCheckpoint(tmp_path / "q", partitions=1).begin()
    for batch in range(3):
        written.plain_entry(batch)
        changelog = written.root / f"state/0/0/{batch + 1}.changelog"
        value = google_crc32c.value(changelog.read_bytes())
        signed = value - 2**32 if value >= 2**31 else value
        checksum = {"algorithm": "CRC32C", "value": signed, "mainFileSize": 40}
        changelog.with_name(f"{changelog.name}.crc").write_text(json.dumps(checksum))
    assert not verified(written.root, deep=True).is_damaged
    flip(written.root / "state/0/0/2.changelog", 3)
    found = verified(written.root)
    assert "it is not what Spark wrote" in found.damages[0].what
    assert found.newest_undamaged == 0


def test_the_new_directory_of_a_moved_base_path_can_be_named(written: WrittenCheckpoint, tmp_path: Path) -> None:
    written.entry(9, written.changes(9), base=f"file:{tmp_path}/base")
    (written.root / "dstl/data").rename(tmp_path / "data")
    found = verified(written.root)
    assert any("if it was moved, name its directory with --base-path" in one.what for one in found.damages)
    succeeded("verify", written.root, "--base-path", tmp_path)


def test_a_checkpoint_on_s3_is_verified(written: WrittenCheckpoint, s3: Callable[[Path], str]) -> None:
    flip(entry(written.root, 6), HEADER + 30)
    uri = s3(written.root)
    result = ended(console.DAMAGED, "verify", uri)
    assert f"damage: {uri}/commits/6 at offset {HEADER + 24}: the 40 bytes of 0/0/7.changelog" in result.output
    assert f"dstl rollback {uri} --to 5" in result.output


def test_a_checkpoint_without_offsets_is_damaged(written: WrittenCheckpoint) -> None:
    for path in (written.root / "offsets").iterdir():
        path.unlink()
    found = verified(written.root)
    assert "Spark does not start without it" in found.damages[0].what
    assert found.newest_undamaged is None


def test_huge_batch_numbers_take_no_time(written: WrittenCheckpoint) -> None:
    entry(written.root, 9).rename(written.root / "commits/999999999999999999")
    (written.root / "offsets/999999999999999998").write_text("v1\n{}")
    found = verified(written.root)
    assert found.newest_undamaged == 8
    assert found.is_damaged
    for command in (("ls",), ("ls", "versions"), ("show",), ("log",)):
        assert dstl(command[0], str(written.root), *command[1:]).exit_code in (0, console.DAMAGED)


def test_the_help_names_the_checks_that_are_not_made() -> None:
    text = " ".join(dstl("verify", "--help").output.split())
    assert "the content of SST files and the encoding of changelogs are not checked" in text
