"""Locks that nobody has to take: what sessions have written and not committed, and what that comes to for others.

Hooks write nothing into the store, so each session has files of its own, its *journals*, that its hooks append to. A
*trace* is a write that is noted in one. Here is what is on the way of every write, also of a session that is alone:
what a call leaves. The rest is loaded where another session has left something in the same repository.

    journal    what is in those files, and reading them
    elsewhere  other repositories in which others have left something, and whether a command could lead there
    meetings   a call that meets what others have written; it composes
      others     what another session's journal says, and whether its writer lives
      unread     commands that nobody had read when they ran
      machines   what sessions on other machines of a team have written and not pushed
      seen       what the session itself knows of a file
      transcript what its client has shown to its model of one, where no hook sees that
      looks      which files a command shows it, whole or in what has changed
      endings    calls that are over, so that what they have not written by then is not waited for
      new_text   what a call is about to put in the place of a file, and whether the other's lines are in it
      committed  what git says of it
      asides     commits whose hooks put changes aside while they run
      clearing   folders that it removes, and what git commands in it throw away, as a whole
    verdict    what that comes to, by the level
    sweeps     a git command that would throw it away, or take it along
    claims     locks that a session has for a turn, without asking for them
    news       what a session is told of others' changes when it starts, and at each turn
    pruning    journals that mean nothing any more
"""

import os
import sys
import time

