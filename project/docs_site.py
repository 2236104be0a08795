# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs for the docs site, and the command `dstl` with its examples, which mkdocs-click leaves out."""

import inspect
import re
import textwrap
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spark_dstl.commands import main

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([\w./-]+)\)")


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Make README.md the first page."""
    from mkdocs.structure.files import File

    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=_without_sources(text, ROOT)))
    return files


def on_page_markdown(markdown: str, page: "Page", **_others: object) -> str:
    """Adapt the links of a page."""
    return _without_sources(markdown, (DOCS / page.file.src_uri).parent)


def _without_sources(markdown: str, directory: Path) -> str:
    """Leave only the text of links to files of the repository that are not in the site."""

    def replaced(link: re.Match[str]) -> str:
        target = (directory / link[2]).resolve()
        return link[1] if target.exists() and not target.is_relative_to(DOCS) else link[0]

    return _LINK.sub(replaced, markdown)


def _escaped(text: str | None) -> str:
    """Return a help text whose placeholders, such as `<random>`, are no HTML tags."""
    return inspect.cleandoc(text or "").replace("<", "&lt;")


def _with_examples(command: click.Command) -> click.Command:
    shown = copy(command)
    # Markdown begins a list only after an empty line.
    shown.help = re.sub(r"^([^\s-].*)\n(?=- )", r"\1\n\n", _escaped(command.help), flags=re.MULTILINE)
    for paragraph in inspect.cleandoc(command.epilog or "").replace("\b\n", "").split("\n\n"):
        title, _, lines = paragraph.partition("\n")
        examples = f"{title}\n\n```sh\n{textwrap.dedent(lines)}\n```"
        shown.help += "\n\n" + (examples if title.startswith("Example") else paragraph)
    return shown


dstl = copy(main)
dstl.commands = {name: _with_examples(command) for name, command in main.commands.items()}
