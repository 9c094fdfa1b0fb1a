"""This installation: the command that adds an optional part of the package to it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from swarm_mcp import installation
from swarm_mcp.runtimes import base


@pytest.mark.parametrize(
    ("sign", "begins"),
    [
        ("uv-receipt.toml", "uv tool install --force "), ("pipx_metadata.json", "pipx install --force "),
        ("pyvenv.cfg", f"{shlex.quote(sys.executable)} -m pip install "),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_from_a_folder", [True, False])
def test_a_part_is_added_by_the_installer_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: str, begins: str, is_from_a_folder: bool
) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()

    class Found:
        def read_text(self, name: str) -> str | None:
            return json.dumps({"url": clone.as_uri(), "dir_info": {}}) if is_from_a_folder else None

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Found())
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / sign).write_text("")
    what = f"{clone}[top]" if is_from_a_folder else "swarm-locks[top]"
    assert installation.extra_command("top") == f"{begins}{shlex.quote(what)}"


NODE = """\
(node:7) Warning: something is old
file:///opt/pi/dist/main.js:12
    throw new Error("x")
    ^

Error: this Node.js is too old: 20 is needed
    at main (file:///opt/pi/dist/main.js:12:11)
    at async run (node:internal/modules/run_main:94:5) {
  code: 'TOO_OLD'
}

Node.js v18.20.1
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (NODE, "Error: this Node.js is too old: 20 is needed"),
        ("WARNING: proceeding\nError: no such plugin\n", "Error: no such plugin"),
        ('Traceback (most recent call last):\n  File "x.py", line 1\n    import y\nModuleNotFoundError: No module named y',
         "ModuleNotFoundError: No module named y"),
        ("one\nit is not logged in\n", "it is not logged in"), ("    at a (b:1:2)\n", "at a (b:1:2)"), ("", ""),
    ],
)  # fmt: skip
def test_what_a_client_complains_of_is_the_error_and_not_its_stack(text: str, line: str) -> None:
    assert base._complaint(text) == line
