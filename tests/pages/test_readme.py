# SPDX-License-Identifier: Apache-2.0
"""The README's query runs, with other paths."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from settings import base_confs

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_query_of_the_readme_runs_and_prints_its_metrics(tmp_path: Path) -> None:
    query, shown = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    query = query.replace("s3a://my-bucket", str(tmp_path / "bucket"))
    # Local disks need no S3 connector, and the test must end.
    query, packages = re.subn(r"^ .*spark\.jars\.packages.*\n", "", query, flags=re.MULTILINE)
    query, ends = re.subn(r"query\.awaitTermination\(\)", "query.processAllAvailable()", query)
    assert (packages, ends) == (1, 1)
    clicks = tmp_path / "bucket" / "clicks"
    clicks.mkdir(parents=True)
    for hour in (10, 12, 14):
        (clicks / f"{hour}.json").write_text(json.dumps({"at": f"2026-01-01T{hour}:00:00", "page": "a"}))
    program = tmp_path / "query.py"
    program.write_text(f"{query}\nimport json\nprint(json.dumps({shown.split('#')[0].strip()}))\nquery.stop()\n")
    confs = base_confs("local[2]", tmp_path)
    submitted = " ".join(f"--conf '{key}={value}'" for key, value in confs.items())
    environment = os.environ | {"PYSPARK_SUBMIT_ARGS": f"{submitted} pyspark-shell"}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # RocksDB's own threads may crash the JVM as it ends, as with stock Spark: it reports that behind what was printed.
    printed = [line for line in done.stdout.splitlines() if not line.startswith("#")][-1]
    assert printed.startswith("{"), f"{done.stdout}\n{done.stderr}"
    assert "dstlSegments" in json.loads(printed)
    checkpoint = tmp_path / "bucket" / "checkpoints" / "clicks"
    entry = (checkpoint / "commits" / "0").read_bytes().splitlines()
    assert b"run" in entry[2]
    assert not list((checkpoint / "state").rglob("*.changelog"))
