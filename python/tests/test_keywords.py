import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import spark_dstl
from spark_dstl.options import all_options

GENERATOR = Path(__file__).resolve().parents[2] / "project" / "generate_keywords.py"


@pytest.mark.skipif(not GENERATOR.exists(), reason="only in a checkout of the whole project")
def test_the_typed_keywords_are_those_that_the_options_make() -> None:
    assert subprocess.run([sys.executable, str(GENERATOR), "--check"], check=False).returncode == 0


@pytest.mark.parametrize("function", [spark_dstl.configure, spark_dstl.configure_session, spark_dstl.conf])
def test_every_option_is_a_keyword_that_is_not_set_unless_given(function: object) -> None:
    assert callable(function)
    parameters = inspect.signature(function).parameters
    assert {option.name for option in all_options()} < set(parameters)
    for option in all_options():
        assert parameters[option.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[option.name].default is None


def test_help_says_of_every_option_what_it_does() -> None:
    text = " ".join((spark_dstl.configure.__doc__ or "").split())
    for option in all_options():
        assert f"- `{option.name}`: {option.doc[:20]}" in text
        assert f"by default {option.default_text}." in text


def test_every_keyword_reaches_its_option() -> None:
    values = {option.name: option.default or "/logs" for option in all_options()}
    settings = spark_dstl.conf(jar=False, **values)  # type: ignore[arg-type]
    prefix = "spark.sql.streaming.stateStore.dstl."
    assert {f"{prefix}{option.key}": values[option.name] for option in all_options()}.items() <= settings.items()
