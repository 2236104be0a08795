# SPDX-License-Identifier: Apache-2.0
"""The tutorial, typed from its first line to its last.

`make test-storage` builds what its part on S3 needs, such as the wheel and a server; other runs skip that part.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT, Block, blocks

import spark_dstl
from harness import free_port
from settings import IN_FULL
from spark_dstl.release import installed_line
from terminal import Terminal

PAGE = "docs/tutorial.md"
BLOCKS = [block for block in blocks(PAGE) if block.not_run is None]
S3_HEADING = "The same on S3"
PROGRAM = next(block.text for block in BLOCKS if block.language == "python")
CACHE = Path.home() / ".cache" / "spark-dstl"
# The home directory of Java and the shell, which keeps the jars that Spark has downloaded.
HOME = CACHE / "home"
ASKED_FOR = "SPARK_DSTL_TEST_STORAGE"
# The number of characters of a log in an error.
TAIL = 4000

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture
def prepared() -> Path:
    """The wheel of this checkout, with a server for S3."""
    if not os.environ.get(ASKED_FOR):
        pytest.skip("`make test-storage` runs it: it needs Go, and fetches jars")
    if shutil.which("versitygw", path=f"{os.environ['PATH']}{os.pathsep}{CACHE / 'tools'}") is None:
        pytest.fail("no versitygw: `make test-storage` builds it")
    (wheel,) = list((ROOT / "python" / "dist").glob(f"spark_dstl-{spark_dstl.__version__}-*.whl"))
    return wheel


def environment(work: Path, wheel: Path | None = None) -> dict[str, str]:
    """The shell's variables: the wheel is installed, or else the package of this checkout; requirements are here."""
    installed = ROOT / "python" / "src" if wheel is None else work / "installed"
    if wheel is not None:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(installed)]
        subprocess.run([*pip, str(wheel)], check=True)
    HOME.mkdir(parents=True, exist_ok=True)
    path = [str(installed / "bin"), str(Path(sys.executable).parent), os.environ["PATH"], str(CACHE / "tools")]
    ours = {
        "HOME": str(HOME),
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(installed),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(work / "local"),
        "JAVA_TOOL_OPTIONS": f"-Duser.home={HOME}",
    }
    others = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", *(("SPARK_DSTL_JAR",) if wheel else ()))
    return {name: value for name, value in os.environ.items() if name not in others} | ours


class Page:
    """The blocks of a part of the page, which the test uses in their order."""

    def __init__(self, terminal: Terminal, work: Path, on_s3: bool = False) -> None:
        self._terminal = terminal
        self._work = work
        self._port = str(free_port())
        self.left = [block for block in BLOCKS if (block.heading == S3_HEADING) == on_s3]

    def next(self, language: str) -> Block:
        block = self.left.pop(0)
        assert block.language == language, f"{block.place}: {block.language}, where the test has {language} next"
        return block

    def types(self) -> str:
        """Run the next block."""
        return self._terminal.types(self.next("sh").text.replace("7070", self._port))

    def sees(self, shown: str) -> None:
        """Check that the output contains the next block."""
        block = self.next("text")
        assert pattern(block).search(shown), f"{block.place}: no\n{block.text}in\n{shown}"

    def waits_for(self, log: str) -> None:
        """Wait until a program's log contains the next block."""
        block = self.next("text")
        path = self._work / log

        def text() -> str:
            return path.read_text(encoding="utf-8", errors="replace")

        try:
            seen = pattern(block)
            ended = "Traceback (most recent call last)"
            self._terminal.wait_until(lambda: bool(seen.search(text())) or ended in text(), f"{block.place} in {log}")
            assert seen.search(text()), f"the program has ended before {block.place}"
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{text()[-TAIL:]}") from None


def pattern(block: Block) -> re.Pattern[str]:
    """A pattern for the lines of a block in their order; an ellipsis stands for any text."""
    lines = (".*?".join(map(re.escape, line.split("…"))) for line in block.text.splitlines())
    return re.compile(r"(?s:.*?)".join(lines))


def changed(replacement: str, *lines: str) -> str:
    """The program with other lines in the place of those that begin with one of `lines`."""
    found = [line for line in PROGRAM.splitlines() if line.startswith(lines)]
    assert len(found) >= len(lines)
    return "\n".join(
        replacement if line == found[0] else line for line in PROGRAM.splitlines() if line not in found[1:]
    )


