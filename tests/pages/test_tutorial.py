# SPDX-License-Identifier: Apache-2.0
"""The tutorial, typed from its first line to its last, with a local S3-compatible server.

`make test-storage` builds its requirements, such as the wheel, and runs it; other runs skip it.
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
from settings import COMPILER
from terminal import Terminal

PAGE = "docs/tutorial.md"
CACHE = Path.home() / ".cache" / "spark-dstl"
# The home directory of Java and the shell, which keeps the jars that Spark has downloaded.
HOME = CACHE / "home"
ASKED_FOR = "SPARK_DSTL_TEST_STORAGE"
# The number of characters of a log in an error.
TAIL = 4000

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture
def prepared() -> Path:
    """The wheel of this checkout."""
    if not os.environ.get(ASKED_FOR):
        pytest.skip("`make test-storage` runs it: it needs Go, and fetches jars")
    if shutil.which("versitygw", path=f"{os.environ['PATH']}{os.pathsep}{CACHE / 'tools'}") is None:
        pytest.fail("no versitygw: `make test-storage` builds it")
    (wheel,) = list((ROOT / "python" / "dist").glob(f"spark_dstl-{spark_dstl.__version__}-*.whl"))
    return wheel


def environment(work: Path, wheel: Path) -> dict[str, str]:
    """The shell's variables: the wheel is installed, its requirements are those of this environment."""
    installed = work / "installed"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-index",
            "--target",
            str(installed),
            str(wheel),
        ],
        check=True,
    )
    HOME.mkdir(parents=True, exist_ok=True)
    path = [str(installed / "bin"), str(Path(sys.executable).parent), os.environ["PATH"], str(CACHE / "tools")]
    ours = {
        "HOME": str(HOME),
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(installed),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(work / "local"),
        "JAVA_TOOL_OPTIONS": f"-Duser.home={HOME} {COMPILER}",
    }
    of_aws = ("SPARK_DSTL_JAR", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3")
    return {name: value for name, value in os.environ.items() if name not in of_aws} | ours


class Page:
    """The blocks of the page, which the test uses in their order."""

    def __init__(self, terminal: Terminal, work: Path, port: int) -> None:
        self._terminal = terminal
        self._work = work
        self._port = str(port)
        self.left = [block for block in blocks(PAGE) if block.not_run is None]

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


def test_the_tutorial_works_as_written(tmp_path: Path, prepared: Path) -> None:
    with Terminal(tmp_path, environment(tmp_path, prepared)) as terminal:
        assert str(tmp_path) in terminal.types("python -c 'import spark_dstl; print(spark_dstl.jar_path())'")
        page = Page(terminal, tmp_path, free_port())
        page.types()
        program = page.next("python").text
        (tmp_path / "clicks.py").write_text(program, encoding="utf-8")
        page.types()
        page.waits_for("clicks.log")
        page.sees(page.types())
        page.sees(page.types())
        page.sees(page.types())
        page.sees(page.types())
        page.types()
        page.types()
        page.waits_for("again.log")
        page.sees(page.types())
        page.types()
        again = batches(tmp_path / "again.log")
        check_continuation(batches(tmp_path / "clicks.log"), again)
        for old in (r"^checkpoint = .*\n", r"^spark = spark_dstl\.configure.*\n"):
            program, changed = re.subn(old, page.next("python").text, program, flags=re.MULTILINE)
            assert changed == 1
        (tmp_path / "stock.py").write_text(program, encoding="utf-8")
        page.types()
        page.waits_for("stock.log")
        check_continuation(again, batches(tmp_path / "stock.log"))
        assert not page.left
        said = "".join((tmp_path / f"{name}.log").read_text(encoding="utf-8") for name in ("clicks", "again"))
        assert "does not create objects exclusively" not in said
        assert list((tmp_path / "s3/my-bucket/checkpoints/clicks-stock/state").rglob("*.changelog"))
        assert not list((tmp_path / "s3/my-bucket/checkpoints/clicks/state").rglob("*.changelog"))


def batches(log: Path) -> list[tuple[int, int]]:
    """The number and the total of clicks of each batch that a program has printed."""
    found = re.findall(r"^batch (\d+): (\d+) clicks on \d+ pages$", log.read_text(encoding="utf-8"), re.MULTILINE)
    return [(int(number), int(total)) for number, total in found]


def check_continuation(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:
    """Check that the first batch follows the last committed one, and that totals continue."""
    last = dict(before)
    number, total = after[0]
    assert number - 1 in last
    assert total >= last[number - 1] > 0
    assert last.get(number, total) == total
