# SPDX-License-Identifier: Apache-2.0
import dataclasses
import json
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pyarrow.parquet
import pytest
from progress_samples import operator, progress, told
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

import spark_dstl
from spark_dstl import InvalidOption, InvalidProgress, MetricsListener, MissingPackage, QueryMetrics, metrics
from spark_dstl.monitoring.history import LONGEST_LINE, read_history


def test_every_part_of_a_batch_has_its_field() -> None:
    custom = {"dstlBarrierWaitMs": 5, "dstlCommitEntryWriteMs": 50, "dstlLogBytes": 9000, "dstlSegments": 4}
    found = QueryMetrics.from_progress(progress(7, operator(10, **custom)))
    assert found.started_at == datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=timezone.utc)
    assert (found.query_id, found.run_id) == ("95f92dd6-1291-403c-b2da-bfefda0d0c3e", progress()["runId"])
    assert (found.name, found.batch, found.input_rows, found.state_rows) == ("clicks", 7, 42, 10)
    assert (found.batch_ms, found.source_ms, found.planning_ms) == (500, 23, 30)
    assert (found.offsets_write_ms, found.tasks_ms, found.commit_ms) == (40, 300, 60)
    assert (found.barrier_wait_ms, found.commit_entry_write_ms) == (5, 50)
    assert (found.log_bytes, found.segments) == (9000, 4)


def test_rows_are_counted_where_spark_does_not_add_them_up() -> None:
    told = progress(7)
    del told["numInputRows"]
    assert QueryMetrics.from_progress(told).input_rows == 42


def test_operators_are_added_up() -> None:
    first = operator(10, dstlLogBytes=9000, dstlBackPressureTimeMs=2)
    second = operator(5, dstlLogBytes=0, dstlBackPressureTimeMs=3)
    found = QueryMetrics.from_progress(progress(7, first, second))
    assert (found.state_rows, found.state_memory_bytes) == (15, 2000)
    assert (found.log_bytes, found.back_pressure_ms) == (9000, 5)


def test_figures_that_are_not_reported_are_none() -> None:
    for stateless in (progress(7), progress(7, operator())):
        found = QueryMetrics.from_progress(stateless)
        assert found.log_bytes is found.barrier_wait_ms is found.replayed_bytes is None
    assert QueryMetrics.from_progress(progress(name=None)).name is None


def test_zeros_of_a_batch_before_the_first_report_of_the_barrier_are_unknown() -> None:
    """Spark reports 0 for a metric that no task has set."""
    barrier = {"dstlBarrierWaitMs": 0, "dstlCommitEntryBytes": 0, "dstlLogBytes": 0, "dstlSnapshots": 0}
    found = QueryMetrics.from_progress(progress(7, operator(10, **barrier, dstlReplayedBytes=0)))
    assert found.log_bytes is found.barrier_wait_ms is found.commit_entry_bytes is found.snapshots is None
    assert found.replayed_bytes == 0


def test_the_progress_of_spark_3_5_is_read() -> None:
    """As an object that is no mapping, without the batch's duration."""
    parsed = json.loads(json.dumps(progress(), default=str))
    del parsed["batchDuration"]
    parsed["durationMs"]["triggerExecution"] = 500
    found = QueryMetrics.from_progress(cast("Any", SimpleNamespace(json=json.dumps(parsed))))
    assert found.batch_ms == 500
    assert found == QueryMetrics.from_progress(progress())
    del parsed["durationMs"]["triggerExecution"]
    with pytest.raises(InvalidProgress):
        QueryMetrics.from_progress(parsed)


def test_a_progress_is_read_as_an_object_as_json_and_parsed() -> None:
    plain = progress(7, operator(10, dstlLogBytes=9000))
    expected = QueryMetrics.from_progress(plain)
    assert QueryMetrics.from_progress(json.dumps(plain)) == expected
    assert QueryMetrics.from_progress(StreamingQueryProgress.fromJson(plain)) == expected


@pytest.mark.parametrize(
    "wrong",
    ["{", "[]", "7", "null", json.dumps({"id": 1}), "[" * 100_000, json.dumps(progress(timestamp="yesterday"))],
)
def test_anything_else_is_refused_in_one_short_line(wrong: str) -> None:
    with pytest.raises(InvalidProgress, match="not the progress of a streaming query") as error:
        QueryMetrics.from_progress(wrong)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("duration", [2**63, 10**30, -(2**63) - 1])
def test_a_number_that_is_no_long_is_refused_by_its_name(duration: int) -> None:
    with pytest.raises(InvalidProgress, match=f"streaming query: batch_ms is {duration}, more than a long holds"):
        QueryMetrics.from_progress(json.dumps(progress(batchDuration=duration)))
    assert QueryMetrics.from_progress(progress(batchDuration=2**63 - 1)).batch_ms == 2**63 - 1


def test_metrics_returns_the_newest_batch_or_none() -> None:
    assert metrics(cast(Any, SimpleNamespace(lastProgress=None))) is None
    found = metrics(cast(Any, SimpleNamespace(lastProgress=StreamingQueryProgress.fromJson(progress(3)))))
    assert found is not None
    assert found.batch == 3


def test_figures_say_what_they_are_and_cannot_be_changed() -> None:
    source = Path(sys.modules[QueryMetrics.__module__].__file__ or "").read_text(encoding="utf-8")
    for field in dataclasses.fields(QueryMetrics):
        assert f'    {field.name}: {field.type}\n    """' in source, field.name
    with pytest.raises(dataclasses.FrozenInstanceError):
        QueryMetrics.from_progress(progress()).batch = 1  # type: ignore[misc]


