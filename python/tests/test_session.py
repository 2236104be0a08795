from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

import spark_dstl
from spark_dstl import InvalidOption, JarNotFound, UnknownOption, UnsupportedSpark, configure, configure_session

PREFIX = "spark.sql.streaming.stateStore.dstl."


@pytest.fixture(autouse=True)
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "spark-dstl.jar"
    path.touch()
    monkeypatch.setenv("SPARK_DSTL_JAR", str(path))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    return path


def options_of(builder: SparkSession.Builder) -> dict[str, Any]:
    return dict(builder._options)


def test_it_sets_everything_that_a_session_needs(jar: Path) -> None:
    builder = SparkSession.builder.appName("orders")
    assert configure(builder, commit_timeout="5min") is builder
    package = "org.apache.spark.sql.execution.streaming.state.dstl"
    assert options_of(builder) == {
        "spark.app.name": "orders",
        "spark.jars": str(jar),
        "spark.sql.streaming.stateStore.providerClass": f"{package}.DstlStateStoreProvider",
        "spark.sql.streaming.checkpointFileManagerClass": f"{package}.DstlCheckpointFileManager",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        f"{PREFIX}commit.timeout": "5min",
    }


def test_the_stock_provider_keeps_its_name_above_our_file_manager() -> None:
    options = options_of(configure(SparkSession.builder, provider="stock"))
    state = "org.apache.spark.sql.execution.streaming.state"
    assert options["spark.sql.streaming.stateStore.providerClass"] == f"{state}.RocksDBStateStoreProvider"
    assert options["spark.sql.streaming.checkpointFileManagerClass"] == f"{state}.dstl.DstlCheckpointFileManager"


def test_an_unknown_provider_is_refused_with_those_that_there_are() -> None:
    builder = SparkSession.builder
    with pytest.raises(InvalidOption, match="provider cannot be 'rocksdb': it must be one of dstl, stock"):
        configure(builder, provider=cast(Any, "rocksdb"))
    assert options_of(builder) == {}


class RunningSession:
    """The part of a session, of either kind, that says what has been set while it runs."""

    def __init__(self) -> None:
        self.conf = self
        self.settings: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        self.settings[key] = value


def test_a_running_session_is_told_everything_but_the_jar() -> None:
    session = RunningSession()
    assert configure_session(cast(Any, session), provider="stock", commit_timeout="5min") is cast(Any, session)
    told = options_of(configure(SparkSession.builder, provider="stock", commit_timeout="5min"))
    del told["spark.jars"]
    assert session.settings == told


@pytest.mark.parametrize("options", [{"commit_timeout": "later"}, {"provider": "none"}])
def test_a_refused_option_leaves_a_running_session_as_it_was(options: dict[str, Any]) -> None:
    session = RunningSession()
    with pytest.raises(InvalidOption):
        configure_session(cast(Any, session), **options)
    assert session.settings == {}


def test_a_key_is_taken_as_it_stands() -> None:
    builder = configure(SparkSession.builder, **{"upload.maxInFlight": "50m"})
    assert options_of(builder)[f"{PREFIX}upload.maxInFlight"] == "50m"


def test_jars_that_are_there_stay_and_none_is_added_twice(jar: Path) -> None:
    builder = SparkSession.builder.config("spark.jars", "/a.jar, /b.jar")
    configure(configure(builder))
    assert options_of(builder)["spark.jars"] == f"/a.jar,/b.jar,{jar}"


@pytest.mark.parametrize(
    ("options", "error"),
    [({"commit_timeout": "later"}, InvalidOption), ({"comit_timeout": "5min"}, UnknownOption)],
)
def test_a_refused_option_leaves_the_builder_as_it_was(options: dict[str, str], error: type[Exception]) -> None:
    builder = SparkSession.builder.appName("orders")
    with pytest.raises(error):
        configure(builder, **options)
    assert options_of(builder) == {"spark.app.name": "orders"}


def test_a_missing_jar_leaves_the_builder_as_it_was(jar: Path) -> None:
    jar.unlink()
    builder = SparkSession.builder
    with pytest.raises(JarNotFound):
        configure(builder)
    assert options_of(builder) == {}


@pytest.mark.parametrize("version", ["4.1.1", "4.20.0", "3.5.3"])
def test_another_spark_is_refused_with_what_to_install(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", version)
    with pytest.raises(UnsupportedSpark, match=r"4\.2\.x") as error:
        configure(SparkSession.builder)
    assert f"PySpark {version} is installed" in str(error.value)
    assert "pip install" in str(error.value)


@pytest.mark.parametrize("version", ["4.2.0", "4.2.7", "4.2.1.dev0"])
def test_every_patch_release_of_the_supported_spark_is_taken(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", version)
    configure(SparkSession.builder)


def test_a_running_connect_server_gets_settings_but_no_jar(jar: Path) -> None:
    jar.unlink()
    builder = configure(SparkSession.builder.remote("sc://spark.example:15002"), upload_num_threads=8)
    assert "spark.jars" not in options_of(builder)
    assert options_of(builder)[f"{PREFIX}upload.numThreads"] == "8"


def test_a_connect_server_named_by_the_environment_gets_no_jar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://spark.example:15002")
    assert "spark.jars" not in options_of(configure(SparkSession.builder))


def test_a_connect_server_that_pyspark_starts_itself_gets_the_jar(jar: Path) -> None:
    assert options_of(configure(SparkSession.builder.remote("local[2]")))["spark.jars"] == str(jar)


def test_errors_are_of_the_kinds_that_callers_expect() -> None:
    assert issubclass(spark_dstl.UnknownOption, ValueError)
    assert issubclass(spark_dstl.InvalidOption, ValueError)
    assert issubclass(spark_dstl.UnsupportedSpark, RuntimeError)
    assert issubclass(spark_dstl.JarNotFound, FileNotFoundError)
    assert all(issubclass(getattr(spark_dstl, name), spark_dstl.DstlError) for name in ("UnknownOption", "JarNotFound"))
