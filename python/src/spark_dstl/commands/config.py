# SPDX-License-Identifier: Apache-2.0
"""`dstl config`: the Spark settings that keep state in the log."""

import json
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import click

from spark_dstl.configuration import conf
from spark_dstl.errors import InvalidOption, UnsupportedSpark
from spark_dstl.options import Option, all_options
from spark_dstl.release import LINES

_METAVARS = {"bytes": "SIZE", "duration": "DURATION", "int": "NUMBER", "path": "DIRECTORY"}


def _every_option(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each option of the log."""
    for option in reversed(all_options()):
        words = ("true", "false") if option.type == "boolean" else option.values
        command = click.option(
            "--" + option.name.replace("_", "-"),
            option.name,
            type=click.Choice(words, case_sensitive=False) if words else str,
            metavar=None if words else _METAVARS[option.type],
            callback=partial(_checked, option),
            help=f"{option.doc} By default {option.default_text}.",
        )(command)
    return command


def _checked(option: Option, context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else option.convert(value)
    except InvalidOption as error:
        raise click.BadParameter(str(error), context, parameter) from None


@click.command(
    epilog="""\b
Examples:
  spark-submit $(dstl config --output flags) my_query.py
  dstl config --commit-timeout 5min --jar s3a://bucket/jars/spark-dstl.jar >> conf/spark-defaults.conf
"""
)
@click.option(
    "--output",
    type=click.Choice(["spark-defaults", "json", "flags"]),
    default="spark-defaults",
    show_default=True,
    help="Lines for spark-defaults.conf, an object in JSON, or flags for spark-submit in one line.",
)
@click.option(
    "--jar", metavar="PLACE", help="Path or URI of the jar that Spark reads. By default that of this package."
)
@click.option(
    "--spark",
    metavar="VERSION",
    help="Version of the Spark for which this package has the jar, such as 4.2. By default that of PySpark here.",
)
@click.option("--no-jar", is_flag=True, help="Omit the jar, for a Spark that has it already.")
@click.option(
    "--transform-with-state",
    is_flag=True,
    help="For queries with transformWithState, which Spark runs with its own provider only.",
)
@_every_option
def config(
    output: str, jar: str | None, spark: str | None, no_jar: bool, transform_with_state: bool, **options: Any
) -> None:
    """Print the Spark settings that keep state in the log."""
    if jar and no_jar:
        raise click.UsageError("--jar and --no-jar exclude each other")
    try:
        settings = conf(jar=jar or not no_jar, spark=spark, transform_with_state=transform_with_state, **options)
    except UnsupportedSpark as error:
        if spark is not None:
            raise
        raise UnsupportedSpark(f"{error}. For another Spark, name its version: --spark {LINES[0].name}") from error
    click.echo(_FORMATS[output](settings))


def _defaults(settings: Mapping[str, str]) -> str:
    """Return lines in the notation of Java's properties, in which backslashes are doubled."""
    width = max(map(len, settings))
    return "\n".join(f"{key:<{width}}  {value.replace(chr(92), chr(92) * 2)}" for key, value in settings.items())


def _flags(settings: Mapping[str, str]) -> str:
    flags = [
        ["--jars", value] if key == "spark.jars" else ["--conf", f"{key}={value}"] for key, value in settings.items()
    ]
    return shlex.join(word for flag in flags for word in flag)


_FORMATS: Mapping[str, Callable[[Mapping[str, str]], str]] = {
    "spark-defaults": _defaults,
    "flags": _flags,
    "json": partial(json.dumps, indent=2),
}
