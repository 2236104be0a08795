# SPDX-License-Identifier: Apache-2.0
"""What conf/compose starts in containers, without them: its query on a local disk, and the figures for Prometheus."""

from __future__ import annotations

import re
import sys
import urllib.request
from pathlib import Path

import yaml
from documents import ROOT

from driver_process import start_driver
from harness import free_port
from settings import base_confs

COMPOSE = ROOT / "conf" / "compose"


def test_all_files_that_the_containers_get_exist() -> None:
    services = yaml.safe_load((COMPOSE / "compose.yml").read_text(encoding="utf-8"))["services"]
    mounted = [volume.split(":")[0] for service in services.values() for volume in service.get("volumes", [])]
    files = [COMPOSE / name for name in mounted if name.startswith(".")]
    files += [ROOT / "conf" / name for name in re.findall(r"[a-z/-]+\.(?:conf|py)\b", services["query"]["command"])[:2]]
    assert len(files) > 6
    assert [file for file in files if not file.exists()] == []
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports), "a port without a password is open to the network"


def test_the_query_runs_and_its_figures_are_scraped(tmp_path: Path) -> None:
    port = free_port()
    ours = (COMPOSE / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    # Of the settings there, those of containers and their number of stores, each of which takes a task in each batch.
    others = ("spark.jars", "spark.hadoop", "spark.master", "spark.sql.shuffle.partitions")
    kept = [line for line in ours if not line.startswith(others)]
    confs = base_confs("local[2]", tmp_path) | {"spark.ui.enabled": "true", "spark.ui.port": str(port)}
    (tmp_path / "spark-defaults.conf").write_text("\n".join([*(f"{k} {v}" for k, v in confs.items()), *kept]))
    places = {"SPARK_CONF_DIR": str(tmp_path), "CHECKPOINT": str(tmp_path / "clicks")}
    with start_driver([sys.executable, str(COMPOSE / "query.py")], places, tmp_path, "query") as query:
        committed = re.compile(r"^metrics_clicks_driver_dstl_commits_count_Value\{.*\} [1-9]", re.MULTILINE)
        query.wait_until(lambda: bool(committed.search(scraped(port))), "scraped commit")
    assert (tmp_path / "clicks" / "commits").is_dir()


def scraped(port: int) -> str:
    """What the driver answers; nothing before it listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics/prometheus/", timeout=30) as answer:
            return str(answer.read(), "utf-8")
    except OSError:
        return ""
