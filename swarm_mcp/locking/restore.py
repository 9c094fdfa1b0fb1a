"""Restoring of a file's content from before a call changed it: under a lock, or over uncommitted work.

It happens only on request.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from swarm_hook_core.naming import holder_name, session_name
from swarm_hook_core.paths import FolderOf, git_root, key_of, keys_for, own_path
from swarm_hook_core.state import open_private, state_dir, write_all
from swarm_hook_core.traces import AFTER, LOOK
from swarm_hook_core.traces.versions.notes import has_sessions, note_undo
from swarm_hook_core.traces.versions.stored import Kept, NotKept, Version, contents_below, contents_of, version_at
from swarm_hook_core.untrusted_text import token
from swarm_hook_core.watching.records import digest_of, full_resolved, glance
from swarm_mcp import contributions
from swarm_mcp.answers.people import People
from swarm_mcp.domain import Breach, Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import clean, current_scope, file_of
from swarm_mcp.store import Store
from swarm_mcp.store.messages import may_meet

FindSession = Callable[[str, str], Session | None]

# The earlier contents of files that hooks have kept, as `restore` lists and reads them.


class Content:
    """One kept content.

    path    of the copy
    file    digest of the key that its file had then
    digest  of its bytes
    mode    the file's permissions
    size    in bytes
    at      time when it was kept, in Unix seconds
    by      name of the journal of the session that kept it, may be empty
    is_look  True if it was kept after that session's write, not before
    """

    def __init__(
        self, path: str, file: str, digest: str, mode: int, size: int, at: int, by: str = "", is_look: bool = False
    ):
        self.path = path
        self.file = file
        self.digest = digest
        self.mode = mode
        self.size = size
        self.at = at
        self.by = by
        self.is_look = is_look

    @property
    def identity(self) -> tuple[str, str]:
        """The file and its bytes, by their digests."""
        return self.file, self.digest

    def read(self) -> bytes:
        """Return the bytes. Raises OSError if they are gone or were changed."""
        version = version_at(self.path)
        if version is None or digest_of(version.content()) != self.digest:
            raise OSError(f"{self.path} has been changed")
        return version.content()


def of_file(path: str) -> list[Content]:
    """Return the contents of the file at absolute `path`, the newest first.

    Also those of a link at the path itself, or of a file in whose place the link is now.
    """
    names = dict.fromkeys((os.path.realpath(path), own_path(path)))
    found = [one for name in names for one in _copies(name, contents_of(name))]
    return sorted(found, key=lambda one: -one.at)


def below(folders: Iterable[str]) -> dict[str, list[Content]]:
    """Return ``{path: contents}``, the newest first, of files below the absolute `folders`."""
    found: dict[str, list[Content]] = {}
    for folder in {os.path.realpath(one) for one in folders}:
        for path, versions in contents_below(folder).items():
            if contents := _copies(path, versions):
                found[path] = contents
    return found


def at(path: str, key: str) -> Content | None:
    """Return the content kept at `path`, of the file that had this `key`; None if nothing is kept there."""
    if not path.startswith(os.path.join(state_dir(), "kept", "")):
        return None
    version = version_at(path)
    if version is None or not version.exists:
        return None
    return next(iter(_contents(file_digest(key), [version])), None)


def file_digest(key: str) -> str:
    """Return the digest of a file's key."""
    return digest_of(os.fsencode(key))


def _copies(path: str, versions: list[Version]) -> list[Content]:
    """Return the versions of the file at `path`, links resolved but for a link that is meant itself."""
    if os.path.islink(path):
        return _contents(file_digest(path), versions)
    return _contents(file_digest(key_of(path)), versions)


def _contents(file: str, versions: list[Version]) -> list[Content]:
    found = []
    for one in versions:
        about = one.size, one.at_ns // 10**9, one.journal, one.is_look
        if one.facts is not None:
            found.append(Content(one.path, file, one.facts.digest, one.facts.mode, *about))
            continue
        try:
            digest = digest_of(one.content())
        except OSError:
            continue  # removed just now
        found.append(Content(one.path, file, digest, one.mode | stat.S_IWUSR, *about))
    return found


LARGEST_KEPT = 16 * 1024 * 1024  # Bytes of replaced content that are kept, so that a restore can be undone.


class Choice:
    """One earlier state of the file: a kept `content`, or its absence (`removes`).

    `name` is its word for ``--id``; `at` the time when it was kept in Unix seconds; `by` the author of the change that
    ended it, or of the state itself ("as ... left it"); `key` a digest of the file's key then.
    """

    def __init__(self, name: str, at: int, by: str, content: Content | None, key: str):
        self.name = name
        self.at = at
        self.by = by
        self.content = content
        self.key = key

    @property
    def removes(self) -> bool:
        """Return True if restoring this state removes the file."""
        return self.content is None

    def described(self) -> dict[str, Any]:
        """For machines: ``{id, at, by, removes, size, kept}``."""
        size, kept = (self.content.size, self.content.path) if self.content else (0, None)
        return {"id": self.name, "at": self.at, "by": self.by, "removes": self.removes, "size": size, "kept": kept}


