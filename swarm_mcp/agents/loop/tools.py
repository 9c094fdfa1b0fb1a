"""The tools of a run: built-in ones, those of MCP servers; the places of plugins, and running their executables."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from swarm_hook_core.kernel.planning import inside
from swarm_hook_core.mcp_writers import is_writer
from swarm_hook_core.state import make_private, state_dir
from swarm_mcp import __version__
from swarm_mcp.agents.loop import prompts
from swarm_mcp.agents.loop.session import ModelCall
from swarm_mcp.agents.loop.settings import DEPTH, ON_PATH, READ_ONLY, TOOL_SECONDS, LoopRun, number
from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import names_in
from swarm_mcp.installation import coordinator_command
from swarm_mcp.mcp.client import START_SECONDS, Client
from swarm_mcp.processes import Reaper

WRITERS = frozenset({"write_file", "str_replace", "edit_file"})
READERS = frozenset({"read_file", "list_dir", "skill", "agent"})
_PATH = {"type": "string", "description": "The file, absolute or relative to the working folder"}


def _tool(description: str, required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    wanted = {"type": "object", "properties": properties, "required": required.split()}
    return {"description": description, "input_schema": wanted}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_EDIT = {
    "type": "object",
    "properties": {"old_str": _text("Text that occurs once"), "new_str": _text("What takes its place")},
    "required": ["old_str", "new_str"],
}
_SCHEMAS = {
    "bash": _tool(
        "LoopRun a command with bash in the working folder; its output, and its exit code where that is not 0.",
        "command",
        command=_text("The command"),
        timeout={"type": "integer", "description": "Seconds after which it is ended, with all it started (120)"},
    ),
    "read_file": _tool(
        "Read a text file, with line numbers.",
        "path",
        path=_PATH,
        start_line={"type": "integer", "description": "First line, from 1"},
        end_line={"type": "integer", "description": "Last line"},
    ),
    "write_file": _tool(
        "Create or replace a file. Missing folders are made.", "path content", path=_PATH, content=_text("All of it")
    ),
    "str_replace": _tool(
        "Replace a text that occurs exactly once in a file.",
        "path old_str new_str",
        path=_PATH,
        old_str=_text("The text as the file has it, blanks and all"),
        new_str=_text("What takes its place; empty to remove it"),
    ),
    "edit_file": _tool(
        "Several replacements in one file, in order; if one does not fit, none is made.",
        "path edits",
        path=_PATH,
        edits={"type": "array", "items": _EDIT, "description": "Each as for str_replace"},
    ),
    "list_dir": _tool("List a folder; folders end with a slash.", "", path=_text("The folder (the working folder)")),
    "skill": _tool("Load a skill's instructions.", "name", name=_text("The skill's name, from the list")),
    "agent": _tool(
        "Hand a task to an agent of its own, which starts from nothing but your words; its answer.",
        "prompt",
        prompt=_text("The task: what to do, what it needs to know, what to answer"),
        model=_text("Another model"),
        provider=_text("Another provider"),
    ),
}
NAMES = tuple(_SCHEMAS)


def schema(name: str) -> dict[str, Any]:
    """Return a tool for the model: ``{"name", "description", "input_schema"}``."""
    return {"name": name, **_SCHEMAS[name]}


def run(loop: LoopRun, made: ModelCall, plan: str = "") -> tuple[str, bool]:
    """Carry out a call of a built-in tool; return ``(result, is_error)``.

    `plan`: the file with the kernel's plan for a shell command, or empty.
    """
    missing = [name for name in _SCHEMAS[made.name]["input_schema"]["required"] if name not in made.input]
    if missing:
        return f"error: {made.name} needs {', '.join(missing)}", True
    if made.name == "bash":
        return bash(loop, made.input, plan)
    if made.name == "agent":
        return agent(loop, made.input)
    if made.name == "skill":
        text = prompts.load_skill(loop, str(made.input["name"]))
        if text is not None:
            return (text, False)
        return (f"error: skill '{made.input['name']}' not found", True)

    return change_or_read(made.name, made.input, loop.cwd)


LONGEST_SECONDS = 3600.0
AGENT_SECONDS = 600.0


def bash(loop: LoopRun, given: dict[str, Any], plan: str = "") -> tuple[str, bool]:
    """LoopRun a shell command in a process group of its own. Return its output with remarks, and True if it failed.

    `plan`: the file with the kernel's plan for the command, or empty.
    """
    command, wanted = given.get("command"), given.get("timeout")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        return "error: command must be a text", True
    seconds = number("HARNESS_TOOL_TIMEOUT", TOOL_SECONDS) or LONGEST_SECONDS
    if isinstance(wanted, (int, float)) and not isinstance(wanted, bool) and wanted > 0:
        seconds = min(float(wanted), LONGEST_SECONDS)
    argv = [shutil.which("bash") or "/bin/sh", "-c", command]
    if plan:
        argv = inside(plan, argv)
    ran = run_command(
        argv, env=loop.environment("tool_exec"), cwd=loop.cwd, seconds=seconds,
        reaper=loop.reaper, together=True,
    )  # fmt: skip
    parts = [ran.out.rstrip("\n")]
    if ran.timed_out:
        parts.append(f"[ended after {seconds:g} s: that was its time limit]")
    elif ran.code:
        parts.append(f"[exit code {ran.code}]")
    return "\n".join(part for part in parts if part) or "(no output)", bool(ran.code) or ran.timed_out


# These name the parent in the swarm; the child is an instance of its own.
_PARENTS_OWN = ("SWARM_MCP_INSTANCE_ID", "SWARM_MCP_LABEL", "SWARM_TASK_ID", "SWARM_AGENT_ROLE",
                "HARNESS_SESSION", "HARNESS_SOURCES", "HARNESS_STAGE", "HARNESS_TOOL_FIFO", "HARNESS_MODEL",
                "HARNESS_PROVIDER")  # fmt: skip


def agent(loop: LoopRun, given: dict[str, Any]) -> tuple[str, bool]:
    """LoopRun an agent below this one to its end. Return its answer, and True if it failed."""
    prompt = given.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return "error: prompt must be a text", True
    if loop.settings.depth >= DEPTH:
        return f"error: agents {loop.settings.depth} deep start no further ones", True
    env = {name: value for name, value in loop.environment().items() if name not in _PARENTS_OWN}
    provider, model = given.get("provider"), given.get("model")
    env.update(
        HARNESS_SESSIONS=os.path.join(loop.session.path, ".harness", "sessions"),
        HARNESS_PARENT_SESSION=loop.session.id,
        HARNESS_DEPTH=str(loop.settings.depth + 1),
        HARNESS_PROVIDER=str(provider or loop.settings.provider),
    )
    if model or not provider:
        env["HARNESS_MODEL"] = str(model or loop.settings.model)
    # A command line may have set the mode; the private file does not contain it then.
    mode: tuple[str, ...] = ()
    if loop.settings.read_only:
        mode = ("--mode", READ_ONLY)
    ran = run_command(
        [*coordinator_command(), "loop", "agent", *mode], prompt, env=env, cwd=loop.cwd, seconds=AGENT_SECONDS,
        reaper=loop.reaper,
    )  # fmt: skip
    last = next((line for line in reversed(ran.err.split("\n")) if line.strip()), "")
    if ran.timed_out:
        return f"error: the agent took longer than {AGENT_SECONDS:.0f} s and was ended", True
    if ran.code:
        return f"error: the agent failed (exit {ran.code}): {last}", True
    return ran.out.rstrip("\n") or "(it answered nothing)", False


LONGEST = 2 * 1024 * 1024  # bytes of a file that is read
MOST_ENTRIES = 2000


class CallRefused(Exception):
    """The call cannot be carried out; the message tells the model why."""


def change_or_read(name: str, given: dict[str, Any], cwd: str) -> tuple[str, bool]:
    """Carry out one of the tools for files; return ``(result, is_error)``."""
    try:
        return _FILE_TOOLS[name](given, cwd), False
    except CallRefused as refusal:
        return f"error: {refusal}", True
    except OSError as error:
        return f"error: {error.strerror or error}: {error.filename or given.get('path')}", True


def write_file(given: dict[str, Any], cwd: str) -> str:
    """Create or replace a file."""
    path = _path(given, cwd)
    data = _bytes(given, "content")
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return f"wrote {len(data)} bytes to {path}"


def str_replace(given: dict[str, Any], cwd: str) -> str:
    """Make one replacement."""
    path = _path(given, cwd)
    _store(path, _replaced(_load(path), _bytes(given, "old_str"), _bytes(given, "new_str"), path))
    return f"replaced in {path}"


def edit_file(given: dict[str, Any], cwd: str) -> str:
    """Make several replacements, or no replacement at all."""
    path, edits = _path(given, cwd), given.get("edits")
    if not isinstance(edits, list) or not edits:
        raise CallRefused("edits must be a list of {old_str, new_str}")
    content = _load(path)
    for at, edit in enumerate(edits, 1):
        if not isinstance(edit, dict):
            raise CallRefused(f"edit {at} must be {{old_str, new_str}}")
        try:
            content = _replaced(content, _bytes(edit, "old_str"), _bytes(edit, "new_str"), path)
        except CallRefused as refusal:
            raise CallRefused(f"edit {at}: {refusal}; nothing was changed") from None
    _store(path, content)
    return f"made {len(edits)} edits in {path}"


def read_file(given: dict[str, Any], cwd: str) -> str:
    """Return a file's lines, numbered."""
    path = _path(given, cwd)
    data = _load(path)
    if b"\0" in data[:8192]:
        raise CallRefused(f"{path} is no text ({len(data)} bytes)")
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines = lines[:-1]
    first, last = _line(given, "start_line", 1), _line(given, "end_line", len(lines))
    shown = lines[max(first, 1) - 1 : last]
    if lines and not shown:
        raise CallRefused(f"{path} has {len(lines)} lines")
    return "\n".join(f"{at:>6}\t{line}" for at, line in enumerate(shown, max(first, 1)))


