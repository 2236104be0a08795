# SPDX-License-Identifier: Apache-2.0
"""The changes of one batch, and a place in the history of a query."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_dstl.checkpoint.java.gateway import PURPOSE
from spark_dstl.dependencies import needed

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class ChangedBatch:
    """The changes of one committed batch."""

    batch: int
    """The number of the batch."""
    committed_at: datetime | None
    """When it was committed, by the storage's clock."""
    entry: str
    """The id of its commit entry: another after a rollback."""
    run: str
    """The run of the query that committed it."""
    host: str
    """The host of the driver of that run."""
    is_new_run: bool
    """Whether another run has committed the batch before."""
    changes: pyarrow.RecordBatch
    """The rows that changed, in the order of the changes in each store: `change_type` is update, append or delete."""
    is_new_start: bool = False
    """Whether batches before it were left out, because the follower has started anew."""

    def rows(self) -> pyarrow.RecordBatch:
        """Return the changes with the number of the batch in the first column."""
        arrow = needed("pyarrow", PURPOSE)
        number = arrow.array([self.batch] * self.changes.num_rows, arrow.int64())
        return arrow.RecordBatch.from_arrays([number, *self.changes.columns], ["batch", *self.changes.schema.names])


@dataclass(frozen=True)
class Position:
    """The place in the history of a query after a batch."""

    batch: int
    """The last followed batch."""
    entry: str | None
    """The id of its commit entry; None if the batch is not in the log."""


def one_batch(rows: Any) -> Any:
    """Return the rows of a table as one record batch."""
    arrow = needed("pyarrow", PURPOSE)
    batches = rows.combine_chunks().to_batches()
    return batches[0] if batches else arrow.RecordBatch.from_pylist([], schema=rows.schema)
