#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches sbt's launcher from Maven Central into a directory, and writes there the list of repositories sbt may use.

Usage: fetch_sbt.py DIRECTORY. Prints the launcher's path. Does nothing when the launcher is there and intact. The
variable MAVEN_CENTRAL names another base address, such as a mirror's.
"""

import hashlib
import os
import sys
import urllib.request
from pathlib import Path

MAVEN_CENTRAL = os.environ.get("MAVEN_CENTRAL") or "https://repo1.maven.org/maven2"
SBT_VERSION = "1.12.13"
SHA256 = "bfee6b097104e91afd994dd6298a9040bd3217212e462953aea91f8378b69045"
TIMEOUT_SECONDS = 60


def main() -> None:
    """Make the directory named by the first argument ready for running sbt."""
    if len(sys.argv) != 2:
        sys.exit("usage: fetch_sbt.py DIRECTORY")
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    base = MAVEN_CENTRAL.rstrip("/")
    replace(directory / "repositories", f"[repositories]\n  local\n  central: {base}/\n".encode())

    launcher = directory / f"sbt-launch-{SBT_VERSION}.jar"
    if not (launcher.is_file() and digest(launcher.read_bytes()) == SHA256):
        address = f"{base}/org/scala-sbt/sbt-launch/{SBT_VERSION}/{launcher.name}"
        print(f"Fetching sbt's launcher {SBT_VERSION} from {address}", file=sys.stderr)
        content = download(address)
        if digest(content) != SHA256:
            sys.exit(f"{address} has SHA-256 {digest(content)}, expected {SHA256}: nothing was installed")
        replace(launcher, content)
    print(launcher)


def download(address: str) -> bytes:
    """Return what stands at `address`, or end the program with one line that says why it cannot be had."""
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as response:
            content: bytes = response.read()
            return content
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        sys.exit(f"cannot fetch {address}: {reason}; check the network, or set MAVEN_CENTRAL to a mirror")


def digest(content: bytes) -> str:
    """Return the SHA-256 of `content` in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def replace(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that an interruption leaves either the old file or the new one."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(content)
    temporary.replace(path)


if __name__ == "__main__":
    main()
