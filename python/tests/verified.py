# SPDX-License-Identifier: Apache-2.0
"""A checkpoint with ten batches to damage and verify."""

from collections.abc import Callable
from pathlib import Path

from written_checkpoint import RUN, WrittenCheckpoint, aged

import spark_dstl
from spark_dstl.checkpoint.verification import verify
from spark_dstl.checkpoint.verification.findings import Verification

HEADER = 2078  # where the log of an entry begins


def ten_batches(root: Path) -> WrittenCheckpoint:
    """Write batches 0 to 9 in the log: 3 and 7 in data files, 4 with snapshots of version 5 and their files."""
    checkpoint = WrittenCheckpoint(root).begin().batches(range(10), large=(3, 7), snapshots=(4,))
    aged(checkpoint.root)
    return checkpoint


def verified(
    root: Path | str, deep: bool = False, then: Callable[[float], None] = lambda _seconds: None
) -> Verification:
    with spark_dstl.open(str(root)) as checkpoint:
        return verify.verify(checkpoint, deep, then)


def entry(root: Path, batch: int) -> Path:
    return root / f"commits/{batch}"


def data(root: Path, sequence: int) -> Path:
    return root / f"dstl/data/1-{RUN}/1-{sequence}-5eed.log"


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(bytes(content))


def cut(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


def purge(root: Path, upto: int) -> None:
    """Delete the entries below a batch, as Spark does with old batches."""
    for batch in range(upto):
        entry(root, batch).unlink()
        (root / f"offsets/{batch}").unlink()
