# SPDX-License-Identifier: Apache-2.0
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3] / "project"
if not (PROJECT / "release.py").exists():
    pytest.skip("only in a checkout of the whole project", allow_module_level=True)
sys.path.insert(0, str(PROJECT))

import release as releasing  # noqa: E402

NAME = "spark-dstl-spark4.2_2.13-1.2.3"


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release that nothing prevents from being published."""
    monkeypatch.setattr(releasing, "git", lambda command, *_: "v1.2.3" if command == "tag" else "")
    (tmp_path / "maven" / "io" / "github" / "somebody").mkdir(parents=True)
    (tmp_path / "spark_dstl-1.2.3-py3-none-any.whl").touch()
    return tmp_path


def test_a_release_that_lacks_nothing_can_be_published(release: Path) -> None:
    assert releasing.missing(release) == []


def test_a_placeholder_for_the_owner_prevents_publishing(release: Path) -> None:
    (release / "maven" / "io" / "github" / "somebody").rename(release / "maven" / "io" / "github" / "OWNER")
    (line,) = releasing.missing(release)
    assert line.startswith("OWNER is a placeholder")


def test_a_commit_without_its_tag_and_changes_that_are_not_committed_are_named(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releasing, "git", lambda *command: " M README.md" if command[0] == "status" else "")
    assert [line.split()[-1] for line in releasing.missing(release)] == ["v1.2.3", "committed"]


def jar(content: str, compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("content", content)
    return file.getvalue()


def test_the_wheel_must_carry_the_jar_that_is_published(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.jar").write_bytes(jar("one", zipfile.ZIP_DEFLATED))
    for content in (jar("one"), jar("another")):
        with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
            wheel.writestr(f"spark_dstl/jars/{NAME}.jar", content)
        if content == jar("one"):
            releasing.check_wheel(tmp_path)
    with pytest.raises(releasing.ReleaseFailed, match="does not carry the jars"):
        releasing.check_wheel(tmp_path)


def test_the_wheel_must_carry_the_jar_for_each_spark(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr(f"spark_dstl/jars/{NAME}.jar", jar("one"))
    (tmp_path / f"{NAME}.jar").write_bytes(jar("one"))
    releasing.check_wheel(tmp_path)
    (tmp_path / f"{NAME.replace('4.2', '4.3')}.jar").write_bytes(jar("one"))
    with pytest.raises(releasing.ReleaseFailed, match="does not carry the jars"):
        releasing.check_wheel(tmp_path)


def test_checksums_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("x")
    (tmp_path / "a").write_text("y")
    written = releasing.sums(tmp_path.iterdir())
    assert [line.split("  ")[1] for line in written.splitlines()] == ["a", "b"]
    (tmp_path / releasing.SUMS).write_text(written)
    subprocess.run(["sha256sum", "--check", "--quiet", releasing.SUMS], cwd=tmp_path, check=True)
    assert releasing.sums(tmp_path.iterdir()) == written
