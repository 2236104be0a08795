# SPDX-License-Identifier: Apache-2.0
"""What the commands share: exit codes, signals, options, and how they print."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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


@contextmanager
def handling(handler: Callable[[], object], *signals: signal.Signals) -> Iterator[None]:
    """Call `handler` at these signals; in another thread than the main one, which alone can handle them, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.signal(one, lambda *_: handler()) for one in signals}
    try:
        yield
    finally:
        for one, earlier in before.items():
            signal.signal(one, earlier)
