# SPDX-License-Identifier: Apache-2.0
"""Runs all checks and tests of the project in stages, each whatever became of the others, and ends with their count.

Everything is tested with Spark 4.2, the default. With `--all` it is tested with each version of Spark that there is a
build for, and with `--lines 4.1 4.0` with these alone.

The last line is `N passed, N failed`. It counts tests, and as one failure each: a stage of checks that fails, a runner
that fails without naming a test, and a runner that ran no test at all. The exit code is 0 only if nothing failed.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from patiently import run, say
from spark_lines import default_line, lines

ROOT = Path(__file__).resolve().parents[1]
PYTHON = str(ROOT / ".venv" / "bin" / "python")
REPORTS = ROOT / ".build" / "test-reports"
MESSAGE_LIMIT = 300
SLOWEST = 20
DEFAULT_LINE = default_line()
# By line, the Scala of its distribution.
SCALA = lines()
# On Spark 3.5 there are neither readers of state nor snapshots in the log, on which most of the others are built.
OF_3_5 = (
    *(f"queries/test_{of}" for of in ("kill", "deployment", "operators", "older_sparks", "speculation", "submit")),
    *(f"queries/test_{of}" for of in ("installation", "stop_and_damage", "s3_connector")),
    *("tools/test_monitoring", "tools/test_export"),
    *(f"pages/test_{of}" for of in ("cookbook", "cookbook_files", "cookbook_surroundings")),
)
FILES = {"3.5": tuple(f"tests/{of}.py" for of in OF_3_5)}
# More end-to-end tests than processors: each waits much, for processes to start and for what it has killed or paused.
AT_A_TIME = ("-n", "3", "--dist", "worksteal")
# Tests start hundreds of Python processes. Without a cache of bytecode, which containers often turn off, each compiles
# some 300 modules.
BYTECODE_CACHE = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(ROOT / ".build" / "bytecode")}
COUNT_FILE = ROOT / ".build" / "test-count"


@dataclass(frozen=True)
class Outcome:
    """What one stage came to: numbers of tests, and a line for each failed test or check."""

    passed: int = 0
    failed: int = 0
    failures: tuple[str, ...] = ()


# What is done under which name.
Stage = tuple[str, Callable[[], Outcome]]


def main() -> int:
    """Run all stages, print the count and return the exit code."""
    os.chdir(ROOT)
    arguments = argument_parser().parse_args()
    tested = arguments.lines or (list(SCALA) if arguments.all else [DEFAULT_LINE])
    if arguments.all or arguments.lines:
        # Adds the tests that resemble another one.
        os.environ["SPARK_DSTL_TEST_WHOLE"] = "1"
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    COUNT_FILE.unlink(missing_ok=True)
    outcomes = {}
    seconds = {}
    with ExitStack() as running:
        environment: Stage = ("Python environment", partial(check, "Python environment", "make", "venv"))
        stages = list(other_lines(tested))
        if DEFAULT_LINE in tested:
            compiler = running.enter_context(background("project/sbt", "-Dsbt.supershell=false", "Test/compile"))
            stages = stages_of_default(running, compiler, stages)
        for name, stage in (environment, *stages):
            say(f"{name} ...")
            began = time.monotonic()
            outcomes[name] = stage()
            seconds[name] = time.monotonic() - began
    for name, outcome in outcomes.items():
        say(f"{name}: {outcome.passed} passed, {outcome.failed} failed, in {seconds[name]:.0f} s")
    for line in slowest():
        say(line)
    # At the end, so that the last lines of a long log have them.
    for failure in (failure for outcome in outcomes.values() for failure in outcome.failures):
        say(f"FAILED {failure}")
    passed = sum(outcome.passed for outcome in outcomes.values())
    failed = sum(outcome.failed for outcome in outcomes.values())
    count = f"{passed} passed, {failed} failed"
    COUNT_FILE.write_text(f"{count}\n", encoding="utf-8")
    print(count, flush=True)
    return 1 if failed or not passed else 0


def check(name: str, *command: str) -> Outcome:
    """Run a check that either holds or does not; it is no test, so it counts only when it fails."""
    return Outcome() if run(name, command) == 0 else Outcome(failed=1, failures=(name,))


def stages_of_default(running: ExitStack, compiler: "subprocess.Popen[bytes]", others: list[Stage]) -> list[Stage]:
    """Return what concerns no Spark or the default one, with the stages of others before the slowest."""
    return [
        ("format, style and types", lambda: lint(running)),
        ("Python unit tests", lambda: pytest("Python unit tests", "python/tests", "-n", "2")),
        ("Scala", lambda: scala(compiler)),
        *others,
        ("end-to-end tests", lambda: pytest("end-to-end tests", "tests", *AT_A_TIME)),
    ]


def argument_parser() -> argparse.ArgumentParser:
    """Say what one may ask for."""
    parser = argparse.ArgumentParser(description="Run all checks and tests, and count them.")
    parser.add_argument("--all", action="store_true", help="with each version of Spark that there is a build for")
    parser.add_argument("--lines", nargs="+", choices=SCALA, metavar="LINE", help="with these alone")
    return parser


def other_lines(tested: Sequence[str]) -> Iterator[Stage]:
    """Yield the stages of these lines of Spark, other than the default."""
    for line in tested:
        if line != DEFAULT_LINE:
            name = f"end-to-end tests with Spark {line}"
            yield f"environment with Spark {line}", partial(check, f"Spark {line}", "make", "spark", f"SPARK={line}")
            yield f"Scala with Spark {line}", partial(scala_of_line, line)
            yield name, partial(pytest, name, *FILES.get(line, ("tests",)), *AT_A_TIME, line=line)
    if "3.5" in tested:
        yield "Spark 3.5 with Scala 2.13", partial(scala_of_line, "3.5", scala="2.13")


def pytest(name: str, *options: str, line: str = DEFAULT_LINE) -> Outcome:
    """Run pytest with these trees and options."""
    report = REPORTS / f"{name.replace(' ', '-')}.xml"
    version = build_version()
    environment = {
        variable: str(ROOT / "target" / f"{name}-spark{line}_{SCALA[line]}-{version}.jar")
        for variable, name in (("SPARK_DSTL_JAR", "spark-dstl"), ("SPARK_DSTL_TEST_JAR", "spark-dstl-test"))
    }
    python = PYTHON if line == DEFAULT_LINE else str(ROOT / ".build" / f"spark-{line}" / "bin" / "python")
    command = (python, "-m", "pytest", *options, f"--junitxml={report}")
    code = run(name, command, BYTECODE_CACHE | environment)
    outcome = read_reports([report])
    return Outcome(outcome.passed, outcome.failed or int(code != 0 or outcome.passed == 0), outcome.failures)


def lint(running: ExitStack) -> Outcome:
    """Check Python on one processor; on another, make the class archive that all end-to-end tests would wait for."""
    running.enter_context(background("nice", PYTHON, str(ROOT / "tests" / "support" / "class_archive.py")))
    return check("format, style and types", "make", "lint-python")


@contextmanager
def background(*command: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command meanwhile without its output: what fails in it fails again in a later stage, or costs only time.

    JVM modules are compiled as Python's packages wait for the network.
    """
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)


