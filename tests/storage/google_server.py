# SPDX-License-Identifier: Apache-2.0
"""fake-gcs-server, an imitation of Google's storage, and what Google's and Hadoop's connectors need for it.

It checks the preconditions of writes, and objects appear when their upload ends, as on Google's storage.
"""

from __future__ import annotations

import http.client
import json
import socket
import socketserver
import ssl
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from harness import free_port, listens
from programs import program
from servers import BUCKET, OTHER_BUCKET, start_server
from settings import profile

GOOGLE = "storage.googleapis.com"
PASSWORD = "not-a-secret-of-anybody"


def of_google(address: str) -> dict[str, str]:
    """Return the settings of Google's connector: the shipped profile, with the address of a server or a proxy."""
    of_server = {
        "storage.root.url": f"{address}/",
        "project.id": "tests",
        "auth.type": "UNAUTHENTICATED",
        # The server has no such operation; stock Spark renames.
        "operation.move.enable": "false",
    }
    return {**profile("gcs"), **{f"spark.hadoop.fs.gs.{name}": value for name, value in of_server.items()}}


@dataclass(frozen=True)
class GoogleServer:
    """A running server."""

    port: int

    @property
    def address(self) -> str:
        """The endpoint for clients."""
        return f"http://127.0.0.1:{self.port}"

    def uri(self, path: str) -> str:
        """Return what pyarrow's client, and with it the commands, opens for a path `gs://bucket/directory`."""
        of_server = f"scheme=http&endpoint_override=127.0.0.1:{self.port}"
        return f"gs://anonymous@{path.removeprefix('gs://')}?{of_server}"

    def names(self, directory: str) -> list[str]:
        """Return the paths of all objects below a directory, relative to it, without those that mark directories."""
        bucket, _, prefix = directory.removeprefix("gs://").partition("/")
        query = urllib.parse.urlencode({"prefix": f"{prefix}/"})
        found = self._ask(f"/storage/v1/b/{bucket}/o?{query}").get("items", [])
        return [one["name"].removeprefix(f"{prefix}/") for one in found if not one["name"].endswith("/")]

    def make_bucket(self, name: str) -> None:
        """Create an empty bucket."""
        self._ask("/storage/v1/b?project=tests", {"name": name})

    def _ask(self, target: str, content: dict[str, str] | None = None) -> Any:
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"{self.address}{target}", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


@contextmanager
def google(work: Path) -> Iterator[GoogleServer]:
    """Run a server in a directory that it creates, with empty buckets `BUCKET` and `OTHER_BUCKET`."""
    work.mkdir(parents=True)
    server = GoogleServer(free_port())
    where = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(server.port), "-backend", "memory"]
    urls = ["-external-url", server.address, "-public-host", f"127.0.0.1:{server.port}"]
    with start_server([program("fake-gcs-server"), *where, *urls], work, "fake-gcs-server") as process:
        process.wait_until(lambda: listens("127.0.0.1", server.port), f"a server on port {server.port}")
        for bucket in (BUCKET, OTHER_BUCKET):
            server.make_bucket(bucket)
        yield server


@contextmanager
def of_hadoop(server: GoogleServer, work: Path) -> Iterator[dict[str, str]]:
    """Yield the settings of Hadoop's connector, which knows no address but Google's, for a directory that it creates.

    A proxy takes its connections, and gives it a token for the key of a service account.
    """
    work.mkdir(parents=True)
    key, certificate = _made(work)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), partial(_Connection, server=server.port, tls=tls)) as proxy:
        proxy.daemon_threads = True
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        port = proxy.server_address[1]
        account = {
            "type": "service_account",
            "project_id": "tests",
            "private_key_id": "1",
            "private_key": key.read_text("ascii"),
            "client_email": "tests@tests.iam.gserviceaccount.com",
            "client_id": "1",
            "token_uri": f"http://127.0.0.1:{port}/token",
        }
        (work / "account.json").write_text(json.dumps(account), encoding="utf-8")
        properties = {
            "https.proxyHost": "127.0.0.1",
            "https.proxyPort": port,
            "javax.net.ssl.trustStore": work / "trusted.p12",
            "javax.net.ssl.trustStorePassword": PASSWORD,
        }
        yield {
            "spark.driver.extraJavaOptions": " ".join(f"-D{name}={value}" for name, value in properties.items()),
            "spark.hadoop.fs.gs.project.id": "tests",
            "spark.hadoop.fs.gs.create.items.conflict.check.enable": "false",
            "spark.hadoop.fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
            "spark.hadoop.fs.gs.auth.service.account.json.keyfile": str(work / "account.json"),
        }
        proxy.shutdown()
        thread.join()


def _made(work: Path) -> tuple[Path, Path]:
    """Make a key and a certificate of Google's name, which `trusted.p12` has for Java."""
    key, certificate, store = work / "key.pem", work / "certificate.pem", work / "trusted.p12"
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, GOOGLE)])
    today = datetime.now(timezone.utc)
    signed = (
        x509.CertificateBuilder(name, name, made.public_key(), x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(GOOGLE)]), critical=False)
        .sign(made, hashes.SHA256())
    )
    unencrypted = serialization.NoEncryption()
    pkcs8 = serialization.PrivateFormat.PKCS8
    key.write_bytes(made.private_bytes(serialization.Encoding.PEM, pkcs8, unencrypted))
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    kept = ["-storetype", "PKCS12", "-keystore", str(store), "-storepass", PASSWORD]
    subprocess.run(["keytool", "-importcert", "-noprompt", "-file", str(certificate), *kept], check=True)
    return key, certificate


class _Connection(socketserver.StreamRequestHandler):
    """A connection of Hadoop's connector: for a token, or through to the server."""

    def __init__(self, *of_connection: Any, server: int, tls: ssl.SSLContext) -> None:
        self._server = server
        self._tls = tls
        super().__init__(*of_connection)

    def handle(self) -> None:
        request = self.rfile.readline()
        headers = http.client.parse_headers(self.rfile)
        if request.startswith(b"POST"):
            self.rfile.read(int(headers["Content-Length"]))
            token = json.dumps({"access_token": "a-token", "expires_in": 3600, "token_type": "Bearer"}).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(token)}\r\n\r\n"
            self.wfile.write(head.encode() + token)
            return
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with (
            suppress(OSError),
            self._tls.wrap_socket(self.connection, server_side=True) as client,
            socket.create_connection(("127.0.0.1", self._server)) as server,
        ):
            back = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
            back.start()
            _pass_on(client, server)
            back.join()


# Google's server takes the first; the imitation does not see that it is reached by TLS.
_CORRECTED = {b"POST //batch/": b"POST /batch/", b"Location: http://": b"Location: https://"}


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while content := source.recv(65536):
            for sent, meant in _CORRECTED.items():
                content = content.replace(sent, meant, 1)
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)
