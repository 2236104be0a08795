# SPDX-License-Identifier: Apache-2.0
"""`dstl follow --to` in a process, and its files beside what the query has sent to its sink."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from driver_process import Driver, start_driver
from harness import Query
from programs import connector
from s3 import environment

CURSOR = "cursor.json"


def command(name: str, query: Query, *options: str) -> list[str]:
    """Compose a command of the CLI for the checkpoint of a query on S3."""
    jars = ",".join(map(str, connector()))
    return [sys.executable, "-m", "spark_dstl", name, query.checkpoint, "--jars", jars, *options]


def start_follower(
    query: Query, to: Path, address: str, name: str, *options: str, launcher: Sequence[str] = ()
) -> Driver:
    """Start the command, which continues after its cursor; `name` is that of its log, beside the directory."""
    follow = command("follow", query, "--to", str(to), "--format", "jsonl", *options)
    return start_driver([*launcher, *follow], environment(address), to.parent, name)


def batches(to: Path) -> list[int]:
    """Return the batches that have a file, in order."""
    return sorted(int(file.stem) for file in to.glob("*.jsonl"))


def file_of(to: Path, batch: int) -> Path:
    """Return the file of a batch."""
    return to / f"{batch:010d}.jsonl"


def is_as_sent(query: Query, to: Path, batch: int) -> bool:
    """Return whether the file of a batch has the rows that were sent to the sink, with key, count and sum."""
    changed = [json.loads(line) for line in file_of(to, batch).read_text(encoding="utf-8").splitlines()]
    sent = json.loads((query.output / f"{batch}.json").read_text(encoding="utf-8"))
    return all(row["change_type"] == "update" for row in changed) and Counter(
        (*row["key"].values(), *row["value"].values()) for row in changed
    ) == Counter((row["key"], row["count"], row["sum"]) for row in sent)