from swarm_hook_core.config import SHELL_TOOLS
from swarm_hook_core.state import (
    PLAIN,
    NotOrdinary,
    clear_place,
    config_path,
    local_store,
    name_of,
    open_in_private,
    state_dir,
    write_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# How far a session is kept from what others have changed: each level holds what the one before it does.
OFF, NOTICE, KEEP, TURN = LEVELS = ("off", "notice", "keep", "turn")
DEFAULT = KEEP

LIMIT_BYTES = 256 * 1024  # of a journal, which then begins anew; the part before it stays
LONGEST_TEXT = 16 * 1024  # characters of a command that is kept unread
MOST = 400  # files of one call that are noted one by one
DEEP = 30  # folders over a file; where there are more, what is there of them is found from the top down
FEW = 3  # files of one call for which nothing is loaded that remembers the folders it has resolved
MOST_CLAIMS = 100  # files of one call that are claimed for its turn
NO_FILE = "-"  # in an entry, the state of a file that is not there
_OF_LINKS = ("mv", "ln")  # programs that put something in the place of a link, not of what it leads to
_WORD = PLAIN | frozenset("_.:/@")
_IGNORES_CASE = sys.platform in ("darwin", "win32")  # where mostly names are the same in all letter cases


class Trail:
    """What is to be noted of `call` once it may pass, by the session that makes it; `leave` writes it down.

    level     the level in force for it
    owners    what the owners of files are to hear of it: ``(Trace, how, by, where the content before is kept, how often
              it was denied)``
    is_asked  True for a call that is only asked about (``asked``): nothing is written down then
    """

    is_asked = False

    __slots__ = (
        "config", "call", "level", "own_name", "owners",
        "_places", "_lines", "_left", "_real", "_of_others", "_targets",
    )  # fmt: skip
    _real: "Callable[[str], str] | None"

    def __init__(self, config, call, level: str):
        self.config = config
        self.call = call
        self.level = level
        self.own_name = journal_name(config.runtime_name, call.session_id)
        self.owners: list = []
        self._places: dict = {}  # folder -> place
        self._lines: dict = {}  # place -> entries to be appended
        self._left: list = []  # places in which it has left entries
        self._real = None  # as ``paths.real_paths`` makes it, once a path was resolved
        self._targets: list | None = None  # as `targets_of` has them, once they were asked for
        self._of_others: dict | None = None  # as ``elsewhere.places_of_others`` has them, once that was asked

    @property
    def is_by_turn(self) -> bool:
        """Whether the call claims what it writes for its turn."""
        return self.level == TURN

    def place_of(self, folder: str) -> str:
        """The folder of the journals of absolute `folder`."""
        if folder not in self._places:
            self._places[folder] = place_of(folder)
        return self._places[folder]

    def is_alone(self, paths=()) -> bool:
        """Whether no other session has a journal where these files are, or where the call is made."""
        folders = dict.fromkeys([self.call.folder, *map(os.path.dirname, paths)])
        return not any(others_in(place, self.own_name) for place in {self.place_of(folder) for folder in folders})

    def pass_over(self, error: OSError) -> None:
        """Record that a journal cannot be read. Raises NotChecked where a person wants the call denied for that."""
        from swarm_hook_core import fail_closed, faults

        if not self.is_asked:
            faults.record_hourly(self.config.runtime_name, "traces", faults.describe(error))
        fail_closed.demand(self.config, self.call, f"what others have changed: {error}")

    def may_lead_elsewhere(self) -> bool:
        """Whether a call that does not say its files could reach a place elsewhere in which others have journals.

        Nearly always there is no other place: then one look into a folder is all.
        """
        own = os.path.basename(self.place_of(self.call.folder))
        try:
            names = os.listdir(traces_dir())
        except (FileNotFoundError, NotADirectoryError):
            return False
        if not names or names == [own]:
            return False
        from swarm_hook_core.traces.elsewhere import could_lead

        return could_lead(self.call, self._places_of_others())

    def places_with(self, root: str) -> dict:
        """``{place: folders in it}`` of what is at and below absolute `root`, other repositories inside it too."""
        from swarm_hook_core.traces.elsewhere import below

        own, inside = self.place_of(root), below(self._places_of_others(), root)
        return {**inside, own: [root, *inside.get(own, ())]}

    def _places_of_others(self) -> dict:
        if self._of_others is None:
            from swarm_hook_core.traces.elsewhere import places_of_others

            self._of_others = places_of_others(self.own_name)
        return self._of_others

    def note_alone(self, effects) -> bool:
        """Add the traces of the call if no other session has any where it writes; whether that is so.

        `effects`: what a call that does not say its files does, None where nobody has looked.
        """
        call = self.call
        if call.tool in self.config.write_tools:
            spelled = self.config.extract_paths(call.input)[:MOST]
            if self._real is None and len(spelled) <= FEW:
                self._real = os.path.realpath
            paths = [self._resolved(call.folder, path) for path in spelled]
        else:
            paths = [target[1] for target in self.targets_of(effects)]
        git_calls = effects.git if effects is not None else ()
        read = [os.path.join(one.folder, one.path) for one in effects.reads] if effects is not None else ()
        if not self.is_alone([*paths, *read, *(os.path.join(top, ".git") for top in _tops_of(git_calls))]):
            return False
        places = [place for tree in effects.trees for place in self.places_with(tree.root)] if effects else ()
        if any(others_in(place, self.own_name) for place in dict.fromkeys(places)):
            return False
        self.wrote(filter(None, paths))
        self.note_unnamed(effects)
        if git_calls:
            from swarm_hook_core.traces import stash_entries

            stash_entries.note(git_calls, self)
        if effects is not None and (effects.trees or git_calls):
            from swarm_hook_core.traces import clearing

            clearing.note(self, "clears", clearing.places_of(effects))
        return True

    def targets_of(self, effects) -> list:
        """``(path as spelled, resolved path, how, by)`` of the files that the call certainly writes.

        Of a link that is removed or put in place of the resolved path is that of the link itself.

        `effects`: what a call that does not say so does, None where nobody has looked; the same each time. Raises
        ValueError where the input of a call cannot be read.
        """
        if self._targets is None:
            self._targets = self._find_targets(effects)
        return self._targets

    def _find_targets(self, effects) -> list:
        from swarm_hook_core.targets import changes

        call = self.call
        found = [(*change, "") for change in changes(self.config, call.tool, call.input, call.folder)]
        found += [(write.folder, write.path, write.how, write.by) for write in effects.writes] if effects else []
        return [
            (os.path.join(folder, path), resolved, how, by)
            for folder, path, how, by in found[:MOST]
            if (resolved := self._resolved(folder, path, how == "remove" or by.partition(" ")[0] in _OF_LINKS))
        ]

    def claims_of(self, effects) -> list:
        """``(key, absolute path)`` of the files that the call certainly writes, as locks are stored."""
        from swarm_hook_core.paths import key_of

        return [(key_of(target[1]), target[1]) for target in self.targets_of(effects)[:MOST_CLAIMS]]

    def wrote(self, paths) -> None:
        """Add writes of the files at these `paths`, without links."""
        for path in paths:
            self.note("wrote", path)

    def looked_at(self, folder: str, path: str) -> list:
        """The paths without links of the file at `path`, as spelled in `folder`, and of a link that leads there."""
        found = (self._resolved(folder, path), self._resolved(folder, path, of_link=True))
        return [*dict.fromkeys(filter(None, found))]

    def _resolved(self, folder: str, path: str, of_link: bool = False) -> str:
        """The path without links of `path`, as spelled in `folder`; empty where the text can name no file.

        `of_link`: if that is a link, its own path.
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
            return ""

    def note(self, kind: str, path: str, text: str = "", at_ns: int = 0) -> None:
        """Add an entry about the file at `path`, which is without links. `text`: by default what its state is now."""
        lines = self._lines.setdefault(self.place_of(os.path.dirname(path)), [])
        if len(lines) < MOST:
            text = text or state_of(path)
            lines += [line(kind, key, self.call, text, at_ns) for key in keys_of(path)]

    def note_at(self, folder: str, kind: str, text: str = "", at_ns: int = 0, place: str = "") -> None:
        """Add an entry about `folder` itself, in `place`: by default its own."""
        lines = self._lines.setdefault(place or self.place_of(folder), [])
        lines.append(line(kind, folder, self.call, text, at_ns))

    def note_unread(self) -> None:
        """Add the traces of a call that nobody has looked at, since no other session has any beside it."""
        call, command = self.call, None
        if call.tool in SHELL_TOOLS:
            given = call.input.get("command") if isinstance(call.input, dict) else None
            if isinstance(given, str):
                command = given
            else:  # few clients; it takes time to load
                from swarm_hook_core.targets import shell_text

                command = shell_text(call.tool, call.input)
        if command is not None and len(command) <= LONGEST_TEXT:
            self.note_at(call.folder, "ran", command)
        else:
            from swarm_hook_core.opaque_calls import effects_of

            self.wrote(target[1] for target in self.targets_of(effects_of(call)))

    def note_unnamed(self, effects) -> None:
        """Add what else a call writes than the files that it names: what git moves, and its text where it is more.

        Whoever meets one of these files reads it then.
        """
        if effects is None or self.call.tool not in SHELL_TOOLS:
            return
        from swarm_hook_core.change import REMOVE
        from swarm_hook_core.targets import shell_text

        if any(tree.how != REMOVE for tree in effects.trees):
            self.note_at(self.call.folder, "ran", shell_text(self.call.tool, self.call.input))
        for git_call in effects.git:
            if git_call.words[0] == "mv":
                from swarm_hook_core.shell.programs.git.uncommitted import moved_to

                self.wrote(self._resolved("/", path) for path in moved_to(git_call))

    def leave(self) -> None:
        """Append what was noted. Raises OSError."""
        for place, lines in self._lines.items():
            self._append(place, lines)
        self._left += self._lines
        self._lines = {}

    def drop(self) -> None:
        """Forget what was noted and could not be appended."""
        self._lines = {}

    def has_company(self) -> bool:
        """Whether another session has a journal by now where this call has left entries.

        Whoever is alone notes first and looks once more: else two that begin at the same moment miss each other.
        """
        return any(others_in(place, self.own_name) for place in self._left)

    def top_of(self, place: str) -> str:
        """The folder that `place` is about, of those that were asked for."""
        return next((os.path.realpath(_top(folder)[0]) for folder in self._places if self._places[folder] == place), "")

    def _append(self, place: str, lines: list) -> None:
        path = os.path.join(place, self.own_name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            handle = open_in_private(path, flags)
        except NotOrdinary:  # nothing of it would be noted, as long as that stands there
            clear_place(path)
            handle = open_in_private(path, flags)
        try:
            size = os.fstat(handle).st_size
            if not size:
                own = first_line(self.config.runtime_name, self.call.session_id, self.top_of(place))
                lines = [own, *lines]
            write_all(handle, b"\n" + b"".join(lines))  # what a full disk has torn is a line of its own
            if size > LIMIT_BYTES:
                _begin_anew(path, handle)
        finally:
            os.close(handle)


def level(prefix: str, folder: str) -> str:
    """The level in force in `folder`, for the runtime whose variables have `prefix` in their names. Never raises.

    ``settings.auto`` says where it may be set. Where nothing is, this costs one look at the disk.
    """
    for name in (f"SWARM_{prefix}_AUTO", "SWARM_AUTO"):
        word = os.environ.get(name, "").strip().lower()
        if word in LEVELS:
            return word
        if word:
            break  # no level: to be told
    else:
        try:
            os.stat(config_path())
        except (OSError, ValueError):
            return DEFAULT
    from swarm_hook_core.settings import auto

    return auto(prefix, folder).value


def trail_of(config, call) -> "Trail | None":
    """Return the Trail of a call; None if its checkout wants no traces.

    So it is too without a store: nothing else says whose the traces are, and nobody would remove them.
    """
    if not call.session_id or not local_store():
        return None
    found = level(config.env_prefix, call.folder)
    return None if found == OFF else Trail(config, call, found)


def _begin_anew(path: str, handle: int) -> None:
    """Put the journal at `path`, open as `handle`, aside; unless another call of the session has done so just now."""
    try:
        import fcntl
    except ImportError:
        pass  # Windows: calls of one session that are made at once may put it aside twice
    else:
        fcntl.flock(handle, fcntl.LOCK_EX)  # until it is closed
    try:
        is_there = os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return
    if is_there:
        os.replace(path, path + ".1")


def traces_dir() -> str:
    """The folder of all places. It need not exist."""
    return os.path.join(state_dir(), "traces")


def place_of(folder: str) -> str:
    """The place that the files in absolute `folder` belong to: named by the number of a folder, which work trees share.

    It need not exist. Raises OSError where not even the folders over it can be seen.
    """
    top, found = _top(folder)
    if found is None:
        return _named(os.stat(top))
    if found.st_mode & 0o170000 != 0o040000:  # a work tree's
        from swarm_hook_core.repository import tree_at

        tree = tree_at(top)
        found = os.stat(tree.common if tree is not None else top)
    return _named(found)


def _top(folder: str) -> tuple:
    """The top of the work tree that absolute `folder` is in, and what the disk says of the ``.git`` in it.

    Where it is in none: ``(the nearest folder that is there, None)``.
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
    """Absolute `folder`, or where that is not there the nearest folder over it that is: found from the top down."""
    found = ""
    for name in folder.split("/")[1:]:
        if not os.path.exists(f"{found}/{name}"):
            break
        found += f"/{name}"
    return found or "/"


def _tops_of(git_calls) -> list:
    """The folders of the work trees that these GitCalls work on."""
    if not git_calls:
        return []
    from swarm_hook_core.shell.programs.git.command_line import tree_of

    # Of very many commands most are alike: by folder and by what says which repository.
    alike = {(one.folder, *one.top, *map(str, one.environment.items())): one for one in git_calls}
    return [tree_of(git_call) or git_call.folder for git_call in alike.values()]


def _named(found) -> str:
    return os.path.join(traces_dir(), f"{found.st_dev:x}.{found.st_ino:x}")


def journal_name(runtime: str, session_id: str) -> str:
    """The name of a session's journal in every place."""
    return f"{name_of(runtime)}.{name_of(session_id)}"


def others_in(place: str, own_name: str) -> list:
    """Paths of the journals of all other sessions in `place`."""
    try:
        names = os.listdir(place)
    except (FileNotFoundError, NotADirectoryError):
        return []
    own = (own_name, own_name + ".1")
    return list({os.path.join(place, name.removesuffix(".1")) for name in names if name not in own})


def line(kind: str, key: str, call, text: str = "", at_ns: int = 0) -> bytes:
    """One entry about what `call` does; of this moment, where `at_ns` says no other."""
    return entry(at_ns or time.time_ns(), kind, call.agent, call.tool, key, text)


def entry(at_ns: int, kind: str, agent: str, tool: str, key: str, text: str = "") -> bytes:
    """One entry, as ``journal`` has them."""
    data = f"{at_ns} {kind} {_word(agent)} {_word(tool)}".encode("ascii", "replace")
    data += b"\0" + escaped(key)
    if text:
        data += b"\0" + escaped(text[:LONGEST_TEXT])
    return data + b"\n"


def escaped(text: str) -> bytes:
    """`text` as it stands in an entry."""
    data = text.encode("utf-8", "surrogatepass")
    if b"\\" in data or b"\n" in data or b"\0" in data:
        data = data.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\0", b"\\0")
    return data


def state_of(path: str) -> str:
    """What is another text once the file at `path` was changed or has made room for another; ``-`` where none is.

    It is compared with itself alone: the clock of a file system need not go as ours does.
    """
    try:
        there = os.lstat(path)
    except (OSError, ValueError):
        return NO_FILE
    return f"{there.st_ctime_ns} {there.st_ino} {there.st_size}"


def first_line(runtime: str, session_id: str, top: str) -> bytes:
    """The first entry of a journal: whose it is, and a folder of its place."""
    first = f"{time.time_ns()} session - {_word(runtime)}".encode("ascii", "replace")
    return first + b"\0" + escaped(session_id) + b"\0" + escaped(top) + b"\n"


def _word(text: str) -> str:
    """`text` as one plain word; ``-`` for none."""
    if not text:
        return "-"
    return text if not set(text) - _WORD else "".join(letter if letter in _WORD else "_" for letter in text)


def keys_of(path: str) -> list:
    """The keys that the file at `path` is noted under."""
    if not _IGNORES_CASE:
        return [path]
    from swarm_hook_core.paths import NO_CASE, keys_for

    return [path, *(key for key in keys_for(path, "/") if key.startswith(NO_CASE))]
