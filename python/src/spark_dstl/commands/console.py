# SPDX-License-Identifier: Apache-2.0
"""What commands that look at a checkpoint share: its place, how rows and reports are printed, progress, exit codes.

Results go to standard output, and nothing else does; progress goes to standard error, and only to a terminal.
"""

import csv
import dataclasses
import functools
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, TextIO, TypeVar

import click

from spark_dstl.checkpoint.checkpoint import Checkpoint, open_checkpoint
from spark_dstl.checkpoint.java.gateway import JvmOptions
from spark_dstl.checkpoint.locate import StorageOptions
from spark_dstl.dependencies import needed
from spark_dstl.errors import DamagedLog, DstlError, MissingPackage, QuerySeemsToRun

Command = TypeVar("Command", bound=Callable[..., Any])
Row = Mapping[str, Any]

DAMAGED = 3
REFUSED = 4
NOT_EXCLUSIVE = 5
_PIPE_CLOSED = 141  # as the shell has it for programs that end by SIGPIPE
_QUIET_SECONDS = 1.0
_PURPOSE = "This command"


def located(command: Command) -> Command:
    """Give a command its PATH and what is needed to reach it; it gets `path`, `base_path` and `storage`."""
    data_files = click.option(
        "--base-path", metavar="PLACE", help="Where data files are, if not where the newest commit entry says."
    )
    return click.argument("path")(data_files(reached(command)))


def reached(command: Command) -> Command:
    """Give a command what is needed to reach storage; it gets `storage`."""

    @functools.wraps(command)
    def run(
        *args: Any,
        endpoint: str | None,
        region: str | None,
        anonymous: bool,
        jars: str | None,
        conf: tuple[str, ...],
        **kwargs: Any,
    ) -> Any:
        jvm = JvmOptions(tuple(jars.split(",")) if jars else (), dict(_setting(one) for one in conf))
        return command(*args, storage=StorageOptions(endpoint, region, anonymous, jvm), **kwargs)

    for decorate in (
        click.option(
            "--conf",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of Spark for what Hadoop's client opens, such as spark.hadoop.fs...",
        ),
        click.option(
            "--jars", metavar="JARS", help="Jars of Hadoop's client for the storage, such as hadoop-aws: with commas."
        ),
        click.option("--anonymous", is_flag=True, help="Send no credentials, for public buckets."),
        click.option(
            "--region", metavar="REGION", help="The region of the bucket. By default AWS_REGION, or looked up."
        ),
        click.option(
            "--endpoint",
            metavar="URL",
            help="An S3-compatible server. By default AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL.",
        ),
    ):
        run = decorate(run)
    return run  # type: ignore[return-value]


def report_option(command: Command) -> Command:
    """Give a command the option in which form its report is printed; it gets `output`."""
    return click.option(
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="For people, or an object.",
    )(command)


def stopped_option(command: Command) -> Command:
    """Give a command the option to say that no query runs; it gets `stopped`."""
    return click.option(
        "--stopped",
        is_flag=True,
        help="You have made sure that the query is stopped: what was written lately is no sign.",
    )(command)


def rows_options(command: Command) -> Command:
    """Give a command the options in which form its rows are printed; it gets `form`."""

    @functools.wraps(command)
    def run(*args: Any, output: str | None, form: str | None, **kwargs: Any) -> Any:
        chosen = form or ("jsonl" if output == "json" else "table")
        return command(*args, form=chosen, **kwargs)

    for decorate in (
        click.option(
            "--output", type=click.Choice(["text", "json"]), help="text is --format table, json --format jsonl."
        ),
        click.option(
            "--format",
            "form",
            type=click.Choice(sorted(_WRITERS)),
            help="A table for people, with the main columns; or all columns, as JSON lines, CSV, an Arrow stream or "
            "Parquet. By default a table.",
        ),
    ):
        run = decorate(run)
    return run  # type: ignore[return-value]


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.startswith("spark."):
        raise click.BadParameter(f"{text} is not KEY=VALUE with a KEY that begins with spark.", param_hint="--conf")
    return key, value


def is_terminal(stream: TextIO) -> bool:
    """Whether a person sees what is written there."""
    return stream.isatty()


@contextmanager
def opened(
    path: str, base_path: str | None, storage: StorageOptions, jvm: JvmOptions | None = None
) -> Iterator[Checkpoint]:
    """Open a checkpoint, with progress on a terminal."""
    with (
        ProgressLine() as progress,
        open_checkpoint(path, base_path=base_path, options=storage, progress=progress, jvm=jvm) as checkpoint,
    ):
        yield checkpoint


def same_place(path: str, base_path: str | None, storage: StorageOptions) -> str:
    """Return the words that name the same checkpoint to another command."""
    words = [path]
    for option, value in (("base-path", base_path), ("endpoint", storage.endpoint), ("region", storage.region)):
        words += [f"--{option}", value] if value else []
    words += ["--jars", ",".join(storage.jvm.jars)] if storage.jvm.jars else []
    for key, value in storage.jvm.conf.items():
        words += ["--conf", f"{key}={value}"]
    return shlex.join([*words, "--anonymous"] if storage.anonymous else words)


