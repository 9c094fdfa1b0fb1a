"""Requests for locks: the reach of each lock, and how it is to be held.

A `Reach` is one path with everything under it, or the files that a pattern covers; `meet` compares two of them. A
`LockRequest` asks for one or several locks. A refused one is noted as an `Attempt`, in ``refusals``.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from swarm_hook_core import repository, wildcards
from swarm_hook_core.lookup import GLOB, plain, storable
from swarm_hook_core.paths import LONGEST as LONGEST_PATH
from swarm_hook_core.paths import NO_CASE, PlainPath, contains, key_and_keys, key_of, plain_path
from swarm_hook_core.repository import Tree
from swarm_mcp.domain import EXCLUSIVE, MODES, MUTEX_PREFIX, NAME_PREFIX, Session, is_name
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import file_of

SHORTEST_LEASE, LONGEST_LEASE = 1.0, 30 * 86400.0  # seconds
LONGEST_NOTE = 2048  # bytes of a note or a reason, since every session that meets the lock reads it
MOST = 200  # locks in one request
GIT_SECONDS = 10.0  # for the first commit of a repository, asked once


# ------------------------------------------------------------------ reach


class Reach(NamedTuple):
    """The files that a request names.

    file      as listings show it: an absolute path, or the folder and the pattern in one
    key       the key in the store (``path_key``): the path's key; for a pattern `GLOB` and the key of the folder over
              all covered files; None for a mutex
    keys      every name of the path that a hook would look for; of a stored lock its key, and how it was spelled
    pattern   as it was given, relative to `base` (the key of a folder); empty for a path
    base      of a path its own key if it is a folder, or was named with a slash at its end; else empty
    segments  the whole as ``wildcards.overlap`` takes it; empty for a mutex. A folder counts with everything under it
    names     its names in its repository, if it is to hold in every work tree: see ``lock_rows``
    """

    file: str
    key: str | None
    keys: tuple[str, ...]
    pattern: str = ""
    base: str = ""
    segments: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()


def reach_of(instance: Session, text: str, as_pattern: bool | None = None, is_new: bool = True) -> Reach:
    """Return the reach of `text` for a session: a pattern if `as_pattern`, a path if that is False.

    None leaves it to the text: one with ``*`` or ``?`` that names no file there is a pattern, relative to the session's
    scope. Raises SwarmError. Asks the disk; less unless it `is_new`: then only `keys` is right, by which the lock on a
    path is found.
    """
    text = checked(text)
    if text.startswith(MUTEX_PREFIX):
        return Reach(text, None, (text,))
    if is_name(text):
        if text.startswith(NAME_PREFIX + "/"):
            return _reach_of_name([text])
        return name_at(text[len(NAME_PREFIX) :].strip(), instance.file_root or instance.directory or instance.scope)
    path = file_of(instance, text)
    if as_pattern is None:
        as_pattern = ("*" in text or "?" in text) and not os.path.lexists(path)
    if not as_pattern:
        if is_new and (plain := _plain_reach(path, text.endswith("/"))):
            return plain
        key, keys = key_and_keys(path, is_new)
        deep = is_new and (text.endswith("/") or os.path.isdir(path))
        return Reach(path, key, tuple(keys), base=key if deep else "", segments=tuple(_of_key(key, deep)))
    base = instance.scope
    if os.path.isabs(text):
        if not text.startswith(base.rstrip("/") + "/"):
            raise SwarmError(f"a pattern counts from this scope, {base}, and {text[:120]} is not in it")
        text = "/" + text[len(base.rstrip("/")) + 1 :]
    return _of_pattern(os.path.join(base, text.lstrip("/")), key_of(base), text)


_known_paths: dict[str, tuple[PlainPath, dict[tuple[bool, bool], Reach]]] = {}
MOST_PATHS = 500


def _plain_reach(path: str, has_slash: bool) -> Reach | None:
    """Return the reach of a path that is its own key; None if links or other spellings make that uncertain.

    The disk is asked about it each time, and nothing else is worked out twice.
    """
    known = _known_paths.get(path)
    if known is None:
        plain = plain_path(path)
        if plain is None:
            return None
        if len(_known_paths) >= MOST_PATHS:
            _known_paths.clear()
        known = _known_paths[path] = plain, {}
    plain, reaches = known
    seen = plain.look()
    if seen is None:
        return None
    is_folder, is_caseless = seen
    deep = has_slash or is_folder
    found = reaches.get((deep, is_caseless))
    if found is None:
        key = plain.keys[is_caseless]
        segments, keys = tuple(_of_key(key, deep)), tuple(dict.fromkeys(plain.keys))
        found = reaches[deep, is_caseless] = Reach(path, key, keys, base=key if deep else "", segments=segments)
    return found


def reach_in(row: dict[str, Any]) -> Reach | None:
    """Return the reach of a lock's row; None if another program has stored something unreadable."""
    file = row["file"]
    if not isinstance(file, str) or "\0" in file or len(file) > LONGEST_PATH:
        return None
    if file.startswith(MUTEX_PREFIX):
        return Reach(file, None, (file,))
    if is_name(plain(file)) and row["path_key"]:
        return _reach_of_name([row["path_key"], *row.get("keys", ())])
    if row.get("pattern"):
        try:
            return _of_pattern(file, row["base"], row["pattern"])
        except SwarmError:  # another program's pattern
            return None
    key = row["path_key"] or key_of(file)
    names = tuple(filter(None, [row.get("repository")]))
    base = row.get("base") or ""
    # The reach of a lock was settled when it was taken; the disk is asked only if that was not written down.
    if "base" in row:
        deep = bool(base)
    else:
        deep = os.path.isdir(file)
    keys = dict.fromkeys((key, *row.get("keys", ()), plain(file)))
    return Reach(file, key, tuple(keys), base=base, segments=tuple(_of_key(key, deep)), names=names)


