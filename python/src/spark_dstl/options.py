# SPDX-License-Identifier: Apache-2.0
"""The options of the log: their names in Python, and their values.

`options.json` lists them; it is generated from the options class of the JVM side.
"""

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib import resources
from itertools import accumulate
from typing import Any, TypeAlias

from spark_dstl import notation
from spark_dstl.errors import InvalidOption

PREFIX = "spark.sql.streaming.stateStore.dstl."

Duration: TypeAlias = str | int | timedelta
"""`500ms`, `10s` or `10min`, a number of milliseconds, or a timedelta of whole milliseconds."""

Size: TypeAlias = str | int
"""`512k`, `10m` or `1g`, or a number of bytes."""

Directory: TypeAlias = str | os.PathLike[str]
"""An absolute path, or a URI."""


def spark_settings(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the Spark settings for options by their Python names, without those whose value is None.

    Raises `InvalidOption` for an invalid value, and `TypeError` for an unknown name, as Python does for keywords.
    """
    known = {option.name: option for option in all_options()}
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"got an unexpected keyword argument {name!r}: there is no such option of the log{meant}")
    return {PREFIX + known[name].key: known[name].convert(value) for name, value in given.items() if value is not None}


@cache
def all_options() -> tuple["Option", ...]:
    """Return every option there is, in the order of the reference."""
    entries = json.loads(resources.files("spark_dstl").joinpath("options.json").read_text(encoding="utf-8"))
    renamed = {"defaultText": "default_text", "min": "minimum", "max": "maximum"}
    return tuple(Option(**{renamed.get(name, name): value for name, value in entry.items()}) for entry in entries)


@dataclass(frozen=True)
class Option:
    """One entry of `options.json`; `default`, `minimum` and `maximum` are in the notation of a value.

    If `default` is None it is not a constant, and `default_text` describes it.
    """

    key: str
    type: str
    doc: str
    default: str | None = None
    default_text: str = ""
    minimum: str | None = None
    maximum: str | None = None
    values: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The name in Python: `upload.maxInFlight` is `upload_max_in_flight`."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.key).replace(".", "_").lower()

    def convert(self, value: object) -> str:
        """Return `value` in Spark's notation, or raise `InvalidOption`."""
        text = _text(value, _KINDS[self.type].python_types)
        if text is None or not self._takes(text):
            raise InvalidOption(f"{self.name} cannot be {value!r}: it must be {self.allowed()}")
        return text

    def allowed(self) -> str:
        """Return in words which values are allowed."""
        if self.values:
            return "one of " + ", ".join(self.values)
        limits = {"at least": self.minimum, "at most": self.maximum}
        said = [f"{words} {limit}" for words, limit in limits.items() if limit is not None]
        return ", ".join([_KINDS[self.type].description, *said])

    def _takes(self, text: str) -> bool:
        if self.values:
            return text.lower() in self.values
        kind = _KINDS[self.type]
        if kind.number is None:
            return kind.takes(text)
        number, low, high = (None if t is None else kind.number(t) for t in (text, self.minimum, self.maximum))
        return number is not None and (low is None or low <= number) and (high is None or number <= high)


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else None


def _absolute_directory(text: str) -> bool:
    """Whether Hadoop's `Path` makes an absolute path of `text`, without `..` that leave the root."""
    path = re.sub(r"^[^:/]+:", "", text)
    path = re.sub(r"^//[^/]+", "", path)
    steps = [{"": 0, ".": 0, "..": -1}.get(name, 1) for name in path.split("/")]
    return path.startswith("/") and min(accumulate(steps)) >= 0


@dataclass(frozen=True)
class _Kind:
    """The values of a type: in words, as Python types other than `str`, and as a number."""

    description: str
    python_types: tuple[type, ...] = ()
    number: Callable[[str], int | None] | None = None
    takes: Callable[[str], bool] = bool


_KINDS = {
    "boolean": _Kind("true or false", (bool,), takes=lambda text: text.lower() in ("true", "false")),
    "bytes": _Kind("a size such as 512k, 100m or 1g, or a number of bytes", (int,), notation.size_in_bytes),
    "duration": _Kind(
        "a duration such as 500ms, 10s or 5min, or a number of milliseconds", (int, timedelta), notation.milliseconds
    ),
    "enum": _Kind("one of a few words"),
    "int": _Kind("a whole number", (int,), _integer),
    "path": _Kind(
        "an absolute path, or a URI such as s3a://bucket/directory", (os.PathLike,), takes=_absolute_directory
    ),
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
