# SPDX-License-Identifier: Apache-2.0
"""Outcomes of faults are shown in a few words."""

from __future__ import annotations

from fault_outcomes import cell, short


def test_a_cell_names_each_error_once() -> None:
    assert cell([], "") == "survived"
    assert cell([], "a window is missing") == "not survived: a window is missing"
    assert cell(["AError: b"], "") == "failed, `AError: b`; continued after a restart"
    assert cell(["A", "A"], "not at its end after 2 starts") == "failed 2 times, `A`; not at its end after 2 starts"


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
