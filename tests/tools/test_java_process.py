# SPDX-License-Identifier: Apache-2.0
"""The Java process that reads state: what the commands print of it, its errors, and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from invoked import dstl
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import spark_dstl
from contests import played
from copies import copied
from shared_session import Contest
from spark_dstl import JvmOptions, Selection
from spark_dstl.checkpoint import access
from spark_dstl.checkpoint.java import gateway
from spark_dstl.release import installed_line
from spark_facts import READABLE_FORMATS, REPORTS_METADATA
from width_operators import OPERATORS

if not READABLE_FORMATS:
    pytest.skip("this Spark has no readers of state", allow_module_level=True)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Contest:
    return played(spark, OPERATORS[0], tmp_path_factory.mktemp("counted"))


def test_a_condition_in_sql_selects_rows(counted: Contest) -> None:
    with spark_dstl.open(str(counted.checkpoint)) as checkpoint:
        rows = checkpoint.state().read_all().to_pylist()
        name = next(name for name, value in rows[0]["key"].items() if isinstance(value, str))
        wanted = rows[0]["key"][name]
        where = f"upper(key.{name}) = upper('{wanted}') AND partition_id >= 0"
        chosen = checkpoint.state(selection=Selection(where=where)).read_all().to_pylist()
        assert chosen
        assert chosen == [row for row in rows if row["key"][name] == wanted]
        for wrong in ("key.nosuch = 1", "no such", "count(*) > 1"):
            with pytest.raises(spark_dstl.UnreadableState):
                checkpoint.state(selection=Selection(where=wrong)).read_all()
        with pytest.raises(spark_dstl.UnreadableState, match="there is: operator 0"):
            checkpoint.state(selection=Selection(operator=7)).read_all()
        with pytest.raises(spark_dstl.CheckpointNotFound, match="no commit entry of batch 9999"):
            checkpoint.state(9999)


def test_an_error_names_the_options_for_storage_whose_client_is_missing(counted: Contest) -> None:
    missing = JvmOptions(conf={"spark.hadoop.fs.file.impl": "no.Such"})
    with (
        spark_dstl.open(str(counted.checkpoint), jvm=missing) as checkpoint,
        pytest.raises(spark_dstl.UnreadableState, match=r"Class no\.Such not found\. .*--jars, or JvmOptions\.jars"),
    ):
        checkpoint.state()


METADATA_SAID = (
    r"state/\*/_metadata/metadata .* could not be read.* No usable value"
    if REPORTS_METADATA
    else "no metadata of an operator in state/: .* damaged; `dstl verify` checks them"
)
DAMAGED_FILES = {
    "state/0/0/_metadata/schema": (b"", "state/0/0/_metadata/schema could not be read; `dstl verify` .*EOFException"),
    "state/0/_metadata/metadata": (b"v1\n{}", METADATA_SAID),
    "offsets/{newest}": (b'v1\n{"batchWatermarkMs":"x"}\n{}', "offsets/{newest} could not be read.* No usable value"),
}


@pytest.mark.parametrize("name", DAMAGED_FILES)
def test_an_error_names_the_file_of_spark_that_is_damaged(counted: Contest, tmp_path: Path, name: str) -> None:
    newest = counted.newest
    content, said = DAMAGED_FILES[name]
    damaged = copied(counted.checkpoint, tmp_path / "damaged")
    file = damaged / name.format(newest=newest)
    file.write_bytes(content)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    with spark_dstl.open(str(damaged)) as checkpoint:
        with pytest.raises(spark_dstl.UnreadableState, match=f"(?s){said.format(newest=newest)}"):
            checkpoint.state().read_all()
        if installed_line().follows:
            with (
                pytest.raises(spark_dstl.UnreadableState, match=f"(?s){said.format(newest=newest)}"),
                checkpoint.follow(newest - 1) as followed,
            ):
                list(followed.changes(waits=False))


def failing(_exception: object) -> Exception:
    raise Py4JError("no such object")


def mistaken(_exception: object) -> Exception:
    return PySparkException("of another object")


@pytest.mark.skipif(not installed_line().follows, reason="this Spark has no follower")
@pytest.mark.parametrize("converted", [failing, mistaken])
def test_an_error_is_the_own_processs_beside_a_session(
    counted: Contest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, converted: Callable[[object], Exception]
) -> None:
    """PySpark has its session's JVM convert the exceptions of all JVMs, which knows only its own objects."""
    damaged = copied(counted.checkpoint, tmp_path / "damaged")
    (damaged / "state/0/0/_metadata/schema").unlink()
    monkeypatch.setattr("pyspark.errors.exceptions.captured.convert_exception", converted)
    with (
        spark_dstl.open(str(damaged)) as checkpoint,
        pytest.raises(spark_dstl.UnreadableState, match="_metadata/schema does not exist"),
        checkpoint.follow(0) as followed,
    ):
        list(followed.changes(waits=False))


def test_the_commands_print_what_the_functions_return(counted: Contest) -> None:
    """The first is a process, which starts and ends a Java process; the others share that of the tests."""
    place = str(counted.checkpoint)
    with spark_dstl.open(place) as checkpoint:
        rows = checkpoint.state().read_all()
    command = [sys.executable, "-m", "spark_dstl", "state", place, "--format", "arrow"]
    printed = subprocess.run(command, check=True, capture_output=True, timeout=120).stdout
    assert pa.ipc.open_stream(printed).read_all() == rows
    lines = [json.loads(line) for line in dstl("state", place, "--format", "jsonl").stdout.splitlines()]
    assert [line["partition"] for line in lines] == rows.column("partition").to_pylist()
    assert len(dstl("diff", place, 0, 1, "--format", "csv").stdout.splitlines()) > 1
    assert "update" in dstl("changes", place, "--batch", 0).stdout


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


