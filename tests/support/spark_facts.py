# SPDX-License-Identifier: Apache-2.0
"""Features of the Spark that the tests run on, where its lines differ.

docs/what-works-with-what.md lists them for users.
"""

from __future__ import annotations

import pytest

from spark_dstl.release import installed_line

# As numbers, which can be compared: (4, 2).
LINE = tuple(int(number) for number in installed_line().name.split("."))

# The checkpoint formats of this Spark.
FORMATS = tuple(form for form, since in ((1, (3, 5)), (2, (4, 0))) if since <= LINE)
# The checkpoint formats that Spark's state readers read; Spark 3.5 has no state readers.
READABLE_FORMATS = tuple(form for form, since in ((1, (4, 0)), (2, (4, 1))) if since <= LINE)
# Whether snapshots are in the log instead of in Spark's files.
LOGS_SNAPSHOTS = LINE >= (4, 0)
# Whether the PySpark package has a Spark Connect server; before, it needs further jars.
HAS_CONNECT_SERVER = LINE >= (4, 0)
# Whether Spark has `transformWithState`.
HAS_PROCESSORS = LINE >= (4, 0)
# Whether `transformWithState` accepts any provider; later Sparks accept only their own.
TAKES_ANY_PROVIDER = HAS_PROCESSORS and LINE < (4, 2)
# Spark 4.0 has `transformWithState` in Python only with Pandas, and not in Spark Connect.
HAS_PROCESSORS_OF_ROWS = LINE >= (4, 1)
# Whether Spark has declarative pipelines.
HAS_PIPELINES = LINE >= (4, 1)
# Whether Spark loads an older snapshot if the newest is unusable.
REPAIRS_SNAPSHOTS = LINE >= (4, 2)
# Whether Spark's readers fail on metadata of operators that they cannot read, instead of ignoring it.
REPORTS_METADATA = LINE >= (4, 2)
# Whether the S3 connector creates objects conditionally, as since Hadoop 3.4.2.
CREATES_EXCLUSIVELY_ON_S3 = LINE >= (4, 1)
# Segments of a store in a batch with checkpoint format 1: the changelog, and in Spark 4.1 its checksum file.
SEGMENTS_OF_A_STORE = 2 if LINE == (4, 1) else 1
# State formats of joins with one store that has column families.
JOIN_LAYOUTS = tuple(layout for layout, since in ((3, (4, 1)), (4, (4, 2))) if since <= LINE)


def skip_unless_readable(version: int) -> None:
    """Skip a test that reads a checkpoint in that format, unless this Spark's state readers read it."""
    if version not in READABLE_FORMATS:
        pytest.skip(f"this Spark's readers of state do not know checkpoint format {version}")
