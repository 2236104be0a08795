# SPDX-License-Identifier: Apache-2.0
"""A report on queries, in one self-contained HTML file."""

from collections.abc import Sequence
from html import escape

from spark_dstl.monitoring import drawing
from spark_dstl.monitoring.query_metrics import QueryMetrics
from spark_dstl.monitoring.readable import readable, readable_bytes
from spark_dstl.monitoring.summary import TIMES, Run, runs_of
from spark_dstl.percentiles import PERCENTILES, percentile
from spark_dstl.version import __version__

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 0; border-top: 1px solid #ddd; padding-top: 1rem; }
h3 { font-size: 1rem; margin: 1.8rem 0 .2rem; }
p { margin: .2rem 0; color: #555; }
table { border-collapse: collapse; margin: .6rem 0; }
th, td { padding: .15rem .9rem .15rem 0; text-align: right; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 1px solid #bbb; font-weight: 600; }
figure { margin: .4rem 0; }
svg { width: 100%; height: auto; display: block; }
""".strip()

# The title of each chart, and the text below it.
_TIMES = ("Time of batches", "From trigger to end, by part. The commit holds the barrier and the commit entry.")
_DISTRIBUTION = (
    "Distribution of times",
    "The share of batches that took longer. A curve that ends far right has a long tail.",
)
_LOG = ("The log and its snapshots", "The log grows with each batch, and is deleted below the retained snapshots.")
_WAITS = ("Back-pressure and recovery", "How long tasks waited for uploads, and what was read to rebuild stores.")


def page(batches: Sequence[QueryMetrics]) -> str:
    """Return the report on these batches. Raises `MissingPackage` if matplotlib is not installed."""
    runs = runs_of(batches)
    sections = "\n".join(_section(run) for run in runs) or "<p>There are no batches.</p>"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{escape(", ".join(run.name for run in runs) or "no queries")} - spark-dstl</title>
<style>
{_STYLE}
</style>
</head>
<body>
<h1>What the batches did</h1>
<p>Made by dstl {escape(__version__)} from {sum(len(run.batches) for run in runs):,} batches.</p>
{sections}
</body>
</html>
"""


def _section(run: Run) -> str:
    first, last = run.batches[0], run.batches[-1]
    starts = len({batch.run_id for batch in run.batches})
    charts = [_chart(*_TIMES, drawing.batch_times(run)), _chart(*_DISTRIBUTION, drawing.distributions(run))]
    if run.values("log_bytes"):
        charts.append(_chart(*_LOG, drawing.log_size(run)))
    else:
        why = "the first batch of a run has none, and docs/metrics.md says which queries have them"
        charts.append(f"<p>There are no figures of the log: {why}.</p>")
    if any(run.values("back_pressure_ms")) or any(run.values("replayed_bytes")):
        charts.append(_chart(*_WAITS, drawing.waits_and_replay(run)))
    return f"""<section>
<h2>{escape(run.name)}</h2>
<p>Query {escape(run.query_id)}: batches {first.batch:,} to {last.batch:,}, from {first.started_at:%Y-%m-%d %H:%M:%S}
to {last.started_at:%Y-%m-%d %H:%M:%S} UTC, in {starts:,} {"run" if starts == 1 else "runs"};
{sum(run.values("input_rows")):,} rows read, {last.state_rows:,} in the state at the end.</p>
{_table(run)}
{"".join(charts)}
</section>"""


def _table(run: Run) -> str:
    head = "".join(f"<th>p{percent:g}</th>" for percent in PERCENTILES)
    rows = []
    for field, words in TIMES.items():
        values = run.values(field)
        if values:
            found = (percentile(values, percent) for percent in PERCENTILES)
            cells = "".join(f"<td>{'-' if value is None else f'{value:,}'}</td>" for value in found)
            rows.append(f"<tr><td>{escape(words)}</td>{cells}<td>{max(values):,}</td></tr>")
    return f"""<table>
<thead><tr><th>ms</th>{head}<th>max</th></tr></thead>
<tbody>{"".join(rows)}</tbody>
</table>
<p>{_sizes(run)} A dash: there are too few batches for that percentile.</p>"""


def _sizes(run: Run) -> str:
    logs = run.values("log_bytes")
    if not logs:
        return ""
    written = sum(run.values("snapshot_bytes"))
    replayed = run.batches[-1].replayed_bytes
    return (
        f"The log was at most {readable_bytes(max(logs))}, {readable_bytes(logs[-1])} at the end; "
        f"{sum(run.values('snapshots')):,} snapshots took {readable_bytes(written)}; "
        f"{readable('replayed_bytes', sum(run.values('replayed_bytes')) if replayed is not None else None)} were "
        "replayed."
    )


def _chart(title: str, words: str, svg: str) -> str:
    return f"""<h3>{escape(title)}</h3>
<p>{escape(words)}</p>
<figure role="img" aria-label="{escape(title)}">{svg}</figure>
"""
