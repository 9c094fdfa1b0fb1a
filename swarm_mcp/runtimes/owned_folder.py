"""A folder with files of ours, perhaps beside others: a record in it lists ours."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path
from typing import Any

from swarm_mcp.errors import SwarmError
from swarm_mcp.installation import interpreter
from swarm_mcp.runtimes.users_file import object_in

RECORD = "install.json"
_UNCHECKED_HASH = (1).to_bytes(4, "little")  # the flags of a module that is compared with no source


def put(target: Path, wanted: dict[str, bytes], compiled: bool = False, force: bool = False) -> bool:
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
    _delete(target, dropped)
    changed |= bool(dropped)
    if compiled:
        _compile(target, [name for name in wanted if name.endswith(".py")])
    return changed


def remove(target: Path) -> bool:
    """Remove our own files, and folders that are empty then. Return True if there were any."""
    files = read_record(target).get("files", [])
    if not files:
        return False
    _delete(target, [*files, RECORD])
    return True


def read_record(target: Path) -> dict[str, Any]:
    """Return the record of the folder (``name``, ``version``, ``files``, ...), or an empty one."""
    record = object_in(target / RECORD)
    if record.get("name") == "swarm":
        files = record.get("files")
    else:
        files = None
    # Its files may be removed, so it must be a bundle's own, and name only files inside the folder.
    if not isinstance(files, list) or not all(isinstance(n, str) and _is_inside(n) for n in files):
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


def _is_inside(name: str) -> bool:
    parts = name.split("/")
    return bool(name) and ".." not in parts and "" not in parts and not os.path.isabs(name)


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:  # missing, so it differs
        return False


def _delete(target: Path, names: list[str]) -> None:
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
