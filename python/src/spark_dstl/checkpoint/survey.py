# SPDX-License-Identifier: Apache-2.0
"""One survey of a checkpoint: all its commit entries, and the objects besides them.

A query may run. So entries are listed first, and everything that they name afterwards; an entry that the query deletes
before it is read is left out.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from math import inf

from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.format import names
from spark_dstl.checkpoint.format.model import Index, Part, Segment
from spark_dstl.checkpoint.format.names import CHANGELOG, SNAPSHOT, SNAPSHOT_FILE, Store
from spark_dstl.checkpoint.reading import LoadedEntry, read_entry
from spark_dstl.checkpoint.storage import Readers, Storage, StoredObject, caught
from spark_dstl.errors import CheckpointNotFound, DamagedLog, UnsupportedLog


@dataclass(frozen=True)
class EntryFacts:
    """A commit entry; its index, if it has one, without segments. With an `error`, all other facts are unknown.

    `strange` are contradictions in it, `ids` the state store checkpoint ids of Spark's second line. `inline` are the
    bytes of segments in the entry itself, by kind.
    """

    stored: StoredObject
    error: Exception | None = None
    index: Index | None = None
    ids: dict[tuple[int, int], frozenset[str]] = field(default_factory=dict)
    changelogs: int = 0
    inline: dict[int, int] = field(default_factory=dict)
    is_spark: bool = True
    is_repartition: bool = False
    strange: tuple[str, ...] = ()


@dataclass(frozen=True)
class HeldZip:
    """A snapshot in an entry: its zip, and the files of the store in the same entry."""

    batch: int
    zip: Segment
    files: dict[str, Segment]

    @property
    def length(self) -> int:
        """The bytes of all files."""
        return self.zip.length + sum(file.length for file in self.files.values())


@dataclass
class StoreFacts:
    """One store: its changelogs by version, in the log and as plain files, and its snapshots.

    `abandoned` are plain snapshots of an interrupted repartition: above the version up to which the log allows them,
    and not above that of the newest batch. A snapshot without which the store cannot be rebuilt is none of them,
    whatever the log allows. `ahead` are those above: a repartition may be writing them.
    """

    logged: dict[int, int] = field(default_factory=dict)
    held: dict[tuple[int, str | None], HeldZip] = field(default_factory=dict)
    plain: dict[tuple[int, str | None], StoredObject] = field(default_factory=dict)
    zips: dict[tuple[int, str | None], StoredObject] = field(default_factory=dict)
    abandoned: dict[tuple[int, str | None], StoredObject] = field(default_factory=dict)
    ahead: dict[tuple[int, str | None], StoredObject] = field(default_factory=dict)

    @property
    def has_other_base(self) -> bool:
        """Whether the newest version can be rebuilt from something else than what counts as abandoned."""
        versions = self.logged.keys() | {version for version, _ in self.plain}
        lowest = max(versions, default=0)
        # An entry that fences a run can stay alone, below a gap.
        while lowest in versions:
            lowest -= 1
        return bool(self.held) or any(lowest <= base for base in (0, *(version for version, _ in self.zips)))


@dataclass(frozen=True)
class NamedPart:
    """A part in a data file, named by an entry."""

    batch: int
    segment: Segment
    part: Part


@dataclass
class Survey:
    """The objects of a checkpoint at one time.

    `committed_since` is the newest committed batch after the listing of `offsets`. `fences` are batches whose entries
    outlive retention to fence a stopped driver; `fenced` are batches that such a driver has begun since: those of
    fences, and those whose fences were deleted after the driver had ended.
    """

    entries: dict[int, EntryFacts] = field(default_factory=dict)
    stores: dict[Store, StoreFacts] = field(default_factory=dict)
    parts: dict[str, list[NamedPart]] = field(default_factory=dict)
    offsets: dict[int, StoredObject] = field(default_factory=dict)
    fences: set[int] = field(default_factory=set)
    fenced: set[int] = field(default_factory=set)
    committed_since: int | None = None
    state: dict[str, StoredObject] = field(default_factory=dict)
    base: str | None = None
    partitions: int | None = None
    """The number of partitions of the newest batch; None if it is not noted."""
    provider: str | None = None
    """The class of the state store provider that the newest batch names."""

    @property
    def is_ours(self) -> bool:
        """Whether the provider is this project's."""
        return self.provider == sparkfiles.OURS

    @property
    def newest(self) -> int | None:
        """The newest batch with an entry."""
        return max(self.entries, default=None)

    @property
    def retained(self) -> list[int]:
        """Batches whose state Spark retains: those in `commits/` and in `offsets/`, in ascending order."""
        return sorted(self.entries.keys() & self.offsets.keys())

    @property
    def begun(self) -> list[int]:
        """Batches that were begun after the newest committed one, in ascending order: a start runs the last one."""
        return [batch for batch in self.offsets if self.newest is None or batch > self.newest]

    @cached_property
    def with_families(self) -> set[int]:
        """The operators whose stores have column families: Spark keeps a schema file of each."""
        operators = (names.number(path.split("/")[0]) for path in self.state if "/_stateSchema/" in path)
        return {operator for operator in operators if operator is not None}

    def of(self, store: Store) -> StoreFacts:
        """Return the facts of a store."""
        return self.stores.setdefault(store, StoreFacts())


