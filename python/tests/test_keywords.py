# SPDX-License-Identifier: Apache-2.0
from typing import Literal, get_type_hints

import spark_dstl
from spark_dstl.configuration import LogOptions
from spark_dstl.options import Directory, Duration, Option, Size, all_options

TYPES = {"boolean": bool, "bytes": Size, "duration": Duration, "int": int, "path": Directory}


def type_of(option: Option) -> object:
    return Literal[tuple(option.values)] if option.values else TYPES[option.type]


def test_the_typed_keywords_are_the_options_of_the_log() -> None:
    expected = {option.name: type_of(option) | None for option in all_options()}  # type: ignore[operator]
    assert get_type_hints(LogOptions) == expected
    assert list(LogOptions.__annotations__) == [option.name for option in all_options()]


def test_every_keyword_reaches_its_option() -> None:
    values = {option.name: option.default or "/logs" for option in all_options()}
    settings = spark_dstl.conf(jar=False, **values)  # type: ignore[arg-type]
    prefix = "spark.sql.streaming.stateStore.dstl."
    assert {f"{prefix}{option.key}": values[option.name] for option in all_options()}.items() <= settings.items()
