# SPDX-License-Identifier: Apache-2.0
"""Faults of storage, and the outcomes that a query may have.

A case runs a query of a few batches, injects a fault, and restarts the query until it completes. The same cases run
against stock Spark, for the table in docs/results.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from driver_process import Driver
from harness import Query, Run
from s3 import on_s3
from scenarios import Aggregation, Windows
from servers import S3Process, Toxiproxy, toxiproxy
from settings import STATE_STORE, dstl, log_confs, stock_confs
from wire import Fault, Rule, Wire, wire

# Enough input for some batches before the fault and some after it.
BATCHES = 6
ROWS = 60
# Committed batches before a fault that is not of single requests.
COMMITTED_BEFORE = 2
OUTAGE_SECONDS = 30
# From the end of an outage to the next commit. Attempts start up to ten seconds apart.
RECOVERY_SECONDS = 20

# Objects by the ends of their keys. Stock Spark writes most of them under a hidden name, and copies them.
_HIDDEN = r"(\.[^/?]+\.tmp)?(\?|$)"
OFFSETS = rf"/offsets/\.?\d+{_HIDDEN}"
COMMITS = rf"/commits/\.?\d+{_HIDDEN}"
METADATA = rf"/\.?metadata{_HIDDEN}|/_metadata/"
# Files of changes: data files of spark-dstl, changelogs of stock Spark.
CHANGES = r"/dstl/data/|/state/\d+/\d+/[^?]*\.changelog"
# Snapshots: in data files of spark-dstl, below the directories of stores with stock Spark.
SNAPSHOTS = r"/dstl/data/|/state/\d+/\d+/[^?]*\.(zip|sst)"

LARGE_SEGMENTS = dstl(inline__maxSegmentSize="0")
ALWAYS_SNAPSHOTS = {
    **dstl(materialize__replayCost="100000", inline__maxSegmentSize="0"),
    f"{STATE_STORE}.minDeltasForSnapshot": "1",
}
# Stock Spark uploads them in the maintenance of stores.
SNAPSHOTS_SOON = {**ALWAYS_SNAPSHOTS, f"{STATE_STORE}.maintenanceInterval": "1s"}


@dataclass
class Place:
    """A server, and the proxies between it and the query."""

    server: S3Process
    wire: Wire
    toxics: Toxiproxy | None
    work: Path
    # From the end of an outage to the next commit, if measured.
    recovery_seconds: float = 0.0


Disturbance = Callable[[Place, Driver, Run], None]


@dataclass(frozen=True)
class Case:
    """One fault.

    `rules` hold for the whole run; `disturb` may add others, or does something while the query runs. `restarts` is the
    number of failures that the query may have, with errors that match `fails_with`. `in_recovery`: a first driver runs
    half of the input without faults, and the fault begins with the next driver.
    """

    name: str
    rules: tuple[Rule, ...] = ()
    disturb: Disturbance | None = None
    confs: Mapping[str, str] = field(default_factory=dict)
    restarts: int = 0
    fails_with: str = ""
    toxics: bool = False
    # The fault's object, in the table.
    of: str = "everything"
    in_recovery: bool = False

    @property
    def key(self) -> str:
        """Return when a query meets the fault, of what it is, and its name."""
        return f"{'in recovery' if self.in_recovery else 'while writing'}: {self.of}: {self.name}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a query: the first error of each failure, and what was wrong with its result."""

    failures: tuple[str, ...]
    wrong: str


def lost(of: str, target: str, confs: Mapping[str, str] | None = None) -> Iterator[Case]:
    """Replies lost of one kind of object: of the first writes, and of a share of all."""
    kept = confs or {}
    yield Case("the first three replies lost", (Rule(Fault.LOSE_REPLY, target=target, limit=3),), confs=kept, of=of)
    yield Case("one reply in five lost", (Rule(Fault.LOSE_REPLY, target=target, ratio=0.2),), confs=kept, of=of)


def on_the_wire() -> Iterator[Case]:
    """Faults of single requests."""
    yield from lost("offsets", OFFSETS)
    yield from lost("commit entries", COMMITS)
    yield from lost("metadata", METADATA)
    yield from lost("data files", CHANGES, LARGE_SEGMENTS)
    yield from lost("snapshots", SNAPSHOTS, SNAPSHOTS_SOON)
    yield Case("one reply in fifty lost", (Rule(Fault.LOSE_REPLY, ratio=0.02),))
    yield Case("four replies in five lost", (Rule(Fault.LOSE_REPLY, ratio=0.8),), restarts=10, fails_with=".")
    yield Case("one request in ten reset", (Rule(Fault.RESET, methods=".*", ratio=0.1),))
    yield Case("one request in five: 503 SlowDown", (Rule(Fault.SLOW_DOWN, methods=".*", ratio=0.2),))
    yield Case("one request in five: 429", (Rule(Fault.TOO_MANY, methods=".*", ratio=0.2),))


