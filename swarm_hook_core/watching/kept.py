"""Earlier contents of files, kept for `swarm-mcp restore`.

Those from before a session's own write, and of changes that a call destroys knowingly, are in folders of their own
(``traces.versions``). Those of locked files, and all of earlier releases, are in one flat private folder. A version's
name says all about it, so that one listing gives a file's versions, their age and total size:

    <file>-<mtime>-<size>-<inode>-<mode>-<content>-<kept at>

`file` is a digest of the file's key (``paths.key_of``), `content` a digest of its bytes, `mode` octal, `mtime` in
nanoseconds, hexadecimal in 64 bits, `kept at` in Unix seconds. ``<state>/kept-names/<file>`` holds the path for a
digest, for listings of all versions.
"""

from __future__ import annotations

import os

from swarm_hook_core.state import make_private, open_private, state_dir, write_all, write_private
from swarm_hook_core.watching.snapshot import HASHED_BYTES, Snapshot, digest_of, read

FILE_BYTES = HASHED_BYTES  # a larger file is not kept
TOTAL_BYTES = 64 * 1024 * 1024
TOTAL_FILES = 2000
AGE_SECONDS = 7 * 86400

LONGEST_PATH = 16384  # bytes
TICK_NS = 2 * 10**9  # the coarsest time stamps of any file system

_MASK = (1 << 64) - 1
_HALF = ".tmp"


def folder() -> str:
    """Return the folder of the versions. It need not exist."""
    return os.path.join(state_dir(), "kept")


def names_folder() -> str:
    """Return the folder of the files' paths. It need not exist."""
    return os.path.join(state_dir(), "kept-names")


class Version:
    """One kept content of a file: its `name` in the folder, its `path`, the file's state (`seen`) and the time."""

    __slots__ = ("name", "path", "file", "seen", "kept_at")

    def __init__(self, name: str, base: str):
        self.name = name
        self.path = os.path.join(base, name)
        self.file, mtime, size, inode, mode, content, kept_at = name.split("-")
        self.seen = Snapshot(int(mode, 8), int(size), int(mtime, 16), 0, int(inode), content)
        self.kept_at = int(kept_at)


def from_copy(key: str, path: str, data: bytes, mode: int, kept_at: int) -> Version:
    """Return the Version of a copy at `path`, in another folder, of the file with this key. `kept_at`: Unix seconds."""
    name = f"{digest_of(os.fsencode(key))}-0-{len(data)}-0-{mode:o}-{digest_of(data)}-{kept_at}"
    version = Version(name, "")
    version.path = path
    return version


class NotKept(Exception):
    """A content could not be kept; the message says why."""