def test_a_listener_keeps_the_newest_batches_up_to_its_limit() -> None:
    listener = MetricsListener(limit=2)
    assert list(listener.metrics) == []
    told(listener, *(progress(number) for number in range(5)))
    assert [batch.batch for batch in listener.metrics] == [3, 4]
    with pytest.raises(InvalidOption, match="limit cannot be 0"):
        MetricsListener(limit=0)


def test_the_history_is_a_table_and_comes_back_from_parquet(tmp_path: Path) -> None:
    listener = MetricsListener()
    told(listener, progress(0), progress(1, operator(10, dstlLogBytes=9000)))
    table = listener.table()
    assert table.column_names == [field.name for field in dataclasses.fields(QueryMetrics)]
    assert table.column("log_bytes").to_pylist() == [None, 9000]
    assert str(table.schema.field("started_at").type) == "timestamp[ms, tz=UTC]"
    file = tmp_path / "history.parquet"
    listener.write_parquet(file)
    told(listener, progress(2))
    listener.write_parquet(file)
    assert read_history(file) == list(listener.metrics)
    assert list(tmp_path.iterdir()) == [file]


def test_an_empty_history_is_a_table_too() -> None:
    assert MetricsListener().table().num_rows == 0


def test_a_progress_file_gets_a_line_for_each_batch(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    listener = MetricsListener(limit=1, progress_file=file)
    told(listener, progress(0), progress(1, operator(10, dstlLogBytes=9000)))
    assert [json.loads(line)["batchId"] for line in file.read_text(encoding="utf-8").splitlines()] == [0, 1]
    assert read_history(file)[-1:] == list(listener.metrics)


@pytest.mark.parametrize("before", ["", json.dumps(progress(0)) + "\n"])
@pytest.mark.parametrize("length", [1, 100])
def test_a_line_that_a_full_disk_or_a_killed_driver_has_cut_off_is_replaced(
    tmp_path: Path, before: str, length: int
) -> None:
    file = tmp_path / "progress.jsonl"
    file.write_text(before + json.dumps(progress(1))[:length])
    listener = MetricsListener(progress_file=file)
    told(listener, progress(2), progress(3))
    assert [batch.batch for batch in read_history(file)] == [0, 2, 3][not before :]


def test_a_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    file.write_text(json.dumps(progress(0)))
    told(MetricsListener(progress_file=file), progress(1))
    assert [batch.batch for batch in read_history(file)] == [0, 1]


def test_the_last_line_of_a_file_of_something_else_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("one\ntwo")
    told(MetricsListener(progress_file=file), progress(0))
    assert file.read_text().startswith("one\ntwo")


@pytest.mark.parametrize("ends", [True, False])
def test_the_end_of_a_program_waits_for_the_last_event_of_queries_that_have_ended(
    monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    listener = MetricsListener()
    ended, active = (cast(Any, SimpleNamespace(runId=uuid4())) for _ in range(2))
    for begun in (ended, active):
        listener.onQueryStarted(begun)
    waits: list[float] = []

    def wait_for(is_over: Callable[[], bool], seconds: float) -> bool:
        waits.append(seconds)
        assert not is_over()
        if ends:
            listener.onQueryTerminated(ended)
        return is_over() is ends

    monkeypatch.setattr(listener._lock, "wait_for", wait_for)
    session = SimpleNamespace(streams=SimpleNamespace(active=[active]))
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: session)
    listener._await_ended(10)
    assert waits == [10]


def test_a_listener_without_queries_and_one_without_spark_do_not_delay_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listener = MetricsListener()
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(listener._lock, "wait_for", lambda *_: pytest.fail("it waits"))
    listener._await_ended(10)
    listener.onQueryStarted(cast(Any, SimpleNamespace(runId=uuid4())))
    listener._await_ended(10)


def test_a_file_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        MetricsListener(progress_file=tmp_path / "absent" / "progress.jsonl")


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    file.write_text(json.dumps(progress(0)) + "\n\n" + json.dumps(progress(1))[:-5], encoding="utf-8")
    assert [batch.batch for batch in read_history(file)] == [0]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (json.dumps(progress(0)).encode() + b"\nwhatever\n", "line 2: not the progress"),
        (b"\xff\xfe\n", "line 1: 'utf-8'"),
        (b"x" * (LONGEST_LINE + 1), "line 1: longer than 16 MiB"),
        (b"PAR1 and no more", "not the history of a MetricsListener"),
        (b"PAR1" + b"\xff" * 16 + b"\x10\0\0\0PAR1", "not the history of a MetricsListener: Could not open Parquet"),
    ],
)
def test_an_invalid_file_is_refused_with_the_place(content: bytes, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(InvalidProgress) as error:
        read_history(file)
    assert str(error.value).startswith(f"{file}")
    assert problem in str(error.value)


def test_other_parquet_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), file)
    with pytest.raises(InvalidProgress, match="not the history of a MetricsListener"):
        read_history(file)


def test_without_pyarrow_a_listener_keeps_figures_and_a_table_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    listener = MetricsListener()
    told(listener, progress(0))
    assert len(listener.metrics) == 1
    with pytest.raises(MissingPackage, match=r'pyarrow.*pip install "spark-dstl\[monitoring\]"'):
        listener.table()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Metrics'"):
        _ = spark_dstl.Metrics  # type: ignore[attr-defined]