def for_a_while() -> Iterator[Case]:
    """Faults that begin in the middle and end."""
    refuse = "PUT|POST|DELETE"
    yield Case("server killed for 30 s", disturb=outage, restarts=1, fails_with=".")
    yield Case("server silent for 30 s", disturb=silence)
    yield Case("half-open connections after 30 s", disturb=half_open)
    for name, fault, methods in (
        ("credentials expired for 30 s", Fault.EXPIRED, ".*"),
        ("no such bucket for 30 s", Fault.GONE, ".*"),
        ("bucket read-only for 30 s", Fault.DENIED, refuse),
        ("storage full for 30 s", Fault.FULL, refuse),
    ):
        of = "everything" if methods == ".*" else "what changes something"
        yield Case(name, disturb=partial(for_thirty_seconds, fault, methods), restarts=1, fails_with=".", of=of)
    yield Case(
        "latency of 300 ms, jitter of 200 ms", disturb=partial(toxic, "latency", latency=300, jitter=200), toxics=True
    )
    yield Case("every connection reset after 1 s", disturb=short_lives)
    yield Case(
        "no reply, and a reset after 1 s",
        disturb=no_reply_until_it_fails,
        confs=dstl(commit__timeout="20s"),
        restarts=1,
        fails_with=r"DSTL_",
        toxics=True,
    )
    yield Case("20 KB/s", disturb=partial(toxic, "bandwidth", rate=20), toxics=True)


def coming_back() -> Iterator[Case]:
    """Faults during recovery."""
    reads = "GET|HEAD"
    for of, target, confs in (("commit entries", COMMITS, {}), ("snapshots", SNAPSHOTS, SNAPSHOTS_SOON)):
        first = (Rule(Fault.LOSE_REPLY, reads, target, limit=3),)
        yield Case("the first three replies to reads lost", first, confs=confs, of=of, in_recovery=True)
    for name, rule in (
        ("one reply in five lost", Rule(Fault.LOSE_REPLY, ".*", ratio=0.2)),
        ("one request in ten reset", Rule(Fault.RESET, ".*", ratio=0.1)),
        ("one request in five: 503 SlowDown", Rule(Fault.SLOW_DOWN, ".*", ratio=0.2)),
    ):
        yield Case(name, (rule,), in_recovery=True)
    lasting = (
        "server killed",
        "server silent",
        "half-open",
        "credentials expired",
        "no such bucket",
        "bucket read-only",
    )
    yield from (replace(case, in_recovery=True) for case in for_a_while() if case.name.startswith(lasting))


def all_cases() -> list[Case]:
    """Return every case."""
    return [*on_the_wire(), *for_a_while(), *coming_back()]


def wait_for_commits(driver: Driver, run: Run) -> None:
    """Wait until the query has committed some batches."""
    query = run.queries[0]
    driver.wait_until(lambda: len(run.committed(query)) >= COMMITTED_BEFORE, f"{COMMITTED_BEFORE} commits")


def wait_for_the_middle(place: Place, driver: Driver, run: Run) -> None:
    """Wait until the query has committed some batches and this driver reads or writes a commit entry."""
    wait_for_commits(driver, run)
    driver.wait_until(lambda: place.wire.has_seen(COMMITS), "look at a commit entry")


def outage(place: Place, driver: Driver, run: Run) -> None:
    """Kill the server, and restart it."""
    wait_for_the_middle(place, driver, run)
    place.server.kill()
    time.sleep(OUTAGE_SECONDS)
    place.server.restart()


def silence(place: Place, driver: Driver, run: Run) -> None:
    """Stall the server's process for a while."""
    wait_for_the_middle(place, driver, run)
    place.server.process.stall()
    time.sleep(OUTAGE_SECONDS)
    place.server.process.go_on()


