"""The plugin of a worker on the bash harness, without a change to the user's own.

The harness takes its bundled plugins from ``$HARNESS_ROOT/plugins``, wherever that is. A worker is given a root of
links: everything that is in the real one, and our plugin beside it, which ranks itself in front of all (``sources``).
The user's ``~/.harness`` with its plugins, settings and credentials stays where it is and in force. An installed
plugin of ours does not run twice: of hooks with one name the harness runs one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from swarm_mcp.harness.query import HarnessQuery
from swarm_mcp.runtimes.hs import GUARDED, home, root_of

PACK = "swarm"


def environment(query: HarnessQuery, program: str, folder: Path) -> dict[str, str]:
    """Return the variables that give the child our plugin, which is made below `folder`, and our command."""
    from swarm_mcp.harness.plugin import plugin_folder

    bundle = plugin_folder()
    path = query.env.get("PATH") or os.environ.get("PATH") or os.defpath
    env = {"PATH": os.pathsep.join((str(bundle / "bin"), path))}
    found = shutil.which(program, path=path)
    root = root_of(found) if found else None
    if root is not None:
        env["HARNESS_ROOT"] = str(linked(root, bundle, folder / "harness", query))
    return env


def is_installed() -> bool:
    """Return whether the user has installed our plugin."""
    return (home() / "plugins" / PACK / "tools" / GUARDED[0]).is_file()


def linked(root: Path, bundle: Path, target: Path, query: HarnessQuery) -> Path:
    """Return a root like `root`, with our plugin from `bundle` among the bundled ones."""
    packs = target / "plugins"
    packs.mkdir(parents=True)
    for entry in root.iterdir():
        if entry.name != packs.name:
            (target / entry.name).symlink_to(entry)
    for entry in (root / packs.name).iterdir():
        if entry.name != PACK:
            (packs / entry.name).symlink_to(entry)
    ours = packs / PACK
    (ours / "skills").mkdir(parents=True)
    for part in ("tools", "hooks.d"):
        (ours / part).symlink_to(bundle / "integrations" / "hs" / part)
    for skill in query.skills:
        link = ours / "skills" / os.path.basename(skill.rstrip("/"))
        if not link.is_symlink():
            link.symlink_to(os.path.abspath(skill))
    text = "\n\n".join(filter(None, (query.system_prompt, query.append_system_prompt)))
    if text:
        (ours / "prompts").mkdir()
        (ours / "prompts" / "500-run.md").write_text(text, encoding="utf-8")
    return target
