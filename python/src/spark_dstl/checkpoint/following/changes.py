# SPDX-License-Identifier: Apache-2.0
"""The changes of one batch, and a place in the history of a query."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_dstl.checkpoint.java.gateway import PURPOSE
from spark_dstl.dependencies import needed
from spark_dstl.errors import ResultTooLarge

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


def one_batch(rows: Any, number: int) -> Any:
    """Return the changes of a batch as one record batch. Raises `ResultTooLarge` if they do not fit in one."""
    arrow = needed("pyarrow", PURPOSE)
    try:
        batches = rows.combine_chunks().to_batches()
    except arrow.ArrowInvalid as error:
        raise _too_large(rows, number) from error
    # A column of text has at most 2 GiB in one piece.
    if len(batches) > 1:
        raise _too_large(rows, number)
    return batches[0] if batches else arrow.RecordBatch.from_pylist([], schema=rows.schema)


def _too_large(rows: Any, number: int) -> ResultTooLarge:
    return ResultTooLarge(
        f"the changes of batch {number} have {rows.nbytes} bytes in {rows.num_rows} rows, more than one record batch "
        "of Arrow holds: follow a single operator, store, column family or partition, or begin after this batch"
    )
