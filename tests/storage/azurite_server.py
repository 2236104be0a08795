# SPDX-License-Identifier: Apache-2.0
"""Azurite, an imitation of Azure's storage, and queries whose checkpoints are there.

It answers on Azure's endpoint for blobs, not on that for hierarchical namespaces: the connector knows both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from harness import Run, free_port, listens
from programs import jars, program, with_jars
from scenarios import Scenario
from servers import BUCKET, start_server

ACCOUNT = "spark"
# Keys are in Base64.
KEY = "bm90LWEtc2VjcmV0LW9mLWFueWJvZHk="
ROOT = f"abfs://{BUCKET}@{ACCOUNT}.dfs.core.windows.net"


@dataclass(frozen=True)
class Azurite:
    """A running server."""

    port: int

    def names(self, directory: str) -> list[str]:
        """List a directory of the container; empty if it does not exist."""
        path = f"{BUCKET}{directory.removeprefix(ROOT)}"
        return [found.base_name for found in self._files.get_file_info(fs.FileSelector(path, allow_not_found=True))]

    def download(self, directory: str, target: Path) -> Path:
        """Copy a directory to this machine.

        Azurite lists directories separately from the objects that mark them; Azure does not. The connector reports
        both as directories, and Spark's state reader fails.
        """
        path = f"{BUCKET}{directory.removeprefix(ROOT)}"
        for found in self._files.get_file_info(fs.FileSelector(path, recursive=True)):
            copy = target / found.path.removeprefix(f"{path}/")
            if found.size:
                copy.parent.mkdir(parents=True, exist_ok=True)
                with self._files.open_input_stream(found.path) as content:
                    copy.write_bytes(content.read())
            else:
                # An empty object marks a directory, by which the state reader finds stores.
                copy.mkdir(parents=True, exist_ok=True)
        return target

    def make_container(self) -> None:
        """Create an empty container."""
        self._files.create_dir(BUCKET)

    @property
    def _files(self) -> fs.AzureFileSystem:
        endpoint = f"127.0.0.1:{self.port}"
        return fs.AzureFileSystem(
            ACCOUNT,
            account_key=KEY,
            blob_storage_authority=endpoint,
            dfs_storage_authority=endpoint,
            blob_storage_scheme="http",
            dfs_storage_scheme="http",
        )

    @property
    def confs(self) -> dict[str, str]:
        """Return the settings of the connector."""
        of_connector = {
            # The account is part of the path.
            "abfs.endpoint": f"127.0.0.1:{self.port}",
            "account.key": KEY,
            "always.use.https": "false",
            "account.hns.enabled": "false",
            "fns.account.service.type": "BLOB",
            # Apache's client makes no connection without TLS.
            "networking.library": "JDK_HTTP_URL_CONNECTION",
        }
        return {f"spark.hadoop.fs.azure.{name}": value for name, value in of_connector.items()}

    def run(self, work: Path, *scenarios: Scenario, confs: Mapping[str, str], master: str = "local[2]") -> Run:
        """Return queries with their checkpoints on the server."""
        kept = {**with_jars(confs, jars("abfs")), **self.confs}
        return Run.create(work, *scenarios, master=master, confs=kept, checkpoints=ROOT, names=self.names)


@contextmanager
def azurite(work: Path) -> Iterator[Azurite]:
    """Run an Azurite in a directory that it creates, with an empty container."""
    port = free_port()
    (work / "stored").mkdir(parents=True)
    quiet = ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    where = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(work / "stored")]
    account = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    with start_server([program("azurite-blob"), *quiet, *where], work, "azurite", account) as process:
        process.wait_until(lambda: listens("127.0.0.1", port), f"a server on port {port}")
        server = Azurite(port)
        server.make_container()
        yield server
