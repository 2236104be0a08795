"""What a query on the log shows to those who look after it, from outside of its process."""

from __future__ import annotations

import re
from pathlib import Path

from monitored import browser, monitored, rendered
from spark_dstl.charts import CHARTS, SETTING

ROOT = Path(__file__).resolve().parents[1]


def test_the_page_of_a_query_in_spark_s_ui_has_a_chart_of_each_of_our_figures_and_those_asked_for(
    tmp_path: Path,
) -> None:
    """As a browser draws it; where there is none, as far as the page itself tells what its scripts are to draw."""
    own = "rocksdbSstFileSize"
    with monitored(tmp_path, {SETTING: own}) as place:
        program = browser()
        page = rendered(program, place.page) if program else place.get(place.page.removeprefix(place.ui))
    for name in (own, *CHARTS):
        places = re.findall(rf'id="(aggregated-{name}-timeline)"(.*?)</tr>', page, re.DOTALL | re.IGNORECASE)
        assert len(places) == 1, f"no chart of {name}"
        identifier, row = places[0]
        if program:
            assert re.search(r"<svg.*<path", row, re.DOTALL), f"the chart of {name} was not drawn"
        else:
            assert re.search(rf'drawTimeline\(\s*"#{identifier}"', page, re.IGNORECASE), f"nobody draws {name}"


def test_the_settings_that_are_written_down_ask_for_the_charts_that_configure_asks_for() -> None:
    for path in ("conf/spark-defaults.conf", "docs/metrics.md"):
        listed = re.search(rf"{re.escape(SETTING)}\W+(\S+)", (ROOT / path).read_text(encoding="utf-8"))
        assert listed is not None
        assert listed[1] == ",".join(CHARTS), path
