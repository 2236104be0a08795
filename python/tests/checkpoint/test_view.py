# SPDX-License-Identifier: Apache-2.0
"""Keys of a local copy, and requests to a server of it, without a Java process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from io import BytesIO
from math import inf
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from spark_dstl.checkpoint.following.changes import one_batch
from spark_dstl.checkpoint.following.copy import LocalCopy, keys_in
from spark_dstl.checkpoint.following.follow import Followed
from spark_dstl.commands.console.printing import write_rows
from spark_dstl.errors import InvalidKey, InvalidRequest, ResultTooLarge
from spark_dstl.serving.metrics import Metrics
from spark_dstl.serving.requests import MAX_BYTES, parse

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
TIME = pa.timestamp("us", "UTC")
WINDOW = pa.schema([("window", pa.struct([("start", TIME), ("end", TIME)])), ("page", pa.string())])
ONE = pa.schema([("page", pa.string())])
PRICES = pa.map_(pa.string(), pa.decimal128(10, 2))
POINTS = pa.schema([("page", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.int32())])))])
POINT = pa.schema([("page", POINTS.field("page").type.value_type), ("n", pa.int32())])


@pytest.mark.parametrize(
    ("key", "columns", "row"),
    [
        ("/", ONE, {"page": "/"}),
        (("/",), ONE, {"page": "/"}),
        ({"page": "/"}, ONE, {"page": "/"}),
        (None, ONE, {"page": None}),
        (
            {"page": "/", "window": {"start": "2026-01-01T12:00:00Z", "end": NOON}},
            WINDOW,
            {"window": {"start": NOON, "end": NOON}, "page": "/"},
        ),
        (({"end": NOON, "start": NOON}, "/"), WINDOW, {"window": {"start": NOON, "end": NOON}, "page": "/"}),
        ({"start": NOON, "end": NOON}, WINDOW.remove(1), {"window": {"start": NOON, "end": NOON}}),
        ("1.5", pa.schema([("n", pa.decimal128(10, 2))]), {"n": Decimal("1.50")}),
        ("2026-01-01", pa.schema([("day", pa.date32())]), {"day": date(2026, 1, 1)}),
        ("-Infinity", pa.schema([("n", pa.float64())]), {"n": -inf}),
        (["2026-01-01T12:00:00Z", None], pa.schema([("at", pa.list_(TIME))]), {"at": [NOON, None]}),
        ([[["a", "1.5"]]], pa.schema([("n", pa.list_(PRICES))]), {"n": [[("a", Decimal("1.50"))]]}),
        ({"n": {"a": "1.5"}}, pa.schema([("n", PRICES)]), {"n": [("a", Decimal("1.50"))]}),
        (((1, 2), 3), POINT, {"page": {"x": 1, "y": 2}, "n": 3}),
        (([1, 2], 3), POINT, {"page": {"x": 1, "y": 2}, "n": 3}),
    ],
)
def test_a_key_is_a_dict_a_tuple_or_the_only_value(key: Any, columns: pa.Schema, row: dict[str, Any]) -> None:
    assert keys_in(columns, [key]).to_pylist() == [row]
    assert keys_in(columns, [key, key]).to_pylist() == [row, row]


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        (1, ONE),
        ({"pages": "/"}, ONE),
        (("/", 1), ONE),
        ({"page": "/"}, WINDOW),
        (("/",), WINDOW),
        ({"page": "/", "window": {"start": NOON}}, WINDOW),
        ({"page": "/", "window": "today"}, WINDOW),
        (2**70, pa.schema([("page", pa.int64())])),
        (1.5, pa.schema([("page", pa.int64())])),
        ("soon", pa.schema([("page", TIME)])),
        (1767268800, pa.schema([("page", TIME)])),
        (True, pa.schema([("page", pa.float64())])),
        ("60", pa.schema([("page", pa.duration("us"))])),
        (True, pa.schema([("page", pa.duration("us"))])),
        ("a-b", pa.schema([("page", pa.binary())])),
        ([1.5], pa.schema([("page", pa.list_(pa.int64()))])),
        ([{"x": 1, "z": 2}], POINTS),
        (((1, 2.5), 3), POINT),
        (((1, 2, 3), 3), POINT),
        (([("x", 1), ("y", 2)], 3), POINT),
    ],
)
def test_another_key_is_refused_with_columns_and_types(key: Any, columns: pa.Schema) -> None:
    with pytest.raises(InvalidKey, match=r"Its columns are .*page \(\w+"):
        keys_in(columns, [key])


@pytest.mark.parametrize(
    ("value", "of"),
    [
        (b"\x00\xff", pa.binary()),
        (timedelta(minutes=1, microseconds=1), pa.duration("us")),
        (timedelta(days=-1), pa.duration("us")),
        ([timedelta(seconds=1)], pa.list_(pa.duration("us"))),
        ({"at": NOON, "id": b"a"}, pa.struct([("at", TIME), ("id", pa.binary())])),
        ([(b"a", 1.5)], pa.map_(pa.binary(), pa.float64())),
    ],
)
def test_a_key_is_found_as_the_commands_print_it(value: Any, of: pa.DataType) -> None:
    columns = pa.schema([("key", of)])
    printed = BytesIO()
    write_rows("jsonl", pa.table([pa.array([value], of)], schema=columns), printed)
    assert keys_in(columns, [json.loads(printed.getvalue())]).to_pylist() == [{"key": value}]


def test_the_error_names_the_first_wrong_key_of_several() -> None:
    with pytest.raises(InvalidKey, match=r"^1 is not a key: .*Its columns are page \(string\)"):
        keys_in(ONE, ["/", 1, 2])
    assert keys_in(ONE, []).num_rows == 0


def test_whatever_a_program_passes_as_a_key_is_named_in_a_short_error() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for key in (deep, {"page": deep}, {"of": "a" * 5000}, {1}, object()):
        with pytest.raises(InvalidKey, match=r"is not a key: .* Its columns are page \(string\)") as refused:
            keys_in(ONE, [key])
        assert len(str(refused.value)) < 500
    for single in (5, "a" * 5000, {"page": "a"}):
        what = r"get_many takes a list of keys, and (\S+|\{'page': 'a'\}) is a single one"
        with pytest.raises(InvalidKey, match=what) as refused:
            Followed.get_many(None, single)  # type: ignore[arg-type]
        assert len(str(refused.value)) < 500


class Copied:
    """The Java side of a copy with three rows of eight bytes, in batches of one."""

    def __init__(self) -> None:
        self.is_read = False

    def tool(self) -> Any:
        sent = SimpleNamespace(rows=lambda: None, batch=lambda: 7, committed=lambda: -1)
        return SimpleNamespace(copy=lambda _: SimpleNamespace(table=lambda *_: sent))

    def java_errors(self) -> Any:
        return nullcontext()

    def selection(self, selection: Any) -> Any:
        return selection

    @contextmanager
    def rows(self, send: Any, _until_read: Any) -> Iterator[Any]:
        send(1, "token")
        one = pa.RecordBatch.from_pydict({"n": [1]})
        try:
            yield pa.RecordBatchReader.from_batches(one.schema, [one] * 3)
        finally:
            self.is_read = True


@pytest.mark.parametrize(
    ("rows", "size", "why"), [(3, 24, None), (None, None, None), (2, None, "2 rows"), (None, 23, "23 bytes")]
)
def test_a_larger_table_is_refused(rows: int | None, size: int | None, why: str | None) -> None:
    java = Copied()
    copy = LocalCopy(java, java.tool(), None)  # type: ignore[arg-type]
    if why is None:
        read = copy.table(None, rows, size)
        assert (read.num_rows, read.schema.metadata) == (3, {b"batch": b"7"})
    else:
        with pytest.raises(ResultTooLarge, match=f"more than {why}: select a table"):
            copy.table(None, rows, size)
    assert java.is_read


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("no json", "an object in JSON"),
        ("[" * 20_000, "an object in JSON"),
        ("[]", "has a command"),
        ('{"command": "drop"}', "Commands: get with key"),
        ('{"command": ["get"]}', "has a command"),
        ('{"command": "get"}', "get has a key, or else keys"),
        ('{"command": "get", "key": 1, "keys": [2]}', "get has a key, or else keys"),
        ('{"command": "get", "keys": "1"}', "keys of get is of the type list"),
        ('{"command": "scan", "key": 1}', "scan has no field key"),
        ('{"command": "scan", "partition": "1"}', "partition of scan is of the type int"),
        ('{"command": "scan", "partition": "' + "1" * 5000 + '"}', "partition of scan is of the type int"),
        ('{"command": "scan", "partition": true}', "partition of scan is of the type int"),
        ('{"command": "scan", "partition": -1}', "partition of scan is from 0 to 2147483647, and not -1"),
        ('{"command": "get", "key": 1, "operator": 2147483648}', "operator of get is from 0 to 2147483647, and not 2"),
        ('{"command": "scan", "where": "\\ud800"}', "an object in JSON: .*surrogates not allowed"),
        ('{"command": "get", "key": {"page": "\\ud800"}}', "an object in JSON: .*surrogates not allowed"),
        ('{"command": "scan", "\\ud800": 1}', "an object in JSON: .*surrogates not allowed"),
        ('{"command": "describe", "where": "' + "a" * MAX_BYTES + '"}', f"at most {MAX_BYTES} bytes"),
    ],
)
def test_another_request_is_refused_with_the_way_out(content: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why) as error:
        parse(content.encode())
    assert len(str(error.value)) < 1000


def test_a_batch_that_is_too_large_for_arrow_is_an_error_and_loses_no_rows() -> None:
    pieces = pa.table({"key": pa.chunked_array([["a"], ["b"]])})

    def fails() -> Any:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    for combined in (lambda: pieces, fails):
        rows = SimpleNamespace(combine_chunks=combined, nbytes=3_000_000_000, num_rows=2, schema=pieces.schema)
        with pytest.raises(ResultTooLarge, match="the changes of batch 7 have 3000000000 bytes in 2 rows"):
            one_batch(rows, 7)
    assert one_batch(pieces, 7).num_rows == 2


def test_a_read_of_changes_may_begin_before_the_first_batch() -> None:
    assert parse(b'{"command": "changes", "after": -1}').get("after") == -1


def test_a_paired_surrogate_in_a_request_is_a_character() -> None:
    assert parse(b'{"command": "get", "key": "\\ud83d\\ude00"}').keys == ["\N{GRINNING FACE}"]


def test_a_request_has_a_selection() -> None:
    request = parse(json.dumps({"command": "changes", "after": 3, "where": "key.page = '/'", "store": None}).encode())
    assert (request.get("after"), request.get("until"), request.selection.where) == (3, None, "key.page = '/'")
    assert request.selection.store is None


def test_a_list_in_a_request_is_a_key_of_several_columns() -> None:
    requests = [parse(json.dumps({"command": "get", **of}).encode()) for of in ({"key": [1, "a"]}, {"keys": [[1], 2]})]
    assert [request.keys for request in requests] == [[(1, "a")], [(1,), 2]]


def test_metrics_are_in_prometheus_text_form() -> None:
    metrics = Metrics(lambda: {"batch": 7, "staleness_seconds": None})
    metrics.ended("get", "done")
    metrics.ended("get", "done")
    metrics.sent("get", 3)
    lines = metrics.text().splitlines()
    assert 'dstl_serve_requests_total{command="get",outcome="done"} 2' in lines
    assert 'dstl_serve_rows_total{command="get"} 3' in lines
    assert "dstl_serve_batch 7" in lines
    assert not [line for line in lines if line.startswith("dstl_serve_staleness")]
