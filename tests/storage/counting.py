# SPDX-License-Identifier: Apache-2.0
"""Counts a query's requests, batch by batch, in the record of a server or a proxy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from urllib.parse import parse_qs, urlsplit

# Operations that create an object: methods of HTTP, and names of servers. A rename copies a hidden file.
_MAKES_AN_OBJECT = {"PUT", "PutObject", "CopyObject"}
_ID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def by_batch(requests: Iterable[tuple[str, str]], query: str = "query-0") -> list[Counter[str]]:
    """Count requests from one commit entry to the next, by operation and place in the checkpoint.

    `requests` are operations and targets, in their order; the target of a listing is its prefix. Requests of the file
    source for its own log are left out. The last count is of requests after the last commit entry.
    """
    batches: list[Counter[str]] = [Counter()]
    newest = -1
    for operation, target in requests:
        place = _place(target).partition(f"{query}/")[2]
        if not place.startswith("sources/"):
            numbered = re.sub(r"/\d+(-ID\.trial)?$", r"/N\1", place)
            batches[-1][f"{operation} {numbered}"] += 1
        entry = re.fullmatch(r"commits/(\d+)", place)
        # A retry counts for the batch after it.
        if entry and operation in _MAKES_AN_OBJECT and int(entry[1]) > newest:
            newest = int(entry[1])
            batches.append(Counter())
    return batches


def _place(target: str) -> str:
    """Return the object, or the prefix of a listing, with `ID` in place of unique ids."""
    address = urlsplit(target)
    prefixes = parse_qs(address.query).get("prefix")
    return re.sub(_ID, "ID", prefixes[0] if prefixes else address.path)


def by_operation(batch: Iterable[tuple[str, int]]) -> Counter[str]:
    """Count requests by operation alone."""
    found: Counter[str] = Counter()
    for name, count in batch:
        found[name.partition(" ")[0]] += count
    return found
