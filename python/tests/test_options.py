# SPDX-License-Identifier: Apache-2.0
import json
from datetime import timedelta
from pathlib import Path

import pytest
from documents import ROOT, in_a_checkout

from spark_dstl import InvalidOption
from spark_dstl.options import PREFIX, Option, all_options, spark_settings

VALUES = ROOT / "jvm/log/src/test/resources/option-values.json"

TIME = Option("some.time", "duration", "", minimum="1s", maximum="1h")
SIZE = Option("some.size", "bytes", "", minimum="1k")
COUNT = Option("some.count", "int", "", minimum="1")
FLAG = Option("some.flag", "boolean", "")
WORD = Option("some.word", "enum", "", values=("fixed", "hedged"))
PLACE = Option("some.place", "path", "")


def test_every_option_has_a_python_name_and_a_key_of_its_own() -> None:
    spellings = [spelling for option in all_options() for spelling in {option.key, option.name}]
    assert len(spellings) == len(set(spellings))
    assert all(option.name.isidentifier() for option in all_options())


def test_a_mistyped_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(TypeError, match=r"'commit_timout': there is no such .*; did you mean commit_timeout\?"):
        spark_settings({"commit_timout": "5min"})
    with pytest.raises(TypeError, match=r"'x': there is no such option of the log$"):
        spark_settings({"x": "5min"})


@pytest.mark.parametrize("option", all_options(), ids=lambda option: option.key)
def test_a_default_is_a_value_that_its_option_takes(option: Option) -> None:
    assert option.doc
    assert option.default_text
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
    assert name in {option.name for option in all_options()}


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
        (TIME, timedelta(seconds=1, microseconds=5)),
        (TIME, 1.5),
        (SIZE, "1023"),
        (SIZE, "10min"),
        (COUNT, 0),
        (COUNT, True),
        (COUNT, "5k"),
        (FLAG, 1),
        (FLAG, "yes"),
        (WORD, "hedge"),
        (PLACE, ""),
        (PLACE, "logs"),
        (PLACE, Path("logs")),
        (PLACE, None),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_name_value_and_what_is_allowed(
    option: Option, value: object
) -> None:
    with pytest.raises(InvalidOption) as error:
        option.convert(value)
    assert str(error.value) == f"{option.name} cannot be {value!r}: it must be {option.allowed()}"


def test_what_is_allowed_names_limits_and_words() -> None:
    assert TIME.allowed().endswith(", at least 1s, at most 1h")
    assert WORD.allowed() == "one of fixed, hedged"


def test_settings_carry_the_full_key_and_leave_out_what_is_not_given() -> None:
    assert spark_settings({"upload_num_threads": 7, "commit_timeout": None}) == {f"{PREFIX}upload.numThreads": "7"}


@in_a_checkout
def test_values_are_taken_and_refused_as_the_jvm_side_takes_and_refuses_them() -> None:
    options = {option.key: option for option in all_options()}
    for key, value, allowed in json.loads(VALUES.read_text(encoding="utf-8")):
        try:
            options[key].convert(value)
            taken = True
        except InvalidOption:
            taken = False
        assert taken == allowed, f"{key}={value}"
