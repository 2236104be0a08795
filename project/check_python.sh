#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Says in one line, on stderr, what is wrong with the machine's Python and what to install, and then exits with 1.
python=${PYTHON:-python3}

fail() {
  echo "spark-dstl needs Python 3.10 or newer: $1, then try again (make PYTHON=... names another interpreter)" >&2
  exit 1
}

command -v "$python" >/dev/null || fail "there is no $python on the PATH; install one (Debian, Ubuntu: apt install python3 python3-venv)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
  fail "$python is $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); install a newer one"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
  fail "$python cannot make virtual environments; install its venv module (Debian, Ubuntu: apt install python3-venv)"
