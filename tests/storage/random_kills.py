"""Drivers and executors killed at moments that nobody has thought of.

A seeded generator draws the moments and the victims. A moment is a number of changes that storage has seen, not a time;
which of the query's steps that is, the machine has a say in, so that a seed tries much the same again, not the same.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from cases import first_error, let_batches_be_uneven
from driver_process import Driver
from harness import Run
from storages import Watched

SEEDS = "SPARK_DSTL_TEST_SEEDS"
# Of ten kills so many hit the driver.
DRIVERS_OF_TEN = 4
# Moments are at most so many small batches apart.
BATCHES_APART = 2
# Executors that die do not end a batch by their number alone.
PATIENT = {"spark.task.maxFailures": "100", "spark.deploy.maxExecutorRetries": "-1"}
# The changes of a batch are lost with the executor that alone had them: the query ends, and can be started again.
LOST_CHANGES = r"\[DSTL_LOST_CHANGES\]"


def seeds() -> list[int]:
    """Those that the environment names, separated by commas."""
    return [int(seed) for seed in os.environ.get(SEEDS, "1").split(",")]


@dataclass
class Kills:
    """Some kills, `left` of which are still to come; `done` says what there was so far."""

    seed: int
    watched: Watched
    left: int
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def attend(self, driver: Driver) -> None:
        """Kill executors of this driver at some moments, until the driver is killed or has ended by itself."""
        while self.left:
            moment = self.watched.changes() + self._chance.randrange(1, BATCHES_APART * self.watched.a_batch)
            kills_driver = self._chance.randrange(10) < DRIVERS_OF_TEN
            self._wait_for(driver, moment)
            executors = sorted(driver.executors())
            if driver.has_ended():
                return
            if not executors:
                continue
            self.left -= 1
            if kills_driver:
                driver.kill()
                self._note(moment, "driver")
                return
            victim = self._chance.choice(executors)
            driver.kill_executor(victim)
            self._note(moment, f"executor {executors.index(victim) + 1} of {len(executors)}")

    def __str__(self) -> str:
        """What one needs to know of a run that went wrong."""
        return f"seed {self.seed} ({SEEDS}={self.seed} tries it again): {'; '.join(self.done)}"

    def _wait_for(self, driver: Driver, moment: int) -> None:
        def has_come() -> bool:
            return driver.has_ended() or (self.watched.changes() >= moment and bool(driver.executors()))

        driver.wait_until(has_come, f"{moment} changes; {self}")

    def _note(self, moment: int, victim: str) -> None:
        self.done.append(f"{victim} after {moment} changes")


def kill_at_random(run: Run, kills: Kills, check: Callable[[Run], None]) -> None:
    """Kill drivers and executors, each driver followed by another one, and let the query come to its end.

    A driver may end by itself only with the error that names the changes that were lost with an executor of its own.
    """
    run.confs.update({**PATIENT, **kills.watched.confs})
    while True:
        with run.start() as driver:
            before = len(kills.done)
            kills.attend(driver)
            was_killed = any(kill.startswith("driver") for kill in kills.done[before:])
            if not was_killed:
                if driver.wait() == 0:
                    break
                kills.done.append(f"end by {first_error(driver)[:200]}")
                hit = [kill for kill in kills.done[before:] if kill.startswith("executor")]
                expected = hit and re.search(LOST_CHANGES, driver.log())
                assert expected, driver.failed(f"it ended for no reason that there was; {kills}")
    let_batches_be_uneven(run)
    try:
        check(run)
    except AssertionError as error:
        raise AssertionError(f"{kills}: {error}") from error
