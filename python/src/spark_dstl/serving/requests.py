# SPDX-License-Identifier: Apache-2.0
"""What a client asks for: the ticket of a Flight call is a small JSON object."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from spark_dstl.checkpoint.java.state import MOST, Selection
from spark_dstl.errors import InvalidRequest

# A key and a condition fit.
MAX_BYTES = 64 * 1024
# Of a value, in an error.
_SHOWN = 100
_SELECTION = {"operator": int, "store": str, "column_family": str, "partition": int, "where": str}
_NUMBERS = {"operator", "partition"}
_FIELDS: dict[str, dict[str, Any]] = {
    "get": {"key": object, "keys": list, "operator": int, "store": str, "column_family": str},
    "scan": _SELECTION,
    "changes": {**_SELECTION, "after": int, "until": int, "waits": bool},
    "describe": {},
}
_HELP = "Commands: " + "; ".join(f"{name} with {', '.join(of)}" if of else name for name, of in _FIELDS.items())


@dataclass(frozen=True)
class Request:
    """A checked request: its command, and its fields by name."""

    command: str
    fields: dict[str, Any]

    def get(self, name: str, otherwise: Any = None) -> Any:
        """Return a field, or another value without it."""
        return self.fields.get(name, otherwise)

    @property
    def keys(self) -> list[Any]:
        """The keys that are looked up. In JSON a list has the values of a key's columns."""
        keys = self.get("keys") if "keys" in self.fields else [self.get("key")]
        return [tuple(key) if isinstance(key, list) else key for key in keys]

    @property
    def selection(self) -> Selection:
        """The selection in its fields."""
        return Selection(**{name: self.get(name) for name in _SELECTION})


def parse(ticket: bytes) -> Request:
    """Return the request in a ticket. Raises `InvalidRequest`, which lists the commands and their fields."""
    if len(ticket) > MAX_BYTES:
        raise InvalidRequest(f"a request has at most {MAX_BYTES} bytes, and this one {len(ticket)}")
    try:
        content = json.loads(ticket)
        # It may escape half of a surrogate pair, which Java and Arrow refuse.
        json.dumps(content, ensure_ascii=False).encode()
    except (RecursionError, ValueError) as error:
        raise InvalidRequest(f"a request is an object in JSON: {error}. {_HELP}") from error
    command = content.get("command") if isinstance(content, dict) else None
    fields = _FIELDS.get(command) if isinstance(command, str) else None
    if command is None or fields is None:
        raise InvalidRequest(f"a request has a command. {_HELP}")
    given = {name: value for name, value in content.items() if name != "command" and value is not None}
    for name, value in given.items():
        of = fields.get(name)
        if of is None:
            raise InvalidRequest(f"{command} has no field {name}. {_HELP}")
        # A bool is an int.
        if not isinstance(value, of) or (of is int and isinstance(value, bool)):
            shown = json.dumps(value)[:_SHOWN]
            raise InvalidRequest(f"{name} of {command} is of the type {of.__name__}, and not {shown}")
        if name in _NUMBERS and not 0 <= value <= MOST:
            raise InvalidRequest(f"{name} of {command} is from 0 to {MOST}, and not {json.dumps(value)[:_SHOWN]}")
    if command == "get" and ("key" in given) == ("keys" in given):
        raise InvalidRequest(f"get has a key, or else keys. {_HELP}")
    return Request(command, given)
