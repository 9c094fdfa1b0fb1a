"""The bash harness (wedow/harness): a plugin is a folder in ``~/.harness/plugins``, and runs in place."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import here
from swarm_mcp.installation import interpreter
from swarm_mcp.runtimes.base import PLUGIN, UNCHECKED, Finding, Look, Runtime, Steps, as_failure, as_json
from swarm_mcp.runtimes.installed import YES, Coverage, HookCommand, Installed, Verified
from swarm_mcp.runtimes.users_file import (
    RECORD,
    differing,
    put_folder,
    read_files,
    read_record,
    remove_empty,
    remove_folder,
)

_FOLDER = "integrations/hs"
_EARLIER_FOLDER = "integrations/harness"
GUARDED = ("write_file", "str_replace", "edit_file", "bash")


class Hs(Runtime):
    """The ``hs`` command; its other name is ``harness``."""

    name = executable = harness = "hs"
    title = "the bash harness"
    coverage = Coverage(
        edits="partly: tools of other names than its own are not seen", patches="no: it has no tool for them",
        shell=YES, other_tools="no: it has no MCP", subagents="partly: each counts as a session of its own",
        told_before=YES, told_after=YES, ends=YES, verified=Verified("0.2.0", "2026-11-23"),
    )  # fmt: skip
    shell_tool = "bash"
    session_variables = (
        "HARNESS_SESSION", "HARNESS_STAGE", "HARNESS_SOURCES", "HARNESS_ROOT", "HARNESS_LOG", "HARNESS_CWD",
        "HARNESS_PARENT_SESSION", "HARNESS_DEPTH", "HARNESS_TOOL_FIFO", "HARNESS_AGENT_SESSION_ROOT", "HARNESS_RUN_ID",
        "HARNESS_VERSION", "SWARM_HS_READ_ONLY",
    )  # fmt: skip

    def program(self) -> str:
        """The command, where it is this harness: others are called hs and harness as well."""
        for word in (self.executable, "harness"):
            path = shutil.which(word) or ""
            if path and (root_of(path) is not None or home().is_dir()):
                return path
        return ""

    def finish_bundle(self, files: dict[str, bytes], place: Path | None) -> None:
        """Name the interpreter, and keep the folder's earlier name: workers that run now have links into it."""
        python = f"{self.folder}/lib/python.sh"
        if place:
            files[python] = files[python].replace(b"=python3", f"={shlex.quote(interpreter())}".encode())
        ours = [name for name in files if name.startswith(f"{self.folder}/")]
        files.update({f"{_EARLIER_FOLDER}{name.removeprefix(self.folder)}": files[name] for name in ours})

    @as_failure()
    def install(self, marketplace: Path, steps: Steps) -> Installed:
        steps.begin(f"putting the plugin into {self._folder()}")
        if put_folder(self._folder(), plugin_files(read_files(marketplace)), compiled=True):
            steps.add(f"put the plugin into {self._folder()}")
        return self._installed()

    def uninstall(self, steps: Steps) -> None:
        try:
            steps.begin(f"removing the plugin from {self._folder()}")
            removed = remove_folder(self._folder())
        except OSError as error:
            raise ClientFailed(f"{self._folder()} could not be removed: {error.strerror or error}") from error
        if not removed:
            return
        remove_empty(self._folder().parent)
        steps.add(f"removed the plugin from {self._folder()}")

    def release(self) -> str:
        return ""  # it takes every word for a prompt

    def traces(self) -> bool:
        return bool(read_record(self._folder()))

    def version(self) -> str:
        return str(read_record(self._folder()).get("version") or "")

    def look(self, marketplace: Path, steps: Steps) -> Look:
        mend = "swarm-mcp install --client hs"
        folder, record = self._folder(), read_record(self._folder())
        if not record:
            return Look([Finding("hs plugin", "warn", "not installed", mend)], None)
        different = differing(folder, plugin_files(read_files(marketplace)))
        guards = [name for name in record["files"] if name.startswith(("tools/", "hooks.d/"))]
        closed = [name for name in guards if not _runs(folder / name)]
        if closed:
            found = Finding("hs plugin", "fail", f"{folder / closed[0]} cannot be executed", mend)
        elif different:
            text = f"{folder} differs from this swarm-mcp in {len(different)} files"
            found = Finding("hs plugin", "warn", text, mend, {"different": different})
        else:
            found = Finding("hs plugin", "ok", f"version {record.get('version')}, at {folder}")
        return Look([found, self._shadows(folder)], self._installed())

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "session_id": session_id, "cwd": cwd, "hook_event_name": "PreToolUse", "tool_name": "write_file",
            "tool_input": {"path": file, "content": "x"}, "tool_use_id": "call_doctor",
        }  # fmt: skip

    # ---------------------------------------------------------------- innards

    def _installed(self) -> Installed:
        """The plugin: its guards are no hooks of a client's, so one that asks as they do stands for them."""
        command = shlex.join([interpreter(), "-E", "-s", "-S", str(self._folder() / "hooks" / "probe.py")])
        return self.installed_at(self._folder(), [HookCommand("PreToolUse", command, {})])

    def _folder(self) -> Path:
        return home() / "plugins" / PLUGIN

    def _shadows(self, folder: Path) -> Finding:
        """Report a foreign tool in front of a guard, for sessions in this folder."""
        before = shadows(here(), folder)
        if not before:
            return Finding("hs guards", "ok", f"no other tool stands in front of them in {here()}")
        text = f"writes by {before[0]} are not checked: that tool stands in front of the guard of its name"
        mend = f"rename {before[0]}, or have it ask `swarm-mcp locks` first"
        return Finding("hs guards", "warn", text, mend, {"shadowed_by": before})


