# SPDX-License-Identifier: Apache-2.0
"""What `dstl probe` prints, and its exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from documents import ROOT, in_a_checkout
from fake_storage import FOLDER
from invoked import dstl, succeeded

from spark_dstl.checkpoint.locate import StorageOptions
from spark_dstl.commands import console
from spark_dstl.probing.places import LocalFiles, storage_at
from spark_dstl.probing.storage import Refused

WORTH = ROOT / "docs" / "worth-it.md"


probe = partial(dstl, "probe")
probed = partial(succeeded, "probe")


def leftovers_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.name.startswith(".dstl-probe-")]


def test_a_local_directory_is_probed_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "clicks").mkdir()
    result = probed(tmp_path, "--objects", "30", "--size", "1k")
    assert result.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["clicks"]
    assert f"{tmp_path}: 30 objects of 1.0 KiB, 5 requests at once" in result.output
    assert "Exclusive creation: yes. In 10 races of 8 creators each one won" in result.output
    assert "- stands for too few requests: p99 takes 100 of a kind, p99.9 1000, as of --objects 1000." in result.output
    assert re.search(r"^put +30( +[0-9.]+){2} +- +- +[0-9.]+ +0$", result.output, re.MULTILINE), result.output
    assert re.search(r"^list price on S3 +\$1,652 +\$7$", result.output, re.MULTILINE), result.output


def test_without_a_path_the_cost_of_a_query_is_printed() -> None:
    result = probed("--query", "partitions=64,stores=1,batches-per-hour=600")
    assert "A query with 64 partitions of 1 store, 16 slots and 600 batches an hour" in result.output
    assert re.search(r"^requests that a batch waits for +8 +2$", result.output, re.MULTILINE), result.output
    assert re.search(r"^ms of waiting, with medians +320 +80\.0$", result.output, re.MULTILINE), result.output
    assert json.loads(probe("--query", "stores=4", "--output", "json").output)["shape"]["stores"] == 4


@in_a_checkout
def test_the_page_about_costs_has_what_the_command_prints() -> None:
    page = WORTH.read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (\d+) \| (\d) \| (\d+) \| ([\d,]+) / (\d+) ms \| \$([\d,]+) / \$(\d+) \|$", page, re.MULTILINE
    )
    assert len(rows) > 4
    for partitions, stores, batches, *shown in rows:
        query = f"partitions={partitions},stores={stores},batches-per-hour={batches}"
        cost = json.loads(probe("--query", query, "--output", "json").output)
        milliseconds = [f"{1000 * cost[f'{of}_median']:,.0f}" for of in ("stock", "log")]
        assert shown == milliseconds + [f"{cost[f'{of}_dollars_a_month']:,.0f}" for of in ("stock", "log")]
    (example,) = re.findall(r"^dstl probe (--query \S+)$", page, re.MULTILINE)
    probed(*example.split())


@pytest.mark.parametrize("query", ["", "partitions", "partitions=0", "stores=17", "partition=4", "slots=1.5"])
def test_a_wrong_figure_of_a_query_is_refused_by_name(query: str) -> None:
    result = probe("--query", query)
    assert result.exit_code == 2
    assert f"{query} is not NAME=NUMBER with one of partitions up to 10000, stores up to 16" in result.output


def test_a_path_or_a_query_is_needed() -> None:
    assert (probe().exit_code, "Missing argument 'PATH'" in probe().output) == (2, True)


def test_the_report_is_an_object_in_json(tmp_path: Path) -> None:
    result = probed(f"file:{tmp_path}", "--objects", "10", "--output", "json")
    found = json.loads(result.output)
    series = {one["kind"]: one for one in found["series"]}
    assert series["put"]["requests"] == 10
    assert series["put"]["p999_seconds"] is None
    assert found["saved"]["log_requests"] == 2
    assert found["exclusive"]["verdict"] == "exclusive"


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


def test_s3_is_probed_and_left_as_it_was(place: str) -> None:
    result = probed(place, "--objects", "20", "--size", "100")
    assert "Exclusive creation: yes" in result.output
    s3_place = storage_at(place, StorageOptions(), 10)
    assert s3_place.folders() == []
    assert s3_place.get("kept") == b"kept"


@pytest.mark.usefixtures("ignored")
def test_a_server_that_ignores_conditions_is_an_exit_code(place: str) -> None:
    result = probe(place, "--objects", "5", "--size", "100")
    assert result.exit_code == console.NOT_EXCLUSIVE, result.output
    assert "Exclusive creation: NO" in result.output
    assert storage_at(place, StorageOptions(), 10).folders() == []


def test_leftovers_are_named_and_removed_when_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "put-1").write_bytes(b"x")
    (tmp_path / ".dstl-probe-notes").mkdir()
    result = probed(tmp_path, "--objects", "5")
    assert f"{tmp_path}/{FOLDER}\ndstl probe {tmp_path} --remove-leftovers removes it.\n" in result.output
    assert folder.exists()
    result = probe(tmp_path, "--remove-leftovers")
    assert (result.exit_code, result.output) == (0, f"removed {tmp_path}/{FOLDER}\n")
    assert leftovers_in(tmp_path) == [".dstl-probe-notes"]
    assert probe(tmp_path, "--remove-leftovers").output == "Nothing was left by earlier probes.\n"


def test_a_leftover_that_cannot_be_removed_is_named_and_is_an_exit_code(tmp_path: Path) -> None:
    (tmp_path / FOLDER / "sub").mkdir(parents=True)
    result = probe(tmp_path, "--remove-leftovers")
    assert (result.exit_code, result.output) == (1, f"could not be removed: {tmp_path}/{FOLDER}/sub\n")


@pytest.fixture
def silent_endpoint(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    # No server listens there.
    return "http://127.0.0.1:1"


def test_an_error_is_one_line_without_secrets(tmp_path: Path, silent_endpoint: str) -> None:
    missing = probe(tmp_path / "not-there")
    assert (missing.exit_code, missing.output.count("\n")) == (1, 1)
    assert "not-there" in missing.output
    assert not (tmp_path / "not-there").exists()
    silent = probe("s3a://bucket/q", "--endpoint", silent_endpoint)
    assert (silent.exit_code, silent.output.count("\n")) == (1, 1)
    assert "s3a://bucket/q could not be listed" in silent.output
    assert "very-secret" not in silent.output


@pytest.mark.usefixtures("no_packages")
@pytest.mark.parametrize("place", ["s3a://bucket/q", "/q"])
def test_without_the_client_the_error_names_the_extra(place: str) -> None:
    result = probe(place)
    assert result.exit_code == 1
    assert 'pip install "spark-dstl[probe]"' in result.output


@pytest.mark.parametrize("wrong", [("--size", "17m"), ("--size", "0"), ("--objects", "10001"), ("--concurrency", "65")])
def test_the_options_have_limits(tmp_path: Path, wrong: tuple[str, str]) -> None:
    assert probe(tmp_path, *wrong).exit_code == 2


@pytest.mark.parametrize(("objects", "named"), [(1, r"put-0"), (10, r"\d\d objects in \S+/\.dstl-probe-[0-9a-f]{16}$")])
def test_many_leftovers_are_counted_and_few_are_named(
    objects: int, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(self: LocalFiles, name: str) -> None:  # noqa: ARG001
        # Of one object of each kind, one stays.
        if objects > 1 or name.endswith("/put-0"):
            raise Refused("it is locked")

    monkeypatch.setattr(LocalFiles, "delete", kept)
    result = probe(tmp_path, "--objects", objects)
    assert result.exit_code == 1
    (line,) = (line for line in result.output.splitlines() if line.startswith("could not be removed"))
    assert re.search(named, line)
