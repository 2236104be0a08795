# SPDX-License-Identifier: Apache-2.0
"""Storage in memory for tests of probes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spark_dstl.probing.cost import Shape
from spark_dstl.probing.probe import Plan, Probe, Report
from spark_dstl.probing.storage import ProbedStorage, Unanswered

FOLDER = ".dstl-probe-0123456789abcdef"


class FakeStorage:
    """Objects in memory whose requests take a given time, by a clock that nothing else moves."""

    shown = "fake://place"
    not_exclusive_because: str | None = None

    def __init__(self) -> None:
        self.now = 0.0
        self.took = {"put": 0.040, "get": 0.030, "create": 0.050, "exists": 0.020, "list": 0.070, "delete": 0.010}
        self.there: dict[str, bytes] = {}
        self.before: Callable[[str, str], None] = lambda _kind, _name: None
        self.after: Callable[[str, str], None] = lambda _kind, _name: None
        self.exclusive = True
        self._lock = threading.Lock()

    def clock(self) -> float:
        return self.now

    def make_folder(self, folder: str) -> None:
        self.before("make_folder", folder)

    def put(self, name: str, content: bytes) -> None:
        with self._request("put", name):
            self.there[name] = content

    def get(self, name: str) -> bytes | None:
        with self._request("get", name):
            return self.there.get(name)

    def exists(self, name: str) -> bool:
        with self._request("exists", name):
            return name in self.there

    def create(self, name: str, content: bytes) -> bool:
        with self._request("create", name):
            if self.exclusive and name in self.there:
                return False
            self.there[name] = content
            return True

    def objects(self, folder: str) -> list[str]:
        with self._request("list", folder):
            return sorted(name for name in self.there if name.startswith(f"{folder}/"))

    def folders(self) -> list[str]:
        return sorted({name.split("/")[0] for name in self.there if "/" in name})

    def delete(self, name: str) -> None:
        with self._request("delete", name):
            self.there.pop(name, None)

    def delete_folder(self, folder: str) -> None:
        self.before("delete_folder", folder)

    @contextmanager
    def _request(self, kind: str, name: str) -> Iterator[None]:
        with self._lock:
            self.now += self.took[kind]
            self.before(kind, name)
            yield
            self.after(kind, name)


def probe_of(storage: ProbedStorage, clock: Callable[[], float], objects: int = 20) -> Probe:
    plan = Plan(objects, object_bytes=100, concurrency=1, shape=Shape(partitions=200, stores=1, slots=16))
    return Probe(storage, plan, clock, lambda: FOLDER.rpartition("-")[2])


def probed(storage: FakeStorage, objects: int = 20) -> Report:
    return probe_of(storage, storage.clock, objects).run()


def unanswered_once(kind: str, name: str) -> Callable[[str, str], None]:
    """Storage that leaves the first such request without an answer."""
    left = [True]

    def silent(asked: str, of: str) -> None:
        if asked == kind and of.endswith(name) and left and left.pop():
            raise Unanswered("timed out")

    return silent