class Restoring:
    """The states that the file meant by `word` can be restored to, for `session` (None: a person)."""

    def __init__(self, store: Store, session: Session | None, word: str):
        self.store = store
        self.session = session
        if session:
            self.file = file_of(session, word)
        else:
            self.file = clean(word)
        self._resolved = own_path(self.file)  # links are followed once; one that comes later is not
        self.kept_now = ""  # where the content is that has been replaced
        self.left_out = ""  # permissions that were not restored

    def choices(self) -> list[Choice]:
        """Return the earlier states, the latest first; contents that were not changed under a lock come last."""
        file = self.file
        keys = list(dict.fromkeys([*keys_for(file, os.sep), *keys_for(own_path(file), os.sep), key_of(file)]))
        rows = self.store.breaches.of(self.file, keys)
        found = choices_of(rows, self.session)
        of_sessions = _without_repeats(of_file(self.file), found)
        find = cache(self.store.instances.of_session)
        return found + [_unnamed(find, one, self.session) for one in of_sessions]

    def owners(self) -> list[str]:
        """Return the names of the others with uncommitted changes in the file."""
        people = People(self.store, token((self.session and self.session.label) or "", "identity"))
        own_id = self.session.id if self.session else ""
        edits = contributions.uncommitted(self.store, git_root(os.path.dirname(self._resolved)), people)
        theirs = [one for one in edits if one.path == self._resolved and one.instance_id != own_id]
        return list(dict.fromkeys(one.name for one in theirs))

    def choose(self, name: str) -> Choice:
        """The state called `name`; without a name the latest that is not the present one. Raises SwarmError."""
        choices = self.choices()
        if name:
            found = [choice for choice in choices if choice.name == name]
            if not found:
                raise SwarmError(f"no earlier content of {self.file} is called {name[:40]!r}: --list shows what is")
            return found[0]
        present = full_resolved(self._resolved)
        for choice in choices:
            if self._is_elsewhere(choice):
                return choice
            if choice.content is None:
                if present.exists:
                    return choice
            elif (choice.content.digest, choice.content.mode) != (present.digest, present.mode & 0o7777):
                return choice
        raise SwarmError(f"{self.file} is as it was" if choices else self.nothing())

    def nothing(self) -> str:
        """Why there is no choice, in one line."""
        return (
            f"no earlier content of {self.file} is kept: it is for 7 days, of files up to 1 MiB that were locked"
            " while another session ran a command, and of files that a session has written with hooks"
        )

    def restore(self, choice: Choice, force: bool, dry_run: bool) -> None:
        """Bring the file back to this state; its present content is kept first. Raises SwarmError."""
        present = full_resolved(self._resolved)
        if (present.is_plain or not present.exists) and self._is_elsewhere(choice):
            raise SwarmError(
                f"a link over {self.file} leads to {self._resolved} by now, which is another file:"
                " it is left alone; --to PATH writes elsewhere"
            )
        if choice.removes and not force:
            raise SwarmError(f"there was no {self.file} before: --force removes it (what is in it is kept first)")
        if present.exists and not present.is_plain:
            raise SwarmError(f"{self.file} is no plain file by now: it is left alone; --to PATH writes elsewhere")
        if choice.content is None:
            data = b""
        else:
            data = _read(choice.content)
        if present.exists and not dry_run:
            self.kept_now = self._keep_present(force)
        if dry_run:
            return
        at_ns = time.time_ns()
        try:
            self._note(LOOK, at_ns)
            with FolderOf(self._resolved, makes=choice.content is not None) as (name, folder):
                if choice.content is None:
                    os.unlink(name, dir_fd=folder)
                else:
                    self.left_out = _replace(name, folder, data, choice.content.mode)
            self._note(AFTER, max(time.time_ns(), at_ns + 1))
        except OSError as error:
            raise SwarmError(f"{self.file} cannot be restored: {error.strerror or error}") from None
        if choice.content:
            source = choice.content.path
        else:
            source = ""
        self.store.breaches.restored(self.session, self.file, self.kept_now, source, current_scope())

    def _note(self, mark: str, at_ns: int) -> None:
        """Note the content before or after as that of an undo: lines that come back keep their authors."""
        by = ("", "")
        if self.session is not None and self.session.session_id:
            by = (self.session.runtime or "", self.session.session_id)
        if has_sessions(self._resolved):
            with contextlib.suppress(OSError):  # a full disk: the file comes back all the same
                note_undo(self._resolved, mark, at_ns, by)

    def write_to(self, choice: Choice, place: str, dry_run: bool) -> str:
        """Write the earlier content to a new file `place`, and return its whole path. Raises SwarmError."""
        if self.session:
            path = file_of(self.session, place)
        else:
            path = clean(place)
        if choice.content is None:
            raise SwarmError(f"there was no {self.file} before: nothing to write")
        if glance(path).exists:
            raise SwarmError(f"{path} is there already: it is left alone")
        data = _read(choice.content)
        if not dry_run:
            try:
                with FolderOf(own_path(path)) as (name, folder):
                    self.left_out = _replace(name, folder, data, choice.content.mode)
            except OSError as error:
                raise SwarmError(f"{path} cannot be written: {error.strerror or error}") from None
        return path

    def _is_elsewhere(self, choice: Choice) -> bool:
        """Return True if the file's name leads to another file than it did then: links have come or gone."""
        return choice.key not in {file_digest(key) for key in keys_for(self._resolved, os.sep)}

    def _keep_present(self, force: bool) -> str:
        try:
            return Kept(is_resolved=True).keep(self._resolved, LARGEST_KEPT)[1].path
        except (NotKept, OSError) as error:
            if force:
                return ""
            raise SwarmError(
                f"what is in {self.file} now could not be kept ({error}), so this could not be undone:"
                " --force does it all the same"
            ) from None


