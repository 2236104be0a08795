# SPDX-License-Identifier: Apache-2.0
"""`dstl report`: a report on the past batches of queries."""

import sys
from pathlib import Path

import click

from spark_dstl.commands.console.printing import standard_output
from spark_dstl.errors import DstlError, InvalidProgress
from spark_dstl.monitoring.history import read_history
from spark_dstl.monitoring.report_page import page


@click.command(
    short_help="Write a report on past batches, as HTML.",
    epilog="""\b
Examples:
  dstl report /var/log/clicks.jsonl -o clicks.html
  dstl report clicks.parquet --output - > clicks.html

\b
Exit codes: 0 written; 1 HISTORY cannot be read, or is something else, or a
package is missing; 2 the command line is wrong.
""",
)
@click.argument("history", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="Where to write the report; - is standard output. An existing file is replaced.",
)
def report(history: Path, output: Path) -> None:
    """Write a report on HISTORY: one self-contained HTML file with charts.

    HISTORY is a file that spark_dstl.MetricsListener writes: the progress of queries, a line of JSON for each batch, or
    Parquet. The report has the time of batches, its parts and distribution, and the size of the log.
    """
    try:
        batches = read_history(history)
    except OSError as error:
        raise InvalidProgress(f"{history} cannot be read: {error.strerror}") from error
    if not batches:
        raise InvalidProgress(f"{history} has no batches")
    text = page(batches)
    if str(output) == "-":
        with standard_output():
            click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DstlError(f"{output} cannot be written: {error.strerror}") from error
    if sys.stdout.isatty():
        click.echo(f"{output}: {len(batches):,} batches")
