# SPDX-License-Identifier: Apache-2.0
"""`dstl serve`: the state of a running query over Arrow Flight."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from typing import IO

import click

from spark_dstl.checkpoint.locate import PURPOSE
from spark_dstl.commands.console import handling
from spark_dstl.commands.console.options import Location, java_process, located, report_option
from spark_dstl.commands.console.printing import print_report
from spark_dstl.dependencies import needed
from spark_dstl.errors import DstlError

_TOKEN = "DSTL_SERVE_TOKEN"
# Python runs handlers of signals between two waits.
_SIGNALS = 0.2


@click.command(
    short_help="Serve the state of a running query over Arrow Flight.",
    epilog=f"""\b
Examples:
  dstl serve /checkpoints/clicks
  dstl serve s3a://bucket/checkpoints/clicks --port 8815 --metrics-port 9815
  {_TOKEN}=... dstl serve /checkpoints/clicks --host 0.0.0.0 --certificate cert.pem --private-key key.pem
""",
)
@located
@java_process
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8815, show_default=True, help="0 takes any free port.")
@click.option("--metrics-port", type=click.IntRange(1, 65535), metavar="PORT", help="Metrics for Prometheus, by HTTP.")
@click.option("--token-file", type=click.File(), metavar="FILE", help=f"The token of clients. By default {_TOKEN}.")
@click.option("--certificate", type=click.File("rb"), metavar="FILE", help="A certificate in PEM: TLS for clients.")
@click.option("--private-key", type=click.File("rb"), metavar="FILE", help="Its key in PEM.")
@click.option("--max-rows", type=click.IntRange(1), default=1_000_000, show_default=True, help="Rows of a scan.")
@click.option("--max-mib", type=click.IntRange(1), default=256, show_default=True, help="Size of a scan in memory.")
@click.option(
    "--max-reads", type=click.IntRange(1), default=8, show_default=True, help="Scans and reads of changes at a time."
)
@click.option(
    "--idle", type=click.IntRange(1), default=60, show_default=True, metavar="SECONDS",
    help="How long a read of changes waits for the next batch, and a read for its client.",
)  # fmt: skip
@report_option
def serve(
    at: Location,
    host: str,
    port: int,
    metrics_port: int | None,
    token_file: IO[str] | None,
    certificate: IO[bytes] | None,
    private_key: IO[bytes] | None,
    max_rows: int,
    max_mib: int,
    max_reads: int,
    idle: int,
    output: str,
) -> None:
    """Follow the query of the checkpoint at PATH, and serve its state over Arrow Flight, until SIGINT or SIGTERM.

    Clients look keys up, read tables, and follow changes, with requests that docs/serve.md describes. The state is a
    local copy, which a separate Java process with Spark's classes keeps: it takes Java 17 and PySpark of Spark 4.1 or
    later. The query does not notice. After a rollback or a repartition, or when it falls behind, the copy starts anew,
    with a warning.

    Elsewhere than on a loopback address it requires a token: a line of a file, or the value of DSTL_SERVE_TOKEN.
    Without a certificate token and state travel in the clear.
    """
    token = (token_file.read() if token_file else os.environ.get(_TOKEN, "")).strip() or None
    if token is None and token_file is not None:
        raise click.UsageError(f"{token_file.name} is empty: write the token into its first line")
    if token is None and not _is_loopback(host):
        raise click.UsageError(f"{host} is not a loopback address: give clients a token by --token-file or {_TOKEN}")
    if (certificate is None) != (private_key is None):
        raise click.UsageError("--certificate and --private-key go together")
    needed("pyarrow.flight", PURPOSE)
    from spark_dstl.serving.metrics import serve_metrics
    from spark_dstl.serving.server import Limits, StateServer

    limits = Limits(max_rows, max_mib * 1024 * 1024, max_reads, timedelta(seconds=idle))
    keys = [(certificate.read(), private_key.read())] if certificate and private_key else None
    place = f"{'grpc+tls' if keys else 'grpc'}://{f'[{host}]' if ':' in host else host}"
    # Before the copy is loaded, which may take minutes.
    _refuse_taken(host, port, *([] if metrics_port is None else [metrics_port]))
    with at.opened() as checkpoint:
        server = StateServer(checkpoint, f"{place}:{port}", token, limits, keys)
        http = None
        try:
            http = None if metrics_port is None else serve_metrics(server.metrics, host, metrics_port)
            facts = {"location": f"{place}:{server.port}", "batch": server.batch, "metrics_port": metrics_port}
            print_report(output, facts, lambda: [f"{at} as of batch {server.batch} is at {facts['location']}"])
            _run(server.run, server.stop)
        finally:
            if http is not None:
                http.shutdown()
                http.server_close()
            server.close()


def _run(run: Callable[[], None], stop: Callable[[], None]) -> None:
    """Run until a signal: its handler would interrupt a call of the Java process, so another thread runs."""
    failed: list[BaseException] = []
    ended = threading.Event()

    def follow() -> None:
        try:
            run()
        except Exception as error:
            failed.append(error)
        finally:
            ended.set()

    with handling(stop, signal.SIGINT, signal.SIGTERM):
        thread = threading.Thread(target=follow, name="dstl-follow")
        thread.start()
        while not ended.wait(_SIGNALS):
            pass
        thread.join()
    if failed:
        raise failed[0]


def _refuse_taken(host: str, *ports: int) -> None:
    """Raise `DstlError` if the server cannot listen at these ports, all at a time."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as listening:
        for port in ports:
            try:
                listening.enter_context(socket.create_server((host, port), family=family))
            except OSError as error:
                raise DstlError(f"port {port} of {host} cannot be listened at: {error}. Name another one") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
