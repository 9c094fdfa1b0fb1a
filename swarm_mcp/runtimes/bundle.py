"""The marketplace folder: a self-contained copy of what a client installs.

Portable, it looks for an interpreter and ``swarm-mcp`` by name and can be published as a git repository.
Local, it names the real interpreter and this installation of the coordinator, which saves a version
manager's 100 ms on every write, and carries compiled modules, so that nothing is ever written into
a folder whose contents a client fingerprints.
"""

from __future__ import annotations

import json
import os
import py_compile
import re
import shlex
import sys
from pathlib import Path

import swarm_hook_core
from swarm_mcp import __version__
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import transport

RECORD = "install.json"
LAUNCHER = "bin/swarm-mcp"
HOOK = "integrations/hook.sh"  # what hooks are started through
COORDINATOR = "integrations/coordinator.sh"  # what runs `swarm-mcp` where no installation is named
ENTRY = "integrations/hook.py"  # what they start: ENTRY CLIENT EVENT
STATE = "integrations/state.sh"
_LAUNCHED = re.compile(rf"""/bin/sh "([^"]*)/{HOOK}" ([\w-]+) (\w+); exit 0""")
_PACKAGES = ("swarm_mcp", "swarm_hook_core", "pysqlite3", "sqlite_utils", "mcp", "pydantic_core")
PACKAGE = "package.json"  # what makes the folder a package of pi's; kept with the rest that is pi's
PARTS = (
    ".claude-plugin", ".codex-plugin", ".agents", "integrations/claude-code", "integrations/codex", "integrations/pi",
    "integrations/hs", "skills",
)  # fmt: skip
HARNESS = "integrations/hs"  # the plugin folder of the bash harness
_HARNESS_PYTHON = "lib/python.sh"
# What sessions that began before the release of `hook.py` go on starting: script -> client. The other events' scripts
# are named to HOOK alone, which understands them.
EARLIER_ENTRIES = {f"integrations/{name}/hooks/pre_tool_use.py": name for name in ("claude-code", "codex", "pi")}
_EARLIER_HARNESS = "integrations/harness"


def write(target: Path, local: bool = False, force: bool = False, transports: dict[str, str] | None = None) -> bool:
    """Bring `target` up to date; whether anything in it changed. `transports` as for `contents`.

    Files appear whole or not at all, and those that hooks start are replaced in place, since a
    client may be running them at this moment. Files of an earlier bundle that are no longer part of
    it are removed; nothing else is. Raises SwarmError where the folder holds something else.
    """
    return put(target, contents(local, transports), local, force)


def put(target: Path, wanted: dict[str, bytes], local: bool = False, force: bool = False) -> bool:
    """As `write`, of any files; RECORD is among them, and says which they are."""
    earlier = read_record(target).get("files", [])
    ours = {*earlier, RECORD} if earlier else set()
    foreign = [name for name in wanted if name not in ours and (target / name).exists()]
    in_the_way = [name for name in foreign if (target / name).read_bytes() != wanted[name]]
    if in_the_way and not force:
        raise SwarmError(f"{target} holds files that are not ours ({in_the_way[0]}); choose another folder or --force")
    changed = False
    # New files come first, since what is replaced may name them. The record comes last: until it is there, the folder
    # counts as unfinished and is written again.
    for name in sorted(wanted, key=lambda item: (item == RECORD, (target / item).exists())):
        changed |= _replace(target / name, wanted[name])
    for name in earlier:
        if name not in wanted and (target / name).is_file():
            (target / name).unlink()
            changed = True
    if local:
        _compile(target, [name for name in wanted if name.endswith(".py")])
    return changed


def remove(target: Path) -> bool:
    """Remove a bundle's own files, and the folders that are empty then; whether there was one."""
    files = read_record(target).get("files", [])
    if not files:
        return False
    folders = set()
    for name in [*files, RECORD]:
        path = target / name
        path.unlink(missing_ok=True)
        if name.endswith(".py"):
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                compiled.unlink()
            folders.add(path.parent / "__pycache__")
        folders.update(parent for parent in path.parents if parent == target or target in parent.parents)
    for folder in sorted(folders, key=lambda item: len(item.parts), reverse=True):
        try:
            folder.rmdir()
        except OSError:
            continue
    return True