def meet(left: Reach, right: Reach) -> bool:
    """Return True if a path is, or could be, in both reaches, in one work tree or as the same path of several."""
    if left.names and right.names and any(_name_meets(one, other) for one in left.names for other in right.names):
        return True
    if not left.segments or not right.segments:
        return left.file == right.file
    fold = ignores_case(left) or ignores_case(right)
    return any(
        _places_meet(left, one, right, other, fold) for one in _places(left, fold) for other in _places(right, fold)
    )


def _places(reach: Reach, fold: bool) -> dict[str, None]:
    """Return the paths behind the key of `reach` and behind each other name of it; with `fold` without letter case.

    More than one if links are on the way, or were when it was locked.
    """
    keys = (reach.key or "", *(key for key in reach.keys if fold or not key.startswith(NO_CASE)))
    return dict.fromkeys(_plain(key.removeprefix(GLOB), fold) for key in keys)


def _places_meet(left: Reach, one: str, right: Reach, other: str, fold: bool) -> bool:
    """Return True if `left` at its place `one` and `right` at its place `other` meet."""
    if not (contains(one, other) or contains(other, one)):
        return False  # most locks lie in other folders
    if not left.pattern and not right.pattern:
        return True
    if not right.pattern:
        left, right, one, other = right, left, other, one
    if not left.pattern and left.segments[-1] is not wildcards.DEEP:
        return wildcards.covers(segments_of(right, fold), one)
    mine = segments_of(left, fold) if left.pattern else wildcards.of_path(one, deep=True)
    return wildcards.overlap(mine, segments_of(right, fold))


def segments_of(pattern: Reach, fold: bool) -> tuple[Any, ...]:
    """Return the segments of a pattern, with `fold` without letter case."""
    if not fold or ignores_case(pattern):
        return pattern.segments
    return (*wildcards.of_path(pattern.base, True), *_parsed(pattern.pattern, True))


def _name_meets(one: str, other: str) -> bool:
    """Return True if one of two names in a repository is the other, or a folder over it."""
    low, high = sorted((one, other), key=len)
    return low == high or high.startswith(low if low.endswith(":") else low + "/")


def checked(text: str) -> str:
    """Return `text` if it can name a file to lock. Raises SwarmError."""
    if not text.strip() or "\0" in text:
        raise SwarmError("a lock needs the path of a file")
    if len(text) > LONGEST_PATH:
        raise SwarmError(f"no file has a path of {len(text)} characters")
    if not storable(text):
        raise SwarmError("a file whose name is not valid UTF-8 cannot be locked")
    return text


def forms(reach: Reach) -> list[str]:
    """Return every name of the path of `reach`, or of a pattern's folder, each with letter case and without.

    The disk says if letter case counts, and may say otherwise of the folder and of the files in it.
    """
    keys = [(reach.key or "").removeprefix(GLOB), *reach.keys]
    if reach.pattern and ignores_case(reach):
        keys.append(reach.file.removesuffix(reach.pattern.lstrip("/")).rstrip("/") or "/")  # as it is spelled
    return list(dict.fromkeys(form for key in keys for form in (key, NO_CASE + _plain(key, True))))


