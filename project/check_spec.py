# SPDX-License-Identifier: Apache-2.0
"""Runs the specification on random traces: `check_spec.py TRACES`.

The protocol's invariant must hold in all traces, and must break in one without each rule. The modules at the end of
each file of `docs/spec` name the rules. The exit code is 0 only if all of this holds.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from patiently import say

ROOT = Path(__file__).resolve().parents[1]
# Quint downloads its other simulator when it runs.
QUINT = (str(ROOT / ".build/quint/node_modules/.bin/quint"), "run", "--backend=typescript", "--verbosity=1")
STEPS = 50
# Each flaw breaks the invariant in at least one of some hundred traces.
TRACES_FOR_A_FLAW = 10_000

_INSTANCE = re.compile(r'^module (\w+) \{ import \w+\(FLAW = "(.*)"\)', re.MULTILINE)


def main() -> int:
    """Run all instances of all modules, print a line for each, and return the exit code."""
    traces = int(sys.argv[1])
    wrong = 0
    for file in sorted((ROOT / "docs/spec").glob("*.qnt")):
        for module, flaw in _INSTANCE.findall(file.read_text(encoding="utf-8")):
            wrong += not (breaks(file, module, flaw) if flaw else holds(file, module, traces))
    return 1 if wrong else 0


def holds(file: Path, module: str, traces: int) -> bool:
    """Return whether the invariant holds in all traces; print a trace that breaks it."""
    output, seconds = simulate(file, module, traces)
    if "[ok]" in output:
        say(f"{file.stem}: the invariant holds in {traces} traces, {seconds:.0f} s")
        return True
    say(f"{file.stem}: the invariant does not hold, or the file is in error")
    print(output)
    return False


def breaks(file: Path, module: str, flaw: str) -> bool:
    """Return whether the invariant breaks without the rule."""
    output, seconds = simulate(file, module, TRACES_FOR_A_FLAW)
    if "[violation]" in output:
        say(f"{file.stem}, {flaw}: found, {seconds:.0f} s")
        return True
    say(f"{file.stem}, {flaw}: not found in {TRACES_FOR_A_FLAW} traces, or the file is in error")
    print(output[-2000:])
    return False


def simulate(file: Path, module: str, traces: int) -> tuple[str, float]:
    """Run random traces of a module; return what Quint prints, and the seconds it took."""
    started = time.monotonic()
    options = (f"--main={module}", "--invariant=invariant", f"--max-steps={STEPS}", f"--max-samples={traces}")
    done = subprocess.run([*QUINT, *options, str(file)], capture_output=True, text=True, env=os.environ, check=False)
    return done.stdout + done.stderr, time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main())