def list_dir(given: dict[str, Any], cwd: str) -> str:
    """Return the entries of a folder."""
    path = _path({"path": given.get("path") or "."}, cwd)
    with os.scandir(path) as entries:
        names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in entries)
    if len(names) > MOST_ENTRIES:
        more = [f"[{len(names) - MOST_ENTRIES} more]"]
    else:
        more = []
    return "\n".join(names[:MOST_ENTRIES] + more) or "(empty)"


_FILE_TOOLS = {
    "write_file": write_file,
    "str_replace": str_replace,
    "edit_file": edit_file,
    "read_file": read_file,
    "list_dir": list_dir,
}


def _path(given: dict[str, Any], cwd: str) -> str:
    path = given.get("path")
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise CallRefused("path must be the name of a file")
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))


def _bytes(given: dict[str, Any], name: str) -> bytes:
    value = given.get(name)
    if not isinstance(value, str):
        raise CallRefused(f"{name} must be a text")
    return value.encode("utf-8", "surrogatepass")


def _line(given: dict[str, Any], name: str, default: int) -> int:
    value = given.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return default


def _load(path: str) -> bytes:
    if os.path.isdir(path):
        raise CallRefused(f"{path} is a folder")
    if not os.path.isfile(path):  # a pipe of that name would keep us waiting
        raise CallRefused(f"file not found: {path}")
    if os.path.getsize(path) > LONGEST:
        raise CallRefused(f"{path} is larger than {LONGEST} bytes")
    with open(path, "rb") as file:
        return file.read()


