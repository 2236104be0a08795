# SPDX-License-Identifier: Apache-2.0
"""Whether each retained state version can be rebuilt: from a snapshot, and an unbroken chain of changelogs after it."""

from collections.abc import Iterable
from dataclasses import dataclass

from spark_dstl.checkpoint.format.names import CHANGELOG, CHECKSUM, Store
from spark_dstl.checkpoint.sparkfiles import MAX_PARTITIONS, OURS, STOCKS, Operator
from spark_dstl.checkpoint.survey import NamedPart, StoreFacts, Survey
from spark_dstl.checkpoint.verification.findings import Look, key_of

# Batches before and after all existing ones: of plain snapshots, and of missing ones.
_ALWAYS = -1
_NEVER = 1 << 62
# The changelogs have the numbers of column families, and a snapshot their names.
_NO_SNAPSHOT = "there is no snapshot, without which Spark does not load a store with column families"
# Changelogs in the log that cannot be used, by store and version, with the reason.
Bad = dict[tuple[Store, int], str]


@dataclass(frozen=True)
class Rebuilt:
    """One store: the versions that cannot be rebuilt, with reasons, and the lowest version that is needed.

    `held_above` are those that can be rebuilt now, but not after the entries above theirs are deleted. `bases` are the
    versions of the snapshots that versions are rebuilt from, 0 for none. `deleted_below` is the version of the lowest
    snapshot if the store has no plain file of a lower one, as after a deletion; else 0.
    """

    lost: dict[int, str]
    held_above: dict[int, str]
    lowest_needed: int
    bases: dict[int, int]
    deleted_below: int


@dataclass(frozen=True)
class Plan:
    """The recovery plan of a batch: what rebuilds all stores."""

    survey: Survey
    batch: int
    bases: dict[Store, int]
    """The version of the snapshot of each store; 0 for none."""

    @property
    def entries(self) -> set[int]:
        """The batches whose entries have the changelogs or the snapshot of a store."""
        found: set[int] = set()
        for store, base in self.bases.items():
            facts = self.survey.stores.get(store, StoreFacts())
            found.update(version - 1 for version in facts.logged if base < version <= self.batch + 1)
            found.update(held.batch for (version, _), held in facts.held.items() if version == base)
        return {batch for batch in found if batch in self.survey.entries}

    @property
    def files(self) -> list[str]:
        """The plain changelogs, by their paths below `state/`."""
        return [
            stored.name.removeprefix("state/")
            for store, base in self.bases.items()
            for (version, _), stored in self.survey.stores.get(store, StoreFacts()).plain.items()
            if base < version <= self.batch + 1
        ]

    def replays(self, named: NamedPart) -> bool:
        """Whether a part in a data file is one of a changelog."""
        of = named.segment
        return of.kind in (CHANGELOG, CHECKSUM) and self.bases.get(of.store, 0) < of.version <= self.batch + 1


def plan(survey: Survey, batch: int, rebuilt: dict[Store, Rebuilt]) -> Plan:
    """Return the recovery plan of a batch."""
    version = batch + 1
    bases = {store: one.bases[version] for store, one in rebuilt.items() if version in one.bases}
    return Plan(survey, batch, bases)


def bad_changelogs(look: Look) -> Bad:
    """Return the changelogs in the log that cannot be used: Spark reads the checksums of one before it."""
    return {(key[1], key[2]): why for key, why in look.unusable.items() if key[3] in (CHANGELOG, CHECKSUM)}


def broken_links(survey: Survey) -> dict[int, str]:
    """Return entries that were built on another one than the one before them, with the reason."""
    broken = {}
    for batch, entry in survey.entries.items():
        before = survey.entries.get(batch - 1)
        if before is None or before.index is None or entry.index is None or entry.index.previous is None:
            continue
        if entry.index.previous != before.index.entry:
            broken[batch] = (
                f"it was built on another entry of batch {batch - 1} than the existing one; one of the two was "
                "restored, or written late by a fenced driver"
            )
    return broken


def expected_stores(survey: Survey, operators: Iterable[Operator]) -> list[Store]:
    """Return all stores that must exist: those with objects, and those in Spark's metadata.

    Of a provider whose files may have other names, only the other partitions of stores with objects are expected.
    """
    is_known = survey.provider in (OURS, STOCKS)
    expected = set(survey.stores)
    seen = {(store.operator, store.name) for store in expected}
    for operator in operators:
        for name, partitions in operator.stores.items():
            if (is_known or (operator.id, name) in seen) and partitions <= MAX_PARTITIONS:
                expected.update(Store(operator.id, partition, name) for partition in range(partitions))
    return sorted(expected)