def read_record(target: Path) -> dict:
    """What a bundle says of itself: version, files, python, coordinator, transports; empty where there is none."""
    try:
        record = json.loads((target / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    files = record.get("files") if isinstance(record, dict) and record.get("name") == "swarm" else None
    # What it names may be removed, so it must be a bundle's own, inside the folder.
    if not isinstance(files, list) or not all(isinstance(n, str) and _is_inside(n) for n in files):
        return {}
    return record


def _is_inside(name: str) -> bool:
    parts = name.split("/")
    return bool(name) and ".." not in parts and "" not in parts and not os.path.isabs(name)


def transports_of(record: dict) -> dict[str, str]:
    """How the hooks of the bundle with this record ask, for each client."""
    chosen = record.get("transports")
    chosen = chosen if isinstance(chosen, dict) else {}
    return {name: value for name, value in chosen.items() if value in transport.TRANSPORTS}


def contents(local: bool, transports: dict[str, str] | None = None) -> dict[str, bytes]:
    """Every file of a bundle by its relative name. `transports`: client -> how its check asks, if not by command."""
    by_tool = [name for name, value in (transports or {}).items() if value == transport.MCP_TOOL]
    source, core = plugin_source(), Path(swarm_hook_core.__file__).parent
    files = {name: (source / name).read_bytes() for name in ("LICENSE", HOOK, ENTRY, STATE, COORDINATOR)}
    for part in PARTS:
        for path in sorted((source / part).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                files[path.relative_to(source).as_posix()] = path.read_bytes()
    for path in sorted(core.rglob("*.py")):
        files[f"swarm_hook_core/{path.relative_to(core).as_posix()}"] = path.read_bytes()
    for name, client in EARLIER_ENTRIES.items():
        files[name] = _forwarding(client)
    # Workers on the bash harness that run at this moment have links into the folder of that name.
    earlier = {
        name: f"{_EARLIER_HARNESS}{name.removeprefix(HARNESS)}" for name in files if name.startswith(f"{HARNESS}/")
    }
    files.update({copy: files[name] for name, copy in earlier.items()})
    files[PACKAGE] = _package(files.pop(f"integrations/pi/{PACKAGE}"))
    record: dict = {"name": "swarm", "version": __version__}
    if local:
        for name in [name for name in files if name.startswith("integrations/") and name.endswith(".json")]:
            files[name] = _bound(files[name])
        for folder in (HARNESS, _EARLIER_HARNESS):
            name = f"{folder}/{_HARNESS_PYTHON}"
            files[name] = files[name].replace(b"=python3", f"={shlex.quote(interpreter())}".encode())
        # Claude Code puts a plugin's bin folder on its shell's PATH.
        files[LAUNCHER] = f'#!/bin/sh\nexec {shlex.join(coordinator_command())} "$@"\n'.encode()
        record.update(python=interpreter(), coordinator=coordinator_command())
    for client in by_tool:
        name = f"integrations/{client}/hooks.json"
        files[name] = _json(transport.wired(json.loads(files[name]), client))
        name = f"integrations/{client}/mcp.json"
        files[name] = _json(transport.serving(json.loads(files[name])))
        files[transport.STAND_IN] = (source / transport.STAND_IN).read_bytes()
    if by_tool:
        record["transports"] = dict.fromkeys(sorted(by_tool), transport.MCP_TOOL)
    record["files"] = sorted(files)
    files[RECORD] = _json(record)
    return files


def harness_contents() -> dict[str, bytes]:
    """Every file of the bash harness's plugin on this machine, by its name within that plugin's own folder."""
    whole = contents(local=True)
    files = {name.removeprefix(f"{HARNESS}/"): text for name, text in whole.items() if name.startswith(f"{HARNESS}/")}
    files.update({name: text for name, text in whole.items() if name.startswith(("swarm_hook_core/", "skills/"))})
    files["LICENSE"] = whole["LICENSE"]
    record = {name: value for name, value in json.loads(whole[RECORD]).items() if name != "transports"}
    files[RECORD] = _json({**record, "files": sorted(files)})
    return files


def _package(text: bytes) -> bytes:
    """The manifest of pi's folder as that of the whole, which counts paths from its own place."""
    tree = json.loads(text)
    for kind, paths in tree["pi"].items():
        tree["pi"][kind] = [f"./{os.path.normpath(os.path.join('integrations/pi', path))}" for path in paths]
    return _json(tree)


def interpreter() -> str:
    """The real interpreter behind this process: no shim, no virtual environment to look up first."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def coordinator_command() -> list[str]:
    """How hooks start this coordinator: the real interpreter, without ``site``, on our folders alone."""
    from importlib.util import find_spec

    folders: list[str] = []
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin:
            folder = os.path.dirname(os.path.dirname(os.path.abspath(spec.origin)))
            if folder not in folders:
                folders.append(folder)
    code = f"import os, sys; sys.path[:0] = {folders!r}; from swarm_mcp.cli.main import main; os._exit(main())"
    return [interpreter(), "-I", "-S", "-c", code]


def _bound(text: bytes) -> bytes:
    """A hooks or server file with names replaced by this installation's paths."""
    tree = json.loads(text)
    for server in tree.get("mcpServers", {}).values():
        server["command"], *server["args"] = [*coordinator_command(), "serve"]
        server.pop("cwd", None)
    for groups in tree.get("hooks", {}).values():
        for group in groups:
            for hook in group["hooks"]:
                hook["command"] = _by_this_interpreter(hook["command"])
    return _json(tree)


def _forwarding(client: str) -> bytes:
    """The script of an earlier release that checked a write of `client`, which does what `hook.py` does now."""
    return f'''"""For sessions that began before an upgrade, whose client goes on starting this file."""

import os
import runpy
import sys

entry = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "hook.py")
sys.argv = [entry, {client!r}, "pre_tool_use"]
sys.path[0] = os.path.dirname(entry)
runpy.run_path(entry, run_name="__main__")
'''.encode()


def _by_this_interpreter(command: str) -> str:
    """A hook's `command` with the interpreter filled in; the check before a write starts it without a launcher."""
    found = _LAUNCHED.fullmatch(command)
    if not found:
        raise SwarmError(f"hook command does not start a script through {HOOK}: {command}")
    root, client, event = found.groups()
    python = shlex.quote(interpreter())
    if event == "pre_tool_use":
        return f'{python} -E -s -S "{root}/{ENTRY}" {client} {event}; exit 0'
    return f'/bin/sh "{root}/{HOOK}" {client} {event} {python}; exit 0'


def _json(tree: dict) -> bytes:
    return (json.dumps(tree, indent=2) + "\n").encode()


def plugin_source() -> Path:
    """Where manifests, integrations and skills are: inside the installed package, or the checkout."""
    package = Path(__file__).resolve().parent.parent
    for candidate in (package / "_plugin", package.parent):
        if (candidate / "integrations").is_dir():
            return candidate
    raise SwarmError("this installation of swarm-mcp lacks its plugin files; install it again")


def _replace(path: Path, content: bytes) -> bool:
    if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    scratch.write_bytes(content)
    if content.startswith(b"#!"):
        scratch.chmod(0o755)
    os.replace(scratch, path)
    return True


def _compile(target: Path, names: list[str]) -> None:
    """Compiled modules that stay valid when a client copies the tree without its times."""
    if interpreter() != os.path.realpath(sys.executable) and sys.version_info[:2] != _version_of(interpreter()):
        return
    for name in names:
        py_compile.compile(
            str(target / name), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
        )


def _version_of(python: str) -> tuple[int, int]:
    import subprocess

    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    major, minor = done.stdout.split()
    return int(major), int(minor)
