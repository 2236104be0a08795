"""Measures how long the commands that look at a checkpoint take, on one that is written for it, on a local disk.

    python python/bench/inspect_speed.py [--entries 100] [--stores 100] [--repeat 5]

Prints a line for each command: the median and the worst time of whole processes, Python's start included, and the
median of what processors worked for them, which other work on the machine changes less.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from written_checkpoint import WrittenCheckpoint, aged

COMMANDS = (
    ("log",),
    ("log", "--segments", "--format", "csv"),
    ("ls",),
    ("show",),
    ("verify",),
    ("verify", "--deep"),
)


def write(root: Path, entries: int, stores: int) -> Path:
    """Write a checkpoint: every tenth batch in a data file, and a snapshot of each store in the middle."""
    checkpoint = WrittenCheckpoint(root, partitions=stores).begin()
    for batch in range(entries):
        checkpoint.batch(batch, large=batch % 10 == 9, snapshots=batch == entries // 2, size=1000)
    return aged(root)


def seconds(command: Sequence[str]) -> tuple[float, float]:
    """Run a command; return how long it took, and how long processors worked for it."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, worked


def main() -> None:
    """Write, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100)
    parser.add_argument("--stores", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dstl-inspect-") as directory:
        root = write(Path(directory) / "checkpoint", options.entries, options.stores)
        print(f"{options.entries} entries of {options.stores} stores: {options.entries * options.stores} changelogs")
        for command in COMMANDS:
            whole = [sys.executable, "-m", "spark_dstl", command[0], str(root), *command[1:]]
            times = sorted(seconds(whole) for _ in range(options.repeat))
            took, worked = times[len(times) // 2][0], statistics.median(cpu for _, cpu in times)
            print(f"dstl {' '.join(command):<32} median {took:.2f} s, worst {times[-1][0]:.2f} s; CPU {worked:.2f} s")


if __name__ == "__main__":
    main()
