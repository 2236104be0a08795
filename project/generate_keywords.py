"""Writes `spark_dstl/configuration.py`: the functions that take every option of the log as a keyword.

The options come from `options.json`, which sbt generates from the options class before. `--check` writes nothing, and
exits with 1 if the file is not up to date.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "python" / "src"
TARGET = SOURCES / "spark_dstl" / "configuration.py"
WIDTH = 115

sys.path.insert(0, str(SOURCES))

from spark_dstl.options import Option, all_options  # noqa: E402

TYPES = {"boolean": "bool", "bytes": "Size", "duration": "Duration", "int": "int", "path": "Directory"}

HEADER = '''"""What a user configures with: every option of the log is a keyword.

Generated from LogOptions.scala by `make docs`; the texts of the functions are in project/generate_keywords.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from spark_dstl import session as _session
from spark_dstl.options import Directory, Duration, Size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
'''

CONFIGURE = """Make the sessions of `builder` keep the state of streaming queries in the log, and return `builder`.

```python
spark = spark_dstl.configure(SparkSession.builder.appName("orders"), commit_timeout="5min").getOrCreate()
```

Call it before anything starts Spark: the jar is added to `spark.jars`, which Spark reads when it starts its JVM.
Where a JVM runs already (in a notebook, under `spark-submit`), it must have been started with the jar, and
`spark.jars` stays as it is. A Spark Connect server (`sc://`) runs somewhere else, and is not asked:
`configure_session` does.

Spark's UI is asked to draw charts of the log on the page of each query, beside those that
`spark.sql.streaming.ui.enabledCustomMetricList` of the builder names.

A list of jars or charts in `spark-defaults.conf` gives way to that of the builder, so name these on the builder as
well.

Raises `InvalidOption` for a value that its option cannot take; `UnsupportedSpark` if Spark is missing or not one
that this release works with; `JarNotLoaded` if a JVM runs without the jar; `JarNotFound`. `builder` is then as
it was."""

CONFIGURE_SESSION = """Make the queries that `session` starts from now on keep state in the log, and return `session`.

For a session that exists already, such as one of Spark Connect; other sessions are not affected. Spark must have
been started with the jar, with `--jars` or `spark.jars`. The keywords, with `transform_with_state`, are those of
`configure`. Which charts its UI has Spark reads when it starts, from what `conf` returns.

```python
session = spark_dstl.configure_session(spark.newSession(), materialize_interval="5min")
```

Raises `InvalidOption`, `UnsupportedSpark`, or `JarNotLoaded` if Spark runs without the jar. `session` is then as
it was."""

CONF = """Return the Spark settings that keep state in the log, for `spark-submit --conf` and the settings of a cluster.

They are to be given when Spark starts; among them is the list of charts that Spark's UI is to draw.

`jar` is where Spark finds the jar, a path or a URI that each of its machines can read: by default that of this
package, on this machine; with False there is no `spark.jars`, for a cluster that has the jar from elsewhere.
`spark` is the version of the Spark that the jar of this package is to be for, such as `4.2`; by default that of the
installed PySpark. The other keywords, with `transform_with_state`, are those of `configure`. Nothing else is asked
of Spark, which need not be installed.

```python
for key, value in spark_dstl.conf(jar="/opt/spark-dstl-spark4.2_2.13-0.1.0.jar", commit_timeout="5min").items():
    print(f"{key}={value}")
```

Raises `InvalidOption`, `JarNotFound`, or `UnsupportedSpark` if the package has no jar for that Spark."""

OPTIONS = """`transform_with_state` is for queries with `transformWithState` or `transformWithStateInPandas`,
for which Spark accepts no provider but its own: they name that, and have the log below it. It works for all
other stateful operators too; what is missing is the metrics `dstl...` in the query's progress.

An option that is not given, or is None, is not set; Spark's configuration or the default then decides:"""


def main() -> int:
    """Write the file or check it, and return the exit code."""
    content = generated()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(content, encoding="utf-8")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != content:
        print(f"{TARGET.relative_to(ROOT)} is not up to date: run 'make docs'", file=sys.stderr)
        return 1
    return 0


def generated() -> str:
    """Return what the file should contain."""
    in_full = "\n".join([CONFIGURE, "", OPTIONS, "", *described()])
    builder, session = "SparkSession.Builder", "SparkSession"
    functions = (
        function("configure", [f"builder: {builder}", "*"], builder, in_full, "builder"),
        function("configure_session", [f"session: {session}", "*"], session, CONFIGURE_SESSION, "session"),
        function(
            "conf",
            ["*", "jar: str | os.PathLike[str] | bool = True", "spark: str | None = None"],
            "dict[str, str]",
            CONF,
            "settings",
        ),
    )
    return "\n\n".join([HEADER, *functions])


def function(name: str, parameters: list[str], returned: str, doc: str, implementation: str) -> str:
    """Return the source of one function with a keyword for each option."""
    keywords = [f"{option.name}: {annotation(option)} | None = None" for option in all_options()]
    lines = [*parameters, "transform_with_state: bool = False", *keywords]
    summary, *rest = textwrap.indent(doc, "    ").splitlines()
    return "\n".join(
        [
            f"def {name}(",
            *(f"    {line}," for line in lines),
            f") -> {returned}:",
            f'    """{summary.strip()}',
            *rest,
            '    """',
            f"    return _session.configure_{implementation}(**locals())",
            "",
        ]
    )


def annotation(option: Option) -> str:
    """Return the type that an option's values have in Python."""
    if option.values:
        quoted = ", ".join(f'"{value}"' for value in option.values)
        return f"Literal[{quoted}]"
    return TYPES[option.type]


def described() -> Iterator[str]:
    """Yield the lines that say of each option what it does, what it takes and what it defaults to."""
    names = {f"`{option.key}`": f"`{option.name}`" for option in all_options()}
    for option in all_options():
        doc = re.sub(r"`[\w.]+`", lambda match: names.get(match[0], match[0]), option.doc)
        allowed = option.allowed()
        text = f"- `{option.name}`: {doc} {allowed[0].upper()}{allowed[1:]}; by default {option.default_text}."
        yield from textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main())
