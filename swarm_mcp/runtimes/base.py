"""The interface of all runtimes, and of those that run the bundle in place; and calls of the clients' own commands."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar

from swarm_hook_core.config import Dialect
from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.folders import config_of
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes import users_file
from swarm_mcp.runtimes.installed import Coverage, HookCommand, Installed, newer
from swarm_mcp.runtimes.json_editor import JsonText, object_of
from swarm_mcp.runtimes.users_file import EditedJson, object_in, read_record, remove_empty

VERB = "statusline"
_SIGN = f' {VERB}"'  # the end of our command in TOML


class StatusLine(NamedTuple):
    """A client's setting: an object at `place` in the user's file at `path`, JSON or (by its name) TOML.

    `says_type`: the object also has the type of the line. `has_comments`: the client reads comments in its JSON.
    """

    path: Path
    place: tuple[str, ...]
    says_type: bool = True
    has_comments: bool = False

    def set(self, wanted: bool) -> str:
        """Put our command there, or take it out. Return a sentence about it, empty if there was nothing to take.

        Another command there is left alone. Raises SwarmError, OSError.
        """
        if self.path.suffix == ".toml":
            is_taken, is_new = self._in_toml(wanted)
        else:
            is_taken, is_new = self._in_json(wanted)
        if wanted and is_taken:
            return f"{self.path} has another status line, and it stays; it can call `swarm-mcp {VERB}` itself"
        if wanted:
            return f"status line: `swarm-mcp {VERB}`, in {self.path}"
        if is_new:
            return f"took the status line out of {self.path}"
        return ""

    def _value(self) -> dict[str, str]:
        command = shlex.join([*coordinator_command(), VERB])
        if self.says_type:
            return {"type": "command", "command": command}
        return {"command": command}

    def _in_json(self, wanted: bool) -> tuple[bool, bool]:
        """Return True if another command is there, and True if the file was changed."""
        try:
            text = self.path.read_text("utf-8")
        except FileNotFoundError:
            text = "{}\n"
        try:
            settings = JsonText(text, strict=not self.has_comments)
            present = settings.tree
            for name in self.place:
                present = object_of(present).get(name)
            command = str(object_of(present).get("command", ""))
            is_ours = command.endswith(f" {VERB}")
            if command and not is_ours:
                return True, False
            if not wanted and not is_ours:
                return False, False
            if wanted:
                written = settings.text_with(self.place, self._value())
            else:
                written = settings.text_without(self.place)
        except ValueError as error:
            raise SwarmError(f"{self.path} {error}: it was left as it is") from None
        users_file.write_whole(self.path, written.encode())
        return False, True

    def _in_toml(self, wanted: bool) -> tuple[bool, bool]:
        table = ".".join(self.place)
        if not wanted:
            return False, users_file.take_out(self.path, table, _SIGN)
        body = "".join(f"{name} = {json.dumps(text)}\n" for name, text in self._value().items())
        if users_file.is_taken(users_file.read_text(self.path) or "", table, _SIGN):
            return True, False
        return False, users_file.put(self.path, table, body, _SIGN)


# The steps of the work for one agent client, reported as they happen.


class Begun(str):
    """A step that is beginning. Any other text reports a finished one."""

    __slots__ = ()


class Steps:
    """The work for one client: reported when a step begins, and again when it is done. `done` keeps the latter."""

    def __init__(self, tell: Callable[[str], None] = lambda words: None):
        self.done: list[str] = []
        self._tell = tell

    def begin(self, doing: str) -> None:
        """Report that a step begins."""
        self._tell(Begun(doing))

    @contextmanager
    def step(self, doing: str, done: str) -> Iterator[None]:
        """Report that a step begins, and after the block that it is `done`."""
        self.begin(doing)
        yield
        self.add(done)

    def add(self, done: str) -> None:
        """Say that something has been done."""
        self.done.append(done)
        self._tell(done)


PLUGIN = "swarm"
MARKETPLACE = "swarm"
PLUGIN_ID = f"{PLUGIN}@{MARKETPLACE}"
UNCHECKED = "integrations/unchecked.sh"  # of a bundle: the answers if no hook can run
COMMAND_SECONDS = 90
_SAYS_WRONG = re.compile(r"(?:\w*Error|\w*Exception|error|fatal|failed)\b[^:]{0,40}: ?\S", re.IGNORECASE)
_STACK = re.compile(r"at \S|\^+$|Node\.js v|File \"|\S+:\d+$|[{}\]]+$|\w+: \S+,$")  # of Node.js and Python
_RELEASE = re.compile(r"(?<![\d.])\d+\.\d+[\w.+-]*")  # also after a v
VERSION_SECONDS = 10.0
TERMINATE_SECONDS = 2.0  # for a command that takes too long to end its children, before it is killed


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `status` is ok, info, warn or fail; `mend` the command that helps."""

    name: str
    status: str
    message: str
    mend: str = ""
    details: dict[str, Any] = field(default_factory=dict)


