# SPDX-License-Identifier: Apache-2.0
"""Storage servers on the loopback interface. Each ends with its `with` block."""

from __future__ import annotations

import http
import json
import os
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import boto3
from botocore.config import Config

from driver_process import DEADLINE_SECONDS, Process
from gateway import REGION, Gateway, Request, keys
from harness import free_port, listens
from programs import jars, program

ACCESS_KEY = "spark-dstl-test"
# Of servers that end with their test.
SECRET_KEY = "not-a-secret-of-anybody"
BUCKET = "checkpoints"
OTHER_BUCKET = "data-files"
WEBHDFS = "/webhdfs/v1"


def start_server(command: Sequence[str], work: Path, name: str, variables: Mapping[str, str] | None = None) -> Process:
    """Start a server in a directory, with the log `<name>.log`; it may read commands."""
    return Process(command, {**os.environ, **(variables or {})}, work / f"{name}.log", subprocess.PIPE)


@dataclass(frozen=True)
class S3Server:
    """A server that speaks S3."""

    name: str
    port: int

    @property
    def address(self) -> str:
        """The endpoint for clients."""
        return f"http://127.0.0.1:{self.port}"

    @cached_property
    def client(self) -> Any:
        """Return a client for the tests."""
        return client(self.address)

    def keys(self, prefix: str, bucket: str = BUCKET) -> list[str]:
        """The keys of the objects below a prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", ())]

    def unfinished_uploads(self, bucket: str = BUCKET) -> list[str]:
        """Return the keys of unfinished multipart uploads."""
        return [found["Key"] for found in self.client.list_multipart_uploads(Bucket=bucket).get("Uploads", ())]


@dataclass(frozen=True)
class S3Process(S3Server):
    """An S3 server in a separate process."""

    process: Process

    def kill(self) -> None:
        """Send SIGKILL to the server."""
        self.process.kill()

    def restart(self) -> None:
        """Restart the server with its stored objects."""
        self.process.restart()
        self.wait()

    def wait(self) -> None:
        """Wait until the server answers."""
        self.process.wait_until(lambda: answers(self.port), f"an answer of {self.name}")


Server = TypeVar("Server", bound=S3Process)


@dataclass(frozen=True)
class Versitygw(S3Process):
    """The Versity S3 Gateway on local files. Its conditional creation is atomic."""

    gateway: Gateway

    def requests(self) -> list[Request]:
        """Return the answered requests, in the order of the answers."""
        return self.gateway.requests()

    def asked(self) -> list[tuple[str, str]]:
        """Return operation and target of each request."""
        return [(request.operation, request.target) for request in self.requests()]


def client(address: str) -> Any:
    """Return a client without retries."""
    return boto3.client(
        "s3",
        endpoint_url=address,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name=REGION,
        config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}),
    )


def answers(port: int) -> bool:
    """Return whether an S3 server answers."""
    if not listens("127.0.0.1", port):
        return False
    try:
        client(f"http://127.0.0.1:{port}").list_buckets()
    except Exception:
        return False
    return True


@contextmanager
def versitygw(work: Path) -> Iterator[Versitygw]:
    """A Versity S3 Gateway in a directory that it creates, with empty buckets `BUCKET` and `OTHER_BUCKET`."""
    port = free_port()
    gateway = Gateway.in_directory(work)
    command = gateway.command(program("versitygw"), port)
    with start_server(command, work, "versitygw", keys(ACCESS_KEY, SECRET_KEY)) as process:
        yield _with_buckets(Versitygw("versitygw", port, process, gateway))


@contextmanager
def minio(work: Path) -> Iterator[S3Process]:
    """A MinIO in a directory that it creates, with empty buckets `BUCKET` and `OTHER_BUCKET`."""
    port = free_port()
    (work / "stored").mkdir(parents=True)
    command = [program("minio"), "server", "--address", f"127.0.0.1:{port}", "--console-address", "127.0.0.1:0"]
    variables = {"MINIO_ROOT_USER": ACCESS_KEY, "MINIO_ROOT_PASSWORD": SECRET_KEY, "MINIO_BROWSER": "off"}
    with start_server([*command, str(work / "stored")], work, "minio", variables) as process:
        yield _with_buckets(S3Process("minio", port, process))


def _with_buckets(server: Server) -> Server:
    server.wait()
    for bucket in (BUCKET, OTHER_BUCKET):
        server.client.create_bucket(Bucket=bucket)
    return server


# S3 servers, by name; each takes the directory that it creates.
S3_SERVERS: Mapping[str, Callable[[Path], AbstractContextManager[S3Process]]] = {
    "versitygw": versitygw,
    "minio": minio,
}


@dataclass(frozen=True)
class Toxiproxy:
    """A Toxiproxy between clients and a server."""

    port: int
    api: str

    @property
    def address(self) -> str:
        """The endpoint for clients."""
        return f"http://127.0.0.1:{self.port}"

    def add(self, kind: str, **attributes: int) -> None:
        """Add a toxic to the server's answers on new connections."""
        toxic = {
            "name": kind,
            "type": kind,
            "stream": "downstream",
            "attributes": attributes,
        }
        self._ask("POST", "/proxies/storage/toxics", toxic)

    def clear(self) -> None:
        """Remove all toxics."""
        self._ask("POST", "/reset")

    def _ask(self, method: str, path: str, content: Any = None) -> None:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(self.api + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS):
            pass


