# SPDX-License-Identifier: Apache-2.0
"""The scrape configuration, the alerts and the dashboard work with Prometheus and Grafana."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from pyspark.sql import SparkSession

from clicks import Clicks
from monitored import BATCHES, Place, monitored
from prometheus import program, prometheus

HERE = Path(__file__).resolve().parent
CONF = HERE.parents[1] / "conf"
ALERTS = CONF / "prometheus-alerts.yml"
ALERT_TESTS = HERE / "prometheus-alerts-test.yml"
SCRAPING = CONF / "prometheus.yml"
DASHBOARD = CONF / "grafana-dashboard.json"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A driver whose UI has the servlet for Prometheus; without Prometheus, none starts."""
    program("prometheus")
    sink = "spark.metrics.conf.driver.sink.prometheusServlet"
    confs = {
        "spark.metrics.namespace": "${spark.app.name}",
        f"{sink}.class": "org.apache.spark.metrics.sink.PrometheusServlet",
        f"{sink}.path": "/metrics/prometheus",
    }
    with monitored(tmp_path_factory.mktemp("scraped"), confs) as place:
        yield place


def dashboard() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return read


def expressions() -> list[str]:
    """The queries of the dashboard, with values for its variables."""
    asked = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", [])]
    return [expr.replace("$application", ".*").replace("$__rate_interval", "1m") for expr in asked]


def promtool(*arguments: object) -> None:
    done = subprocess.run(
        [program("promtool"), *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_and_dashboard_use_only_metrics_of_the_source(tmp_path: Path, spark: SparkSession) -> None:
    Clicks.create(spark, tmp_path, files=1).resume()
    exported = {"dstl_" + re.sub(r"^requests\.\w+\.", "requests.", name).replace(".", "_") for name in figures(spark)}
    named = re.findall(r"\bdstl_\w+", ALERTS.read_text(encoding="utf-8") + " ".join(expressions()))
    assert "dstl_requests_hedges" in named
    assert set(named) <= exported


def figures(spark: SparkSession) -> list[str]:
    """The names of the metrics of the driver's source; py4j cannot look into Spark 4.3's `SparkEnv`, which has it."""
    ours = cast(Any, spark.sparkContext._jvm).org.apache.spark.sql.execution.streaming.state.dstl
    environment = ours.DstlEnvironment.get()
    source = ours.metrics.ProcessMetrics(environment.resources(), environment.driver())
    return [*source.metricRegistry().getGauges().keySet()]


def test_every_alert_has_a_firing_and_a_silent_case() -> None:
    alerts = re.findall(r"alert: (\w+)", ALERTS.read_text(encoding="utf-8"))
    tests = ALERT_TESTS.read_text(encoding="utf-8")
    fires = Counter(re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n", tests))
    silent = Counter(re.findall(r"alertname: (\w+)}", tests))
    assert set(fires) == set(silent) == set(alerts)


def test_promtool_accepts_the_configuration_and_the_alerts() -> None:
    promtool("check", "config", SCRAPING)
    promtool("check", "rules", ALERTS)


def test_the_alerts_pass_their_cases() -> None:
    promtool("test", "rules", ALERT_TESTS)


def test_prometheus_scrapes_a_driver_and_evaluates_alerts_and_dashboard(place: Place, tmp_path: Path) -> None:
    """Only the driver's address and the intervals differ from the configuration."""
    configured, targets = re.subn(r"localhost:4040", place.ui.partition("://")[2], SCRAPING.read_text(encoding="utf-8"))
    configured, rules = re.subn(r"- prometheus-alerts\.yml", f"- {ALERTS}", configured)
    assert (targets, rules) == (1, 1)
    often = "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
    with prometheus(tmp_path, often + configured) as server:
        server.wait_until(lambda: bool(server.query("dstl_commits_count")), "figures of the driver")
        (commits,) = server.query("dstl_commits_count")
        labels = {name: commits["metric"][name] for name in ("application", "process", "job")}
        assert labels == {"application": "my_clicks", "process": "driver", "job": "spark-drivers"}
        assert commits["value"][1] == str(BATCHES)
        assert {one["metric"]["operation"] for one in server.query("dstl_requests_count")} >= {"create", "put", "read"}
        assert not server.query('{__name__=~"metrics_.*_dstl_.*"}')
        asked = expressions()
        # Rates need two samples.
        server.wait_until(lambda: all(server.query(expr) for expr in asked), "answer to all that the dashboard asks")

        def evaluated() -> bool:
            rules = [rule for group in server.ask("rules")["groups"] for rule in group["rules"]]
            return len(rules) > 0 and all(rule["health"] == "ok" for rule in rules)

        server.wait_until(evaluated, "evaluation of all alerts")
        assert not server.query('ALERTS{alertstate="firing"}'), "an alert fires for a healthy driver"


def test_the_dashboard_follows_grafana_s_schema() -> None:
    """Grafana's library drops fields without a place in the schema when it reads and writes the dashboard."""
    register_default_plugins()
    read = dashboard()
    again = json.loads(JSONEncoder().encode(Dashboard.from_json(read)))
    assert missing(read, again) == []


def missing(of: Any, there: Any, at: str = "") -> list[str]:
    """The places where `there` differs from `of`."""
    if isinstance(of, dict) and isinstance(there, dict):
        return [place for key in of for place in missing(of[key], there.get(key), f"{at}/{key}")]
    if isinstance(of, list) and isinstance(there, list) and len(of) == len(there):
        pairs = enumerate(zip(of, there, strict=True))
        return [place for number, (one, other) in pairs for place in missing(one, other, f"{at}/{number}")]
    return [] if of == there else [at]
