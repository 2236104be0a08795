"""Plays faults of storage with the log and with stock Spark, and writes down what became of each, for the docs.

`make storage-faults` runs it; `CASES` is a regular expression for what to play, such as `stock.*503`. What is there of
others stays.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

from cases import Case, Outcome, all_cases, place_of, play
from servers import versitygw

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures" / "storage-faults.json"


def main() -> None:
    """Play the cases that are named, each with both."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    found = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    for case in all_cases():
        for state in ("spark-dstl", "stock"):
            if re.search(wanted, f"{state}: {case.of}: {case.name}"):
                outcome = played(case, stock=state == "stock")
                said = {"outcome": outcome.text, "failures": list(outcome.failures)}
                found.setdefault(f"{case.of}: {case.name}", {})[state] = said
                print(state, case.of, case.name, json.dumps(said), flush=True)
                FIGURES.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def played(case: Case, stock: bool) -> Outcome:
    """One case on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="dstl-fault-") as directory:
        work = Path(directory) / "run"
        work.mkdir()
        with versitygw(Path(directory) / "server") as server, place_of(case, server, work) as place:
            try:
                return play(case, place, stock)
            except AssertionError as error:
                return Outcome((), str(error).partition(";")[0].splitlines()[0])


if __name__ == "__main__":
    main()