def _store(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _replaced(content: bytes, old: bytes, new: bytes, path: str) -> bytes:
    if not old:
        raise CallRefused("old_str must not be empty")
    count = content.count(old)
    if count != 1:
        raise CallRefused(f"old_str not found in {path}" if not count else f"old_str occurs {count} times in {path}")
    return content.replace(old, new)


# MCP servers of a run, those of the swarm among them: connections to them, and their tools.
#
# A server is one that we start, or one behind HTTP (a POST for each message). They are started beside the run's first
# steps; one that does not come up is left out and said to be. A tool's name for the model is ``mcp__SERVER__TOOL``, as
# hooks know tools of servers.

OURS = "swarm"
DISPATCH = f"mcp__{OURS}__dispatch"
LONGEST_NAME = 64


class Servers:
    """The servers of one run and their tools."""

    def __init__(self) -> None:
        self._starting: list[threading.Thread] = []
        self._connections: dict[str, Client] = {}
        self._tools: dict[str, tuple[Client, dict[str, Any]]] = {}
        self._failed: dict[str, str] = {}
        self._lock = threading.Lock()
        self._closed = False

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def start(self, loop: LoopRun) -> None:
        """Start every server, without waiting for them."""
        for name, server in _wanted(loop).items():
            thread = threading.Thread(target=self._open, args=(name, server, loop), daemon=True)
            thread.start()
            self._starting.append(thread)

    def schemas(self, loop: LoopRun) -> list[dict[str, Any]]:
        """Return every tool's schema for the model. The first call waits for the servers."""
        self._wait(loop)
        return [
            {
                "name": name,
                "description": str(tool.get("description") or ""),
                "input_schema": tool.get("inputSchema") or {"type": "object", "properties": {}},
            }
            for name, (_, tool) in sorted(self._tools.items())
            if self.may_use(loop, name)
        ]

    def may_use(self, loop: LoopRun, name: str) -> bool:
        """Return True if a run in this mode may call a tool. A read-only run may not write, or start a writer."""
        return not (loop.settings.read_only and (is_writer(name) or name == DISPATCH))

    def call(self, made: ModelCall) -> tuple[str, bool]:
        """Carry out a call of one of them: ``(result, is_error)``."""
        connection, tool = self._tools[made.name]
        try:
            return connection.use(str(tool["name"]), made.input)
        except ClientFailed as error:
            return f"error: {made.name}: {error}", True

    def close(self) -> None:
        """End them all."""
        with self._lock:
            self._closed = True
            connections = list(self._connections.values())
        for connection in connections:
            connection.close()

    def _wait(self, loop: LoopRun) -> None:
        for thread in self._starting:
            thread.join(START_SECONDS)
        if self._starting:
            self._starting = []
            for name, why in sorted(self._failed.items()):
                loop.report.custom("mcp_failed", {"name": name, "error": why})

    def _open(self, name: str, server: dict[str, Any], loop: LoopRun) -> None:
        try:
            connection = Client(server, loop.cwd, "swarm-loop")
            with self._lock:
                if self._closed:
                    connection.close()
                    return
                self._connections[name] = connection
            tools = connection.open()
        except (ClientFailed, OSError, ValueError) as error:
            self._failed[name] = str(error)[:300]
            return
        for tool in tools:
            if isinstance(tool.get("name"), str):
                self._tools[_name(name, tool["name"])] = (connection, tool)


def _wanted(loop: LoopRun) -> dict[str, dict[str, Any]]:
    """name -> server (``command``, ``args``, ``env``, ``cwd`` or ``url``, ``headers``)."""
    given = loop.settings.config.get("mcp_servers")
    if isinstance(given, dict):
        found = {str(name): dict(server) for name, server in given.items() if isinstance(server, dict)}
    else:
        command, *args = [*coordinator_command(), "serve"]
        found = {OURS: {"command": command, "args": args}}
    if loop.settings.depth:
        # The servers were written for the parent; an agent below it is another session in the swarm.
        for server in found.values():
            env = server.get("env")
            server["env"] = {k: v for k, v in env.items() if k not in _NOT_FOR_SERVERS} if isinstance(env, dict) else {}
    return found


_NOT_FOR_SERVERS = ("SWARM_MCP_INSTANCE_ID", "SWARM_MCP_LABEL", "SWARM_TASK_ID", "SWARM_RUN_ID")


def _name(server: str, tool: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"mcp__{server}__{tool}")
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 9]}_{zlib.crc32(name.encode()):08x}"


