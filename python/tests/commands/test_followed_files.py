# SPDX-License-Identifier: Apache-2.0
"""The directory of `dstl follow --to`: where it continues, also after an interruption."""

import errno
import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from invoked import dstl, succeeded

from spark_dstl.checkpoint.following.changes import Position
from spark_dstl.checkpoint.java.state import Selection
from spark_dstl.commands.console.options import Location
from spark_dstl.commands.reading.follow import Files
from spark_dstl.errors import DstlError


def files(directory: Path, query: str = "a", form: str = "jsonl", selection: Selection | None = None) -> Files:
    checkpoint: Any = SimpleNamespace(query=query, path="checkpoint")
    return Files(directory, form, selection or Selection(), cast("Any", checkpoint))


@pytest.mark.parametrize("position", [Position(3, "entry"), Position(3, None), Position(-1, None)])
def test_a_start_from_a_batch_leaves_the_cursor_before_it(tmp_path: Path, position: Position) -> None:
    files(tmp_path).replace_after(Position(9, "later"))
    for batch in range(6):
        (tmp_path / f"{batch:010d}.jsonl").touch()
    files(tmp_path).replace_after(position)
    assert files(tmp_path).position() == position
    left = sorted(int(path.stem) for path in tmp_path.glob("*.jsonl"))
    assert left == list(range(position.batch + 1))


def test_a_start_from_a_batch_replaces_files_of_every_format_and_no_others(tmp_path: Path) -> None:
    replaced = [f"0000000005.{ending}" for ending in ("arrow", "csv", "jsonl", "parquet")]
    kept = ["0000000004.parquet", "0000000005.txt", "2026.csv", "cursor.json"]
    for name in [*replaced, *kept[:-1]]:
        (tmp_path / name).touch()
    files(tmp_path).replace_after(Position(4, "entry"))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_the_files_of_another_query_stay(tmp_path: Path) -> None:
    files(tmp_path).replace_after(Position(0, "entry"))
    (tmp_path / "0000000001.jsonl").touch()
    with pytest.raises(DstlError, match="of query a"):
        files(tmp_path, "b").replace_after(Position(0, "entry"))
    assert (tmp_path / "0000000001.jsonl").exists()


