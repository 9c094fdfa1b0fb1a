"""A tool call before it is made, and the facts by which it is judged.

    ToolCall ─▶ Check ─▶ rules.RULES ─▶ Verdict ─▶ afterwards.AFTERWARDS ─▶ words
                  ├─ writes           Writes: the files that the call changes, from any reader
                  ├─ trail            uncommitted changes: the own ones, and the way to those of other sessions
                  ├─ session, glance  the session that calls, and the first look at the store
                  ├─ reader           the store's locks
                  └─ peers, turn_files   locks of other sessions, and the files that they have for their turns

Each fact is found when a rule first asks for it, and kept: a call that meets no other session loads neither the shell
reader nor anything about locks.
"""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core.config import OPAQUE_TOOLS, SHELL_TOOLS, RuntimeConfig
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.lookup import FirstLook, Held, LockReader, Peers, Session
from swarm_hook_core.lookup.glance import StoreGlance
from swarm_hook_core.state import has_turn_files, local_store, shares_locks
from swarm_hook_core.traces import OFF
from swarm_hook_core.traces.trail import Trail, trail_of
from swarm_hook_core.traces.unread import redirected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.core import HookCore
    from swarm_hook_core.shell.model import Effects
    from swarm_hook_core.traces.turn_files import TurnFiles
    from swarm_hook_core.traces.whole_writes import Merge

MOST_PATCHED = 2000  # files of a patch inside a shell command
OTHERS_CHANGES = "what others have changed"
PERSONS_CHANGES = "what a person has changed"


class Writes:
    """The files that a call writes, removes and moves: one answer, from whichever reader knows the tool.

    A write tool and a patch *name* their files. A shell command, git and a tool of another MCP server have `effects`,
    which take a reader to find and may be a guess.
    """

    __slots__ = ("config", "call", "has_names", "is_read", "_named", "_changes", "_effects")

    def __init__(self, config: RuntimeConfig, call: ToolCall):
        self.config = config
        self.call = call
        self.has_names = call.tool in config.write_tools  # the call names all files that it writes
        self.is_read = False  # the effects were asked for
        self._named: list[tuple[str, str]] | None = None
        self._changes: list[tuple[str, str, str]] | None = None
        self._effects: Effects | None = None

    def are_possible(self) -> bool:
        """Return False for a tool that is known to write no files."""
        tool = self.call.tool
        if self.has_names or tool in SHELL_TOOLS or tool in OPAQUE_TOOLS:
            return True
        if not tool or tool in self.config.harmless_tools:
            return False
        from swarm_hook_core.mcp_writers import is_writer

        return is_writer(tool, self.call.input)

    @property
    def named(self) -> list[tuple[str, str]]:
        """``(folder, path as spelled)`` of the files that the call names, in order. Raises ValueError."""
        if self._named is None:
            if self.has_names:  # most calls: nothing is loaded for them
                self._named = [(self.call.folder, path) for path in self.config.extract_paths(self.call.input)]
            else:
                self._named = [(folder, path) for folder, path, _how in self.changes[:MOST_PATCHED]]
        return self._named

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """``(folder, path as spelled, how)`` of the same files; `how`: `EDIT`, .... Raises ValueError."""
        if self._changes is None:
            call = self.call
            if self.has_names:
                found = self.config.changes_of(call.tool, call.input)
                self._changes = [(call.folder, path, how) for path, how in found]
            else:
                from swarm_hook_core.opaque_calls import patched

                self._changes = patched(call.tool, call.input, call.folder)
        return self._changes

    @property
    def paths(self) -> list[str]:
        """Absolute paths of the same files, without repeats; empty if the input cannot be read."""
        try:
            named = self.named
        except ValueError:  # the rule about locks raises it
            return []
        return list(dict.fromkeys(os.path.normpath(os.path.join(folder, path)) for folder, path in named))

    @property
    def effects(self) -> Effects | None:
        """The effects of a call that does not name its files; None if it writes nothing. Loads the reader."""
        if not self.is_read and not self.has_names:
            from swarm_hook_core.opaque_calls import effects_of

            self._effects = effects_of(self.call)
            self.is_read = True
        return self._effects


