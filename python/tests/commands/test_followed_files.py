# SPDX-License-Identifier: Apache-2.0
"""The directory of `dstl follow --to`: where it continues, also after an interruption."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from spark_dstl.checkpoint.following.changes import Position
from spark_dstl.commands import main
from spark_dstl.commands.console.options import Location
from spark_dstl.commands.reading.follow import Files
from spark_dstl.errors import DstlError


def files(directory: Path, query: str = "a") -> Files:
    checkpoint: Any = SimpleNamespace(query=query, path="checkpoint")
    return Files(directory, "jsonl", cast("Any", checkpoint))


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


@pytest.mark.parametrize("batch", ["1e999", '"x"', "null"])
def test_a_cursor_of_another_program_is_named(tmp_path: Path, batch: str) -> None:
    files(tmp_path).replace_after(Position(0, "entry"))
    (cursor,) = (path for path in tmp_path.iterdir() if path.suffix != ".jsonl")
    cursor.write_text(f'{{"query": "a", "batch": {batch}, "entry": null}}')
    with pytest.raises(DstlError, match="is not a cursor of this command"):
        files(tmp_path).position()


def test_the_first_start_writes_where_the_next_one_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that are committed between two starts are not left out."""
    begun: list[Position | None] = []

    class Query:
        """A query whose newest batch is 4 at the first start and 7 at the next; no start sees a later one."""

        query, path = "a", "checkpoint"

        def follow(self, after: Position | None, _selection: Any) -> Any:
            begun.append(after)
            newest = Position(4 if len(begun) == 1 else 7, "entry")
            return nullcontext(SimpleNamespace(position=after or newest, changes=lambda _until, **_: iter(())))

    monkeypatch.setattr(Location, "opened", lambda _: nullcontext(Query()))
    for _ in range(2):
        done = CliRunner().invoke(main, ["follow", "checkpoint", "--to", str(tmp_path / "to"), "--no-wait"])
        assert done.exit_code == 0, done.output
    assert begun == [None, Position(4, "entry")]
