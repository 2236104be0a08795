from datetime import timedelta
from decimal import Decimal

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
        ("1h", 3_600_000),
        ("1d", 86_400_000),
    ],
)
def test_a_duration_is_read_as_spark_reads_it(text: str, expected: int) -> None:
    assert notation.milliseconds(text) == expected


def test_a_duration_below_a_millisecond_keeps_its_fraction() -> None:
    assert notation.milliseconds("250us") == Decimal("0.25")


@pytest.mark.parametrize("text", ["", "ms", "10 s", "1.5s", "-1s", "10 weeks", "10k"])
def test_what_is_not_a_duration_is_none(text: str) -> None:
    assert notation.milliseconds(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17", 17),
        ("17b", 17),
        ("64k", 65_536),
        ("64KB", 65_536),
        ("100m", 104_857_600),
        ("1g", 1 << 30),
        ("1pb", 1 << 50),
    ],
)
def test_a_size_is_read_as_spark_reads_it(text: str, expected: int) -> None:
    assert notation.size_in_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "k", "1.5g", "-1", "10min", "1kib"])
def test_what_is_not_a_size_is_none(text: str) -> None:
    assert notation.size_in_bytes(text) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(timedelta(minutes=10), "600000ms"), (timedelta(0), "0ms"), (timedelta(microseconds=1500), "1500us")],
)
def test_a_timedelta_is_written_without_loss(value: timedelta, text: str) -> None:
    assert notation.duration(value) == text
