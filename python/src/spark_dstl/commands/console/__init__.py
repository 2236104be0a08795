# SPDX-License-Identifier: Apache-2.0
"""What the commands share: exit codes, options, and how they print."""

import click

from spark_dstl.errors import DstlError, QuerySeemsToRun

DAMAGED = 3
REFUSED = 4
NOT_EXCLUSIVE = 5


class Damaged(click.ClickException):
    """Ends a command that found damage."""

    exit_code = DAMAGED


class Refused(click.ClickException):
    """Ends a command because a query seems to run."""

    exit_code = REFUSED


def failure(error: Exception) -> click.ClickException:
    """Return what ends the command because of an error: one line, and an exit code."""
    text = str(error) if isinstance(error, DstlError) else f"{type(error).__name__}: {error}"
    return Refused(text) if isinstance(error, QuerySeemsToRun) else click.ClickException(text)
