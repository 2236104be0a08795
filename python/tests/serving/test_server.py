# SPDX-License-Identifier: Apache-2.0
"""A server without a Java process: who may ask, what clients may take, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from imitated_java import following
from invoked import dstl, ended
from pyarrow import flight
from served import Checkpoint, Client, Follower, served, until
from written_checkpoint import WrittenCheckpoint

import spark_dstl
from spark_dstl.commands.reading.serve import _run
from spark_dstl.errors import DstlError, JvmFailed
from spark_dstl.serving.metrics import Metrics, serve_metrics
from spark_dstl.serving.reads import OpenReads
from spark_dstl.serving.requests import MAX_BYTES
from spark_dstl.serving.server import Limits, StateServer


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.1.example.org"])
@pytest.mark.parametrize("token", ["", " \n"])
def test_it_listens_elsewhere_only_with_a_token(tmp_path: Path, host: str, token: str) -> None:
    result = ended(2, "serve", tmp_path, "--host", host, DSTL_SERVE_TOKEN=token)
    assert f"{host} is not a loopback address: give clients a token" in result.output


@pytest.mark.parametrize("options", [("--host", "127.0.0.2"), ("--host", "::1"), ("--host", "0.0.0.0", "--token-file")])
def test_it_listens_there_otherwise(tmp_path: Path, options: tuple[str, ...]) -> None:
    """It continues to the checkpoint, which is not there."""
    token = tmp_path / "token"
    token.write_text("secret\n")
    given = [*options, str(token)] if options[-1] == "--token-file" else options
    assert "secret" not in ended(1, "serve", tmp_path / "none", *given, DSTL_SERVE_TOKEN="").output


def test_an_empty_file_is_no_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("\n")
    assert f"{token} is empty" in ended(2, "serve", tmp_path, "--token-file", token).output


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("options", [("--port", "{taken}"), ("--port", "0", "--metrics-port", "{taken}")])
def test_a_taken_port_is_named_before_the_checkpoint_is_opened(
    tmp_path: Path, host: str, options: tuple[str, ...]
) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listening:
        taken = listening.getsockname()[1]
        result = dstl("serve", tmp_path / "none", "--host", host, *(word.format(taken=taken) for word in options))
    assert result.exit_code == 1
    said = f"Error: port {taken} of {host} cannot be listened at: .*in use.*[.] Name another one\n"
    assert re.fullmatch(said, result.output)


def test_the_same_port_cannot_have_both(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        free = listening.getsockname()[1]
    result = dstl("serve", tmp_path / "none", "--port", free, "--metrics-port", free)
    assert (result.exit_code, f"port {free} of 127.0.0.1 cannot be listened at" in result.output) == (1, True)


def test_a_certificate_has_a_key(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").touch()
    result = ended(2, "serve", tmp_path, "--certificate", tmp_path / "cert.pem")
    assert "--certificate and --private-key go together" in result.output


def test_calls_have_the_token() -> None:
    with served(Checkpoint(), token="secret") as (_, client):
        ticket = b'{"command": "describe"}'
        for headers in ({}, {"authorization": "Bearer secret2"}, {"authorization": "secret"}):
            with pytest.raises(flight.FlightUnauthenticatedError):
                client.asked(ticket, **headers).read_all()
        assert client.asked(ticket, authorization="Bearer secret").read_all().to_pylist() == [{"operator": 0}]


def certificate() -> tuple[bytes, bytes]:
    """A certificate of localhost, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return made.public_bytes(pem), private


