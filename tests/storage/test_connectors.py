# SPDX-License-Identifier: Apache-2.0
"""Queries from Kafka, and to tables of Delta."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer

from courses import finish, kill_drivers
from harness import Run, free_port, listens
from programs import jars, with_jars
from query_driver import DELTA
from scenarios import Aggregation
from servers import start_server
from settings import FORMAT_VERSION, log_confs

ROWS = 300
FILES = 5


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker, which is its own controller."""
    work = tmp_path_factory.mktemp("kafka")
    port, controller = free_port(), free_port()
    addresses = f"PLAINTEXT://127.0.0.1:{port}"
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"{addresses},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": addresses,
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(work / "logs"),
        "offsets.topic.replication.factor": "1",
    }
    file = work / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")
    java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", os.pathsep.join(map(str, jars("kafka-server")))]
    formatting = ["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAQACAAAAAAAAAAQ", "-c", str(file)]
    with start_server([*java, *formatting], work, "format") as process:
        process.succeed()
    with start_server([*java, "kafka.Kafka", str(file)], work, "kafka") as process:
        process.wait_until(lambda: listens("127.0.0.1", port), f"a broker on port {port}")
        yield f"127.0.0.1:{port}"


def from_kafka(run: Run, address: str) -> None:
    """Move the input of the query to a topic with one partition: a batch reads as many rows as a file has."""
    events = run.queries[0].input / "events"
    topic = f"events-{run.work.parent.name}"
    producer = KafkaProducer(bootstrap_servers=address)
    for file in sorted(events.glob("*.json")):
        for row in file.read_bytes().splitlines():
            producer.send(topic, row)
        file.unlink()
    producer.close()
    options = {
        "kafka.bootstrap.servers": address,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(ROWS),
    }
    (events / "kafka.options").write_text(json.dumps(options), encoding="utf-8")


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("table", [False, True], ids=["files", "Delta"])
def test_a_query_from_kafka_that_is_killed_loses_and_repeats_nothing(
    tmp_path: Path, kafka: str, table: bool, version: str
) -> None:
    confs = {**log_confs(), FORMAT_VERSION: version}
    connectors = jars("kafka")
    points = {"driver.after-commit-entry": 3}
    if table:
        connectors += jars("delta")
        confs |= {
            "spark.sql.extensions": DELTA,
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",
        }
    if not table or version == "1":
        # A table has the batches then. With format 2, Spark fails a batch that its sink skips.
        points = {"driver.seals-pending": 1, **points, "driver.before-commit-entry": 4}
    (tmp_path / "run").mkdir()
    run = Run.create(tmp_path / "run", Aggregation.generate(FILES, ROWS), confs=with_jars(confs, connectors))
    from_kafka(run, kafka)
    kill_drivers(run, points)
    finish(run)
    with_skipped = [log for log in run.work.glob("*.log") if "The sink has skipped batch 4" in log.read_text("utf-8")]
    assert bool(with_skipped) == (table and version == "1")
