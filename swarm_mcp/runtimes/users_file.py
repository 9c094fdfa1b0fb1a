"""What swarm has among a user's files: a file of the user with a table or entries of ours, a folder with files of ours.

A file of the user is read and written whole. Errors are one line, a link stays a link, and every byte of others stays.
"""

from __future__ import annotations

import hashlib
import json
import os
import py_compile
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path
from typing import Any, NamedTuple

from swarm_hook_core.state import open_private, state_dir, write_private
from swarm_mcp.errors import SwarmError
from swarm_mcp.installation import interpreter
from swarm_mcp.runtimes.json_editor import JsonText, Place, list_of, object_of

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


def object_in(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. It is empty if the file cannot be read."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # the caller reports what it misses
        return {}
    return object_of(tree)


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


# Entries of ours in a user's or a client's JSON file.
#
# The state folder remembers the entries, so that exactly they come out again. A file without later changes is then byte
# for byte as before. If it was ours alone, it goes, with the folders that were made for it. Later changes by others
# stay.


FOLDER = "edited"  # in the state folder: a file for each that is edited


class Entry(NamedTuple):
    """One value of ours: the member at `place` (keys from the outermost object inwards), or an element of the array."""

    place: tuple[str, ...]
    value: object
    is_element: bool = False


@dataclass
class _Memory:
    """Facts about one file before our first change, as far as the file itself no longer shows them.

    `blank`: its content if that was only blanks, or None if there was no file or JSON in it. `made`: objects and arrays
    of ours around entries. `tails`: blanks behind entries in containers that were empty. `frame`: keys that the client
    requires, and that we added.
    """

    path: str
    was_missing: bool = False
    folders: list[str] = field(default_factory=list)
    blank: str | None = None
    entries: list[Entry] = field(default_factory=list)
    made: list[tuple[str, ...]] = field(default_factory=list)
    tails: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    frame: list[str] = field(default_factory=list)


class EditedJson:
    """One such file, and the `entries` of swarm in it.

    `frame`: further members that the client requires (``{"version": 1}``). Missing ones are added, and go with our
    entries unless others have come to need them. `is_ours` recognises a value of ours that is not remembered as it is,
    such as after a loss of the state folder. Without it, the remembered values are ours, and any value in the place of
    a member.
    """

    def __init__(
        self, path: Path, entries: list[Entry], frame: Mapping[str, object] | None = None,
        is_ours: Callable[[object], bool] | None = None,
    ):  # fmt: skip
        self.path = path
        self._entries, self._frame, self._is_ours = entries, dict(frame or {}), is_ours

    def put(self) -> bool:
        """Bring our entries into the file, in the place of earlier ones. Return True if anything changed.

        Raises SwarmError, and changes nothing, if the file has another form, or another value in the place of an entry.
        """
        if self.is_current():
            return False
        raw, memory = read(self.path), self._memory()
        text, mark = decoded(raw, self.path)
        try:
            clean = self._without(text, memory)
            made = [str(folder) for folder in Path(os.path.realpath(self.path)).parents if not folder.exists()]
            made += [folder for folder in (memory.folders if memory else ()) if folder not in made]
            was_missing = raw is None or (memory is not None and memory.was_missing)
            new = _Memory(os.path.abspath(self.path), was_missing, made)
            wanted = self._with(clean, new)
            if self._without(wanted, new) != clean:
                raise ValueError("could not be edited safely")
        except ValueError as error:
            raise SwarmError(f"{self.path} {error}; nothing was changed") from None
        remembered = self._remembered()
        earlier = None
        if remembered.exists():
            earlier = remembered.read_text(encoding="utf-8")
        self._remember(new)
        try:
            write_whole(self.path, mark + encoded(wanted, self.path))
        except SwarmError:
            if earlier is None:
                self._forget()
            else:
                write_private(str(remembered), earlier)
            raise
        return True

    def take_out(self) -> bool:
        """Take our entries out, and the containers that were made for them. Return True if anything changed. Raises
        SwarmError.
        """
        raw, memory = read(self.path), self._memory()
        text, mark = decoded(raw, self.path)
        try:
            clean = self._without(text, memory)
        except ValueError as error:
            raise SwarmError(f"{self.path} {error}; nothing was changed") from None
        if raw is not None and clean != text:
            if clean or not (memory and memory.was_missing):
                write_whole(self.path, mark + encoded(clean, self.path))
            else:
                delete(self.path)
        for folder in memory.folders if memory else ():
            try:
                os.rmdir(folder)
            except OSError:
                break  # files of others are in it
        self._forget()
        return clean != text

    def is_current(self) -> bool:
        """Return True if our entries are in the file as they should be. False if it cannot be read."""
        try:
            tree, memory = tree_in(self.path), self._memory()
        except SwarmError:  # doctor says why, from the client's own look
            return False
        if memory:
            known = memory.entries
        else:
            known = [entry for entry in self._entries if self._recognised(entry.value)]
        return known == self._entries and all(_position(tree, entry) is not None for entry in self._entries)

    def is_there(self) -> bool:
        """Return True if the file has an entry of ours, also of an earlier release. False if it cannot be read."""
        try:
            return bool(self._found(tree_in(self.path), self._memory()))
        except SwarmError:  # unreadable
            return False

    # ---------------------------------------------------------------- innards

    def _found(self, tree: object, memory: _Memory | None) -> list[Place]:
        """Return the places of our entries, the last first."""
        found: list[Place] = []
        for entry in memory.entries if memory else ():
            index, there = _position(tree, entry), _value_at(tree, entry.place)
            if entry.is_element and index is not None:
                found.append((*entry.place, index))
            elif not entry.is_element and there is not None and (index == 0 or not self._is_ours):
                found.append(entry.place)
        for entry in self._entries:
            there = _value_at(tree, entry.place)
            if not entry.is_element and self._recognised(there):
                found.append(entry.place)
            elif entry.is_element and isinstance(there, list):
                found += [(*entry.place, index) for index, value in enumerate(there) if self._recognised(value)]
        return sorted(set(found), key=_last_first, reverse=True)

    def _recognised(self, value: object) -> bool:
        return self._is_ours is not None and value is not None and self._is_ours(value)

    def _without(self, text: str, memory: _Memory | None) -> str:
        """Return `text` without our entries. It is empty if it had nothing else. Raises ValueError."""
        if not text.strip():
            return text
        memory = memory or _Memory("")
        tails: dict[Place, str] = dict(memory.tails)
        found = JsonText(text)
        places = self._found(found.tree, memory)
        for place in places:
            found = JsonText(found.text_without(place, tails.get(place[:-1], "")))
        stays = False
        for place in reversed(memory.made):
            if _value_at(found.tree, place) in ({}, []) and found.is_empty(place):
                found = JsonText(found.text_without(place, tails.get(place[:-1], "")))
            stays |= _value_at(found.tree, place) is not None
        for key in () if stays else reversed(memory.frame):
            if _value_at(found.tree, (key,)) == self._frame.get(key):
                found = JsonText(found.text_without((key,), tails.get((), "")))
        is_all = memory.blank is not None and found.tree == {} and found.is_empty(())
        if is_all:
            return memory.blank or ""
        return found.text

    def _with(self, text: str, memory: _Memory) -> str:
        """Return `text` with our entries, and note in `memory` the facts to remember. Raises ValueError."""
        if not text.strip():
            memory.blank, text = text, "{}\n"
        found = JsonText(text)
        for key, value in self._frame.items():
            if not found.known_of((key,)):
                memory.frame.append(key)
                found = self._added(found, Entry((key,), value), memory)
        for entry in self._entries:
            if not entry.is_element and found.known_of(entry.place) == len(entry.place):
                raise ValueError(f"has {'.'.join(entry.place)} already, and that is not swarm's")
            found = self._added(found, entry, memory)
        memory.entries = list(self._entries)
        return found.text

    def _added(self, found: JsonText, entry: Entry, memory: _Memory) -> JsonText:
        known, place = found.known_of(entry.place), entry.place
        if entry.is_element:
            last = len(place)
        else:
            last = len(place) - 1
        memory.made += [place[:depth] for depth in range(known + 1, last + 1)]
        text = found.text_with(place, entry.value, entry.is_element)
        around = place[: min(known, last)]
        tail = found.tail_of_first(around)
        if tail:
            memory.tails.append((around, tail))
        return JsonText(text)

    # Return the file that remembers these entries. Each file has its own, because clients are served side by side.

    def _remembered(self) -> Path:
        path = os.path.abspath(self.path)
        return Path(state_dir()) / FOLDER / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"

    def _remember(self, memory: _Memory) -> None:
        try:
            write_private(str(self._remembered()), json.dumps(memory.__dict__, indent=2) + "\n")
        except OSError as error:
            place = self._remembered()
            raise SwarmError(f"cannot write {place}: {error.strerror}; {self.path} was not changed") from None

    def _memory(self) -> _Memory | None:
        told = object_in(self._remembered())
        try:
            return _Memory(
                told["path"], told["was_missing"], list(told["folders"]), told["blank"],
                [Entry(tuple(place), value, is_element) for place, value, is_element in told["entries"]],
                [tuple(place) for place in told["made"]], [(tuple(place), tail) for place, tail in told["tails"]],
                list(told["frame"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError):  # a record of another form counts as lost
            return None

    def _forget(self) -> None:
        remembered = self._remembered()
        try:
            remembered.unlink(missing_ok=True)
            remembered.parent.rmdir()
        except OSError:
            pass  # other files are remembered, or the folder never existed


def tree_in(path: Path) -> Any:
    """Return the content of the file, without its comments; None if it is missing or blank. Raises SwarmError."""
    text, _ = decoded(read(path), path)
    try:
        if text.strip():
            return JsonText(text).tree
        return None
    except ValueError as error:
        raise SwarmError(f"{path} {error}") from None


def _value_at(tree: Any, place: Place) -> Any:
    """Return the value of `tree` at `place`, or None."""
    for part in place:
        tree = object_of(tree).get(part)
    return tree


def _position(tree: Any, entry: Entry) -> int | None:
    """Return the position of the entry's value: its index in an array, 0 for a member; None if it is not there."""
    there = _value_at(tree, entry.place)
    if not entry.is_element:
        if there == entry.value and there is not None:
            return 0
        return None
    elements = list_of(there)
    return next((at for at in reversed(range(len(elements))) if elements[at] == entry.value), None)


def _last_first(place: Place) -> tuple[Any, ...]:
    return tuple((isinstance(part, int), part if isinstance(part, int) else 0, str(part)) for part in place)


# A folder with files of ours, perhaps beside others: a record in it lists ours.


RECORD = "install.json"
_UNCHECKED_HASH = (1).to_bytes(4, "little")  # the flags of a module that is compared with no source


def put_folder(target: Path, wanted: dict[str, bytes], compiled: bool = False, force: bool = False) -> bool:
    """Bring the folder `target` up to date. Return True if anything in it changed.

    `wanted`: relative name -> content, RECORD among them. Files appear whole or not at all, and existing ones are
    replaced in place, because a client may be running them. Files of an earlier record that are not `wanted` any more
    are removed, and no others. With `compiled`, Python files are compiled beside themselves. Raises SwarmError if a
    foreign file has a wanted name, unless `force`.
    """
    earlier = read_record(target).get("files", [])
    if earlier:
        ours = {*earlier, RECORD}
    else:
        ours = set()
    foreign = [name for name in wanted if name not in ours and (target / name).exists()]
    in_the_way = [name for name in foreign if (target / name).read_bytes() != wanted[name]]
    if in_the_way and not force:
        raise SwarmError(f"{target} holds files that are not ours ({in_the_way[0]}); choose another folder or --force")
    changed = False
    # New files come first, because replaced ones may name them. The record comes last: without it the folder counts as
    # unfinished and is written again.
    for name in sorted(wanted, key=lambda item: (item == RECORD, (target / item).exists())):
        changed |= _replace(target / name, wanted[name])
    dropped = [name for name in earlier if name not in wanted and (target / name).is_file()]
    _delete_in(target, dropped)
    changed |= bool(dropped)
    if compiled:
        _compile(target, [name for name in wanted if name.endswith(".py")])
    return changed


def remove_folder(target: Path) -> bool:
    """Remove our own files, and folders that are empty then. Return True if there were any."""
    files = read_record(target).get("files", [])
    if not files:
        return False
    _delete_in(target, [*files, RECORD])
    return True


def read_record(target: Path) -> dict[str, Any]:
    """Return the record of the folder (``name``, ``version``, ``files``, ...), or an empty one."""
    record = object_in(target / RECORD)
    if record.get("name") == "swarm":
        files = record.get("files")
    else:
        files = None
    # Its files may be removed, so it must be a bundle's own, and name only files inside the folder.
    if not isinstance(files, list) or not all(isinstance(n, str) and _is_inside_name(n) for n in files):
        return {}
    return record


def read_files(target: Path) -> dict[str, bytes]:
    """Return our files in the folder by their names, RECORD among them; empty where one of them cannot be read."""
    names = read_record(target).get("files", [])
    try:
        return {name: (target / name).read_bytes() for name in ([*names, RECORD] if names else ())}
    except OSError:  # not a folder of ours
        return {}


def differing(target: Path, wanted: dict[str, bytes]) -> list[str]:
    """Return the names in `wanted` that the folder does not hold with that content."""
    return [name for name, content in wanted.items() if not _holds(target / name, content)]


def _is_inside_name(name: str) -> bool:
    parts = name.split("/")
    return bool(name) and ".." not in parts and "" not in parts and not os.path.isabs(name)


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:  # missing, so it differs
        return False


def _delete_in(target: Path, names: list[str]) -> None:
    """Remove files and their compiled forms, and folders that are empty then."""
    folders = set()
    for name in names:
        path = target / name
        path.unlink(missing_ok=True)
        if name.endswith(".py"):
            _forget_compiled(path)
            folders.add(path.parent / "__pycache__")
        folders.update(parent for parent in path.parents if parent == target or target in parent.parents)
    for folder in sorted(folders, key=lambda item: len(item.parts), reverse=True):
        try:
            folder.rmdir()
        except OSError:
            continue  # it holds something else


def _replace(path: Path, content: bytes) -> bool:
    if not path.is_symlink() and _holds(path, content):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    scratch.write_bytes(content)
    if content.startswith(b"#!"):
        scratch.chmod(0o755)
    if path.suffix == ".py":
        _forget_compiled(path)
    os.replace(scratch, path)
    return True


def _forget_compiled(path: Path) -> None:
    """Remove a module's compiled form, as Python no longer compares it with the source, and the hooks' image."""
    for ending in ("pyc", "image"):
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.{ending}"):
            compiled.unlink(missing_ok=True)


def _compile(target: Path, names: list[str]) -> None:
    """Write compiled modules that stay valid when a client copies the tree without its times.

    Python takes them as they are: to read and digest each source as well cost a check 2 to 5 % of its time.
    """
    if interpreter() != os.path.realpath(sys.executable) and sys.version_info[:2] != _version_of(interpreter()):
        return
    for name in names:
        if not _is_compiled(target / name):
            py_compile.compile(
                str(target / name), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
            )


def _is_compiled(path: Path) -> bool:
    """Return True if the compiled form of the module is current: it begins with a digest of the source."""
    head = MAGIC_NUMBER + _UNCHECKED_HASH + source_hash(path.read_bytes())
    try:
        with open(cache_from_source(str(path)), "rb") as compiled:
            return compiled.read(len(head)) == head
    except OSError:  # not compiled
        return False


def _version_of(python: str) -> tuple[int, int]:
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    major, minor = done.stdout.split()
    return int(major), int(minor)