# The places of plugins, their priority, and the built-in ones as executables.
#
# Lowest first: built-in packs, then for every ``.harness`` from the home folder's to the nearest: the packs in its
# ``plugins/``, then the folder itself. Of executables with one name in ``tools/``, ``commands/``, ``providers/`` or
# ``hooks.d/STAGE/`` the last counts. Looked up anew for each state, so that plugins may come and go during a run.
#
# A guard before ``tools/write_file`` hands allowed calls on to the next executable of that name in ``HARNESS_SOURCES``,
# and a provider may build on another. So the built-in ones have executables too, in the state folder, which start this
# installation. The loop itself needs no executables.


def walk(root: str, home: str, folder: str) -> list[str]:
    """Return every source for a run in `folder`, lowest priority first."""
    found = packs(root)
    above = [folder, *map(str, Path(folder).parents)]
    places = [place for place in (os.path.join(one, ".harness") for one in above) if os.path.isdir(place)]
    if home not in places and not any(_same(home, place) for place in places):
        places.append(home)
    for place in reversed(places):
        if os.path.isdir(place):
            found += [*packs(place), place]
    return list(dict.fromkeys(found))


def packs(place: str) -> list[str]:
    """Return the plugin folders in ``plugins/`` of `place`, by name."""
    if not place:
        return []
    folder = os.path.join(place, "plugins")
    return [path for path in (os.path.join(folder, name) for name in names_in(folder)) if os.path.isdir(path)]


