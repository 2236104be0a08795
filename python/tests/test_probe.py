# SPDX-License-Identifier: Apache-2.0
"""What `dstl probe` measures, leaves and computes."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import spark_dstl
from spark_dstl import dependencies
from spark_dstl.checkpoint.locate import StorageOptions
from spark_dstl.commands import console, main
from spark_dstl.errors import CannotProbe
from spark_dstl.probing import exclusiveness, figures, measurement
from spark_dstl.probing.cost import Shape, saved
from spark_dstl.probing.exclusiveness import Race, judged, race
from spark_dstl.probing.places import LocalFiles, storage_at
from spark_dstl.probing.probe import Plan, Probe, Report
from spark_dstl.probing.s3 import S3Objects
from spark_dstl.probing.storage import ProbedStorage, Refused, Unanswered

FOLDER = ".dstl-probe-0123456789abcdef"
MEASURED = Path(__file__).resolve().parents[2] / "docs" / "figures" / "storage-requests.json"


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

    def _request(self, kind: str, name: str) -> _Request:
        return _Request(self, self._lock, kind, name)


class _Request:
    def __init__(self, storage: FakeStorage, lock: threading.Lock, kind: str, name: str) -> None:
        self._storage, self._lock, self._kind, self._name = storage, lock, kind, name

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            self._storage.now += self._storage.took[self._kind]
            self._storage.before(self._kind, self._name)
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_error: object) -> None:
        try:
            self._storage.after(self._kind, self._name)
        finally:
            self._lock.release()


@pytest.fixture
def storage() -> FakeStorage:
    return FakeStorage()


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


def dstl(*arguments: str) -> Result:
    return CliRunner().invoke(main, ("probe", *arguments), prog_name="dstl")


def leftovers_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.name.startswith(".dstl-probe-")]


# Figures


def test_a_percentile_that_would_be_the_slowest_is_not_told() -> None:
    latencies = [float(number) for number in range(1000, 0, -1)]
    assert figures.percentile(latencies, 500) == 500
    assert figures.percentile(latencies, 999) == 999
    assert figures.percentile(latencies[1:], 999) is None
    assert figures.percentile([], 500) is None
    for share in (500, 900, 990, 999):
        fewest = figures.needed_for(share)
        assert figures.percentile([1.0] * fewest, share) is not None
        assert figures.percentile([1.0] * (fewest - 1), share) is None


# What is measured


def test_each_kind_of_request_has_its_times(storage: FakeStorage) -> None:
    report = probed(storage)
    times = {one.kind: {round(seconds, 6) for seconds in one.seconds} for one in report.series}
    assert times == {
        "put": {0.040},
        "exists": {0.020},
        "get": {0.030},
        "list": {0.070},
        "create": {0.050},
        "create, refused": {0.050},
        "delete": {0.010},
    }
    assert {len(one.seconds) for one in report.series if one.kind != "delete"} == {20}
    assert report.exclusive.verdict == exclusiveness.EXCLUSIVE
    assert report.exclusive.settled_races == report.exclusive.races > 1


def test_a_batch_costs_the_requests_that_it_waits_for() -> None:
    found = saved([0.040], [0.050], [0.020], Shape(partitions=200, stores=2, slots=16))
    # The slot with most tasks has 13 of them: 26 changelogs, and two existence checks.
    assert found.saved_median == pytest.approx(26 * 0.040 + 2 * 0.020)
    assert found.log_median == pytest.approx(2 * 0.050)
    assert (found.stock_requests, found.log_requests) == (30, 2)
    few = saved([0.040], [0.050], [0.020], Shape(partitions=1, stores=1, slots=16))
    assert few.saved_median == pytest.approx(0.040 + 2 * 0.020)


@pytest.mark.skipif(not MEASURED.exists(), reason="only in a checkout of the whole project")
@pytest.mark.parametrize(("partitions", "key"), [(16, "dollars a month"), (200, "dollars a month with 200 partitions")])
def test_a_month_costs_what_was_measured(partitions: int, key: str) -> None:
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    found = saved([0.040], [0.050], [0.020], Shape(partitions))
    assert found.batches_a_month == 259_200
    assert found.stock_dollars_a_month == pytest.approx(measured["stock, direct write"][key], rel=0.02)
    assert found.log_dollars_a_month == pytest.approx(measured["spark-dstl, format 1"][key], rel=0.02)


def test_what_was_not_answered_counts_with_the_time_that_it_had(storage: FakeStorage) -> None:
    storage.before = unanswered_once("get", "put-3")
    (gets,) = (one for one in probed(storage).series if one.kind == "get")
    assert (len(gets.seconds), gets.unanswered) == (20, 1)


# What stays


def test_nothing_stays_and_nothing_else_is_touched(storage: FakeStorage) -> None:
    storage.there = {"commits/0": b"entry", ".dstl-probe-mine/x": b"another's"}
    before = dict(storage.there)
    measuring = probe_of(storage, storage.clock)
    measuring.run()
    assert storage.there == before
    assert measuring.left_behind == []


@pytest.mark.parametrize("error", [Refused("no permission"), KeyboardInterrupt()])
@pytest.mark.parametrize("kind", ["put", "exists", "get", "list", "create", "delete"])
def test_nothing_stays_after_an_error_or_an_interrupt(storage: FakeStorage, kind: str, error: BaseException) -> None:
    left = [4]

    def fails(asked: str, _name: str) -> None:
        if asked == kind:
            left[0] -= 1
            if left[0] == 0:
                raise error

    storage.before = fails
    measuring = probe_of(storage, storage.clock)
    with pytest.raises((CannotProbe, KeyboardInterrupt)):
        measuring.run()
    assert (storage.there, measuring.left_behind) == ({}, [])


def test_an_interrupt_while_requests_are_begun_ends_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    may_end = threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            may_end.set()
            super().shutdown(wait, cancel_futures=cancel_futures)

    class Interrupted(list[Callable[[], object]]):
        def __iter__(self) -> Iterator[Callable[[], object]]:
            yield may_end.wait
            yield from (partial(asked.append, number) for number in range(100))
            raise KeyboardInterrupt

    monkeypatch.setattr(measurement, "ThreadPoolExecutor", Pool)
    measuring = measurement.Measuring("place", 1, lambda: 0.0, lambda _what, _done, _of: None)
    with pytest.raises(KeyboardInterrupt):
        measuring.each("put", Interrupted())
    assert asked == []


def test_what_cannot_be_removed_is_named(storage: FakeStorage) -> None:
    def kept(kind: str, name: str) -> None:
        if kind == "delete" and name.endswith("/put-7"):
            raise Refused("it is locked")

    storage.before = kept
    measuring = probe_of(storage, storage.clock)
    with pytest.raises(CannotProbe, match="delete was refused: it is locked"):
        measuring.run()
    assert measuring.left_behind == [f"fake://place/{FOLDER}/put-7"]


@pytest.mark.parametrize(("objects", "named"), [(1, r"put-0"), (10, r"\d\d objects in \S+/\.dstl-probe-[0-9a-f]{16}$")])
def test_what_cannot_be_removed_is_counted_where_it_is_much(
    objects: int, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(self: LocalFiles, name: str) -> None:  # noqa: ARG001
        # Of one object of each kind, one stays.
        if objects > 1 or name.endswith("/put-0"):
            raise Refused("it is locked")

    monkeypatch.setattr(LocalFiles, "delete", kept)
    result = dstl(str(tmp_path), "--objects", str(objects))
    assert result.exit_code == 1
    (line,) = (line for line in result.output.splitlines() if line.startswith("could not be removed"))
    assert re.search(named, line)


def test_an_interrupt_while_removing_names_the_folder(storage: FakeStorage) -> None:
    def interrupted(kind: str, _name: str) -> None:
        if kind == "delete":
            raise KeyboardInterrupt

    storage.before = interrupted
    measuring = probe_of(storage, storage.clock)
    with pytest.raises(KeyboardInterrupt):
        measuring.run()
    assert measuring.left_behind == [f"fake://place/{FOLDER}"]


def test_a_write_that_was_not_answered_is_named_as_it_may_appear_yet(storage: FakeStorage) -> None:
    storage.before = unanswered_once("put", "put-3")
    assert probed(storage).may_appear == [f"fake://place/{FOLDER}/put-3"]


def test_storage_that_answers_nothing_is_not_asked_for_ever(storage: FakeStorage) -> None:
    def silent(kind: str, _name: str) -> None:
        if kind == "put":
            raise Unanswered("timed out")

    storage.before = silent
    with pytest.raises(CannotProbe, match="fake://place did not answer 11 requests, the last time put: timed out"):
        probed(storage, objects=500)
    assert storage.now < 1


# Whether it is exclusive


def test_storage_that_replaces_is_found_out(storage: FakeStorage) -> None:
    storage.exclusive = False
    report = probed(storage)
    assert report.exclusive.verdict == exclusiveness.NOT_EXCLUSIVE
    assert "creators of one object were answered that they had created it" in report.exclusive.why


def test_storage_that_replaces_only_later_is_found_out(storage: FakeStorage) -> None:
    storage.after = lambda kind, name: setattr(storage, "exclusive", kind != "create" or "race" in name)
    report = probed(storage)
    assert report.exclusive.verdict == exclusiveness.NOT_EXCLUSIVE


@pytest.mark.parametrize("name", ["race-2", "put-3"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_create_without_an_answer_is_unknown(storage: FakeStorage, name: str, when: str) -> None:
    setattr(storage, when, unanswered_once("create", name))
    report = probed(storage)
    assert report.exclusive.verdict == exclusiveness.UNKNOWN
    assert report.may_appear == [f"fake://place/{FOLDER}/{name}"]


def test_storage_that_knows_no_exclusive_creates_is_said_to(storage: FakeStorage) -> None:
    def unknown(kind: str, _name: str) -> None:
        if kind == "create":
            raise Refused("NotImplemented")

    storage.before = unknown
    report = probed(storage)
    assert report.exclusive.verdict == exclusiveness.NOT_EXCLUSIVE
    assert "NotImplemented" in report.exclusive.why


def test_where_it_cannot_be_asked_it_is_not(storage: FakeStorage) -> None:
    storage.not_exclusive_because = "no client can"
    storage.before = unanswered_once("create", "")
    report = probed(storage)
    assert (report.exclusive.verdict, report.exclusive.why) == (exclusiveness.NOT_ASKED, "no client can")


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (Race((0,), (1, 2), (), 0), exclusiveness.EXCLUSIVE),
        (Race((0, 1), (2,), (), 0), exclusiveness.NOT_EXCLUSIVE),
        (Race((0,), (1, 2), (), 1), exclusiveness.NOT_EXCLUSIVE),
        # An object that was acknowledged and is another's was replaced, also if a creator got no answer.
        (Race((0,), (1,), (2,), 2), exclusiveness.NOT_EXCLUSIVE),
        (Race((0,), (1,), (2,), 0), exclusiveness.UNKNOWN),
        (Race((), (0, 1), (2,), 2), exclusiveness.UNKNOWN),
        (Race((), (), (0, 1, 2), None), exclusiveness.UNKNOWN),
        (Race((), (0, 1, 2), (), None), exclusiveness.UNKNOWN),
        (Race((0,), (1, 2), (), None), exclusiveness.UNKNOWN),
    ],
)
def test_a_race_is_judged_by_what_was_told_and_what_is_there(one: Race, verdict: str) -> None:
    assert judged([Race((0,), (1, 2), (), 0), one], 3, 0, 0).verdict == verdict


def test_of_creators_at_once_one_makes_a_file(tmp_path: Path) -> None:
    local = storage_at(str(tmp_path), StorageOptions(), 1)
    one = race(local, "object", 16, b"content")
    assert one.is_settled
    assert len(one.refused) == 15
    assert [path.name for path in tmp_path.iterdir()] == ["object"]


# The command


def test_a_local_directory_is_probed_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "clicks").mkdir()
    result = dstl(str(tmp_path), "--objects", "30", "--size", "1k")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["clicks"]
    assert f"{tmp_path}: 30 objects of 1.0 KiB, 5 requests at once" in result.output
    assert "Exclusive creation: yes. In 10 races of 8 creators each one won" in result.output
    assert "- stands for too few requests: p99 takes 100 of a kind, p99.9 1000, as of --objects 1000." in result.output
    assert re.search(r"^put +30( +[0-9.]+){2} +- +- +[0-9.]+ +0$", result.output, re.MULTILINE), result.output
    assert "with the log; at S3's list prices $1,667 and $6." in result.output


def test_the_report_is_an_object_in_json(tmp_path: Path) -> None:
    result = dstl(f"file:{tmp_path}", "--objects", "10", "--output", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    series = {one["kind"]: one for one in found["series"]}
    assert series["put"]["requests"] == 10
    assert series["put"]["p999_seconds"] is None
    assert found["saved"]["log_requests"] == 2
    assert found["exclusive"]["verdict"] == "exclusive"


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the server look and write in one step, as S3 does."""
    from moto.s3.responses import S3Response

    lock, put = threading.Lock(), S3Response.put_object

    def locked(self: S3Response) -> object:
        with lock:
            return put(self)

    monkeypatch.setattr(S3Response, "put_object", locked)


