# SPDX-License-Identifier: Apache-2.0
import ast
import io
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from documents import in_a_checkout

import spark_dstl
from spark_dstl.release import LINES, SparkLine

PYTHON_ROOT = Path(__file__).resolve().parents[2]
BUILD_DEFINITION = PYTHON_ROOT.parent / "build.sbt"


def built_with(name: str) -> str:
    """What the build says of a version, such as that of Spark."""
    match = re.search(rf'^(?:ThisBuild / |val ){name} :?= "(.+)"$', BUILD_DEFINITION.read_text("utf-8"), re.MULTILINE)
    assert match is not None
    return match[1]


@in_a_checkout
def test_package_and_jar_have_the_same_version() -> None:
    assert built_with("version") == spark_dstl.__version__


@in_a_checkout
def test_the_package_and_the_build_know_the_same_sparks() -> None:
    definition = (BUILD_DEFINITION.parent / "project" / "SparkLine.scala").read_text(encoding="utf-8")
    built = re.findall(r'SparkLine\(\s*"([0-9.]+)", "([0-9.]+)", "([0-9]+\.[0-9]+)', definition)
    assert sorted(built) == sorted((line.name, line.version, line.scala) for line in LINES)


@in_a_checkout
def test_each_script_that_a_make_target_runs_exists() -> None:
    makefile = (PYTHON_ROOT.parent / "Makefile").read_text(encoding="utf-8")
    scripts = set(re.findall(r"\b(?:project|python)/[\w/]+\.(?:py|sh)\b", makefile))
    assert len(scripts) > 9
    assert [name for name in sorted(scripts) if not (PYTHON_ROOT.parent / name).exists()] == []


def test_the_package_can_be_installed_with_each_spark_that_it_has_a_jar_for() -> None:
    definition = (PYTHON_ROOT / "pyproject.toml").read_text(encoding="utf-8")
    minor = int(LINES[0].name.removeprefix("4.")) + 1
    assert f'spark = ["pyspark>={LINES[-1].version},<4.{minor}"]' in definition


@in_a_checkout
def test_the_readme_names_the_versions_that_the_build_has() -> None:
    readme = (PYTHON_ROOT.parent / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"hadoop-aws:([0-9.]+)", readme)) == {built_with("hadoopVersion")}
    assert set(re.findall(r"_2\.13[:-]([0-9.]+)(?:`|\.jar)", readme)) == {spark_dstl.__version__}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """What the package is built from, as in a checkout where the jar has not been built."""
    project = tmp_path / "project"
    ignored = shutil.ignore_patterns("dist", "build", "jars", "__pycache__", "LICENSE")
    shutil.copytree(PYTHON_ROOT, project / "python", ignore=ignored)
    # Beside the package in a checkout, in it in a source distribution.
    for name in ("README.md", "LICENSE"):
        shutil.copy2(next(root / name for root in (PYTHON_ROOT, PYTHON_ROOT.parent) if (root / name).exists()), project)
    return project / "python"


def build(source: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(source.parent), *arguments]
    return subprocess.run(command, cwd=source, check=False, capture_output=True, text=True)


def put_jars(source: Path, version: str = spark_dstl.__version__) -> set[str]:
    names = {line.jar.replace(spark_dstl.__version__, version) for line in LINES}
    (source / "src" / "spark_dstl" / "jars").mkdir(exist_ok=True)
    for name in names:
        with zipfile.ZipFile(source / "src" / "spark_dstl" / "jars" / name, "w", zipfile.ZIP_DEFLATED) as jar:
            jar.writestr("content", name * 1000)
    return {f"spark_dstl/jars/{name}" for name in names}