def entries_of(storage: Storage) -> dict[int, StoredObject]:
    """Return the commit entries by batch, in ascending order."""
    return numbered(storage.objects("commits"))


def newest_of(there: dict[int, StoredObject], storage: Storage) -> int:
    """Return the newest batch of these commit entries. Raises `CheckpointNotFound` if there is none."""
    if not there:
        raise CheckpointNotFound(f"{storage.place.shown} has no commit entry yet: start the query first")
    return max(there)


def no_entry(storage: Storage, batch: int) -> CheckpointNotFound:
    """Return the error for a batch without a commit entry; it names the existing ones."""
    there = list(entries_of(storage))
    known = f"it has those of batches {there[0]} to {there[-1]}" if there else "no batch is committed yet"
    return CheckpointNotFound(f"{storage.place.shown} has no commit entry of batch {batch}; {known}")


def numbered(stored: list[StoredObject]) -> dict[int, StoredObject]:
    """Return the objects whose names are numbers, by number, in ascending order."""
    found = ((names.number(one.last_name), one) for one in stored)
    return dict(sorted((number, one) for number, one in found if number is not None))


def newest_partitions(storage: Storage) -> int | None:
    """Return the number of partitions of the newest committed batch; None if it is not noted."""
    both = entries_of(storage).keys() & numbered(storage.objects("offsets")).keys()
    return sparkfiles.partitions_in(sparkfiles.offsets(storage, max(both, default=-1)))


def look(storage: Storage, readers: Readers) -> Survey:
    """Read all commit entries, then list `offsets/` and `state/`. Damage is noted, not raised."""
    survey = Survey()
    there = entries_of(storage)
    read = caught(partial(read_entry, storage), DamagedLog, UnsupportedLog)
    for batch, found in readers.each(read, there, "Reading commit entries"):
        if isinstance(found, LoadedEntry):
            _note(survey, found, there[batch])
        elif found is not None:
            survey.entries[batch] = EntryFacts(there[batch], error=found)
    survey.base = next((entry.index.base for entry in reversed(survey.entries.values()) if entry.index), None)
    survey.offsets = numbered(storage.objects("offsets"))
    _note_fences(survey, storage, readers)
    pinned = sparkfiles.offsets(storage, max(survey.retained, default=-1))
    survey.partitions = sparkfiles.partitions_in(pinned)
    survey.provider = sparkfiles.settings_in(pinned).get(sparkfiles.PROVIDER)
    survey.committed_since = max(entries_of(storage), default=None)
    plain_upto = _plain_upto(survey)
    for stored in storage.objects("state", recursive=True):
        path = stored.name.removeprefix("state/")
        survey.state[path] = stored
        if plain := names.plain_file(path):
            facts = survey.of(plain.store)
            if plain.kind == CHANGELOG:
                facts.plain[plain.version, plain.id] = stored
            elif plain.version <= plain_upto:
                facts.zips[plain.version, plain.id] = stored
            elif survey.newest is not None and plain.version <= survey.newest + 1:
                facts.abandoned[plain.version, plain.id] = stored
            else:
                facts.ahead[plain.version, plain.id] = stored
    for facts in survey.stores.values():
        if not facts.has_other_base:
            facts.zips.update(facts.abandoned)
            facts.abandoned.clear()
    return survey