@contextmanager
def toxiproxy(work: Path, upstream: int) -> Iterator[Toxiproxy]:
    """A Toxiproxy to that port, without toxics."""
    api, port = free_port(), free_port()
    command = [program("toxiproxy-server"), "-host", "127.0.0.1", "-port", str(api)]
    with start_server(command, work, "toxiproxy", {"LOG_LEVEL": "error"}) as process:
        process.wait_until(lambda: listens("127.0.0.1", api), "Toxiproxy's API")
        found = Toxiproxy(port, f"http://127.0.0.1:{api}")
        route = {"name": "storage", "listen": f"127.0.0.1:{port}", "upstream": f"127.0.0.1:{upstream}"}
        found._ask("POST", "/proxies", route)
        yield found


def hadoop(*options: str, before: Sequence[Path] = ()) -> list[str]:
    """Return the command that runs a class of Hadoop's servers; directories `before` precede their jars."""
    classpath = os.pathsep.join(map(str, [*before, *jars("hdfs")]))
    return ["java", *options, "-XX:+UseSerialGC", "-cp", classpath]


@dataclass(frozen=True)
class Hdfs:
    """Hadoop's MiniDFSCluster: a namenode and three datanodes in a separate process."""

    address: str
    web: str
    process: Process

    def names(self, directory: str) -> list[str]:
        """List a directory; empty if it does not exist."""
        return [status["pathSuffix"] for status in self._listed(directory)]

    def files(self, directory: str) -> list[str]:
        """Return the paths of all files below a directory, relative to it."""
        found: list[str] = []
        for status in self._listed(directory):
            name = status["pathSuffix"]
            is_directory = status["type"] == "DIRECTORY"
            found += [f"{name}/{below}" for below in self.files(f"{directory}/{name}")] if is_directory else [name]
        return found

    def transactions(self) -> int:
        """Return the number of the namenode's transactions."""
        bean = "Hadoop:service=NameNode,name=FSNamesystem"
        address = f"{self.web.removesuffix(WEBHDFS)}/jmx?{urllib.parse.urlencode({'qry': bean})}"
        with urllib.request.urlopen(address, timeout=DEADLINE_SECONDS) as answer:
            return int(json.loads(answer.read())["beans"][0]["LastWrittenTransactionId"])

    def ask(self, path: str, operation: str) -> Any:
        """Return the answer of WebHDFS to a reading operation."""
        address = f"{self.web}{urllib.parse.quote(path)}?op={operation}"
        with urllib.request.urlopen(address, timeout=DEADLINE_SECONDS) as answer:
            return json.loads(answer.read())

    def _listed(self, directory: str) -> list[dict[str, Any]]:
        try:
            found = self.ask(directory.removeprefix(self.address), "LISTSTATUS")
        except urllib.error.HTTPError as error:
            if error.code == http.HTTPStatus.NOT_FOUND:
                return []
            raise
        statuses: list[dict[str, Any]] = found["FileStatuses"]["FileStatus"]
        return statuses

    def open_files(self) -> list[str]:
        """Return the open files, those of dead writers included."""
        before = len(self.process.log())
        self.tell("list-open-files")
        return re.findall(r"^open (.*)$", self.process.log()[before:], re.MULTILINE)

    def tell(self, command: str) -> None:
        """Send a command, and wait until it is done: see `MiniHdfs`."""
        done = f"done {command}"
        before = self.process.log().count(done)
        self.process.tell(command)
        self.process.wait_until(lambda: self.process.log().count(done) > before, done)


@contextmanager
def hdfs(work: Path, secured: bool = False) -> Iterator[Hdfs]:
    """An HDFS whose files are below `work`; with `secured`, by Kerberos, with what clients need in `work / "hdfs"`."""
    port, web_port = free_port(), free_port()
    main = ["sparkdstl.testing.MiniHdfs", str(work / "hdfs"), str(port), str(web_port)]
    if secured:
        main.append("secured")
    with start_server([*hadoop("-Xmx768m"), *main], work, "hdfs") as process:
        process.wait_until(lambda: "ready" in process.log(), "the start of HDFS")
        # Kerberos knows the servers by name.
        host = "localhost" if secured else "127.0.0.1"
        yield Hdfs(f"hdfs://{host}:{port}", f"http://127.0.0.1:{web_port}{WEBHDFS}", process)
