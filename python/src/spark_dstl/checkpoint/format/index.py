# SPDX-License-Identifier: Apache-2.0
"""The unpacked index of a log: its sections and their rules."""

from spark_dstl.checkpoint.format import model, names
from spark_dstl.checkpoint.format.fields import Fields, Malformed, wrapped
from spark_dstl.checkpoint.format.names import Store

WRITER, PLACE, NAME, BASE, FILES, STORES, SEGMENTS, SNAPSHOTS, SPARK = 2, 4, 6, 7, 8, 10, 12, 14, 15
_ALWAYS = {WRITER, FILES, STORES, SEGMENTS}
_NEEDED = {True: _ALWAYS | {PLACE}, False: _ALWAYS | {NAME}}
_ALLOWED = {True: _NEEDED[True] | {BASE, SNAPSHOTS, SPARK}, False: _NEEDED[False]}
_KNOWN = _ALLOWED[True] | _ALLOWED[False]
_LARGEST = 2**63 - 1

StoreNames = list[tuple[int, str]]


class NotUnderstood(Exception):
    """The index has a mandatory section that this release does not know. `software` wrote it, if known."""

    def __init__(self, feature: str, software: str | None) -> None:
        super().__init__(feature)
        self.software = software


def read_index(body: bytes, kind: int, index_offset: int) -> model.Index:
    """Read an unpacked index of a log whose segments end at `index_offset`.

    Raises `Malformed` if it breaks a rule, and `NotUnderstood` if it needs a later release.
    """
    is_entry = kind == model.ENTRY
    sections = _sections(body)
    found = sections.keys()
    if not _NEEDED[is_entry] <= found or not found <= _ALLOWED[is_entry]:
        raise Malformed(f"it has the sections {', '.join(map(str, sorted(found)))}")
    writer = _writer(sections[WRITER])
    name = None if is_entry else _data_file(sections[NAME])
    batch = entry = previous = None
    if is_entry:
        place = sections[PLACE]
        batch, entry = place.number(), place.uuid()
        previous = place.uuid() if place.number(2) else None
    base = sections[BASE].text() if BASE in found else None
    files = [_data_file(sections[FILES]) for _ in sections[FILES].count(1)]
    stores = [(sections[STORES].number(), _store_name(sections[STORES])) for _ in sections[STORES].count(2)]
    segments = _segments(sections[SEGMENTS], files, stores, index_offset, is_entry)
    snapshots = None
    if SNAPSHOTS in found and batch is not None:
        snapshots = _snapshots(sections[SNAPSHOTS], batch, files, stores)
    spark = None
    if SPARK in found:
        before_log, is_known = sections[SPARK].u32(), sections[SPARK].number(2)
        spark = model.SparkChecksums(before_log, sections[SPARK].u32() if is_known else None)
    for tag, section in sections.items():
        if section.left:
            raise Malformed(f"{section.left} bytes are left over in section {tag}")
    return model.Index(writer, batch, entry, previous, name, base, tuple(files), segments, snapshots, spark)


def _sections(body: bytes) -> dict[int, Fields]:
    fields = Fields(body)
    sections: dict[int, Fields] = {}
    last = -1
    while fields.left:
        tag = fields.number()
        if tag <= last:
            raise Malformed(f"section {tag} follows section {last}")
        last = tag
        sections[tag] = Fields(fields.take(fields.integer()))
    unknown = [tag for tag in sections if tag % 2 == 0 and tag not in _KNOWN]
    if unknown:
        raise NotUnderstood(f"section {unknown[0]} of its index", _software(sections))
    return {tag: section for tag, section in sections.items() if tag in _KNOWN}


def _software(sections: dict[int, Fields]) -> str | None:
    try:
        return sections[WRITER].text()
    except (KeyError, Malformed):
        return None


def _writer(fields: Fields) -> model.Writer:
    software, run, epoch = fields.text(), fields.uuid(), fields.number()
    return model.Writer(software, run, epoch, fields.text(), fields.text())


