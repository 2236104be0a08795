# SPDX-License-Identifier: Apache-2.0
import csv
import io
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from invoked import dstl, ended
from progress_samples import operator
from progress_samples import progress as sample
from written_checkpoint import WrittenCheckpoint

from spark_dstl.checkpoint import rows
from spark_dstl.checkpoint.storage import Storage, StoredObject
from spark_dstl.checkpoint.survey import entries_of
from spark_dstl.commands import console, main
from spark_dstl.commands.console.printing import print_rows
from spark_dstl.commands.console.progress import ProgressLine
from spark_dstl.commands.ls import SHOWN
from spark_dstl.errors import MissingPackage, UnreadableStorage

READING = (
    ("ls",),
    ("ls", "versions"),
    ("ls", "objects"),
    ("show",),
    ("log",),
    ("log", "--segments"),
    ("log", "--batch", "4"),
)


def run(path: str | Path, command: tuple[str, ...], *more: str) -> Result:
    return dstl(command[0], path, *command[1:], *more)


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    return WrittenCheckpoint(tmp_path / "q").begin().batches(range(6), large=(3,), snapshots=(4,))


def cut(written: WrittenCheckpoint, batch: int) -> None:
    entry = written.root / f"commits/{batch}"
    entry.write_bytes(entry.read_bytes()[:-1])


def of_a_later_release(written: WrittenCheckpoint, batch: int) -> None:
    """Raise the format version in the trailer of an entry."""
    entry = written.root / f"commits/{batch}"
    content = bytearray(entry.read_bytes())
    struct.pack_into(">H", content, len(content) - 24, 3)
    struct.pack_into(">I", content, len(content) - 12, google_crc32c.value(bytes(content[-68:-12])))
    entry.write_bytes(content)


@pytest.mark.parametrize("command", READING)
def test_inspection_writes_nothing(written: WrittenCheckpoint, command: tuple[str, ...]) -> None:
    def state() -> list[tuple[Path, int]]:
        return [(path, path.stat().st_mtime_ns) for path in sorted(written.root.rglob("*"))]

    before = state()
    result = run(written.root, command)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert state() == before


def test_rows_come_in_every_format(written: WrittenCheckpoint) -> None:
    lines = run(written.root, ("log",), "--format", "jsonl").output.splitlines()
    assert [json.loads(line)["batch"] for line in lines] == list(range(6))
    assert run(written.root, ("log",), "--output", "json").output.splitlines() == lines
    table = run(written.root, ("log",), "--format", "csv").output.splitlines()
    assert table[0].startswith("batch,committed_at,bytes,has_log")
    assert len(table) == 7
    content = run(written.root, ("log", "--segments"), "--format", "arrow").stdout_bytes
    assert pa.ipc.open_stream(content).read_all().num_rows == 2 * 6 + 4
    content = run(written.root, ("ls", "stores"), "--format", "parquet").stdout_bytes
    assert pq.read_table(io.BytesIO(content)).num_rows == 2
    text = run(written.root, ("ls",)).output.splitlines()
    assert text[0].split()[:2] == ["operator", "partition"]
    assert len(text) == 3


@pytest.mark.parametrize("table", SHOWN)
def test_the_rows_of_each_table_are_the_same_in_each_format_of_text(written: WrittenCheckpoint, table: str) -> None:
    assert run(written.root, ("pin", "--for", "1h")).exit_code == 0
    place = written.root.parent if table == "queries" else written.root
    lines = {
        form: run(place, ("ls", table), "--format", form).output.splitlines() for form in ("jsonl", "csv", "table")
    }
    rows = [json.loads(line) for line in lines["jsonl"]]
    assert rows
    assert len(lines["table"]) == len(lines["csv"]) == 1 + len(rows)
    assert [row["files"] for row in csv.DictReader(lines["csv"]) if "files" in row] == [
        str(row["files"]) for row in rows if "files" in row
    ]


def test_an_entry_is_shown_with_its_segments(written: WrittenCheckpoint) -> None:
    text = run(written.root, ("log", "--batch", "4")).output
    assert "host" in text
    assert "driver.example" in text
    assert text.count(".sst") == 2
    assert "0/1/5.changelog" in text
    result = run(written.root, ("log", "--batch", "9"))
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert "has no commit entry of batch 9; it has those of batches 0 to 5" in result.output


