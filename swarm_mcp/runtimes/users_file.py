"""A file of a user, read and written whole. Errors are one line, and a link stays a link."""

from __future__ import annotations

import os
import re
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


# A table of ours in a user's TOML file. Every other byte stays as it is.
#
# The standard library writes no TOML, and the writers of clients drop comments. So the table goes behind the rest as
# text, below a line that marks it as ours.

MARK = "# Written by `swarm-mcp install`; `swarm-mcp uninstall` takes this table out again.\n"
_LINES = r"(?:[A-Za-z_ \t\]].*\n?)*"  # of a table's body: no header, no comment, no blank line


def put(path: Path, table: str, body: str, sign: str) -> bool:
    """Have the file at `path` end with our `table` (its dotted name) and the lines of `body`. Return True if that is
    new.

    `sign`: a text in `body` that marks the table as ours if a client has dropped our comment. Raises SwarmError, and
    leaves the file alone, if it has such a table of another owner, or cannot be changed.
    """
    text = read_text(path)
    rest = _without(text or "", table, sign)
    if is_named(rest, table) or _assigns(rest, table) or _assigns(rest, table.rpartition(".")[0]):
        raise SwarmError(f"{path} has a {table} that is not ours; nothing was changed")
    # A file that exists gets a line end of ours before the table. It goes with the table.
    if text is None or text.startswith(MARK):
        begin = ""
    else:
        begin = "\n"
    wanted = f"{rest}{begin}{MARK}[{table}]\n{body}"
    if wanted == text or (rest != text and text and f"[{table}]\n{body}" in text):
        return False
    write_whole(path, wanted.encode("utf-8"))
    return True


def take_out(path: Path, table: str, sign: str) -> bool:
    """Remove our `table` from the file at `path`. Return True if the table was there.

    An empty file that we made goes, and its empty folder. `sign` as for `put`. Raises SwarmError.
    """
    text = read_text(path)
    rest = _without(text or "", table, sign)
    if text is None or rest == text:
        return False
    if rest or not text.startswith(MARK):
        write_whole(path, rest.encode("utf-8"))
        return True
    delete(path)
    if Path.home() in path.parents:  # a folder that a setting names stays
        remove_empty(path.parent)
    return True


def has(path: Path, table: str, sign: str) -> bool:
    """Return True if our `table` is in the file at `path`. False if it cannot be read. `sign` as for `put`."""
    try:
        text = read_text(path) or ""
    except SwarmError:  # as far as it can be read
        return False
    return _without(text, table, sign) != text


def is_named(text: str, table: str) -> bool:
    """Return True if `text` has a header of `table`, or of a table below it."""
    return bool(re.search(rf"^[ \t]*\[[ \t]*{_spelled(table)}[ \t]*[\].]", text, re.MULTILINE))


def is_taken(text: str, table: str, sign: str) -> bool:
    """Return True if `text` has a `table` of another owner. `sign` as for `put`."""
    section, _, name = table.rpartition(".")
    if section:
        return is_foreign(text, section, name, sign)
    rest = _without(text, table, sign)
    return is_named(rest, table) or _assigns(rest, table)


def is_foreign(text: str, section: str, name: str, sign: str) -> bool:
    """Return True if `text` gives `section` a member `name`, in any spelling of TOML, without `sign` in it.

    Without a `sign`, a member that starts `swarm-mcp serve` is not foreign.
    """
    table = f"{section}.{name}"
    if sign:
        rest = _without(text, table, sign)
    else:
        rest = _without_swarm(text, table)
    if is_named(rest, table) or _assigns(rest, table):
        return True
    inline = re.search(rf"^[ \t]*{_spelled(section)}[ \t]*=.*", rest, re.MULTILINE)
    if inline and re.search(rf"[{{,][ \t]*{_spelled(name)}[ \t]*[.=]", inline[0]):
        return True
    below = re.search(rf"^[ \t]*\[[ \t]*{_spelled(section)}[ \t]*\][^\[]*", rest, re.MULTILINE)
    return bool(below and _assigns(below[0], name))


def _without_swarm(text: str, table: str) -> str:
    """Return `text` without a `table` of a server `swarm-mcp serve`."""
    section = rf"^[ \t]*\[[ \t]*{_spelled(table)}[ \t]*\][^\n]*\n(?:(?!\s*\[[^\n]*\]\s*$).*\n?)*"
    for found in re.finditer(section, text, re.MULTILINE):
        body = found[0].partition("\n")[2]
        if re.search(r"swarm[-_](mcp|locks)\b", body) and re.search(r"[\"']serve[\"']", body):
            return text[: found.start()] + text[found.end() :]
    return text


def _assigns(text: str, table: str) -> bool:
    """Return True if `text` gives `table` as a value. Headers cannot add to that."""
    return bool(re.search(rf"^[ \t]*{_spelled(table)}[ \t]*[.=]", text, re.MULTILINE))


def _spelled(table: str) -> str:
    return r"[ \t]*\.[ \t]*".join(rf"[\"']?{re.escape(word)}[\"']?" for word in table.split("."))


def _without(text: str, table: str, sign: str) -> str:
    """`text` without our table: the one below our comment, or where that has gone, the one with `sign` in it."""
    section = rf"\n?({re.escape(MARK)})?^\[{re.escape(table)}\]\n{_LINES}"
    for found in re.finditer(section, text, re.MULTILINE):
        if found[1] or sign in found[0]:
            before, after = text[: found.start()], text[found.end() :]
            glue = ""
            if before and after and not before.endswith("\n"):
                glue = "\n"
            return before + glue + after
    return text
