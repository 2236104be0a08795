# SPDX-License-Identifier: Apache-2.0
"""Kills of drivers and executors at random moments.

A seeded generator draws the moments and the victims. A moment is a number of writes to storage, not a time. Timing
differs between runs of one seed.
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
# The number of kills of ten that hit the driver.
DRIVERS_OF_TEN = 4
# The most small batches between two kills.
BATCHES_APART = 2
# The number of dead executors does not fail a batch.
PATIENT = {"spark.task.maxFailures": "100", "spark.deploy.maxExecutorRetries": "-1"}
# An executor that alone had changes of a batch was killed: the query fails and can be restarted.
LOST_CHANGES = r"\[DSTL_LOST_CHANGES\]"


def seeds() -> list[int]:
    """Return the seeds of the environment, separated by commas."""
    return [int(seed) for seed in os.environ.get(SEEDS, "1").split(",")]


@dataclass
class Kills:
    """Kills: the number `left`, and those `done`."""

    seed: int
    watched: Watched
    left: int
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def attend(self, driver: Driver) -> None:
        """Kill executors of this driver, until the driver is killed or ends by itself."""
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
        """Describe the kills for the message of a failed test."""
        return f"seed {self.seed} ({SEEDS}={self.seed} repeats it): {'; '.join(self.done)}"

    def _wait_for(self, driver: Driver, moment: int) -> None:
        def has_come() -> bool:
            return driver.has_ended() or (self.watched.changes() >= moment and bool(driver.executors()))

        driver.wait_until(has_come, f"{moment} changes; {self}")

    def _note(self, moment: int, victim: str) -> None:
        self.done.append(f"{victim} after {moment} changes")


def kill_at_random(run: Run, kills: Kills, check: Callable[[Run], None]) -> None:
    """Kill drivers and executors, restart drivers, and let the query complete.

    A driver may fail by itself only because changes were lost with one of its executors.
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
                assert expected, driver.failed(f"it ended without a reason; {kills}")
    let_batches_be_uneven(run)
    try:
        check(run)
    except AssertionError as error:
        raise AssertionError(f"{kills}: {error}") from error
