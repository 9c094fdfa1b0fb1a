"""Clients with hooks in a JSON file of the user, whose commands hold the path of the local bundle."""

from __future__ import annotations

import os
import re
import shutil
from abc import abstractmethod
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.folders import here
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes import hook_config
from swarm_mcp.runtimes.base import PLUGIN, Finding, InPlace, Steps, as_failure, as_json, leads_to, put_links, take_link
from swarm_mcp.runtimes.bundle import LAUNCHER, SKILLS
from swarm_mcp.runtimes.client_settings import NAME, in_bundle, servers_in_json
from swarm_mcp.runtimes.installed import YES, Coverage, HookCommand, Installed, Verified, hooks_in, in_quotes
from swarm_mcp.runtimes.json_editor import object_of
from swarm_mcp.runtimes.users_file import (
    RECORD,
    EditedJson,
    Entry,
    differing,
    object_in,
    put_folder,
    read_record,
    remove_folder,
    tree_in,
)


class InUsersFile(InPlace):
    """One such client. Its dialect has all of its events.

    `place`: the keys in the file under which each event has the list of its hooks. `frame` as for EditedJson.
    """

    thing = "hooks"
    place: tuple[str, ...] = ("hooks",)
    frame: dict[str, object] = {}

    @abstractmethod
    def file(self) -> Path:
        """Return the user's file. It need not exist."""

    @abstractmethod
    def hook(self, command: str, matcher: str, seconds: float) -> dict[str, Any]:
        """One hook as the client's file has it: its `command`, the tools it is for (empty for all), its time limit."""

    def entries(self, root: Path) -> list[Entry]:
        """Return the entries of the file for the bundle in `root`."""
        tree, names = object_in(root / self.folder / "hooks.json"), {ours: name for name, ours in self._events.items()}
        found = []
        for event, group, hook in hooks_in(tree) if tree else ():
            command = hook["command"].replace("${SWARM_PLUGIN_ROOT}", in_quotes(root))
            value = self.hook(command, group.get("matcher", ""), hook["timeout"])
            found.append(Entry((*self.place, names[event]), value, is_element=True))
        return found

    def is_ours(self, value: object) -> bool:
        """Return True if this is a hook of ours, also of an earlier release."""
        return bool(self._command_in(value))

    def edited(self, root: Path) -> EditedJson:
        """The user's file with the entries of the bundle in `root`."""
        return EditedJson(self.file(), self.entries(root), self.frame, self.is_ours)

    def root(self) -> Path | None:
        found = [self._ours.search(hook.command) for hook in self._wired()]
        return next((Path(re.sub(r"\\(.)", r"\1", match["root"])) for match in found if match), None)

    def fault(self, root: Path) -> Finding | None:
        if self.edited(root).is_current():
            return None
        return self.said("warn", f"{self.file()} does not have them as they are installed", self.mend)

    def installed_at(self, root: Path, told: list[HookCommand] | None = None) -> Installed:
        """The plugin in the folder `root`, with the hooks as the client will run them."""
        return super().installed_at(root, self._wired() if told is None else told)

    # ---------------------------------------------------------------- innards

    @cached_property
    def _ours(self) -> re.Pattern[str]:
        return re.compile(rf'/bin/sh "(?P<root>(?:[^"\\]|\\.)*)/integrations/hook\.sh" {self.name} \w+')

    @property
    def _events(self) -> dict[str, str]:
        """The client's name of each event -> ours."""
        return hook_config(self.name).dialect.events

    def _command_in(self, hook: object) -> str:
        """Return our command in an entry of the file, or an empty text."""
        values = object_of(hook).values()
        return next((value for value in values if isinstance(value, str) and self._ours.search(value)), "")

    def _wired(self) -> list[HookCommand]:
        """Return our hooks in the file. Empty if it cannot be read."""
        try:
            found: object = tree_in(self.file())
        except SwarmError:  # unreadable
            return []
        for key in self.place:
            found = object_of(found).get(key)
        lists = object_of(found).items()
        commands = [
            (event, self._command_in(hook)) for event, hooks in lists if isinstance(hooks, list) for hook in hooks
        ]
        return [HookCommand(self._events[event], one, {}) for event, one in commands if one and event in self._events]


