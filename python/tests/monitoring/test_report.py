# SPDX-License-Identifier: Apache-2.0
import json
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from invoked import dstl, ended, succeeded
from progress_samples import operator, progress, told

from spark_dstl import MetricsListener, QueryMetrics
from spark_dstl.monitoring import drawing
from spark_dstl.monitoring.report_page import page
from spark_dstl.monitoring.summary import grouped, runs_of
from spark_dstl.percentiles import percentile

ELSEWHERE = re.compile(r"""(?:src|href)\s*=\s*["'](?!#)|url\((?!#)|@import|<script""")


def batches(count: int, **log: int) -> list[QueryMetrics]:
    return [QueryMetrics.from_progress(progress(number, operator(10, **log))) for number in range(count)]


@pytest.fixture
def listener(tmp_path: Path) -> MetricsListener:
    """A listener that has received some batches, and its `progress.jsonl`."""
    listener = MetricsListener(progress_file=tmp_path / "progress.jsonl")
    told(listener, *(progress(batch, operator(10, dstlLogBytes=9000 + batch, dstlSnapshots=1)) for batch in range(5)))
    return listener


def test_a_report_is_one_self_contained_file(listener: MetricsListener, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    assert dstl("report", tmp_path / "progress.jsonl", "-o", report).output == ""
    text = report.read_text(encoding="utf-8")
    assert not ELSEWHERE.search(text.replace('xlink:href="#', "#"))
    assert text.count("<svg") == 3
    assert "batches 0 to 4" in text
    assert "9.0 kB at the end" in text
    listener.write_parquet(tmp_path / "history.parquet")
    dstl("report", tmp_path / "history.parquet", "-o", tmp_path / "other.html")
    assert (tmp_path / "other.html").read_text(encoding="utf-8") == text


def test_its_charts_are_well_formed_and_no_two_use_one_name() -> None:
    text = page(batches(400, dstlLogBytes=9000, dstlBackPressureTimeMs=5, dstlReplayedBytes=7))
    found = charts(text)
    assert len(found) == 4
    names = [name for chart in found for name in re.findall(r'\bid="([^"]*)"', chart)]
    assert len(names) == len(set(names))
    for chart in found:
        assert set(re.findall(r'(?:xlink:href="|url\()#([^")]+)', chart)) <= set(names)
        ElementTree.fromstring(chart)


def texts(chart: str) -> list[str]:
    """The words and numbers of a chart, in their order."""
    return [str(element.text) for element in ElementTree.fromstring(chart).iter() if element.tag.endswith("}text")]


def charts(page: str) -> list[str]:
    return re.findall(r"<svg.*?</svg>", page, re.DOTALL)


def with_runs(*runs: Sequence[int], **log: int) -> list[QueryMetrics]:
    """Batches of several runs, of each run the numbers of its batches; the first one of each has no report."""
    found: list[QueryMetrics] = []
    for run, numbers in enumerate(runs):
        for number in numbers:
            is_first = number == numbers[0]
            reported = {name: 0 if is_first else value for name, value in log.items()}
            replayed = 3_000_000 if is_first and run else 0
            changes = {"runId": f"run-{run}", "timestamp": f"2026-01-02T03:{len(found) // 60:02}:{len(found) % 60:02}Z"}
            of = operator(10, **reported, dstlReplayedBytes=replayed, dstlBackPressureTimeMs=0)
            found.append(QueryMetrics.from_progress(progress(number, of, **changes)))
    return found


def test_the_size_of_the_log_does_not_fall_to_0_at_a_restart() -> None:
    (run,) = runs_of(with_runs(range(10), range(10, 20), dstlLogBytes=9_000_000))
    assert set(run.values("log_bytes")) == {9_000_000}
    assert "restart" in texts(drawing.log_size(run))


def test_a_chart_has_no_axis_for_what_is_always_0() -> None:
    (run,) = runs_of(with_runs(range(10), range(10, 20), dstlLogBytes=9_000_000))
    words = texts(drawing.waits_and_replay(run))
    assert "replayed" in words
    assert "ms" not in words
    assert "back-pressure, all tasks" not in words
    assert "written for snapshots" not in texts(drawing.log_size(run))


def test_the_batches_of_a_rollback_stand_beside_those_that_they_replace() -> None:
    (run,) = runs_of(with_runs(range(10), range(4, 14), dstlLogBytes=9_000_000))
    words = texts(drawing.batch_times(run))
    assert words[: words.index("batch")] == ["0", "5", "4", "9"]


@pytest.mark.parametrize("count", [1, 2, 3, 200, 1000])
def test_no_axis_has_a_label_twice(count: int) -> None:
    log = {"dstlLogBytes": 900, "dstlBackPressureTimeMs": 1, "dstlSnapshotBytes": 7}
    for chart in charts(page(batches(count, **log))):
        words = texts(chart)
        assert all(label != following for label, following in pairwise(words)), words


def test_names_of_users_are_escaped() -> None:
    text = page([QueryMetrics.from_progress(progress(0, name="<script>alert(1)</script>"))])
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_a_query_without_figures_of_the_log_has_those_of_its_batches() -> None:
    text = page(batches(3))
    assert text.count("<svg") == 2
    assert "There are no figures of the log" in text


def test_each_query_has_its_section_and_a_batch_counts_once() -> None:
    first = batches(3)
    other = QueryMetrics.from_progress(progress(0, id="00000000-0000-0000-0000-000000000000", name=None))
    runs = runs_of([*first, other, *first])
    assert [(run.name, len(run.batches)) for run in runs] == [("clicks", 3), (other.query_id, 1)]


def test_a_percentile_that_would_be_the_largest_is_none() -> None:
    assert percentile(range(100, 0, -1), 99) == 99
    assert percentile(range(1, 100), 99) is None
    assert percentile([float(number) for number in range(1, 1001)], 99.9) == 999
    assert percentile(range(1, 1000), 99.9) is None
    assert percentile([], 50) is None


def test_many_batches_are_shown_in_groups_of_neighbours() -> None:
    (run,) = runs_of(batches(401))
    groups = grouped(run, 180)
    assert [len(group) for group in groups] == [3] * 133 + [2]
    assert [batch for group in groups for batch in group] == list(run.batches)


def test_a_report_to_standard_output_is_that_alone(listener: MetricsListener, tmp_path: Path) -> None:
    assert listener.metrics
    output = dstl("report", tmp_path / "progress.jsonl", "--output", "-").output
    assert output.startswith("<!DOCTYPE html>")
    assert output.endswith("</html>\n")


def test_an_invalid_history_is_an_error_in_one_line_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_text("nothing of the kind\n", encoding="utf-8")
    result = ended(1, "report", file)
    assert result.output.startswith(f"Error: {file}, line 1: not the progress")
    assert result.output.count("\n") == 1
    lines = [json.dumps(progress(0, operator(10, dstlLogBytes=size))) for size in (2**63 - 1, 10**30)]
    file.write_text(f"{lines[0]}\n", encoding="utf-8")
    succeeded("report", file, "-o", tmp_path / "long.html")
    file.write_text(f"{lines[0]}\n{lines[1]}\n", encoding="utf-8")
    result = dstl("report", file, "-o", tmp_path / "long.html")
    assert (result.exit_code, f"{file}, line 2: not the progress" in result.output) == (1, True), result.output
    file.write_text("", encoding="utf-8")
    assert "has no batches" in dstl("report", file).output
    absent = ended(1, "report", tmp_path / "absent")
    assert absent.output == f"Error: {tmp_path / 'absent'} cannot be read: No such file or directory\n"


def test_a_report_that_cannot_be_written_says_why(listener: MetricsListener, tmp_path: Path) -> None:
    assert listener.metrics
    elsewhere = tmp_path / "nowhere/report.html"
    result = dstl("report", tmp_path / "progress.jsonl", "-o", elsewhere)
    said = f"Error: {elsewhere} cannot be written: No such file or directory\n"
    assert (result.exit_code, result.output) == (1, said)


def test_without_matplotlib_the_error_names_the_package(
    listener: MetricsListener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert listener.metrics
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = ended(1, "report", tmp_path / "progress.jsonl", "-o", tmp_path / "report.html")
    assert "A report needs the package matplotlib" in result.output
    assert not (tmp_path / "report.html").exists()