@pytest.mark.parametrize(
    ("change", "why"),
    [(cut, "it does not end in a trailer: it was cut off"), (of_a_later_release, "understanding format version 3")],
)
@pytest.mark.parametrize(
    "command",
    [("log", *more) for more in ((), ("--format", "jsonl"), ("--batch", "2"), ("--segments",))]
    + [("log", "--batch", "2", "--format", "jsonl")],
)
def test_an_entry_that_cannot_be_read_is_shown_and_is_an_exit_code(
    written: WrittenCheckpoint,
    command: tuple[str, ...],
    change: Callable[[WrittenCheckpoint, int], None],
    why: str,
) -> None:
    change(written, 2)
    result = run(written.root, command)
    assert result.exit_code == console.DAMAGED
    assert why in result.output
    assert "Traceback" not in result.output


def test_show_prints_claim_times_and_sizes(written: WrittenCheckpoint) -> None:
    cut(written, 2)
    text = run(written.root, ("show",)).output
    assert "newest claim     epoch 1, run cccccccc-0000-4000-8000-000000000003 on driver.example, since" in text
    assert "damaged entries  1; see dstl verify" in text
    assert "oldest snapshot  version 5" in text
    assert "2 changelogs of 80 B, 1 for the store with most" in text
    found = json.loads(run(written.root, ("show",), "--output", "json").output)
    assert found["recovery"]["changelogs"] == 2
    assert found["sizes"]["data file"]["objects"] == 2


def test_show_tells_the_newest_claim_from_the_run_that_committed_last(written: WrittenCheckpoint) -> None:
    assert "s ago; it has committed the newest batch\n" in run(written.root, ("show",)).output
    written.epoch = 2
    written.claim(first=7)
    text = run(written.root, ("show",)).output
    assert "committed by     epoch 1, run cccccccc-0000-4000-8000-000000000003 on driver.example\n" in text
    assert "newest claim     epoch 2, run cccccccc-0000-4000-8000-000000000003 on driver.example, since" in text
    assert "s ago; no batch of it is committed\n" in text
    # As one of stock Spark, or of a repartition.
    (written.root / "commits/7").write_text('v1\n{"nextBatchWatermarkMs":0}')
    assert "s ago; the newest batch names no run\n" in run(written.root, ("show",)).output


def test_checkpoints_in_a_directory_are_listed_as_queries(tmp_path: Path, written: WrittenCheckpoint) -> None:
    other = WrittenCheckpoint(tmp_path / "other").begin()
    text = run(tmp_path, ("ls",)).output
    assert str(written.root) in text
    assert str(other.root) in text
    result = run(tmp_path / "q/commits", ("ls",))
    assert result.exit_code == 1
    assert "there is no checkpoint at" in result.output