class WithSkills(InUsersFile):
    """One with its hooks in ``settings.json`` of its folder, in Claude Code's form, and links to the skills beside it.

    Its time limits are in milliseconds.
    """

    @abstractmethod
    def home(self) -> Path:
        """Return the client's folder. It need not exist."""

    def file(self) -> Path:
        return self.home() / "settings.json"

    def hook(self, command: str, matcher: str, seconds: float) -> dict[str, Any]:
        hook = {"type": "command", "command": command, "timeout": int(seconds * 1000)}
        return {**({"matcher": matcher} if matcher else {}), "hooks": [hook]}

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        steps.begin(f"adding the hooks to {self.file()}")
        with as_failure():
            if self.edited(marketplace).put():
                steps.add(f"added the hooks to {self.file()}")
        put_links(self._links(), marketplace.resolve(), steps)
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        for link, name in self._links().items():
            if leads_to(link, name):
                take_link(link, steps)
        root = self.root()
        with as_failure():
            if root and self.edited(root).take_out():
                steps.add(f"took the hooks out of {self.file()}")

    def traces(self) -> bool:
        return self.root() is not None or any(leads_to(link, name) for link, name in self._links().items())

    def _command_in(self, hook: object) -> str:
        hooks = object_of(hook).get("hooks")
        found = [super(WithSkills, self)._command_in(one) for one in hooks] if isinstance(hooks, list) else []
        return next(filter(None, found), "")

    def _links(self) -> dict[Path, str]:
        """Each link to a skill -> the bundle's folder that it leads to."""
        return {self.home() / "skills" / name: f"skills/{name}" for name in SKILLS}


# Auggie: hooks and our server in its settings, by files of the bundle, run in place, and links to the skills.

# Its servers get hardly a variable, but it fills in those that are named. An empty one counts as missing.
_PASSED_ON = (
    "SWARM_DB_PATH", "SWARM_STATE_DIR", "SWARM_CONFIG_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME",
)  # fmt: skip


class Auggie(WithSkills):
    """The ``auggie`` command."""

    name = executable = harness = "auggie"
    title = "Auggie"
    oldest = "0.16.1"
    coverage = Coverage(
        edits="partly: where its server sends `enable_hooks`", patches=YES,
        shell="partly: not where it starts below the repository's root", other_tools=YES,
        subagents="partly: each counts as a session of its own", told_before="partly: with results alone",
        told_after=YES, ends=YES, verified=Verified("0.36.0", "2026-11-29"),
    )  # fmt: skip
    needed = "integrations/auggie/runtime.py"
    shell_tool = "launch-process"
    session_variables = (
        "AUGMENT_CONVERSATION_ID", "AUGMENT_PROJECT_DIR", "AUGMENT_HOOK_EVENT", "AUGMENT_TOOL_NAME", "AUGMENT_AGENT",
    )  # fmt: skip

    def home(self) -> Path:
        return Path.home() / ".augment"

    def entries(self, root: Path) -> list[Entry]:
        env = {name: f"${{{name}:-}}" for name in _PASSED_ON}
        server = {"command": "/bin/sh", "args": [str(root / LAUNCHER), "serve"], "env": env}
        return [*super().entries(root), Entry(("mcpServers", in_bundle(root).get(self.name, NAME)), server)]

    def is_ours(self, value: object) -> bool:
        return super().is_ours(value) or is_our_server(value)

    def beside(self, root: Path | None) -> list[Finding]:
        text = "Augment's server decides if they run (enable_hooks); swarm-mcp status lists a session that is checked"
        return [Finding(f"{self.name} switch", "info", text)] if root else []

    def users_servers(self) -> dict[str, Path]:
        return servers_in_json("mcpServers", self.file(), is_ours=is_our_server)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "hook_event_name": "PreToolUse", "conversation_id": session_id, "workspace_roots": [cwd],
            "tool_name": "save-file", "tool_input": {"path": file, "file_content": "x"}, "tool_output": "[undefined]",
            "tool_error": None, "is_mcp_tool": False,
        }  # fmt: skip


