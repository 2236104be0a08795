# SPDX-License-Identifier: Apache-2.0
import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from invoked import dstl, ended, succeeded

import spark_dstl
from spark_dstl.commands import Program, main
from spark_dstl.options import all_options


@pytest.fixture(autouse=True)
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "spark-dstl.jar"
    path.touch()
    monkeypatch.setenv("SPARK_DSTL_JAR", str(path))
    return path


def test_json_is_what_conf_returns() -> None:
    result = succeeded("config", "--output", "json", "--commit-timeout", "5min", "--transform-with-state")
    assert json.loads(result.output) == spark_dstl.conf(commit_timeout="5min", transform_with_state=True)


def test_spark_defaults_are_a_line_for_each_setting_as_java_reads_properties() -> None:
    lines = dstl("config", "--base-path", "/logs\\x").output.splitlines()
    expected = spark_dstl.conf(base_path="/logs\\x")
    assert [line.split()[0] for line in lines] == list(expected)
    assert [line.split()[1].replace("\\\\", "\\") for line in lines] == list(expected.values())
    assert any(line.endswith("  /logs\\\\x") for line in lines)


def test_flags_are_one_line_of_words_for_spark_submit(jar: Path) -> None:
    line = dstl("config", "--output", "flags", "--base-path", "/a directory").output
    assert line.count("\n") == 1
    words = shlex.split(line)
    expected = spark_dstl.conf(jar=False, base_path="/a directory")
    assert words == ["--jars", str(jar), *(w for key, value in expected.items() for w in ("--conf", f"{key}={value}"))]


def test_the_jar_can_be_elsewhere_or_left_out() -> None:
    assert "s3a://bucket/x.jar" in dstl("config", "--jar", "s3a://bucket/x.jar").output
    assert "spark.jars" not in dstl("config", "--no-jar").output
    ended(2, "config", "--no-jar", "--jar", "/x.jar")


def test_the_jar_is_for_the_spark_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_DSTL_JAR")
    monkeypatch.setattr("spark_dstl.configuration.jar_path", lambda spark: f"/jars/for-{spark}.jar")
    assert "/jars/for-4.3.jar" in dstl("config", "--spark", "4.3").output
    assert "/jars/for-None.jar" in dstl("config").output


def test_without_pyspark_the_error_tells_how_another_spark_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_DSTL_JAR")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = ended(1, "config")
    assert result.output.startswith("Error: PySpark is not installed")
    assert result.output.endswith("For another Spark, name its version: --spark 4.3\n")


def test_the_list_of_commands_has_whole_sentences() -> None:
    commands = dstl("--help").output.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in commands] == sorted(main.commands)
    assert all(line.endswith(".") and not line.endswith("..") for line in commands), commands


@pytest.mark.parametrize("command", main.commands)
def test_help_has_an_example_and_no_formatting_characters(command: str) -> None:
    text = dstl(command, "--help").output
    assert f"Usage: dstl {command} " in text
    assert re.search(rf"Examples?:\n +(.*\()?dstl {command} ", text)
    assert "\\b" not in text
    assert "\b" not in text


def test_every_option_is_a_flag() -> None:
    text = dstl("config", "--help").output
    for option in all_options():
        assert f"--{option.name.replace('_', '-')} " in text


def test_a_refused_value_is_an_error_of_the_command_line_with_what_is_allowed() -> None:
    assert "base_path cannot be 'logs': it must be an absolute path" in ended(2, "config", "--base-path", "logs").output
    assert "--commit-timeout" in dstl("config", "--comit-timeout", "1min").output


def test_an_error_is_one_line_unless_its_place_is_asked_for(jar: Path) -> None:
    jar.unlink()
    result = ended(1, "config")
    assert result.output == f"Error: SPARK_DSTL_JAR is set to {jar}, but there is no such file\n"
    assert isinstance(dstl("--debug", "config").exception, spark_dstl.JarNotFound)


def test_an_interrupted_command_says_no_more_and_has_its_own_exit_code() -> None:
    program = Program()

    @program.command()
    def interrupted() -> None:
        raise KeyboardInterrupt

    @program.command()
    def in_a_call() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            # As py4j does after an interrupted call.
            raise AttributeError("'GatewayConnection' object has no attribute 'shutdown_socket'")

    for command in program.commands:
        result = CliRunner().invoke(program, [command])
        assert (result.exit_code, result.output) == (130, "\nAborted!\n")


def test_the_commands_log_for_this_package_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    dstl("config")
    (handler,) = logging.root.handlers
    of = {name: handler.filter(logging.makeLogRecord({"name": name})) for name in ("spark_dstl.pins", "py4j", "root")}
    assert {name: bool(passes) for name, passes in of.items()} == {
        "spark_dstl.pins": True,
        "py4j": False,
        "root": False,
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ls", "q", "--format", "csv", "--output", "json"), "--output json is --format jsonl, and --format csv"),
        (("state", "q", "--memory", "much"), "much is not a size, such as 512m or 2g"),
        (("ls", "s3a://"), "s3a:// names no bucket"),
        (("rollback", "", "--to", "1"), "the path is empty: name a directory, . for the current one"),
    ],
)
def test_what_a_command_line_cannot_mean_is_refused_by_name(words: tuple[str, ...], said: str) -> None:
    result = dstl(*words)
    assert result.exit_code == (1 if words[1] in ("", "s3a://") else 2)
    assert said in result.output


def test_a_terminated_command_gives_back_what_it_holds() -> None:
    program = Program()
    given_back = []

    @program.command()
    def hold() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(30)
        finally:
            given_back.append("pin")

    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert CliRunner().invoke(program, ["hold"]).exit_code == 143
        assert given_back == ["pin"]
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_command_runs_in_any_thread() -> None:
    with ThreadPoolExecutor() as threads:
        assert threads.submit(dstl, "config", "--no-jar").result().exit_code == 0


def test_words_are_completed_by_the_shell() -> None:
    words = "dstl config --commit-mode a"
    completed = dstl(_DSTL_COMPLETE="bash_complete", COMP_CWORD="3", COMP_WORDS=words)
    assert completed.output == "plain,async\n"


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "spark_dstl", "--version"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output == f"dstl {spark_dstl.__version__}\n"


def test_commands_that_need_no_more_run_without_what_only_views_and_reports_need(tmp_path: Path) -> None:
    history = tmp_path / "progress.jsonl"
    history.write_text("", encoding="utf-8")
    blocked = ["pyspark", "pyarrow", "rich", "matplotlib"]
    for arguments in (["config", "--no-jar"], ["watch", "--once", str(history)], ["report", "--help"]):
        without = f"import sys; sys.modules.update(dict.fromkeys({blocked}))"
        program = f"{without}; from spark_dstl.commands import main; main({arguments})"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), arguments