@pytest.mark.parametrize(
    "content",
    ["{}", *(f'{{"query": "a", "batch": {batch}, "entry": null}}' for batch in ("1e999", '"x"', "null"))],
)
def test_a_cursor_of_another_program_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "cursor.json").write_text(content)
    with pytest.raises(DstlError, match="is not a cursor of this command"):
        files(tmp_path).position()


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to(path)])
def test_a_cursor_that_cannot_be_read_is_not_missing(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """Else the command would begin at the newest batch, and the batches before it would have no file."""
    make(tmp_path / "cursor.json")
    with pytest.raises(DstlError, match=r"cursor\.json could not be read: \w+"):
        files(tmp_path).position()


def test_a_start_with_another_format_or_selection_is_refused_by_name(tmp_path: Path) -> None:
    selected = Selection(operator=0, where="key = 1")
    files(tmp_path, selection=selected).replace_after(Position(4, "entry"))
    assert files(tmp_path, selection=selected).position() == Position(4, "entry")
    others = {
        "--format jsonl, and this command has --format csv": files(tmp_path, form="csv", selection=selected),
        "--where 'key = 1', and this command has --where 'key = 2'": files(
            tmp_path, selection=replace(selected, where="key = 2")
        ),
        "--operator 0, and this command has no --operator": files(tmp_path, selection=replace(selected, operator=None)),
        "no --column-family, and this command has --column-family ''": files(
            tmp_path, selection=replace(selected, column_family="")
        ),
    }
    for named, other in others.items():
        with pytest.raises(DstlError) as raised:
            other.position()
        assert str(raised.value) == (
            f"{tmp_path / 'cursor.json'} is of a command with {named}: repeat the options of the directory, name "
            "another directory, or replace its files with --from"
        )


def test_a_start_from_a_batch_may_have_another_format_and_selection(tmp_path: Path) -> None:
    files(tmp_path).replace_after(Position(4, "entry"))
    other = partial(files, tmp_path, form="csv", selection=Selection(partition=1))
    other().replace_after(Position(2, "entry"))
    assert other().position() == Position(2, "entry")
    with pytest.raises(DstlError, match="has --format jsonl"):
        files(tmp_path).position()


def test_a_cursor_without_options_is_continued_with_any(tmp_path: Path) -> None:
    (tmp_path / "cursor.json").write_text('{"query": "a", "batch": 4, "entry": "entry"}')
    assert files(tmp_path, form="csv", selection=Selection(partition=1)).position() == Position(4, "entry")


@pytest.mark.parametrize("options", ["1", "[]", "null", '{"where": {}}'])
def test_a_cursor_with_invalid_options_is_named(tmp_path: Path, options: str) -> None:
    (tmp_path / "cursor.json").write_text(f'{{"query": "a", "batch": 4, "entry": null, "options": {options}}}')
    with pytest.raises(DstlError, match="is not a cursor of this command"):
        files(tmp_path).position()


def test_the_first_start_writes_where_the_next_one_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that are committed between two starts are not left out."""
    begun: list[Position | None] = []
    left = tmp_path / "to/0000000005.csv"

    class Query:
        """A query whose newest batch is 4 at the first start and 7 at the next; no start sees a later one."""

        query, path = "a", "checkpoint"

        def follow(self, after: Position | None, _selection: Any) -> Any:
            begun.append(after)
            newest = Position(4 if len(begun) == 1 else 7, "entry")
            return nullcontext(SimpleNamespace(position=after or newest, changes=lambda _until, **_: iter(())))

    monkeypatch.setattr(Location, "opened", lambda _: nullcontext(Query()))
    past = dstl("follow", "checkpoint", "--to", tmp_path / "to", "--until", "3")
    assert (past.exit_code, "--until 3 is before the newest batch, 4: add --from" in past.output) == (2, True)
    begun.clear()
    for _ in range(2):
        succeeded("follow", "checkpoint", "--to", tmp_path / "to", "--no-wait")
    assert begun == [None, Position(4, "entry")]
    # A start from batch 5 with another format was interrupted after its cursor: the batch would have two files.
    left.touch()
    succeeded("follow", "checkpoint", "--to", tmp_path / "to", "--no-wait")
    assert not left.exists()


def test_a_batch_that_its_format_cannot_have_leaves_no_file(tmp_path: Path) -> None:
    interval = pa.RecordBatch.from_pydict({"value": [pa.MonthDayNano([1, 2, 3])]})
    batch: Any = SimpleNamespace(batch=4, entry="entry", rows=lambda: interval)
    with pytest.raises(DstlError, match="column value"):
        files(tmp_path, form="parquet").write(batch)
    assert list(tmp_path.iterdir()) == []
    files(tmp_path, form="arrow").write(batch)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0000000004.arrow", "cursor.json"]


def test_one_command_at_a_time_writes_to_a_directory(tmp_path: Path) -> None:
    """Each would publish a file that the other has begun."""
    for _ in range(2):
        with (
            files(tmp_path / "to").alone(),
            pytest.raises(DstlError, match=r"another dstl follow writes to .*/to: end it, or name"),
            files(tmp_path / "to").alone(),
        ):
            pass


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(DstlError, match=r"file/to could not be made: Not a directory. Permit it, or name another"),
        files(tmp_path / "file/to").alone(),
    ):
        pass


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(path: Path, missing_ok: bool = False) -> None:  # noqa: ARG001
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(Path, "unlink", read_only)
    rows = pa.RecordBatch.from_pydict({"value": [1]})
    batch: Any = SimpleNamespace(batch=4, entry="entry", rows=lambda: rows)
    with pytest.raises(DstlError, match=r"/gone/0000000004[.]jsonl could not be written: No such file"):
        files(tmp_path / "gone").write(batch)