def test_of_several_queries_those_that_can_be_read_are_listed(
    tmp_path: Path, written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = WrittenCheckpoint(tmp_path / "a-damaged-one").begin()
    (other.root / "metadata").write_bytes(b"\xff")
    (tmp_path / "private").mkdir()
    size = Storage.size

    def refuse(storage: Storage, name: str) -> int | None:
        if name == "private/metadata":
            raise UnreadableStorage("no permission")
        return size(storage, name)

    # Root may read everything.
    monkeypatch.setattr(Storage, "size", refuse)
    for words in (("ls",), ("ls", "queries")):
        result = run(tmp_path, words, "--format", "jsonl")
        assert result.exit_code == 1
        assert [json.loads(line)["path"] for line in result.stdout.splitlines()] == [str(written.root)]
        assert f"Error: {other.root}/metadata is not what Spark writes" in result.stderr
        assert f"Error: {tmp_path}/private is not a query's checkpoint" in result.stderr


def test_a_checkpoint_without_batches_is_shown(tmp_path: Path) -> None:
    empty = WrittenCheckpoint(tmp_path / "q").begin()
    for command in (("ls",), ("show",), ("log",), ("ls", "versions")):
        result = run(empty.root, command)
        assert result.exit_code == 0, result.output


def test_a_pipe_that_is_closed_early_is_no_error(written: WrittenCheckpoint) -> None:
    written.batches(range(6, 200))
    command = f"{sys.executable} -m spark_dstl log {written.root} --segments --format jsonl | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["batch"] == 0
    assert done.stderr == ""


# What click prints, what is smaller than a buffer, and what is larger.
PRINTING = (
    "--help", "log --help", "config --no-jar", "watch --once {progress}", "report {progress} --output -", "show {q}",
    "log {q} --format jsonl", "log {q} --segments --format arrow", "log {q} --segments --format parquet",
)  # fmt: skip


@pytest.fixture(scope="module")
def to_print(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint, and a file of progress."""
    work = tmp_path_factory.mktemp("printed")
    written = WrittenCheckpoint(work / "q").begin().batches(range(100))
    lines = [json.dumps(sample(batch, operator(10, dstlLogBytes=9000))) for batch in range(10)]
    (work / "progress.jsonl").write_text("\n".join([*lines, ""]))
    return {"q": written.root, "progress": work / "progress.jsonl"}


@pytest.mark.parametrize("command", PRINTING)
def test_an_output_that_cannot_be_written_is_an_error_in_one_line(to_print: dict[str, Path], command: str) -> None:
    words = [sys.executable, "-m", "spark_dstl", *command.format_map(to_print).split()]
    # Without a buffer no later flush fails.
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=env)
    said = "Error: standard output could not be written: No space left on device. Send it to another place\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.parametrize("command", PRINTING)
def test_a_pipe_that_is_closed_ends_a_command_without_a_message(to_print: dict[str, Path], command: str) -> None:
    words = [sys.executable, "-m", "spark_dstl", *command.format_map(to_print).split()]
    env = {**os.environ, "PYTHONUNBUFFERED": ""}
    read, closed = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(words, stdout=closed, stderr=subprocess.PIPE, text=True, check=False, env=env)
    finally:
        os.close(closed)
    assert (done.returncode, done.stderr) == (0 if command.startswith("watch") else 141, "")


@pytest.mark.parametrize("command", ["ls", "log --format jsonl", "log --format parquet", "show --output json"])
def test_a_command_runs_without_standard_output(written: WrittenCheckpoint, command: str) -> None:
    words = f"{sys.executable} -m spark_dstl {command} {written.root} >&-"
    done = subprocess.run(words, shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_binary_rows_are_refused_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(click.UsageError, match="redirect it to a file") as refused:
        print_rows("parquet", pa.table({"n": [1]}))
    assert refused.value.exit_code == 2


def test_progress_is_shown_on_a_terminal_after_a_second(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with ProgressLine(clock=lambda: now[0]) as shown:
        shown("Reading", 1, 10)
        assert capsys.readouterr().err == ""
        now[0] = 1.5
        shown("Reading", 10, 10)
    assert "Reading" in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with ProgressLine(clock=lambda: now[0]) as shown:
        now[0] = 9.0
        shown("Reading", 3, 10)
    out, err = capsys.readouterr()
    assert (out, "Reading" in err) == ("", False)


@pytest.mark.usefixtures("no_packages")
def test_without_rich_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with ProgressLine(clock=iter(range(0, 100, 10)).__next__) as shown:
        shown("Reading", 1, 10)


@pytest.mark.usefixtures("no_packages")
def test_without_pyarrow_the_error_names_the_package_to_install(written: WrittenCheckpoint) -> None:
    result = run(written.root, ("show",))
    assert result.exit_code == 1
    assert 'pip install "spark-dstl[inspect]"' in result.output
    assert isinstance(dstl("--debug", "show", written.root).exception, MissingPackage)


def test_standard_output_may_lack_characters(tmp_path: Path) -> None:
    written = WrittenCheckpoint(tmp_path / "中").begin()
    written.batch(0)
    (written.root / "commits/文").touch()
    runner = CliRunner(charset="latin-1")
    assert "/\\u4e2d\n" in runner.invoke(main, ["show", str(written.root)]).stdout
    assert "commits/\\u6587 " in runner.invoke(main, ["ls", str(written.root), "objects"]).stdout
    result = runner.invoke(main, ["ls", str(written.root), "objects", "--format", "csv"])
    assert "commits/文" in result.stdout_bytes.decode("utf-8")


def test_a_path_of_unknown_characters_is_named() -> None:
    result = dstl("ls", "/checkpoints/\udcc3")
    assert (result.exit_code, "'/checkpoints/\\udcc3' has bytes that are no characters" in result.output) == (1, True)


@pytest.mark.parametrize("options", [(), ("--segments",), ("--output", "json")])
def test_an_entry_that_the_query_deletes_before_it_is_read_is_named(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """It is not one without content."""

    def listed_and_deleted(storage: Storage) -> dict[int, StoredObject]:
        found = entries_of(storage)
        (written.root / "commits/1").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(rows, "entries_of", listed_and_deleted)
    told = ended(1, "log", written.root, "--batch", "1", *options)
    assert "has no commit entry of batch 1; it has those of batches 0 to 5" in told.output
