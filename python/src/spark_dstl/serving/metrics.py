# SPDX-License-Identifier: Apache-2.0
"""The metrics of a server, in Prometheus' text form, on an HTTP port."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from spark_dstl.errors import DstlError

_HELP = {
    "requests_total": ("counter", "Requests that have ended, or scans with all rows read, by command and outcome."),
    "rows_total": ("counter", "Rows of answers, by command; those of get are keys."),
    "batch": ("gauge", "The newest batch of the local copy."),
    "staleness_seconds": ("gauge", "The time since that batch was committed."),
    "starts": ("gauge", "How often the follower has started: more than once if it has started anew."),
    "open_reads": ("gauge", "Scans and reads of changes that are open."),
}


class Metrics:
    """Counts requests and rows; the gauges are asked for when the metrics are read."""

    def __init__(self, gauges: Callable[[], Mapping[str, float | None]]) -> None:
        self._gauges = gauges
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def ended(self, command: str, outcome: str) -> None:
        """Count a request: its outcome is `done` or the name of an error."""
        self._add("requests_total", f'{{command="{command}",outcome="{outcome}"}}', 1)

    def sent(self, command: str, rows: int) -> None:
        """Count rows."""
        self._add("rows_total", f'{{command="{command}"}}', rows)

    def text(self) -> str:
        """Return all in Prometheus' text form. Unknown gauges are left out."""
        with self._lock:
            samples: list[tuple[tuple[str, str], float]] = [*sorted(self._counts.items())]
        samples += [((name, ""), value) for name, value in self._gauges().items() if value is not None]
        lines = []
        for name, (kind, text) in _HELP.items():
            lines += [f"# HELP dstl_serve_{name} {text}", f"# TYPE dstl_serve_{name} {kind}"]
            lines += [f"dstl_serve_{name}{labels} {value}" for (of, labels), value in samples if of == name]
        return "\n".join(lines) + "\n"

    def _add(self, name: str, labels: str, count: int) -> None:
        with self._lock:
            self._counts[name, labels] += count


def serve_metrics(metrics: Metrics, host: str, port: int) -> ThreadingHTTPServer:
    """Serve them at every path of a port, in a thread, until `shutdown` is called.

    Raises `DstlError` if nothing can listen there.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            """Answer with the metrics."""
            content = metrics.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Log no requests."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    try:
        server = Server((host, port), Handler)
    except (OSError, OverflowError) as error:
        raise DstlError(f"metrics cannot be served at port {port} of {host}: {error}. Name another port") from error
    threading.Thread(target=server.serve_forever, name="dstl-metrics", daemon=True).start()
    return server
