# SPDX-License-Identifier: Apache-2.0
"""Each example of the documentation runs in a test, or is marked with a reason why not."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from documents import (
    ROOT,
    RUNNABLE,
    Block,
    blocks,
    blocks_of,
    dstl,
    examples_of_commands,
    here,
    lines_of,
    runnable,
    user_pages,
)
from pyspark.sql import SparkSession
from written_checkpoint import aged

import spark_dstl
from clicks import Clicks
from copies import copied
from settings import base_confs
from shared_session import contender
from spark_dstl.release import installed_line

pytestmark = pytest.mark.usefixtures("short_looks")

# The file whose tests run the unmarked examples of a page and language.
RUN_BY = {
    ("README.md", "python"): "tests/pages/test_readme.py",
    ("docs/cookbook.md", "sh"): "tests/pages/recipe.py",
    ("docs/inspect.md", "python"): "python/tests/commands/test_command_reference.py",
    ("docs/inspect.md", "sh"): "python/tests/commands/test_command_reference.py",
    ("docs/monitoring.md", "python"): "tests/tools/test_monitoring.py",
    ("docs/monitoring.md", "sh"): "tests/tools/test_monitoring.py",
    ("docs/operations.md", "python"): "tests/pages/test_doc_examples.py",
    ("docs/platforms.md", "sh"): "tests/pages/test_doc_examples.py",
    ("docs/worth-it.md", "sh"): "python/tests/commands/test_probe_command.py",
    ("docs/tutorial.md", "python"): "tests/pages/test_tutorial.py",
    ("docs/tutorial.md", "sh"): "tests/pages/test_tutorial.py",
}
# tests/tools/test_monitoring.py runs the commands that watch a driver, tests/tools/test_convert.py the one for other
# providers, and tests/tools/test_view.py the one that ends with a signal.
ELSEWHERE = ("dstl report", "dstl watch", "dstl convert", "dstl serve")
# What each line of Spark can, by the commands and methods that take it.
ABLE = {
    "(state|changes|diff)": installed_line().reads,
    "follow": installed_line().follows,
    "repartition": installed_line().converts,
}
BATCHES = 4
# The pages have later batches than the checkpoint here.
NUMBERS = {"1041": "2", "1040": "1"}


def test_each_example_has_a_test_or_a_reason() -> None:
    found = {(block.page, block.language) for page in user_pages() for block in blocks(page) if block.not_run is None}
    assert {one for one in found if one[1] in RUNNABLE} == set(RUN_BY)
    for (page, _), test in RUN_BY.items():
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8"), f"{test} does not name {page}"


def test_the_parser_finds_every_fence_of_a_page() -> None:
    for page in user_pages():
        fences = re.findall(r"^ *```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(blocks(page)), page


@pytest.fixture(scope="module")
def checkpoints(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the checkpoint `clicks`. Tests do not change it."""
    work = tmp_path_factory.mktemp("examples")
    (work / "pages").mkdir()
    session = contender(spark, "dstl")
    for batch in range(BATCHES):
        (work / "pages" / f"{batch}.json").write_text("""{"page": "/"}\n""" * 5)
        clicks = session.readStream.schema("page STRING").json(str(work / "pages"))
        counts = clicks.groupBy("page").count().writeStream.outputMode("complete").format("noop")
        at = str(work / "checkpoints" / "clicks")
        counts.option("checkpointLocation", at).trigger(availableNow=True).start().awaitTermination()
    aged(work / "checkpoints")
    return work / "checkpoints"


@pytest.fixture
def places(checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The paths here for those of the pages: a copy of the checkpoint, in a writable directory."""
    monkeypatch.chdir(tmp_path)
    for jar in ("hadoop-aws-3.5.0.jar", "bundle.jar"):
        with zipfile.ZipFile(tmp_path / jar, "w"):
            pass
    copy = copied(checkpoints, tmp_path / "checkpoints")
    logs = {"/var/log/clicks.jsonl": tmp_path / "clicks.jsonl"}
    return {"s3a://bucket/checkpoints": copy, "s3a://bucket": tmp_path, "/checkpoints": copy, **NUMBERS, **logs}


def of_the_commands() -> list[Block]:
    examples = [block for block in examples_of_commands() if block.heading not in ELSEWHERE]
    return [*examples, *runnable("docs/platforms.md", "sh")]


@pytest.mark.parametrize("block", of_the_commands(), ids=lambda block: block.heading or block.page)
def test_the_examples_of_a_command_run(block: Block, places: dict[str, object], tmp_path: Path) -> None:
    skip_where_refused(block)
    for line in lines_of(block, places):
        if line.startswith("spark-submit "):
            submit(line, tmp_path)
        else:
            result = dstl(line)
            assert result.exit_code == 0, f"{block.place}: {line}: {result.output}"
            assert result.output


def skip_where_refused(block: Block) -> None:
    if any(re.search(rf"(dstl |\.){name}\b", block.text) for name, is_able in ABLE.items() if not is_able):
        pytest.skip("this Spark refuses it")


def submit(line: str, work: Path) -> None:
    """Run the line in a shell, with a query that prints the configured file manager."""
    found = re.fullmatch(r"spark-submit \$\((dstl config .*)\) (my_query\.py)", line)
    assert found is not None
    (work / found[2]).write_text(
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "name = spark.conf.get('spark.sql.streaming.checkpointFileManagerClass')\n"
        "print('is', spark._jvm.org.apache.spark.util.Utils.classForName(name, True, False).getSimpleName())\n"
    )
    confs = base_confs("local[1]", work)
    defaults = work / "conf"
    defaults.mkdir()
    lines = [f"{key} {value}\n" for key, value in confs.items()]
    (defaults / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    path = os.pathsep.join([str(Path(pyspark.__file__).parent / "bin"), os.environ["PATH"]])
    flags = dstl(found[1]).output
    command = ["bash", "-c", line.replace(f"$({found[1]})", flags.strip())]
    environment = os.environ | {"PATH": path, "SPARK_CONF_DIR": str(defaults)}
    done = subprocess.run(command, cwd=work, env=environment, check=False, capture_output=True, text=True)
    assert "is DstlCheckpointFileManager" in done.stdout, done.stderr


def of_the_docstrings() -> Iterator[Block]:
    for name in spark_dstl.__all__:
        thing = getattr(spark_dstl, name)
        members = vars(thing).items() if inspect.isclass(thing) else ()
        for at, one in [(name, thing), *((f"{name}.{member}", one) for member, one in members if member[0] != "_")]:
            yield from blocks_of(at, inspect.getdoc(one) or "")


PYTHON = [*runnable("docs/operations.md", "python"), *of_the_docstrings()]


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.place)
def test_the_python_of_a_page_runs(
    block: Block, places: dict[str, object], spark: SparkSession, tmp_path: Path
) -> None:
    skip_where_refused(block)
    names: dict[str, object] = {"spark_dstl": spark_dstl, "SparkSession": SparkSession, "spark": spark}
    clicks = Clicks.create(spark, tmp_path / "query", files=1)
    if "query" in block.text:
        names["query"] = clicks.resume()
    exec(compile(here(block.text, places), block.place, "exec"), names)