def rebuild(store: Store, look: Look, bad: Bad, partitions: dict[int, int]) -> Rebuilt:
    """Follow the versions of one store in ascending order.

    `partitions` are the numbers by batch: a batch without this store's partition needs no version of it.
    """
    survey = look.survey
    facts = survey.stores.get(store, StoreFacts())
    snapshots = _snapshots(store, facts, look)
    committed = {batch + 1 for batch in survey.entries}
    plain = {version for version, unique in facts.plain if _counts(store, version, unique, survey)}
    versions = committed | facts.logged.keys() | {version for version, _ in facts.plain} | snapshots.keys()
    upto = max(committed, default=0)
    lost: dict[int, str] = {}
    held_above: dict[int, str] = {}
    bases: dict[int, int] = {}
    reason: str | None = _NO_SNAPSHOT if store.operator in survey.with_families else None
    base, last = 0, 0
    # Of the snapshots from which changelogs alone rebuild the version: the first batch whose entry has one.
    first_held = _ALWAYS
    others = {batch + 1 for batch, number in partitions.items() if store.partition >= number}
    for version in sorted(one for one in versions if 0 < one <= upto):
        if version != last + 1:
            why: str | None = f"version {version - 1} is missing, and so is a snapshot of version {version}"
        else:
            why = _no_changelog(store, version, facts, plain, look, bad)
            why = f"version {version}: {why}" if why else None
        if reason is not None or why is not None:
            first_held = _NEVER
        if version in snapshots:
            reason, base = None, version
            first_held = min(first_held, snapshots[version])
        elif reason is None:
            reason = why
        last = version
        if version in others:
            continue
        if reason is not None:
            lost[version] = reason
        elif first_held >= version:
            held_above[version] = f"commits/{first_held} holds the snapshot that it is rebuilt from"
        bases[version] = base
    retained = [batch + 1 for batch in survey.retained]
    # Retention deletes changelogs in the log later than Spark's maintenance the plain files above them.
    zips = [key for key in facts.zips if (store, *key) not in look.unusable_zips]
    first = min((version for version, _ in (*facts.held, *facts.plain, *zips)), default=0)
    deleted_below = first if first in snapshots and first <= upto else 0
    needed = [version for version in retained if version not in others] if retained else sorted(bases)
    # No retained batch has the partition of a store that was left by a repartition.
    default = _NEVER if retained and not needed else 0
    # What was deleted needs nothing any more.
    left = [version for version in needed if version >= deleted_below or version not in lost]
    lowest = min((bases.get(version, 0) for version in left[:1]), default=default)
    return Rebuilt(lost, held_above, lowest, bases, deleted_below)


def _snapshots(store: Store, facts: StoreFacts, look: Look) -> dict[int, int]:
    """Return the versions with a good snapshot, with the first batch whose entry has it."""
    good: dict[int, int] = {}
    for (version, _), held in facts.held.items():
        if look.loads(key_of(held.batch, held.zip)):
            good[version] = min(held.batch, good.get(version, _NEVER))
    for version, unique in facts.zips:
        if (store, version, unique) not in look.unusable_zips and _counts(store, version, unique, look.survey):
            good[version] = _ALWAYS
    return good


def _counts(store: Store, version: int, unique: str | None, survey: Survey) -> bool:
    """Whether the commit entry names a plain file with that id, or names no ids."""
    entry = survey.entries.get(version - 1)
    ids = entry.ids.get((store.operator, store.partition)) if entry else None
    return ids is None or unique in ids


def _no_changelog(store: Store, version: int, facts: StoreFacts, plain: set[int], look: Look, bad: Bad) -> str | None:
    """Return why the changelog of a version cannot be used; None if it can."""
    batch = version - 1
    entry = look.survey.entries.get(batch)
    if entry is not None and entry.error is not None:
        return f"commits/{batch} cannot be read"
    if entry is not None and entry.changelogs:
        if batch in look.links:
            return f"commits/{batch} was built on another entry"
        if version not in facts.logged:
            return f"commits/{batch} has changelogs of other stores, and none of this one"
        return bad.get((store, version))
    if version in plain:
        return None
    return f"commits/{batch} {'is missing' if entry is None else 'has no log'}, and there is no plain changelog"
