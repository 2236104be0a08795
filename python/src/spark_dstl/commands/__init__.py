# SPDX-License-Identifier: Apache-2.0
"""The command `dstl`: each of its commands is a module of this package."""

import logging
import os
import signal
import sys
from functools import partial
from io import TextIOWrapper
from traceback import walk_tb
from typing import Any

import click

from spark_dstl.commands.changing.convert import convert
from spark_dstl.commands.changing.export import export
from spark_dstl.commands.changing.gc import gc
from spark_dstl.commands.changing.repartition import repartition
from spark_dstl.commands.changing.rollback import rollback
from spark_dstl.commands.config import config
from spark_dstl.commands.console import failure, handling
from spark_dstl.commands.console.printing import standard_output, unwritten
from spark_dstl.commands.log import log
from spark_dstl.commands.ls import ls
from spark_dstl.commands.probe import probe
from spark_dstl.commands.reading.follow import follow
from spark_dstl.commands.reading.pin import pin, unpin
from spark_dstl.commands.reading.serve import serve
from spark_dstl.commands.reading.state import changes, diff, state
from spark_dstl.commands.report import report
from spark_dstl.commands.show import show
from spark_dstl.commands.verify import verify
from spark_dstl.commands.watch import watch
from spark_dstl.version import __version__

_DEBUG = f"{__name__}.debug"
# As a shell reports a process that the signal has ended.
_TERMINATED = 128 + signal.SIGTERM
_INTERRUPTED = 128 + signal.SIGINT


class Program(click.Group):
    """A group whose commands end with one line on stderr and an exit code after an error."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options of the program, of which some print a text."""
        if sys.stdout is None:
            # The process was started without; the first file that it opens would be its standard output.
            sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
        with standard_output():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; only --debug shows the traceback of an error.

        SIGTERM ends it as Ctrl-C does: it deletes its pins and temporary files, and ends its Java process.
        """
        try:
            with handling(partial(sys.exit, _TERMINATED), signal.SIGTERM):
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BaseException as error:
            if _is_interrupt(error):
                click.echo("\nAborted!", err=True)
                raise click.exceptions.Exit(_INTERRUPTED) from None
            if not isinstance(error, Exception) or ctx.meta[_DEBUG]:
                raise
            if isinstance(error, OSError) and _is_of_output(error):
                raise unwritten(error) from None
            raise failure(error) from None


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C has led to an error: what py4j does after an interrupted call may fail in its own way."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _is_of_output(error: BaseException) -> bool:
    """Whether an error was raised where something is printed: help as well, which click prints itself."""
    return any(frame.f_code is click.echo.__code__ for frame, _ in walk_tb(error.__traceback__))


# click does not wrap a paragraph after a line with a backspace alone.
_HELP = """Operate Spark Structured Streaming queries whose state is in the log.

\b
Exit codes: 0 done, 1 an error, 2 the command line is wrong, 3 damage was found,
4 refused, because a query seems to run, 5 no exclusive create was observed on storage,
130 ended by Ctrl-C, 143 by SIGTERM. An error is a line of text on standard error, also
with --output json.
"""


@click.group(cls=Program, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dstl", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def main(context: click.Context, debug: bool) -> None:
    """Keep the options of the program."""
    context.meta[_DEBUG] = debug
    if isinstance(sys.stdout, TextIOWrapper):
        # It may lack characters of keys and paths.
        sys.stdout.reconfigure(errors="backslashreplace")
    if not debug:
        # py4j logs the traceback of each failure, which is an error of ours besides.
        shown = logging.StreamHandler()
        shown.addFilter(logging.Filter("spark_dstl"))
        logging.basicConfig(format="%(message)s", handlers=[shown])


_COMMANDS = (
    changes, config, convert, diff, export, follow, gc, log, ls, pin, probe, repartition, report, rollback, serve, show,
    state, unpin, verify, watch,
)  # fmt: skip
for _command in _COMMANDS:
    main.add_command(_command)
