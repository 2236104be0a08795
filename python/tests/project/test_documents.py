# SPDX-License-Identifier: Apache-2.0
"""What a document says to type can be typed, and where it leads there is something."""

from __future__ import annotations

import ast
import fnmatch
import importlib
import inspect
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import driver
import growth
import plan
import pytest
import realtime
import recovery
from bench import BENCHMARKS, parser_of
from documents import ROOT, Command, Page, in_a_checkout, pages

import spark_dstl
from spark_dstl.commands import main
from spark_dstl.options import PREFIX, all_options

pytestmark = in_a_checkout

PAGES = pages()
COMMANDS = [command for page in PAGES for command in page.commands]
# Tasks of sbt itself and of its plugins.
SBT_TASKS = {"compile", "test", "scalafmtAll", "scalafmtCheckAll", "sonaUpload"}
# Of each target: the benchmark, and the names of its cases.
MEASURED: dict[str, tuple[str, Callable[[], Sequence[Any]]]] = {
    "bench": ("compare", lambda: plan.with_formats([*plan.FULL, *plan.QUICK], [])),
    "bench-quick": ("compare", lambda: plan.QUICK),
    "bench-driver": ("driver", lambda: driver.parts(quick=False)),
    "bench-recovery": ("recovery", lambda: [*recovery.FULL, *recovery.QUICK]),
    "bench-growth": ("growth", lambda: [*growth.FULL, *growth.QUICK]),
    "bench-realtime": ("realtime", lambda: [*realtime.FULL, *realtime.QUICK]),
    "bench-inspect": ("inspect", lambda: []),
}


def of(*beginning: str) -> list[Command]:
    """Return the commands that begin so; there must be some, or the pages are not read as they should be."""
    found = [command for command in COMMANDS if command.after(*beginning) is not None]
    assert found, beginning
    return found


def sources(pattern: str, *directories: str) -> dict[Path, str]:
    found = {path: path.read_text(encoding="utf-8") for where in directories for path in (ROOT / where).rglob(pattern)}
    assert found, directories
    return found


def test_every_target_of_make_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for command in of("make"):
        for word in command.words[1:]:
            assert word in targets or "=" in word, command


def test_every_variable_of_make_is_one_that_the_target_takes() -> None:
    recipes = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in of("make"):
        for name in (word.partition("=")[0] for word in command.words[1:] if "=" in word):
            target = re.search(rf"^{command.words[1]}:.*\n(?:\t.*\n)*", recipes, re.MULTILINE)
            assert target is not None, command
            assert f"$({name})" in target[0], command


def test_every_option_of_a_benchmark_is_there_and_finds_something_to_measure() -> None:
    checked = 0
    for command in of("make"):
        arguments = next((word.partition("=")[2] for word in command.words if word.startswith("BENCH=")), None)
        if arguments is None:
            continue
        name, cases = MEASURED[command.words[1]]
        words = [word for word in shlex.split(arguments) if word != "--help"]
        options = parser_of(name, BENCHMARKS[name]).parse_args(words)
        for text in options.only or []:
            assert any(text in case.name for case in cases()), command
            checked += 1
    assert checked > 5


def test_every_pattern_of_tests_finds_one() -> None:
    classes: dict[str, set[str]] = {}
    for path, text in sources("*.scala", "jvm").items():
        if "/src/test/" in str(path) and (package := re.search(r"^package (\S+)", text, re.MULTILINE)):
            module = path.relative_to(ROOT / "jvm").parts[0]
            named = re.findall(r"^(?:final )?class (\w+)", text, re.MULTILINE)
            classes.setdefault(module, set()).update(f"{package[1]}.{name}" for name in named)
    patterns = 0
    tasks = "".join(sources("*.scala", "project").values()) + (ROOT / "build.sbt").read_text(encoding="utf-8")
    for command in of("project/sbt"):
        for word in command.words[1:]:
            if word.startswith("-D"):
                setting, _, line = word.removeprefix("-D").partition("=")
                assert (setting, f'SparkLine("{line}"' in tasks) == ("spark.line", True), command
                continue
            module, _, rest = word.rpartition("/")
            task, *wanted = rest.split()
            if task == "testOnly":
                for pattern in wanted:
                    assert fnmatch.filter(classes[module], pattern), command
                    patterns += 1
            else:
                assert task in SBT_TASKS or f"val {task} = taskKey" in tasks, command
    assert patterns > 1


def test_every_pattern_of_pytest_finds_a_test() -> None:
    for command in of(".venv/bin/pytest"):
        where = [word for word in command.words[1:] if (ROOT / word).exists()]
        assert where, command
        if "-k" in command.words:
            wanted = command.words[command.words.index("-k") + 1]
            tests = sources("test_*.py", *where)
            names = [
                f"{path.name} {name}" for path, text in tests.items() for name in re.findall(r"def (test_\w+)", text)
            ]
            assert any(wanted in name for name in names), command


def test_every_command_of_dstl_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    complete = 0
    for command in [*of("dstl"), *of("/tmp/try/bin/dstl")]:
        words = [word for word in command.words[1:] if not word.startswith("[") or "--" in word]
        if not words or "..." in command.words[0]:
            continue
        if words[0].startswith("-") or words[0] == "COMMAND":
            continue
        found = main.commands.get(words[0])
        assert found is not None, command
        known = {name for parameter in found.params for name in [*parameter.opts, *parameter.secondary_opts]}
        for word in words[1:]:
            name = word.strip("[]").partition("=")[0]
            assert not name.startswith("-") or name in known | {"--help", "-h", "-"}, command
        if command.is_complete:
            for parameter in found.params:
                if isinstance(parameter.type, click.Path):
                    # The files of examples are not there.
                    monkeypatch.setattr(parameter.type, "exists", False)
            try:
                found.make_context(words[0], words[1:])
            except click.ClickException as error:
                raise AssertionError(f"{command}: {error.format_message()}") from None
            complete += 1
    assert complete > 20


