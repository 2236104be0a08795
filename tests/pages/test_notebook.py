# SPDX-License-Identifier: Apache-2.0
"""The notebook of the tutorial runs from first to last cell, in a session that runs already and in a new one."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
import pytest
from documents import ROOT
from nbclient import NotebookClient

from settings import IN_FULL, base_confs

NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"
# Fewer than a reader gets: each takes a task in each batch.
SHOWN_STORES, STORES = 32, 4


def running_session(work: Path) -> str:
    """A cell that starts Spark with the log's jar, as a notebook server does."""
    return (
        "import spark_dstl\n"
        "from pyspark.sql import SparkSession\n"
        "builder = SparkSession.builder.config('spark.jars', str(spark_dstl.jar_path()))\n"
        f"builder.config(map={base_confs('local[2]', work)!r}).getOrCreate()\n"
    )


NEW = pytest.param(False, id="new session", marks=pytest.mark.skipif(not IN_FULL, reason="like a running session"))


@pytest.mark.parametrize("runs_already", [pytest.param(True, id="running session"), NEW])
def test_the_notebook_runs(runs_already: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs of a run are in the notebook"
    for cell in notebook.cells:
        cell.source = cell.source.replace(f'"{SHOWN_STORES}"', f'"{STORES}"')
    if runs_already:
        started = nbformat.v4.new_code_cell(running_session(tmp_path))  # type: ignore[no-untyped-call]
        notebook.cells.insert(0, started)
    NotebookClient(notebook, timeout=500, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    printed = ["".join(out.get("text", "") for out in cell.get("outputs", [])) for cell in notebook.cells]
    assert any(f"{STORES} stores in" in text for text in printed)
    assert set(re.findall(r"^(\w+) \d+ \d+ \d+$", printed[-1], re.MULTILINE)) == {"logged", "plain"}
