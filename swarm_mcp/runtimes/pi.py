"""pi, and its fork oh-my-pi: they run the bundle in place, so upgrading the folder upgrades them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import here
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes.base import Finding, InPlace, Steps, leads_to, put_links, take_link
from swarm_mcp.runtimes.bundle import PACKAGE, SKILLS, add_to_package
from swarm_mcp.runtimes.client_settings import servers_in_json
from swarm_mcp.runtimes.installed import YES, Coverage, Installed, Verified
from swarm_mcp.runtimes.json_editor import list_of
from swarm_mcp.runtimes.users_file import object_in

NAME = "swarm-mcp"  # of our package
FOLDER = "integrations/pi"


class Pi(InPlace):
    """The ``pi`` command."""

    name = title = executable = harness = "pi"
    oldest = "0.74.0"
    coverage = Coverage(
        edits=YES, patches="no: its models have no tool for them", shell=YES, other_tools=YES,
        subagents="no: it has none", told_before=YES, told_after=YES, ends=YES,
        verified=Verified("1.6.0", "2026-11-29",
            "scripted, code mode: not there before, now held"),
    )  # fmt: skip
    thing = "package"
    needed = f"{FOLDER}/index.ts"
    manifest = PACKAGE
    shell_tool = "bash"
    session_variables = ("PI_SESSION_ID",)

    def finish_bundle(self, files: dict[str, bytes], place: Path | None) -> None:
        """Make the folder a package of pi's: its manifest lies at the root, and counts paths from there."""
        tree = json.loads(files.pop(f"{FOLDER}/package.json"))
        for kind, paths in tree["pi"].items():
            tree["pi"][kind] = [f"./{os.path.normpath(os.path.join(FOLDER, path))}" for path in paths]
        add_to_package(files, tree)

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        for source, place in self._ours():
            if place != marketplace.resolve():
                self._remove(source, place, steps)
        if not self._ours():
            with steps.step(f"installing the package in {marketplace}", f"installed the package in {marketplace}"):
                self._call("install", str(marketplace))
        root = self.root()
        if root is None:
            raise ClientFailed("pi does not list the package after installing it")
        return self.installed_at(root)

    def uninstall(self, steps: Steps) -> None:
        for source, root in self._ours():
            self._remove(source, root, steps)

    def root(self) -> Path | None:
        ours = self._ours()
        if ours:
            return ours[0][1]
        return None

    def fault(self, root: Path) -> Finding | None:
        off = self._switched_off(self._ours()[0][0])
        if off:
            return self.said("fail", f"installed, but {off}", "pi config, or edit its settings.json")
        return None

    def users_servers(self) -> dict[str, Path]:
        return servers_in_json("mcpServers", Path(here(), ".pi/mcp.json"), home() / "mcp.json")

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "session_id": session_id, "cwd": cwd, "hook_event_name": "PreToolUse", "tool_name": "write",
            "tool_input": {"path": file, "content": "x"}, "tool_use_id": "call_doctor",
        }  # fmt: skip

    # ---------------------------------------------------------------- innards

    def _remove(self, source: str, root: Path, steps: Steps) -> None:
        # A path counts from pi's folder in its settings, from here on its command line.
        here = source.startswith("git:") or "://" in source
        with steps.step(f"removing the package from {source}", f"removed the package from {source}"):
            self._call("remove", source if here else str(self._folder_of(source) or root))

    def _packages(self) -> list[Any]:
        listed = object_in(home() / "settings.json").get("packages")
        return list_of(listed)

    def _ours(self) -> list[tuple[str, Path]]:
        """The packages in pi's settings that are this plugin: source as written, and its folder."""
        found = []
        for entry in self._packages():
            if isinstance(entry, dict):
                source = entry.get("source")
            else:
                source = entry
            if not isinstance(source, str):
                continue
            root = self._folder_of(source)
            if root is not None and (
                object_in(root / PACKAGE).get("name") == NAME or root == marketplace_folder().resolve()
            ):
                # A clone is a package by its folder for pi. The files for hooks are beside that.
                found.append((source, root.parents[1] if str(root).endswith(f"/{FOLDER}") else root))
        return found

    def _folder_of(self, source: str) -> Path | None:
        """Return pi's folder of a package from `source`, or None for packages of npm: this plugin is none."""
        if source.startswith("npm:"):
            return None
        place = source.removeprefix("git:")
        if "://" in place:
            host, path = urlsplit(place).hostname or "", urlsplit(place).path
        elif source != place:
            host, _, path = place.rpartition("git@")[2].replace(":", "/", 1).partition("/")
        else:
            return Path(os.path.realpath(home() / os.path.expanduser(source)))
        return home() / "git" / host / path.strip("/").partition("@")[0].removesuffix(".git")

    def _switched_off(self, source: str) -> str:
        """Return the way in which the settings switch our extension off, or an empty text."""
        for entry in self._packages():
            if isinstance(entry, dict) and entry.get("source") == source:
                wanted = entry.get("extensions")
                words = None
                if isinstance(wanted, list):
                    words = [word for word in wanted if isinstance(word, str)]
                if words == [] or any(word[:1] in ("-", "!") and word.endswith("index.ts") for word in words or ()):
                    return f"its extension is switched off in {home() / 'settings.json'}"
        return ""


def home() -> Path:
    """Return pi's configuration folder. It need not exist."""
    chosen = os.environ.get("PI_CODING_AGENT_DIR", "").strip()
    return Path(os.path.expanduser(chosen or "~/.pi/agent"))


# oh-my-pi, a fork of pi: links from its folders to files of the bundle, run in place.

EXTENSION = "integrations/omp/index.ts"


class Omp(InPlace):
    """The ``omp`` command."""

    name = executable = harness = "omp"
    title = "oh-my-pi"
    oldest = "17.2.15"
    coverage = Coverage(
        edits="partly: not where `ast_edit` is given a pattern of files", patches=YES, shell=YES, other_tools=YES,
        subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("18.2.3", "2026-11-29"),
    )  # fmt: skip
    thing = "extension"
    needed = EXTENSION
    shell_tool = "bash"
    has_subagents = True
    session_variables = ("OMPCODE", "CLAUDECODE", "AGENT")

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        put_links(_links(), marketplace.resolve(), steps)
        return self.installed_at(marketplace.resolve())

    def uninstall(self, steps: Steps) -> None:
        for link, name in _links().items():
            if leads_to(link, name):
                take_link(link, steps)

    def traces(self) -> bool:
        return any(leads_to(link, name) for link, name in _links().items())

    def root(self) -> Path | None:
        link, name = next(iter(_links().items()))
        return leads_to(link, name)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "session_id": session_id, "cwd": cwd, "hook_event_name": "PreToolUse", "tool_name": "write",
            "tool_input": {"path": file, "content": "x"}, "tool_use_id": "call_doctor",
        }  # fmt: skip


def omp_home() -> Path:
    """Return the client's configuration folder. It need not exist."""
    chosen = os.environ.get("PI_CODING_AGENT_DIR", "").strip()
    return Path(os.path.expanduser(chosen or "~/.omp/agent"))


def _links() -> dict[Path, str]:
    """Each of our links -> the bundle's file or folder that it leads to. The first has the hooks."""
    skills = {omp_home() / "skills" / name: f"skills/{name}" for name in SKILLS}
    return {omp_home() / "extensions" / "swarm-mcp.ts": EXTENSION, **skills}
