"""Faults of storage: what is done to a query, and what must become of it.

A case lets a query of a few batches run, does something to it, and starts it again until it has ended. The same cases
run against stock Spark, for the table in docs/storage.md.
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

# What the queries of the cases hold: enough for some batches before the fault and some behind it.
BATCHES = 6
ROWS = 60
# Where a fault begins that does not lie in single requests.
COMMITTED_BEFORE = 2
OUTAGE_SECONDS = 30

# Objects by the ends of their keys.
OFFSETS = r"/offsets/\d+(\?|$)"
COMMITS = r"/commits/\d+(\?|$)"
METADATA = r"/metadata(\?|$)|/_metadata/"
DATA_FILES = r"/dstl/data/"
CLAIMS = r"/dstl/epochs/"
SNAPSHOTS = r"/state/\d+/\d+/.*\.(zip|sst|changelog)"

LARGE_SEGMENTS = dstl(inline__maxSegmentSize="0")
ALWAYS_SNAPSHOTS = {
    **dstl(materialize__replayCost="100000", inline__maxSegmentSize="0"),
    f"{STATE_STORE}.minDeltasForSnapshot": "1",
}


@dataclass
class Place:
    """A server and what lies between it and the query."""

    server: S3Process
    wire: Wire
    toxics: Toxiproxy | None
    work: Path


Disturbance = Callable[[Place, Driver, Run], None]


@dataclass(frozen=True)
class Case:
    """One fault.

    `rules` are on the wire for the whole run, or from when `disturb` adds some; `disturb` does something while the
    query runs. `restarts` is how many times the query may end with an error and be started again, `fails_with` what an
    error must say then: empty, if the query may not fail at all.
    """

    name: str
    rules: tuple[Rule, ...] = ()
    disturb: Disturbance | None = None
    confs: Mapping[str, str] = field(default_factory=dict)
    restarts: int = 0
    fails_with: str = ""
    toxics: bool = False
    # How the table calls what it is done to.
    of: str = "all"


@dataclass(frozen=True)
class Outcome:
    """What became of a query: how often it failed, what it said first, and what was wrong with its result."""

    failures: tuple[str, ...]
    wrong: str

    @property
    def text(self) -> str:
        """A cell of the table."""
        if self.wrong:
            return f"not survived: {self.wrong}"
        return f"survived with {len(self.failures)} restarts" if self.failures else "survived"


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
    yield from lost("data files", DATA_FILES, LARGE_SEGMENTS)
    yield from lost("snapshots", f"{DATA_FILES}|{SNAPSHOTS}", ALWAYS_SNAPSHOTS)
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
    for name, fault, methods in (
        ("credentials expired", Fault.EXPIRED, ".*"),
        ("bucket read-only", Fault.DENIED, refuse),
        ("storage full", Fault.FULL, refuse),
    ):
        yield Case(name, disturb=partial(for_thirty_seconds, fault, methods), restarts=1, fails_with=".")
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


def all_cases() -> list[Case]:
    """Every case."""
    return [*on_the_wire(), *for_a_while()]


def wait_for_commits(driver: Driver, run: Run) -> None:
    """Wait until the query has committed some batches."""
    query = run.queries[0]
    driver.wait_until(lambda: len(run.committed(query)) >= COMMITTED_BEFORE, f"{COMMITTED_BEFORE} commits")


def outage(place: Place, driver: Driver, run: Run) -> None:
    """Kill the server, and start it again."""
    wait_for_commits(driver, run)
    place.server.kill()
    time.sleep(OUTAGE_SECONDS)
    place.server.restart()


def silence(place: Place, driver: Driver, run: Run) -> None:
    """Stop the server's process, and let it go on."""
    wait_for_commits(driver, run)
    place.server.process.stall()
    time.sleep(OUTAGE_SECONDS)
    place.server.process.go_on()


def for_thirty_seconds(fault: Fault, methods: str, place: Place, driver: Driver, run: Run) -> None:
    """Refuse every request for a while; the query may end meanwhile."""
    wait_for_commits(driver, run)
    rule = Rule(fault, methods)
    place.wire.rules.append(rule)
    time.sleep(OUTAGE_SECONDS)
    place.wire.rules.remove(rule)


def toxic(kind: str, place: Place, driver: Driver, run: Run, **attributes: int) -> None:
    """Put a toxic on the wire, for good."""
    wait_for_commits(driver, run)
    assert place.toxics is not None
    place.toxics.add(kind, **attributes)


def short_lives(place: Place, driver: Driver, run: Run) -> None:
    """Reset each connection that is made from now on a second after it was made."""
    wait_for_commits(driver, run)
    place.wire.lifetime = 1.0


def no_reply_until_it_fails(place: Place, driver: Driver, run: Run) -> None:
    """Keep every reply back, reset the connection a second later, and end that when the query has ended.

    That is what Toxiproxy's `reset_peer` does: whatever the server sends first is thrown away.
    """
    toxic("reset_peer", place, driver, run, timeout=1000)
    driver.wait()
    assert place.toxics is not None
    place.toxics.clear()


@contextmanager
def place_of(case: Case, server: S3Process, work: Path) -> Iterator[Place]:
    """The server with what lies between for this case."""
    if case.toxics:
        with toxiproxy(work, server.port) as toxics, wire(toxics.port) as between:
            yield Place(server, between, toxics, work)
    else:
        with wire(server.port) as between:
            yield Place(server, between, None, work)


def play(case: Case, place: Place, stock: bool = False) -> Outcome:
    """Let the query run, with its fault, to the end."""
    kept = stock_confs() if stock else {**log_confs(), **case.confs}
    run = on_s3(place.work, place.server, Aggregation.generate(BATCHES, ROWS), confs=kept, address=place.wire.address)
    run.has_plain_snapshots = stock
    place.wire.rules[:] = [replace(rule) for rule in case.rules]
    failures: list[str] = []
    for attempt in range(max(case.restarts, 3 if stock else 0) + 1):
        with run.start() as driver:
            if case.disturb is not None and attempt == 0:
                case.disturb(place, driver, run)
            if driver.wait() == 0:
                break
            failures.append(first_error(driver))
    else:
        return Outcome(tuple(failures), f"not at its end after {len(failures)} starts: {failures[-1]}")
    place.wire.rules.clear()
    place.wire.lifetime = None
    if place.toxics is not None:
        place.toxics.clear()
    if failures:
        let_batches_be_uneven(run)
    return Outcome(tuple(failures), wrong_with(run))


@dataclass(frozen=True)
class Uneven(Aggregation):
    """The same, where batches may hold several files: a source goes on behind what it wrote down for one that failed.

    State is compared with what the sink was given up to that batch, and that with the truth at the end.
    """

    query: Query

    def result(self) -> Windows:
        return Aggregation.after(self, self.batches)

    def after(self, batches: int) -> Windows:
        return self.query.result(batches)


def let_batches_be_uneven(run: Run) -> None:
    """Have the run checked like one in which a source may have gone on behind a batch that was never begun."""
    query = run.queries[0]
    assert isinstance(query.scenario, Aggregation)
    run.queries[0] = replace(query, scenario=Uneven(query.scenario.files, query))


def wrong_with(run: Run) -> str:
    """What is wrong with sink and state, or nothing."""
    try:
        run.check()
        run.check_state()
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return ""


def first_error(driver: Driver) -> str:
    """What the query's exception says first."""
    found = re.search(r"terminated with exception: (.*)", driver.log())
    if found is None:
        raise driver.failed("it ended without naming an exception")
    return found[1]
