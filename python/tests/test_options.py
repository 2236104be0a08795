from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_dstl import InvalidOption, UnknownOption
from spark_dstl.options import PREFIX, Option, all_options, find, spark_settings

TIME = Option("some.time", "duration", "", minimum="1s", maximum="1h")
SIZE = Option("some.size", "bytes", "", minimum="1k")
COUNT = Option("some.count", "int", "", minimum="1")
SHARE = Option("some.share", "ratio", "")
FLAG = Option("some.flag", "boolean", "")
WORD = Option("some.word", "enum", "", values=("fixed", "hedged"))
PLACE = Option("some.place", "path", "")


def test_every_option_has_a_python_name_and_a_key_of_its_own() -> None:
    spellings = [spelling for option in all_options() for spelling in {option.key, option.name}]
    assert len(spellings) == len(set(spellings))
    assert all(option.name.isidentifier() for option in all_options())


@pytest.mark.parametrize("option", all_options(), ids=lambda option: option.key)
def test_a_default_is_a_value_that_its_option_takes(option: Option) -> None:
    assert option.doc
    if option.default is not None:
        assert option.convert(option.default) == option.default


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("enabled", "enabled"),
        ("preemptivePersistThreshold", "preemptive_persist_threshold"),
        ("commit.timeout", "commit_timeout"),
        ("upload.maxInFlight", "upload_max_in_flight"),
    ],
)
def test_the_python_name_is_the_key_in_snake_case(key: str, name: str) -> None:
    assert Option(key, "string", "").name == name
    assert find(name) is find(key) is find(PREFIX + key)


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        (TIME, "10min", "10min"),
        (TIME, 1000, "1000"),
        (TIME, timedelta(seconds=90), "90000ms"),
        (SIZE, " 64k ", "64k"),
        (SIZE, 2048, "2048"),
        (COUNT, 5, "5"),
        (COUNT, "5", "5"),
        (SHARE, 0.25, "0.25"),
        (SHARE, 1, "1"),
        (FLAG, False, "false"),
        (FLAG, "true", "true"),
        (WORD, "hedged", "hedged"),
        (PLACE, Path("/logs"), "/logs"),
        (PLACE, "s3a://bucket/logs", "s3a://bucket/logs"),
    ],
)
def test_a_value_is_given_to_spark_in_its_notation(option: Option, value: object, text: str) -> None:
    assert option.convert(value) == text


@pytest.mark.parametrize(
    ("option", "value"),
    [
        (TIME, "soon"),
        (TIME, "999ms"),
        (TIME, "61min"),
        (TIME, timedelta(seconds=-5)),
        (TIME, 1.5),
        (SIZE, "1023"),
        (SIZE, "10min"),
        (COUNT, 0),
        (COUNT, True),
        (COUNT, "5k"),
        (SHARE, 1.1),
        (SHARE, float("nan")),
        (FLAG, 1),
        (FLAG, "yes"),
        (WORD, "Hedged"),
        (PLACE, ""),
        (PLACE, None),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_key_value_and_what_is_allowed(option: Option, value: object) -> None:
    with pytest.raises(InvalidOption) as error:
        option.convert(value)
    assert str(error.value) == f"{option.key} cannot be {value!r}: it must be {option.allowed()}"


def test_what_is_allowed_names_limits_and_words() -> None:
    assert TIME.allowed().endswith(", at least 1s, at most 1h")
    assert WORD.allowed() == "one of fixed, hedged"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("upload_max_inflight", "upload_max_in_flight"),
        ("comit_timeout", "commit_timeout"),
        ("upload.maxInflight", "upload.maxInFlight"),
        ("download.cache.idleTimout", "download.cache.idleTimeout"),
        (PREFIX + "commit.timeuot", "commit.timeout"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(name: str, nearest: str) -> None:
    with pytest.raises(UnknownOption, match="did you mean") as error:
        spark_settings({name: "1"})
    assert repr(name) in str(error.value)
    assert repr(nearest) in str(error.value)


def test_an_option_given_twice_is_refused() -> None:
    given: dict[str, Any] = {"commit_timeout": "1min", "commit.timeout": "2min"}
    with pytest.raises(InvalidOption, match=r"commit\.timeout is given twice"):
        spark_settings(given)


def test_settings_carry_the_full_key() -> None:
    assert spark_settings({"upload_num_threads": 7}) == {f"{PREFIX}upload.numThreads": "7"}
