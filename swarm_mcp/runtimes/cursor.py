"""Cursor: entries in its own files name the files of the bundle, which run in place. Skills are copied.

Built from its documentation, because it could not be run here. Cursor drops a whole ``hooks.json`` over one entry of
another form, so an entry has only documented keys. Cursor does not follow links to skills.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.folders import here
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes.base import PLUGIN, Finding, Steps, as_failure, as_json
from swarm_mcp.runtimes.bundle import LAUNCHER, SKILLS
from swarm_mcp.runtimes.edited_json import EditedJson, Entry
from swarm_mcp.runtimes.in_users_file import InUsersFile, is_our_server
from swarm_mcp.runtimes.installed import YES, Coverage, Installed
from swarm_mcp.runtimes.owned_folder import RECORD, differing, put, read_record, remove
from swarm_mcp.runtimes.server_name import NAME, in_bundle, servers_in_json

FOLDER = "integrations/cursor"


class Cursor(InUsersFile):
    """The ``cursor-agent`` command, and the editor: both read the same files."""

    name = "cursor"
    title = "Cursor"
    executable = harness = "cursor-agent"
    coverage = Coverage(
        edits="partly: not completions by its Tab key", patches=YES, shell=YES,
        other_tools="partly: known by the tool's name alone",
        subagents="partly: each counts as a session of its own",
        told_before="partly: each prompt only where it is typed, not in `cursor-agent -p`", told_after=YES, ends=YES,
        verified=None,
    )  # fmt: skip
    needed = f"{FOLDER}/runtime.py"
    frame = {"version": 1}
    shell_tool = "Shell"
    # The first are those of its hooks; launch.py tells guests by them, so a worker must not have them.
    session_variables = (
        "CURSOR_VERSION", "CURSOR_PROJECT_DIR", "CURSOR_TRANSCRIPT_PATH", "CURSOR_CODE_REMOTE", "CURSOR_AGENT",
        "CURSOR_CONVERSATION_ID", "CURSOR_EXTENSION_HOST_ROLE",
    )  # fmt: skip

    def program(self) -> str:
        """Return the command for a terminal, or that of the editor, or its folder: an editor may have none on PATH."""
        has_run = (home() / "argv.json").is_file() or (home() / "extensions").is_dir()
        return shutil.which(self.executable) or shutil.which("cursor") or (str(home()) if has_run else "")

    def file(self) -> Path:
        return home() / "hooks.json"

    def hook(self, command: str, matcher: str, seconds: float) -> dict[str, Any]:
        return {"command": command, "timeout": seconds, **({"matcher": matcher} if matcher else {})}

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        steps.begin(f"adding the hooks to {self.file()}")
        with as_failure():
            if self.edited(marketplace).put():
                steps.add(f"added the hooks to {self.file()}")
        # The hooks hold without the server and the skills.
        try:
            if _server(marketplace).put():
                steps.add(f"added the MCP server to {servers_file()}")
        except SwarmError as error:
            steps.add(f"the MCP server could not be added: {error}")
        try:
            changed = [put(skills_folder() / name, _skill(marketplace, name)) for name in SKILLS]
            if any(changed):
                steps.add(f"copied the skills into {skills_folder()}")
        except (SwarmError, OSError) as error:
            steps.add(f"the skills could not be copied: {error}")
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        root = self.root() or marketplace_folder()
        trouble = []
        try:
            removed = [remove(skills_folder() / name) for name in SKILLS]
            if any(removed):
                with suppress(OSError):  # it holds others
                    skills_folder().rmdir()
                steps.add(f"removed the skills from {skills_folder()}")
        except OSError as error:
            trouble.append(f"the skills in {skills_folder()} could not be removed: {error.strerror}")
        # The hooks come last: they came first, and remember a folder that was made for all.
        for what, edited in (("MCP server", _server(root)), ("hooks", self.edited(root))):
            try:
                if edited.take_out():
                    steps.add(f"took the {what} out of {edited.path}")
            except SwarmError as error:
                trouble.append(str(error))
        if trouble:
            raise ClientFailed("; ".join(trouble))

    def traces(self) -> bool:
        root = self.root() or marketplace_folder()
        ours = self.edited(root).is_there() or _server(root).is_there()
        return ours or any(read_record(skills_folder() / name) for name in SKILLS)

    def beside(self, root: Path | None) -> list[Finding]:
        found = []
        if root and not _server(root).is_current():
            text = f"{servers_file()} does not name it as it is installed"
            found.append(Finding("cursor MCP server", "warn", text, self.mend))
        if root and any(differing(skills_folder() / name, _skill(root, name)) for name in SKILLS):
            text = f"{skills_folder()} has them in another version, or not"
            found.append(Finding("cursor skills", "warn", text, self.mend))
        return found

    def users_servers(self) -> dict[str, Path]:
        files = (Path(here(), ".cursor/mcp.json"), servers_file())
        return servers_in_json("mcpServers", *files, is_ours=is_our_server)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "conversation_id": session_id, "generation_id": "doctor", "model": "default", "tool_name": "Write",
            "tool_input": {"file_path": file, "content": "x"}, "tool_use_id": "tool_doctor", "session_id": session_id,
            "hook_event_name": "preToolUse", "cursor_version": "3.0.0", "workspace_roots": [cwd], "user_email": None,
            "transcript_path": None,
        }  # fmt: skip


def home() -> Path:
    """Return the client's folder. It need not exist."""
    return Path.home() / ".cursor"


def servers_file() -> Path:
    """Return the file of the user's MCP servers; it need not exist."""
    return home() / "mcp.json"


def skills_folder() -> Path:
    """Return the folder of the user's skills; it need not exist."""
    return home() / "skills"


def _server(root: Path) -> EditedJson:
    """The file of MCP servers, with that of the bundle in `root`."""
    server = {"command": "/bin/sh", "args": [str(root / LAUNCHER), "serve"]}
    name = in_bundle(root).get("cursor", NAME)
    return EditedJson(servers_file(), [Entry(("mcpServers", name), server)], is_ours=is_our_server)


def _skill(root: Path, name: str) -> dict[str, bytes]:
    """Return the files of a skill in a folder of its own, with a record that marks them as ours."""
    source = root / "skills" / name
    files = {path.relative_to(source).as_posix(): path.read_bytes() for path in sorted(source.rglob("*.md"))}
    place = f"PLUGIN being\n{root}".encode()
    before = b"PLUGIN being the folder two above\nthis file's"
    files = {path: text.replace(before, place) for path, text in files.items()}
    record = {"name": PLUGIN, "version": read_record(root).get("version"), "files": sorted([*files, RECORD])}
    return {**files, RECORD: as_json(record)}
