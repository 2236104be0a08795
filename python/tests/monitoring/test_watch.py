# SPDX-License-Identifier: Apache-2.0
import fcntl
import io
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timezone
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from invoked import dstl
from progress_samples import operator, progress
from rich.console import Console

from spark_dstl import InvalidProgress, MissingPackage, NotWatchable
from spark_dstl.commands.console import keys
from spark_dstl.commands.watch import polled
from spark_dstl.monitoring.live_view import Board
from spark_dstl.monitoring.readable import readable, readable_bytes, sparkline
from spark_dstl.monitoring.sources import MetricsServlet, ProgressFile, Sample

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
GAUGES = {
    "app-1.driver.dstl.commits.count": 43,
    "app-1.driver.dstl.commits.retainedBytes": 1_790_000,
    "app-1.driver.dstl.requests.create.hedges": 2,
    "app-1.driver.dstl.requests.put.hedges": 3,
    "app-1.driver.jvm.heap.used": 1,
}


watch = partial(dstl, "watch")


@contextmanager
def serving(status: int, body: bytes) -> Iterator[str]:
    """A server that always answers the same; yields its address, and checks that it was asked for the servlet."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
    assert set(asked) <= {"/metrics/json/", "/proxy/app-1/metrics/json/"}


def servlet(gauges: dict[str, int]) -> bytes:
    return json.dumps({"gauges": {name: {"value": value} for name, value in gauges.items()}}).encode()


def write(file: Path, *batches: int) -> None:
    lines = (json.dumps(progress(batch, operator(10, dstlLogBytes=9000))) for batch in batches)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def batches(samples: list[Sample]) -> list[int | None]:
    return [sample.figures["batch"] for sample in samples]


def test_a_file_of_progress_is_followed_batch_by_batch(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    write(file, 0, 1)
    source = ProgressFile(file)
    assert batches(source.poll()) == [0, 1]
    assert batches(source.poll()) == []
    with file.open("a", encoding="utf-8") as end:
        whole = json.dumps(progress(2)) + "\n"
        end.write(whole[:100])
        end.flush()
        assert batches(source.poll()) == []
        end.write(whole[100:] + "{\n")
        end.flush()
        with pytest.raises(InvalidProgress, match="line 4:"):
            source.poll()
    write(file, 7)
    assert batches(source.poll()) == [7]
    source.close()


def test_a_rotated_file_is_followed_from_its_last_line_to_the_first_of_the_next(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    write(file, 0)
    with closing(ProgressFile(file)) as source:
        assert batches(source.poll()) == [0]
        with file.open("a", encoding="utf-8") as end:
            end.write(json.dumps(progress(1)) + "\n")
        file.rename(tmp_path / "progress.jsonl.1")
        assert batches(source.poll()) == [1]
        assert batches(source.poll()) == []
        # Longer than the one before.
        write(file, 2, 3, 4)
        assert batches(source.poll()) == [2, 3, 4]
        file.unlink()
        write(file, 5, 6, 7, 8)
        assert batches(source.poll()) == [5, 6, 7, 8]
        with file.open("a", encoding="utf-8") as end:
            end.write("{\n")
        with pytest.raises(InvalidProgress, match="line 5:"):
            source.poll()


def test_a_file_may_be_missing_for_long_once_it_was_read(tmp_path: Path) -> None:
    """A query with a long trigger creates it again with its next batch."""
    file = tmp_path / "progress.jsonl"
    write(file, 0)
    with closing(ProgressFile(file)) as source:
        rounds = polled(source, 2, lambda _: None, once=False)
        assert batches(next(rounds)) == [0]
        file.rename(tmp_path / "progress.jsonl.1")
        assert [next(rounds) for _ in range(10)] == [[]] * 10
        write(file, 1)
        assert batches(next(rounds)) == [1]


def test_a_sample_of_a_driver_sums_over_operations() -> None:
    with serving(200, servlet(GAUGES)) as address:
        for place in (address, f"{address}/", f"{address}/metrics/json/", f"{address}/proxy/app-1"):
            (sample,) = MetricsServlet(place, lambda: AT).poll()
            assert (sample.of, sample.at) == ("app-1.driver", AT)
            assert (sample.figures["commits"], sample.figures["hedges"]) == (43, 5)
            assert sample.figures["log_bytes"] == 1_790_000
            assert sample.figures["barrier_wait_p50_ms"] is None


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (404, b"", "HTTP status 404"),
        (200, b"<html>", "not an answer of Spark's metrics servlet"),
        (200, b"[]", "not an answer of Spark's metrics servlet"),
        (200, b'{"gauges": {"a.dstl.b": {"value": "x"}}}', "not an answer of Spark's metrics servlet"),
        (200, b'{"gauges": {"a.dstl.b": {"value": Infinity}}}', "not an answer of Spark's metrics servlet"),
        (200, servlet({"app-1.driver.jvm.heap.used": 1}), "no metrics of the log"),
    ],
)
def test_another_server_is_an_error_in_one_line_with_its_address(status: int, body: bytes, problem: str) -> None:
    with serving(status, body) as address:
        result = watch(address)
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: {address}/metrics/json/: ")
    assert problem in result.output
    assert result.output.count("\n") == 1


@pytest.mark.parametrize("address", ["ftp://localhost:4040", "http://", "http://[::1", "file:///etc/passwd"])
def test_an_invalid_address_is_refused(address: str) -> None:
    assert watch(address).output == f"Error: {address} is not the address of a UI, such as http://localhost:4040\n"


@pytest.mark.parametrize("host", ["http://user:secret@localhost", "http://user:secret@[::1", "ftp://secret@localhost"])
def test_a_password_in_an_address_is_refused_and_not_repeated(host: str) -> None:
    result = watch(f"{host}:4040")
    assert result.exit_code == 1
    assert "cannot have a user or a password" in result.output
    assert "secret" not in result.output


def test_a_pipe_gets_a_line_for_each_batch_and_once_the_newest_of_each_query(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    write(file, 0, 1)
    with closing(ProgressFile(file)) as source:
        first = next(polled(source, 1, lambda _: None, once=False))
    assert batches(first) == [0, 1]
    (line,) = watch("--once", file).output.splitlines()
    assert line.split()[:3] == ["2026-01-02T03:04:05Z", "clicks", "batch=1"]
    assert "log_bytes=9000" in line
    found = json.loads(watch("--once", "--output", "json", file).output)
    assert found["figures"]["batch"] == 1
    assert found["at"] == "2026-01-02T03:04:05.678000+00:00"


def test_a_missing_file_is_an_error_that_tells_how_a_ui_is_named(tmp_path: Path) -> None:
    for place in (str(tmp_path / "absent"), "localhost:4040"):
        result = watch(place)
        assert result.exit_code == 1
        assert result.output == (
            f"Error: there is no file {place}; a driver's UI is named by its address, such as http://localhost:4040\n"
        )


class Scripted:
    """A source with given answers."""

    def __init__(self, answers: str) -> None:
        self._answers = iter(answers)

    def poll(self) -> list[Sample]:
        if next(self._answers) == "-":
            raise NotWatchable("no answer")
        return [Sample("a", AT, {"batch": 1})]


def test_a_source_may_fail_three_times_after_an_answer_and_never_before() -> None:
    waited: list[float] = []
    rounds = polled(Scripted("+---+----"), 2.5, waited.append, once=False)
    assert [len(next(rounds)) for _ in range(8)] == [1, 0, 0, 0, 1, 0, 0, 0]
    with pytest.raises(NotWatchable):
        next(rounds)
    assert waited == [2.5] * 8
    with pytest.raises(NotWatchable):
        next(polled(Scripted("-"), 2.5, waited.append, once=False))


def shown(board: Board) -> str:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(board.show())
    return console.export_text()


def test_the_live_view_shows_current_and_past_values() -> None:
    board = Board()
    for number, size in enumerate((0, 500_000, 1_000_000)):
        board.add(Sample("clicks", AT, {"batch": number, "log_bytes": size, "barrier_wait_ms": None}))
    text = shown(board)
    assert "clicks  03:04:05 UTC" in text
    assert "1.0 MB" in text
    assert "▁▅█" in text
    assert "barrier wait time" in text


@pytest.mark.parametrize("name", ["orders [eu]", "a [/b] c"])
def test_the_name_of_a_query_is_shown_as_it_is_and_is_no_command_for_the_terminal(name: str) -> None:
    board = Board()
    board.add(Sample(f"{name}\x1b[2J", AT, {"batch": 1}))
    assert f"{name} [2J  03:04:05 UTC" in shown(board)


def test_without_rich_the_error_names_the_live_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(MissingPackage, match="A live view needs the package rich"):
        Board()


def test_figures_have_their_units() -> None:
    assert [readable_bytes(of) for of in (0, 999, 1000, 1_234_567)] == ["0 bytes", "999 bytes", "1.0 kB", "1.2 MB"]
    assert (readable("barrier_wait_ms", 1200), readable("commits", 1200)) == ("1,200 ms", "1,200")
    assert readable("log_bytes", None) == "-"


def test_a_sparkline_ends_with_the_newest_value_and_distinguishes_small_ones_from_zero() -> None:
    assert sparkline([9, 0, 1, None, 100], 4) == "▁▂ █"
    assert sparkline([0, 0], 4) == "▁▁"
    assert sparkline([0, 50, 100], 4) == "▁▅█"


def _on_terminal(terminal: int) -> None:
    """Make this the terminal of a new session, whose interrupts reach the process."""
    _as_on_a_terminal()
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def _as_on_a_terminal() -> None:
    """Let interrupts end the process: what a script runs in the background ignores them, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("wait", [keys.sleep, partial(keys._wait, 0)], ids=["without keys", "for keys"])
