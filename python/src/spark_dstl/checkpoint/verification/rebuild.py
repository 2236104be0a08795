# SPDX-License-Identifier: Apache-2.0
"""Whether each retained state version can be rebuilt: from a snapshot, and an unbroken chain of changelogs after it."""

from collections.abc import Iterable
from dataclasses import dataclass

from spark_dstl.checkpoint.format.names import CHANGELOG, Store
from spark_dstl.checkpoint.sparkfiles import Operator
from spark_dstl.checkpoint.survey import EntryFacts, StoreFacts, Survey
from spark_dstl.checkpoint.verification.findings import Found, key_of

# Batches before and after all that there are: of what no entry holds, and of what nothing holds.
_ALWAYS = -1
_NEVER = 1 << 62


@dataclass(frozen=True)
class Rebuilt:
    """One store: which versions cannot be rebuilt and why, and the lowest version of which anything is needed.

    `held_above` are those that can be rebuilt now, and could not once the entries above theirs were deleted.
    """

    lost: dict[int, str]
    held_above: dict[int, str]
    lowest_needed: int


# Changelogs in the log that cannot be used, by store and version, with the reason.
Bad = dict[tuple[Store, int], str]


def bad_changelogs(found: Found) -> Bad:
    """Return the changelogs in the log that cannot be used."""
    return {(key[1], key[2]): why for key, why in found.unusable.items() if key[3] == CHANGELOG}


def broken_links(survey: Survey) -> dict[int, str]:
    """Return entries that were built on another one than the one before them, with the reason."""
    broken = {}
    for batch, entry in survey.entries.items():
        before = survey.entries.get(batch - 1)
        if before is None or entry.error or before.error:
            continue
        if entry.previous is not None and before.entry is not None and entry.previous != before.entry:
            broken[batch] = (
                f"it was built on another entry of batch {batch - 1} than the existing one; one of the two was "
                "restored, or written late by a fenced driver"
            )
    return broken


def expected_stores(survey: Survey, operators: Iterable[Operator]) -> list[Store]:
    """Return all stores that there must be: those that are seen, and all partitions of these that Spark noted."""
    expected = {
        store for store, facts in survey.stores.items() if facts.logged or facts.held or facts.plain or facts.zips
    }
    seen = {(store.operator, store.name) for store in expected}
    for operator in operators:
        for name, partitions in operator.stores.items():
            # The number comes from a file: one that is out of proportion is not Spark's.
            if (operator.id, name) in seen and partitions <= 100_000:
                expected.update(Store(operator.id, partition, name) for partition in range(partitions))
    return sorted(expected)


def rebuild(store: Store, survey: Survey, found: Found, bad: Bad, links: dict[int, str]) -> Rebuilt:
    """Follow one store's versions upwards."""
    facts = survey.stores.get(store, StoreFacts())
    snapshots = _snapshots(store, facts, survey, found)
    plain: dict[int, set[str | None]] = {}
    for version, unique in facts.plain:
        plain.setdefault(version, set()).add(unique)
    versions = {batch + 1 for batch in survey.entries} | facts.logged.keys() | plain.keys() | snapshots.keys()
    upto = max((batch + 1 for batch in survey.entries), default=0)
    lost: dict[int, str] = {}
    held_above: dict[int, str] = {}
    bases: dict[int, int] = {}
    reason: str | None = None
    base, last = 0, 0
    # Of the snapshots from which the version is rebuilt by changelogs alone: the first batch whose entry holds one.
    first_held = _ALWAYS
    for version in sorted(one for one in versions if 0 < one <= upto):
        if version != last + 1:
            why: str | None = f"nothing of version {version - 1} is there, and no snapshot of version {version}"
        else:
            why = _no_changelog(store, version, facts, plain.get(version, set()), survey, bad, links)
            why = f"version {version}: {why}" if why else None
        if reason is not None or why is not None:
            first_held = _NEVER
        if version in snapshots:
            reason, base = None, version
            first_held = min(first_held, snapshots[version])
        elif reason is None:
            reason = why
        if reason is not None:
            lost[version] = reason
        elif first_held >= version:
            held_above[version] = f"commits/{first_held} holds the snapshot that it is rebuilt from"
        bases[version] = base
        last = version
    retained = [batch + 1 for batch in survey.retained] or sorted(bases)
    return Rebuilt(lost, held_above, min((bases.get(version, 0) for version in retained[:1]), default=0))


def _snapshots(store: Store, facts: StoreFacts, survey: Survey, found: Found) -> dict[int, int]:
    """Return the versions of which there is a good snapshot, with the first batch whose entry holds it."""
    good: dict[int, int] = {}
    for (version, _), held in facts.held.items():
        if key_of(held.batch, held.zip) not in found.unusable:
            good[version] = min(held.batch, good.get(version, _NEVER))
    for version, unique in facts.zips:
        if (store, version, unique) not in found.unusable_zips and counts(store, version, unique, survey):
            good[version] = _ALWAYS
    return good


def counts(store: Store, version: int, unique: str | None, survey: Survey) -> bool:
    """Whether a plain file with that id is one that a commit entry names, as far as there is one that says."""
    entry = survey.entries.get(version - 1)
    ids = entry.ids.get((store.operator, store.partition)) if entry else None
    return ids is None or unique in ids


def _no_changelog(
    store: Store,
    version: int,
    facts: StoreFacts,
    plain: set[str | None],
    survey: Survey,
    bad: Bad,
    links: dict[int, str],
) -> str | None:
    """Return why the changelog of a version cannot be used; None if it can."""
    batch = version - 1
    entry: EntryFacts | None = survey.entries.get(batch)
    if entry is not None and entry.error is not None:
        return f"commits/{batch} cannot be read"
    if entry is not None and entry.changelogs:
        if batch in links:
            return f"commits/{batch} was built on another entry"
        if version not in facts.logged:
            return f"commits/{batch} has changelogs of other stores, and none of this one"
        return bad.get((store, version))
    if any(counts(store, version, unique, survey) for unique in plain):
        return None
    if entry is None:
        return f"commits/{batch} is missing, and there is no plain changelog"
    return f"commits/{batch} has no log, and there is no plain changelog"