class Look(NamedTuple):
    """The result of looking at a client: the `findings`, and its plugin, or None if it is not `installed`."""

    findings: list[Finding]
    installed: Installed | None


@dataclass(frozen=True)
class Terminal:
    """The process in front of one session, and the pane that it was started in (empty if unknown)."""

    pid: int
    started: str
    pane: dict[str, str]


class Runtime(ABC):
    """One agent client, as it is on this machine.

    `name` is its folder under ``integrations/`` and the word in labels. `title` is for people. `executable` is its
    command. `harness` starts sessions of it. `shell_tool` is its tool for commands. `coverage` says how much of it
    swarm can see and say.
    """

    name: str
    title: str
    executable: str
    harness: str
    coverage: Coverage
    shell_tool = "Bash"
    oldest = ""  # the oldest release that the plugin is known to work in, or empty
    manifests: tuple[str, ...] = ()  # folders of the bundle's root that are the client's own
    has_subagents = False  # True if it tells hooks of the agents that a session starts
    call_mark = ""  # a key of a tool call's metadata that is there if the client names the calling session
    # Variables that name the session of a process, as seen in the client's hooks and shells. A star stands for any end.
    # A worker is started without them, or it would take that session for its own.
    session_variables: tuple[str, ...] = ()
    kept_variables: tuple[str, ...] = ()  # credentials and settings that the stars above would take along

    @property
    def folder(self) -> str:
        """The runtime's folder in a bundle and in the source."""
        return f"integrations/{self.name}"

    def program(self) -> str:
        """The client's command on PATH; empty where it is not installed."""
        return shutil.which(self.executable) or ""

    @abstractmethod
    def traces(self) -> bool:
        """Return True if the client's own files show the plugin. The client is not run."""

    def version(self) -> str:
        """The release of the plugin that this client has, told without running it; empty where that cannot be told."""
        return ""

    @abstractmethod
    def install(self, marketplace: Path, steps: Steps) -> Installed:
        """Put the plugin from `marketplace` in, or bring it up to date. Raises ClientFailed."""

    @abstractmethod
    def uninstall(self, steps: Steps) -> None:
        """Take the plugin out, with all it left behind. Raises ClientFailed."""

    @abstractmethod
    def look(self, marketplace: Path, steps: Steps) -> Look:
        """Look for the plugin: is it there, enabled, current, and will its hooks run? Raises ClientFailed."""

    def finish_bundle(self, files: dict[str, bytes], place: Path | None) -> None:  # noqa: B027
        """Change the files of this client in a bundle (name -> content). Most clients need no change.

        `place` is the folder for a local bundle, or None for a portable one.
        """

    def release(self) -> str:
        """Return the release of the client itself, as its command says it; empty where it does not."""
        try:
            done = subprocess.run(
                [self.program(), "--version"], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                errors="replace", timeout=VERSION_SECONDS,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):  # it does not say
            return ""
        found = _RELEASE.search(done.stdout) or _RELEASE.search(done.stderr)
        if found:
            return found[0].rstrip(".")
        return ""

    def too_old(self, release: str) -> str:
        """Return what to do about a `release` of the client before the `oldest`; an empty text for any other."""
        if release and self.oldest and newer(self.oldest, release):
            return f"update {self.title}: {self.oldest} is the oldest release that the plugin is known to work in"
        return ""

    def hooks_off(self) -> str:
        """Return the reason why no hook of ours runs in this folder, by the client's settings; else an empty text."""
        return ""

    def status_line(self) -> StatusLine | None:
        """Return the setting for a command in the client's status line; None for a client without one."""
        return None

    def users_servers(self) -> dict[str, Path]:
        """Return the MCP servers of the user's own that would take a name from ours, each with the file that has it.

        Empty for a client that keeps a plugin's servers apart, or gives ours a free name by itself.
        """
        return {}

    def terminal_of(self, session_id: str) -> Terminal | None:
        """Return the terminal that shows a session of the client's background server, or None if that is unknown."""
        return None

    @abstractmethod
    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        """Return the payload of the client's PreToolUse hook for a write to `file`."""

    def shell_payload(self, session_id: str, cwd: str, command: str) -> dict[str, Any]:
        """The same for a shell command."""
        dialect = config_of(self.name).dialect
        given = {dialect.command: command}
        call = {"tool_name": self.shell_tool, "tool_input": json.dumps(given) if dialect.input_is_text else given}
        return with_fields(self.write_payload(session_id, cwd, cwd), dialect, call)

    # ---------------------------------------------------------------- innards

    def installed_at(self, root: Path, told: list[HookCommand] | None = None) -> Installed:
        """Return the plugin that is installed in the folder `root`; `told` as in Installed."""
        return Installed(root, self.folder, told)

    def _point_to(self, marketplace: Path, source: str, steps: Steps) -> None:
        """Make `marketplace` the client's source of the plugin, in place of `source`."""
        if source == str(marketplace):
            return
        if source:
            with steps.step(
                f"removing the marketplace of the same name at {source}",
                f"removed the marketplace of the same name at {source}",
            ):
                self._call("plugin", "marketplace", "remove", MARKETPLACE)
        with steps.step(f"adding the marketplace {marketplace}", f"added the marketplace {marketplace}"):
            self._call("plugin", "marketplace", "add", str(marketplace))

    def _call(self, *words: str, accept: tuple[int, ...] = (0,)) -> tuple[int, dict[str, Any] | list[Any] | None, str]:
        """Run the client's command; exit code, parsed standard output, and its complaint if any."""
        named = f"`{' '.join([self.executable, *words])}`"
        try:
            code, output, complaints = _ran([self.program() or self.executable, *words])
        except subprocess.TimeoutExpired as error:
            raise ClientFailed(
                f"{named} did not end within {COMMAND_SECONDS:g} s and was given up; start it by hand to see what it"
                " waits for"
            ) from error
        except OSError as error:
            raise ClientFailed(f"{named} could not be run: {error}") from error
        try:
            parsed = json.loads(output)
        except (ValueError, RecursionError):
            parsed = None
        text = _complaint(complaints.strip() or output) or f"exit code {code}"
        if code not in accept:
            if isinstance(parsed, dict) and parsed.get("message"):
                text = str(parsed["message"])
            raise ClientFailed(f"{named} failed: {text}")
        return code, parsed, text