class _LateReader:
    """Stands for the reader of the locks, which is loaded with the first question to it."""

    __slots__ = ("_glance", "_whole")

    def __init__(self, glance: FirstLook):
        self._glance = glance
        self._whole: LockReader | None = None

    def __getattr__(self, name: str) -> object:
        if self._whole is None:
            from swarm_hook_core.lookup.sqlite import whole

            self._whole = whole(self._glance)
        return getattr(self._whole, name)


class Check:
    """One call that is to be judged.

    is_part      the call is a part of a command that was judged, and is watched, as a whole
    is_question  the call is only asked about (``asked``): a rule leaves nothing behind, and does not wait
    is_over      a rule has found that the call needs no verdict
    now          Unix seconds when the session was found
    shared_trees the work trees that share locks with other machines, and how fresh these are (``LockReader``)
    """

    is_question = False

    def __init__(self, core: HookCore, call: ToolCall):
        self.core = core
        self.config = core.config
        self.call = call
        self.writes = Writes(core.config, call)
        self.verdict = Verdict()
        self.is_part = core.is_within
        self.is_over = False
        self._session: Session | None = None
        self._glance: FirstLook | None = None
        self._reader: LockReader | None = None
        self.turn_files: TurnFiles | None = None
        self.shared_trees: list[tuple[Any, ...]] = []
        self.now = 0.0
        self._trail: Trail | None = None
        self._has_sought_trail = False
        self._is_beside_others: bool | None = None
        self._peers: Peers | None = None
        self._neighbours: dict[str, list[Held]] | None = None  # None until it was asked for

    @property
    def trail(self) -> Trail | None:
        """The Trail of the call; None if this checkout wants no traces."""
        if not self._has_sought_trail:
            self._trail = self.find_trail()
            self._has_sought_trail = True
        return self._trail

    @property
    def merges(self) -> dict[str, Merge]:
        """The texts of the call that are merged with others' changes (``Trail.merges``)."""
        return self._trail.merges if self._trail is not None else {}

    def find_trail(self) -> Trail | None:
        """Return a new Trail."""
        return trail_of(self.config, self.call)

    @property
    def is_beside_others(self) -> bool:
        """True if a call that does not name its files has to be read although there may be no lock.

        So it is at level `turn`, and beside changes of other sessions and files that they have for their turns. A fault
        there is no reason to pass over locks.
        """
        if self._is_beside_others is None:
            self._is_beside_others = False
            if self.writes.has_names:
                return False

            try:
                self._is_beside_others = _has_company(self)
            except Exception as error:
                self.failed("traces", OTHERS_CHANGES, error)
        return self._is_beside_others

    def unnoted_trail(self) -> Trail | None:
        """Return a Trail for a checkout that wants no traces: a person's work is kept there, and nothing is denied."""
        if not self.call.session_id or not local_store():
            return None

        return Trail(self.config, self.call, OFF)

    @property
    def neighbours(self) -> dict[str, list[Held]]:
        """The other live sessions by the root of each (``head.neighbours``)."""
        if self._neighbours is None:
            from swarm_hook_core.traces import head

            file, self._neighbours = local_store(), {}
            if file:
                reader: LockReader
                if self.is_joined:
                    reader = self.reader
                else:
                    from swarm_hook_core.lookup.sqlite import StoreReader

                    reader = StoreReader(file, self.core.driver)
                self._neighbours = head.neighbours(reader, self.config.runtime_name, self.call.session_id, time.time())
        return self._neighbours

    @property
    def may_end_processes(self) -> bool:
        """True if the text of a command may end processes (``kills``). Costs a search."""
        if self.call.tool not in SHELL_TOOLS and self.call.tool not in OPAQUE_TOOLS:
            return False
        text = str(self.call.input)
        return "kill" in text or "fuser" in text

    @property
    def effects_if_read(self) -> Effects | None:
        """The effects of the call (``Writes.effects``) if it has been read, or has to be; else None, and unread."""
        return self.writes.effects if self.is_beside_others or self.writes.is_read else None

    @property
    def peers(self) -> Peers:
        """The locks of other sessions. Asked for once the session is found and the call has taken its files."""
        if self._peers is None:
            self._peers = Peers(self.reader, self.session.instance_id, self.now, self.call.agent, self.turn_files)
        return self._peers

    def find_session(self) -> None:
        """Find the session that makes the call, and a look at the store with the locks beside it.

        Both stay None if they are out of reach. The look at the store stays None too if the call does not have to be
        read and no other session has a lock: there are many shell calls, and few locks.
        """
        self._session, self._glance = self.session_and_glance()
        self._reader = None
        self.now = time.time()
        if self._glance is not None and self._glance.others_hold(self.session.instance_id):
            self.session.mounts = self._glance.other_mounts(self.session.root)

    @property
    def is_known(self) -> bool:
        """True if the session was found."""
        return self._session is not None

    @property
    def is_joined(self) -> bool:
        """True if the session and a reader of locks were found: the rules about other sessions can be asked."""
        return self._glance is not None

    @property
    def session(self) -> Session:
        """The session that makes the call. Only once it is found."""
        assert self._session is not None
        return self._session

    @property
    def glance(self) -> FirstLook:
        """The first look at the store. Only once it is found."""
        assert self._glance is not None
        return self._glance

    @property
    def reader(self) -> LockReader:
        """The reader of the locks. Only once `glance` is found; most checks ask it nothing."""
        if self._reader is None:
            late: Any = _LateReader(self.glance)
            self._reader = late
        reader: LockReader = self._reader
        return reader

    def forget_locks(self) -> None:
        """Have `peers` look the locks up again."""
        self._peers = self._reader = None

    def meets_locks(self) -> bool:
        """Return True if any other session has a lock at all, or a file for its turn."""
        has_files = self.turn_files is not None and self.turn_files.any()
        return has_files or self.glance.others_hold(self.session.instance_id)

    def session_and_glance(self) -> tuple[Session | None, FirstLook | None]:
        """Return the session and the look at the store for `find_session`."""
        call, config, core = self.call, self.config, self.core
        file = local_store()
        needs_lock = not self.writes.has_names and not self.is_beside_others
        if file:
            store = StoreGlance(file, core.driver, waits=True)
            session = store.session(config.runtime_name, call.session_id)
            if needs_lock and not self._has_to_be_asked(store, session):
                return session, None
            if session is not None:
                return session, store
        else:
            store = None
        from swarm_hook_core import registration

        if store is None and needs_lock and not registration.is_elsewhere(config, call.session_id):
            session, found = None, None
        else:
            session, found = registration.join(config, call, store, core.coordinator, core.driver)
        if session is None:
            from swarm_hook_core import fail_closed

            fail_closed.demand(config, call, "the store cannot be reached, or does not know this session")
        return session, found

    def _has_to_be_asked(self, store: StoreGlance, session: Session | None) -> bool:
        """Return True if others hold locks, locks may be unknown here, or the session has news or mail to hear."""
        if store.others_hold("") or self._may_miss_locks(store) or self.may_end_processes:
            return True
        if session is None:
            return False
        if self.is_in_linked_tree(session):
            from swarm_hook_core import fence

            if fence.may_cross(self, session.root):
                return True
        elif self.has_lost_tree(session):
            return True
        if store.has_news(session.instance_id):
            return True
        newest = store.newest_mail(session.instance_id)
        if not newest:
            return False
        from swarm_hook_core import session_memory

        return session_memory.is_mail_due(self.config, self.call, session.instance_id, newest)

    @staticmethod
    def _may_miss_locks(store: StoreGlance) -> bool:
        if not shares_locks():
            return False
        from swarm_hook_core.team import may_miss_locks

        return may_miss_locks(store)

    def is_in_linked_tree(self, session: Session | None = None) -> bool:
        """Return True if the session began where ``.git`` is a file: in a linked work tree, or a submodule.

        `session`: by default the one that was found.
        """
        root = (session or self.session).root
        try:
            return bool(root) and os.stat(root + "/.git").st_mode & 0o170000 == 0o100000
        except (OSError, ValueError):
            return False  # no work tree

    def has_lost_tree(self, session: Session | None = None) -> bool:
        """Return True if the folder where the session began is no work tree any more, and the call is made in the work
        tree around it: git falls through to that.
        """
        root = (session or self.session).root
        if not root or os.access(root + "/.git", os.F_OK):
            return False
        from swarm_hook_core.repository import top_around

        around = top_around(root)
        return bool(around) and top_around(self.call.folder + "/-") == around

    def look_again(self) -> bool:
        """Look for the session and the locks once more, since another session has come. Return `is_joined`."""
        self._has_sought_trail = False
        self._is_beside_others = True
        self.find_session()
        return self.is_joined

    def end(self) -> None:
        """Let the call go ahead without a verdict: no further rule is asked."""
        self.is_over = True

    def failed(self, part: str, unknown: str, error: Exception) -> None:
        """Record a fault in a part of the check. Raises NotChecked if a person wants unchecked calls denied.

        unknown  the facts that could not be found, for the denial; empty if the fault is no reason to deny
        """
        self.core.record_fault(part, error)
        if unknown:
            from swarm_hook_core import fail_closed, state

            fail_closed.demand(self.config, self.call, f"{unknown}: {state.describe(error)}")


