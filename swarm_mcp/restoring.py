"""Bringing back what a locked file held before somebody's call changed it. Never done unasked."""

from __future__ import annotations

import os
import time

from swarm_hook_core.paths import key_of
from swarm_hook_core.state import open_private, write_all
from swarm_hook_core.watching.kept import Kept, NotKept, Version, content_of
from swarm_hook_core.watching.snapshot import full, glance
from swarm_mcp.circle import may_meet
from swarm_mcp.errors import SwarmError
from swarm_mcp.scope import clean, current_scope, file_of

LARGEST_KEPT = 16 * 1024 * 1024  # of what a restoring replaces, so that it can be undone


class Choice:
    """One earlier state of the file: a kept `version`, or (`removes`) that there was none.

    `name` is what ``--id`` calls it; `at` until when the file was so, in Unix seconds; `by` who changed it then.
    """

    def __init__(self, name: str, at: int, by: str, version: Version | None):
        self.name = name
        self.at = at
        self.by = by
        self.version = version

    @property
    def removes(self) -> bool:
        """Whether to restore this means to remove the file."""
        return self.version is None

    def described(self) -> dict:
        """For machines: ``{id, at, by, removes, size, kept}``."""
        size, kept = (self.version.seen.size, self.version.path) if self.version else (0, None)
        return {"id": self.name, "at": self.at, "by": self.by, "removes": self.removes, "size": size, "kept": kept}


class Restoring:
    """What can be done about the file that `word` means to `session` (None: a person)."""

    def __init__(self, store, session: dict | None, word: str):
        self.store = store
        self.session = session
        self.file = file_of(session, word) if session else clean(word)
        self.key = key_of(self.file)
        self.kept = Kept(time.time())
        self.kept_now = ""  # where the content is that has been replaced

    def choices(self) -> list[Choice]:
        """The earlier states there are, the latest first; contents that nobody has changed under a lock come last."""
        versions = {version.path: version for version in self.kept.of(self.key)}
        found = []
        for row in self.store.alterations.of(self.file):
            version = versions.pop(row["kept"], None) if row["kept"] else None
            if version or row["kind"] == "created":
                found.append(Choice(str(row["id"]), row["altered_at"], self._name(row), version))
        return found + [Choice(one.seen.digest[:8], one.kept_at, "", one) for one in versions.values()]

    def choose(self, name: str) -> Choice:
        """The state called `name`; without a name the latest that is not the present one. Raises SwarmError."""
        choices = self.choices()
        if name:
            found = [choice for choice in choices if choice.name == name]
            if not found:
                raise SwarmError(f"no earlier content of {self.file} is called {name[:40]!r}: --list shows what is")
            return found[0]
        present = full(self.file)
        for choice in choices:
            if choice.version is None:
                if present.exists:
                    return choice
            elif (choice.version.seen.digest, choice.version.seen.mode) != (present.digest, present.mode & 0o7777):
                return choice
        raise SwarmError(f"{self.file} is as it was" if choices else self.nothing())

    def nothing(self) -> str:
        """Why there is no choice, in one line."""
        return (
            f"no earlier content of {self.file} is kept: it is for 7 days, of files up to 1 MiB that were locked"
            " while another session ran a command"
        )

    def restore(self, choice: Choice, force: bool, dry_run: bool) -> None:
        """Make the file what it was; what it is now is kept first. Raises SwarmError."""
        present = glance(self.file)
        if choice.removes and not force:
            raise SwarmError(f"there was no {self.file} before: --force removes it (what is in it is kept first)")
        if present.exists and not present.is_plain:
            raise SwarmError(f"{self.file} is no plain file by now: it is left alone; --to PATH writes elsewhere")
        data = b"" if choice.version is None else _read(choice.version)
        if present.exists and not dry_run:
            self.kept_now = self._keep_present(force)
        if dry_run:
            return
        try:
            if choice.version is None:
                os.remove(self.file)
            else:
                _replace(self.file, data, choice.version.seen.mode)
        except OSError as error:
            raise SwarmError(f"{self.file} cannot be restored: {error.strerror or error}") from None
        source = choice.version.path if choice.version else ""
        self.store.alterations.restored(self.session, self.file, self.kept_now, source, current_scope())

    def write_to(self, choice: Choice, place: str, dry_run: bool) -> str:
        """Write the earlier content to `place`, which must not be there yet; its whole path. Raises SwarmError."""
        path = file_of(self.session, place) if self.session else clean(place)
        if choice.version is None:
            raise SwarmError(f"there was no {self.file} before: nothing to write")
        if glance(path).exists:
            raise SwarmError(f"{path} is there already: it is left alone")
        data = _read(choice.version)
        if not dry_run:
            try:
                _replace(path, data, choice.version.seen.mode)
            except OSError as error:
                raise SwarmError(f"{path} cannot be written: {error.strerror or error}") from None
        return path

    def _keep_present(self, force: bool) -> str:
        try:
            return self.kept.keep(self.key, self.file, LARGEST_KEPT).path
        except (NotKept, OSError) as error:
            if force:
                return ""
            raise SwarmError(
                f"what is in {self.file} now could not be kept ({error}), so this could not be undone:"
                " --force does it all the same"
            ) from None

    def _name(self, row: dict) -> str:
        label = row["writer_label"] or row["writer_id"] or ""
        if label and self.session and not may_meet(self.session["label"], row["writer_label"]):
            return "a session of another identity"
        ran = f": {row['command']}" if row["command"] else ""
        if row["kind"] == "restored":
            return f"restored by {label or 'a person'}"
        return f"{label or 'a session unknown here'}{ran}"


def _read(version: Version) -> bytes:
    try:
        return content_of(version)
    except OSError as error:
        raise SwarmError(f"the kept content cannot be read: {error}") from None


def _replace(path: str, data: bytes, mode: int) -> None:
    """`path` with this content and these permissions, in one step. Raises OSError."""
    scratch = f"{path}.{os.urandom(4).hex()}.swarm"
    handle = open_private(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(handle, data)
            os.fchmod(handle, mode & 0o777)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(scratch, path)
    except OSError:
        os.remove(scratch)
        raise
