# SPDX-License-Identifier: Apache-2.0
"""What rows with nested values look like on standard output."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_dstl.commands.console.printing import print_rows, write_rows
from spark_dstl.errors import DstlError

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
KEY = {"page": "/ä", "at": AT}
VALUE = {"sums": [1, 2], "blob": b"x"}
AS_JSON = {
    "key": {"page": "/ä", "at": "2026-01-02T03:04:05+00:00"},
    "value": {"sums": [1, 2], "blob": "eA=="},
    "partition": 3,
    "gone": None,
}


def printed(form: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_rows(form, pa.table({"key": [KEY], "value": [VALUE], "partition": [3], "gone": pa.nulls(1)}))
    return capsys.readouterr().out.splitlines()


def test_nested_values_stay_nested_in_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert [json.loads(line) for line in printed("jsonl", capsys)] == [AS_JSON]


@pytest.mark.parametrize(("form", "gone"), [("csv", ""), ("table", "-")])
def test_nested_values_are_json_in_cells(form: str, gone: str, capsys: pytest.CaptureFixture[str]) -> None:
    titles, row = printed(form, capsys)
    key, value = (json.dumps(AS_JSON[column], ensure_ascii=False) for column in ("key", "value"))
    if form == "csv":
        assert next(csv.reader(io.StringIO(row))) == [key, value, "3", gone]
    else:
        assert row == f"{key}  {value}          3  {gone}"
        assert titles.split() == ["key", "value", "partition", "gone"]


def test_numbers_that_json_does_not_have_are_texts(capsys: pytest.CaptureFixture[str]) -> None:
    odd = [float("nan"), float("inf"), float("-inf"), 0.5]
    print_rows("jsonl", pa.table({"value": [{"of": odd}]}))
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        "value": {"of": ["NaN", "Infinity", "-Infinity", 0.5]}
    }


NO_TEXT = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
TWICE = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
LATE = pa.array([2_932_897], pa.int32()).cast(pa.date32())


@pytest.mark.parametrize("form", ["table", "jsonl", "csv"])
@pytest.mark.parametrize("values", [NO_TEXT, TWICE, LATE])
def test_a_value_that_has_no_text_names_its_column_and_the_formats_with_it(form: str, values: pa.Array) -> None:
    table = pa.table({"n": [1], "key": pa.StructArray.from_arrays([values], ["k"])})
    with pytest.raises(DstlError, match=r"column key .*[.] --format parquet and --format arrow have it as it is"):
        print_rows(form, table)
    with pytest.raises(DstlError, match="column key "):
        write_rows(form, table, io.BytesIO())
    write_rows("parquet", table, io.BytesIO())


def test_a_type_that_parquet_lacks_names_its_column_and_the_formats_with_it() -> None:
    table = pa.table({"n": [1], "value": [{"of": pa.MonthDayNano([1, 2, 3])}]})
    with pytest.raises(DstlError, match=r"column value, .*month_day_nano.*--format arrow or --format jsonl"):
        write_rows("parquet", table, io.BytesIO())
    write_rows("arrow", table, io.BytesIO())


def test_a_file_of_parquet_takes_one_writer_and_a_refused_one_stays_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Counted(pq.ParquetWriter):  # type: ignore[misc]
        def __init__(self, *arguments: object) -> None:
            made.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(pq, "ParquetWriter", Counted)
    write_rows("parquet", pa.table({"n": [1], "m": [2]}), io.BytesIO())
    assert len(made) == 1
    refused = io.BytesIO()
    with pytest.raises(DstlError, match="column value"):
        write_rows("parquet", pa.table({"n": [1], "value": [pa.MonthDayNano([1, 2, 3])]}), refused)
    assert refused.getvalue() == b""


def test_a_table_cuts_long_cells_and_says_which_format_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows("table", pa.table({"key": ["a" * 200, "b" * 201, "c"], "n": [1, 2, 3]}))
    printed = capsys.readouterr()
    cells = ["a" * 200, "b" * 199 + "…", "c" + " " * 199]
    assert printed.out.splitlines()[1:] == [f"{cell}  {n}" for n, cell in enumerate(cells, start=1)]
    assert printed.err == "Cells are cut to 200 characters: --format jsonl has the whole values.\n"
    print_rows("jsonl", pa.table({"key": ["b" * 201]}))
    assert capsys.readouterr() == (json.dumps({"key": "b" * 201}) + "\n", "")


def test_the_note_on_long_cells_does_not_wait_for_the_end_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    long = pa.record_batch({"key": ["a" * 201]})

    def batches() -> Iterator[pa.RecordBatch]:
        yield long
        assert "Cells are cut" in capsys.readouterr().err
        yield long

    print_rows("table", pa.RecordBatchReader.from_batches(long.schema, batches()))
    assert capsys.readouterr().err == ""
