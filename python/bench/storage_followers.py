# SPDX-License-Identifier: Apache-2.0
"""Measures a query on an S3 server while it is followed: its batches, the age of what followers have, and requests.

`make storage-followed` runs it. A query of 64 partitions and 100,000 keys begins a batch every half second if the one
before has ended, for a while alone and for a while with two `dstl follow` and a `dstl serve` that is asked for keys.
Each change of each batch is then compared with what the query has sent to its sink. All processes share the machine;
those of followers have the lowest priority. At the end `dstl serve` has a processor for itself and one client, which
asks without a pause; the query has the other. Lookups until the server's code is compiled are not counted.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from pyarrow import flight
from rich.progress import Progress
from runner import unwind_on_sigterm

from followers import CURSOR, batches, command, file_of, is_as_sent, start_follower
from harness import Run
from s3 import environment, on_s3
from scenarios import Ticks
from servers import versitygw
from serving_process import serving
from settings import log_confs
from wire import Seen, wire

PARTITIONS, KEYS, ROWS = 64, 100_000, 1000
INTERVAL = "500 milliseconds"
# All keys have been seen, and the code of batches is compiled.
WARM_UP = 120
LOOKUPS_A_SECOND = 50
WARM_UP_LOOKUPS = 30_000
LEAST_PRIORITY = ("nice", "-n", "19")


def main() -> None:
    """Measure for that many seconds with followers, and a fifth of it before and after without."""
    seconds = int(sys.argv[1] or 600)
    confs = {**log_confs(), "spark.sql.shuffle.partitions": str(PARTITIONS)}
    with ExitStack() as kept:
        work = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="dstl-followed-")))
        server = kept.enter_context(versitygw(work / "server"))
        direct, theirs = (kept.enter_context(wire(server.port)) for _ in range(2))
        run = on_s3(work, server, Ticks(ROWS, KEYS), confs=confs, address=direct.address)
        run.interval = INTERVAL
        # One at a time.
        progress = kept.enter_context(Progress())
        driver = kept.enter_context(run.start())
        driver.wait_until(lambda: run.queries[0].written() >= WARM_UP, f"{WARM_UP} batches")
        phases = []

        def phase(
            name: str, length: float, look: Callable[[], float] | None = None, pauses: bool = True
        ) -> list[float]:
            task = progress.add_task(name, total=length)
            taken = []
            began = time.time()
            while (passed := time.time() - began) < length:
                progress.update(task, completed=passed)
                if look is not None:
                    taken.append(look())
                if pauses:
                    driver.wait_until(lambda: time.time() - began > passed + 1 / LOOKUPS_A_SECOND, "time to pass")
            phases.append((name, began, time.time()))
            return taken

        phase("alone", seconds / 5)
        with (
            following(run, work, theirs.address) as directories,
            serving_keys(run, theirs.address, LEAST_PRIORITY) as look,
        ):
            before = len(theirs.seen)
            taken = phase("followed", seconds, look)
            asked = theirs.seen[before:]
            newest = max(run.committed(run.queries[0]))
            for directory in directories:
                driver.wait_until(lambda: file_of(directory, newest).exists(), "the newest batch")  # noqa: B023
        phase("alone again", seconds / 5)
        confine(os.getpid(), 0)
        with serving_keys(run, theirs.address, ("taskset", "--cpu-list", "1")) as look:
            # The client's thread: those that stand between the query and the S3 server stay with the query.
            os.sched_setaffinity(0, {1})
            for _ in progress.track(range(WARM_UP_LOOKUPS), description="warm-up"):
                look()
            alone = phase("lookups on the other processor", seconds / 5, look, pauses=False)
        driver.kill()
        compared = sum(compare(run, directory) for directory in directories)
        report(phases, direct.seen, asked, directories, taken, compared)
        print(
            f"Lookups on one processor, ms, p50 | p90 | p99: {of_100(alone)}, {len(alone) / sum(alone):,.0f} a second"
        )


def confine(process: int, processor: int) -> None:
    """Confine a process, and those that it has started, to a processor."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        # It may have ended.
        with suppress(ProcessLookupError, FileNotFoundError):
            os.sched_setaffinity(int(thread.name), {processor})
            for child in (thread / "children").read_text("ascii").split():
                confine(int(child), processor)


