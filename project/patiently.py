# SPDX-License-Identifier: Apache-2.0
"""Runs a command and prints a line while it takes long: `patiently.py NAME COMMAND [ARGUMENT ...]`.

The command's output is passed on as it comes; without output, a line is printed now and then.
Its standard input is empty, so it cannot wait for an answer.
"""

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence

SILENCE_SECONDS = 30


def run(name: str, command: Sequence[str], environment: dict[str, str] | None = None) -> int:
    """Run `command` with its output passed on, and a line now and then while it is silent; return its exit code."""
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | (environment or {}),
        )
    except OSError as error:
        say(f"{name} cannot run: {error}")
        return 127
    assert process.stdout is not None
    with process, selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(timeout=SILENCE_SECONDS):
                say(f"{name}: still running after {time.monotonic() - started:.0f} s")
                continue
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                break
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    return process.returncode


def say(text: str) -> None:
    """Print a line of our own among the output of the stages."""
    print(f"== {text}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1], sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)