def choices_of(rows: list[Breach], session: Session | None) -> list[Choice]:
    """The earlier states that these rows of the store tell of, as far as they can be had, for `session` to see."""
    found = []
    for row in rows:
        content = at(row.kept, row.path_key) if row.kept else None
        if content or row.kind == "created":
            key = content.file if content else file_digest(row.path_key)
            found.append(Choice(str(row.id), row.altered_at, _name(row, session), content, key))
    return found


def _unnamed(find: FindSession, content: Content, session: Session | None) -> Choice:
    """Return a content that a session has kept: no row is about it. `find` returns the row of a session."""
    runtime, _, session_id = content.by.partition(".")
    row, by = find(runtime, session_id), ""
    if session and not may_meet(session.label, row.label if row else ""):
        by = "a session of another identity"
    elif runtime == "person":
        by = "a person"
    elif session_id:
        by = session_name(runtime, session_id, row.label if row else "")
    if by and content.is_look:
        by = f"as {by} left it"
    return Choice(content.digest[:8], content.at, by, content, content.file)


def everything(store: Store, session: Session | None) -> list[tuple[str, Choice]]:
    """Return the files of this scope with kept states, each with one state, the latest first."""
    if session:
        scope = session.scope
    else:
        scope = current_scope()
    rows = store.breaches.known(scope)
    files = {str(row.id): row.file for row in rows}
    found = [(files[choice.name], choice) for choice in choices_of(rows, session)]
    known = [choice for _file, choice in found]
    find = cache(store.instances.of_session)
    for path, contents in below([scope]).items():
        found += [(path, _unnamed(find, one, session)) for one in _without_repeats(contents, known)]
    return sorted(found, key=lambda one: -one[1].at)


def _without_repeats(contents: list[Content], known: list[Choice]) -> list[Content]:
    """Return the contents without those of `known` choices, and each digest once, in their order."""
    chosen = [choice.content for choice in known if choice.content]
    paths, identities = {one.path for one in chosen}, {one.identity for one in chosen}
    found: dict[str, Content] = {}
    for one in contents:
        if one.path not in paths and one.identity not in identities:
            found.setdefault(one.digest, one)
    return list(found.values())


def _name(row: Breach, session: Session | None) -> str:
    if row.writer_label or row.writer_id:
        writer = holder_name(row.writer_label, row.writer_id or "")
    else:
        writer = ""
    if writer and session and not may_meet(session.label, row.writer_label):
        return "a session of another identity"
    if row.command:
        ran = f": {row.command}"
    else:
        ran = ""
    if row.kind == "restored":
        return f"restored by {writer or 'a person'}"
    return f"{writer or 'a session unknown here'}{ran}"


def _read(content: Content) -> bytes:
    try:
        return content.read()
    except OSError as error:
        raise SwarmError(f"the kept content cannot be read: {error}") from None


def _replace(name: str, folder: int | None, data: bytes, mode: int) -> str:
    """Replace the file `name` of an open folder with this content and these permissions in one step. Raises OSError.

    Returns the omitted permissions in words.

    A program that runs as its owner must not start to run as another user: such a bit comes back only if the replaced
    file belongs to us as well.
    """
    special, earlier = mode & (stat.S_ISUID | stat.S_ISGID), None
    scratch = f"{name}.{os.urandom(4).hex()}.swarm"
    handle = open_private(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder=folder)
    try:
        try:
            write_all(handle, data)
            made = os.fstat(handle)
            with contextlib.suppress(OSError):
                earlier = os.lstat(name, dir_fd=folder)
            is_same = earlier and (earlier.st_uid, earlier.st_gid) == (made.st_uid, made.st_gid)
            os.fchmod(handle, mode & 0o7777 if is_same else mode & 0o7777 & ~special)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(scratch, dir_fd=folder)
        raise
    if not special or is_same:
        return ""
    return f"without its set-id permission (chmod {mode & 0o7777:o} gives it back)"