def scala(compiler: "subprocess.Popen[bytes]") -> Outcome:
    """Check and test the JVM modules, and build the jars that the end-to-end tests use."""
    if compiler.poll() is None:
        say("Scala: waiting for the compiler")
        compiler.wait()
    verdicts = ROOT / "target" / "verify.txt"
    verdicts.unlink(missing_ok=True)
    for stale in ROOT.glob("jvm/*/target/test-reports"):
        shutil.rmtree(stale)
    for stale in ROOT.glob(f"target/spark-dstl*-spark{DEFAULT_LINE}_*.jar"):
        stale.unlink()
    stamp = ROOT / ".build" / f"jar-{DEFAULT_LINE}"
    begun = stamp.with_name(f"{stamp.name}.begun")
    begun.touch()
    code = run("Scala", ("project/sbt", "-Dsbt.supershell=false", "verify"))
    tests = read_reports(ROOT.glob("jvm/*/target/test-reports/*.xml"))
    verified = verdicts.read_text(encoding="utf-8").splitlines() if verdicts.exists() else []
    if "jar ok" in verified:
        begun.replace(stamp)  # what `make jar` would have left behind
    broken = [line.removesuffix(" failed") for line in verified if line.endswith(" failed")]
    failed = tests.failed + sum(not name.startswith("tests of ") for name in broken)
    # Broken without a failed test to show for it: a module did not compile, a test JVM died, sbt did not start.
    untold = code != 0 or bool(broken) or tests.passed == 0
    return Outcome(tests.passed, failed or int(untold), (*tests.failures, *broken))