@pytest.mark.skipif(not IN_FULL, reason="takes minutes; the notebook has the same query")
@pytest.mark.skipif(not installed_line().converts, reason="the tutorial has a repartition, which this Spark refuses")
def test_the_tutorial_works_as_written(tmp_path: Path) -> None:
    with Terminal(tmp_path, environment(tmp_path)) as terminal:
        page = Page(terminal, tmp_path)
        (tmp_path / "clicks.py").write_text(page.next("python").text, encoding="utf-8")
        page.types()
        page.waits_for("logged.log")
        page.types()
        page.waits_for("again.log")
        page.sees(page.types())
        page.sees(page.types())
        page.sees(page.types())
        (tmp_path / "look.py").write_text(page.next("python").text, encoding="utf-8")
        page.sees(page.types())
        page.waits_for("again.log")
        page.types()
        page.waits_for("plain.log")
        page.sees(page.types())
        check_continuation(batches(tmp_path / "logged.log"), batches(tmp_path / "again.log"))
        page.sees(page.types())
        check_continuation(batches(tmp_path / "again.log"), batches(tmp_path / "once.log"))
        page.types()
        page.waits_for("fewer.log")
        # The repartition takes the number of a batch.
        check_continuation(batches(tmp_path / "once.log"), batches(tmp_path / "fewer.log"), between=1)
        page.types()
        stock = changed(page.next("python").text, "options", "spark =", "spark.streams")
        (tmp_path / "stock.py").write_text(stock, encoding="utf-8")
        page.types()
        page.waits_for("stock.log")
        check_continuation(batches(tmp_path / "fewer.log"), batches(tmp_path / "stock.log"))
        assert not page.left
    for log in ("logged.log", "again.log", "plain.log", "fewer.log"):
        said = (tmp_path / log).read_text(encoding="utf-8")
        assert said.count("simulate.slowStorage is set, which is for trials and not for production") == 1
    changelogs = {of: list((tmp_path / of / "state").rglob("*.changelog")) for of in ("logged", "plain", "exported")}
    assert [bool(found) for found in changelogs.values()] == [False, True, True]


def test_the_tutorial_on_s3_works_as_written(tmp_path: Path, prepared: Path) -> None:
    with Terminal(tmp_path, environment(tmp_path, prepared)) as terminal:
        assert str(tmp_path) in terminal.types("python -c 'import spark_dstl; print(spark_dstl.jar_path())'")
        page = Page(terminal, tmp_path, on_s3=True)
        page.types()
        program = changed(page.next("python").text, "builder", "options", "spark =", "spark.streams")
        (tmp_path / "s3.py").write_text(program, encoding="utf-8")
        page.types()
        page.waits_for("s3-query.log")
        page.sees(page.types())
        page.types()
        page.waits_for("s3-again.log")
        page.types()
        assert not page.left
        check_continuation(batches(tmp_path / "s3-query.log"), batches(tmp_path / "s3-again.log"))
        said = "".join((tmp_path / f"s3-{name}.log").read_text(encoding="utf-8") for name in ("query", "again"))
        assert "does not create objects exclusively" not in said
    bucket = tmp_path / "s3/my-bucket/checkpoints"
    changelogs = [list((bucket / of / "state").rglob("*.changelog")) for of in ("clicks", "clicks-stock")]
    assert [bool(found) for found in changelogs] == [False, True]


def batches(log: Path) -> list[tuple[int, int]]:
    """The number and the total of clicks of each batch whose whole table is in a program's log."""
    parts = re.split(r"^Batch: (\d+)$", log.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [
        (int(number), sum(map(int, re.findall(r"^\| +\d\| +(\d+)\|$", table, re.MULTILINE))))
        for number, table in zip(parts[::2], parts[1::2], strict=True)
        if table.count("+----+") > 2
    ]


def check_continuation(before: list[tuple[int, int]], after: list[tuple[int, int]], between: int = 0) -> None:
    """Check that the first batch follows the last committed one, with others between, and that totals continue."""
    last = dict(before)
    number, total = after[0]
    assert number - between - 1 in last
    assert total >= last[number - between - 1] > 0
    assert last.get(number, total) == total
