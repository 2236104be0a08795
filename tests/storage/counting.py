"""What queries ask of storage, batch by batch, from what a server or a proxy has written down."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from urllib.parse import parse_qs, urlsplit

# What makes an object: as a method of HTTP, or as servers call it. By rename it is a copy, of a hidden file.
_MAKES_AN_OBJECT = {"PUT", "PutObject", "CopyObject"}
_ID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def by_batch(requests: Iterable[tuple[str, str]], query: str = "query-0") -> list[Counter[str]]:
    """From one commit entry to the next: operations, by what in the checkpoint they were asked of.

    `requests` are the operation and the target of each, in their order; a listing is asked of its prefix. Left out is
    what the file source asks of its own log, with state or without. What follows the last commit entry comes last.
    """
    batches: list[Counter[str]] = [Counter()]
    newest = -1
    for operation, target in requests:
        place = _place(target).partition(f"{query}/")[2]
        if not place.startswith("sources/"):
            numbered = re.sub(r"/\d+(-ID\.trial)?$", r"/N\1", place)
            batches[-1][f"{operation} {numbered}"] += 1
        entry = re.fullmatch(r"commits/(\d+)", place)
        # A second attempt at one belongs to the batch after it.
        if entry and operation in _MAKES_AN_OBJECT and int(entry[1]) > newest:
            newest = int(entry[1])
            batches.append(Counter())
    return batches


def _place(target: str) -> str:
    """The object, or the prefix of a listing, with `ID` for what is another each time."""
    address = urlsplit(target)
    prefixes = parse_qs(address.query).get("prefix")
    return re.sub(_ID, "ID", prefixes[0] if prefixes else address.path)


def by_operation(batch: Iterable[tuple[str, int]]) -> Counter[str]:
    """The same, whatever was asked of."""
    found: Counter[str] = Counter()
    for name, count in batch:
        found[name.partition(" ")[0]] += count
    return found
