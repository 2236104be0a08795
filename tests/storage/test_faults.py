# SPDX-License-Identifier: Apache-2.0
"""Faults between a query and an S3 server: no row is lost or counted twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import RECOVERY_SECONDS, Case, all_cases, place_of, play, short_lives
from servers import S3_SERVERS, S3Process


@pytest.fixture(params=S3_SERVERS)
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[S3Process]:
    """A server of the test's own."""
    with S3_SERVERS[request.param](tmp_path / "server") as server:
        yield server


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.key)
def test_a_query_survives(case: Case, tmp_path: Path, server: S3Process) -> None:
    work = tmp_path / "run"
    work.mkdir()
    with place_of(case, server, work) as place:
        outcome = play(case, place)
        met = place.wire.met()
    assert not outcome.wrong
    assert len(outcome.failures) <= case.restarts
    for failure in outcome.failures:
        assert re.search(case.fails_with, failure), failure
    assert met or not case.rules, "the fault was never met"
    assert place.recovery_seconds < RECOVERY_SECONDS
    assert place.wire.expired or case.disturb is not short_lives, "no connection lived long enough"