def scoped(sources: Iterable[str], active: Iterable[str]) -> list[str]:
    """Return `sources` without packs whose provider is not among the `active` names."""
    wanted = set(active)
    return [
        source
        for source in sources
        if os.path.basename(os.path.dirname(source)) != "plugins"
        or os.path.basename(source) in wanted
        or not os.path.isdir(os.path.join(source, "providers"))
    ]


def executables(sources: Iterable[str], *kind: str) -> dict[str, str]:
    """Return name -> path of the executables in the folder `kind` of all sources (the last of a name), sorted."""
    found: dict[str, str] = {}
    for source in sources:
        folder = os.path.join(source, *kind)
        for name in names_in(folder):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                found[name] = path
    return dict(sorted(found.items()))


def _same(left: str, right: str) -> bool:
    try:
        return os.path.samefile(left, right)
    except OSError:  # one of them is gone, so they differ
        return False


BUILT_IN_PROVIDERS = ("anthropic", "openai")
KEPT_DAYS = 30
_TOOL, _PROVIDER = "plugins/core/tools/{}", "plugins/{0}/providers/{0}"


def root() -> str:
    """Return the folder with ``plugins/`` and ``bin/harness``, made where it is missing; empty where it cannot be."""
    command = shlex.join(coordinator_command())
    files = {"bin/harness": "loop --", f"{ON_PATH}/swarm-mcp": ""}
    files.update({_TOOL.format(name): f"loop tool {name} --" for name in NAMES})
    files.update({_PROVIDER.format(name): f"loop provider {name} --" for name in BUILT_IN_PROVIDERS})
    mark = zlib.crc32(repr((__version__, command, files)).encode())
    folder = os.path.join(state_dir(), "loop", f"plugins-{mark:08x}")
    if os.path.isdir(folder):
        return folder
    try:
        _write(folder, {name: f'#!/bin/sh\nexec {command} {words} "$@"\n' for name, words in files.items()})
        _forget_old(os.path.dirname(folder), folder)
    except OSError:
        if os.path.isdir(folder):
            return folder
        return ""
    return folder


