# SPDX-License-Identifier: Apache-2.0
"""Keys that a person presses while a command shows something."""

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LEAVE = "qQ"
Wait = Callable[[float], None]


class Left(Exception):
    """The person has pressed a key that leaves."""


@contextmanager
def keyboard() -> Iterator[Wait | None]:
    """Yield a wait of so many seconds that raises `Left` at `q`; None if standard input is not a terminal.

    Meanwhile the terminal passes keys on at once and does not print them. Ctrl-C stays an interrupt.
    """
    try:
        import termios
        import tty
    except ImportError:  # as on Windows
        yield None
        return
    if not sys.stdin.isatty():
        yield None
        return
    keys = sys.stdin.fileno()
    before = termios.tcgetattr(keys)
    tty.setcbreak(keys)
    try:
        yield lambda seconds: _wait(keys, seconds)
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, before)


def sleep(seconds: float) -> None:
    """Wait so many seconds; an interrupt ends it within one of them."""
    for piece in _pieces(seconds):
        time.sleep(piece)


def _pieces(seconds: float) -> Iterator[float]:
    """Yield waits of so many seconds together. Python handles a signal that comes as a wait begins only after it."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        yield min(left, 1)


def _wait(keys: int, seconds: float) -> None:
    for piece in _pieces(seconds):
        if select.select([keys], [], [], piece)[0]:
            pressed = os.read(keys, 1024)
            if not pressed or any(key in pressed.decode("utf-8", "replace") for key in LEAVE):
                raise Left
