"""The marketplace folder, a self-contained copy of the plugin for all clients or fetched by uv; and the state folder.

A portable bundle looks for an interpreter and ``swarm-mcp`` by name, and can be published as a git repository. A local
one names the real interpreter and this installation of the coordinator: that saves the 100 ms of a version manager on
every write. It carries compiled modules, because clients fingerprint the folder and nothing may be written into it
later.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import swarm_hook_core
from swarm_hook_core import __version__ as RELEASE
from swarm_hook_core.coordinator import launcher
from swarm_hook_core.state import state_dir, write_private
from swarm_mcp import __file__ as ours
from swarm_mcp import __version__, runtimes
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import names_in
from swarm_mcp.installation import coordinator_command, interpreter, plugin_source, relay
from swarm_mcp.runtimes.base import UNCHECKED, Runtime, as_json
from swarm_mcp.runtimes.claude_code import forget_failed_server
from swarm_mcp.runtimes.client_settings import NAME, SERVERS
from swarm_mcp.runtimes.installed import hooks_in
from swarm_mcp.runtimes.users_file import RECORD, put_folder

PACKAGE = "package.json"
LAUNCHER = "bin/swarm-mcp"
SKILLS = ("swarm", "swarm-mcp")  # in the folder `skills`
HOOK = "integrations/hook.sh"  # starts a hook: HOOK CLIENT EVENT
STATE = "integrations/state.sh"  # finds the state folder, and ends a hook after a call that needs no check
ENTRY = "integrations/hook.py"  # runs a hook: ENTRY CLIENT EVENT
COORDINATOR = "integrations/coordinator.sh"  # runs `swarm-mcp` if no installation is named
SCRIPTS = "integrations/hooks"  # the hook scripts of clients without scripts of their own
STARTERS = (
    HOOK, STATE, ENTRY, SCRIPTS, UNCHECKED, COORDINATOR, "integrations/launch.py",
    "integrations/coordinator.py", "integrations/relay.py",
    "integrations/find.py", "integrations/answers.txt",
)  # fmt: skip
# Parts of plugins that run inside a client.
BRIDGES = ("integrations/checker.ts", "integrations/hooks.ts", "integrations/opencode.ts")
KERNEL = "integrations/kernel"  # asks the check before git runs in a command for which the kernel holds locks
# In place of a shell that waits, where a call of the client's waits for it; a script that is missing denies nothing.
_LAUNCHED = re.compile(rf"""(\[ -r "[^"]*" \] && exec )?/bin/sh "([^"]*)/{HOOK}" ([\w-]+) (\w+)(; exit 0)?""")


def write(target: Path, local: bool = False, force: bool = False, servers: dict[str, str] | None = None) -> bool:
    """Bring the folder `target` up to date, as `put_folder` does; the rest as for `contents`."""
    return put_folder(target, contents(target if local else None, servers), compiled=local, force=force)


def contents(place: Path | None, servers: dict[str, str] | None = None) -> dict[str, bytes]:
    """Return every file of a bundle by its relative name.

    `place`: the folder for a local bundle, or None for a portable one. `servers`: runtime -> name of our MCP server, if
    that is not `swarm`.
    """
    everyone = [runtimes.runtime(name) for name in runtimes.NAMES]
    source, core = plugin_source(), Path(swarm_hook_core.__file__).parent
    shared = ["LICENSE", *STARTERS, *BRIDGES, KERNEL, "skills"]
    own = [part for runtime in everyone for part in (*runtime.manifests, runtime.folder)]
    files = {path.relative_to(source).as_posix(): path.read_bytes() for path in _files_in(source, [*shared, *own])}
    for path in sorted(core.rglob("*.py")):
        files[f"swarm_hook_core/{path.relative_to(core).as_posix()}"] = path.read_bytes()
    record: dict[str, Any] = {"name": "swarm", "version": __version__}
    if place:
        program = relay()
        for name in [name for name in files if name.startswith("integrations/") and name.endswith(".json")]:
            files[name] = _bound(files[name], program)
        # Claude Code puts a plugin's bin folder on its shell's PATH.
        files[LAUNCHER] = f'#!/bin/sh\nexec {shlex.join(coordinator_command())} "$@"\n'.encode()
        record.update(python=interpreter(), coordinator=coordinator_command())
    for runtime in everyone:
        if runtime.name in (servers or {}):
            _rename(files, runtime, (servers or {})[runtime.name])
        runtime.finish_bundle(files, place)
    if servers:
        record[SERVERS] = servers
    record["files"] = sorted(files)
    files[RECORD] = as_json(record)
    return files


def add_to_package(files: dict[str, bytes], told: dict[str, Any]) -> None:
    """Say `told` in the manifest at the root of a bundle's `files`, where more than one client looks for its own."""
    files[PACKAGE] = as_json({**told, **json.loads(files.get(PACKAGE, b"{}"))})


def _rename(files: dict[str, bytes], runtime: Runtime, name: str) -> None:
    """Give our MCP server another name in the files of one runtime."""
    for file in (f"{runtime.folder}/mcp.json", *runtime.manifests):
        tree = json.loads(files.get(file, b"{}"))
        servers = tree.get("mcpServers")
        if isinstance(servers, dict):
            tree["mcpServers"] = {name if key == NAME else key: server for key, server in servers.items()}
            files[file] = as_json(tree)
    hooks = f"{runtime.folder}/hooks.json"
    tools = f"mcp__{name.replace('-', '[-_]')}__"  # in matchers; some clients write a dash otherwise
    files[hooks] = files[hooks].replace(f"mcp__{NAME}__".encode(), tools.encode())


def _files_in(source: Path, parts: list[str]) -> list[Path]:
    found = [path for part in parts for path in [source / part, *sorted((source / part).rglob("*"))]]
    return [path for path in found if path.is_file() and path.name != "README.md" and "__pycache__" not in path.parts]


def _bound(text: bytes, program: str) -> bytes:
    """Return a hooks or server file with this installation's paths for names. `program`: the relay in C, or ""."""
    tree = json.loads(text)
    for server in tree.get("mcpServers", {}).values():
        server["command"], *server["args"] = [*coordinator_command(), "serve"]
        server.pop("cwd", None)
    for _event, _group, hook in hooks_in(tree) if "hooks" in tree else ():
        hook["command"] = _by_this_interpreter(hook["command"], program)
    return as_json(tree)


def _by_this_interpreter(command: str, program: str) -> str:
    """Return a hook's `command` with the interpreter filled in; a check around a call starts at once.

    `program`: the relay in C, or "".
    """
    found = _LAUNCHED.fullmatch(command)
    if not found:
        raise SwarmError(f"hook command does not start a hook through {HOOK}: {command}")
    instead, root, client, event, end = found.groups("")
    python = shlex.quote(interpreter())
    if event == "pre_tool_use" or (event == "post_tool_use" and instead):
        alone = f'{python} -E -s -S "{root}/{ENTRY}" {client} {event}'
        is_there = f'[ -x {python} ] && [ -r "{root}/{ENTRY}" ]'
        first = shlex.quote(program)
        relayed, can_relay = "", ""
        if program:
            # A shell takes an empty file for a script that lets all pass: a copy that a full disk has cut off. BusyBox,
            # which has FUNCNAME, would read a program of another machine as a script: it compares the kind of machine.
            can_relay = f'[ -s {first} ] && [ -x {first} ] && {is_there} && {{ [ ! "${{FUNCNAME+x}}" ] || '
            can_relay += f"cmp -s -n 2 {first} /proc/self/exe 18 18 2>/dev/null; }}"
            # Whoever reads the output is not told of a program that this machine cannot execute.
            relayed = f"{first} {RELEASE} {client} {event} {alone} alone 2>/dev/null"
        if not instead:
            if not end:
                return alone
            # A client that takes any status for a denial gets 0 also where the interpreter dies.
            otherwise = f'/bin/sh "{root}/{HOOK}" {client} {event} {python}'
            if relayed:
                alone = f"if {can_relay}; then {relayed}; [ $? -lt 126 ] || {alone}; else {alone}; fi"
            return f"if {is_there}; then {alone}; else {otherwise}; fi{end}"
        if relayed:
            # A shell that cannot execute the relay, in a shared home, ends; bash goes on if told so.
            tried = f'check() {{ exec {alone}; }}; trap check EXIT; [ ! "${{BASH_VERSION:-}}" ] || shopt -s execfail; '
            instead = f"{can_relay} && {{ {tried}exec {relayed}; }}; {is_there} && exec {alone}; {instead}"
        else:
            instead = f"{is_there} && exec {alone}; {instead}"  # else HOOK looks for a wish to have the call denied
        if event == "post_tool_use":
            script = f'"{root}/{STATE}"'
            instead = f"client={client} event={event}; [ ! -r {script} ] || . {script}; {instead}"
    return f'{instead}/bin/sh "{root}/{HOOK}" {client} {event} {python}{end}'


# This copy of swarm-mcp, where uv has fetched it for plugins that have no command: how they start it.


def leave_launcher() -> str:
    """Write the launcher that plugins of this release start; return its path. Raises OSError."""
    path, copy = launcher(), shlex.quote(os.path.abspath(ours))
    lines = [
        "#!/bin/sh",
        "# Made by `swarm-mcp fetched`. uv may remove its copy at any time; then this goes too, and is made anew.",
        f'[ -e {copy} ] || {{ rm -f "$0"; echo "swarm: uv has removed its copy of swarm-mcp" >&2; exit 1; }}',
        f'exec {shlex.join(coordinator_command())} "$@"',
    ]
    write_private(path, "\n".join(lines) + "\n")
    os.chmod(path, 0o700)
    # Make Claude Code forget that the first session of the plugin had no server.
    with suppress(Exception):
        forget_failed_server()
    return path


def is_launched(folder: str) -> bool:
    """Return True if the launcher starts the copy of swarm-mcp in this folder of packages."""
    try:
        with open(launcher(), encoding="utf-8", errors="replace") as file:
            return f"{folder}{os.sep}" in file.read(65536)
    except OSError:  # no launcher
        return False


# The contents of the state folder, and their removal when swarm is uninstalled.

# Made again whenever it is needed: it goes with an uninstallation.
OURS = (
    "*-fault", "*-hooks.json", "acting", "assignment-*", "authorship.lock", "awaited", "busy", "claims", "command",
    "commits", "checkers", "crashes", "ended", "faults.jsonl", "faults.jsonl.1", "fetched", "heads", "kernel", "loop",
    "plugin", "plugin.lock", "protected", "protection", "python", "repeated-denials.jsonl", "repeated-denials.jsonl.1",
    "relay", "repositories", "running", "server", "settled", "slots", "swarm-*", "traces", "tries",
    "turn-files", "unheard", "watched", "watched-edits", "work",
)  # fmt: skip
# A person may still want it: it is named, and stays.
THEIRS = {
    "edited": "what was put into files of clients that still hold it",
    "kept": "contents that `swarm-mcp restore` can bring back",
    "kept-names": "which files those are of",
    "projects.json": "which projects have git hooks of swarm's, or what `swarm-mcp init` put there",
    "runs": "records of what workers did",
    "team": "which clones have joined a team (`swarm-mcp team leave` in one ends that)",
    "undos": "what `swarm-mcp undo --undo` can take back",
    "worktrees": "work trees of tasks of an earlier release (`git worktree list` in their repository names them)",
}


def remove_ours() -> None:
    """Remove swarm's files from the state folder, and the folder once it is empty.

    A folder that a setting chose, with a name that does not mention swarm, is left alone: its entries may belong to
    another program. Files that cannot be removed stay, and `left` names them.
    """
    folder = state_dir()
    if "swarm" not in os.path.basename(folder):
        return
    for name in names_in(folder):
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in OURS):
            _remove(os.path.join(folder, name))
    try:
        os.rmdir(folder)
    except OSError:
        pass  # an entry is left in it, and `left` names it


def remove_theirs() -> list[str]:
    """Remove what a person may still want, but for work trees; return its paths."""
    found = [path for path in left() if os.path.basename(path) in THEIRS and os.path.basename(path) != "worktrees"]
    for path in found:
        _remove(path)
    return found


def left() -> dict[str, str]:
    """Return the entries of the state folder by path, each with a few words about it."""
    folder = state_dir()
    return {os.path.join(folder, name): THEIRS.get(name, "") for name in names_in(folder)}


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        os.remove(path)
    except OSError:
        pass  # `left` names it
