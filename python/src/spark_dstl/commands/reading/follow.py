# SPDX-License-Identifier: Apache-2.0
"""`dstl follow`: the changes of each batch as it is committed, on standard output or as a file a batch."""

from __future__ import annotations

import json
import logging
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from spark_dstl.checkpoint.checkpoint import Checkpoint
from spark_dstl.checkpoint.following.changes import ChangedBatch, Position
from spark_dstl.checkpoint.following.follow import Followed
from spark_dstl.checkpoint.java.state import Selection
from spark_dstl.checkpoint.locate import PURPOSE
from spark_dstl.commands.console.options import NUMBER, Location, located
from spark_dstl.commands.console.printing import FORMATS, print_rows, write_rows
from spark_dstl.commands.reading.state import HELP, selecting
from spark_dstl.dependencies import needed
from spark_dstl.errors import DstlError

try:
    import fcntl
except ImportError:  # On Windows.
    fcntl = None  # type: ignore[assignment]

_logger = logging.getLogger(__name__)
_CURSOR = "cursor.json"


@click.command(
    short_help="Show the changes of each batch as it is committed.",
    help=f"""Show the changes of each batch to the state in the checkpoint at PATH, once and in order.

A row for each change record, with its batch: update for a put value, append for a merge into the values of its key,
delete. Key and value are rows of Spark's state stores.

With --to each batch is a file in a directory, and cursor.json, written after it, has the last batch: the command goes
on after it when it is started again, and each batch is there once. The first start without --from writes cursor.json
with the newest batch. Without --to the rows are printed, from the batch after the newest on.

It ends with exit code 1 if the query is rolled back below a batch that was followed, and names the batch to continue
after; or if the query has deleted the next batch. The batches are pinned while the command runs.

{HELP}
""",
    epilog="""\b
Examples:
  dstl follow /checkpoints/clicks --from 1041 --no-wait
  dstl follow /checkpoints/clicks --to changes --format parquet --from 1041 --no-wait
  dstl follow s3a://bucket/checkpoints/clicks --from 1041 --until 1041 --operator 0
""",
)
@located
@click.option("--from", "first", type=NUMBER, metavar="N", help="Begin with batch N, which replaces files from N on.")
@click.option("--until", type=NUMBER, metavar="M", help="End after batch M.")
@click.option("--no-wait", is_flag=True, help="End after the newest batch.")
@click.option("--to", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="A file a batch, in DIR.")
@selecting
def follow(
    at: Location,
    first: int | None,
    until: int | None,
    no_wait: bool,
    to: Path | None,
    selection: Selection,
    form: str,
) -> None:
    """Follow; the help is above."""
    if first is not None and until is not None and until < first:
        raise click.UsageError(f"--until {until} is before --from {first}")
    with at.opened() as checkpoint, ExitStack() as held:
        # A file is for programs.
        files = Files(to, "jsonl" if form == "table" else form, selection, checkpoint) if to is not None else None
        if files:
            held.enter_context(files.alone())
        after = first - 1 if first is not None else files.position() if files else None
        with checkpoint.follow(after, selection) as followed:
            batches = followed.changes(until, waits=not no_wait)
            if files:
                if after is not None:
                    # A start with --from that was interrupted after its cursor leaves files to be replaced.
                    files.replace_after(followed.position)
                else:
                    if until is not None and until < followed.position.batch:
                        raise click.UsageError(
                            f"--until {until} is before the newest batch, {followed.position.batch}: add --from"
                        )
                    # Batches that are committed before the next start come after it, also if this start has none.
                    files.continue_after(followed.position)
                written = sum(1 for _ in map(files.write, batches))
                click.echo(f"{written} batches written to {to}; the last is {followed.position.batch}.", err=True)
            else:
                _print(form, batches, followed)


def _print(form: str, batches: Iterator[ChangedBatch], followed: Followed) -> None:
    arrow = needed("pyarrow", PURPOSE)
    first = next(batches, None)
    if first is None:
        after = followed.position.batch
        click.echo(f"Nothing to show after batch {after}: --from N begins with an earlier batch.", err=True)
        return
    schema = first.rows().schema

    def rows() -> Iterator[Any]:
        batch: ChangedBatch | None = first
        while batch is not None:
            found = batch.rows()
            if found.schema != schema:
                raise DstlError(
                    f"the schema of the state has changed with batch {followed.position.batch}: start the command "
                    f"again, with --from {followed.position.batch}"
                )
            yield found
            batch = next(batches, None)

    print_rows(form, arrow.RecordBatchReader.from_batches(schema, rows()))


