# SPDX-License-Identifier: Apache-2.0
"""When storage counts as creating exclusively."""

from __future__ import annotations

import pytest
from fake_storage import FOLDER, FakeStorage, probed, unanswered_once

from spark_dstl.probing import exclusiveness
from spark_dstl.probing.exclusiveness import Race, judged
from spark_dstl.probing.storage import Refused


@pytest.fixture
def storage() -> FakeStorage:
    return FakeStorage()


def test_storage_that_overwrites_is_not_exclusive(storage: FakeStorage) -> None:
    storage.exclusive = False
    report = probed(storage)
    assert report.exclusive.verdict == exclusiveness.NOT_EXCLUSIVE
    assert "creators of one object were answered that they had created it" in report.exclusive.why


def test_storage_that_overwrites_existing_objects_is_not_exclusive(storage: FakeStorage) -> None:
    storage.after = lambda kind, name: setattr(storage, "exclusive", kind != "create" or "race" in name)
    report = probed(storage)
    assert report.exclusive.verdict == exclusiveness.NOT_EXCLUSIVE


@pytest.mark.parametrize("name", ["race-2", "put-3"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_create_without_an_answer_is_unknown(storage: FakeStorage, name: str, when: str) -> None:
    setattr(storage, when, unanswered_once("create", name))
    report = probed(storage)
    assert report.exclusive.verdict == exclusiveness.UNKNOWN
    assert report.may_appear == [f"fake://place/{FOLDER}/{name}"]


def test_storage_that_rejects_exclusive_creates_is_not_exclusive(storage: FakeStorage) -> None:
    def unknown(kind: str, _name: str) -> None:
        if kind == "create":
            raise Refused("NotImplemented")

    storage.before = unknown
    report = probed(storage)
    assert report.exclusive.verdict == exclusiveness.NOT_EXCLUSIVE
    assert "NotImplemented" in report.exclusive.why


def test_a_client_without_exclusive_create_is_not_asked(storage: FakeStorage) -> None:
    storage.not_exclusive_because = "no client can"
    storage.before = unanswered_once("create", "")
    report = probed(storage)
    assert (report.exclusive.verdict, report.exclusive.why) == (exclusiveness.NOT_ASKED, "no client can")


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (Race((0,), (1, 2), (), 0), exclusiveness.EXCLUSIVE),
        (Race((0, 1), (2,), (), 0), exclusiveness.NOT_EXCLUSIVE),
        (Race((0,), (1, 2), (), 1), exclusiveness.NOT_EXCLUSIVE),
        # An object that was acknowledged and is another's was replaced, also if a creator got no answer.
        (Race((0,), (1,), (2,), 2), exclusiveness.NOT_EXCLUSIVE),
        (Race((0,), (1,), (2,), 0), exclusiveness.UNKNOWN),
        (Race((), (0, 1), (2,), 2), exclusiveness.UNKNOWN),
        (Race((), (), (0, 1, 2), None), exclusiveness.UNKNOWN),
        (Race((), (0, 1, 2), (), None), exclusiveness.UNKNOWN),
        (Race((0,), (1, 2), (), None), exclusiveness.UNKNOWN),
    ],
)
def test_a_race_is_judged_by_the_answers_and_the_kept_object(one: Race, verdict: str) -> None:
    assert judged([Race((0,), (1, 2), (), 0), one], 3, 0, 0).verdict == verdict
