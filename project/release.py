# SPDX-License-Identifier: Apache-2.0
"""Builds everything that is published, into target/release, and fails if something prevents publishing it.

`release.py` builds and checks; `release.py --again` also builds the committed sources a second time, in another
directory, and compares the checksums.
"""

import hashlib
import io
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from patiently import run, say
from spark_lines import lines

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / ".build" / "packaging" / "bin" / "python"
SUMS = "SHA256SUMS"
PLACEHOLDER = "OWNER"
ARTIFACTS = (".jar", "-sources.jar", "-javadoc.jar", ".pom")


class ReleaseFailed(Exception):
    """A step failed; the message says which."""


def main() -> int:
    """Build, check, and return the exit code."""
    try:
        release = build(ROOT)
        if "--again" in sys.argv[1:]:
            compare_with_second_build(release)
    except ReleaseFailed as error:
        say(str(error))
        return 1
    say(f"{release} holds")
    print((release / SUMS).read_text(encoding="utf-8"), end="")
    lacks = missing(release)
    for line in lacks:
        say(f"before it can be published: {line}")
    return 1 if lacks else 0


def build(root: Path) -> Path:
    """Build the checkout at `root`, and return the directory with what is published."""
    release = root / "target" / "release"
    shutil.rmtree(release, ignore_errors=True)
    for line in lines(root):
        sbt = [str(root / "project" / "sbt"), "-Dsbt.supershell=false", f"-Dspark.line={line}"]
        step(f"Maven artifacts for Spark {line}", [*sbt, "jar", "published/publish"], root)
    step("Python package", [str(PACKAGING), "-m", "hatchling", "build", "-d", str(release)], root / "python")
    packages = sorted(map(str, [*release.glob("*.whl"), *release.glob("*.tar.gz")]))
    step("index page", [str(PACKAGING), "-m", "twine", "check", "--strict", *packages], root)
    for suffix in ARTIFACTS:
        for path in release.glob(f"maven/**/*{suffix}"):
            shutil.copy2(path, release / path.name)
    check_wheel(release)
    (release / SUMS).write_text(sums(release.iterdir()), encoding="utf-8")
    return release


def step(name: str, command: list[str], directory: Path) -> None:
    """Run one step of the release in `directory`, which must succeed."""
    say(f"{name} ...")
    if run(name, ["env", "-C", str(directory), *command]) != 0:
        raise ReleaseFailed(f"{name}: failed")


def check_wheel(release: Path) -> None:
    """Raise `ReleaseFailed` unless the wheel carries the content of the very jars that are published beside it."""
    (wheel,) = release.glob("*.whl")
    published = {path.name: content(path.read_bytes()) for path in release.glob("*.jar") if not is_documentation(path)}
    with zipfile.ZipFile(wheel) as file:
        carried = {Path(name).name: content(file.read(name)) for name in file.namelist() if name.endswith(".jar")}
    if not published or carried != published:
        raise ReleaseFailed(f"{wheel} does not carry the jars that are published, but {sorted(carried)}")


def content(jar: bytes) -> dict[str, bytes]:
    """Return the entries of a jar."""
    with zipfile.ZipFile(io.BytesIO(jar)) as file:
        return {name: file.read(name) for name in file.namelist()}


def is_documentation(jar: Path) -> bool:
    """Return whether a jar is not for running, but for reading."""
    return jar.name.endswith(("-sources.jar", "-javadoc.jar"))


def sums(files: Iterable[Path]) -> str:
    """Return the SHA-256 checksums of files, as `sha256sum` writes and checks them."""
    named = sorted((path.name, path) for path in files if path.is_file() and path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n" for name, path in named)


def compare_with_second_build(release: Path) -> None:
    """Build the committed sources elsewhere; raise `ReleaseFailed` unless every file comes out the same."""
    if git("status", "--porcelain"):
        raise ReleaseFailed("there are changes that are not committed, which a second build does not contain")
    twin = ROOT / "target" / "release-again"
    shutil.rmtree(twin, ignore_errors=True)
    twin.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(twin)], input=archive, check=True)
    again = (build(twin) / SUMS).read_text(encoding="utf-8").splitlines()
    first = (release / SUMS).read_text(encoding="utf-8").splitlines()
    different = sorted({line.split("  ")[1] for line in set(first) ^ set(again)})
    if different:
        raise ReleaseFailed(f"built again from the same sources, these differ: {', '.join(different)}")
    shutil.rmtree(twin)
    say("built again from the same sources, every file is the same")


def missing(release: Path) -> list[str]:
    """Return what prevents publishing a release that has been built, a line each."""
    lines = []
    if (release / "maven" / "io" / "github" / PLACEHOLDER).exists():
        lines.append(f"{PLACEHOLDER} is a placeholder: put the owner of the repository on GitHub into build.sbt")
    (wheel,) = release.glob("*.whl")
    tag = f"v{wheel.name.split('-')[1]}"
    if tag not in git("tag", "--points-at", "HEAD").split():
        lines.append(f"this commit has no tag {tag}")
    if git("status", "--porcelain"):
        lines.append("there are changes that are not committed")
    return lines


def git(*arguments: str) -> str:
    """Return what git prints about this checkout."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
