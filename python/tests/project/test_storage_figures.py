# SPDX-License-Identifier: Apache-2.0
"""The page of results on storage servers has the tables of the recorded results."""

from __future__ import annotations

import re

import pytest
from documents import ROOT, in_a_checkout
from storage_figures import NOT_RUN, WHEN, Figures, cell, long_run_rows, long_runs, short

pytestmark = in_a_checkout

HEADINGS = {"while writing": "While a query writes", "in recovery": "While it comes back", "on HDFS": "Faults of HDFS"}


@pytest.mark.parametrize("when", WHEN)
def test_the_tables_of_faults_have_the_recorded_outcomes(when: str) -> None:
    rows = rows_below(HEADINGS[when])
    assert rows == Figures.read().rows(when)
    assert not [row for row in rows if NOT_RUN in row]


def test_the_table_of_the_long_run_has_the_recorded_samples() -> None:
    assert rows_below("A long run") == long_run_rows(long_runs())


def rows_below(heading: str) -> list[str]:
    """Return the rows of the table in that section of the page, without the header."""
    page = (ROOT / "docs/results/storage-0.1.0.md").read_text(encoding="utf-8")
    section = re.search(rf"^#+ {heading}\n(.*?)(?=^#+ |\Z)", page, re.DOTALL | re.MULTILINE)
    assert section is not None, heading
    return [line for line in section[1].splitlines() if line.startswith("| ")][1:]


def test_a_cell_names_each_error_once() -> None:
    assert cell({"failures": []}) == "survived"
    assert cell({"failures": [], "wrong": "a window is missing"}) == "not survived: a window is missing"
    assert cell({"failures": ["A: b"]}) == "failed, `A: b`; continued after a restart"
    twice = {"failures": ["A", "A"], "wrong": "not at its end after 2 starts"}
    assert cell(twice) == "failed 2 times, `A`; not at its end after 2 starts"


def test_an_error_is_named_by_its_condition_or_the_beginning_of_its_message() -> None:
    assert short("[DSTL_FENCED] Another driver has gone on. SQLSTATE: XXKST") == "DSTL_FENCED"
    assert short("[STREAM_FAILED] Query [id = 1]: org.x.SomeException: Did not answer: for (4) s") == (
        "SomeException: Did not answer"
    )
    assert short("Job aborted: java.io.IOException: query-0/state/0/1 is gone") == "IOException: … is gone"
    assert short("Job aborted: java.io.EOFException: SQLSTATE: XXKST") == "EOFException"
    assert short("Cannot create file/run/offsets/.2.tmp. It is in safe mode.\nMore") == (
        "Cannot create …. It is in safe mode."
    )
    assert short("[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred") == "FOREACH_BATCH_USER_FUNCTION_ERROR"
