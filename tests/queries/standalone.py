# SPDX-License-Identifier: Apache-2.0
"""A standalone Spark cluster on one machine: a master, and workers on different loopback addresses.

Spark starts no speculative copy of a task on the same host, so the cluster has more than one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyspark

import class_archive
from driver_process import Driver, start_driver
from harness import free_port, listens

HOSTS = ("127.0.0.2", "127.0.0.3")
MASTER_HOST = "127.0.0.1"
DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True)
class Standalone:
    """A running cluster; `url` is the master for a session."""

    url: str
    work: Path


@contextmanager
def standalone(work: Path) -> Iterator[Standalone]:
    """A cluster with a worker of one core on each of `HOSTS`; it ends with the block, as do its executors."""
    work.mkdir()
    port = free_port()
    url = f"spark://{MASTER_HOST}:{port}"
    with ExitStack() as processes:
        options = ["--host", MASTER_HOST, "--port", str(port)]
        master = processes.enter_context(_process("master", "Master", MASTER_HOST, options, work))
        master.wait_until(lambda: listens(MASTER_HOST, port), f"master on port {port}")
        for number, host in enumerate(HOSTS):
            name = f"worker-{number}"
            options = ["--host", host, "--cores", "1", "--memory", "1g", "--work-dir", str(work / name), url]
            worker = processes.enter_context(_process(name, "Worker", host, options, work))
            worker.wait_until(partial(_has_registered, worker), f"{name} with its master")
        yield Standalone(url, work)


def _has_registered(worker: Driver) -> bool:
    return "Successfully registered" in worker.log()


def _process(name: str, kind: str, host: str, options: list[str], work: Path) -> Driver:
    """Start a daemon of Spark in the foreground."""
    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    # Without it, the web UI would listen on all network interfaces.
    variables = {"SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}
    variables["SPARK_DAEMON_JAVA_OPTS"] = f"-XX:+UseSerialGC {class_archive.java_option()}"
    command = [str(script), f"{DEPLOY}.{kind.lower()}.{kind}", "--webui-port", "0", *options]
    return start_driver(command, variables, work, name)
