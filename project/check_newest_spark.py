# SPDX-License-Identifier: Apache-2.0
"""Checks that the project has a build for the newest minor version of Spark on PyPI.

Prints a line for each minor version without a build, and exits with 1 if there is any. It also prints each patch
release that is newer than the one in `project/SparkLine.scala`: those need a test run, no change.
"""

import json
import re
import sys
import urllib.request
from collections.abc import Iterable

from spark_lines import lines

RELEASES = "https://pypi.org/pypi/pyspark/json"
TIMEOUT_SECONDS = 60


def main() -> int:
    """Compare and return the exit code."""
    with urllib.request.urlopen(RELEASES, timeout=TIMEOUT_SECONDS) as answer:
        published = json.load(answer)["releases"]
    built = {line.name: line.version for line in lines()}
    newest = newest_of_each_line(version for version, files in published.items() if is_installable(files))
    oldest = min(built, key=numbers)
    missing = 0
    for line, version in sorted(newest.items(), key=lambda item: numbers(item[0])):
        if line in built and version != built[line]:
            print(f"Spark {version} is out; SparkLine.scala has {built[line]}. Run its tests and raise the version.")
        elif line not in built and numbers(line) > numbers(oldest):
            print(f"Spark {version} is out; SparkLine.scala has no line {line}. See CONTRIBUTING.md.")
            missing += 1
    return 1 if missing else 0


def is_installable(files: list[dict[str, object]]) -> bool:
    """Return whether a release has a file that was not withdrawn."""
    return any(not file["yanked"] for file in files)


def newest_of_each_line(versions: Iterable[str]) -> dict[str, str]:
    """Return the newest patch release of each minor version; previews count as no release."""
    newest: dict[str, str] = {}
    for version in versions:
        if re.fullmatch(r"\d+\.\d+\.\d+", version):
            line = version.rpartition(".")[0]
            newest[line] = max(newest.get(line, version), version, key=numbers)
    return newest


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, by which versions are ordered."""
    return tuple(int(part) for part in version.split("."))


if __name__ == "__main__":
    sys.exit(main())