# A first look at a call that does not name its files: may it meet others' work, or a person's?
#
# A call that may has to be read, and the answer True costs that full reading. So the common commands (`ls`, `git
# status`, `pytest`) get False. A text that hides its programs (a script, an alias of the shell, a computed name) gets
# False, too.

# Words of commands that use or move HEAD, or remove a lock of git's; and of those that lead into another work tree.
_OF_HEAD = ("commit", "checkout", "switch", "reset", "rebase", "merge", "pull", "branch", "push", "stash", ".lock",
            "update-ref", "HEAD refs/")  # fmt: skip
_OF_OTHER_TREES = ("-C", "cd ", "--git-dir", "--work-tree", "GIT_DIR", "pushd ")
# Parts of a shell command that may destroy a file; `may_destroy` looks closer at a text with one of them.
_DESTROYERS = (
    "git", "rm", "mv", "cp", ">", "tee", "dd", "sed", "truncate", "rsync", "link", "tar", "zip", "shred", "curl",
    "wget", "install", "ln", "patch", "split", "sponge", "sort", "trash", "perl", "ruby", "awk", "write", "shutil",
    "'w", '"w', "os.re", "-delete", "-exec", "-fprint", "jj ", "but ", "gt ", "sl ",
)  # fmt: skip
# Programs that replace or remove files; a text without one of them, a `>` or git's verbs is harmless.
_DESTROYING = frozenset(
    "rm mv cp tee truncate rsync unlink shred dd install ln curl wget tar unzip patch sponge split sort trash"
    " jj but gt sl".split()
)
# With these, an option or a word in the text says more.
_IN_PLACE = ("sed", "perl", "ruby", "gawk", "awk")
_INLINE = ("write_text", "write_bytes", "unlink", "rmtree", "os.remove", "os.rename", "os.replace", "shutil.",
          "'w'", '"w"', "'wb'", '"wb"', "writeFile", "rmSync", "File.write", "-delete", "-exec", "-fprint",
          "*** Begin Patch")  # fmt: skip