def _of_pattern(file: str, base: str, pattern: str) -> Reach:
    fold = base.startswith(NO_CASE)
    try:
        own = _parsed(pattern, fold)
    except wildcards.PatternUnreadable as error:
        raise SwarmError(f"{pattern[:120]!r} is not a pattern: it {error}") from None
    prefix = wildcards.literal_prefix(wildcards.folded(pattern) if fold else pattern)
    if prefix:
        key = f"{base.rstrip('/')}/{prefix}"
    else:
        key = base
    return Reach(file, GLOB + key, (), pattern, base, (*_of_key(base), *own))


_known: dict[tuple[str, bool], list[Any]] = {}  # parsed patterns: the same few over and over


def _parsed(pattern: str, fold: bool) -> list[Any]:
    found = _known.get((pattern, fold))
    if found is None:
        if len(_known) >= 1000:
            _known.clear()
        found = _known[pattern, fold] = wildcards.parsed(pattern, fold)
    return found


def _of_key(key: str, deep: bool = False) -> list[Any]:
    return wildcards.of_path(key.removeprefix(NO_CASE), deep=deep)


def _plain(key: str, fold: bool) -> str:
    """Return a key as the path that it is, with `fold` without letter case."""
    path = key.removeprefix(NO_CASE)
    if fold:
        return wildcards.folded(path)
    return path


def ignores_case(reach: Reach) -> bool:
    """Return True if letter case does not count in the key of `reach`."""
    return (reach.key or "").removeprefix(GLOB).startswith(NO_CASE)


# ---------------------------------------------- names that are no files

LONGEST_NAME = 200  # characters


def name_at(name: str, folder: str) -> Reach:
    """Return the reach of `name` in the repository around `folder`. Raises SwarmError."""
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or len(name.split()) != 1 or "/" in name:
        raise SwarmError(f"a name has 1 to {LONGEST_NAME} characters without blanks and slashes, such as port:3000")
    return _reach_of_name([f"{one}/{name}" for one in name_folders(folder)])


def _reach_of_name(keys: list[str]) -> Reach:
    name = keys[0].rpartition("/")[2]
    return Reach(NAME_PREFIX + name, keys[0], tuple(dict.fromkeys(keys)), segments=(name,))


def name_folders(folder: str) -> list[str]:
    """Return the beginnings of the keys of names locked in `folder`, the best known first.

    They are the same in all work trees and clones of a repository. Elsewhere the folder itself counts.
    """

    place = os.path.realpath(folder)
    tree = repository.tree_over(place)
    if tree is None:
        ids = [repository.folder_id(repository.Tree(place, place, place))]
    else:
        repository.learn(tree, GIT_SECONDS)
        ids = repository.ids(tree)
    return [f"{NAME_PREFIX}/{one}" for one in ids]


def hint_of(file: str) -> str:
    """Return a hint for a lock on absolute `file` if that is probably meant as a name; else an empty text."""
    name = os.path.basename(file)
    before, colon, after = name.partition(":")
    if is_name(file) or not (before and colon and after) or os.path.lexists(file):
        return ""
    return f"there is no file {name}: `--name {name}`, or {NAME_PREFIX}{name}, locks a name that is no file"


# ---------------------------------------------- in every work tree


def with_names(reach: Reach, asked: bool) -> Reach:
    """Return `reach` with its names in its repository, if it is to hold in all of the repository's work trees.

    It is if the request has `asked` for it, or the repository is set so for every lock. Raises SwarmError if it was
    asked for and cannot be.
    """

    if is_name(reach.file):
        return reach  # it holds in all of them
    if not asked and (reach.key or "").startswith("/") and not repository.may_take_all(reach.key or ""):
        return reach
    if reach.key is not None:
        tree = tree_of(reach)
    else:
        tree = None
    if asked and reach.pattern:
        raise SwarmError(f"{reach.pattern[:120]} is a pattern: a lock of every work tree is on a file or a folder")
    if asked and tree is None:
        raise SwarmError(f"{reach.file} is in no git repository, so no other work tree has it")
    if tree is None or reach.pattern or not (asked or repository.opted_in(tree)):
        return reach
    repository.learn(tree, GIT_SECONDS)
    return reach._replace(names=tuple(repository.names_of(reach.key or "", tree)))