def test_with_a_certificate_calls_are_encrypted() -> None:
    public, private = certificate()
    checkpoint: Any = Checkpoint()
    with closing(StateServer(checkpoint, "grpc+tls://127.0.0.1:0", certificates=[(public, private)])) as server:
        place = f"localhost:{server.port}"
        with flight.connect(f"grpc+tls://{place}", tls_root_certs=public) as client:
            assert Client(client).read("describe").read_all().num_rows == 1
        others: list[tuple[str, dict[str, Any]]] = [("grpc", {}), ("grpc+tls", {"tls_root_certs": certificate()[0]})]
        for scheme, options in others:
            with (
                flight.connect(f"{scheme}://{place}", **options) as client,
                pytest.raises(flight.FlightUnavailableError),
            ):
                Client(client).read("describe").read_all()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_metrics_are_served_at_both_kinds_of_addresses(host: str) -> None:
    server = serve_metrics(Metrics(lambda: {"batch": 7}), host, 0)
    try:
        place = f"[{host}]" if ":" in host else host
        with urllib.request.urlopen(f"http://{place}:{server.server_address[1]}/", timeout=10) as answer:
            assert b"dstl_serve_batch 7" in answer.read()
        taken = server.server_address[1]
        with pytest.raises(DstlError, match=f"metrics cannot be served at port {taken} of {host}: .*in use"):
            serve_metrics(Metrics(dict), host, taken)
    finally:
        server.shutdown()
        server.server_close()


def test_so_many_reads_are_open_at_a_time() -> None:
    with served(Checkpoint(), Limits(open_reads=2)) as (server, client):
        reads = [client.read("changes") for _ in range(2)]
        assert [read.read_chunk().data.num_rows for read in reads] == [1, 1]
        assert "dstl_serve_open_reads 2" in server.metrics.text()
        for command in ("scan", "changes"):
            with pytest.raises(flight.FlightUnavailableError, match="2 reads are open, which is the limit"):
                client.read(command).read_all()
        assert client.read("describe").read_all().num_rows == 1
        reads[0].cancel()
        until(lambda: "dstl_serve_open_reads 1" in server.metrics.text())
        assert client.read("scan").read_all().num_rows == 1


def fails() -> Iterator[pa.RecordBatch]:
    raise RuntimeError("no more")


def changes_schema() -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"other": [1]})


@pytest.mark.parametrize(
    ("later", "outcome", "why"),
    [(fails, "RuntimeError", "no more"), (changes_schema, "ArrowInvalid", "the schema of the state has changed")],
)
def test_a_read_of_changes_counts_with_the_error_that_ends_it(
    later: Callable[[], Iterator[pa.RecordBatch]], outcome: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changes(self: Follower, until: int | None, waits: bool) -> Iterator[Any]:  # noqa: ARG001
        for rows in chain([pa.RecordBatch.from_pydict({"batch": [0]})], later()):
            yield SimpleNamespace(changes=rows, rows=lambda rows=rows: rows)

    monkeypatch.setattr(Follower, "changes", changes)
    with served(Checkpoint()) as (server, client):
        with pytest.raises(pa.ArrowException, match=why):
            client.read("changes").read_all()
        until(lambda: f'requests_total{{command="changes",outcome="{outcome}"}} 1' in server.metrics.text())


def test_a_read_of_changes_that_the_client_ends_is_done() -> None:
    with served(Checkpoint()) as (server, client):
        read = client.read("changes")
        assert read.read_chunk().data.num_rows == 1
        read.cancel()
        until(lambda: 'requests_total{command="changes",outcome="done"} 1' in server.metrics.text())


@pytest.mark.parametrize("command", ["changes", "scan"])
def test_a_client_that_reads_nothing_loses_its_read(command: str) -> None:
    """What it holds is closed: the follower, which has a pin, and the rows."""
    checkpoint = Checkpoint(batches=100, size=1_000_000)
    with served(checkpoint, Limits(open_reads=1, idle=timedelta(seconds=0.3))) as (server, client):
        stalled = client.read(command)
        until(lambda: "dstl_serve_open_reads 1" in server.metrics.text())
        until(lambda: "dstl_serve_open_reads 0" in server.metrics.text())
        assert all(one.is_closed for one in checkpoint.followers[1:])
        assert client.read("scan").read_chunk().data.num_rows == 1
        with pytest.raises(flight.FlightTimedOutError, match="taken nothing for too long"):
            stalled.read_all()


def test_a_client_that_reads_nothing_loses_its_read_while_batches_come_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Follower, "batches", lambda _self: repeat(None))
    with served(Checkpoint(batches=100, size=1_000_000), Limits(idle=timedelta(seconds=0.3))) as (server, client):
        stalled = client.read("scan")
        try:
            until(lambda: "dstl_serve_open_reads 1" in server.metrics.text())
            until(lambda: "dstl_serve_open_reads 0" in server.metrics.text())
        finally:
            stalled.cancel()