def _data_file(fields: Fields) -> str:
    name = fields.text()
    if not names.is_data_file(name):
        raise Malformed(f"{name!r} is not the name of a data file")
    return name


def _store_name(fields: Fields) -> str:
    name = fields.text()
    if not names.is_store_name(name):
        raise Malformed(f"{name!r} is not a store's name")
    return name


def _qualifier(fields: Fields) -> str | None:
    kind = fields.byte()
    if kind == 0:
        return None
    if kind == 1:
        return fields.uuid()
    if kind != 2:
        raise Malformed(f"an id of kind {kind}")
    qualifier = fields.text()
    if not names.is_qualifier(qualifier):
        raise Malformed(f"{qualifier!r} is not a checkpoint id")
    return qualifier


def _segments(
    fields: Fields, files: list[str], stores: StoreNames, index_offset: int, is_entry: bool
) -> tuple[model.Segment, ...]:
    ends = [model.HEADER_LENGTH] * (len(files) + 1)
    partition = version = attempt = 0
    segments: list[model.Segment] = []
    seen: set[tuple[Store, int, int, str | None]] = set()
    for _ in fields.count(7):
        operator, name = stores[fields.number(len(stores))]
        partition = wrapped(partition + fields.signed())
        version = wrapped(version + fields.signed())
        attempt = wrapped(attempt + fields.signed())
        kind = fields.byte()
        qualifier = _qualifier(fields)
        if not 0 <= partition < 2**31 or version < 0:
            raise Malformed(f"partition {partition}, version {version}")
        if kind not in names.SUFFIXES:
            raise Malformed(f"a segment of kind {kind}")
        if kind == names.SNAPSHOT_FILE and qualifier is None:
            raise Malformed("a file of a snapshot without a name")
        store = Store(operator, partition, name)
        parts = _parts(fields, files, ends, index_offset, is_entry)
        segment = model.Segment(store, version, attempt, kind, qualifier, parts)
        key = (store, version, kind, qualifier)
        if is_entry and key in seen:
            raise Malformed(f"{segment.name} is named twice")
        seen.add(key)
        segments.append(segment)
    return tuple(segments)


def _parts(
    fields: Fields, files: list[str], ends: list[int], index_offset: int, is_entry: bool
) -> tuple[model.Part, ...]:
    parts = []
    for _ in fields.count(7):
        file = fields.number(len(files) + 1)
        offset = wrapped(ends[file] + fields.signed())
        length = fields.integer()
        crc = fields.u32()
        if file and not is_entry:
            raise Malformed("it is that of a data file and names others")
        limit = _LARGEST if file else index_offset
        if not model.HEADER_LENGTH <= offset <= limit - length:
            raise Malformed(f"{length} bytes at {offset} are outside the file's segments")
        ends[file] = offset + length
        parts.append(model.Part(files[file - 1] if file else None, offset, length, crc))
    return tuple(parts)


def _snapshots(fields: Fields, batch: int, files: list[str], stores: StoreNames) -> model.SnapshotList:
    complete, plain_up_to = batch - fields.number(), fields.number()
    if complete < 0 or plain_up_to > batch + 1:
        raise Malformed(f"a list of snapshots since batch {complete}, with plain files up to version {plain_up_to}")
    held: list[model.HeldSnapshot] = []
    seen: set[tuple[Store, int, str | None]] = set()
    for _ in fields.count(6):
        operator, name = stores[fields.number(len(stores))]
        store = Store(operator, fields.integer(), name)
        version, unique = fields.number(), _qualifier(fields)
        by = batch - fields.number()
        if by < max(version - 1, 0) or (complete != batch and by <= complete):
            raise Malformed(f"a snapshot of version {version} in batch {by}")
        if (store, version, unique) in seen:
            raise Malformed(f"the snapshot of version {version} of {store.directory} is listed twice")
        seen.add((store, version, unique))
        named = tuple(files[fields.number(len(files))] for _ in fields.count(1))
        held.append(model.HeldSnapshot(store, version, unique, by, named))
    return model.SnapshotList(complete, plain_up_to, tuple(held))
