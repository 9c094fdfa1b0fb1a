"""The entries of one call, and the files that it names (``Trail``)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from swarm_hook_core import REMOVE, process, state
from swarm_hook_core.config import SHELL_TOOLS, RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import SOME_AGENT
from swarm_hook_core.paths import real_path, real_paths
from swarm_hook_core.state import end_by_mark, ended_mark, hook_starter, make_private, state_dir
from swarm_hook_core.traces import (
    FEW,
    LONGEST_TEXT,
    MOST,
    OFF,
    TURN,
    append,
    entry,
    first_line,
    journal,
    journal_name,
    keeping,
    kept_dir,
    keys_of,
    level,
    level_of,
    line,
    names_in,
    others_in,
    place_of,
    state_of,
    traces_dir,
    tree_top,
    version_path,
)
from swarm_hook_core.traces.unread import Reading

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.denial import Notice
    from swarm_hook_core.shell.model import Effects
    from swarm_hook_core.stakes.sweeps import Sweeps
    from swarm_hook_core.traces.file_changes import FileChanges
    from swarm_hook_core.traces.others import Trace
    from swarm_hook_core.traces.whole_writes import Merge

Target = tuple[str, str, str, str]  # path as spelled, resolved path, how it is written, part of a command
Owner = tuple["Trace", str, str, str, int]  # trace, how, by, path of the kept copy, number of denials

MAKES_COMMITS = ("commit", "merge", "rebase", "cherry-pick", "revert", "am", "pull")  # git's verbs
_OF_LINKS = ("mv", "ln")  # programs that replace a link itself, not its target
_MOVES = "*** Move to:"  # in a patch


class Trail:
    """The entries of one call, collected in memory until `leave` appends them to the session's journals.

    - level: the level in force
    - noted: the Notices of a call that goes ahead
    - owners: facts for the owners of changed files: ``(Trace, how, by, path of the kept copy, number of denials)``
    - merges: resolved path -> Merge of a whole write that goes ahead merged (``whole_writes``)
    - unmerged: the same for a write that could be merged, where the client or a setting does not let it
    - names: escaped names of the call's files, if changes of others in other files do not matter to it
    - sweeps: the judged git commands of the call (``stakes``)
    - is_asked: True for a dry run (``asked``): nothing is written
    """

    is_asked = False

    __slots__ = (
        "config", "call", "level", "own_name", "owners", "noted",
        "_places", "_lines", "_left", "lost", "_real", "_of_others", "_targets", "reading", "_changes", "merges",
        "unmerged", "names", "sweeps", "_written", "_begun",
        "_made_ns",
    )  # fmt: skip

    def __init__(self, config: RuntimeConfig, call: ToolCall, level: str):
        self.config = config
        self.call = call
        self.level = level
        self.own_name = journal_name(config.runtime_name, call.session_id)
        self.owners: list[Owner] = []
        self.noted: list[Notice] = []
        self.merges: dict[str, Merge] = {}
        self.unmerged: dict[str, Merge] = {}
        self.names: frozenset[bytes] = frozenset()
        self.sweeps: Sweeps | None = None
        self._places: dict[str, str] = {}  # folder -> place
        self._lines: dict[str, list[bytes]] = {}  # place -> lines to append
        self._left: list[str] = []  # places with lines of this call
        self._made_ns = time.time_ns()
        self._written: dict[str, tuple[int, str]] = {}  # path -> time and state of its entry ``wrote``
        self._begun: list[tuple[str, int]] = []  # folder and time of each entry of `_begin`
        self.lost: dict[str, tuple[str, str]] = {}  # path -> result of ``keeping.lost``, and the file's state then
        self._real: Callable[[str], str] | None = None  # from ``paths.real_paths``, once a path was resolved
        self._targets: list[Target] | None = None  # result of `targets_of`
        self.reading: Reading | None = None  # parses commands of others, once there are Meetings
        self._changes: FileChanges | None = None
        self._of_others: dict[str, list[str]] | None = None  # result of ``elsewhere.places_of_others``

    @property
    def is_by_turn(self) -> bool:
        """Return True if the call takes its files for its turn."""
        return self.level == TURN

    @property
    def can_ask(self) -> bool:
        """Return True if the client asks its user about the call when a hook wants that."""
        return self.config.asks is not None and self.config.asks(self.call)

    @property
    def changes(self) -> FileChanges:
        """The uncommitted changes of the call's files, with their owners."""
        if self._changes is None:
            from swarm_hook_core.traces.file_changes import FileChanges

            self._changes = FileChanges()
        return self._changes

    @property
    def journal(self) -> str:
        """Return the path of the session's journal in the place of the call's folder. It need not exist."""
        return os.path.join(self.place_of(self.call.folder), self.own_name)

    def place_of(self, folder: str) -> str:
        """Return the journals' folder for files in absolute `folder`."""
        if folder not in self._places:
            self._places[folder] = place_of(folder)
        return self._places[folder]

    def version_path(self, path: str) -> str:
        """Return the path of the first version that the session has kept of the file at resolved `path`."""
        return version_path(self.place_of(os.path.dirname(path)), self.own_name, path)

    def is_alone(self, paths: Iterable[str] = ()) -> bool:
        """Return True if no other session has a journal for these files' folders or for the call's own.

        An agent is never alone: its session works beside it.
        """
        if self.call.agent not in ("", SOME_AGENT):
            return False
        folders = dict.fromkeys([self.call.folder, *map(os.path.dirname, paths)])
        return not any(others_in(place, self.own_name) for place in {self.place_of(folder) for folder in folders})

    def pass_over(self, error: OSError) -> None:
        """Record that a journal cannot be read. Raises NotChecked if the settings deny unchecked calls."""
        from swarm_hook_core import fail_closed

        if not self.is_asked:
            state.record_hourly(self.config.runtime_name, "traces", error)
        fail_closed.demand(self.config, self.call, f"what others have changed: {error}")

    def may_lead_elsewhere(self) -> bool:
        """Return True if a call without named files may reach another repository with journals of others.

        Mostly there is no other repository; then this costs one listing of a folder.
        """
        own = os.path.basename(self.place_of(self.call.folder))
        names = names_in(traces_dir())
        if not names or names == [own]:
            return False
        from swarm_hook_core.traces.elsewhere import could_lead

        return could_lead(self.call, self.places_of_others())

    def places_of_others(self) -> dict[str, list[str]]:
        """Return ``elsewhere.places_of_others`` for this session; looked up once."""
        if self._of_others is None:
            from swarm_hook_core.traces.elsewhere import places_of_others

            self._of_others = places_of_others(self.own_name)
        return self._of_others

    def note_alone(self, effects: Effects | None) -> bool:
        """Collect the traces of the call and return True, if no other session has a journal where it writes.

        `effects`: effects of a shell or MCP call, or None if it was not parsed.
        """
        call = self.call
        if call.tool in self.config.write_tools:
            spelled = list(self.config.extract_paths(call.input))[:MOST]
            if self._real is None and len(spelled) <= FEW:
                self._real = real_path
            paths = list(filter(None, (self.resolved(call.folder, path) for path in spelled)))
        else:
            paths = [target[1] for target in self.targets_of(effects)]
        if not self.is_alone([*paths, *_met_paths(effects)]):
            return False
        if effects is not None and effects.trees:
            from swarm_hook_core.traces.elsewhere import places_with

            places = {place for tree in effects.trees for place in places_with(self, tree.root)}
            if any(others_in(place, self.own_name) for place in places):
                return False
        self.wrote(filter(None, paths))
        self.note_unnamed(effects, effects is not None and bool(effects.reads))
        if self.sweeps is not None:
            self.sweeps.note()
        if effects is not None and (effects.trees or effects.git):
            from swarm_hook_core.traces import elsewhere

            elsewhere.note(self, "clears", elsewhere.places_of(effects))
        return True

    def targets_of(self, effects: Effects | None) -> list[Target]:
        """Return ``[(path as spelled, resolved path, how, by)]`` of the files that the call certainly writes.

        For a link that is removed or replaced, the resolved path is the link's own.

        `effects`: effects of a shell or MCP call, or None. The result is kept. Raises ValueError for unreadable input.
        """
        if self._targets is None:
            self._targets = self._find_targets(effects)
        return self._targets

    def _find_targets(self, effects: Effects | None) -> list[Target]:
        call = self.call
        if call.tool in self.config.write_tools:
            found = [(call.folder, *change, "") for change in self.config.changes_of(call.tool, call.input)]
        else:
            from swarm_hook_core.opaque_calls import patched

            found = [(*change, "") for change in patched(call.tool, call.input, call.folder)]
        found += [(write.folder, write.path, write.how, write.by) for write in effects.writes] if effects else []
        return [
            (os.path.join(folder, path), resolved, how, by)
            for folder, path, how, by in found[:MOST]
            if (resolved := self.resolved(folder, path, how == "remove" or by.partition(" ")[0] in _OF_LINKS))
        ]

    def wrote(self, paths: Iterable[str], is_beside_others: bool = False) -> None:
        """Collect a write of each of the resolved `paths`; keep the versions that are due (``versions``)."""
        paths = [*dict.fromkeys(paths)]  # of a patch in a command, the command's own writes are its files again
        if not paths and not self.merges:
            return
        keeps_each = is_beside_others or bool(self.call.agent)
        sent = self.call.input
        if self.merges:
            from swarm_hook_core.traces import whole_writes

            sent = whole_writes.input_with(self.config, self.call, self.merges.values())
        given = keeping.known_input(self, sent)
        keeps_each = keeps_each or _MOVES in given  # the lines of a file that is moved keep their owners
        written = {}
        self._written = {}
        for path in paths:
            written[path] = at_ns = time.time_ns()
            keeping.before(self, path, at_ns, keeps_each, bool(given))
            self._written[path] = at_ns, state_of(path)
            self.note("wrote", path, self._written[path][1], at_ns)
        if written and given and not self.is_asked:
            keeping.write_input(self, written, given)
        if self.merges:
            whole_writes.note(self)

    def look(self, path: str, text: str, at_end: bool) -> None:
        """Collect the state `text` that the session's own write has left. Called by ``seen``, which `keeping` needs."""
        keeping.after(self, path, text, at_end)

    def resolved(self, folder: str, path: str, of_link: bool = False) -> str:
        """Return `path` in `folder` with links resolved, or "" if the text cannot name a file.

        `of_link`: resolve only the parent folder, so that a link is returned itself.
        """
        if self._real is None:
            self._real = real_paths()
        whole = os.path.join(folder, path)
        try:
            if b"\0" in os.fsencode(whole):
                return ""
            if of_link and os.path.islink(whole.rstrip("/")):
                over, name = os.path.split(os.path.normpath(whole))
                return os.path.join(self._real(over), name)
            real = self._real(whole)
        except ValueError:
            return ""  # the text cannot be a path
        if real.startswith("/proc/") and "/fd/" in real:
            return ""  # a pipe of this very process, as for /dev/stdout: the call has others
        return real

    def note(self, kind: str, path: str, text: str = "", at_ns: int = 0) -> None:
        """Collect an entry about the file at resolved `path`. `text`: by default the file's present state."""
        lines = self._lines.setdefault(self.place_of(os.path.dirname(path)), [])
        if len(lines) < MOST:
            text = text or state_of(path)
            lines += [line(kind, key, self.call, text, at_ns) for key in keys_of(path)]

    def note_at(self, folder: str, kind: str, text: str = "", at_ns: int = 0, place: str = "") -> None:
        """Collect an entry about `folder`, in `place` (by default the folder's own)."""
        lines = self._lines.setdefault(place or self.place_of(folder), [])
        lines.append(line(kind, folder, self.call, text, at_ns))

    def note_unread(self) -> None:
        """Collect the traces of a call of a session that is alone: its command as text, unparsed."""
        call, command = self.call, None
        if call.tool in SHELL_TOOLS:
            given = None
            if isinstance(call.input, dict):
                given = call.input.get("command")
            if isinstance(given, str):
                command = given
            else:  # few clients; slow to load
                from swarm_hook_core.opaque_calls import shell_text

                command = shell_text(call.tool, call.input)
        if command is not None and len(command) <= LONGEST_TEXT:
            at_ns = time.time_ns()
            if ">" in command:
                keeping.redirected(self, command, at_ns)
            self._keep_own_files(at_ns)
            self._begin("ran", call.folder, command, at_ns)
        else:
            from swarm_hook_core.opaque_calls import effects_of

            self.wrote(target[1] for target in self.targets_of(effects_of(call)))

    def _begin(self, kind: str, folder: str, text: str = "", at_ns: int = 0) -> None:
        """Collect that a command has begun; `kind`: ``ran``, ``runs`` or ``commits``."""
        self._begun.append((folder, at_ns or time.time_ns()))
        self.note_at(folder, kind, text, self._begun[-1][1])

    def _keep_own_files(self, at_ns: int) -> None:
        """Keep the session's changed files before a command that may write any of them."""
        folder = os.path.join(kept_dir(self.place_of(self.call.folder)), self.own_name)
        if self.is_asked or not os.path.isdir(folder):
            return  # it has written no file here
        keeping.own_files(self, folder, at_ns)

    def note_unnamed(self, effects: Effects | None, has_reads: bool = False) -> None:
        """Collect further writes: files of ``git mv`` and ``git rm``, commits, and the text of a command that writes
        whole folders, or that shows files (`has_reads`).

        A later reader of the journal parses that text.
        """
        if effects is None or self.call.tool not in SHELL_TOOLS:
            return
        from swarm_hook_core.opaque_calls import shell_text

        if effects.runs or effects.guesses:
            at_ns = time.time_ns()
            self._keep_own_files(at_ns)
            self._begin("runs", self.call.folder, at_ns=at_ns)
        text = shell_text(self.call.tool, self.call.input)
        has_shown = has_reads and len(text) <= LONGEST_TEXT
        if has_shown or any(tree.how != REMOVE for tree in effects.trees):
            self._begin("ran", self.call.folder, text)
        for git_call in effects.git:
            if git_call.words[0] in MAKES_COMMITS:
                self._begin("commits", git_call.folder)
            if git_call.words[0] in ("mv", "rm"):
                from swarm_hook_core.shell.programs.git.uncommitted import moved_or_removed

                self.wrote(self.resolved("/", path, of_link=True) for path in moved_or_removed(git_call))

    def leave(self) -> None:
        """Append the collected entries to the journals, and the end of the session's last call. Raises OSError.

        Entries that a checker has left for this very call, before it stopped answering, are not left again.
        """
        if self._lines or end_by_mark(hook_starter(self.config.runtime_name))[0]:
            process.demand_waiting()
            self._note_end()
        tried_ns = process.tried_ns()
        for place, lines in self._lines.items():
            if tried_ns:
                data = journal.read(os.path.join(place, self.own_name))
                lines = journal.after_a_try(data, lines, tried_ns, self._made_ns)
            if lines:
                self.append(place, lines)
        self._left += self._lines
        self._lines = {}

    def before_a_try(self, own: bytes) -> bytes:
        """Return the session's journal `own` without the entries that a checker has left for this very call."""
        tried_ns = process.tried_ns()
        if tried_ns:
            own = journal.without_a_try(own, tried_ns, self._made_ns)
        return own

    def leave_or_record(self) -> None:
        """Leave the entries, or record a fault, as of a full disk: others' traces can be read all the same."""
        try:
            self.leave()
        except OSError as error:
            self.record_fault(error)

    def record_fault(self, error: OSError) -> None:
        """Record a fault in the traces of the call."""
        state.record(self.config.runtime_name, "traces", error)

    def _note_end(self) -> None:
        """Collect the end of the call before this one, if the hook after it has left a mark."""
        client_pid = hook_starter(self.config.runtime_name)
        at_ns, session_id, agent = end_by_mark(client_pid)
        if not at_ns or session_id not in ("", self.call.session_id):
            return  # no hook after that call; or it was another session's
        try:
            os.unlink(ended_mark(client_pid))
        except OSError:
            return  # another call has noted it
        if not session_id:
            agent = self.call.agent
        lines = self._lines.setdefault(self.place_of(self.call.folder), [])
        lines.insert(0, entry(at_ns, "over", agent, self.call.tool, self.call.folder))

    def drop(self) -> None:
        """Discard entries that could not be appended."""
        self._lines = {}

    def has_company(self) -> bool:
        """Return True if another session has a journal by now in a place where this call has left entries.

        A session that is alone notes first and then looks again: two calls at the same moment cannot miss each other.
        """
        return any(others_in(place, self.own_name) for place in self._left)

    def withdraw(self) -> None:
        """Collect that the noted writes and commands are withdrawn: the call is checked beside others after all.

        Else the call would take its own note for a write that it has made. The versions that were kept stay: an entry
        says that no call wrote after them.
        """
        for path, (at_ns, text) in self._written.items():
            self.note("wont", path, "wrote", at_ns)
            self.note("before", path, text, at_ns)
        for folder, at_ns in self._begun:
            self.note_at(folder, "wont", "wrote", at_ns)
        self._written, self._begun = {}, []

    def top_of(self, place: str) -> str:
        """Return the top folder of `place`, among those asked for by this call, or ""."""
        folder = next((folder for folder, its in self._places.items() if its == place), "")
        return real_path(tree_top(folder)[0]) if folder else ""

    def is_head_moved(self) -> bool:
        """Return True if a session has moved HEAD lately in this repository. An edit pays for no more than this."""
        name = os.path.basename(self.place_of(self.call.folder))
        return os.path.exists(os.path.join(state_dir(), "heads", name, "moved"))

    def append(self, place: str, lines: list[bytes]) -> None:
        """Append entries to the session's journal in `place` at once. Raises OSError."""

        def first() -> bytes:
            make_private(os.path.dirname(ended_mark()))
            return first_line(self.config.runtime_name, self.call.session_id, self.top_of(place))

        append(os.path.join(place, self.own_name), lines, first)


