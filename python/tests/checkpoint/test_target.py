# SPDX-License-Identifier: Apache-2.0
"""What an export or a conversion writes, and in which order."""

from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark_dstl.checkpoint.export.target import Planned, Target
from spark_dstl.checkpoint.locate import locate
from spark_dstl.checkpoint.storage import Storage, silent
from spark_dstl.errors import CannotExport, DstlError, UnreadableStorage

STATE = [f"state/0/{partition}/1.zip" for partition in range(40)]
ALL = [*STATE, "sources/0/0", "sources/0/1", "offsets/0", "offsets/1", "commits/0", "metadata"]


@pytest.fixture
def target(tmp_path: Path) -> Target:
    checkpoint = SimpleNamespace(
        storage=Storage(locate(str(tmp_path / "from"))), path=str(tmp_path / "from"), progress=silent
    )
    return Target(locate(str(tmp_path / "to")), cast("Any", checkpoint), CannotExport)


def planned(name: str, look: Callable[[str], None]) -> Planned:
    def pieces() -> Iterable[bytes]:
        look(name)
        yield name.encode()

    return Planned(name, len(name), pieces)


def test_a_directory_is_whole_before_an_object_of_the_next_is_written(target: Target) -> None:
    before: dict[str, set[str]] = {}

    def look(name: str) -> None:
        before[name] = {one.name for one in target.objects(recursive=True)}

    assert target.write_missing([planned(name, look) for name in ALL]) == (len(ALL), sum(map(len, ALL)))
    assert set(before) == set(ALL)
    for name, there in before.items():
        first = next(number for number, one in enumerate(ALL) if one.partition("/")[0] == name.partition("/")[0])
        assert there >= set(ALL[:first])


def test_nothing_of_the_next_directory_is_written_after_an_error(target: Target) -> None:
    def look(name: str) -> None:
        if name == STATE[-1]:
            raise UnreadableStorage("the source does not answer")

    with pytest.raises(UnreadableStorage, match="does not answer"):
        target.write_missing([planned(name, look) for name in ALL])
    there = {one.name for one in target.objects(recursive=True)}
    assert set(STATE[:-1]) <= there <= set(STATE)
    written, _ = target.write_missing([planned(name, lambda _: None) for name in ALL])
    assert written == len(ALL) - len(STATE) + 1


def test_an_error_of_the_source_is_not_one_of_the_target(target: Target) -> None:
    def look(_name: str) -> None:
        raise UnreadableStorage("the source does not answer")

    with pytest.raises(UnreadableStorage, match=r"^the source does not answer$"):
        target.write("metadata", planned("metadata", look).pieces())


def test_a_target_is_not_inside_the_checkpoint_by_another_name(tmp_path: Path) -> None:
    place = locate(str(tmp_path / "x" / ".." / "from" / "in"))
    assert place.path == str(tmp_path / "from" / "in")
    checkpoint = SimpleNamespace(storage=Storage(locate(str(tmp_path / "from"))), path="from", progress=silent)
    with pytest.raises(CannotExport, match="are not apart"):
        Target(place, cast("Any", checkpoint), CannotExport)


def test_an_object_that_storage_does_not_keep_as_written_ends_the_export(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = [planned(name, lambda _: None) for name in ALL]
    target.write_missing(plan)
    write = target.write
    monkeypatch.setattr(target, "write", lambda name, pieces: write(name, [b"x" * len(one) for one in pieces]))
    (Path(target.place.path) / STATE[3]).write_bytes(b"x" * len(STATE[3]))
    with pytest.raises(DstlError, match=rf"{STATE[3]} has other bytes than were written to it"):
        target.check(plan)
