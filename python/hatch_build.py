"""What hatchling asks when it builds the package: whether the jar is there, and what the index page shows."""

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_RELATIVE_LINK = re.compile(r"!?\[([^\]]*)\]\((?!https?://|#)([^)]*)\)")


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the jar into what is built, and refuses to build without it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the jar of this version as a file that belongs to the package, though git ignores it."""
        if version == "editable":
            return
        root = Path(self.root)
        match = _VERSION.search((root / "src" / "spark_dstl" / "version.py").read_text(encoding="utf-8"))
        assert match is not None
        jar = f"src/spark_dstl/jars/spark-dstl_2.13-{match[1]}.jar"
        if not (root / jar).is_file():
            raise FileNotFoundError(
                f"{root / jar} is missing, without which the package is of no use: in a checkout `make wheel` builds "
                "the jar and then the package"
            )
        build_data["artifacts"].append(jar)


class CustomMetadataHook(MetadataHookInterface):
    """Makes the project's README the text of the index page."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Take the README from the source distribution, or else from the checkout."""
        root = Path(self.root)
        readme = next((path for path in (root / "README.md", root.parent / "README.md") if path.is_file()), None)
        if readme is None:
            raise FileNotFoundError(f"README.md is neither in {root} nor in {root.parent}")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": for_index_page(readme.read_text(encoding="utf-8"), source),
        }


def for_index_page(text: str, source: str | None) -> str:
    """Return Markdown whose links lead somewhere on a page that has no files beside it.

    A relative link becomes one into `source`, the repository's address; without an address, its words alone.
    """
    return _RELATIVE_LINK.sub(rf"[\1]({source}/blob/main/\2)" if source else r"\1", text)
