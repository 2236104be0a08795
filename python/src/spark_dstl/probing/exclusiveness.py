# SPDX-License-Identifier: Apache-2.0
"""Whether storage creates exclusively: of several creators of one object one succeeds, and the others fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from spark_dstl.probing.storage import ProbedStorage, Refused, Unanswered

EXCLUSIVE = "exclusive"
NOT_EXCLUSIVE = "not exclusive"
UNKNOWN = "unknown"
NOT_ASKED = "not asked"


@dataclass(frozen=True)
class Race:
    """What came of creating one object several times at once.

    `won`, `refused` and `unanswered` are the numbers of the creators with each answer. `kept` is the creator whose
    object is there afterwards; None if there is none, or it could not be read.
    """

    won: tuple[int, ...]
    refused: tuple[int, ...]
    unanswered: tuple[int, ...]
    kept: int | None

    @property
    def violation(self) -> str | None:
        """What happened that storage which creates exclusively does not let happen."""
        if len(self.won) > 1:
            return f"{len(self.won)} creators of one object were answered that they had created it"
        if self.kept in self.refused:
            return "a creator was refused, and its object is there"
        if self.won and self.kept is not None and self.kept not in self.won:
            return "an object that was acknowledged has been replaced by that of another creator"
        return None

    @property
    def is_settled(self) -> bool:
        """Whether one creator won, all others were refused, and the winner's object is what is there."""
        return len(self.won) == 1 and not self.unanswered and self.kept == self.won[0]


@dataclass(frozen=True)
class Exclusiveness:
    """What is known of it: `verdict` is one of the words above, `why` says what that rests on."""

    verdict: str
    why: str
    races: int = 0
    creators: int = 0
    settled_races: int = 0
    unanswered: int = 0


def race(storage: ProbedStorage, name: str, creators: int, content: bytes) -> Race:
    """Create one object as often as there are creators, all at once.

    What each writes begins with its number, so that the object tells who made it.
    """
    outcomes: list[bool | None] = [None] * creators
    contents = [f"{number}\n".encode() + content for number in range(creators)]
    together = threading.Barrier(creators)

    def create(number: int) -> None:
        together.wait()
        try:
            outcomes[number] = storage.create(name, contents[number])
        except (Refused, Unanswered):
            # Even a refusal for another reason tells nothing of who won.
            outcomes[number] = None

    with ThreadPoolExecutor(creators, thread_name_prefix="dstl-race") as pool:
        try:
            for future in [pool.submit(create, number) for number in range(creators)]:
                future.result()
        except BaseException:
            # Those that wait for the others would do so for ever.
            together.abort()
            raise
    try:
        there = storage.get(name)
    except (Refused, Unanswered):
        there = None
    told = {outcome: tuple(n for n, had in enumerate(outcomes) if had is outcome) for outcome in (True, False, None)}
    kept = next((number for number, one in enumerate(contents) if one == there), None)
    return Race(told[True], told[False], told[None], kept)


def judged(races: Sequence[Race], creators: int, overwritten: int, unanswered: int) -> Exclusiveness:
    """Judge by races, and by creates of objects that had long been there.

    Of the latter `overwritten` succeeded, and `unanswered` were not answered.
    """
    violations = [one.violation for one in races if one.violation]
    if overwritten:
        violations.append(f"{overwritten} objects were created although they were there")
    silent = unanswered + sum(len(one.unanswered) for one in races)
    settled = sum(one.is_settled for one in races)

    def found(verdict: str, why: str) -> Exclusiveness:
        return Exclusiveness(verdict, why, len(races), creators, settled, silent)

    if violations:
        return found(NOT_EXCLUSIVE, violations[0])
    if silent:
        return found(UNKNOWN, f"{silent} creates ended without an answer, and may have taken effect")
    if settled < len(races):
        return found(
            UNKNOWN, f"in {len(races) - settled} of {len(races)} races the object of the one that won was not there"
        )
    if not races:
        return found(UNKNOWN, "it was not tried with creators at once")
    return found(EXCLUSIVE, f"in {len(races)} races of {creators} creators each one won, and the others were refused")


def raced(
    storage: ProbedStorage, names: Sequence[str], creators: int, content: bytes, done: Callable[[int], None]
) -> list[Race]:
    """Run a race for each name; `done` receives how many are over."""
    races = []
    for number, name in enumerate(names, start=1):
        races.append(race(storage, name, creators, content))
        done(number)
    return races
