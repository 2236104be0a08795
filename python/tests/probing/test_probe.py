# SPDX-License-Identifier: Apache-2.0
"""What a probe measures, and what it leaves."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from documents import ROOT, in_a_checkout
from fake_storage import FOLDER, FakeStorage, probe_of, probed, unanswered_once

import spark_dstl
from spark_dstl.checkpoint import storage as checkpoint_storage
from spark_dstl.errors import CannotProbe
from spark_dstl.probing import exclusiveness, measurement
from spark_dstl.probing.cost import Shape, saved
from spark_dstl.probing.storage import Refused, Unanswered

MEASURED = ROOT / "docs" / "figures" / "storage-requests.json"


@pytest.fixture
def storage() -> FakeStorage:
    return FakeStorage()


def test_each_kind_of_request_has_its_times(storage: FakeStorage) -> None:
    report = probed(storage)
    times = {one.kind: {round(seconds, 6) for seconds in one.seconds} for one in report.series}
    assert times == {
        "put": {0.040},
        "exists": {0.020},
        "get": {0.030},
        "list": {0.070},
        "create": {0.050},
        "create, refused": {0.050},
        "delete": {0.010},
    }
    assert {len(one.seconds) for one in report.series if one.kind != "delete"} == {20}
    assert report.exclusive.verdict == exclusiveness.EXCLUSIVE
    assert report.exclusive.settled_races == report.exclusive.races > 1


def test_a_batch_costs_the_requests_that_it_waits_for() -> None:
    found = saved([0.040], [0.050], [0.020], Shape(partitions=200, stores=2, slots=16))
    # The slot with most tasks has 13 of them: 26 changelogs, and two existence checks.
    assert found.saved_median == pytest.approx(26 * 0.040 + 2 * 0.020)
    assert found.log_median == pytest.approx(2 * 0.050)
    assert (found.stock_requests, found.log_requests) == (30, 2)
    few = saved([0.040], [0.050], [0.020], Shape(partitions=1, stores=1, slots=16))
    assert few.saved_median == pytest.approx(0.040 + 2 * 0.020)


@in_a_checkout
@pytest.mark.parametrize(("partitions", "key"), [(16, "dollars a month"), (200, "dollars a month with 200 partitions")])
def test_a_month_costs_what_was_measured(partitions: int, key: str) -> None:
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    found = saved([0.040], [0.050], [0.020], Shape(partitions))
    assert found.batches_a_month == 259_200
    assert found.stock_dollars_a_month == pytest.approx(measured["stock, direct write"][key], rel=0.02)
    assert found.log_dollars_a_month == pytest.approx(measured["spark-dstl, format 1"][key], rel=0.02)


def test_a_request_without_an_answer_counts_with_its_time(storage: FakeStorage) -> None:
    storage.before = unanswered_once("get", "put-3")
    (gets,) = (one for one in probed(storage).series if one.kind == "get")
    assert (len(gets.seconds), gets.unanswered) == (20, 1)


def test_nothing_stays_and_nothing_else_is_touched(storage: FakeStorage) -> None:
    storage.there = {"commits/0": b"entry", ".dstl-probe-mine/x": b"another's"}
    before = dict(storage.there)
    measuring = probe_of(storage, storage.clock)
    measuring.run()
    assert storage.there == before
    assert measuring.left_behind == []


@pytest.mark.parametrize("error", [Refused("no permission"), KeyboardInterrupt()])
@pytest.mark.parametrize("kind", ["put", "exists", "get", "list", "create", "delete"])
def test_nothing_stays_after_an_error_or_an_interrupt(storage: FakeStorage, kind: str, error: BaseException) -> None:
    left = [4]

    def fails(asked: str, _name: str) -> None:
        if asked == kind:
            left[0] -= 1
            if left[0] == 0:
                raise error

    storage.before = fails
    measuring = probe_of(storage, storage.clock)
    with pytest.raises((CannotProbe, KeyboardInterrupt)):
        measuring.run()
    assert (storage.there, measuring.left_behind) == ({}, [])


def test_an_interrupt_while_requests_are_begun_ends_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    may_end = threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            may_end.set()
            super().shutdown(wait, cancel_futures=cancel_futures)

    class Interrupted(list[Callable[[], object]]):
        def __iter__(self) -> Iterator[Callable[[], object]]:
            yield may_end.wait
            yield from (partial(asked.append, number) for number in range(100))
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint_storage, "ThreadPoolExecutor", Pool)
    measuring = measurement.Measuring("place", 1, lambda: 0.0, lambda _what, _done, _of: None)
    with pytest.raises(KeyboardInterrupt):
        measuring.each("put", Interrupted())
    assert asked == []


def test_what_cannot_be_removed_is_named(storage: FakeStorage) -> None:
    def kept(kind: str, name: str) -> None:
        if kind == "delete" and name.endswith("/put-7"):
            raise Refused("it is locked")

    storage.before = kept
    measuring = probe_of(storage, storage.clock)
    with pytest.raises(CannotProbe, match="delete was refused: it is locked"):
        measuring.run()
    assert measuring.left_behind == [f"fake://place/{FOLDER}/put-7"]


def test_an_interrupt_while_removing_names_the_folder(storage: FakeStorage) -> None:
    def interrupted(kind: str, _name: str) -> None:
        if kind == "delete":
            raise KeyboardInterrupt

    storage.before = interrupted
    measuring = probe_of(storage, storage.clock)
    with pytest.raises(KeyboardInterrupt):
        measuring.run()
    assert measuring.left_behind == [f"fake://place/{FOLDER}"]


@pytest.mark.parametrize(
    ("error", "left"), [(Refused("no permission"), []), (Unanswered("timed out"), [f"fake://place/{FOLDER}"])]
)
def test_a_folder_is_named_only_if_it_may_have_been_made(
    storage: FakeStorage, error: Exception, left: list[str]
) -> None:
    def fails(kind: str, _name: str) -> None:
        if kind.endswith("_folder"):
            raise error

    storage.before = fails
    measuring = probe_of(storage, storage.clock)
    with pytest.raises(CannotProbe, match="making a folder failed"):
        measuring.run()
    assert measuring.left_behind == left


def test_a_write_without_an_answer_is_named(storage: FakeStorage) -> None:
    storage.before = unanswered_once("put", "put-3")
    assert probed(storage).may_appear == [f"fake://place/{FOLDER}/put-3"]


def test_a_probe_ends_after_eleven_requests_without_an_answer(storage: FakeStorage) -> None:
    def silent(kind: str, _name: str) -> None:
        if kind == "put":
            raise Unanswered("timed out")

    storage.before = silent
    with pytest.raises(CannotProbe, match="fake://place did not answer 11 requests, the last time put: timed out"):
        probed(storage, objects=500)
    assert storage.now < 1


def test_the_modules_of_checkpoints_do_not_import_probing() -> None:
    root = Path(spark_dstl.__file__).parent
    for path in (root / "checkpoint").rglob("*.py"):
        assert "probing" not in path.read_text(encoding="utf-8"), path