def tree_of(reach: Reach) -> Tree | None:
    """Return the work tree around a path, or around all files of a pattern; None outside of work trees."""

    path = reach.file
    if not reach.pattern and reach.key and not reach.key.startswith(NO_CASE):
        found: Tree | None = repository.tree_over(reach.key, is_real=True)
        return found
    if reach.pattern:
        parts = path.split("/")
        magic = next((at for at, part in enumerate(parts) if wildcards.is_pattern(part)), len(parts))
        path = "/".join(parts[:magic]) or "/"
    over: Tree | None = repository.tree_over(os.path.realpath(path), is_real=True)
    return over


# ---------------------------------------------------------------- request


class LockRequest(NamedTuple):
    """Locks that are wanted together: all of them, or not one.

    mode          ``exclusive`` or ``shared``
    agent         the subagent that is to hold them; empty for the session with all its agents
    ttl           seconds of the lease, counted from the holder's last sign of life; None without a lease
    expected_end  Unix seconds, for others to read; None if it is not known
    once          refuse also if this holder has one of them already
    logical       hold in every work tree of the same repository; so do all locks if that repository is set to it
    tool          the tool that asks, for the record
    ticket        place in the queue (``swarm_waiters``); 0 without one
    """

    reaches: tuple[Reach, ...]
    note: str = ""
    mode: str = EXCLUSIVE
    agent: str = ""
    ttl: float | None = None
    expected_end: int | None = None
    task_id: str | None = None
    once: bool = False
    logical: bool = False
    tool: str = "lock_file"
    ticket: int = 0


def request(
    instance: Session, files: list[str] | tuple[str, ...], as_pattern: bool | None = None, **given: Any
) -> LockRequest:
    """Return the request of `instance` for `files` as it spells them; `given`: as `LockRequest`. Raises SwarmError."""
    if not files:
        raise SwarmError("a lock needs the path of a file")
    if len(files) > MOST:
        raise SwarmError(f"{len(files)} locks at once; {MOST} is the most (a folder, or a pattern, is one)")
    mode, ttl = given.get("mode") or EXCLUSIVE, given.get("ttl")
    if mode not in MODES:
        raise SwarmError(f"unknown mode {mode[:40]!r}; choose from {', '.join(MODES)}")
    checked_ttl(ttl)
    checked_note(given.get("note") or "")
    asked = (with_names(reach_of(instance, file, as_pattern), bool(given.get("logical"))) for file in files)
    reaches = {reach.file: reach for reach in asked}
    return LockRequest(tuple(reaches.values()), **{**given, "mode": mode})


def checked_note(note: str) -> str:
    """Return `note`, or the reason for something about a lock, where it is short enough. Raises SwarmError."""
    size = len(note.encode("utf-8", "surrogatepass"))
    if size > LONGEST_NOTE:
        raise SwarmError(f"a note or a reason has at most {LONGEST_NOTE} bytes, not {size}: say the rest in a message")
    return note


def checked_ttl(ttl: float | None) -> float | None:
    """Return `ttl`, where a lease can last that long. Raises SwarmError."""
    if ttl is not None and not SHORTEST_LEASE <= ttl <= LONGEST_LEASE:
        raise SwarmError(
            f"a lease lasts from {SHORTEST_LEASE:g} second to {LONGEST_LEASE / 86400:g} days, not {ttl:g} s"
        )
    return ttl


def rule(lock: dict[str, Any], path: str) -> str:
    """Return the way in which a lock holds `path`: ``views``, ``folder``, ``pattern``, ``repository`` or ``queue``.

    ``inside``: it does not; it is on something below, and so the whole of `path` cannot be locked.
    """
    if lock.get("ticket"):
        return "queue"
    if lock.get("pattern"):
        return "pattern"
    file, key = plain(lock["file"]), lock.get("path_key") or key_of(lock["file"])
    own = key_of(path)
    if file == path or key == own:
        return "file"
    if contains(file, path) or contains(key, own) or contains(key.removeprefix(NO_CASE), own.removeprefix(NO_CASE)):
        return "folder"
    if contains(path, file) or contains(own, key):
        return "inside"
    if lock.get("repository"):
        return "repository"
    return "file"
