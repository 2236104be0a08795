# SPDX-License-Identifier: Apache-2.0
"""The storages on which the log is tested in the same way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import spark_dstl
from google_server import GoogleServer, google, of_google
from harness import Run
from programs import connector, jars, with_jars
from s3 import ROOT, environment, names_on, s3a
from scenarios import Scenario
from servers import BUCKET, OTHER_BUCKET, S3_SERVERS, Hdfs, S3Process, hdfs
from settings import log_confs
from spark_dstl import Checkpoint, JvmOptions
from wire import wire

CHANGES_SOMETHING = {"PUT", "POST", "DELETE"}


@dataclass(frozen=True)
class Watched:
    """A connection to a storage that counts writes.

    `confs` configure it; `changes` returns the number of writes so far; a small batch makes about `a_batch`.
    """

    confs: Mapping[str, str]
    changes: Callable[[], int]
    a_batch: int


@dataclass(frozen=True)
class Elsewhere:
    """A place for data files outside of the checkpoint, and its files."""

    path: str
    files: Callable[[], list[str]]


class Storage(ABC):
    """A running server. Each test has a separate directory below `root`; `confs` configure the access."""

    root: str
    confs: Mapping[str, str]

    def run(
        self, work: Path, *scenarios: Scenario, master: str = "local[2]", confs: Mapping[str, str] | None = None
    ) -> Run:
        """Return queries with their checkpoints on the storage, with the log unless `confs` set another provider."""
        kept = self.reached(log_confs() if confs is None else confs)
        checkpoints = f"{self.root}/{work.name}"
        return Run.create(work, *scenarios, master=master, confs=kept, checkpoints=checkpoints, names=self.files)

    @abstractmethod
    def reached(self, confs: Mapping[str, str]) -> dict[str, str]:
        """Add the settings of the access."""

    @abstractmethod
    def opened(self, checkpoint: str) -> AbstractContextManager[Checkpoint]:
        """Open a checkpoint as the commands do."""

    @abstractmethod
    def files(self, directory: str) -> list[str]:
        """Return the paths of all files below a directory, relative to it."""

    @abstractmethod
    def unfinished(self, directory: str) -> list[str]:
        """Return unfinished writes of dead processes."""

    @abstractmethod
    def elsewhere(self, work: Path) -> AbstractContextManager[Elsewhere]:
        """Return another bucket, or another cluster."""

    @abstractmethod
    def watched(self) -> AbstractContextManager[Watched]:
        """Return a connection that counts writes."""


@contextmanager
def through_proxy(port: int, settings: Callable[[str], Mapping[str, str]]) -> Iterator[Watched]:
    """Return a connection to a server of objects; `settings` are those of its connector, for an address."""
    with wire(port) as between:

        def changes() -> int:
            with between.lock:
                return sum(seen.method in CHANGES_SOMETHING for seen in between.seen)

        yield Watched(settings(between.address), changes, a_batch=3)


class OnS3(Storage):
    """A server that speaks S3."""

    root = ROOT

    def __init__(self, server: S3Process) -> None:
        self._server = server
        self.confs = s3a(server.address)

    def reached(self, confs: Mapping[str, str]) -> dict[str, str]:
        return {**with_jars(confs, connector()), **self.confs}

    @contextmanager
    def opened(self, checkpoint: str) -> Iterator[Checkpoint]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment(self._server.address).items():
                patch.setenv(name, value)
            options = JvmOptions(jars=tuple(map(str, connector())))
            with spark_dstl.open(checkpoint, jvm=options) as found:
                yield found

    def files(self, directory: str) -> list[str]:
        return names_on(self._server)(directory)

    def unfinished(self, directory: str) -> list[str]:
        prefix = directory.removeprefix(f"{ROOT}/")
        return [key for key in self._server.unfinished_uploads() if key.startswith(prefix)]

    @contextmanager
    def elsewhere(self, work: Path) -> Iterator[Elsewhere]:
        path = f"s3a://{OTHER_BUCKET}/{work.name}"
        yield Elsewhere(path, lambda: self.files(path))

    def watched(self) -> AbstractContextManager[Watched]:
        return through_proxy(self._server.port, s3a)


class OnHdfs(Storage):
    """An HDFS; each write is a transaction of its namenode."""

    def __init__(self, cluster: Hdfs) -> None:
        self._cluster = cluster
        self.root = cluster.address
        self.confs = {}

    def reached(self, confs: Mapping[str, str]) -> dict[str, str]:
        return dict(confs)

    @contextmanager
    def opened(self, checkpoint: str) -> Iterator[Checkpoint]:
        with spark_dstl.open(checkpoint) as found:
            yield found

    def files(self, directory: str) -> list[str]:
        return self._cluster.files(directory)

    def unfinished(self, directory: str) -> list[str]:  # noqa: ARG002
        # The namenode closes a dead writer's file when its lease has expired.
        return []

    @contextmanager
    def elsewhere(self, work: Path) -> Iterator[Elsewhere]:
        """On another HDFS."""
        with hdfs(work) as other:
            path = f"{other.address}/log"
            yield Elsewhere(path, lambda: other.files(path))

    @contextmanager
    def watched(self) -> Iterator[Watched]:
        yield Watched({}, self._cluster.transactions, a_batch=20)


class OnGoogle(Storage):
    """An imitation of Google's storage, through Google's connector."""

    root = f"gs://{BUCKET}"

    def __init__(self, server: GoogleServer) -> None:
        self._server = server
        self.confs = of_google(server.address)

    def reached(self, confs: Mapping[str, str]) -> dict[str, str]:
        return {**with_jars(confs, jars("gcs")), **self.confs}

    @contextmanager
    def opened(self, checkpoint: str) -> Iterator[Checkpoint]:
        options = JvmOptions(jars=tuple(map(str, jars("gcs"))), conf=self.confs)
        with spark_dstl.open(checkpoint, jvm=options) as found:
            yield found

    def files(self, directory: str) -> list[str]:
        return self._server.names(directory)

    def unfinished(self, directory: str) -> list[str]:  # noqa: ARG002
        # Uploads that were not finished are not listed; the server forgets them.
        return []

    @contextmanager
    def elsewhere(self, work: Path) -> Iterator[Elsewhere]:
        path = f"gs://{OTHER_BUCKET}/{work.name}"
        yield Elsewhere(path, lambda: self.files(path))

    def watched(self) -> AbstractContextManager[Watched]:
        return through_proxy(self._server.port, of_google)


@contextmanager
def on_google(work: Path) -> Iterator[Storage]:
    """Run an imitation of Google's storage."""
    with google(work / "server") as server:
        yield OnGoogle(server)


@contextmanager
def on_s3(name: str, work: Path) -> Iterator[Storage]:
    """Run the S3 server of that name."""
    with S3_SERVERS[name](work / "server") as server:
        yield OnS3(server)


@contextmanager
def on_hdfs(work: Path) -> Iterator[Storage]:
    """Run a namenode and three datanodes."""
    with hdfs(work) as cluster:
        yield OnHdfs(cluster)


STORAGES: dict[str, Callable[[Path], AbstractContextManager[Storage]]] = {
    **{name: partial(on_s3, name) for name in S3_SERVERS},
    "hdfs": on_hdfs,
    "gcs": on_google,
}
