# SPDX-License-Identifier: Apache-2.0
"""A YARN on the loopback interface: a resource manager and two node managers, each a separate process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from typing import Any

from driver_process import DEADLINE_SECONDS, Process
from harness import free_port
from servers import hadoop, start_server

HOSTS = ("127.0.0.1", "127.0.0.2")
SERVER = "org.apache.hadoop.yarn.server"
# Hadoop's libraries make proxies of classes of Java.
OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "--add-opens=java.base/java.lang=ALL-UNNAMED")


@dataclass(frozen=True)
class Container:
    """A running container: the number of its node, its directory, and the id of its JVM."""

    node: int
    directory: Path
    process: int

    @property
    def application(self) -> str:
        """The id of its application."""
        return self.directory.parent.name

    def log(self) -> str:
        """Return what it has written to its standard error."""
        logs = self.directory.parents[5] / "logs"
        path = logs / self.application / self.directory.name / "stderr"
        return path.read_text(encoding="utf-8", errors="replace")


@dataclass(frozen=True)
class Yarn:
    """A resource manager and its node managers. `configuration` is `HADOOP_CONF_DIR` for clients."""

    web: str
    work: Path
    manager: Process
    nodes: Sequence[Process]

    @property
    def configuration(self) -> Path:
        """The directory of the settings."""
        return self.work / "conf"

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a condition."""
        self.manager.wait_until(holds, what)

    def kill(self, application: str) -> None:
        """Kill an application, as `yarn application -kill` does."""
        content = json.dumps({"state": "KILLED"}).encode()
        self.ask(f"apps/{application}/state?user.name={getuser()}", content)

    def containers(self) -> list[Container]:
        """Return the running containers whose JVM has started."""
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and (entry / "exe").readlink().name == "java":
                    found += self._containers(int(entry.name), (entry / "cwd").readlink())
        return found

    def directories(self) -> list[Path]:
        """Return the directories of applications on all nodes."""
        return list(self.work.glob("node-*/local/usercache/*/appcache/*"))

    def ask(self, path: str, content: bytes | None = None) -> Any:
        """Return the resource manager's answer; `content` changes what is at the path."""
        method = "GET" if content is None else "PUT"
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.web}/ws/v1/cluster/{path}", content, headers, method=method)
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return json.loads(answer.read())

    def has_all_nodes(self) -> bool:
        """Whether all node managers have registered."""
        try:
            return bool(self.ask("metrics")["clusterMetrics"]["activeNodes"] == len(self.nodes))
        except urllib.error.URLError:
            return False

    def _containers(self, process: int, directory: Path) -> list[Container]:
        local = [number for number in range(len(HOSTS)) if directory.is_relative_to(self.work / f"node-{number}")]
        return [Container(number, directory, process) for number in local if directory.name.startswith("container_")]

    def end_containers(self) -> None:
        """Kill the containers, which outlive their node manager."""
        for container in self.containers():
            with suppress(ProcessLookupError):
                os.kill(container.process, signal.SIGKILL)


@contextmanager
def yarn(work: Path) -> Iterator[Yarn]:
    """A YARN whose files are below `work`, with the local disk as its file system."""
    web = free_port()
    write_configuration(work, web)
    with ExitStack() as stack:
        command = hadoop(*OPTIONS, before=[work / "conf"])
        manager = start_server([*command, f"{SERVER}.resourcemanager.ResourceManager"], work, "resource-manager")
        stack.enter_context(manager)
        nodes = []
        for number, host in enumerate(HOSTS):
            own = [part for key, value in of_node(work, number, host).items() for part in ("-D", f"{key}={value}")]
            main = [*command, f"{SERVER}.nodemanager.NodeManager", *own]
            # Containers run the Java of this variable.
            node = start_server(main, work, f"node-manager-{number}", {"JAVA_HOME": java_home()})
            nodes.append(stack.enter_context(node))
        cluster = Yarn(f"http://127.0.0.1:{web}", work, manager, nodes)
        cluster.wait_until(cluster.has_all_nodes, "registration of all node managers")
        try:
            yield cluster
        finally:
            # First the node managers, which start containers.
            for node in nodes:
                node.kill()
            cluster.end_containers()


def write_configuration(work: Path, web: int) -> None:
    """Write the settings of clients and servers, with free ports."""
    (work / "conf").mkdir(parents=True)
    write(work / "conf" / "core-site.xml", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": f"{work}/tmp"})
    services = ("address", "scheduler.address", "resource-tracker.address", "admin.address")
    addresses = {f"yarn.resourcemanager.{service}": f"127.0.0.1:{free_port()}" for service in services}
    queue = "yarn.scheduler.capacity"
    settings = {
        **addresses,
        "yarn.resourcemanager.webapp.address": f"127.0.0.1:{web}",
        f"{queue}.root.queues": "default",
        f"{queue}.root.default.capacity": "100",
        f"{queue}.maximum-am-resource-percent": "1",
        "yarn.scheduler.minimum-allocation-mb": "256",
        "yarn.nodemanager.resource.memory-mb": "4096",
        "yarn.nodemanager.resource.cpu-vcores": "8",
        "yarn.nodemanager.disk-health-checker.enable": "false",
        # An application master waits for a processor, but a lost node is noticed soon.
        "yarn.am.liveness-monitor.expiry-interval-ms": "120000",
        "yarn.nm.liveness-monitor.expiry-interval-ms": "10000",
    }
    write(work / "conf" / "yarn-site.xml", settings)


def java_home() -> str:
    """Return the directory of the Java that the tests use."""
    return str(Path(str(shutil.which("java"))).resolve().parents[1])


def of_node(work: Path, number: int, host: str) -> dict[str, str]:
    """Return the settings of one node manager."""
    services = ("address", "localizer.address", "webapp.address", "collector-service.address")
    settings = {
        "hostname": host,
        "bind-host": host,
        "local-dirs": f"{work}/node-{number}/local",
        "log-dirs": f"{work}/node-{number}/logs",
        **{service: f"{host}:{free_port()}" for service in services},
    }
    return {f"yarn.nodemanager.{key}": value for key, value in settings.items()}


def write(path: Path, settings: Mapping[str, str]) -> None:
    """Write a file of Hadoop's settings."""
    lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()]
    path.write_text("\n".join(["<configuration>", *lines, "</configuration>"]), encoding="utf-8")