def _ran(argv: list[str]) -> tuple[int, str, str]:
    """Run a command to its end. Return its exit code, standard output and standard error.

    A command that takes too long is asked to end first: launchers of clients pass that on to their children.
    """
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        errors="replace",
    ) as process:  # fmt: skip
        try:
            output, complaints = process.communicate(timeout=COMMAND_SECONDS)
        except BaseException:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(TERMINATE_SECONDS)
            process.kill()
            raise
    return process.returncode, output, complaints


def _complaint(text: str) -> str:
    """Return the line of a command's output that says the error: the first with an error, without its stack."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if _SAYS_WRONG.match(line)]
    said = [line for line in lines if not _STACK.match(line)]
    return ([*wrong, *reversed(said), *lines, ""])[0][:300]


def with_fields(payload: dict[str, Any], dialect: Dialect, fields: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` with these values, each where a client of this dialect has the core's field."""
    for name, value in fields.items():
        *levels, last = dialect.fields.get(name, name).split(".")
        place = payload
        for level in levels:
            place = place[level]
        place[last] = value
    return payload


def says(file: Path, word: str) -> bool:
    """Return True if `file` exists and has `word` in it."""
    try:
        return word in file.read_text(encoding="utf-8", errors="replace")
    except OSError:  # unreadable
        return False