def test_an_interrupt_that_comes_as_a_wait_begins_is_noticed_within_a_second(
    monkeypatch: pytest.MonkeyPatch, wait: Callable[[float], None]
) -> None:
    """The interpreter has looked for signals just before, and the operating system has no call to interrupt yet."""
    waits: list[float] = []

    def select(*asked: Any) -> tuple[list[int], ...]:
        waits.append(asked[3])
        return [], [], []

    monkeypatch.setattr(keys, "time", SimpleNamespace(monotonic=lambda: sum(waits), sleep=waits.append))
    monkeypatch.setattr(keys, "select", SimpleNamespace(select=select))
    wait(3600.5)
    assert sum(waits) == 3600.5
    assert max(waits) <= 1


@pytest.mark.parametrize("key", ["q", "Q", "\x03", None])
def test_a_terminal_gets_a_view_that_q_or_an_interrupt_ends_with_exit_code_0(tmp_path: Path, key: str | None) -> None:
    """The terminal turns Ctrl-C into the signal. Without a key, standard input is no terminal."""
    file = tmp_path / "progress.jsonl"
    write(file, 0, 1)
    leader, follower = pty.openpty()
    before = termios.tcgetattr(leader)
    command = [sys.executable, "-m", "spark_dstl", "watch", "--interval", "3600", str(file)]
    environment = os.environ | {"COLUMNS": "120", "LINES": "50", "TERM": "xterm"}
    with subprocess.Popen(
        command,
        stdin=follower if key else subprocess.DEVNULL,
        stdout=follower,
        stderr=subprocess.PIPE,
        env=environment,
        preexec_fn=lambda: _on_terminal(follower),
    ) as process:
        os.close(follower)
        shown = b""
        while b"log size" not in shown or b": leave" not in shown:
            shown += os.read(leader, 4096)
        if key:
            os.write(leader, b"x" + key.encode())
        else:
            process.send_signal(signal.SIGINT)
        with suppress(OSError):
            while part := os.read(leader, 4096):
                shown += part
        assert process.stderr is not None
        assert (process.wait(), process.stderr.read()) == (0, b"")
    assert termios.tcgetattr(leader) == before, "the terminal is as it was"
    os.close(leader)
    assert "█" in shown.decode()
    assert ("q: leave" if key else "Ctrl-C: leave") in shown.decode()


def test_a_closed_pipe_ends_it_without_a_message(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    write(file, *range(1000))
    command = [sys.executable, "-m", "spark_dstl", "watch", "--once", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert (process.wait(), process.stderr.read()) == (0, b"")