@contextmanager
def following(run: Run, work: Path, address: str) -> Iterator[list[Path]]:
    """Start two followers, and return their directories."""
    (query,) = run.queries
    directories = [work / f"followed-{number}" for number in range(2)]
    with ExitStack() as kept:
        for to in directories:
            follower = kept.enter_context(start_follower(query, to, address, to.name, launcher=LEAST_PRIORITY))
            follower.wait_until((to / CURSOR).exists, "the first batch")
        yield directories


@contextmanager
def serving_keys(run: Run, address: str, launcher: Sequence[str]) -> Iterator[Callable[[], float]]:
    """Start a server, and return a function that times a lookup."""
    serve = [*launcher, *command("serve", run.queries[0])]
    with serving(serve, **environment(address)) as (_, client):
        chance = random.Random(1)

        def look() -> float:
            key = f"key-{chance.randrange(KEYS)}"
            began = time.perf_counter()
            (found,) = client.do_get(flight.Ticket(json.dumps({"command": "get", "key": key}))).read_all().to_pylist()
            if found["value"] is None:
                raise RuntimeError(f"{key} was not found as of batch {found['batch']}")
            return time.perf_counter() - began

        yield look


def compare(run: Run, directory: Path) -> int:
    """Compare each followed batch with the sink; return how many there are, without a gap."""
    numbers = batches(directory)
    if numbers != list(range(numbers[0], numbers[-1] + 1)):
        raise RuntimeError(f"{directory} misses batches: {numbers}")
    for number in numbers:
        if not is_as_sent(run.queries[0], directory, number):
            raise RuntimeError(f"{file_of(directory, number)} is not what the batch has sent to the sink")
    return len(numbers)


def committed(seen: Iterable[Seen]) -> dict[int, float]:
    """Return when each commit entry was written."""
    found = {}
    for one in seen:
        entry = re.search(r"/commits/(\d+)$", one.target)
        if one.method == "PUT" and one.status == 200 and entry:
            found[int(entry[1])] = one.at
    return found


def report(
    phases: Sequence[tuple[str, float, float]],
    of_query: Sequence[Seen],
    of_followers: Sequence[Seen],
    directories: Sequence[Path],
    lookups: Sequence[float],
    compared: int,
) -> None:
    """Print the tables of docs/results."""
    times = committed(of_query)
    print("| query | batches | requests a batch | from one commit to the next, ms: p50 | p90 | p99 |")
    print("|---|---|---|---|---|---|")
    for name, began, ended in phases:
        at = [time for time in times.values() if began <= time < ended]
        requests = sum(began <= one.at < ended for one in of_query) / len(at)
        print(f"| {name} | {len(at)} | {requests:.2f} | {of_100([b - a for a, b in itertools.pairwise(at)])} |")
    _, began, ended = phases[1]
    followed = [number for number, at in times.items() if began <= at < ended]
    ages = [file_of(directory, batch).stat().st_mtime - times[batch] for directory in directories for batch in followed]
    methods = {method: sum(one.method == method for one in of_followers) for method in ("GET", "HEAD", "PUT", "DELETE")}
    followers = len(directories) + 1
    shares = ", ".join(f"{count / len(followed) / followers:.2f} {method}" for method, count in methods.items())
    print(f"\nAge of a batch in a follower's file, ms, p50 | p90 | p99: {of_100(ages)}")
    print(f"Lookups while batches are applied, ms, p50 | p90 | p99: {of_100(lookups)} ({len(lookups)})")
    print(f"Requests of a follower for each batch: {shares}")
    print(f"{compared} batches of {len(directories)} followers are what the sink has")


def of_100(seconds: Sequence[float]) -> str:
    """Return percentiles in ms, as cells."""
    cuts: list[Any] = statistics.quantiles(seconds, n=100)
    return " | ".join(f"{cuts[percent - 1] * 1000:,.1f}" for percent in (50, 90, 99))


if __name__ == "__main__":
    unwind_on_sigterm()
    main()
