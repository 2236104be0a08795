# SPDX-License-Identifier: Apache-2.0
"""What hatchling asks when it builds the package: whether the jars are there, and what the index page shows."""

import os
import re
import shutil
import tempfile
import zipfile
from functools import cached_property
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_LINE = re.compile(r'SparkLine\("(?P<line>[0-9.]+)", "[0-9.]+"(?:, scala="(?P<scala>[0-9.]+)")?')
_RELATIVE_LINK = re.compile(r"!?\[([^\]]*)\]\((?!https?://|#)([^)]*)\)")


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the jars into what is built, one for each line of Spark, and refuses to build without one of them.

    `SPARK_DSTL_WHEEL_FOR` names the only line whose jar is needed and put in.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the jars of this version as files that belong to the package, though git ignores them."""
        if version == "editable":
            return
        root = Path(self.root)
        package = root / "src" / "spark_dstl"
        release = _VERSION.search((package / "version.py").read_text(encoding="utf-8"))
        assert release is not None
        jars = []
        for line in _LINE.finditer((package / "release.py").read_text(encoding="utf-8")):
            if os.environ.get("SPARK_DSTL_WHEEL_FOR") not in (None, line["line"]):
                continue
            jar = f"src/spark_dstl/jars/spark-dstl-spark{line['line']}_{line['scala'] or '2.13'}-{release[1]}.jar"
            if not (root / jar).is_file():
                raise FileNotFoundError(
                    f"{root / jar} is missing, without which the package is of no use with Spark {line['line']}: in a "
                    "checkout `make wheel` builds the jars and then the package"
                )
            jars.append(jar)
        # After all are found: a build that fails is not finalized.
        for jar in jars:
            if self.target_name == "wheel":
                build_data["force_include"][self._unpacked(root / jar)] = jar.removeprefix("src/")
            else:
                build_data["artifacts"].append(jar)

    def finalize(self, _version: str, _build_data: dict[str, Any], _artifact: str) -> None:
        """Remove what was made for the build."""
        shutil.rmtree(self._made, ignore_errors=True)

    @cached_property
    def _made(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="spark-dstl-"))

    def _unpacked(self, jar: Path) -> str:
        """Return a copy of a jar with plain entries: a wheel compresses it as a whole, to two thirds of the bytes."""
        copy = self._made / jar.name
        with zipfile.ZipFile(jar) as packed, zipfile.ZipFile(copy, "w") as plain:
            for entry in packed.infolist():
                plain.writestr(entry, packed.read(entry), zipfile.ZIP_STORED)
        return str(copy)


class CustomMetadataHook(MetadataHookInterface):
    """Makes the project's README the text of the index page, and its LICENSE that of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Take both from the source distribution, or else from the checkout."""
        root = Path(self.root)
        if not (root / "LICENSE").exists():
            # hatchling takes it from beside pyproject.toml alone; git ignores the copy.
            shutil.copyfile(root.parent / "LICENSE", root / "LICENSE")
        readme = next((path for path in (root / "README.md", root.parent / "README.md") if path.is_file()), None)
        if readme is None:
            raise FileNotFoundError(f"README.md is neither in {root} nor in {root.parent}")
        text = for_index_page(readme.read_text(encoding="utf-8"), metadata["urls"]["Source"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def for_index_page(text: str, source: str) -> str:
    """Return Markdown with each relative link made one into `source`, the repository's address."""
    return _RELATIVE_LINK.sub(rf"[\1]({source}/blob/main/\2)", text)