def trail_of(config: RuntimeConfig, call: ToolCall) -> Trail | None:
    """Return the Trail of a call; None if its checkout wants no traces.

    So it is too without a store: nothing else says whose the traces are, and nobody would remove them.
    """
    found = level_of(config, call)
    if found == OFF:
        return None
    return Trail(config, call, found)


def _met_paths(effects: Effects | None) -> list[str]:
    """Return paths that a command reads, and one in each work tree of its git commands."""
    if effects is None:
        return []
    paths = [os.path.join(read.folder, read.path) for read in effects.reads]
    if effects.git:
        from swarm_hook_core.shell.programs.git.listings import tree_of

        # Many commands of one call mostly name the same repository: ask once for each.
        calls = {(one.folder, *one.top, *map(str, one.environment.items())): one for one in effects.git}
        paths += [os.path.join(tree_of(call) or call.folder, ".git") for call in calls.values()]
    return paths


# Trails that leave nothing: of a call that is only asked about, and of readers that are no calls of a client.
#
# Such readers are commits, the page, copies for other machines.


class AskedTrail(Trail):
    """A Trail that is never left."""

    __slots__ = ()
    is_asked = True

    def leave(self) -> None:
        """Forget the entries."""
        self._lines = {}


def asked_trail(config: RuntimeConfig, call: ToolCall) -> AskedTrail | None:
    """Return the Trail of a call that is only asked about; None if its checkout wants no traces."""
    found = level(config.env_prefix, call.folder)
    if found == OFF:
        return None
    return AskedTrail(config, call, found)


class OnlookersTrail(Trail):
    """A Trail in `folder` for the part `part` of `reader`; faults are recorded under these two names.

    `runtime` and `session_id`: the reading session, if any. Its changes count as its own.
    """

    __slots__ = ("_reader", "_part")

    def __init__(self, reader: str, part: str, folder: str, level: str, runtime: str = "", session_id: str = ""):
        config: Any = _Nobody(runtime)
        Trail.__init__(self, config, ToolCall(part, {}, session_id, folder, agent=SOME_AGENT), level)
        self._reader = reader
        self._part = part

    def pass_over(self, error: OSError) -> None:
        """Record that a journal cannot be read. Nothing is denied, as nothing is written."""
        state.record_hourly(self._reader, self._part, error)


class _Nobody:
    """Stands for the config of a client: a Trail without one needs the name alone."""

    def __init__(self, runtime_name: str):
        self.runtime_name = runtime_name
