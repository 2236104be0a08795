"""What the Spark that the tests run on has, where its lines differ.

Users read of it in docs/what-works-with-what.md.
"""

from __future__ import annotations

import pytest

from spark_dstl.release import installed_line

# As numbers, which can be compared: (4, 2).
LINE = tuple(int(number) for number in installed_line().name.split("."))

# Formats of checkpoints that there are.
FORMATS = tuple(form for form, since in ((1, (3, 5)), (2, (4, 0))) if since <= LINE)
# Formats of checkpoints that Spark's own readers of state know; Spark 3.5 has no such readers.
READABLE_FORMATS = tuple(form for form, since in ((1, (4, 0)), (2, (4, 1))) if since <= LINE)
# Whether snapshots of stores are in the log, rather than files of Spark's.
LOGS_SNAPSHOTS = LINE >= (4, 0)
# Whether there is a Spark Connect server in the package of PySpark; before, it takes jars besides.
HAS_CONNECT_SERVER = LINE >= (4, 0)
# Whether there is `transformWithState`.
HAS_PROCESSORS = LINE >= (4, 0)
# For `transformWithState`, which later Sparks have with their own provider alone.
TAKES_ANY_PROVIDER = HAS_PROCESSORS and LINE < (4, 2)
# Spark 4.0 has `transformWithState` in Python with Pandas alone, and not in Spark Connect.
HAS_PROCESSORS_OF_ROWS = LINE >= (4, 1)
# Whether it loads an older snapshot where the newest cannot be used.
REPAIRS_SNAPSHOTS = LINE >= (4, 2)
# Whether the S3 connector of its Hadoop creates objects conditionally, which that of 3.4.2 was the first to do.
CREATES_EXCLUSIVELY_ON_S3 = LINE >= (4, 1)
# Segments of a store in a batch, checkpoint format 1: the changelog, and in Spark 4.1 a file with its checksum.
SEGMENTS_OF_A_STORE = 2 if LINE == (4, 1) else 1
# State formats of joins with one store that has column families.
JOIN_LAYOUTS = tuple(layout for layout, since in ((3, (4, 1)), (4, (4, 2))) if since <= LINE)


def skip_unless_readable(version: int) -> None:
    """Skip a test that reads the state of a checkpoint in that format, unless this Spark's readers know it."""
    if version not in READABLE_FORMATS:
        pytest.skip(f"this Spark's readers of state do not know checkpoint format {version}")