def _plain_upto(survey: Survey) -> float:
    """Return the last version that may have a plain snapshot: a later one is of an interrupted repartition."""
    newest = survey.entries.get(-1 if survey.newest is None else survey.newest)
    listed = newest.index.snapshots if newest and newest.changelogs and newest.index else None
    return listed.plain_up_to if listed and survey.is_ours else inf


def _note(survey: Survey, entry: LoadedEntry, stored: StoredObject) -> None:
    changelogs = 0
    inline: Counter[int] = Counter()
    ids = {
        (operator, partition): frozenset(stores)
        for operator, partitions in sparkfiles.state_ids(entry.metadata).items()
        for partition, stores in enumerate(partitions)
        if stores is not None
    }
    strange: list[str] = []
    files: dict[Store, dict[str, Segment]] = {}
    zips: list[Segment] = []
    for segment in entry.segments:
        if segment.kind == CHANGELOG:
            changelogs += 1
            survey.of(segment.store).logged[segment.version] = segment.length
            counting = ids.get((segment.store.operator, segment.store.partition))
            if segment.version != entry.batch + 1:
                strange.append(f"it has the changelog {segment.name}, which is of another batch")
            elif counting is not None and segment.qualifier not in counting:
                strange.append(f"it has the changelog {segment.name}, and Spark's second line names others")
        elif segment.kind == SNAPSHOT:
            zips.append(segment)
        elif segment.kind == SNAPSHOT_FILE:
            files.setdefault(segment.store, {})[f"{segment.qualifier}.sst"] = segment
        for part in segment.parts:
            if part.file is None:
                inline[segment.kind] += part.length
            else:
                survey.parts.setdefault(part.file, []).append(NamedPart(entry.batch, segment, part))
    for packed in zips:
        held = HeldZip(entry.batch, packed, files.get(packed.store, {}))
        survey.of(packed.store).held[packed.version, packed.qualifier] = held
    survey.entries[entry.batch] = EntryFacts(
        stored,
        index=replace(entry.index, files=(), segments=()) if entry.index else None,
        ids=ids,
        changelogs=changelogs,
        inline=inline,
        is_spark=entry.metadata is not None,
        is_repartition=entry.is_repartition,
        strange=tuple(strange),
    )


def _note_fences(survey: Survey, storage: Storage, readers: Readers) -> None:
    begun = {*_before_gaps(survey.offsets)}
    above = begun | {*_before_gaps(survey.entries)}
    if not above:
        return
    claims = readers.each(partial(sparkfiles.claim, storage), numbered(storage.objects("dstl/epochs")))
    survey.fences = above & {claim.first for _, claim in claims if claim is not None and claim.first is not None}
    fences = survey.fences & survey.entries.keys()
    oldest = min(survey.entries.keys() - fences, default=0)
    # Spark deletes their offsets after the next start.
    survey.fenced = {batch for batch in begun if batch in fences or batch < oldest}
    for batch in survey.fenced:
        del survey.offsets[batch]


def _before_gaps(batches: Iterable[int]) -> list[int]:
    return [before for before, after in pairwise(sorted(batches)) if after > before + 1]
