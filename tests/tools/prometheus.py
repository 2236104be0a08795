# SPDX-License-Identifier: Apache-2.0
"""Prometheus' programs, if they are installed, and a server that scrapes a driver."""

from __future__ import annotations

import json
import os
import shutil
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from driver_process import Process
from harness import free_port

# `make prometheus` builds into this directory, which all checkouts share.
TOOLS = Path.home() / ".cache" / "spark-dstl" / "tools"
ANSWER_SECONDS = 30


def program(name: str) -> str:
    """The path of a program; without it, the test is skipped."""
    found = shutil.which(name) or shutil.which(name, path=str(TOOLS))
    if found is None:
        pytest.skip(f"no {name}: `make prometheus` builds it, which needs Go, or `apt install prometheus`")
    return found


@dataclass(frozen=True)
class Server:
    """A running Prometheus."""

    process: Process
    address: str

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of the API's response."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.address}/api/v1/{path}?{query}", timeout=ANSWER_SECONDS) as answer:
            found = json.loads(answer.read())
        assert found["status"] == "success", found
        return found["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The current series of an expression."""
        series: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return series

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a condition while the server runs; refused connections are repeated."""

        def answered() -> bool:
            try:
                return holds()
            except OSError:
                return False

        self.process.wait_until(answered, what)


@contextmanager
def prometheus(work: Path, configuration: str) -> Iterator[Server]:
    """Run Prometheus on the loopback interface, with this configuration."""
    port = free_port()
    file = work / "prometheus.yml"
    file.write_text(configuration, encoding="utf-8")
    command = [program("prometheus"), f"--config.file={file}", f"--storage.tsdb.path={work / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}"]
    with Process(command, os.environ, work / "prometheus.log") as process:
        yield Server(process, f"http://127.0.0.1:{port}")
