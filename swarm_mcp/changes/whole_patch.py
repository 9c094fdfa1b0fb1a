"""The patch of a file without lines, in git's form: a binary file, a symbolic link, a file over 1 MiB.

A change between a file and a link is the removal of the one and the creation of the other, as in git.
"""

from __future__ import annotations

import zlib
from base64 import b85encode

from swarm_hook_core.git_objects import blob, sizes
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_mcp.changes.dirty import LINK, NONE, SECONDS, filters_of, object_id
from swarm_mcp.changes.patch import header, hunks_of_link
from swarm_mcp.changes.present import LARGEST, present

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.changes.dirty import DirtyFile
    from swarm_mcp.changes.uncommitted import ChangedFile

LINE = 52  # bytes in one line of a binary patch
_PATCHED = ("binary", "a symbolic link", "larger than ")  # beginnings of reasons; filters, submodules have no patch


def whole_patch(top: str, one: ChangedFile) -> bytes:
    """Return the patch of a file in the work tree `top`; empty if git's own would not have the present content."""
    file = one.file
    if not one.reason.startswith(_PATCHED):
        return b""
    try:
        repository = Repository(top, SECONDS)
        old = _committed(repository, file)
        new = present(file.path)[1] if file.new_mode else b""
        if old is None or new is None or (file.new_mode and not _is_stored_so(repository, file, new)):
            return b""
    except (NoAnswer, Refused, OSError):
        return b""  # gone, unreadable, or not in this clone: it is named all the same
    kinds = {mode == LINK for mode in (file.old_mode, file.new_mode) if mode}
    if len(kinds) == 1:
        return _patch(file, file.old_mode, file.new_mode, old, new)
    return _patch(file, file.old_mode, NONE, old, b"") + _patch(file, NONE, file.new_mode, b"", new)


def _committed(repository: Repository, file: DirtyFile) -> bytes | None:
    """Return the content in the last commit, empty without a file there; None if it is too large, or missing here."""
    if not file.old_id:
        return b""
    size = sizes(repository, [file.old_id])[0]
    if size is None or size > LARGEST:
        return None
    return blob(repository, file.old_id)


def _is_stored_so(repository: Repository, file: DirtyFile, content: bytes) -> bool:
    """Return True if git stores this present content as it is."""
    if file.new_mode == LINK:
        return True
    if "\n" in file.name or filters_of(repository, [file]):
        return False
    made = repository.ask("hash-object", "--stdin-paths", stdin=f"{file.name}\n").strip()
    return made == object_id(content, made)


def _patch(file: DirtyFile, old_mode: str, new_mode: str, old: bytes, new: bytes) -> bytes:
    head = header(file.name, old_mode, new_mode, file.old_id, new)
    if old == new and old_mode and new_mode:
        return head
    if LINK in (old_mode, new_mode):
        return head + hunks_of_link(file.name, old_mode, new_mode, old, new)
    return head + b"GIT binary patch\n" + _literal(new) + _literal(old)


def _literal(content: bytes) -> bytes:
    """Return the content as a binary patch has it: compressed, each line with its length in front."""
    packed, lines = zlib.compress(content), [b"literal %d\n" % len(content)]
    for start in range(0, len(packed), LINE):
        part = packed[start : start + LINE]
        size = ord("A") + len(part) - 1 if len(part) <= 26 else ord("a") + len(part) - 27
        lines.append(bytes([size]) + b85encode(part, pad=True) + b"\n")
    return b"".join([*lines, b"\n"])