def starts_our_hooks(file: Path) -> bool:
    """Return True if the hooks that are wired in a client's file are ours."""
    return says(file, "integrations/hook.")


def as_json(tree: object) -> bytes:
    """Return a JSON file that holds `tree`."""
    return (json.dumps(tree, indent=2) + "\n").encode()


@contextlib.contextmanager
def as_failure() -> Iterator[None]:
    """Raise ClientFailed for a failure in the block, or in the decorated function."""
    try:
        yield
    except (SwarmError, OSError) as error:
        raise ClientFailed(str(error)) from error


# Work for several agent clients at once: most of it is waiting for programs of theirs to start.

Told = TypeVar("Told")


class Interrupted(Exception):
    """The rest of the work is not wanted any more."""


class Ended:
    """The last that comes from a client's thread; `error` where it has failed."""

    def __init__(self, error: BaseException | None = None):
        self.error = error


class SideBySide(Generic[Told]):
    """Work for several clients, in a thread each, from entering the ``with`` block to leaving it.

    `work(client, tell)` hands its results to `tell`. That raises Interrupted once the block has been left early: a
    running step is still finished, and the next is not begun.
    """

    def __init__(self, clients: list[Runtime], work: Callable[[Runtime, Callable[[Told], None]], None]):
        self._work = work
        self._told: SimpleQueue[tuple[Runtime, Told | Ended]] = SimpleQueue()
        self._left = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(client,), daemon=True) for client in clients]

    def __enter__(self) -> SideBySide[Told]:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._left.set()
        for thread in self._threads:
            thread.join()

    def told(self) -> Iterator[tuple[Runtime, Told]]:
        """Yield the results of the work, each client's in order, as they come, until all of it has ended.

        Raises the errors of the work.
        """
        working = len(self._threads)
        while working:
            client, told = self._told.get()
            if not isinstance(told, Ended):
                yield client, told
                continue
            working -= 1
            if told.error:
                raise told.error

    def _run(self, client: Runtime) -> None:
        def tell(told: Told) -> None:
            if self._left.is_set():
                raise Interrupted
            self._told.put((client, told))

        try:
            self._work(client, tell)
        except BaseException as error:
            self._told.put((client, Ended(error)))
        else:
            self._told.put((client, Ended()))


# A client that runs the plugin from the local bundle itself, so that upgrading the bundle upgrades it.


