"""Everyday commands of agents: what they show and write."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_hook_core.clock import Budget
from swarm_hook_core.shell import effects_of


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("cat notes.md", ["notes.md"]),
        ("sed -n '1,200p' src/a.py", ["src/a.py"]),
        ("head -n 20 a b", ["a", "b"]),
        ("nl -ba 'a.py'", ["a.py"]),
        ("cat 'a b' && git status", ["a b"]),
        ("ls -la src", []),
        ("git --no-pager log --oneline -5 2>/dev/null", []),
        ("cd src && rg 'x.*y$' -g '*.py' | sort | uniq -c", []),
        ("find . -name '*.py' | wc -l", []),
        ("python -m pytest -q tests 2>&1 | tail -5", []),
    ],
)
def test_everyday_looks_write_nothing(command: str, files: list[str]) -> None:
    effects = effects_of(command, "/w", {}, budget=Budget(60))
    assert not effects.writes and not effects.trees
    assert [read.path for read in effects.reads if not read.path.startswith("/")] == files


def test_a_folder_that_is_moved_is_a_tree(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    assert [tree.root for tree in effects_of("mv src new", str(tmp_path), {}, budget=Budget(60)).trees]


def test_a_device_is_no_file() -> None:
    assert effects_of("echo x > ../dev/null", "/work", {}, budget=Budget(60)).writes == []
    assert effects_of("cp a b", "/dev", {}, budget=Budget(60)).writes == []
