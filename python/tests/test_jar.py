from pathlib import Path

import pytest

from spark_dstl import JarNotFound, __version__, jar, jar_path


@pytest.fixture(autouse=True)
def no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_DSTL_JAR", raising=False)


def test_the_shipped_jar_carries_the_version_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = tmp_path / f"spark-dstl_2.13-{__version__}.jar"
    shipped.touch()
    monkeypatch.setattr(jar, "_JAR_DIRECTORY", tmp_path)
    assert jar_path() == shipped


def test_a_missing_jar_is_reported_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jar, "_JAR_DIRECTORY", tmp_path)
    with pytest.raises(JarNotFound, match="make jar") as error:
        jar_path()
    assert str(tmp_path) in str(error.value)


def test_the_environment_names_another_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.jar"
    monkeypatch.setenv("SPARK_DSTL_JAR", str(other))
    with pytest.raises(JarNotFound, match="SPARK_DSTL_JAR"):
        jar_path()
    other.touch()
    assert jar_path() == other
