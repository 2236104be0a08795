# SPDX-License-Identifier: Apache-2.0
"""A table of the running queries, drawn again after each change."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from spark_dstl.dependencies import MONITORING, needed
from spark_dstl.monitoring.readable import label, readable, sparkline
from spark_dstl.monitoring.sources import Sample

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

_REMEMBERED = 240
_BAR_WIDTH = 16
_LINE_WIDTH = 40


class Board:
    """Keeps the newest samples of each query or process, and shows them as tables, with a hint below.

    Raises `MissingPackage` if rich is not installed.
    """

    def __init__(self, hint: str = "") -> None:
        needed("rich", "A live view", MONITORING)
        self._hint = hint
        self._kept: dict[str, deque[Sample]] = defaultdict(lambda: deque(maxlen=_REMEMBERED))

    def add(self, sample: Sample) -> None:
        """Keep a sample, and drop the oldest of its query above a limit."""
        self._kept[sample.of].append(sample)

    def show(self) -> Group:
        """Return what rich prints: a table for each query or process."""
        from rich.console import Group
        from rich.text import Text

        tables = [self._table(of, list(samples)) for of, samples in self._kept.items()]
        hint = Text(self._hint, style="dim")
        return Group(*tables, hint) if tables else Group(Text("nothing yet"), hint)

    def _table(self, of: str, samples: list[Sample]) -> Table:
        from rich.bar import Bar
        from rich.table import Table
        from rich.text import Text

        newest = samples[-1]
        # A query's name may have what rich takes for markup, or a terminal for a command.
        shown = "".join(one if one.isprintable() else " " for one in of)
        title = Text(f"{shown}  {newest.at:%H:%M:%S} UTC")
        table = Table(title=title, title_justify="left", box=None, padding=(0, 1))
        table.add_column("")
        table.add_column("now", justify="right", no_wrap=True)
        table.add_column("of the most", width=_BAR_WIDTH)
        table.add_column(f"the last {min(len(samples), _LINE_WIDTH)}", no_wrap=True)
        for name, value in newest.figures.items():
            values = [sample.figures.get(name) for sample in samples]
            most = max((of for of in values if of is not None), default=0)
            bar = Bar(most or 1, 0, value or 0, width=_BAR_WIDTH)
            table.add_row(label(name), readable(name, value), bar, sparkline(values, _LINE_WIDTH))
        return table
