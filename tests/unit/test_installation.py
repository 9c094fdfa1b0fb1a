"""This installation: the command that adds an optional part of the package to it."""

import importlib.metadata
import json
import shlex
import sys
from pathlib import Path

import pytest

from swarm_mcp.cli import extras
from swarm_mcp.runtimes import base

PYTHON = shlex.quote(sys.executable)
PIPX = {"main_package": {"package": "swarm-locks", "suffix": "_next"}}
# The file that the installer left in the environment -> the command, for an installation from {source}.
INSTALLERS = {
    "uv": ("uv-receipt.toml", "", "uv tool install {parts}"),
    "pipx": ("pipx_metadata.json", json.dumps(PIPX), "pipx inject swarm-locks_next 'textual>=1'"),
    "an older pipx": ("pipx_metadata.json", "[]", "pipx inject swarm-locks 'textual>=1'"),
    "pip": ("pyvenv.cfg", "", f"{PYTHON} -m pip install {{extra}}"),
    "a plugin's uv": ("no pip", "", "uv tool install {parts}"),
}


@pytest.mark.parametrize("installer", INSTALLERS)
@pytest.mark.parametrize("is_from_a_folder", [True, False])
def test_a_part_is_added_by_the_installer_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installer: str, is_from_a_folder: bool
) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()

    class Found:
        def read_text(self, name: str) -> str | None:
            return json.dumps({"url": clone.as_uri(), "dir_info": {}}) if is_from_a_folder else None

    needs = [
        "jsonschema>=4",
        "jinja2>=3; extra == 'page'",
        "textual>=1; extra == 'top'",
        'psycopg[binary]>=3; extra == "team"',
    ]

    def found(name: str) -> Found:
        """Only the page's packages are there, and ours."""
        if name in ("textual", "psycopg"):
            raise importlib.metadata.PackageNotFoundError
        return Found()

    monkeypatch.setattr("swarm_mcp.cli.extras.distribution", found)
    monkeypatch.setattr("swarm_mcp.cli.extras.requires", lambda name: needs)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    sign, text, command = INSTALLERS[installer]
    (tmp_path / sign).write_text(text)
    if sign == "no pip":
        monkeypatch.setattr("swarm_mcp.cli.extras.find_spec", lambda name: None)
    source = str(clone) if is_from_a_folder else "swarm-locks"
    expected = command.format(extra=shlex.quote(f"{source}[top]"), parts=shlex.quote(f"{source}[page,top]"))
    assert extras.extra_command("top") == expected


def test_the_part_s_packages_are_those_of_the_record() -> None:
    assert any(one.startswith("textual") for one in extras._needed_by("top"))
    assert extras._needed_by("no such part") == []


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