def _write(folder: str, files: dict[str, str]) -> None:
    """The whole folder at once: another run may be looking."""
    made = f"{folder}.{os.getpid()}.tmp"
    make_private(made)
    try:
        for name, text in files.items():
            path = os.path.join(made, name)
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o700)
        os.rename(made, folder)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not os.path.isdir(folder):  # another process was faster
            raise


def _forget_old(base: str, mine: str) -> None:
    """Remove the files of installations that are gone."""
    oldest = time.time() - KEPT_DAYS * 86400
    for name in os.listdir(base):
        path = os.path.join(base, name)
        if name.startswith("plugins-") and path != mine and os.stat(path).st_mtime < oldest:
            shutil.rmtree(path, ignore_errors=True)


# Running executables: text in, text and exit code out.


LONGEST_OUTPUT = 4 * 1024 * 1024  # bytes of output that are read; more is no answer
SHORT = 4096  # bytes that every pipe takes at once
# A command begins once the reaper knows it: if this process were killed before, nothing would end the command.
_ON_WORD = 'read -r go || exit 125; exec "$@"'


class Finished(NamedTuple):
    """The end of a command. `code` is that of a shell: 128 plus the signal for a killed command."""

    code: int
    out: str
    err: str
    timed_out: bool = False
    seconds: float = 0.0


def run_command(
    argv: list[str],
    stdin: str = "",
    *,
    env: Mapping[str, str],
    cwd: str,
    seconds: float = 0.0,
    reaper: Reaper | None = None,
    together: bool = False,
) -> Finished:
    """LoopRun `argv` with the text `stdin` as its input. A command that cannot be started ends with 126 and a reason in
    `err`.

    `seconds` 0: no limit. With a `reaper` the command has a process group of its own, and is ended at the time limit.
    `together`: standard error goes to `out`. Output goes through files, so that a background process with an open
    output does not keep the command from ending.
    """
    begun = time.monotonic()
    data = stdin.encode("utf-8", "replace")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            child = subprocess.Popen(
                ["/bin/sh", "-c", _ON_WORD, argv[0], *argv] if reaper else argv, stdin=subprocess.PIPE, stdout=out,
                stderr=subprocess.STDOUT if together else err, env=dict(env), cwd=cwd,
                start_new_session=reaper is not None,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            why = f"{argv[0]}: {getattr(error, 'strerror', None) or error}"
            return Finished(126, why if together else "", why)
        timed_out = False
        try:
            if reaper:
                reaper.watch(child.pid)
            _give(child, (b"go\n" if reaper else b"") + data)
            child.wait(seconds or None)
        except subprocess.TimeoutExpired:
            timed_out = True
            _end_command(child, reaper)
        except BaseException:
            _end_command(child, reaper)
            raise
        if reaper:
            reaper.forget(child.pid)
        code = child.returncode
        if code < 0:
            code = 128 - code
        return Finished(code, _output_in(out), _output_in(err), timed_out, time.monotonic() - begun)


def _give(child: subprocess.Popen[bytes], data: bytes) -> None:
    """Write all of `data` to standard input. Long data is written by a thread: the child need not read it."""

    def write() -> None:
        try:
            assert child.stdin
            with child.stdin as pipe:
                pipe.write(data)
        except OSError:
            return  # it has closed its input, or ended

    if len(data) <= SHORT:
        write()
    else:
        threading.Thread(target=write, daemon=True).start()


def _end_command(child: subprocess.Popen[bytes], reaper: Reaper | None) -> None:
    if reaper:
        reaper.end(child.pid, child)
    else:
        child.kill()
        child.wait()


def _output_in(file: IO[bytes]) -> str:
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    if size <= LONGEST_OUTPUT:
        return file.read().decode("utf-8", "replace")
    head = file.read(LONGEST_OUTPUT // 2)
    file.seek(size - LONGEST_OUTPUT // 2)
    left = f"\n[{size - LONGEST_OUTPUT} bytes left out]\n".encode()
    return (head + left + file.read()).decode("utf-8", "replace")
