# SPDX-License-Identifier: Apache-2.0
"""Whether storage creates exclusively: of several creators of one object one succeeds, and the others fail."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from spark_dstl.probing.storage import ProbedStorage, Refused, Unanswered

EXCLUSIVE = "exclusive"
NOT_EXCLUSIVE = "not exclusive"
UNKNOWN = "unknown"
NOT_ASKED = "not asked"


@dataclass(frozen=True)
class Race:
    """The outcome of several concurrent creates of one object.

    `won`, `refused` and `unanswered` are the numbers of the creators with each answer. `kept` is the creator whose
    object exists afterwards; None if there is none, or the read failed.
    """

    won: tuple[int, ...]
    refused: tuple[int, ...]
    unanswered: tuple[int, ...]
    kept: int | None

    @property
    def violation(self) -> str | None:
        """The outcome that storage with exclusive creates excludes; None if there is none."""
        if len(self.won) > 1:
            return f"{len(self.won)} creators of one object were answered that they had created it"
        if self.kept in self.refused:
            return "a creator was refused, and its object is there"
        if self.won and self.kept is not None and self.kept not in self.won:
            return "an object that was acknowledged has been replaced by that of another creator"
        return None

    @property
    def is_settled(self) -> bool:
        """Whether one creator won, all others were refused, and the winner's object exists."""
        return len(self.won) == 1 and not self.unanswered and self.kept == self.won[0]


@dataclass(frozen=True)
class Exclusiveness:
    """Whether storage creates exclusively: `verdict` is one of the words above, `why` the observation behind it."""

    verdict: str
    why: str
    races: int = 0
    creators: int = 0
    settled_races: int = 0
    unanswered: int = 0


def race(storage: ProbedStorage, name: str, creators: int, content: bytes) -> Race:
    """Create one object concurrently, with as many creators; each writes its number before the content."""
    contents = [f"{number}\n".encode() + content for number in range(creators)]
    together = threading.Barrier(creators)

    def create(number: int) -> bool | None:
        together.wait()
        try:
            return storage.create(name, contents[number])
        except (Refused, Unanswered):
            # A refusal for another reason does not show who won.
            return None

    with ThreadPoolExecutor(creators, thread_name_prefix="dstl-race") as pool:
        try:
            outcomes = [future.result() for future in [pool.submit(create, number) for number in range(creators)]]
        except BaseException:
            # The creators that wait at the barrier would wait forever.
            together.abort()
            raise
    there = None
    with suppress(Refused, Unanswered):
        there = storage.get(name)
    by = {outcome: tuple(n for n, had in enumerate(outcomes) if had is outcome) for outcome in (True, False, None)}
    return Race(by[True], by[False], by[None], contents.index(there) if there in contents else None)


def judged(races: Sequence[Race], creators: int, overwritten: int, unanswered: int) -> Exclusiveness:
    """Return the verdict on races, and on creates of existing objects.

    Of the latter `overwritten` succeeded, and `unanswered` had no answer.
    """
    violations = [one.violation for one in races if one.violation]
    if overwritten:
        violations.append(f"{overwritten} objects were created although they were there")
    silent = unanswered + sum(len(one.unanswered) for one in races)
    settled = sum(one.is_settled for one in races)
    verdict = UNKNOWN
    if violations:
        verdict, why = NOT_EXCLUSIVE, violations[0]
    elif silent:
        why = f"{silent} creates ended without an answer, and may have taken effect"
    elif settled < len(races):
        why = f"in {len(races) - settled} of {len(races)} races the object of the winner was not there"
    elif not races:
        why = "it was not tested with concurrent creates"
    else:
        verdict, why = EXCLUSIVE, f"in {len(races)} races of {creators} creators each one won, the others were refused"
    return Exclusiveness(verdict, why, len(races), creators, settled, silent)