# Programs that run tests and builds, or check the code (``failures``): a look at the text says that a call may be one.
_BUILDERS = frozenset(
    "pytest unittest tox nox make ninja cmake ctest cargo go npm npx pnpm yarn bun bunx deno node jest vitest mocha"
    " playwright tsc eslint biome mypy pyright ruff flake8 pylint mvn mvnw gradle gradlew gcc g++ cc c++ clang clang++"
    " rustc javac dotnet swift rspec rake rails mix phpunit composer bazel sbt meson just task nx turbo".split()
)
# Subcommands of git that neither lose nor commit a change of the work tree. All others are looked at, also aliases.
_HARMLESS = frozenset(
    "status diff log show push fetch branch blame grep ls-files rev-parse remote tag config describe init"
    " clone rev-list cat-file ls-tree shortlog reflog merge-base for-each-ref symbolic-ref show-ref ls-remote"
    " check-ignore diff-tree diff-index diff-files notes bisect version help whatchanged name-rev archive"
    " var count-objects fsck gc".split()
)
_ADDS = ("add", "stage")
_SWEEPING = ("-A", "-u", "--all", "--update", ".", "./", "..", "*", ":/", "-Av", "-vA", "--no-ignore-removal")
_DELETING = frozenset(("-D", "-f", "--force", "-df", "-fd"))  # of a branch, with its commits
_QUIET_STASH = ("list", "show")
_VALUED = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path")  # git's options with a value
_APART = str.maketrans(dict.fromkeys(";|&()`'\"\n\t{}=", " "))


