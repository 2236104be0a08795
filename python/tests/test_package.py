import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import spark_dstl

PYTHON_ROOT = Path(__file__).resolve().parents[1]
BUILD_DEFINITION = PYTHON_ROOT.parent / "build.sbt"


@pytest.mark.skipif(not BUILD_DEFINITION.exists(), reason="only in a checkout of the whole project")
def test_package_and_jar_have_the_same_version() -> None:
    match = re.search(r'^ThisBuild / version := "(.+)"$', BUILD_DEFINITION.read_text(encoding="utf-8"), re.MULTILINE)
    assert match is not None
    assert match[1] == spark_dstl.__version__


def test_a_wheel_carries_jar_options_and_types(tmp_path: Path) -> None:
    source = tmp_path / "python"
    shutil.copytree(PYTHON_ROOT, source, ignore=shutil.ignore_patterns("dist", "build", "jars", "__pycache__"))
    jar = source / "src" / "spark_dstl" / "jars" / f"spark-dstl_2.13-{spark_dstl.__version__}.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"the jar")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(source),
    ]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("spark_dstl-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"spark_dstl/py.typed", "spark_dstl/options.json", f"spark_dstl/jars/{jar.name}"} <= names


def test_importing_the_package_takes_nothing_but_python() -> None:
    command = "import sys, spark_dstl; sys.exit(bool({'pyspark', 'py4j', 'click'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0