class InPlace(Runtime):
    """A client that runs the plugin from the bundle. `thing` is its word for a plugin, `needed` the bundle's file that
    it starts from.
    """

    thing = "plugin"
    needed: str
    manifest = ".claude-plugin/plugin.json"  # says the release where there is no record, as in a clone of the source

    @abstractmethod
    def root(self) -> Path | None:
        """Return the folder that the client runs the plugin from (it may be gone), or None if it is not installed."""

    def fault(self, root: Path) -> Finding | None:
        """Return the fault that keeps the client from running the plugin in `root`, or None."""
        return None

    def beside(self, root: Path | None) -> list[Finding]:
        """Return further findings about the client; `root` as above."""
        return []

    @property
    def mend(self) -> str:
        """The command that puts the plugin in anew."""
        return f"swarm-mcp install --client {self.name}"

    def traces(self) -> bool:
        return self.root() is not None

    def version(self) -> str:
        root = self.root()
        if root:
            return self._version_in(root)
        return ""

    def look(self, marketplace: Path, steps: Steps) -> Look:
        root = self.root()
        if root is None:
            text = "not installed"
            if self.traces():
                text = "only in part installed: its hooks are missing"
            return Look([self.said("warn", text, self.mend), *self.beside(None)], None)
        return Look([self._state(root), *self.beside(root)], self.installed_at(root))

    def _version_in(self, root: Path) -> str:
        return str(read_record(root).get("version") or object_in(root / self.manifest).get("version") or "")

    def _state(self, root: Path) -> Finding:
        if not (root / self.needed).is_file():
            return self.said("fail", f"{root} has no {self.needed}", self.mend)
        version, fault = self._version_in(root), self.fault(root)
        if fault:
            return fault
        if version != __version__:
            return self.said("warn", f"version {version} at {root}; this swarm-mcp is {__version__}", self.mend)
        return self.said("ok", f"version {version}, at {root}")

    # ---------------------------------------------------------------- what such clients do alike

    def said(self, status: str, message: str, mend: str = "") -> Finding:
        """Return a finding about the plugin."""
        return Finding(f"{self.name} {self.thing}", status, message, mend)

    def put_entries(self, edited: EditedJson, marketplace: Path, steps: Steps) -> Installed:
        """Put the plugin in by its entries in a file of the client's. Raises SwarmError."""
        steps.begin(f"putting the plugin in {marketplace} into {edited.path}")
        if edited.put():
            steps.add(f"put the plugin in {marketplace} into {edited.path}")
        return self.installed_at(marketplace)

    def take_entries_out(self, edited: EditedJson, steps: Steps) -> None:
        """Take the plugin out, as `put_entries` put it in. Raises SwarmError."""
        if edited.take_out():
            steps.add(f"took the plugin out of {edited.path}")

    def more_than_one(self, also: list[str], root: Path | None) -> list[Finding]:
        """Return a finding about other hooks of ours that the client runs, named in `also`."""
        if not also:
            return []
        what = "act as this client's where it runs them"
        if root:
            what = "stand back, so that no write is checked twice"
        return [Finding(f"{self.name}, more than one", "info", f"{', '.join(also)}: they {what}")]


# Links from a client's folders to files of a bundle, to run them in place.


def root_of(target: str, name: str) -> Path | None:
    """Return the folder that has the path `target` as `name`, or None if it ends otherwise."""
    if target.endswith(f"/{name}"):
        return Path(target.removesuffix(f"/{name}"))
    return None


def leads_to(link: Path, name: str) -> Path | None:
    """Return the folder that the link leads to by `name` (it may be gone), or None."""
    try:
        return root_of(os.path.join(link.parent, os.readlink(link)), name)
    except OSError:  # no link
        return None


def put_link(link: Path, target: Path, steps: Steps) -> None:
    """Have `link` lead to `target`, in the place of an earlier link at once. Raises ClientFailed."""
    scratch = link.with_name(f".{link.name}.{os.getpid()}.tmp")
    with steps.step(f"linking {link} to {target}", f"linked {link} to {target}"):
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            scratch.symlink_to(target)
            os.replace(scratch, link)
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise ClientFailed(f"{link} cannot be made: {error.strerror}") from error


def put_links(links: dict[Path, str], root: Path, steps: Steps) -> None:
    """Have each of ``{link: name}`` lead to that name in `root`.

    Raises ClientFailed, also if a file of another owner is in the place of a link.
    """
    for link, name in links.items():
        found = leads_to(link, name)
        if found is None and os.path.lexists(link):
            raise ClientFailed(f"{link} is not ours; move it away and try again")
        if found != root:
            put_link(link, root / name, steps)


def take_link(link: Path, steps: Steps) -> None:
    """Remove a link, and the folders around it that are empty then. Raises ClientFailed."""
    with steps.step(f"removing {link}", f"removed {link}"):
        try:
            link.unlink()
        except OSError as error:
            raise ClientFailed(f"{link} cannot be removed: {error.strerror}") from error
        remove_empty(link.parent)
