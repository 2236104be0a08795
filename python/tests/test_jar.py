# SPDX-License-Identifier: Apache-2.0
import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from spark_dstl import JarNotFound, UnsupportedSpark, __version__, jar, jar_path
from spark_dstl.release import LINES, SparkLine, installed_line

NAME = installed_line().jar


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that stands for the package's."""
    monkeypatch.delenv("SPARK_DSTL_JAR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    directory = tmp_path / "spark_dstl"
    (directory / "jars").mkdir(parents=True)
    monkeypatch.setattr(jar, "_package", lambda: directory)
    return directory


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel that stands for the one that Python imports the package from."""
    wheel = tmp_path / "spark_dstl.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(f"spark_dstl/jars/{NAME}", b"the jar")
    monkeypatch.setattr(jar, "_package", lambda: zipfile.Path(wheel) / "spark_dstl")
    return wheel


def test_the_shipped_jar_carries_the_version_of_the_package(package: Path) -> None:
    (package / "jars" / NAME).touch()
    assert jar_path() == package / "jars" / NAME


@pytest.mark.parametrize("line", LINES, ids=[line.name for line in LINES])
def test_each_supported_spark_has_a_jar_of_its_own(
    line: SparkLine, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in LINES:
        (package / "jars" / other.jar).touch()
    assert len({other.jar for other in LINES}) == len(LINES)
    place = package / "jars" / line.jar
    assert f"-spark{line.name}_{line.scala}-" in place.name
    assert jar_path(line.name) == jar_path(line.version) == jar_path(f"{line.name}.99") == place
    monkeypatch.setattr("pyspark.__version__", f"{line.name}.99")
    assert jar_path() == place


@pytest.mark.parametrize("version", ["4.20.0", "5.0", "4"])
def test_there_is_no_jar_for_another_spark(version: str) -> None:
    with pytest.raises(
        UnsupportedSpark, match=rf"works with Spark 3\.5, 4\.0, 4\.1, 4\.2 and 4\.3; Spark {version} was asked for"
    ):
        jar_path(version)


def test_without_pyspark_the_spark_must_be_named(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package / "jars" / LINES[0].jar).touch()
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(UnsupportedSpark, match="PySpark is not installed"):
        jar_path()
    assert jar_path(LINES[0].name) == package / "jars" / LINES[0].jar


def test_a_missing_jar_is_reported_with_what_every_user_can_do(package: Path) -> None:
    with pytest.raises(JarNotFound, match=f"pip install --force-reinstall spark-dstl=={__version__}") as error:
        jar_path()
    assert str(package) in str(error.value)


def test_a_package_that_was_built_for_other_sparks_names_them(package: Path) -> None:
    (package / "jars" / LINES[1].jar).touch()
    with pytest.raises(JarNotFound, match=f"was built for Spark {LINES[1].name} alone, not for {LINES[0].name}"):
        jar_path(LINES[0].name)


def test_the_environment_names_another_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.jar"
    monkeypatch.setenv("SPARK_DSTL_JAR", str(other))
    with pytest.raises(JarNotFound, match="SPARK_DSTL_JAR"):
        jar_path()
    other.touch()
    assert jar_path() == other


@pytest.mark.usefixtures("archive")
def test_a_jar_in_a_wheel_is_unpacked_once(tmp_path: Path) -> None:
    path = jar_path()
    assert path.read_bytes() == b"the jar"
    assert path.is_relative_to(tmp_path / "cache")
    written = path.stat().st_mtime_ns
    assert jar_path() == path
    assert path.stat().st_mtime_ns == written
    assert [file.name for file in path.parent.iterdir()] == [NAME]


@pytest.mark.usefixtures("archive")
def test_an_unpacked_jar_that_is_damaged_is_unpacked_again() -> None:
    path = jar_path()
    path.write_bytes(b"the j")
    assert jar_path() == path
    assert path.read_bytes() == b"the jar"


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.usefixtures("archive")
@pytest.mark.parametrize("home", [True, False])
def test_where_the_cache_cannot_be_written_the_jar_is_unpacked_elsewhere(
    home: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if home:
        (tmp_path / "cache").write_text("a file, where a directory should be")
    else:
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    jar._temporary.cache_clear()
    path = jar_path()
    assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(b"the jar").digest()
    assert path.is_relative_to(tmp_path)
    assert jar_path() == path


@pytest.mark.usefixtures("archive")
def test_a_jar_that_could_not_be_written_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = Path.replace

    def fails_in_the_cache(self: Path, target: Path) -> Path:
        if target.is_relative_to(tmp_path / "cache"):
            raise OSError("no space left")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fails_in_the_cache)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    jar._temporary.cache_clear()
    assert jar_path().read_bytes() == b"the jar"
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []
