"""A file of a user, read and written whole. Errors are one line, and a link stays a link."""

from __future__ import annotations

import os
from pathlib import Path

from swarm_hook_core.state import open_private
from swarm_mcp.errors import SwarmError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read(path: Path) -> bytes | None:
    """Return the content of a file, or None if it is missing. Raises SwarmError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:  # no file yet
        return None
    except OSError as error:
        raise SwarmError(f"cannot read {path}: {error.strerror}") from None


def read_text(path: Path) -> str | None:
    """Return the text of a file, with its byte order mark, or None if there is no file. Raises SwarmError."""
    raw = read(path)
    if raw is None:
        return None
    text, mark = decoded(raw, path)
    return mark.decode("utf-8") + text


def decoded(raw: bytes | None, path: Path) -> tuple[str, bytes]:
    """Return the text of a file, and the byte order mark before it. Raises SwarmError."""
    if raw and raw.startswith(BYTE_ORDER_MARK):
        mark = BYTE_ORDER_MARK
    else:
        mark = b""
    try:
        return (raw or b"")[len(mark) :].decode("utf-8"), mark
    except UnicodeDecodeError:
        raise SwarmError(f"{path} is not UTF-8 text; nothing was changed") from None


def encoded(text: str, path: Path) -> bytes:
    """Return the bytes of `text` for the file at `path`. Raises SwarmError."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise SwarmError(f"{path} cannot hold a path that is not UTF-8; nothing was changed") from None


def write_whole(path: Path, content: bytes, through_link: bool = True) -> None:
    """Write a file so that it is there whole or not at all, with its old mode. Raises SwarmError.

    A link stays a link, and its target is written. With `through_link` False, the link is replaced.
    """
    if through_link:
        path = _target(path)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = 0
        if path.exists():
            mode = path.stat().st_mode & 0o7777
        with open(scratch, "wb", opener=open_private if mode else None) as file:  # it may hold secrets
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode:
            scratch.chmod(mode)
        os.replace(scratch, path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise SwarmError(f"cannot write {path}: {error.strerror}") from None


def delete(path: Path) -> None:
    """Remove a file. Raises SwarmError."""
    try:
        _target(path).unlink()
    except OSError as error:
        raise SwarmError(f"cannot remove {path}: {error.strerror}") from None


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path))


def remove_empty(folder: Path) -> None:
    """Remove `folder` if it is empty, and then empty ones around it below the user's home, except for ``.config``."""
    home = Path.home()
    while folder not in (home, home / ".config"):
        try:
            folder.rmdir()
        except OSError:
            break  # it holds something else
        folder = folder.parent
        if home not in folder.parents:
            break