def test_every_extra_that_is_to_be_installed_is_defined() -> None:
    definition = (ROOT / "python/pyproject.toml").read_text(encoding="utf-8")
    extras = [extra for command in of("pip", "install") for word in command.words for extra in _extras(word)]
    assert {"spark", "inspect", "monitoring", "probe"} <= set(extras)
    for extra in extras:
        assert re.search(rf"^{extra} = \[", definition, re.MULTILINE), extra


def _extras(word: str) -> list[str]:
    found = re.fullmatch(r"spark-dstl\[([a-z,]+)\]", word)
    return found[1].split(",") if found else []


PROGRAMS = [
    pytest.param(program, id=f"{page.name}-{number}")
    for page in PAGES
    for number, program in enumerate(block.text for block in page.blocks if block.language == "python")
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_names_only_what_there_is(program: str) -> None:
    tree = ast.parse(program)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"
        elif isinstance(node, ast.Attribute) and _is_package(node.value):
            assert hasattr(spark_dstl, node.attr), f"spark_dstl has no {node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_package(node.func.value):
            inspect.signature(getattr(spark_dstl, node.func.attr)).bind(*node.args, **_keywords(node))


def test_every_function_within_a_sentence_is_there() -> None:
    found = [
        (page.name, expression)
        for page in PAGES
        for expression in re.findall(r"`(spark_dstl\.[^`\n]+)`", page.prose)
        if "/" not in expression
    ]
    assert len(found) > 5
    for name, expression in found:
        try:
            tree = ast.parse(expression.replace("...", "None"))
        except SyntaxError:
            tree = ast.parse(expression.replace("(...)", "()").replace("...", ""))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _is_package(node.value):
                assert hasattr(spark_dstl, node.attr), f"{name}: {expression}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_package(node.func.value):
                known = inspect.signature(getattr(spark_dstl, node.func.attr)).parameters
                assert set(_keywords(node)) <= set(known), f"{name}: {expression}"


def _is_package(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "spark_dstl"


def _keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}


def test_every_option_of_the_log_is_there() -> None:
    keys = {option.key for option in all_options()}
    found = [
        (page.name, key)
        for page in PAGES
        for key in re.findall(rf"{re.escape(PREFIX)}([A-Za-z]+(?:\.[A-Za-z]+)*)", page.text)
    ]
    assert found
    for name, key in found:
        assert key in keys, f"{name}: {PREFIX}{key}"


FILES = re.compile(r"(?:python|jvm|conf|docs|project|tests)/[\w./-]+\.(?:py|scala|md|json|yml|properties|sh|sbt)")


def test_every_file_of_the_project_that_is_named_is_there() -> None:
    found = [
        (page.name, path) for page in PAGES for path in re.findall(r"`([^`\n]+)`", page.prose) if FILES.fullmatch(path)
    ]
    assert found
    for name, path in found:
        assert (ROOT / path).exists(), f"{name}: {path}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Page) -> None:
    for link in page.links:
        path, _, anchor = link.partition("#")
        target = (page.path.parent / path).resolve() if path else page.path
        assert target.exists(), link
        if anchor:
            assert anchor in Page(target).anchors, f"{link}: there is {', '.join(sorted(Page(target).anchors))}"


# The checks themselves


@pytest.fixture
def page_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Page]:
    monkeypatch.setattr("documents.ROOT", tmp_path)

    def made(text: str) -> Page:
        (tmp_path / "page.md").write_text(text, encoding="utf-8")
        return Page(tmp_path / "page.md")

    return made


def test_commands_are_found_in_blocks_and_sentences(page_of: Callable[[str], Page]) -> None:
    page = page_of(
        "Say `make test`, or `spark-submit $(dstl config --jar x) q.py`.\n\n"
        "```sh\nA=1 B=2 \\\n  dstl log /x > y  # says\ndstl ls /x | jq . && make jar\n```\n\n```\nnot a command\n```\n"
    )
    assert [(command.words, command.is_complete) for command in page.commands] == [
        (("dstl", "log", "/x"), True),
        (("dstl", "ls", "/x"), True),
        (("jq", "."), True),
        (("make", "jar"), True),
        (("make", "test"), False),
        (("dstl", "config", "--jar", "x"), False),
        (("spark-submit", "SUBSTITUTED", "q.py"), False),
    ]


def test_anchors_are_those_of_the_headings(page_of: Callable[[str], Page]) -> None:
    page = page_of(
        "# A `b.c` (d), e\n\n## Same\n\n### Same\n\n```\n# no heading\n```\n[x](#same) [y](https://x.example)\n"
    )
    assert page.anchors == {"a-bc-d-e", "same", "same-1"}
    assert page.links == ["#same"]


def test_the_site_s_navigation_has_each_page() -> None:
    """`make docs-site` fails on a page that it lacks, and `make test` does not build the site."""
    named = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    docs = ROOT / "docs"
    # The site's first page is the README.
    assert sorted(named) == sorted(["index.md", *(str(path.relative_to(docs)) for path in docs.rglob("*.md"))])