def test_a_stalled_read_makes_room_for_the_next_one() -> None:
    now = [0.0]
    reads = OpenReads(1, idle=10, clock=lambda: now[0])
    with reads.begin() as first:
        sending = reads.sending(first)
        sending.__enter__()
        now[0] = 11
        with reads.begin():
            assert (first.has_ended, reads.count) == (True, 1)


def test_it_ends_with_an_error_when_its_java_process_has_ended() -> None:
    checkpoint: Any = Checkpoint()
    with closing(StateServer(checkpoint, "grpc://127.0.0.1:0")) as server:
        checkpoint.java.is_running = False
        with pytest.raises(JvmFailed, match="has ended: out of memory"):
            server.run()


def test_it_ends_while_clients_read_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_dstl.serving.server._SHUTDOWN", timedelta(seconds=0.2))
    checkpoint = Checkpoint(batches=100, size=1_000_000)
    with served(checkpoint) as (_, client):
        stalled = client.read("changes")
        until(lambda: len(checkpoint.followers) == 2)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert [one.is_closed for one in checkpoint.followers] == [True, True]
    stalled.cancel()


def test_a_signal_ends_it_while_a_read_of_changes_waits() -> None:
    checkpoint: Any = Checkpoint()
    read: list[Any] = []
    with closing(StateServer(checkpoint, "grpc://127.0.0.1:0")) as server:
        handlers = signal.getsignal(signal.SIGTERM)

        def client() -> None:
            with flight.connect(f"grpc://127.0.0.1:{server.port}") as connected:
                changes = Client(connected).read("changes")
                read.append(changes.read_chunk().data.num_rows)
                # Before, the signal would end this process.
                while signal.getsignal(signal.SIGTERM) == handlers:
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGTERM)
                read.append(changes.read_all().num_rows)

        reading = threading.Thread(target=client)
        reading.start()
        _run(server.run, server.stop)
        reading.join(10)
        assert read == [1, 0]
        assert signal.getsignal(signal.SIGTERM) == handlers
    assert all(one.is_closed for one in checkpoint.followers)


def test_larger_results_and_requests_are_refused() -> None:
    for limits in (Limits(rows=1), Limits(bytes=99)):
        with served(Checkpoint(), limits) as (server, client):
            with pytest.raises(pa.ArrowInvalid, match=f"more than {limits.rows} rows or {limits.bytes} bytes"):
                client.read("scan").read_all()
            assert 'requests_total{command="scan",outcome="ResultTooLarge"} 1' in server.metrics.text()
            with pytest.raises(pa.ArrowInvalid, match=f"at most {MAX_BYTES} bytes"):
                client.read("scan", where="a" * MAX_BYTES).read_all()
            with pytest.raises(pa.ArrowInvalid, match="scan has no field key") as refused:
                client.read("scan", key=1).read_all()
            # pyarrow sends a traceback; ours would have another one in it.
            assert "requests.py" not in str(refused.value)


def repartition(written: WrittenCheckpoint) -> None:
    written.plain_entry(4)
    written.entry(5, written.changes(5), run=1)


def test_the_copy_starts_anew_and_is_served(written: WrittenCheckpoint) -> None:
    # They happen between two looks.
    changes: list[Callable[[WrittenCheckpoint], object]] = [repartition, lambda it: it.entry(6, it.changes(6), run=1)]
    copied: list[list[str]] = []
    with spark_dstl.open(str(written.root)) as checkpoint:

        def follow(copies: bool, wait: Any) -> Any:
            def change_or_wait(_: float) -> None:
                # Forty looks in vain, of which the last lists the entries, take ten seconds otherwise.
                wait(0.001)
                if changes and followed.position.batch == (5, 3)[len(changes) - 1]:
                    changes.pop(0)(written)

            followed, reader = following(checkpoint, None, change_or_wait, copies=copies)
            copied.append(reader.copied)
            return followed

        with served(SimpleNamespace(follow=follow, gateway=Checkpoint().gateway)) as (server, _):
            until(lambda: server.batch == 6)
            assert "dstl_serve_starts 2" in server.metrics.text()
    assert copied == [["load 3", "load 5", "apply 6"]]