def is_our_server(value: object) -> bool:
    """Return True if a server of a user's file is ours, started by the bundle."""
    args = object_of(value).get("args")
    return isinstance(args, list) and args[1:] == ["serve"] and str(args[0]).endswith(f"/{LAUNCHER}")


# Letta Code: hooks in its settings, by files of the bundle, run in place, and links to the skills.
#
# It takes the exit status 2 for a denial, and gives its model the error output then.

# Around the check: any other status than 2 lets the call pass, and no process that hangs may hold its error output.
_SAID_TWICE = (
    """said=$({{ {0}; }} 2>/dev/null); case $said in '{{"denied"'*) echo "$said"; echo "$said" >&2; exit 2;; esac; """
    "exit 0"
)


class Letta(WithSkills):
    """The ``letta`` command."""

    name = executable = harness = "letta"
    title = "Letta Code"
    coverage = Coverage(
        edits=YES, patches="partly: not tried", shell=YES, other_tools="no: it has none", subagents=YES,
        told_before="partly: with results alone", told_after=YES, ends="partly: not with -p",
        verified=Verified("0.32.18", "2026-11-28"),
    )  # fmt: skip
    needed = "integrations/letta/runtime.py"
    session_variables = (
        "LETTA_AGENT_ID", "AGENT_ID", "LETTA_CONVERSATION_ID", "LETTA_PARENT_AGENT_ID", "LETTA_PARENT_CONVERSATION_ID",
        "LETTA_CODE_AGENT_ROLE", "LETTA_HOOK_EVENT", "LETTA_WORKING_DIR", "LETTA_MEMORY_DIR", "AGENT_NAME",
    )  # fmt: skip

    def home(self) -> Path:
        return Path(os.path.expanduser("~/.letta"))

    def hook(self, command: str, matcher: str, seconds: float) -> dict[str, Any]:
        if " letta pre_tool_use" in command:
            command = _SAID_TWICE.format(command)
        group = super().hook(command, matcher, seconds)
        group["hooks"][0]["quiet"] = True
        return group

    def fault(self, root: Path) -> Finding | None:
        if object_of(object_in(self.file()).get("hooks")).get("disabled") is True:
            return self.said("fail", f"all hooks are switched off ({self.file()})", "/hooks in a session")
        return super().fault(root)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "event_type": "PreToolUse", "working_directory": cwd, "tool_name": "Write",
            "tool_input": {"file_path": file, "content": "x"}, "tool_call_id": "call_doctor", "agent_id": session_id,
        }  # fmt: skip


FOLDER = "integrations/cursor"