@pytest.fixture
def ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the server ignore conditions, as some do."""
    from moto.s3.responses import S3Response

    put = S3Response.put_object

    def unconditional(self: S3Response) -> object:
        self.headers = {name: value for name, value in self.headers.items() if name.lower() != "if-none-match"}
        return put(self)

    monkeypatch.setattr(S3Response, "put_object", unconditional)


@pytest.fixture
def place(s3: Callable[[Path], str], tmp_path: Path) -> str:
    (tmp_path / "kept").write_bytes(b"kept")
    return s3(tmp_path)


@pytest.mark.usefixtures("one_at_a_time")
def test_s3_is_probed_and_left_as_it_was(place: str) -> None:
    result = dstl(place, "--objects", "20", "--size", "100")
    assert result.exit_code == 0, result.output
    assert "Exclusive creation: yes" in result.output
    s3_place = storage_at(place, StorageOptions(), 10)
    assert s3_place.folders() == []
    assert s3_place.get("kept") == b"kept"


@pytest.mark.usefixtures("ignored")
def test_a_server_that_ignores_conditions_is_an_exit_code(place: str) -> None:
    result = dstl(place, "--objects", "5", "--size", "100")
    assert result.exit_code == console.NOT_EXCLUSIVE, result.output
    assert "Exclusive creation: NO" in result.output
    assert storage_at(place, StorageOptions(), 10).folders() == []


@pytest.mark.parametrize("kind", ["local", "s3", "arrow"])
def test_storages_agree(tmp_path: Path, s3: Callable[[Path], str], kind: str) -> None:
    from pyarrow.fs import LocalFileSystem

    from spark_dstl.checkpoint.locate import Place
    from spark_dstl.probing.places import ArrowFiles

    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/object").write_bytes(b"x")
    there: ProbedStorage
    if kind == "arrow":
        there = ArrowFiles(Place(LocalFileSystem(), str(tmp_path), str(tmp_path)))
    else:
        there = storage_at(str(tmp_path) if kind == "local" else s3(tmp_path), StorageOptions(), 10)
    assert there.folders() == ["sub"]
    there.make_folder("made")
    there.put("made/a", b"first")
    there.put("made/a", b"second")
    assert (there.get("made/a"), there.get("made/b")) == (b"second", None)
    assert (there.exists("made/a"), there.exists("made/b")) == (True, False)
    if there.not_exclusive_because is None:
        assert there.create("made/b", b"b")
        assert not there.create("made/b", b"other")
        assert there.get("made/b") == b"b"
        there.delete("made/b")
    else:
        with pytest.raises(Refused, match="cannot ask for it"):
            there.create("made/b", b"b")
    assert (there.objects("made"), there.objects("none")) == (["made/a"], [])
    there.delete("made/a")
    there.delete("made/a")
    there.delete_folder("made")
    assert there.folders() == ["sub"]


def test_leftovers_are_named_and_removed_when_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "put-1").write_bytes(b"x")
    (tmp_path / ".dstl-probe-notes").mkdir()
    result = dstl(str(tmp_path), "--objects", "5")
    assert result.exit_code == 0, result.output
    assert f"{tmp_path}/{FOLDER}\ndstl probe {tmp_path} --remove-leftovers removes it.\n" in result.output
    assert folder.exists()
    result = dstl(str(tmp_path), "--remove-leftovers")
    assert (result.exit_code, result.output) == (0, f"removed {tmp_path}/{FOLDER}\n")
    assert leftovers_in(tmp_path) == [".dstl-probe-notes"]
    assert dstl(str(tmp_path), "--remove-leftovers").output == "Nothing was left by earlier probes.\n"


def test_a_leftover_that_cannot_be_removed_is_named_and_is_an_exit_code(tmp_path: Path) -> None:
    (tmp_path / FOLDER / "sub").mkdir(parents=True)
    result = dstl(str(tmp_path), "--remove-leftovers")
    assert (result.exit_code, result.output) == (1, f"could not be removed: {tmp_path}/{FOLDER}/sub\n")


@pytest.fixture
def silent_endpoint(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    # No server listens there.
    return "http://127.0.0.1:1"


def test_an_error_is_one_line_that_says_what_to_do_and_no_secret(tmp_path: Path, silent_endpoint: str) -> None:
    missing = dstl(str(tmp_path / "not-there"))
    assert (missing.exit_code, missing.output.count("\n")) == (1, 1)
    assert "not-there" in missing.output
    assert not (tmp_path / "not-there").exists()
    silent = dstl("s3a://bucket/q", "--endpoint", silent_endpoint)
    assert (silent.exit_code, silent.output.count("\n")) == (1, 1)
    assert "s3a://bucket/q could not be listed" in silent.output
    assert "very-secret" not in silent.output


def test_without_boto3_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str) -> object:
        raise ImportError(module)

    monkeypatch.setattr(dependencies, "import_module", missing)
    result = dstl("s3a://bucket/q")
    assert result.exit_code == 1
    assert 'pip install "spark-dstl[probe]"' in result.output


@pytest.mark.parametrize("wrong", [("--size", "17m"), ("--size", "0"), ("--objects", "10001"), ("--concurrency", "65")])
def test_what_is_written_is_bounded(tmp_path: Path, wrong: tuple[str, str]) -> None:
    assert dstl(str(tmp_path), *wrong).exit_code == 2


def test_help_has_an_example() -> None:
    assert "  dstl probe s3a://bucket/checkpoints" in dstl("--help").output


def test_what_looks_at_checkpoints_does_not_know_what_writes() -> None:
    root = Path(spark_dstl.__file__).parent
    for path in (root / "checkpoint").rglob("*.py"):
        assert "probing" not in path.read_text(encoding="utf-8"), path


def test_a_server_of_the_environment_is_asked_as_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:7070")
    client = S3Objects("s3://bucket/q", "bucket/q", StorageOptions(), timeout_seconds=1)._client
    # With the bucket in the host's name nothing would be there: 127.0.0.1 has no subdomains.
    assert client.meta.config.s3["addressing_style"] == "path"
    assert (client.meta.endpoint_url, client.meta.region_name) == ("http://127.0.0.1:7070", "us-east-1")
