# SPDX-License-Identifier: Apache-2.0
"""Starts drivers with a UI, and reads their metrics."""

from __future__ import annotations

import json
import os
import shutil
import socketserver
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver_process import Driver, start_driver
from scenarios import Aggregation
from settings import base_confs

HERE = Path(__file__).resolve().parent
BATCHES = 5
# Time of the page's scripts, which load no slow resources.
SCRIPTS_MILLISECONDS = 10_000
BROWSER_SECONDS = 120


@dataclass(frozen=True)
class Place:
    """The addresses of a driver's UI, and the files that it has written."""

    driver: Driver
    work: Path
    ui: str
    application: str
    query: str
    run: str

    @property
    def page(self) -> str:
        """The address of the query's page in the UI."""
        return f"{self.ui}/StreamingQuery/statistics/?id={self.run}"

    @property
    def metrics(self) -> dict[str, Any]:
        """The result of `spark_dstl.metrics` for the newest batch."""
        found: dict[str, Any] = json.loads((self.work / "metrics.json").read_text(encoding="utf-8"))
        return found

    @property
    def mbeans(self) -> list[str]:
        """The metrics of the log in the driver's JMX, as `name=value`."""
        return (self.work / "mbeans.txt").read_text(encoding="utf-8").splitlines()

    @property
    def progress(self) -> Path:
        """The file with a line of progress for each batch."""
        return self.work / "progress.jsonl"

    def get(self, path: str) -> str:
        """The UI's response."""
        with urllib.request.urlopen(f"{self.ui}{path}", timeout=BROWSER_SECONDS) as answer:
            return str(answer.read().decode())


@contextmanager
def monitored(
    work: Path,
    confs: Mapping[str, str] | None = None,
    master: str = "local[2]",
    remote: str = "",
) -> Iterator[Place]:
    """Run a query over `BATCHES` batches in a driver with a UI, which ends with the block.

    With `remote` the driver is a client of the Spark Connect server there, which has the UI.
    """
    work.mkdir(exist_ok=True)
    Aggregation.generate(files=BATCHES, rows=60).write(work / "input")
    started = {
        **base_confs(master, work),
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.sql.shuffle.partitions": "2",
        **(confs or {}),
    }
    spec = work / "spec.json"
    said = {"work": str(work), "confs": started, "remote": remote}
    spec.write_text(json.dumps(said), encoding="utf-8")
    command = [sys.executable, str(HERE / "monitored_driver.py"), str(spec)]
    # The driver imports modules of the tests from other directories than its own.
    variables = {"PYTHONPATH": os.pathsep.join(sys.path)}
    with start_driver(command, variables, work, "monitored", stdin=subprocess.PIPE) as driver:
        place = work / "place.json"
        driver.wait_until(place.exists, "the address of the UI")
        yield Place(driver, work, **json.loads(place.read_text(encoding="utf-8")))


@contextmanager
def collecting() -> Iterator[tuple[int, list[str]]]:
    """A server that receives lines, as Graphite does; yields its port and the list of lines so far."""
    lines: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            lines.extend(line.decode() for line in self.rfile)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1], lines
        finally:
            server.shutdown()
            thread.join()


def browser() -> str | None:
    """The path of an installed browser, or `None`."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def rendered(program: str, address: str) -> str:
    """The page at an address after a browser has run its scripts."""
    command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    budget = f"--virtual-time-budget={SCRIPTS_MILLISECONDS}"
    done = subprocess.run(
        [*command, budget, "--dump-dom", address], capture_output=True, text=True, timeout=BROWSER_SECONDS, check=True
    )
    return done.stdout