class Files:
    """A directory with a file for each batch, and a cursor that is written before the first and after each."""

    def __init__(self, directory: Path, form: str, selection: Selection, checkpoint: Checkpoint) -> None:
        self._directory = directory
        self._form = form
        selected = {name.replace("_", "-"): value for name, value in asdict(selection).items() if value is not None}
        self._options = {"format": form, **selected}
        self._checkpoint = checkpoint

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the directory. Raises `DstlError` if another command does: each would publish what the other has begun.

        Where a file system or platform has no locks, nothing is held.
        """
        self._make()
        if fcntl is None:
            yield
            return
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise DstlError(
                    f"another dstl follow writes to {self._directory}: end it, or name another directory"
                ) from error
            except OSError as error:
                _logger.info("%s cannot be locked: %s", self._directory, error)
            yield
        finally:
            os.close(descriptor)

    def replace_after(self, position: Position) -> None:
        """Delete the files of batches after a position, which a follower has: an interruption leaves its cursor."""
        self._cursor()
        self.continue_after(position)
        for path in self._directory.iterdir():
            number, _, ending = path.name.partition(".")
            # Also of another format, which would show the batch twice.
            is_batch = ending in FORMATS and number.isdecimal() and path.name == _file_of(int(number), ending)
            if is_batch and int(number) > position.batch:
                path.unlink()

    def write(self, batch: ChangedBatch) -> None:
        """Write the file of a batch, then the cursor. A file without a cursor is written again."""
        table = needed("pyarrow", PURPOSE).Table.from_batches([batch.rows()])
        with self._replacing(_file_of(batch.batch, self._form)) as path, path.open("wb") as file:
            write_rows(self._form, table, file)
        self.continue_after(Position(batch.batch, batch.entry))

    def continue_after(self, position: Position) -> None:
        """Write the cursor: the next start of the command continues there."""
        with self._replacing(_CURSOR) as path:
            content = {"query": self._checkpoint.query, **asdict(position), "options": self._options}
            path.write_text(json.dumps(content) + "\n", encoding="utf-8")

    def position(self) -> Position | None:
        """Return the batch of the cursor, after which to continue; None without a cursor."""
        position, options = self._cursor()
        # A cursor of an earlier version has no options: it may be of any.
        for name in sorted({*options, *self._options}) if options else ():
            if options.get(name) != self._options.get(name):
                raise DstlError(
                    f"{self._directory / _CURSOR} is of a command with {_option(name, options)}, and this command has "
                    f"{_option(name, self._options)}: repeat the options of the directory, name another directory, or "
                    "replace its files with --from"
                )
        return position

    def _cursor(self) -> tuple[Position | None, dict[str, Any]]:
        """Return what the cursor has for this query: its position, and the format and selection of the files."""
        self._make()
        path = self._directory / _CURSOR
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            query, entry, options = content["query"], content["entry"], content.get("options", {})
            position = Position(int(content["batch"]), None if entry is None else str(entry))
            if not isinstance(options, dict) or not all(isinstance(value, str | int) for value in options.values()):
                raise ValueError(f"its options are {options}")
        except FileNotFoundError:
            return None, {}
        except OSError as error:
            raise DstlError(
                f"{path} could not be read: {error.strerror or error}. Permit it, or name another directory"
            ) from error
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise DstlError(
                f"{path} is not a cursor of this command: {error}. Name another directory, or delete it and use --from"
            ) from error
        if query != self._checkpoint.query:
            raise DstlError(
                f"{path} is of query {query}, and {self._checkpoint.path} of query {self._checkpoint.query}: name "
                "another directory"
            )
        return position, options

    @contextmanager
    def _replacing(self, name: str) -> Iterator[Path]:
        """Give a temporary path, which gets the name at the end, or is deleted after an error."""
        path = self._directory / f".{name}.tmp"
        try:
            yield path
            path.replace(self._directory / name)
        except OSError as error:
            raise DstlError(
                f"{self._directory / name} could not be written: {error.strerror or error}. The command, when it is "
                "started again, continues after the last batch of its cursor"
            ) from error
        finally:
            # What cannot be written cannot be deleted either, and the first error has the cause.
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _make(self) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DstlError(
                f"{self._directory} could not be made: {error.strerror or error}. Permit it, or name another directory"
            ) from error


def _file_of(batch: int, form: str) -> str:
    return f"{batch:010d}.{form}"


def _option(name: str, options: Mapping[str, Any]) -> str:
    return f"--{name} {shlex.quote(str(options[name]))}" if name in options else f"no --{name}"