def _has_company(check: Check) -> bool:
    """Return True if a call that does not name its files has to be read, although there may be no lock."""
    trail = check.trail
    if _may_destroy(check) and local_store():
        return True
    if trail is not None and (trail.is_by_turn or not trail.is_alone() or trail.may_lead_elsewhere()):
        return True
    if trail is not None and _shares_head(check):
        return True
    if not has_turn_files():
        return False
    from swarm_hook_core.traces.turn_files import of_others

    return bool(of_others(check.config.runtime_name, check.call, time.time_ns()))


def _shares_head(check: Check) -> bool:
    """Return True if the call may use or move HEAD, and other sessions work in the same work tree."""
    command = check.call.input.get("command") if isinstance(check.call.input, dict) else None
    if not isinstance(command, str) or "git" not in command or not any(word in command for word in _OF_HEAD):
        return False
    from swarm_hook_core.traces import head

    top = head.top_of(check.call.folder)
    if check.neighbours and (top in check.neighbours or any(word in command for word in _OF_OTHER_TREES)):
        return True
    if top is not None and not check.is_question:  # it may move HEAD, and is not read
        head.forget_note(check.config.runtime_name, check.call.session_id, top)
    return False


def _may_destroy(check: Check) -> bool:
    """Return True if the call may destroy a person's uncommitted work, by a first look at its text."""
    call = check.call
    if call.tool not in SHELL_TOOLS or not isinstance(call.input, dict):
        return call.tool not in OPAQUE_TOOLS  # few clients; tools of servers are read in any case
    text = call.input.get("command")
    if not isinstance(text, str):
        return True
    if not any(mark in text for mark in _DESTROYERS):
        return False
    return may_destroy(text, call.folder)


def may_destroy(text: str, folder: str) -> bool:
    """Return True if the shell command `text`, run in `folder`, may replace, remove, sweep away or commit a file."""
    words = text.translate(_APART).split()
    names = [word.rpartition("/")[2] for word in words]
    if not _DESTROYING.isdisjoint(names):
        return True
    if ">" in text and any(_may_exist(target, text, folder) for target in redirected(text)):
        return True
    if "git" in names and any(_is_git_verb(words, place) for place, name in enumerate(names) if name == "git"):
        return True
    if any(word.startswith(("-i", "--in-place", "-pi", "-ni")) for word in words):
        return not set(_IN_PLACE).isdisjoint(names)
    return any(mark in text for mark in _INLINE)


def may_build(call: ToolCall) -> bool:
    """Return True if a call may run tests, a build or a check of the code, by a first look at its text."""
    if call.tool not in SHELL_TOOLS or not isinstance(call.input, dict):
        return False
    text = call.input.get("command")
    return isinstance(text, str) and not _BUILDERS.isdisjoint(
        word.rpartition("/")[2] for word in text.translate(_APART).split()
    )


def _is_git_verb(words: list[str], place: int) -> bool:
    """Return True if the git command at index `place` may lose a change of the work tree, or take it along."""
    place += 1
    while place < len(words) and words[place][:1] == "-":
        place += 1 + (words[place] in _VALUED)
    verb, after = [*words[place : place + 2], "", ""][:2]
    if verb == "branch" and not _DELETING.isdisjoint(words[place:]):
        return True
    if verb in _HARMLESS or not verb or (verb == "stash" and after in _QUIET_STASH):
        return False
    if verb in _ADDS:  # files that are named are meant
        return not set(_SWEEPING).isdisjoint(words[place:])
    return verb != "worktree" or after not in ("list", "add")


def _may_exist(word: str, text: str, folder: str) -> bool:
    """Return True if `word`, the target of a redirection, may name a file that exists."""
    if any(sign in word for sign in "$*?[~\\") or "cd" in text or "pushd" in text:
        return True
    try:
        return os.path.lexists(os.path.join(folder, word))
    except ValueError:
        return False  # the text cannot be a path
