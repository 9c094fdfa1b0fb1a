"""The earlier contents of files that hooks have kept, as `restore` lists and reads them."""

from __future__ import annotations

import os
import stat

from swarm_hook_core.paths import key_of, own_path
from swarm_hook_core.state import read_private, state_dir
from swarm_hook_core.traces.versions import earlier
from swarm_hook_core.traces.versions.stored import Version, contents_below, contents_of, version_at
from swarm_hook_core.watching.snapshot import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Content:
    """One kept content.

    path    of the copy
    file    digest of the key that its file had then
    digest  of its bytes
    mode    the file's permissions
    size    in bytes
    at      time when it was kept, in Unix seconds
    """

    def __init__(self, path: str, file: str, digest: str, mode: int, size: int, at: int):
        self.path = path
        self.file = file
        self.digest = digest
        self.mode = mode
        self.size = size
        self.at = at

    def read(self) -> bytes:
        """Return the bytes. Raises OSError if they are gone or were changed."""
        version = version_at(self.path)
        data = version.content() if version is not None else read_private(self.path, self.size + 1)
        if digest_of(data) != self.digest:
            raise OSError(f"{self.path} has been changed")
        return data


def of_file(path: str, keys: Iterable[str]) -> list[Content]:
    """Return the contents of the file at absolute `path`, and of files that had one of these `keys`, the newest first.

    Also those of a link at the path itself, or of a file in whose place the link is now.
    """
    names = dict.fromkeys((os.path.realpath(path), own_path(path)))
    found = [one for name in names for one in _copies(name, contents_of(name))]
    files = {file_digest(key) for key in keys}
    found += [_of_earlier(one) for one in earlier.all_of() if one.file in files]
    return sorted(found, key=lambda one: -one.at)


def below(folders: Iterable[str]) -> dict[str, list[Content]]:
    """Return ``{path: contents}``, the newest first, of files below the absolute `folders`."""
    found: dict[str, list[Content]] = {}
    for folder in {os.path.realpath(one) for one in folders}:
        for path, versions in contents_below(folder).items():
            found[path] = _copies(path, versions)
    starts = tuple(folder.rstrip(os.sep) + os.sep for one in folders for folder in (one, os.path.realpath(one)))
    for one in earlier.all_of():
        path = earlier.path_of(one.file)
        if path.startswith(starts):
            found.setdefault(path, []).append(_of_earlier(one))
    return {path: sorted(contents, key=lambda one: -one.at) for path, contents in found.items() if contents}


def at(path: str, key: str) -> Content | None:
    """Return the content kept at `path`, of the file that had this `key`; None if nothing is kept there."""
    if not path.startswith(os.path.join(state_dir(), "kept", "")):
        return None
    before = earlier.at(path)
    if before is not None:
        return _of_earlier(before)
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
        at_seconds = one.at_ns // 10**9
        if one.facts is not None:
            found.append(Content(one.path, file, one.facts.digest, one.facts.mode, one.size, at_seconds))
            continue
        try:
            digest = digest_of(one.content())
        except OSError:
            continue  # removed just now
        found.append(Content(one.path, file, digest, one.mode | stat.S_IWUSR, one.size, at_seconds))
    return found


def _of_earlier(one: earlier.EarlierContent) -> Content:
    return Content(one.path, one.file, one.digest, one.mode, one.size, one.at)
