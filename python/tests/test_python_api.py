# SPDX-License-Identifier: Apache-2.0
"""The reference of the Python API has all that is public, and docstrings explain it."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from documents import ROOT, in_a_checkout

import spark_dstl
from spark_dstl import options
from spark_dstl.checkpoint import tables

PAGE = ROOT / "docs" / "python-api.md"
# Functions whose keywords are the options of the log, one each.
CONFIGURING = ("configure", "configure_session", "conf")


@in_a_checkout
def test_the_page_names_all_that_is_public_and_nothing_else() -> None:
    text = PAGE.read_text(encoding="utf-8")
    named = re.findall(r"^::: (spark_dstl\S+)$", text, re.MULTILINE)
    for name in spark_dstl.__all__:
        is_error = hasattr(importlib.import_module("spark_dstl.errors"), name)
        assert is_error or f"spark_dstl.{name}" in named or f"`spark_dstl.{name}`" in text, name
    for name in named:
        module, _, thing = name.rpartition(".")
        assert hasattr(importlib.import_module(module), thing), name


@in_a_checkout
def test_the_page_has_the_columns_of_each_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, columns in tables.COLUMNS.items():
        assert f"| `{name}` | {', '.join(f'`{column}`' for column in columns)} |" in text


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in spark_dstl.__all__:
        thing = getattr(spark_dstl, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            yield from (
                (f"{name}.{member}", function)
                for member, function in vars(thing).items()
                if inspect.isfunction(function) and not member.startswith(("_", "onQuery"))
            )


@pytest.mark.parametrize(("name", "function"), list(functions()))
def test_a_docstring_explains_each_parameter(name: str, function: Callable[..., Any]) -> None:
    text = inspect.getdoc(function)
    assert text
    known = {option.name for option in options.all_options()} if name in CONFIGURING else set()
    for parameter in inspect.signature(function).parameters:
        assert parameter in ("self", *known) or f"`{parameter}`" in text, parameter
