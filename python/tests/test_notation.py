# SPDX-License-Identifier: Apache-2.0
from datetime import timedelta

import pytest

from spark_dstl import notation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500ms", 500),
        ("500", 500),
        ("10s", 10_000),
        ("2m", 120_000),
        ("2MIN", 120_000),
        ("10 s", 10_000),
        ("1h", 3_600_000),
        ("1d", 86_400_000),
    ],
)
def test_a_duration_is_read_as_the_log_reads_it(text: str, expected: int) -> None:
    assert notation.milliseconds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17", 17),
        ("17b", 17),
        ("64k", 65_536),
        ("64KB", 65_536),
        ("100m", 104_857_600),
        ("1g", 1 << 30),
        ("64 kb", 65_536),
        ("1tb", 1 << 40),
    ],
)
def test_a_size_is_read_as_the_log_reads_it(text: str, expected: int) -> None:
    assert notation.size_in_bytes(text) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(minutes=10), "600000ms"),
        (timedelta(0), "0ms"),
        (timedelta(milliseconds=1.5), None),
        (timedelta(seconds=-5), "-5000ms"),
    ],
)
def test_a_timedelta_is_written_without_loss_or_not_at_all(value: timedelta, text: str | None) -> None:
    assert notation.duration(value) == text