class Kept:
    """The versions in the folder, listed once, and those added since.

    `now` in Unix seconds. Raises OSError if the folder belongs to another user or cannot be listed.
    """

    def __init__(self, now: float):
        self.base = folder()
        self.now = int(now)
        # versions, newest first; None before room is first needed
        self._aging: list[Version] | None = None
        self._total = self._count = 0
        try:
            names = os.listdir(self.base)
        except FileNotFoundError:
            names = []
        self._names = set(filter(_is_whole, names))
        self._by_state: dict[str, str] = {}  # state in the name -> name of its newest version
        for name in self._names:
            state = _state_in(name)
            if _kept_at(self._by_state.get(state, "-0")) <= _kept_at(name):
                self._by_state[state] = name

    def of(self, key: str) -> list[Version]:
        """Return the versions of the file with this key, newest first."""
        return self._of(digest_of(os.fsencode(key)))

    def by_path(self) -> dict[str, list[Version]]:
        """Return ``{path: versions}``, newest first, for each file with a known path."""
        files = {name.partition("-")[0] for name in self._names}
        return {path: self._of(file) for file in sorted(files) if (path := _path_of(file))}

    def forget_names(self) -> None:
        """Remove the paths of files without versions. Raises OSError."""
        files = {name.partition("-")[0] for name in self._names}
        base = names_folder()
        for file in os.listdir(base) if os.path.isdir(base) else ():
            if file not in files and os.lstat(os.path.join(base, file)).st_mtime < self.now - 3600:
                os.remove(os.path.join(base, file))

    def _of(self, file: str) -> list[Version]:
        found = [_version(name, self.base) for name in self._names if name.startswith(file + "-")]
        newest = {one.name.rpartition("-")[0]: one for one in sorted(filter(None, found), key=_age)}
        return sorted(newest.values(), key=_age, reverse=True)

    def at(self, path: str) -> Version | None:
        """Return the version kept at `path`, or None."""
        base, name = os.path.split(path)
        if base == self.base and name in self._names:
            return _version(name, base)
        return None

    def version_of(self, key: str, seen: Snapshot) -> Version | None:
        """Return the version with the content that `seen` (a Snapshot without digest) saw under this key, or None.

        Also None if the file may have been written again in the same tick of its clock, or later: size and mtime can be
        set back, ctime cannot.
        """
        known = self._known(key, seen)
        changed_ns = max(seen.mtime_ns, seen.ctime_ns)
        if known and known.kept_at * 10**9 > changed_ns + TICK_NS:
            return known
        return None

    def keep(self, key: str, path: str, limit: int = FILE_BYTES) -> Version:
        """Return the Version of the present content of `path`; keep it if there is none. Raises NotKept or OSError."""
        try:
            seen, data = read(path, limit)
        except OSError as error:
            raise NotKept(str(error.strerror or error)) from None
        known = self._known(key, seen)
        if known and known.seen.digest == seen.digest:
            return self._renewed(known)
        return self._added(key, path, seen, data)

    def keep_content(self, key: str, path: str, data: bytes, at_ns: int) -> Version:
        """Keep `data` as a content that the file at `path` had at `at_ns`. Raises NotKept or OSError."""
        return self._added(key, path, Snapshot(0o100644, len(data), at_ns, at_ns, 0, digest_of(data)), data)

    def _added(self, key: str, path: str, seen: Snapshot, data: bytes) -> Version:
        if self._aging is None:
            make_private(self.base)
        self._make_room(len(data))
        state = _state(key, seen)
        name = f"{state}-{seen.mode & 0o7777:o}-{seen.digest}-{self.now}"
        _write(os.path.join(self.base, name), data)
        self._by_state[state] = name
        self._names.add(name)
        _note_path(name.partition("-")[0], path)
        return Version(name, self.base)

    def prune(self) -> int:
        """Remove versions that are too old, or over the limits; return their number."""
        before = len(self._names)
        try:
            self._make_room(0)
        except NotKept:
            pass  # only old versions were to be removed
        return before - len(self._names)

    def _known(self, key: str, seen: Snapshot) -> Version | None:
        name = self._by_state.get(_state(key, seen))
        if name:
            return _version(name, self.base)
        return None

    def _renewed(self, known: Version) -> Version:
        if known.kept_at == self.now:
            return known
        name = f"{known.name.rsplit('-', 1)[0]}-{self.now}"
        os.rename(known.path, os.path.join(self.base, name))
        self._names.discard(known.name)
        self._names.add(name)
        self._by_state[_state_in(name)] = name
        return Version(name, self.base)

    def _make_room(self, size: int) -> None:
        """Remove old versions, and the oldest until `size` bytes more fit. Raises NotKept if they cannot fit."""
        if self._aging is None:
            found = filter(None, (_version(name, self.base) for name in self._names))
            self._aging = sorted(found, key=_age, reverse=True)
            self._total, self._count = sum(one.seen.size for one in self._aging), len(self._aging)
        while self._aging:
            oldest = self._aging[-1]
            crowded = self._total + size > TOTAL_BYTES or self._count + bool(size) > TOTAL_FILES
            if not crowded and oldest.kept_at >= self.now - AGE_SECONDS:
                break
            self._aging.pop()
            try:
                os.remove(oldest.path)
            except FileNotFoundError:
                pass  # another process was faster
            self._names.discard(oldest.name)
            if self._by_state.get(_state_in(oldest.name)) == oldest.name:
                del self._by_state[_state_in(oldest.name)]
            self._total -= oldest.seen.size
            self._count -= 1
        if self._total + size > TOTAL_BYTES or self._count + bool(size) > TOTAL_FILES:
            raise NotKept("there is no room for more")  # everything left belongs to this call
        self._total += size
        self._count += bool(size)


def content_of(version: Version) -> bytes:
    """Return a version's content. Raises OSError if it is gone or was changed."""
    seen, data = read(version.path, TOTAL_BYTES)
    if seen.digest != version.seen.digest:
        raise OSError(f"{version.path} has been changed")
    return data


def forget_broken(now: float) -> None:
    """Remove half-written versions of killed processes."""
    base = folder()
    for name in os.listdir(base):
        if name.endswith(_HALF):
            path = os.path.join(base, name)
            if os.lstat(path).st_mtime < now - 3600:
                os.remove(path)


def _state(key: str, seen: Snapshot) -> str:
    return f"{digest_of(os.fsencode(key))}-{seen.mtime_ns & _MASK:x}-{seen.size}-{seen.inode}"


def _state_in(name: str) -> str:
    return name.rsplit("-", 3)[0]


def _is_whole(name: str) -> bool:
    return name.count("-") == 6 and not name.endswith(_HALF)


def _kept_at(name: str) -> int:
    text = name.rpartition("-")[2]
    if text.isdigit():
        return int(text)
    return 0


def _version(name: str, base: str) -> Version | None:
    try:
        return Version(name, base)
    except ValueError:
        return None  # not a version


def _age(version: Version) -> tuple[int, int]:
    return version.kept_at, version.seen.mtime_ns


def _write(path: str, data: bytes) -> None:
    """Create a private file at `path` atomically."""
    scratch = f"{path}.{os.urandom(6).hex()}{_HALF}"
    handle = open_private(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(handle, data)
        finally:
            os.close(handle)
        os.replace(scratch, path)
    except OSError:
        os.remove(scratch)
        raise


def _note_path(file: str, path: str) -> None:
    """Note the path of a file. Versions can be restored without it, by the file's name."""
    note = os.path.join(names_folder(), file)
    if os.path.lexists(note):
        return
    try:
        write_private(note, path)
    except OSError:
        return  # only listings miss the path


def _path_of(file: str) -> str:
    """Return the noted path of a file, or ""."""
    try:
        handle = open_private(os.path.join(names_folder(), file), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            path = os.fsdecode(os.read(handle, LONGEST_PATH))
        finally:
            os.close(handle)
    except OSError:
        return ""  # never noted
    if os.path.isabs(path):
        return path
    return ""
