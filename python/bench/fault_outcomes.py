# SPDX-License-Identifier: Apache-2.0
"""What became of a query that met a fault of storage, as docs/results shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence

# An error is named by its condition of spark-dstl; else by the last class in its text, with the beginning of the
# message; else by Spark's condition.
_OURS = re.compile(r"DSTL_\w+")
_NAMED = re.compile(r"(?:\b[a-z]\w*\.)*\b([A-Z]\w*(?:Exception|Error))\b:? ?([^:(;\n]{0,80})")
_OF_SPARK = re.compile(r"^\[([A-Z_]+)[\].]")
_PATH = re.compile(r"\S*/\S*/\S*[^\s.]")
_MOST = 100


def cell(failures: Sequence[str], wrong: str) -> str:
    """Return the outcome of a query, in a few words."""
    if not failures:
        return f"not survived: {wrong}" if wrong else "survived"
    errors = ", ".join(f"`{error}`" for error in dict.fromkeys(map(short, failures)))
    times = "failed" if len(failures) == 1 else f"failed {len(failures)} times"
    return f"{times}, {errors}; {wrong or 'continued after a restart'}"


def short(error: str) -> str:
    """Return the name of an error and the beginning of its message; of spark-dstl the condition alone."""
    if found := _OURS.search(error):
        return found[0]
    named = _NAMED.findall(error)
    if not named:
        of_spark = _OF_SPARK.search(error)
        return of_spark[1] if of_spark else without_paths(error.splitlines()[0])[:_MOST].strip()
    name, message = named[-1]
    return f"{name}: {without_paths(message).removesuffix('SQLSTATE')}".strip(" :")


def without_paths(text: str) -> str:
    """Leave out the names of objects, which differ each time."""
    return _PATH.sub("…", text)
