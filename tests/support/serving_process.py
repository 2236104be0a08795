# SPDX-License-Identifier: Apache-2.0
"""`dstl serve` in a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyarrow import flight


@contextmanager
def serving(command: Sequence[str], **environment: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Run the command on a free port: what it prints, and a client. It ends by SIGTERM, without an error."""
    env = {**os.environ, **environment}
    process = subprocess.Popen(
        [*command, "--port", "0", "--output", "json"], env=env, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        facts = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        with flight.connect(facts["location"]) as client:
            yield facts, client
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
