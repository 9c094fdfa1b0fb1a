"""Optional parts of our package, and the command that adds one to this installation."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution, requires
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from swarm_hook_core import DISTRIBUTION

EXTRAS = ("page", "top", "lsp", "team")


def extra_command(extra: str) -> str:
    """Return the command that adds the optional part `extra` of our package to this installation, by its installer.

    Installers of tools leave a file of their own in the environment: uv, pipx. Any other one is pip's. The release that
    uv has fetched for a plugin has neither file nor pip: then uv installs one for the shell, which plugins prefer.
    """
    source, prefix = _installed_from(), Path(sys.prefix)
    needed = [shlex.quote(one) for one in _needed_by(extra)]
    if (prefix / "pipx_metadata.json").is_file() and needed:
        return f"pipx inject {shlex.quote(_pipx_name(prefix))} {' '.join(needed)}"
    if (prefix / "uv-receipt.toml").is_file() or not find_spec("pip"):
        parts = [one for one in EXTRAS if one == extra or _is_there(one)]  # uv drops extras that it is not told again
        return f"uv tool install {shlex.quote(source + '[' + ','.join(parts) + ']')}"
    return f"{shlex.quote(sys.executable)} -m pip install {shlex.quote(f'{source}[{extra}]')}"


def _is_there(extra: str) -> bool:
    """Return True if all packages of an optional part are installed."""
    needed = _needed_by(extra)
    try:
        for one in needed:
            distribution(re.split(r"[^\w.-]", one)[0])
    except PackageNotFoundError:  # one of them is missing
        return False
    return bool(needed)


def _needed_by(extra: str) -> list[str]:
    """Return the packages of an optional part, each as its installer takes it: ``textual>=1``."""
    try:
        found = requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # a copy without its record
        return []
    parts = [(one.partition(";")[0].strip(), one.partition(";")[2].replace("'", '"')) for one in found]
    return [name for name, condition in parts if f'extra == "{extra}"' in condition]


def _pipx_name(prefix: Path) -> str:
    """Return the name that pipx has for this environment."""
    try:
        main = json.loads((prefix / "pipx_metadata.json").read_text())["main_package"]
        return str(main["package"] + main.get("suffix", ""))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # another release's form
        return DISTRIBUTION


def _installed_from() -> str:
    """The folder that our package was installed from; its name on the index where it was from there, or elsewhere."""
    try:
        told = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError, RecursionError):  # installed from the index
        return DISTRIBUTION
    url, folder = "", ""
    if isinstance(told, dict):
        url = str(told.get("url", ""))
    if url.startswith("file://"):
        folder = unquote(urlsplit(url).path)
    if os.path.isdir(folder):
        return folder
    return DISTRIBUTION