class ProgressLine:
    """A bar on standard error for what takes longer than a second, if that is a terminal; it goes when done."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, what: str, done: int, of: int) -> None:
        """Show how much of something is done."""
        if self._bar is None:
            if not is_terminal(sys.stderr) or self._clock() - self._began < _QUIET_SECONDS:
                return
            try:
                console = needed("rich.console", _PURPOSE).Console(stderr=True, force_terminal=True)
                self._bar = needed("rich.progress", _PURPOSE).Progress(console=console, transient=True)
            except MissingPackage:
                return
            self._bar.start()
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(what, total=of)
        self._bar.update(self._tasks[what], completed=done, total=of, refresh=done == of)


def print_rows(form: str, batches: Any, shown: Sequence[str]) -> None:
    """Print rows: a `RecordBatchReader` or a `Table`. `shown` are the columns of a table for people."""
    if form in _BINARY and is_terminal(sys.stdout):
        raise click.UsageError(f"--format {form} is not for terminals: redirect it to a file")
    with _until_the_reader_goes():
        _WRITERS[form](batches, shown)


def print_report(output: str, document: Any, text: Callable[[], Iterable[str]]) -> None:
    """Print a report: a dataclass or a mapping as JSON, or lines of text."""
    with _until_the_reader_goes():
        if output == "json":
            found = dataclasses.asdict(document) if _is_dataclass(document) else document
            click.echo(json.dumps(found, indent=2, default=_plain))
        else:
            for line in text():
                click.echo(line)


class Watched:
    """Rows on their way to be printed, of which it is noted whether any has a value in a column."""

    def __init__(self, batches: Any, column: str) -> None:
        self._batches = batches
        self._column = column
        self.schema = batches.schema
        self.seen = False

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            column = batch.column(self._column)
            self.seen = self.seen or column.null_count < len(column)
            yield batch


def fields(pairs: Iterable[tuple[str, Any]]) -> list[str]:
    """Return a line for each name and value, the values below each other; None is left out."""
    known = [(name, value) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in known), default=0)
    return [f"{name:<{width}}  {value}" for name, value in known]


def size(count: int | None) -> str | None:
    """Return a number of bytes for people."""
    if count is None:
        return None
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def moment(when: datetime | None) -> str | None:
    """Return a time for people, in UTC."""
    return None if when is None else f"{when.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S}Z"


def since(when: datetime | None, now: datetime) -> str | None:
    """Return how long ago a time is, for people."""
    if when is None:
        return None
    seconds = max(int((now - when).total_seconds()), 0)
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def failure(error: Exception) -> click.ClickException:
    """Return what ends the command because of an error: one line, and an exit code."""
    ended = click.ClickException(str(error) if isinstance(error, DstlError) else f"{type(error).__name__}: {error}")
    if isinstance(error, QuerySeemsToRun):
        ended.exit_code = REFUSED
    if isinstance(error, DamagedLog):
        ended.exit_code = DAMAGED
    return ended


@contextmanager
def _until_the_reader_goes() -> Iterator[None]:
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe. What Python flushes at its end is dropped.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(_PIPE_CLOSED) from None


def _is_dataclass(document: Any) -> bool:
    return dataclasses.is_dataclass(document) and not isinstance(document, type)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat()
    return str(value)


def _each(batches: Any) -> Iterator[list[dict[str, Any]]]:
    for batch in batches.to_batches() if hasattr(batches, "to_batches") else batches:
        yield batch.to_pylist()


def cell(column: str, value: Any) -> str:
    """Return a value of a column for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return moment(value) or "-"
    if column == "bytes" or column.endswith("_bytes"):
        return size(value) or "-"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    return str(value).replace("\n", " ") or "-"


def _write_table(batches: Any, shown: Sequence[str]) -> None:
    widths = {column: len(column) for column in shown}
    headed = False
    for rows in _each(batches):
        cells = [{column: cell(column, row[column]) for column in shown} for row in rows]
        for column in shown:
            widths[column] = max(widths[column], *(len(row[column]) for row in cells), 0)
        numbers = {column for column in shown if rows and isinstance(rows[0][column], int)}
        if not headed:
            titles = {column: column.replace("_", " ") for column in shown}
            click.echo(_line(titles, widths, numbers))
            headed = True
        for row in cells:
            click.echo(_line(row, widths, numbers))
    if not headed:
        click.echo("  ".join(column.replace("_", " ") for column in shown))


def _line(cells: Mapping[str, str], widths: Mapping[str, int], numbers: set[str]) -> str:
    return "  ".join(
        f"{cells[column]:>{width}}" if column in numbers else f"{cells[column]:<{width}}"
        for column, width in widths.items()
    ).rstrip()


def _write_json_lines(batches: Any, _shown: Sequence[str]) -> None:
    for rows in _each(batches):
        for row in rows:
            click.echo(json.dumps(row, default=_plain))


def _write_csv(batches: Any, _shown: Sequence[str]) -> None:
    columns = batches.schema.names
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for rows in _each(batches):
        for row in rows:
            values = (row[column] for column in columns)
            writer.writerow(
                " ".join(value) if isinstance(value, list) else _plain(value) if isinstance(value, datetime) else value
                for value in values
            )


def _write_arrow(batches: Any, _shown: Sequence[str]) -> None:
    with needed("pyarrow", _PURPOSE).ipc.new_stream(sys.stdout.buffer, batches.schema) as writer:
        for batch in batches.to_batches() if hasattr(batches, "to_batches") else batches:
            writer.write_batch(batch)


def _write_parquet(batches: Any, _shown: Sequence[str]) -> None:
    parquet = needed("pyarrow.parquet", _PURPOSE)
    with parquet.ParquetWriter(sys.stdout.buffer, batches.schema) as writer:
        for batch in batches.to_batches() if hasattr(batches, "to_batches") else batches:
            writer.write_batch(batch)


_WRITERS: Mapping[str, Callable[[Any, Sequence[str]], None]] = {
    "table": _write_table,
    "jsonl": _write_json_lines,
    "csv": _write_csv,
    "arrow": _write_arrow,
    "parquet": _write_parquet,
}
_BINARY = {"arrow", "parquet"}
