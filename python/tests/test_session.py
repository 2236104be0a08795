# SPDX-License-Identifier: Apache-2.0
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.java_gateway import JavaPackage
from pyspark.sql import SparkSession

import spark_dstl
from spark_dstl import (
    InvalidOption,
    JarNotFound,
    JarNotLoaded,
    UnsupportedSpark,
    __version__,
    conf,
    configure,
    configure_session,
    jvm,
)

CHARTS = "spark.sql.streaming.ui.enabledCustomMetricList"
PREFIX = "spark.sql.streaming.stateStore.dstl."
STATE = "org.apache.spark.sql.execution.streaming.state"


@pytest.fixture(autouse=True)
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "spark-dstl.jar"
    path.touch()
    monkeypatch.setenv("SPARK_DSTL_JAR", str(path))
    for name in ("SPARK_REMOTE", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    return path


def options_of(builder: SparkSession.Builder) -> dict[str, Any]:
    return dict(builder._options)


def jvm_with(release: str | None, mismatch: str | None = None) -> Any:
    """What py4j shows of a JVM with the jar of a release, or without the jar."""
    known = SimpleNamespace(version=lambda: release, mismatch=lambda: mismatch)
    found = known if release else JavaPackage("any", cast(Any, None))
    return SimpleNamespace(**{f"{STATE}.dstl.DstlRelease": found})


def test_it_sets_everything_that_a_session_needs(jar: Path) -> None:
    builder = SparkSession.builder.appName("orders")
    assert configure(builder, commit_timeout="5min") is builder
    assert options_of(builder) == {
        "spark.app.name": "orders",
        "spark.jars": str(jar),
        "spark.sql.streaming.stateStore.providerClass": f"{STATE}.dstl.DstlStateStoreProvider",
        "spark.sql.streaming.checkpointFileManagerClass": f"{STATE}.dstl.DstlCheckpointFileManager",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        f"{PREFIX}commit.timeout": "5min",
        CHARTS: "dstlBarrierWaitMs,dstlCommitEntryWriteMs,dstlBackPressureTimeMs,dstlLogBytes,dstlSnapshotBytes,"
        "dstlReplayedBytes",
    }


def test_charts_of_the_builder_stay_and_none_is_named_twice() -> None:
    builder = SparkSession.builder.config(CHARTS, "rocksdbSstFileSize, DSTLLOGBYTES")
    configure(configure(builder))
    names = options_of(builder)[CHARTS].split(",")
    assert names[:2] == ["rocksdbSstFileSize", "DSTLLOGBYTES"]
    assert sorted(name.lower() for name in names) == sorted({name.lower() for name in names})
    assert "dstlBarrierWaitMs" in names


def test_no_charts_are_asked_for_where_spark_s_provider_has_no_such_figures_or_the_server_runs_already() -> None:
    assert CHARTS not in conf(transform_with_state=True)
    assert CHARTS not in options_of(configure(SparkSession.builder, transform_with_state=True))
    assert CHARTS not in options_of(configure(SparkSession.builder.remote("sc://spark.example:15002")))


def test_the_settings_for_a_cluster_are_those_of_a_session(jar: Path) -> None:
    told = options_of(configure(SparkSession.builder, commit_timeout="5min", transform_with_state=True))
    assert conf(commit_timeout="5min", transform_with_state=True) == told
    assert list(told.values()).count(str(jar)) == 1


def test_the_settings_for_a_cluster_name_its_place_of_the_jar_or_none() -> None:
    assert conf(jar="s3a://bucket/spark-dstl.jar")["spark.jars"] == "s3a://bucket/spark-dstl.jar"
    assert conf(jar=Path("/opt/spark-dstl.jar"))["spark.jars"] == "/opt/spark-dstl.jar"
    assert "spark.jars" not in conf(jar=False)
    with pytest.raises(InvalidOption, match="jar cannot be empty"):
        conf(jar="")


def test_transform_with_state_keeps_the_name_of_spark_s_provider_above_our_file_manager() -> None:
    options = options_of(configure(SparkSession.builder, transform_with_state=True))
    assert options["spark.sql.streaming.stateStore.providerClass"] == f"{STATE}.RocksDBStateStoreProvider"
    assert options["spark.sql.streaming.checkpointFileManagerClass"] == f"{STATE}.dstl.DstlCheckpointFileManager"


class RunningSession:
    """The part of a session that says what has been set while it runs."""

    def __init__(self, version: str = "4.2.0") -> None:
        self.conf = self
        self.sparkContext = None
        self.settings: dict[str, str] = {}
        self.version = version

    def set(self, key: str, value: str) -> None:
        self.settings[key] = value


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.SparkContext._jvm", jvm_with(__version__))


@pytest.mark.usefixtures("loaded")
def test_a_running_session_gets_all_settings_but_those_that_spark_reads_at_its_start() -> None:
    session = RunningSession()
    assert configure_session(cast(Any, session), commit_timeout="5min") is cast(Any, session)
    expected = conf(jar=False, commit_timeout="5min")
    del expected[CHARTS]
    assert session.settings == expected


@pytest.mark.usefixtures("loaded")
def test_a_refused_option_leaves_a_running_session_as_it_was() -> None:
    session = RunningSession()
    with pytest.raises(InvalidOption):
        configure_session(cast(Any, session), base_path="logs")
    assert session.settings == {}


def test_a_running_session_of_another_spark_is_refused() -> None:
    session = RunningSession("3.4.0")
    with pytest.raises(UnsupportedSpark, match=r"Spark 3\.4\.0 is what this session runs on"):
        configure_session(cast(Any, session))
    assert session.settings == {}


@pytest.mark.parametrize(
    ("release", "problem"), [(None, "without the jar"), ("0.0.9", "with the jar of release 0.0.9")]
)
def test_a_jvm_that_runs_without_this_release_s_jar_is_refused_with_what_to_do(
    release: str | None, problem: str, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.SparkContext._jvm", jvm_with(release))
    builder, session = SparkSession.builder, RunningSession()
    for refused in (lambda: configure(builder), lambda: configure_session(cast(Any, session))):
        with pytest.raises(JarNotLoaded, match=problem) as error:
            refused()
        assert "kernel" in str(error.value)
        assert f"--jars {jar}" in str(error.value)
    assert options_of(builder) == session.settings == {}


def test_a_jvm_that_runs_with_the_jar_for_another_spark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.SparkContext._jvm", jvm_with(__version__, "This jar is for Spark 4.2."))
    with pytest.raises(JarNotLoaded, match=r"This jar is for Spark 4\.2\. Restart the Python process"):
        configure(SparkSession.builder)


@pytest.mark.usefixtures("loaded")
def test_where_a_jvm_runs_with_the_jar_the_list_of_jars_stays_as_it_is(jar: Path) -> None:
    jar.unlink()
    assert "spark.jars" not in options_of(configure(SparkSession.builder))


def test_under_spark_submit_the_way_out_is_its_flag(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with pytest.raises(JarNotLoaded, match=f"spark-submit --jars {jar}"):
        jvm.check_jvm(jvm_with(None))


def test_without_the_jar_the_way_out_names_the_one_for_this_spark(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar.unlink()
    monkeypatch.setattr("pyspark.__version__", "3.5.8")
    with pytest.raises(JarNotLoaded, match=f"--jars spark-dstl-spark3.5_2.12-{__version__}.jar"):
        jvm.check_jvm(jvm_with(None))


def test_a_session_in_place_of_a_builder_is_refused_with_the_function_that_takes_it() -> None:
    with pytest.raises(TypeError, match="RunningSession: for a session that runs, call configure_session"):
        configure(cast(Any, RunningSession()))


@pytest.mark.parametrize(
    "arguments",
    [
        "--jars /a.jar,/b.jar pyspark-shell",
        "--master local --jars '/a b.jar' x",
        "--jars=/a.jar,/b.jar pyspark-shell",
        "--jars /spark-dstl.jar --jars=/a.jar pyspark-shell",
        "--conf spark.jars=/a.jar pyspark-shell",
        "--conf=spark.jars=/a.jar,/b.jar -c spark.jars=/b.jar pyspark-shell",
    ],
)
def test_a_list_of_jars_for_which_spark_ignores_the_setting_is_refused(
    arguments: str, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    builder = SparkSession.builder
    with pytest.raises(JarNotLoaded, match="PYSPARK_SUBMIT_ARGS") as error:
        configure(builder)
    assert str(jar) in str(error.value)
    assert options_of(builder) == {}


@pytest.mark.parametrize(
    "flag", ["--jars ", "--jars=", "--jars=/b.jar --jars ", "-c spark.jars=", "--conf spark.jars=/b.jar --jars "]
)
def test_a_list_of_jars_that_has_ours_is_left_to_spark(flag: str, jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{flag}/a.jar,/elsewhere/{jar.name} pyspark-shell")
    assert options_of(configure(SparkSession.builder))["spark.jars"] == str(jar)


def test_jars_that_are_there_stay_and_none_is_added_twice(jar: Path) -> None:
    builder = SparkSession.builder.config("spark.jars", "/a.jar, /b.jar")
    configure(configure(builder))
    assert options_of(builder)["spark.jars"] == f"/a.jar,/b.jar,{jar}"


def test_a_refused_option_leaves_the_builder_as_it_was() -> None:
    builder = SparkSession.builder.appName("orders")
    with pytest.raises(InvalidOption, match="commit_timeout cannot be 'later'"):
        configure(builder, commit_timeout="later")
    assert options_of(builder) == {"spark.app.name": "orders"}


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="comit_timeout"):
        configure(SparkSession.builder, comit_timeout="5min")  # type: ignore[call-arg]


def test_a_missing_jar_leaves_the_builder_as_it_was(jar: Path) -> None:
    jar.unlink()
    builder = SparkSession.builder
    with pytest.raises(JarNotFound):
        configure(builder)
    assert options_of(builder) == {}


@pytest.mark.parametrize("version", ["4.20.0", "3.4.3", "5.0.0"])
def test_another_spark_is_refused_with_what_to_install(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", version)
    with pytest.raises(UnsupportedSpark, match=r"works with Spark 3\.5, 4\.0, 4\.1, 4\.2 and 4\.3") as error:
        configure(SparkSession.builder)
    assert f"PySpark {version} is installed" in str(error.value)
    assert "pip install" in str(error.value)


@pytest.mark.parametrize("version", ["4.2.0", "4.2.7", "4.2.1.dev0", "4.3.0", "4.3.9"])
def test_every_patch_release_of_a_supported_spark_is_taken(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", version)
    configure(SparkSession.builder)


@pytest.mark.parametrize(
    "name",
    [
        "spark-core_2.13-3.4.1.jar",
        "spark-core_2.12-4.2.0.jar",
        "spark-core_2.13-3.5.8.jar",
        "spark-core_2.13-4.3.0.jar",
    ],
)
def test_another_spark_home_is_refused_by_its_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.2.0")
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / name).touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(UnsupportedSpark, match="SPARK_HOME") as error:
        configure(SparkSession.builder)
    assert str(tmp_path) in str(error.value)
    (tmp_path / "jars" / name).rename(tmp_path / "jars" / "spark-core_2.13-4.2.1.jar")
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


@pytest.mark.usefixtures("jar")
def test_a_connect_server_that_pyspark_starts_itself_does_not_warn_of_settings_that_it_has() -> None:
    """PySpark starts the server with the builder's settings, and sets them again in its session."""
    configure(SparkSession.builder.remote("local[2]"))
    with warnings.catch_warnings(record=True) as warned:
        for key in ("spark.jars", CHARTS, "spark.other"):
            warnings.warn(f"Failed to set {key} to Some(x) due to [CANNOT_MODIFY_CONFIG]", UserWarning, stacklevel=1)
    assert [str(one.message).split()[3] for one in warned] == ["spark.other"]


def test_errors_are_of_the_kinds_that_callers_expect() -> None:
    assert issubclass(spark_dstl.InvalidOption, ValueError)
    assert issubclass(spark_dstl.JarNotLoaded, RuntimeError)
    assert issubclass(spark_dstl.UnsupportedSpark, RuntimeError)
    assert issubclass(spark_dstl.JarNotFound, FileNotFoundError)
    assert all(issubclass(getattr(spark_dstl, name), spark_dstl.DstlError) for name in ("InvalidOption", "JarNotFound"))
