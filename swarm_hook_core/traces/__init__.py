"""The traces of sessions: each session notes its writes, so that others do not destroy uncommitted changes.

A *trace* is an entry about one write in a *journal*. Hooks write nothing into the store: each session appends to
journals of its own, one per repository.

Files: ``<state folder>/traces/<place>/<runtime>.<session>``. A *place* is a repository with all its work trees, or a
folder outside of any repository. It is named by device and inode of that folder. ``journal`` describes the format.

Noted before a call runs: the files that it will write, each with its state at that time (``state_of``: change time,
inode, size); a shell command whole, unparsed, if the session is alone in the place; commits, stashes and removals of
folders. Noted later: looks at files (``seen``, ``looks``), and the state in which the session's own writes left them
(``is``).

Compared when a call of another session writes the same file: the noted state and the present one tell if the write was
made; git tells if it is committed or undone; the session's own journal tells if it has seen the change since. The level
in force then decides: deny the call, or let it pass and tell its model.

This module holds only the path of every write, also of a session that is alone. The other modules are loaded when
another session has a journal in the same place:

    journal     format of the journals, and searches in them
    elsewhere   other repositories with journals, and commands that may reach them
    meetings    the traces of others for one call. It composes
      others      the journals of a place: the session's own, and each living other's
      siblings    the main thread and the agents of one session, as peers of each other
      unread      shell commands that ran unparsed
      machines    unpushed writes by sessions on other machines
      seen        the session's own knowledge of a file
      transcript  files that the client has shown to its model, by the client's transcript
      looks       files that a shell command shows, whole or as a diff
      endings     ends of calls and turns: after them no write is pending
      new_text    the text that a call will write, if it keeps the other's lines
      seen_text   the text of a file that the session last saw
      merged_writes, merging    whole writes that go ahead merged with others' changes
      changed_lines, equal_lines    the lines that others have changed, kept and quoted
      committed   questions to git about files
      asides      commits during which hooks put changes aside
      clearing    removed folders, and git commands that discard changes
    verdict     the decision, by level; words in wording and sweep_wording
    sweeps      git commands that would discard or take along others' changes
    claims      locks that a write takes automatically for one turn
    news        others' changes, told at the start of a session and of each turn
    pruning     removal of old journals
    versions    the contents of files before writes, and the authors of lines
    head        the HEAD that the sessions of a work tree share
"""

from __future__ import annotations

import os
import sys
import time

