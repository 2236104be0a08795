# SPDX-License-Identifier: Apache-2.0
"""The arguments and options that several commands have."""

import functools
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import click

from spark_dstl.checkpoint.checkpoint import Checkpoint, open_checkpoint
from spark_dstl.checkpoint.java.gateway import JvmOptions
from spark_dstl.checkpoint.locate import HIDDEN, StorageOptions
from spark_dstl.commands.console.printing import FORMATS
from spark_dstl.commands.console.progress import ProgressLine

Command: TypeAlias = Callable[..., Any]

# Of a batch: a long in Spark.
NUMBER = click.IntRange(min=0, max=2**63 - 1)
# Spark's default of spark.redaction.regex, and the keys of Azure's accounts.
SECRET = re.compile(r"(?i)secret|password|token|access[.]?key|account[.]key")

report_option = click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text, or an object in JSON.",
)
stopped_option = click.option(
    "--stopped", is_flag=True, help="The query is certainly stopped: do not check for recent writes."
)


@dataclass(frozen=True)
class Location:
    """The directory that a command line names, and the options for access to it."""

    path: str
    base_path: str | None
    storage: StorageOptions

    @contextmanager
    def opened(self) -> Iterator[Checkpoint]:
        """Open the checkpoint there, with progress on a terminal."""
        with (
            ProgressLine() as progress,
            open_checkpoint(self.path, base_path=self.base_path, options=self.storage, progress=progress) as checkpoint,
        ):
            yield checkpoint

    def __str__(self) -> str:
        """Return the words that name it on another command line, without the values of secrets: output is logged."""
        storage = self.storage
        named = {"base-path": self.base_path, "endpoint": storage.endpoint, "region": storage.region}
        words = [self.path, *(word for name, value in named.items() if value for word in (f"--{name}", value))]
        words += ["--jars", ",".join(storage.jvm.jars)] if storage.jvm.jars else []
        for key, value in storage.jvm.conf.items():
            words += ["--conf", f"{key}={HIDDEN if SECRET.search(key) else value}"]
        return shlex.join([*words, "--anonymous"] if storage.anonymous else words)


def with_options(command: Command, *options: Callable[[Command], Command]) -> Command:
    """Give a command these options, in the order of its help."""
    for option in reversed(options):
        command = option(command)
    return command


def reached(command: Command, path_required: bool = True) -> Command:
    """Give a command its PATH and the options for access to storage; it gets `at`, a `Location`.

    The path of an omitted PATH is empty.
    """

    @functools.wraps(command)
    def run(
        *,
        path: str | None,
        endpoint: str | None,
        region: str | None,
        anonymous: bool,
        jars: str | None,
        conf: tuple[str, ...],
        base_path: str | None = None,
        **others: Any,
    ) -> Any:
        jvm = JvmOptions(tuple(jars.split(",")) if jars else (), dict(map(_setting, conf)))
        return command(at=Location(path or "", base_path, StorageOptions(endpoint, region, anonymous, jvm)), **others)

    return with_options(
        run,
        click.argument("path", required=path_required),
        click.option(
            "--endpoint",
            metavar="URL",
            help="An S3-compatible server. By default AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL.",
        ),
        click.option(
            "--region",
            metavar="REGION",
            help="The region of the bucket. By default AWS_REGION or AWS_DEFAULT_REGION, else us-east-1 with an "
            "endpoint; without one it is looked up.",
        ),
        click.option("--anonymous", is_flag=True, help="Send no credentials, for public buckets."),
        click.option(
            "--jars", metavar="JARS", help="Jars of Hadoop's client for the storage, such as hadoop-aws, with commas."
        ),
        click.option(
            "--conf",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of Spark for Hadoop's client, such as spark.hadoop.fs...",
        ),
    )


def located(command: Command) -> Command:
    """Give a command the PATH of a checkpoint and the options for access to it; it gets `at`, a `Location`."""
    base = click.option(
        "--base-path", metavar="PLACE", help="The directory of data files, if not the one in the newest commit entry."
    )
    return base(reached(command))


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.startswith("spark."):
        raise click.BadParameter(f"{text} is not KEY=VALUE with a KEY that begins with spark.", param_hint="--conf")
    return key, value


def _memory(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]*[kKmMgG]?", value):
        raise click.BadParameter(f"{value} is not a size, such as 512m or 2g")
    return value


def java_process(command: Command) -> Command:
    """Give a command the option of its Java process; `at` has it."""

    @functools.wraps(command)
    def run(*, at: Location, memory: str, **others: Any) -> Any:
        storage = replace(at.storage, jvm=replace(at.storage.jvm, memory=memory))
        return command(at=replace(at, storage=storage), **others)

    memory = click.option(
        "--memory",
        callback=_memory,
        default="1g",
        show_default=True,
        metavar="SIZE",
        help="The memory of the process that reads state, without that of RocksDB.",
    )
    return memory(run)


_FORMS = {"text": "table", "json": "jsonl"}


def rows_options(command: Command) -> Command:
    """Give a command the options in which form its rows are printed; it gets `form`."""

    @functools.wraps(command)
    def run(*, output: str | None, form: str | None, **others: Any) -> Any:
        named = _FORMS.get(output or "")
        if form and named and form != named:
            raise click.UsageError(f"--output {output} is --format {named}, and --format {form} is asked for")
        return command(form=form or named or "table", **others)

    return with_options(
        run,
        click.option(
            "--format",
            "form",
            type=click.Choice(FORMATS),
            help="A table for people, with the main columns; or all columns, as JSON lines, CSV, an Arrow stream or "
            "Parquet. By default a table.",
        ),
        click.option(
            "--output",
            type=click.Choice(list(_FORMS)),
            help="text is --format table; json is --format jsonl: an object on each line, no line without rows.",
        ),
    )
