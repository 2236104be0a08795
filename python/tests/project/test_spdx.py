# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3] / "project"
if not (PROJECT / "check_spdx.py").exists():
    pytest.skip("only in a checkout of the whole project", allow_module_level=True)
sys.path.insert(0, str(PROJECT))

import check_spdx  # noqa: E402

HEADER = "SPDX-License-Identifier: Apache-2.0"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["check_spdx.py", *map(str, arguments)])
    return check_spdx.main()


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("A.scala", "package a\n", f"// {HEADER}\npackage a\n"),
        ("A.java", "package a;\r\n", f"// {HEADER}\npackage a;\r\n"),
        ("a.py", '"""Text."""\n', f'# {HEADER}\n"""Text."""\n'),
        ("b.py", "", f"# {HEADER}\n"),
        ("a.sbt", "name := 1\n", f"// {HEADER}\nname := 1\n"),
        ("script", "#!/bin/sh\n", f"#!/bin/sh\n# {HEADER}\n"),
        ("a.sh", "#!/bin/sh\nexit\n", f"#!/bin/sh\n# {HEADER}\nexit\n"),
        ("a.yml", "a: 1\n", f"# {HEADER}\na: 1\n"),
        ("Makefile", "all:\n", f"# {HEADER}\nall:\n"),
    ],
)
def test_a_missing_header_is_found_and_added_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, before: str, after: str
) -> None:
    path = tmp_path / name
    path.write_bytes(before.encode())
    assert run(monkeypatch, path) == 1
    assert run(monkeypatch, "--fix", path) == 0
    assert run(monkeypatch, "--fix", path) == 0
    assert path.read_bytes() == after.encode()
    assert run(monkeypatch, path) == 0


def test_a_header_below_the_third_line_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_text(f"#\n#\n#\n# {HEADER}\n")
    assert run(monkeypatch, path) == 1


def test_other_files_need_no_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.md"
    path.write_text("# Title\n")
    assert run(monkeypatch, path) == 0


def test_the_mode_of_a_script_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.sh"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    run(monkeypatch, "--fix", path)
    assert path.stat().st_mode & 0o777 == 0o755
