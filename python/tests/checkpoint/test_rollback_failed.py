# SPDX-License-Identifier: Apache-2.0
"""A rollback whose deletions fail."""

import pytest
from written_checkpoint import WrittenCheckpoint

import spark_dstl
from spark_dstl.errors import UnreadableStorage


def test_a_failed_deletion_says_what_was_deleted_and_that_it_can_be_repeated(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(1)
        assert planned.objects == ["commits/3", "offsets/3", "commits/2", "offsets/2"]
        delete = checkpoint.storage.delete

        def refused(name: str) -> bool:
            if name == "commits/2":
                raise UnreadableStorage("commits/2 could not be deleted")
            return delete(name)

        monkeypatch.setattr(checkpoint.storage, "delete", refused)
        with pytest.raises(UnreadableStorage, match=r"deleted[.] 2 of 4 objects are deleted, .* roll back again"):
            checkpoint.apply_rollback(planned, stopped=True)
        monkeypatch.setattr(checkpoint.storage, "delete", delete)
        assert checkpoint.apply_rollback(checkpoint.plan_rollback(1), stopped=True).deleted == 2
