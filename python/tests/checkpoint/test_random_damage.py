# SPDX-License-Identifier: Apache-2.0
"""Whatever is damaged, a command ends with an error of this package, and not with one of Python."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from invoked import dstl
from written_checkpoint import WrittenCheckpoint, aged

import spark_dstl
from spark_dstl.errors import DstlError

SEEDS = 1000 if os.environ.get("SPARK_DSTL_TEST_WHOLE") else 40
COMMANDS = (
    ("verify",),
    ("verify", "--deep"),
    ("show",),
    ("ls", "operators"),
    ("ls", "stores"),
    ("ls", "versions"),
    ("ls", "snapshots"),
    ("ls", "claims"),
    ("log", "--segments"),
    ("rollback", "--to", "1"),
    ("gc",),
    ("repartition", "--partitions", "3"),
    ("export", "TARGET", "--stopped"),
    ("pin", "--for", "1h"),
    ("ls", "pins"),
    ("unpin", "--all"),
    ("rollback", "--to", "3", "--apply", "--stopped"),
    ("gc", "--apply", "--stopped"),
)
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 3, 2.5, 2**63, float("inf"), "", "x", "0", "../x", [], [1], ["x"], {}, {"x": 1}, {"0": [["x"]]},
)  # fmt: skip
NAMES = ("0", "1", "9", "-1", "x", "1.compact", "4.zip", "3.changelog", "1.ended", "999999999999999999")


def replaced(chance: random.Random, value: Any) -> Any:
    """The value with another one in some place, or without it."""
    places = [value]
    for place in places:
        places += [inner for inner in (place.values() if isinstance(place, dict) else place) if is_nested(inner)]
    within = chance.choice(places)
    keys = list(within) if isinstance(within, dict) else list(range(len(within)))
    if not keys:
        return chance.choice(VALUES)
    key = chance.choice(keys)
    if chance.random() < 0.2:
        del within[key]
    else:
        within[key] = chance.choice(VALUES)
    return value


def is_nested(value: Any) -> bool:
    return isinstance(value, dict | list)


def damage(chance: random.Random, root: Path) -> str:
    """Damage a file, most often a value in its JSON; returns what was done."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    # Most files are in few directories, and of most kinds the newest matters.
    directory = chance.choice(sorted({path.parent for path in files}))
    in_one = [path for path in files if path.parent == directory]
    file = chance.choice((chance.choice(in_one), in_one[-1]))
    name, content = file.relative_to(root), file.read_bytes()
    lines = content.split(b"\n")
    objects = [number for number, line in enumerate(lines[:3]) if line.startswith(b"{")]
    how = chance.random()
    if objects and how < 0.7:
        number = chance.choice(objects)
        lines[number] = json.dumps(replaced(chance, json.loads(lines[number]))).encode()
        file.write_bytes(b"\n".join(lines))
        return f"{name}: {lines[number][:200]!r}"
    if how < 0.8:
        file.write_bytes(content[: chance.randrange(len(content) + 1)])
        return f"{name} is cut"
    if how < 0.9:
        other = chance.choice(files)
        file.write_bytes(other.read_bytes())
        return f"{name} is {other.relative_to(root)}"
    renamed = file.with_name(chance.choice(NAMES))
    file.rename(renamed)
    return f"{name} is named {renamed.name}"


# The last makes the file longer than is read of it.
@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" * 5000, "1" * 100_000])
def test_a_number_beyond_all_limits_is_damage(tmp_path: Path, number: str) -> None:
    written = WrittenCheckpoint(tmp_path / "q", partitions=1).begin()
    written.plain_entry(0)
    written.entry(1, written.changes(1), ids={number: [["x"]]})
    checksum = f'{{"algorithm":"CRC32C","value":{number},"mainFileSize":40}}'
    (written.root / "state/0/0/1.changelog.crc").write_text(checksum)
    with spark_dstl.open(str(aged(written.root))) as checkpoint:
        assert checkpoint.survey().entries[1].ids == {}
        damages = [(Path(one.object).name, one.what) for one in checkpoint.verify(deep=True).damages]
    assert damages == [("1.changelog", "its checksum file is not what Spark writes")]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_command_ends_with_an_error_of_this_package(tmp_path: Path, seed: int) -> None:
    written = WrittenCheckpoint(tmp_path / "q").begin()
    for batch in (0, 1):
        written.plain_entry(batch)
    for batch in (2, 3, 4):
        written.batch(batch, large=batch == 3, snapshots=batch == 3)
    chance = random.Random(seed)
    done = [damage(chance, written.root) for _ in range(chance.choice((1, 1, 2)))]
    aged(written.root)
    for command, *words in COMMANDS:
        more = [word.replace("TARGET", str(tmp_path / "exported")) for word in words]
        result = dstl("--debug", command, written.root, *more)
        assert result.exception is None or isinstance(result.exception, SystemExit | DstlError), (done, command, more)