def plugin_files(bundled: dict[str, bytes]) -> dict[str, bytes]:
    """Return the plugin's files by their names in its own folder, from a local bundle. Empty without a bundle."""
    if RECORD not in bundled:
        return {}
    shared = ("swarm_hook_core/", "skills/", "LICENSE")
    files = {
        name.removeprefix(f"{_FOLDER}/"): bundled[name] for name in bundled if name.startswith((f"{_FOLDER}/", *shared))
    }
    if UNCHECKED in bundled:
        files[UNCHECKED.rpartition("/")[2]] = bundled[UNCHECKED]
    files[RECORD] = as_json({**json.loads(bundled[RECORD]), "files": sorted(files)})
    return files


def home() -> Path:
    """The harness's own folder of this user; it need not exist."""
    return Path(os.path.expanduser(os.environ.get("HARNESS_HOME", "").strip() or "~/.harness"))


def root_of(program: str) -> Path | None:
    """Return the folder of the harness that this command starts, or None if that is unknown."""
    given = os.environ.get("HARNESS_ROOT", "").strip()
    for root in (Path(given) if given else None, Path(os.path.realpath(program)).parent.parent):
        if root is not None and (root / "plugins" / "core" / "hooks.d").is_dir():
            return root
    return None


def user_sources(cwd: str) -> list[Path]:
    """The folders that a session in `cwd` takes plugins from besides those that are bundled, lowest priority first."""
    places: list[Path] = []
    for folder in (Path(cwd), *Path(cwd).parents):
        place = folder / ".harness"
        if place.is_dir():
            places.append(place)
    if home() not in places:
        places.append(home())
    found = []
    for place in reversed(places):
        packs = place / "plugins"
        found += sorted(path for path in packs.iterdir() if path.is_dir()) if packs.is_dir() else []
        found.append(place)
    return found


def shadows(cwd: str, plugin: Path) -> list[str]:
    """The tools that a session in `cwd` would use instead of the guards of `plugin`."""
    found = []
    for name in GUARDED:
        tools = [path for path in (source / "tools" / name for source in user_sources(cwd)) if _runs(path)]
        if tools and not _is_guard(tools[-1], plugin / "tools" / name):
            found.append(str(tools[-1]))
    return found


def _is_guard(tool: Path, ours: Path) -> bool:
    try:
        return tool.samefile(ours) or tool.read_bytes() == ours.read_bytes()
    except OSError:  # unreadable: not ours
        return False


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
