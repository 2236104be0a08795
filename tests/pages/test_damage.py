# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/damage.md: what `dstl verify` and a start say of a damaged checkpoint, and the way out."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from documents import ROOT
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import query_driver
import spark_dstl
from copies import copied
from scenarios import Aggregation
from settings import STATE_STORE, dstl
from shared_session import contender
from spark_dstl.checkpoint.format.names import CHANGELOG, SNAPSHOT_FILE
from spark_dstl.checkpoint.reading import read_entry
from spark_dstl.checkpoint.verification.findings import Verification
from spark_dstl.errors import DstlError
from spark_facts import LINE

NEWEST = 5
BATCHES = NEWEST + 1
# A store that is unloaded after each batch makes its snapshots during the commit.
SNAPSHOTS = {f"{STATE_STORE}.unloadOnCommit": "true", f"{STATE_STORE}.minDeltasForSnapshot": "3"}
HEADER = ("damage", "`dstl verify`", "a start", "the way out")
# How many queries start at once.
AT_ONCE = 4
Change = Callable[[Path], None]


@dataclass(frozen=True)
class Scene:
    """A checkpoint with six batches, and one more file of input."""

    session: SparkSession
    work: Path
    input: Path
    checkpoint: Path
    expected: dict[str, int]

    def totals(self, checkpoint: Path, name: str) -> dict[str, int]:
        """Run the query to the end of its input, and return its result."""
        events = query_driver.read(self.session, self.input).withWatermark("at", "100 days")
        counts = events.groupBy("key").agg(sf.count("*").alias("count"))
        written = counts.writeStream.outputMode("complete").format("memory").queryName(name)
        written.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
        return {row["key"]: row["count"] for row in self.session.table(name).collect()}

    def part(self, kind: int, batches: Iterable[int]) -> tuple[str, int]:
        """The data file with the first segment of that kind in entries, and the middle of the segment."""
        with spark_dstl.open(str(self.checkpoint)) as opened:
            entries = [read_entry(opened.storage, batch) for batch in batches]
        segments = [segment for entry in entries if entry for segment in entry.segments if segment.kind == kind]
        parts = [part for segment in segments for part in segment.parts]
        return next((f"dstl/{part.file}", part.offset + part.length // 2) for part in parts if part.file)


def replaced(name: str, edit: Callable[[bytes], bytes]) -> Change:
    """Change a file's content. Hadoop's local file system would find that first, by its own checksums."""

    def change(checkpoint: Path) -> None:
        file = checkpoint / name
        file.write_bytes(edit(file.read_bytes()))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    return change


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def in_watermark(content: bytes) -> bytes:
    return flipped(content, content.index(b'WatermarkMs":') + len('WatermarkMs":'))


def in_changelog(content: bytes) -> bytes:
    return flipped(content, content.index(b"DSTLLOG\n") + 40)


def emptied(_content: bytes) -> bytes:
    return b""


def cut(content: bytes) -> bytes:
    return content[:-20]


def two_lines(content: bytes) -> bytes:
    return b"\n".join(content.split(b"\n")[:2])


def removed(*patterns: str) -> Change:
    """Remove files and directories with all below them."""

    def change(checkpoint: Path) -> None:
        for pattern in patterns:
            found = list(checkpoint.glob(pattern))
            assert found, pattern
            for path in found:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
                    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    return change


def both(one: Change, other: Change) -> Change:
    def change(checkpoint: Path) -> None:
        one(checkpoint)
        other(checkpoint)

    return change


def swapped(one: str, other: str) -> Change:
    """Exchange the contents of two files."""

    def change(checkpoint: Path) -> None:
        contents = [(checkpoint / name).read_bytes() for name in (one, other)]
        replaced(one, lambda _: contents[1])(checkpoint)
        replaced(other, lambda _: contents[0])(checkpoint)

    return change


def damages(scene: Scene) -> dict[str, Change]:
    """All kinds of damage, by the names that the page has."""
    entry = {
        "emptied": emptied,
        "cut to Spark's two lines": two_lines,
        "cut off at its end": cut,
        "a flipped bit in its changelogs": in_changelog,
        "a changed digit of Spark's watermark": in_watermark,
    }
    needed, at = scene.part(CHANGELOG, [NEWEST - 1])
    unneeded, at_unneeded = scene.part(CHANGELOG, [0])
    snapshot, at_snapshot = scene.part(SNAPSHOT_FILE, reversed(range(BATCHES)))
    return {
        **{f"newest `commits/5`: {what}": replaced("commits/5", edit) for what, edit in entry.items()},
        "newest `commits/5`: missing": removed("commits/5"),
        "`offsets/5` of a batch that was begun, without `commits/5`: emptied": both(
            removed("commits/5"), replaced("offsets/5", emptied)
        ),
        "`commits/4`, which is needed: emptied": replaced("commits/4", emptied),
        "`commits/4`, which is needed: cut to Spark's two lines": replaced("commits/4", two_lines),
        "`commits/4`, which is needed: cut off at its end": replaced("commits/4", cut),
        "`commits/4`, which is needed: missing": removed("commits/4"),
        "`commits/4` and `commits/5` exchanged": swapped("commits/4", "commits/5"),
        "`commits/0`, which is not needed any more: emptied": replaced("commits/0", emptied),
        "`commits/`: missing": removed("commits"),
        "newest `offsets/5`: emptied": replaced("offsets/5", emptied),
        "newest `offsets/5`: a changed digit of the watermark": replaced("offsets/5", in_watermark),
        "newest `offsets/5`: missing": removed("offsets/5"),
        "`offsets/4`, the one before: emptied": replaced("offsets/4", emptied),
        "`offsets/4`, the one before: missing": removed("offsets/4"),
        "`offsets/2`, an older one: missing": removed("offsets/2"),
        "`offsets/`: missing": removed("offsets"),
        "a needed changelog in a data file: a flipped bit": replaced(needed, partial(flipped, at=at)),
        "a needed changelog in a data file: cut off": replaced(needed, lambda content: content[:60]),
        "a needed changelog in a data file: missing": removed(needed),
        "a data file that is not needed any more: a flipped bit": replaced(unneeded, partial(flipped, at=at_unneeded)),
        "a data file that is not needed any more: missing": removed(unneeded),
        "a data file of the newest snapshot: a flipped bit": replaced(snapshot, partial(flipped, at=at_snapshot)),
        "a data file of the newest snapshot: missing": removed(snapshot),
        "`dstl/data/`: missing": removed("dstl/data"),
        "`dstl/epochs/`: missing": removed("dstl/epochs"),
        "the newest claim in `dstl/epochs/`: emptied": replaced("dstl/epochs/2", emptied),
        "`sources/0/5`, the newest: emptied": replaced("sources/0/5", emptied),
        "`sources/0/5`, the newest: missing": removed("sources/0/5"),
        "`sources/0/2`, an older one: missing": removed("sources/0/2"),
        "`metadata`: emptied": replaced("metadata", emptied),
        "`metadata`: missing": removed("metadata"),
        "`state/0/_metadata/metadata`: emptied": replaced("state/0/_metadata/metadata", emptied),
        "`state/0/_metadata/metadata`: missing": removed("state/0/_metadata/metadata"),
        "`state/0/0/_metadata/schema`: emptied": replaced("state/0/0/_metadata/schema", emptied),
        "`state/0/0/_metadata/schema`: missing": removed("state/0/0/_metadata/schema"),
        "`state/0/1/`, the directory of a partition: missing": removed("state/0/1"),
        "`state/`: missing": removed("state"),
    }


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Scene:
    if LINE != (4, 2):
        pytest.skip("the page is of Spark 4.2")
    work = tmp_path_factory.mktemp("damage")
    events = Aggregation.generate(files=BATCHES + 1, rows=30)
    events.write(work / "all")
    files = sorted((work / "all/events").iterdir())
    (work / "input").mkdir()
    session = contender(spark, "dstl")
    for key, value in SNAPSHOTS.items():
        session.conf.set(key, value)
    scene = Scene(
        session,
        work,
        work / "input",
        work / "checkpoint",
        dict(Counter(str(row["key"]) for rows in events.files for row in rows)),
    )
    # The changelogs of the last batch alone are in its entry.
    for count, inline in ((NEWEST, "0"), (1, "128k")):
        for key, value in dstl(inline__maxSegmentSize=inline).items():
            session.conf.set(key, value)
        for file in files[:count]:
            shutil.move(file, scene.input)
        del files[:count]
        scene.totals(scene.checkpoint, f"before_{len(files)}")
    shutil.move(files[0], scene.input)
    return scene


def observed(scene: Scene, number: int, change: Change) -> tuple[str, str, str]:
    """What the commands and a start say of the damage: the last three cells of its row."""
    damaged, other = scene.work / f"damaged{number}", scene.work / f"back{number}"
    copied(scene.checkpoint, damaged)
    # Spark stops a query when another one with its id starts.
    replaced("metadata", lambda _: json.dumps({"id": str(uuid4())}).encode())(damaged)
    change(damaged)
    shutil.copytree(damaged, other)
    verdict, found = verified(damaged)
    start = started(scene, damaged, f"damaged_{number}")
    if start == "continues":
        return verdict, start, "none is needed"
    ways = way_out(other, found) if found else ""
    if ways:
        assert started(scene, other, f"back_{number}") == "continues", f"after {ways}"
    return verdict, start, f"restore it, or {ways}" if ways else "restore it from a backup"


def way_out(path: Path, found: Verification) -> str:
    """Do what `dstl verify` advises; returns it."""
    ways = []
    with spark_dstl.open(str(path)) as checkpoint:
        for name in found.in_the_way:
            (path / Path(name).relative_to(found.path)).unlink()
            ways.append("delete it")
        back = checkpoint.verify().way_back if ways else found.way_back
        if back is not None:
            checkpoint.apply_rollback(checkpoint.plan_rollback(back), stopped=True)
            ways.append(f"`dstl rollback --to {back}`")
    return " and ".join(ways)


def verified(path: Path) -> tuple[str, Verification | None]:
    """The verdict of `dstl verify`, and what it found."""
    try:
        with spark_dstl.open(str(path)) as checkpoint:
            found = checkpoint.verify()
            deep = checkpoint.verify(deep=True)
    except DstlError as error:
        return f"`{type(error).__name__}`", None
    if not found.is_damaged:
        return "damage with `--deep`" if deep.is_damaged else "no damage", found
    newest = found.newest_undamaged
    return "damage; " + ("in all batches" if newest is None else f"none in batch {newest}"), found


def started(scene: Scene, path: Path, name: str) -> str:
    """How a start ends: the condition of its error, or that it continues with the right result."""
    try:
        totals = scene.totals(path, name)
    except (Py4JError, PySparkException) as error:
        first = str(error).splitlines()[0]
        condition, back = re.search(r"\[(DSTL_\w+)\]", first), re.search(r"dstl rollback \S+ (--to \d+)", first)
        if condition is None:
            return "an error of Spark"
        return f"`{condition[1]}`" + (f", `{back[1]}`" if back else "")
    assert totals == scene.expected, f"{name} has a wrong result"
    return "continues"


def test_the_page_says_of_each_damage_what_the_commands_and_a_start_say(scene: Scene) -> None:
    kinds = damages(scene)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        cells = pool.map(partial(observed, scene), range(len(kinds)), kinds.values())
        table = [f"| {' | '.join(row)} |" for row in (HEADER, ("---",) * len(HEADER))]
        table += [f"| {what} | {' | '.join(found)} |" for what, found in zip(kinds, cells, strict=True)]
    page = (ROOT / "docs/damage.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("|")] == table, "\n".join(table)
