"""The reference of the Python API is what the docstrings say, and they explain all that is public."""

import subprocess
import sys
from pathlib import Path

import pytest

import spark_dstl

ROOT = Path(__file__).resolve().parents[2]
GENERATOR = ROOT / "project" / "generate_python_api.py"
PAGE = ROOT / "docs" / "python-api.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="only in a checkout of the whole project")


def test_the_reference_is_what_the_docstrings_say_and_nothing_public_lacks_one() -> None:
    done = subprocess.run([sys.executable, str(GENERATOR), "--check"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_in_the_reference() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in spark_dstl.__all__:
        assert f"\n### {name}\n" in text or f"| `{name}` |" in text or f"`spark_dstl.{name}`" in text, name