def half_open(place: Place, driver: Driver, run: Run) -> None:
    """Hold every request of a while without an answer, its connection open; answer later ones."""
    wait_for_the_middle(place, driver, run)
    rule = Rule(Fault.HELD, ".*", held_seconds=3600)
    place.wire.rules.append(rule)
    time.sleep(OUTAGE_SECONDS)
    place.wire.rules.remove(rule)
    healed, before = time.monotonic(), len(run.committed(run.queries[0]))
    driver.wait_until(lambda: len(run.committed(run.queries[0])) > before or driver.has_ended(), "a further commit")
    place.recovery_seconds = time.monotonic() - healed


def for_thirty_seconds(fault: Fault, methods: str, place: Place, driver: Driver, run: Run) -> None:
    """Reject every request for a while; the query may end meanwhile."""
    wait_for_the_middle(place, driver, run)
    rule = Rule(fault, methods)
    place.wire.rules.append(rule)
    time.sleep(OUTAGE_SECONDS)
    place.wire.rules.remove(rule)


def toxic(kind: str, place: Place, driver: Driver, run: Run, **attributes: int) -> None:
    """Add a toxic until the end of the run."""
    wait_for_the_middle(place, driver, run)
    assert place.toxics is not None
    place.toxics.add(kind, **attributes)


def short_lives(place: Place, driver: Driver, run: Run) -> None:
    """Reset each new connection after a second."""
    wait_for_the_middle(place, driver, run)
    place.wire.lifetime = 1.0


def no_reply_until_it_fails(place: Place, driver: Driver, run: Run) -> None:
    """Discard every reply and reset the connection a second later, until the query has ended.

    Toxiproxy's `reset_peer` does this.
    """
    toxic("reset_peer", place, driver, run, timeout=1000)
    driver.wait()
    assert place.toxics is not None
    place.toxics.clear()


@contextmanager
def place_of(case: Case, server: S3Process, work: Path) -> Iterator[Place]:
    """Run the proxies of this case."""
    if case.toxics:
        with toxiproxy(work, server.port) as toxics, wire(toxics.port) as between:
            yield Place(server, between, toxics, work)
    else:
        with wire(server.port) as between:
            yield Place(server, between, None, work)


def play(case: Case, place: Place, stock: bool = False) -> Outcome:
    """Run the query with its fault until it completes. Stock Spark has three restarts in each case."""
    kept = {**(stock_confs() if stock else log_confs()), **case.confs}
    run = on_s3(place.work, place.server, Aggregation.generate(BATCHES, ROWS), confs=kept, address=place.wire.address)
    run.has_plain_snapshots = stock
    if case.in_recovery:
        do_half_of_it(run)
    place.wire.begin(case.rules)
    failures: list[str] = []
    for attempt in range(max(case.restarts, 3 if stock else 0) + 1):
        with run.start() as driver:
            if case.disturb is not None and attempt == 0:
                case.disturb(place, driver, run)
            if driver.wait() == 0:
                break
            failures.append(first_error(driver))
    else:
        return Outcome(tuple(failures), f"not at its end after {len(failures)} starts")
    place.wire.rules.clear()
    place.wire.lifetime = None
    if place.toxics is not None:
        place.toxics.clear()
    if failures or case.in_recovery:
        let_batches_be_uneven(run)
    return Outcome(tuple(failures), wrong_with(run))


def do_half_of_it(run: Run) -> None:
    """Run a driver with half of the input."""
    with run.queries[0].without_last(BATCHES - BATCHES // 2), run.start() as driver:
        driver.succeed()


@dataclass(frozen=True)
class Uneven(Aggregation):
    """An aggregation whose batches may hold several files: the source continues after its record of a failed batch.

    State is compared with the sink's content up to that batch, and the sink with the expected result at the end.
    """

    query: Query

    def result(self) -> Windows:
        return Aggregation.after(self, self.batches)

    def after(self, batches: int) -> Windows:
        return self.query.result(batches)


def let_batches_be_uneven(run: Run) -> None:
    """Let the check accept batches of several files, after a batch that the source recorded and Spark never started."""
    query = run.queries[0]
    assert isinstance(query.scenario, Aggregation)
    run.queries[0] = replace(query, scenario=Uneven(query.scenario.files, query))


def wrong_with(run: Run) -> str:
    """Return what is wrong with sink and state; empty if nothing is."""
    try:
        run.check_all()
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return ""


def first_error(driver: Driver) -> str:
    """Return the beginning of the query's exception."""
    found = re.search(r"terminated with exception: (.*)", driver.log())
    if found is None:
        raise driver.failed("it ended without naming an exception")
    return found[1]
