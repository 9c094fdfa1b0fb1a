"""Folders and files as sessions name them: the scope, the roots, the file that a word means; the plugin's files."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.paths import contains, git_root, translated
from swarm_mcp.domain import Session
from swarm_mcp.errors import SwarmError

MOST_KNOWN = 500
# Files by the folders of a session and their names: sessions ask for the same ones again and again. Neither the disk
# nor the environment has a say in these.
_files: dict[tuple[str, str, str], str] = {}


def here() -> str:
    """Return this process's folder, or its former path if it has been deleted."""
    try:
        return os.getcwd()
    except OSError:  # it has been deleted
        return os.environ.get("PWD", "").strip() or os.sep


def clean(path: str, base: str = "") -> str:
    """`path` absolute and normalised, links left alone, relative to `base` or this process's folder."""
    text = os.path.expanduser(path.strip())
    joined = os.path.normpath(text if os.path.isabs(text) else os.path.join(base or here(), text))
    if joined.startswith("//") and os.name == "posix":
        return joined[1:]
    return joined


def names_in(folder: str) -> list[str]:
    """Return the names of the entries of a folder, sorted; none if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:  # no such folder
        return []


def scope_of(directory: str, explicit: str = "") -> str:
    """The scope of work in `directory`: the `explicit` one, else the git root above, else itself."""
    if explicit.strip():
        return clean(explicit)
    return git_root(clean(directory))


def current_scope(explicit: str = "") -> str:
    """The scope a command works in: its flag, else ``SWARM_MCP_SCOPE``, else the git root here."""
    return scope_of(here(), explicit or os.environ.get("SWARM_MCP_SCOPE", ""))


def file_of(instance: Session, path: str) -> str:
    """The file that `path` means for a session: relative to its file_root, moved there from its root."""
    directory, root, file_root = instance.directory, instance.root, instance.file_root
    known = _files.get((directory, file_root, path))
    if known:
        return known
    text = path.strip()
    is_relative, base = not os.path.isabs(os.path.expanduser(text)), file_root or directory
    absolute = clean(text, base if is_relative else "")
    if is_relative or file_root in ("", directory):
        # It stands for no other folder; that need not be asked of the disk.
        if base.startswith("/") and not text.startswith("~"):
            if len(_files) >= MOST_KNOWN:
                _files.clear()
            _files[directory, file_root, path] = absolute
        return absolute
    moved = translated(absolute, directory, root, file_root)
    if moved != absolute:
        return moved
    real = os.path.realpath(absolute)
    elsewhere = translated(real, os.path.realpath(directory), os.path.realpath(root), file_root)
    if elsewhere == real:
        return absolute
    return elsewhere


def allowed_roots(identity: str) -> list[str]:
    """Folders that ``SWARM_MCP_<IDENTITY>_ROOTS`` confines an identity to; empty for no fence."""
    word = "".join(c if c.isascii() and c.isalnum() else "_" for c in identity.upper())
    if identity:
        setting = os.environ.get(f"SWARM_MCP_{word}_ROOTS", "")
    else:
        setting = ""
    return [clean(part) for part in setting.split(os.pathsep) if part.strip()]


def inside_any(path: str, folders: list[str]) -> bool:
    """Return True if `path` is one of `folders` or lies under one."""
    return any(contains(folder, path) for folder in folders)


def plugin_folder() -> str:
    """Return the folder of manifests, integrations and skills: inside the installed package, or the checkout.

    Raises SwarmError where the installation has lost it.
    """
    package = os.path.dirname(os.path.realpath(__file__))
    for candidate in (package + "/_plugin", os.path.dirname(package)):
        if os.path.isdir(candidate + "/integrations"):
            return candidate
    raise SwarmError("this installation of swarm-mcp lacks its plugin files; install it again")


_configs: dict[str, RuntimeConfig] = {}


def config_of(runtime: str) -> RuntimeConfig:
    """Return the RuntimeConfig of a runtime, as its folder under ``integrations/`` has it for hooks."""
    if runtime not in _configs:
        # `importlib.machinery` offers the same, at the cost of its imports
        from _frozen_importlib_external import SourceFileLoader

        found: dict[str, Any] = {"__name__": "runtime"}
        path = f"{plugin_folder()}/integrations/{runtime}/runtime.py"
        exec(SourceFileLoader("runtime", path).get_code("runtime") or "", found)
        _configs[runtime] = found["RUNTIME"]
    return _configs[runtime]