def test_a_wheel_carries_types_options_and_the_jars_of_its_own_version(source: Path) -> None:
    jars, others = put_jars(source), put_jars(source, "0.0.9")
    assert build(source, "-t", "wheel").returncode == 0
    (wheel,) = source.parent.glob("spark_dstl-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"spark_dstl/py.typed", "spark_dstl/options.json", "spark_dstl/commands/config.py"} | jars <= names
    assert f"spark_dstl-{spark_dstl.__version__}.dist-info/licenses/LICENSE" in names
    assert not others & names
    for name in jars:
        carried = zipfile.ZipFile(io.BytesIO(zipfile.ZipFile(wheel).read(name)))
        assert carried.read("content") == zipfile.ZipFile(source / "src" / name).read("content")
        assert carried.getinfo("content").compress_type == zipfile.ZIP_STORED, "a jar in a wheel is compressed twice"


def test_a_wheel_is_built_from_the_source_distribution_as_from_the_checkout(source: Path, tmp_path: Path) -> None:
    put_jars(source)
    assert build(source).returncode == 0
    (archive,) = source.parent.glob("spark_dstl-*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path / "elsewhere", filter="data")
    (unpacked,) = (tmp_path / "elsewhere").iterdir()
    assert build(unpacked, "-t", "wheel").returncode == 0
    (from_checkout,), (from_archive,) = (path.parent.glob("*.whl") for path in (source, unpacked))
    assert from_checkout.read_bytes() == from_archive.read_bytes()


def test_a_wheel_for_one_spark_needs_and_carries_that_jar_alone(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_jars(source)
    for line in LINES[2:]:
        (source / "src" / "spark_dstl" / "jars" / line.jar).unlink()
    monkeypatch.setenv("SPARK_DSTL_WHEEL_FOR", LINES[0].name)
    assert build(source, "-t", "wheel").returncode == 0
    (wheel,) = source.parent.glob("spark_dstl-*.whl")
    jars = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".jar")]
    assert jars == [f"spark_dstl/jars/{LINES[0].jar}"]


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
@pytest.mark.parametrize("line", LINES, ids=[line.name for line in LINES])
def test_nothing_is_built_without_one_of_the_jars(
    source: Path, kind: str, line: SparkLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    put_jars(source)
    put_jars(source, "0.0.9")
    (source / "src" / "spark_dstl" / "jars" / line.jar).unlink()
    result = build(source, "-t", kind)
    assert result.returncode != 0
    assert f"{line.jar} is missing" in result.stderr
    assert "make wheel" in result.stderr
    assert not list(source.parent.glob("spark_dstl-*"))
    assert not list(temporary.iterdir())


def test_the_index_page_shows_the_readme_without_relative_links(source: Path) -> None:
    put_jars(source)
    assert build(source, "-t", "wheel").returncode == 0
    (wheel,) = source.parent.glob("spark_dstl-*.whl")
    metadata = next(name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/METADATA"))
    shown = zipfile.ZipFile(wheel).read(metadata).decode()
    assert "# spark-dstl" in shown
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", shown) == []


def test_links_of_the_index_page_lead_into_the_repository() -> None:
    sys.path.insert(0, str(PYTHON_ROOT))
    try:
        from hatch_build import for_index_page
    finally:
        sys.path.remove(str(PYTHON_ROOT))
    text = "[a](docs/a.md#x), [b](https://example.org/b), [c](#c)"
    address = "https://example.org/project"
    linked = f"[a]({address}/blob/main/docs/a.md#x), [b](https://example.org/b), [c](#c)"
    assert for_index_page(text, address) == linked


def test_importing_the_package_takes_nothing_but_python() -> None:
    others = {"pyspark", "py4j", "click", "pyarrow", "rich", "google_crc32c"}
    command = f"import sys, spark_dstl; sys.exit(bool({others} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0


def test_no_module_imports_itself_by_way_of_others() -> None:
    sources = Path(spark_dstl.__file__).parent
    modules = {
        ".".join(path.relative_to(sources.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sources.rglob("*.py")
    }
    imported: dict[str, set[str]] = {}
    for module, path in modules.items():
        found = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
        names = {(node.module or "", alias.name) for node in found for alias in node.names}
        imported[module] = {f"{of}.{name}" if f"{of}.{name}" in modules else of for of, name in names}
    assert "spark_dstl.checkpoint.access" in imported["spark_dstl.checkpoint.checkpoint"]
    TopologicalSorter(imported).prepare()
