# SPDX-License-Identifier: Apache-2.0
"""The command `dstl` in the process of a test."""

from __future__ import annotations

from click.testing import CliRunner, Result

from spark_dstl.commands import main


def dstl(*arguments: object, **environment: str) -> Result:
    """Run the command with these arguments and further variables."""
    return CliRunner().invoke(main, [str(one) for one in arguments], env=environment, prog_name="dstl")


def ended(code: int, *arguments: object, **environment: str) -> Result:
    """Run the command, which must end with this exit code."""
    result = dstl(*arguments, **environment)
    assert result.exit_code == code, result.output
    return result


def succeeded(*arguments: object) -> Result:
    """Run the command, which must succeed."""
    return ended(0, *arguments)