class Cursor(InUsersFile):
    """The ``cursor-agent`` command, and the editor: both read the same files.

    Built from its documentation, because it could not be run here. Cursor drops a whole ``hooks.json`` over one entry
    of another form, so an entry has only documented keys. Cursor does not follow links to skills: they are copied.
    """

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
        has_run = (cursor_home() / "argv.json").is_file() or (cursor_home() / "extensions").is_dir()
        return shutil.which(self.executable) or shutil.which("cursor") or (str(cursor_home()) if has_run else "")

    def file(self) -> Path:
        return cursor_home() / "hooks.json"

    def hook(self, command: str, matcher: str, seconds: float) -> dict[str, Any]:
        return {"command": command, "timeout": seconds, **({"matcher": matcher} if matcher else {})}

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        steps.begin(f"adding the hooks to {self.file()}")
        with as_failure():
            if self.edited(marketplace).put():
                steps.add(f"added the hooks to {self.file()}")
        # The hooks hold without the server and the skills.
        try:
            if _cursor_server(marketplace).put():
                steps.add(f"added the MCP server to {cursor_servers()}")
        except SwarmError as error:
            steps.add(f"the MCP server could not be added: {error}")
        try:
            changed = [put_folder(cursor_skills() / name, _cursor_skill(marketplace, name)) for name in SKILLS]
            if any(changed):
                steps.add(f"copied the skills into {cursor_skills()}")
        except (SwarmError, OSError) as error:
            steps.add(f"the skills could not be copied: {error}")
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        root = self.root() or marketplace_folder()
        trouble = []
        try:
            removed = [remove_folder(cursor_skills() / name) for name in SKILLS]
            if any(removed):
                with suppress(OSError):  # it holds others
                    cursor_skills().rmdir()
                steps.add(f"removed the skills from {cursor_skills()}")
        except OSError as error:
            trouble.append(f"the skills in {cursor_skills()} could not be removed: {error.strerror}")
        # The hooks come last: they came first, and remember a folder that was made for all.
        for what, edited in (("MCP server", _cursor_server(root)), ("hooks", self.edited(root))):
            try:
                if edited.take_out():
                    steps.add(f"took the {what} out of {edited.path}")
            except SwarmError as error:
                trouble.append(str(error))
        if trouble:
            raise ClientFailed("; ".join(trouble))

    def traces(self) -> bool:
        root = self.root() or marketplace_folder()
        ours = self.edited(root).is_there() or _cursor_server(root).is_there()
        return ours or any(read_record(cursor_skills() / name) for name in SKILLS)

    def beside(self, root: Path | None) -> list[Finding]:
        found = []
        if root and not _cursor_server(root).is_current():
            text = f"{cursor_servers()} does not name it as it is installed"
            found.append(Finding("cursor MCP server", "warn", text, self.mend))
        if root and any(differing(cursor_skills() / name, _cursor_skill(root, name)) for name in SKILLS):
            text = f"{cursor_skills()} has them in another version, or not"
            found.append(Finding("cursor skills", "warn", text, self.mend))
        return found

    def users_servers(self) -> dict[str, Path]:
        files = (Path(here(), ".cursor/mcp.json"), cursor_servers())
        return servers_in_json("mcpServers", *files, is_ours=is_our_server)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "conversation_id": session_id, "generation_id": "doctor", "model": "default", "tool_name": "Write",
            "tool_input": {"file_path": file, "content": "x"}, "tool_use_id": "tool_doctor", "session_id": session_id,
            "hook_event_name": "preToolUse", "cursor_version": "3.0.0", "workspace_roots": [cwd], "user_email": None,
            "transcript_path": None,
        }  # fmt: skip


def cursor_home() -> Path:
    """Return the client's folder. It need not exist."""
    return Path.home() / ".cursor"


def cursor_servers() -> Path:
    """Return the file of the user's MCP servers; it need not exist."""
    return cursor_home() / "mcp.json"


def cursor_skills() -> Path:
    """Return the folder of the user's skills; it need not exist."""
    return cursor_home() / "skills"


def _cursor_server(root: Path) -> EditedJson:
    """The file of MCP servers, with that of the bundle in `root`."""
    server = {"command": "/bin/sh", "args": [str(root / LAUNCHER), "serve"]}
    name = in_bundle(root).get("cursor", NAME)
    return EditedJson(cursor_servers(), [Entry(("mcpServers", name), server)], is_ours=is_our_server)


def _cursor_skill(root: Path, name: str) -> dict[str, bytes]:
    """Return the files of a skill in a folder of its own, with a record that marks them as ours."""
    source = root / "skills" / name
    files = {path.relative_to(source).as_posix(): path.read_bytes() for path in sorted(source.rglob("*.md"))}
    place = f"PLUGIN being\n{root}".encode()
    before = b"PLUGIN being the folder two above\nthis file's"
    files = {path: text.replace(before, place) for path, text in files.items()}
    record = {"name": PLUGIN, "version": read_record(root).get("version"), "files": sorted([*files, RECORD])}
    return {**files, RECORD: as_json(record)}