from swarm_hook_core.config import SHELL_TOOLS
from swarm_hook_core.lookup import SOME_AGENT
from swarm_hook_core.state import (
    PLAIN,
    NotOrdinary,
    clear_place,
    config_path,
    ended_mark,
    local_store,
    make_private,
    name_of,
    open_in_private,
    state_dir,
    write_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from swarm_hook_core.config import RuntimeConfig
    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.shell.model import Effects
    from swarm_hook_core.traces.merged_writes import Merge
    from swarm_hook_core.traces.others import Trace
    from swarm_hook_core.traces.unread import Reading

    Target = tuple[str, str, str, str]  # path as spelled, resolved path, how it is written, part of a command
    Owner = tuple[Trace, str, str, str, int]  # trace, how, by, path of the kept copy, number of denials

# Levels of protection; each one includes those before it.
OFF, NOTICE, KEEP, TURN = LEVELS = ("off", "notice", "keep", "turn")
DEFAULT = KEEP

LIMIT_BYTES = 256 * 1024  # of a journal; a longer one is renamed to ``.1`` and begun anew
LONGEST_TEXT = 16 * 1024  # characters of an unparsed command
MOST = 400  # files of one call with an entry each
DEEP = 30  # parent folders of a file; the top of a deeper one is searched from the root down
FEW = 3  # files of one call; up to here no cache of resolved folders is loaded
MOST_CLAIMS = 100  # files of one call that get a claim
AGENTS = ".agents"  # behind a journal's name: the file of the session's agents in that place (``siblings``)
OWN_NS = 2 * 10**9  # a file that changes later after the check of a write may have been changed by a person
LONGEST_NAME = 160  # bytes of the name of a version
# Marks in the names of versions; a path has no such text. MERGED: a text that was written merged with others' changes.
LATER, LOOK, AFTER, LOST, WHOLE, CUT, MERGED = "%w", "%i", "%a", "%l", "%c", "%t", "%m"
TOLD_ALONG = "along"  # kind of an entry: the session was told that its git command takes the file along
NO_FILE = "-"  # the state of a missing file, in an entry
MAKES_COMMITS = ("commit", "merge", "rebase", "cherry-pick", "revert", "am", "pull")  # git's verbs
_OF_LINKS = ("mv", "ln")  # programs that replace a link itself, not its target
_WITHOUT_VERSIONS = ("/node_modules/", "/.venv/", "/__pycache__/", "/.git/")  # caches and git's own files
_WORD = PLAIN | frozenset("_.:/@")
_IGNORES_CASE = sys.platform in ("darwin", "win32")  # file systems of these are mostly case-insensitive


class Trail:
    """The entries of one call, collected in memory until `leave` appends them to the session's journals.

    - level: the level in force
    - owners: facts for the owners of changed files: ``(Trace, how, by, path of the kept copy, number of denials)``
    - merges: resolved path -> Merge of a whole write that goes ahead merged (``merged_writes``)
    - is_asked: True for a dry run (``asked``): nothing is written
    """

    is_asked = False

    __slots__ = (
        "config", "call", "level", "own_name", "owners",
        "_places", "_lines", "_left", "_lost", "_real", "_of_others", "_targets", "reading", "merges",
    )  # fmt: skip

    def __init__(self, config: RuntimeConfig, call: ToolCall, level: str):
        self.config = config
        self.call = call
        self.level = level
        self.own_name = journal_name(config.runtime_name, call.session_id)
        self.owners: list[Owner] = []
        self.merges: dict[str, Merge] = {}
        self._places: dict[str, str] = {}  # folder -> place
        self._lines: dict[str, list[bytes]] = {}  # place -> lines to append
        self._left: list[str] = []  # places with lines of this call
        self._lost: dict[str, str] = {}  # results of `keep_lost`
        self._real: Callable[[str], str] | None = None  # from ``paths.real_paths``, once a path was resolved
        self._targets: list[Target] | None = None  # result of `targets_of`
        self.reading: Reading | None = None  # result of ``Meetings.reading``
        self._of_others: dict[str, list[str]] | None = None  # result of ``elsewhere.places_of_others``

    @property
    def is_by_turn(self) -> bool:
        """Return True if the call's writes take claims for its turn."""
        return self.level == TURN

    def place_of(self, folder: str) -> str:
        """Return the journals' folder for files in absolute `folder`."""
        if folder not in self._places:
            self._places[folder] = place_of(folder)
        return self._places[folder]

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
        from swarm_hook_core import fail_closed, faults

        if not self.is_asked:
            faults.record_hourly(self.config.runtime_name, "traces", faults.describe(error))
        fail_closed.demand(self.config, self.call, f"what others have changed: {error}")

    def may_lead_elsewhere(self) -> bool:
        """Return True if a call without named files may reach another repository with journals of others.

        Mostly there is no other repository; then this costs one listing of a folder.
        """
        own = os.path.basename(self.place_of(self.call.folder))
        try:
            names = os.listdir(traces_dir())
        except (FileNotFoundError, NotADirectoryError):
            return False  # no session has a journal yet
        if not names or names == [own]:
            return False
        from swarm_hook_core.traces.elsewhere import could_lead

        return could_lead(self.call, self._places_of_others())

    def places_with(self, root: str) -> dict[str, list[str]]:
        """Return ``{place: folders in it}`` at and below absolute `root`, nested repositories included."""
        from swarm_hook_core.traces.elsewhere import below

        own, inside = self.place_of(root), below(self._places_of_others(), root)
        return {**inside, own: [root, *inside.get(own, ())]}

    def _places_of_others(self) -> dict[str, list[str]]:
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
                self._real = os.path.realpath
            paths = [self._resolved(call.folder, path) for path in spelled]
        else:
            paths = [target[1] for target in self.targets_of(effects)]
        if not self.is_alone([*paths, *_met_paths(effects)]):
            return False
        if effects is not None:
            places = {place for tree in effects.trees for place in self.places_with(tree.root)}
            if any(others_in(place, self.own_name) for place in places):
                return False
        self.wrote(filter(None, paths))
        self.note_unnamed(effects, effects is not None and bool(effects.reads))
        if effects is not None and effects.git:
            from swarm_hook_core.traces import stash_entries

            stash_entries.note(effects.git, self)
        if effects is not None and (effects.trees or effects.git):
            from swarm_hook_core.traces import clearing

            clearing.note(self, "clears", clearing.places_of(effects))
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
        from swarm_hook_core.targets import changes

        call = self.call
        found = [(*change, "") for change in changes(self.config, call.tool, call.input, call.folder)]
        found += [(write.folder, write.path, write.how, write.by) for write in effects.writes] if effects else []
        return [
            (os.path.join(folder, path), resolved, how, by)
            for folder, path, how, by in found[:MOST]
            if (resolved := self._resolved(folder, path, how == "remove" or by.partition(" ")[0] in _OF_LINKS))
        ]

    def claims_of(self, effects: Effects | None) -> list[tuple[str, str]]:
        """Return ``[(key, absolute path)]`` of the files that the call certainly writes, as locks are stored."""
        from swarm_hook_core.paths import key_of

        return [(key_of(target[1]), target[1]) for target in self.targets_of(effects)[:MOST_CLAIMS]]

    def wrote(self, paths: Iterable[str], is_beside_others: bool = False) -> None:
        """Collect a write of each of the resolved `paths`; keep the versions that are due (``versions``)."""
        for path in paths:
            at_ns = time.time_ns()
            self._keep_before(path, at_ns, is_beside_others or bool(self.call.agent))
            self.note("wrote", path, at_ns=at_ns)
        if self.merges:
            from swarm_hook_core.traces import merged_writes

            merged_writes.note(self)

    def look(self, path: str, text: str, at_end: bool) -> None:
        """Collect the state `text` that the session's own write has left; keep the content as a version.

        `at_end`: right at the end of the call, not at a later one.
        """
        at_ns = time.time_ns()
        self._keep(path, f"{self._version_path(path)}{AFTER if at_end else LOOK}{at_ns}", at_ns)
        self.note("is", path, text, at_ns)

    def _version_path(self, path: str) -> str:
        return version_path(self.place_of(os.path.dirname(path)), self.own_name, path)

    def _keep_before(self, path: str, at_ns: int, keeps_each: bool) -> None:
        """Keep the content of the file at `path`, before the session's first write of it or if `keeps_each`."""
        target = self._version_path(path)
        try:
            first = os.lstat(target)
        except OSError:
            pass  # the session's first write of the file
        else:
            os.utime(target, ns=(at_ns, first.st_mtime_ns))
            if not keeps_each and _is_own(path, first.st_atime_ns):
                return
            target += f"{LATER}{at_ns}"
        self._keep(path, target, at_ns)

    def _keep(self, path: str, target: str, at_ns: int) -> None:
        """Keep the content of the file at `path` as the version `target`."""
        if self.is_asked or any(part in path for part in _WITHOUT_VERSIONS):
            return
        from swarm_hook_core.traces import versions

        try:
            versions.keep(path, target, at_ns)
        except OSError as error:  # a full disk: the write itself is noted
            from swarm_hook_core import faults

            faults.record_hourly(self.config.runtime_name, "versions", faults.describe(error))

    def keep_lost(self, path: str) -> str:
        """Keep the content of the file at resolved `path` before this call destroys it; return the copy's path.

        Empty if it cannot be kept. No version: the call may be no write of the file (``versions``).
        """
        if path not in self._lost:
            self._lost[path] = self._keep_lost(path)
        return self._lost[path]

    def keep_lost_text(self, path: str, data: bytes) -> None:
        """Keep `data`, a content of the file at resolved `path` that this call destroys elsewhere. Raises OSError."""
        from swarm_hook_core.traces import versions

        if len(data) <= versions.LIMIT_BYTES:
            at_ns = time.time_ns()
            versions.keep_text(data, f"{self._version_path(path)}{LOST}{at_ns}", at_ns)

    def _keep_lost(self, path: str) -> str:
        from swarm_hook_core.traces import versions

        at_ns = time.time_ns()
        try:
            target = f"{self._version_path(path)}{LOST}{at_ns}"
            found = os.lstat(path)
            if found.st_mode & 0o170000 != 0o100000 or found.st_size > versions.LIMIT_BYTES:
                return ""
            versions.keep(path, target, at_ns)
            return target if os.stat(target).st_mode & versions.HALF == versions.CONTENT else ""
        except (OSError, ValueError):
            return ""  # gone, unreadable, or a full disk: the call was judged without it

    def looked_at(self, folder: str, path: str) -> list[str]:
        """Return the resolved path of the file `path` in `folder`, and that of the link to it, if any."""
        found = (self._resolved(folder, path), self._resolved(folder, path, of_link=True))
        return [*dict.fromkeys(filter(None, found))]

    def _resolved(self, folder: str, path: str, of_link: bool = False) -> str:
        """Return `path` in `folder` with links resolved, or "" if the text cannot name a file.

        `of_link`: resolve only the parent folder, so that a link is returned itself.
        """
        if self._real is None:
            from swarm_hook_core.paths import real_paths

            self._real = real_paths()
        whole = os.path.join(folder, path)
        try:
            if b"\0" in os.fsencode(whole):
                return ""
            if of_link and os.path.islink(whole.rstrip("/")):
                over, name = os.path.split(os.path.normpath(whole))
                return os.path.join(self._real(over), name)
            return self._real(whole)
        except ValueError:
            return ""  # the text cannot be a path

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
                from swarm_hook_core.targets import shell_text

                command = shell_text(call.tool, call.input)
        if command is not None and len(command) <= LONGEST_TEXT:
            self.note_at(call.folder, "ran", command)
        else:
            from swarm_hook_core.opaque_calls import effects_of

            self.wrote(target[1] for target in self.targets_of(effects_of(call)))

    def note_unnamed(self, effects: Effects | None, has_reads: bool = False) -> None:
        """Collect further writes: files of ``git mv`` and ``git rm``, commits, and the text of a command that writes
        whole folders, or that shows files (`has_reads`).

        A later reader of the journal parses that text.
        """
        if effects is None or self.call.tool not in SHELL_TOOLS:
            return
        from swarm_hook_core.change import REMOVE
        from swarm_hook_core.targets import shell_text

        if effects.runs or effects.guesses:
            self.note_at(self.call.folder, "runs")
        text = shell_text(self.call.tool, self.call.input)
        has_shown = has_reads and len(text) <= LONGEST_TEXT
        if has_shown or any(tree.how != REMOVE for tree in effects.trees):
            self.note_at(self.call.folder, "ran", text)
        for git_call in effects.git:
            if git_call.words[0] in MAKES_COMMITS:
                self.note_at(git_call.folder, "commits")
            if git_call.words[0] in ("mv", "rm"):
                from swarm_hook_core.shell.programs.git.uncommitted import moved_or_removed

                self.wrote(self._resolved("/", path, of_link=True) for path in moved_or_removed(git_call))

    def leave(self) -> None:
        """Append the collected entries to the journals, and the end of the session's last call. Raises OSError."""
        if self._lines:
            self._note_end()
        for place, lines in self._lines.items():
            self._append(place, lines)
        self._left += self._lines
        self._lines = {}

    def _note_end(self) -> None:
        """Collect the end of the call before this one, if the hook after it has left a mark."""
        mark = ended_mark()
        try:
            at_ns = os.stat(mark).st_mtime_ns
            os.unlink(mark)
        except OSError:
            return  # no hook after that call, or another call has noted it
        lines = self._lines.setdefault(self.place_of(self.call.folder), [])
        lines.insert(0, line("over", self.call.folder, self.call, "", at_ns))

    def drop(self) -> None:
        """Discard entries that could not be appended."""
        self._lines = {}

    def has_company(self) -> bool:
        """Return True if another session has a journal by now in a place where this call has left entries.

        A session that is alone notes first and then looks again: two calls at the same moment cannot miss each other.
        """
        return any(others_in(place, self.own_name) for place in self._left)

    def top_of(self, place: str) -> str:
        """Return the top folder of `place`, among those asked for by this call, or ""."""
        return next((os.path.realpath(_top(folder)[0]) for folder in self._places if self._places[folder] == place), "")

    def _append(self, place: str, lines: list[bytes]) -> None:
        path = os.path.join(place, self.own_name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            handle = open_in_private(path, flags)
        except NotOrdinary:  # a folder, link or pipe in the journal's place would stop all notes
            clear_place(path)
            handle = open_in_private(path, flags)
        try:
            size = os.fstat(handle).st_size
            if not size:
                own = first_line(self.config.runtime_name, self.call.session_id, self.top_of(place))
                lines = [own, *lines]
                make_private(os.path.dirname(ended_mark()))
            write_all(handle, b"\n" + b"".join(lines))  # begin a new line: a full disk may have torn the last one
            if size > LIMIT_BYTES:
                from swarm_hook_core.traces import journal

                journal.rotate(path, handle)
        finally:
            os.close(handle)


def level(prefix: str, folder: str) -> str:
    """Return the level in force in `folder`, for the runtime with `prefix` in its variables. Never raises.

    ``settings.protect`` lists the sources. Without any setting this costs one look at the disk.
    """
    for name in (f"SWARM_{prefix}_PROTECT", f"SWARM_{prefix}_AUTO", "SWARM_PROTECT", "SWARM_AUTO"):
        word = os.environ.get(name, "").strip().lower()
        if word in LEVELS:
            return word
        if word:
            break  # an invalid level: ``settings.protect`` reports it
    else:
        try:
            os.stat(config_path())
        except (OSError, ValueError):
            return DEFAULT  # no settings file
    from swarm_hook_core.settings import protect

    return str(protect(prefix, folder).value)


def trail_of(config: RuntimeConfig, call: ToolCall) -> Trail | None:
    """Return the Trail of a call; None if its checkout wants no traces.

    So it is too without a store: nothing else says whose the traces are, and nobody would remove them.
    """
    if not call.session_id or not local_store():
        return None
    found = level(config.env_prefix, call.folder)
    if found == OFF:
        return None
    return Trail(config, call, found)


def traces_dir() -> str:
    """Return the folder of all places. It need not exist."""
    return os.path.join(state_dir(), "traces")


def place_of(folder: str) -> str:
    """Return the place of files in absolute `folder`, named by device and inode of the repository's common git folder.

    The place need not exist. Raises OSError if the folder's parents cannot be read.
    """
    top, found = _top(folder)
    if found is None:
        return _named(os.stat(top))
    if found.st_mode & 0o170000 != 0o040000:  # a ``.git`` file: a linked work tree
        from swarm_hook_core.repository import tree_at

        tree = tree_at(top)
        found = os.stat(tree.common if tree is not None else top)
    return _named(found)


def _top(folder: str) -> tuple[str, os.stat_result | None]:
    """Return ``(top of the work tree around absolute `folder`, stat of its .git)``.

    Outside of any work tree: ``(nearest existing folder, None)``.
    """
    if folder.count("/") > DEEP:
        folder = _nearest(folder)
    probe = folder
    while True:
        try:
            return probe, os.stat(probe.rstrip("/") + "/.git")
        except OSError:
            over = os.path.dirname(probe)
        if over == probe:
            break
        probe = over
    while folder != probe and not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return folder, None


def _nearest(folder: str) -> str:
    """Return `folder`, or its nearest existing parent, searched from the root down."""
    found = ""
    for name in folder.split("/")[1:]:
        if not os.path.exists(f"{found}/{name}"):
            break
        found += f"/{name}"
    return found or "/"


def _met_paths(effects: Effects | None) -> list[str]:
    """Return paths that a command reads, and one in each work tree of its git commands."""
    if effects is None:
        return []
    paths = [os.path.join(read.folder, read.path) for read in effects.reads]
    if effects.git:
        from swarm_hook_core.shell.programs.git.command_line import tree_of

        # Many commands of one call mostly name the same repository: ask once for each.
        calls = {(one.folder, *one.top, *map(str, one.environment.items())): one for one in effects.git}
        paths += [os.path.join(tree_of(call) or call.folder, ".git") for call in calls.values()]
    return paths


def _named(found: os.stat_result) -> str:
    return os.path.join(traces_dir(), f"{found.st_dev:x}.{found.st_ino:x}")


def _is_own(path: str, last_ns: int) -> bool:
    """Return True if the file at `path` has not changed since the session's last write, noted at `last_ns`."""
    try:
        return os.lstat(path).st_ctime_ns < last_ns + OWN_NS
    except OSError:
        return True  # missing: there is nothing to keep


def kept_dir(place: str) -> str:
    """Return the folder of the versions of files in `place` (``versions``). It need not exist."""
    return os.path.join(state_dir(), "kept", os.path.basename(place))


def version_path(place: str, own_name: str, path: str) -> str:
    """Return the path of the first version that the session with this journal has kept of the file at `path`."""
    name = path.replace("%", "%25").replace("/", "%2F")
    if os.name == "nt":
        name = name.replace("\\", "%5C").replace(":", "%3A")
    if len(name) > LONGEST_NAME or _IGNORES_CASE or not name.isascii():
        name = _short_name(name, path)
    return os.path.join(kept_dir(place), own_name, name)


def _short_name(name: str, path: str) -> str:
    """Return `name` if it fits, else its beginning; marked with checksums of `path`."""
    from binascii import crc32

    raw = path.encode("utf-8", "surrogateescape")
    sums = f"{crc32(raw):08x}{crc32(raw[::-1]):08x}"
    data = os.fsencode(name)
    if len(data) <= LONGEST_NAME:
        return f"{name}{WHOLE}{sums}"
    return f"{data[:LONGEST_NAME].decode('ascii', 'replace').replace(chr(0xFFFD), '_')}{CUT}{sums}"


def journal_name(runtime: str, session_id: str) -> str:
    """Return the file name of a session's journal, the same in each place."""
    return f"{name_of(runtime)}.{name_of(session_id)}"


def others_in(place: str, own_name: str) -> list[str]:
    """Return the paths of all other sessions' journals in `place`, and of the own session's file of running agents."""
    try:
        names = os.listdir(place)
    except (FileNotFoundError, NotADirectoryError):
        return []  # no session has a journal there
    own, agents = (own_name, own_name + ".1"), own_name + AGENTS
    found = [name for name in names if name not in own and (name == agents or not name.endswith(AGENTS))]
    return list({os.path.join(place, name.removesuffix(".1")) for name in found})


def line(kind: str, key: str, call: ToolCall, text: str = "", at_ns: int = 0) -> bytes:
    """Return one entry about `call`. `at_ns`: by default the present time."""
    return entry(at_ns or time.time_ns(), kind, call.agent, call.tool, key, text)


def entry(at_ns: int, kind: str, agent: str, tool: str, key: str, text: str = "") -> bytes:
    """Return one entry as a line of a journal; see ``journal`` for the format."""
    data = f"{at_ns} {kind} {_word(agent)} {_word(tool)}".encode("ascii", "replace")
    data += b"\0" + escaped(key)
    if text:
        data += b"\0" + escaped(text[:LONGEST_TEXT])
    return data + b"\n"


def escaped(text: str) -> bytes:
    """Return `text` as bytes with backslash, newline and NUL escaped."""
    data = text.encode("utf-8", "surrogatepass")
    if b"\\" in data or b"\n" in data or b"\0" in data:
        data = data.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\0", b"\\0")
    return data


def state_of(path: str) -> str:
    """Return a string that changes whenever the file at `path` is modified or replaced; ``-`` for a missing file.

    States are only compared for equality: the file system's clock may differ from ours.
    """
    try:
        there = os.lstat(path)
    except (OSError, ValueError):
        return NO_FILE  # missing, or a path that cannot exist
    return f"{there.st_ctime_ns} {there.st_ino} {there.st_size}"


def first_line(runtime: str, session_id: str, top: str) -> bytes:
    """Return a journal's first entry: its session, and a folder of its place."""
    first = f"{time.time_ns()} session - {_word(runtime)}".encode("ascii", "replace")
    return first + b"\0" + escaped(session_id) + b"\0" + escaped(top) + b"\n"


def _word(text: str) -> str:
    """Return `text` as one word of safe characters, ``-`` if it is empty."""
    if not text:
        return "-"
    if not set(text) - _WORD:
        return text
    return "".join(letter if letter in _WORD else "_" for letter in text)


def keys_of(path: str) -> list[str]:
    """Return the keys for entries about the file at `path`."""
    if not _IGNORES_CASE:
        return [path]
    from swarm_hook_core.paths import NO_CASE, keys_for

    return [path, *(key for key in keys_for(path, "/") if key.startswith(NO_CASE))]
