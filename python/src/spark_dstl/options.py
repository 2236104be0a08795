"""The options of the log: what they are called in Python, and which values they take.

The list itself is `options.json`, which is generated from the options class of the JVM side, so that one place says
what an option is called, what it defaults to and what it accepts.
"""

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

from spark_dstl import notation
from spark_dstl.errors import InvalidOption, UnknownOption

PREFIX = "spark.sql.streaming.stateStore.dstl."


def spark_settings(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the Spark settings for options given by Python name or by key, with or without the common prefix.

    Raises `UnknownOption` for a name that does not exist, and `InvalidOption` for a value that its option cannot take
    and for an option given twice.
    """
    settings: dict[str, str] = {}
    for name, value in given.items():
        option = find(name)
        if PREFIX + option.key in settings:
            raise InvalidOption(f"{option.key} is given twice, once as {name!r}")
        settings[PREFIX + option.key] = option.convert(value)
    return settings


def find(name: str) -> "Option":
    """Return the option with this Python name or key, or raise `UnknownOption` with the nearest one."""
    bare = name.removeprefix(PREFIX)
    for option in all_options():
        if bare in (option.key, option.name):
            return option
    raise UnknownOption(f"there is no option {name!r}; did you mean {_nearest(bare)!r}?")


@cache
def all_options() -> tuple["Option", ...]:
    """Return every option there is, in the order of the reference."""
    entries = json.loads(resources.files("spark_dstl").joinpath("options.json").read_text(encoding="utf-8"))
    return tuple(Option.from_json(entry) for entry in entries)


@dataclass(frozen=True)
class Option:
    """One entry of `options.json`; `default`, `minimum` and `maximum` are written as a value would be.

    Where `default` is None it is not a constant, and `doc` says how it comes about.
    """

    key: str
    type: str
    doc: str
    default: str | None = None
    minimum: str | None = None
    maximum: str | None = None
    values: tuple[str, ...] = ()

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> "Option":
        """Return the option that one object of `options.json` describes."""
        return Option(
            key=entry["key"],
            type=entry["type"],
            doc=entry["doc"],
            default=entry.get("default"),
            minimum=entry.get("min"),
            maximum=entry.get("max"),
            values=tuple(entry.get("values") or ()),
        )

    @property
    def name(self) -> str:
        """The name in Python: `upload.maxInFlight` is `upload_max_in_flight`."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.key).replace(".", "_").lower()

    def convert(self, value: object) -> str:
        """Return `value` as Spark is to be given it, or raise `InvalidOption`."""
        text = _text(value, _KINDS[self.type].python_types)
        if text is None or not self._takes(text):
            raise InvalidOption(f"{self.key} cannot be {value!r}: it must be {self.allowed()}")
        return text

    def allowed(self) -> str:
        """Say in a few words which values are allowed."""
        if self.type == "enum":
            return "one of " + ", ".join(self.values)
        limits = {"at least": self.minimum, "at most": self.maximum}
        said = [f"{words} {limit}" for words, limit in limits.items() if limit is not None]
        return ", ".join([_KINDS[self.type].description, *said])

    def _takes(self, text: str) -> bool:
        number_of = _KINDS[self.type].number
        if number_of is None:
            return text in self.values if self.values else text != ""
        number, low, high = (None if t is None else number_of(t) for t in (text, self.minimum, self.maximum))
        return number is not None and (low is None or low <= number) and (high is None or number <= high)


@dataclass(frozen=True)
class _Kind:
    """What the values of a type look like: in words, as Python objects other than strings, and as a number."""

    description: str
    python_types: tuple[type, ...] = ()
    number: Callable[[str], Decimal | None] | None = None


def _integer(text: str) -> Decimal | None:
    return Decimal(text) if re.fullmatch(r"-?[0-9]+", text) else None


def _boolean(text: str) -> Decimal | None:
    return {"true": Decimal(1), "false": Decimal(0)}.get(text.lower())


def _ratio(text: str) -> Decimal | None:
    number = Decimal(text) if re.fullmatch(r"[0-9]*\.?[0-9]+(e-[0-9]+)?", text.lower()) else None
    return number if number is not None and number <= 1 else None


_KINDS = {
    "boolean": _Kind("true or false", (bool,), _boolean),
    "bytes": _Kind("a size such as 512k, 100m or 1g, or a number of bytes", (int,), notation.size_in_bytes),
    "duration": _Kind(
        "a duration such as 500ms, 10s or 5min, or a number of milliseconds", (int, timedelta), notation.milliseconds
    ),
    "enum": _Kind("one of a few words"),
    "int": _Kind("a whole number", (int,), _integer),
    "path": _Kind("a path", (os.PathLike,)),
    "ratio": _Kind("a number from 0 to 1", (int, float), _ratio),
    "string": _Kind("a text"),
}


def _text(value: object, allowed: tuple[type, ...]) -> str | None:
    """Return `value` in Spark's notation, or None if it is neither a string nor of an allowed type."""
    if isinstance(value, str):
        return value.strip()
    # A bool is an int to Python, but `threads=True` is a mistake.
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return notation.duration(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    return str(value)


def _nearest(name: str) -> str:
    """Return the key or Python name that looks most like `name`: a key if `name` looks like one."""
    looks_like_key = "." in name or name != name.lower()
    known = {(o.key if looks_like_key else o.name).lower(): o.key if looks_like_key else o.name for o in all_options()}
    return known[difflib.get_close_matches(name.lower(), known, n=1, cutoff=0)[0]]