def scala_of_line(line: str, scala: str = "") -> Outcome:
    """Run all suites that tie the log to another Spark, and build the jars for it.

    With `scala` it is that Spark with another version of Scala than its default.
    """
    pattern = f"jvm/*/target/spark{line}{scala and f'_{scala}'}/test-reports"
    for stale in ROOT.glob(pattern):
        shutil.rmtree(stale)
    tests = ["spark/test"]
    if (scala or SCALA[line]) != SCALA[DEFAULT_LINE]:
        # The modules without Spark are built with that Scala as well.
        tests += ["log/test", "sim/test"]
    settings = (f"-Dspark.line={line}", *([f"-Dspark.scala={scala}"] if scala else []))
    sbt = ("project/sbt", "-Dsbt.supershell=false", *settings)
    jars = ("jar", "testJar", "s3a/connectorJars")
    # Only a build for that Spark contains its shims.
    code = run(f"Scala {scala} with Spark {line}".replace("  ", " "), (*sbt, "spark/scalafmtCheckAll", *jars, *tests))
    outcome = read_reports(ROOT.glob(f"{pattern}/*.xml"))
    return Outcome(outcome.passed, outcome.failed or int(code != 0 or outcome.passed == 0), outcome.failures)


def read_reports(reports: Iterable[Path]) -> Outcome:
    """Add up reports in JUnit's format; one that is missing or cut off adds nothing."""
    passed = failed = 0
    failures: list[str] = []
    for report in reports:
        try:
            root = ElementTree.parse(report).getroot()
        except (OSError, ElementTree.ParseError):
            continue
        for suite in root.iter("testsuite"):
            bad = sum(int(suite.get(kind, "0")) for kind in ("failures", "errors"))
            failed += bad
            passed += max(0, int(suite.get("tests", "0")) - bad - int(suite.get("skipped", "0")))
        failures += [describe(case) for case in root.iter("testcase") if problem_of(case) is not None]
    return Outcome(passed, failed, tuple(failures))


def slowest() -> list[str]:
    """Name the suites of the JVM modules and the end-to-end tests that took longest."""
    took = []
    for report in [*ROOT.glob("jvm/*/target/test-reports/*.xml"), *REPORTS.glob("end-to-end*.xml")]:
        try:
            root = ElementTree.parse(report).getroot()
        except (OSError, ElementTree.ParseError):
            continue
        of_suite = root.tag == "testsuite"
        for timed in [root] if of_suite else root.iter("testcase"):
            name = timed.get("name") if of_suite else f"{timed.get('classname')}: {timed.get('name')}"
            took.append((float(timed.get("time", "0")), name))
    return [f"{seconds:.0f} s: {name}" for seconds, name in sorted(took, reverse=True)[:SLOWEST]]


def problem_of(case: ElementTree.Element) -> ElementTree.Element | None:
    """Return what a test case failed with, if it failed."""
    return next((child for child in case if child.tag in ("failure", "error")), None)


def describe(case: ElementTree.Element) -> str:
    """Say in one line which test failed and with what."""
    problem = problem_of(case)
    message = (problem.get("message") or problem.text or "") if problem is not None else ""
    summary = " ".join(message.split())[:MESSAGE_LIMIT]
    return f"{case.get('classname')}: {case.get('name')}: {summary}"


def build_version() -> str:
    """Return the version that the build gives to its jars."""
    match = re.search(r'^ThisBuild / version := "(.+)"$', Path("build.sbt").read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise ValueError("build.sbt sets no version")
    return match[1]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