HOLD = """
import sys, time, spark_dstl
checkpoint = spark_dstl.open(sys.argv[1])
checkpoint.state()
print(checkpoint._gateway.pid, flush=True)
time.sleep(600)
"""


def test_open_checkpoints_share_a_java_process_that_ends_with_the_last(
    counted: Contest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "release", gateway.release)
    # What Java writes itself to its standard output, such as warnings, is not the port.
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xlog:gc+init:stdout")
    options = JvmOptions(memory="900m")
    with spark_dstl.open(str(counted.checkpoint), jvm=options) as one:
        with spark_dstl.open(str(counted.checkpoint), jvm=options) as other:
            assert one.state().read_all() == other.state().read_all()
            pid = one.gateway().pid
            assert other.gateway().pid == pid
            assert is_alive(pid)
        assert one.state().read_all().num_rows > 0
    assert not is_alive(pid)


def test_objects_of_a_java_process_that_has_ended_are_forgotten_without_errors(
    counted: Contest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A program may hold them longer than the checkpoint, or Python find them later."""
    monkeypatch.setattr(access, "release", gateway.release)
    with spark_dstl.open(str(counted.checkpoint), jvm=JvmOptions(memory="700m")) as checkpoint:
        left = [checkpoint.gateway().state_batch(0, {})]
    left.clear()
    assert [record.getMessage() for record in caplog.records if record.name.startswith("py4j")] == []


def test_an_open_checkpoint_survives_the_end_of_its_java_process(
    counted: Contest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where memory is short."""
    monkeypatch.setattr(access, "release", gateway.release)
    with spark_dstl.open(str(counted.checkpoint), jvm=JvmOptions(memory="800m")) as checkpoint:
        rows = checkpoint.state().read_all()
        unread = checkpoint.state()
        assert checkpoint.pins().num_rows == 1
        ended = checkpoint.gateway()._process
        ended.kill()
        ended.wait()
        assert checkpoint.state().read_all() == rows
        assert (unread.schema, checkpoint.pins().num_rows) == (rows.schema, 0)
        reader = checkpoint._reader()
        checkpoint.gateway()._process.kill()
        with pytest.raises(spark_dstl.JvmFailed, match="the process that reads state ended too early"):
            reader.batch(0)


def test_the_java_process_logs_warnings_and_no_more(counted: Contest) -> None:
    with spark_dstl.open(str(counted.checkpoint)) as checkpoint:
        checkpoint.state().read_all()
        java = checkpoint.gateway()
        log = java._gateway.jvm.org.slf4j.LoggerFactory.getLogger("a.b.C")
        log.info("a detail")
        log.warn("look here")
        assert "WARN C: look here" in java.last_words()
        assert " INFO " not in java._errors.read_text()


FORK = """
import os, sys, spark_dstl
checkpoint = spark_dstl.open(sys.argv[1])
checkpoint.state().read_all()
child = os.fork()
if not child:
    sys.exit(0)
os.waitpid(child, 0)
assert checkpoint.gateway().is_running
assert checkpoint.state().read_all().num_rows > 0
"""


def test_a_fork_that_ends_leaves_the_java_process_to_its_parent(counted: Contest) -> None:
    subprocess.run([sys.executable, "-c", FORK, str(counted.checkpoint)], check=True, timeout=120)


FORK_WITH_AN_OBJECT = """
import os, sys
from spark_dstl import JvmOptions
from spark_dstl.checkpoint.java.gateway import acquire
java = acquire(JvmOptions())._gateway
kept = java.jvm.java.util.ArrayList()
connections = list(java._gateway_client.deque)
child = os.fork()
if not child:
    del connections
    sys.exit(0)
os.waitpid(child, 0)
assert kept.size() == 0
assert connections == list(java._gateway_client.deque)
"""


def test_a_fork_that_ends_leaves_objects_and_connections_to_its_parent() -> None:
    subprocess.run([sys.executable, "-c", FORK_WITH_AN_OBJECT], check=True, timeout=120)


NAMES = """
import os, sys
from spark_dstl.checkpoint.java.gateway import Gateway, JvmOptions
before = dict(os.environ)
java = Gateway(JvmOptions())
assert java._gateway.jvm.java.io.File(sys.argv[1]).exists()
assert dict(os.environ) == before
java.close()
"""


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_the_java_process_names_the_same_files_as_python_in_any_locale(locale: str, tmp_path: Path) -> None:
    named = tmp_path / "ünï"
    named.touch()
    environment = {**os.environ, "LC_ALL": locale}
    subprocess.run([sys.executable, "-c", NAMES, str(named)], check=True, env=environment, timeout=120)


def test_an_interrupt_from_the_terminal_does_not_reach_the_java_process(counted: Contest) -> None:
    with spark_dstl.open(str(counted.checkpoint)) as checkpoint:
        assert os.getpgid(checkpoint.gateway().pid) != os.getpgid(0)


def test_the_java_process_ends_with_its_killed_parent(counted: Contest) -> None:
    command = [sys.executable, "-c", HOLD, str(counted.checkpoint)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)
