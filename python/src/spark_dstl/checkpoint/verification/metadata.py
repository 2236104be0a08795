# SPDX-License-Identifier: Apache-2.0
"""Checks of what Spark writes for sources and operators: `sources/`, and metadata and schemas in `state/`.

Spark keeps no checksums of these files: a check finds that one is missing, cannot be parsed or has values of other
types, and no other value.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable
from itertools import pairwise

from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.storage import TooLarge
from spark_dstl.checkpoint.verification.findings import Look

_MOST_BYTES = 64 * 1024 * 1024
_OTHER = "it is not what Spark writes"
_COMPACT = ".compact"
_SOURCE = re.compile(r"[A-Za-z0-9_]+")
_OPERATOR = re.compile(r"\d+/_metadata/(?:metadata|v2/\d+)")
_SCHEMA = re.compile(r"\d+/(?:\d+/(?:[^/]+/)?_metadata/schema|_stateSchema/[^/]+/[^/.][^/]*)")
# Spark 4.2 starts with any content of the other files: of operators without schema files, and of schemas of joins.
_DESCRIPTION = re.compile(r"(\d+)/_metadata/v2/(\d+)")
_WRITTEN_ANEW = re.compile(r"\d+/\d+/(?:[^/]+/)?_metadata/schema")
_URI = re.compile(r"[A-Za-z][\w.+-]*:/")
_SCHEMA_BEGINS = re.compile(rb"\0[\2-\4]v[1-9][0-9]*")
# Spark writes a longer text in several pieces, between which a length stands.
_ONE_PIECE = 64 * 1024


def check_state(look: Look) -> dict[int, str]:
    """Check the metadata of operators and the schemas of stores.

    Return the retained and begun batches that cannot be continued from, each with a reason.
    """
    state, retained = look.survey.state, look.survey.retained
    if not state and look.survey.stores:
        # The log names no operators: which they are is known to the query alone.
        look.damage("state", "it is missing or empty. A start creates it, but not the schemas of stateful processors")
        return dict.fromkeys(retained, "state is missing, and Spark does not start stateful processors without it")
    described: dict[int, set[int]] = {}
    for operator, number in (found.groups() for found in map(_DESCRIPTION.fullmatch, state) if found):
        described.setdefault(int(operator), set()).add(int(number))
    unstartable: dict[int, str] = {}
    schemas: dict[str, str] = {}
    for pattern, schemas_in in ((_OPERATOR, sparkfiles.schemas), (_SCHEMA, _schemas_in_schema)):
        paths = [path for path in state if pattern.fullmatch(path)]
        for path, content in look.readers.each(lambda path: look.storage.read(f"state/{path}", _MOST_BYTES), paths):
            if content is None:
                continue
            if (named := schemas_in(path, content)) is not None:
                schemas |= dict.fromkeys(named, path)
                continue
            look.damage(f"state/{path}", _OTHER, 0)
            if _WRITTEN_ANEW.fullmatch(path):
                unstartable |= dict.fromkeys(retained, _in_the_way(look, f"state/{path}"))
            elif (found := _DESCRIPTION.fullmatch(path)) is not None:
                operator, number = map(int, found.groups())
                numbers = described[operator]
                # Spark reads the newest that is not above the batch.
                for one in (*retained, *look.survey.begun):
                    if max((of for of in numbers if of <= one), default=None) == number:
                        unstartable[one] = _needed(f"state/{path}")
    for operator in sorted(look.survey.with_families - described.keys()):
        look.damage(f"state/{operator}/_metadata/v2", "it is missing: there are schemas of the operator")
        unstartable |= dict.fromkeys(retained, _needed(f"state/{operator}/_metadata/v2"))
    for path, by in sorted(schemas.items()):
        if path not in state:
            look.damage(f"state/{path}", f"it is missing: state/{by} names it")
    return unstartable


def check_sources(look: Look, offsets: dict[int, list[bytes]]) -> dict[int, str]:
    """Check the logs of sources; return the batches that cannot be continued from, each with a reason.

    `offsets` are the versions and the lines of sources in the offsets of batches.
    """
    by_source: dict[str, dict[int, str]] = {}
    for stored in look.storage.objects("sources", recursive=True):
        _, directory, *last = stored.name.split("/")
        number = names.number("/".join(last).removesuffix(_COMPACT))
        if _SOURCE.fullmatch(directory) and number is not None:
            entries = by_source.setdefault(directory, {})
            # Spark prefers a compacted entry.
            entries[number] = max(entries.get(number, ""), stored.name)
    named = {batch: _file_sources(lines, by_source) for batch, lines in offsets.items()}
    newest = named[max(named)] if named else {}
    obstacles: dict[int, str] = {}
    for source in sorted(by_source.keys() | newest.keys()):
        entries, is_file_source = by_source.get(source, {}), source in newest
        what = _check_source(look, source, entries, is_file_source)
        for batch, of in named.items():
            wanted = of.get(source, -1)
            if what is not None:
                obstacles.setdefault(batch, what)
            elif wanted > max(entries, default=-1):
                obstacles.setdefault(batch, _needed(f"sources/{source}/{wanted}"))
        if newest.get(source, -1) > max(entries, default=-1):
            what = f"it is missing: offsets/{max(named)} names it"
            look.damage(f"sources/{source}/{newest[source]}", what)
    return obstacles


def _file_sources(offsets: list[bytes], directories: Collection[str]) -> dict[str, int]:
    """Return the entries of file sources that a batch's offsets name, by the directory of the source.

    A directory has the number of its source, or from Spark 4.2 on the name that a query gives it. Lines of format 2
    begin with it.
    """
    version, *lines = offsets
    by_directory: Iterable[tuple[str, bytes]] = ()
    if version == b"v1":
        by_directory = zip(_directories_of(lines, directories), lines, strict=False)
    elif version == b"v2":
        parts = (line.partition(b":") for line in lines)
        by_directory = ((directory.decode(errors="replace"), offset) for directory, _, offset in parts)
    named = ((source, (sparkfiles.json_object(offset) or {}).get("logOffset")) for source, offset in by_directory)
    return {source: number for source, number in named if isinstance(number, int)}


def _directories_of(lines: list[bytes], directories: Collection[str]) -> list[str]:
    """Return the directories of the sources in lines of format 1.

    Spark writes a line for each use of a source, and one directory for all uses. If lines are equal and there are fewer
    directories, or the directories have names, it is unknown which line is of which, unless all are of one source.
    """
    have_names = not all(map(str.isdecimal, directories))
    known = len(directories) if have_names else max(map(int, directories), default=-1) + 1
    different = len({*lines})
    if have_names or (known < len(lines) and different < len(lines)):
        return ([*directories] or ["0"]) if known < 2 and different == 1 else []
    return [*map(str, range(len(lines)))]


def _check_source(look: Look, source: str, entries: dict[int, str], is_file_source: bool) -> str | None:
    """Check the entries of a source that a start reads; return why it fails."""
    first = max((number for number, name in entries.items() if name.endswith(_COMPACT)), default=0)
    read = {number: name for number, name in sorted(entries.items()) if number >= first or not is_file_source}
    obstacle = None
    if is_file_source and entries:
        for before, after in pairwise(sorted({first - 1, *read})):
            if after > before + 1:
                name = f"sources/{source}/{before + 1}" + (f" to {after - 1}" if after > before + 2 else "")
                look.damage(name, "it is missing: there are later ones, and a start reads all of them")
                obstacle = _needed(name)

    def content_of(number: int) -> bytes | Exception | None:
        try:
            return look.storage.read(read[number], _MOST_BYTES)
        except TooLarge as error:
            # Spark's log of files never forgets one.
            return error

    for number, content in look.readers.each(content_of, read):
        name = read[number]
        if isinstance(content, Exception):
            look.note(name, f"it was not read: {content}")
            continue
        batches = range(0 if name.endswith(_COMPACT) else number, number + 1)
        if content is not None and not (_is_file_source_entry(content, batches) if is_file_source else content):
            look.damage(name, _OTHER if content else "it is empty", 0)
            is_newest = is_file_source and number == max(entries)
            obstacle = _in_the_way(look, name) if is_newest else _needed(name)
    return obstacle


def _needed(name: str) -> str:
    return f"{name} is missing or damaged, and Spark does not start without it"


def _in_the_way(look: Look, name: str) -> str:
    look.in_the_way.append(look.storage.shown(name))
    return f"{name} is damaged, and Spark does not start with it: once it is deleted, a start writes it anew"


def _is_file_source_entry(content: bytes, batches: range) -> bool:
    first, *files = content.split(b"\n")
    return sparkfiles.is_version(first) and all(_is_file(file, batches) for file in files if file)


def _is_file(line: bytes, batches: range) -> bool:
    """Whether this describes a file of one of these batches, as `FileStreamSource.FileEntry` of Spark does.

    A start fails on other types, and may read no file of another batch.
    """
    described = sparkfiles.json_object(line) or {}
    path, time, batch = (described.get(key) for key in ("path", "timestamp", "batchId"))
    # `bool` is an `int` in Python.
    are_numbers = all(type(number) is int and abs(number) < 2**63 for number in (time, batch))
    return isinstance(path, str) and bool(_URI.match(path)) and are_numbers and batch in batches


def _schemas_in_schema(_path: str, content: bytes) -> tuple[str, ...] | None:
    """Return the schema files that a schema names, none; or None if this is not what Spark writes.

    It begins as a schema of Spark, and all JSON in it can be parsed: at least of a key and a value.
    """
    if not _SCHEMA_BEGINS.match(content):
        return None
    text, at, found = content.decode("utf-8", "replace"), 0, 0
    decode: Callable[[str, int], tuple[object, int]] = json.JSONDecoder().raw_decode
    try:
        while len(content) < _ONE_PIECE and (at := text.find("{", at)) >= 0:
            at = decode(text, at)[1]
            found += 1
    except (ValueError, RecursionError):
        return None
    return () if found > 1 or len(content) >= _ONE_PIECE else None
