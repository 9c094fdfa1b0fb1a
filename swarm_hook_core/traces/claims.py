"""Claims: locks that a write takes automatically for one turn, at the level ``turn``.

    <state>/claims/<digest of the file's key>   a claim, as JSON; its mtime is the time of its holder's last write
    <state>/claims/.<random>.tmp                a claim being written

A claim is put in its place complete and atomically (``os.link``): one of two hooks gets it, and readers never see half
of one. A hook first makes its own claim and then reads the others' claims and the store; the coordinator turns claims
into locks of the store and removes a claim after its lock exists. So no reader misses both.

Existing claims are removed or replaced under a file lock on the state folder, after reading them again. Times are those
of the holders' clocks. A claim is void `HOLD_SECONDS` after its last write.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.state import (
    NotOrdinary,
    claims_dir,
    clear_place,
    has_claims,
    lock_alone,
    open_in_private,
    open_private,
    state_dir,
    write_all,
)
from swarm_hook_core.traces import names_in
from swarm_hook_core.watching.snapshot import digest_of

HOLD_SECONDS = 600  # after the last write to the file
_NEARLY_NS = (HOLD_SECONDS - 10) * 10**9  # from this age on others may be about to replace the claim
_LONGEST = 65536
_TRIES = 5
_WORDS = ("key", "file", "runtime", "session_id", "agent", "tool")


class Claim:
    """One claim on a file.

    - key, file: the key of the lock, and the file's absolute path
    - runtime, session_id, agent: the holder: the client's session, and its sub-agent (empty for the session itself)
    - tool: the tool of the first write
    - at, written: times of the first and the last write (ns)
    - path: the claim's own file
    - is_new: True if this process has just made it
    """

    __slots__ = (*_WORDS, "at", "written", "path", "is_new")

    def __init__(
        self,
        key: str,
        file: str,
        runtime: str,
        session_id: str,
        agent: str = "",
        tool: str = "",
        at: int = 0,
        written: int = 0,
        path: str = "",
        is_new: bool = False,
    ):
        self.key = key
        self.file = file
        self.runtime = runtime
        self.session_id = session_id
        self.agent = agent
        self.tool = tool
        self.at = at
        self.written = max(at, written)
        self.path = path
        self.is_new = is_new

    def is_of(self, runtime: str, session_id: str, agent: str = "") -> bool:
        """Return True if the claim lets this agent write: agents may write their session's claims."""
        return (self.runtime, self.session_id) == (runtime, session_id) and self.agent in ("", agent)

    def is_over(self, now_ns: int) -> bool:
        """Return True if the claim is void: too old, or not a valid claim."""
        return not self.session_id or abs(now_ns - self.written) > HOLD_SECONDS * 10**9


def make(
    key: str,
    file: str,
    runtime: str,
    session_id: str,
    agent: str,
    tool: str,
    now_ns: int,
    is_void: Callable[[Claim], bool] | None = None,
) -> Claim:
    """Make or renew the caller's claim on the file with `key`; return the claim that is in force afterwards.

    That is another session's claim if it was first. `is_void(claim)`: True if another's claim no longer counts although
    it is not too old. Raises OSError.
    """
    path = _path_of(key)
    own = Claim(key, file, runtime, session_id, agent, tool, now_ns, path=path, is_new=True)
    for _ in range(_TRIES):
        standing = _claim_at(path)
        if standing is None:
            if _put(own):
                return own
        elif _is_own(standing, own) and 0 <= now_ns - standing.written < _NEARLY_NS:
            if _renew(standing, own):
                return standing
        elif not _gives_way(standing, own, is_void):
            return standing
        else:
            with _Alone():
                again = _claim_at(path)
                if again is not None and _gives_way(again, own, is_void):
                    if _is_own(again, own):
                        own.agent, own.is_new = again.agent, False
                    _remove(path)
                    if _put(own):
                        return own
    raise OSError(f"the claim on {file} changed all the time")


def take_back(claim: Claim) -> None:
    """Remove a claim that the caller has just made, after its call was denied. Raises OSError.

    A claim that was there before, or that another call of the session has renewed meanwhile, stays.
    """
    if claim.is_new:
        drop([claim])


def drop(gone: list[Claim]) -> list[Claim]:
    """Remove those of the claims `gone` that are unchanged on disk; return the others. Raises OSError."""
    left = []
    with _Alone():
        for claim in gone:
            standing = _claim_at(claim.path)
            if standing is not None and _same(standing, claim):
                _remove(claim.path)
            else:
                left.append(claim)
    return left


def others(runtime: str, session_id: str, agent: str, keys: Iterable[str], now_ns: int) -> list[Claim]:
    """Return the claims on files with any of `keys` that keep this agent out, also those of departed sessions."""
    names = set(_names())
    if not names:
        return []
    found = [_claim_at(os.path.join(claims_dir(), name)) for name in {_name_of(key) for key in keys} & names]
    return _keeping_out(filter(None, found), runtime, session_id, agent, now_ns)


def all_of_others(runtime: str, session_id: str, agent: str, now_ns: int) -> list[Claim]:
    """Return the claims on any file that keep this agent out. Reads every claim."""
    return _keeping_out(standing(), runtime, session_id, agent, now_ns)


def below(found: Iterable[Claim], folders: Iterable[str]) -> list[Claim]:
    """Return those of the claims `found` on files below the folders with these keys."""
    starts = tuple(folder.rstrip("/") + "/" for folder in folders)
    return [one for one in found if one.key.startswith(starts)]


def _keeping_out(found: Iterable[Claim], runtime: str, session_id: str, agent: str, now_ns: int) -> list[Claim]:
    return [one for one in found if not one.is_over(now_ns) and not one.is_of(runtime, session_id, agent)]


def standing() -> list[Claim]:
    """Return all claims, void ones too."""
    found = []
    for name in _names():
        try:
            found.append(_read(os.path.join(claims_dir(), name)))
        except OSError:
            continue  # not a claim: a folder or link of that name
    return [one for one in found if one is not None]


def end(runtime: str, session_id: str, agent: str | None = None, before_ns: int | None = None) -> list[Claim]:
    """End a turn: remove the claims of this `agent` (None: of the session and all its agents); return those removed.

    `before_ns`: the turn's end; later writes belong to the next turn. Raises OSError.
    """
    if not has_claims():
        return []
    mine = [one for one in standing() if is_ended(one, runtime, session_id, agent, before_ns)]
    left = []
    if mine:
        left = drop(mine)
    sweep()
    return [one for one in mine if one not in left]


def is_ended(
    claim: Claim, runtime: str, session_id: str, agent: str | None = None, before_ns: int | None = None
) -> bool:
    """Return True if the end of a turn, with the arguments of `end`, ends this claim."""
    if (claim.runtime, claim.session_id) != (runtime, session_id) or agent not in (None, claim.agent):
        return False
    return before_ns is None or claim.written <= before_ns


def sweep() -> None:
    """Remove void claims. Raises OSError."""
    now_ns = time.time_ns()
    old = [one for one in standing() if one.is_over(now_ns)]
    if old:
        drop(old)


# --------------------------------------------------------------------------------------------------- the files


def _name_of(key: str) -> str:
    return digest_of(key.encode("utf-8", "surrogatepass"), 16)


def _path_of(key: str) -> str:
    return os.path.join(claims_dir(), _name_of(key))


def _names() -> list[str]:
    return [name for name in names_in(claims_dir()) if not name.startswith(".")]


def _read(path: str) -> Claim | None:
    """Return the claim on `path`, or None. A file that is not a valid claim counts as unowned."""
    try:
        handle = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return None  # no claim on that file
    try:
        text = os.read(handle, _LONGEST).decode("utf-8", "replace")
        written = os.fstat(handle).st_mtime_ns
    finally:
        os.close(handle)
    try:
        content = loads(text)
    except (ValueError, RecursionError):
        content = None
    facts = content if isinstance(content, dict) else {}
    words, at = [word for name in _WORDS if isinstance(word := facts.get(name), str)], facts.get("at")
    if isinstance(at, int) and len(words) == len(_WORDS):
        key, file, runtime, session_id, agent, tool = words
        return Claim(key, file, runtime, session_id, agent, tool, at, written, path)
    return Claim("", "", "", "", written=written, path=path)


def _claim_at(path: str) -> Claim | None:
    """Return the claim on `path`, or None. A folder or link there counts as unowned: the next claim replaces it."""
    try:
        return _read(path)
    except NotOrdinary:
        return Claim("", "", "", "", path=path)  # counts as unowned


def _put(claim: Claim) -> bool:
    """Put a claim in its place; return False if another one is there."""
    scratch = os.path.join(claims_dir(), f".{os.urandom(8).hex()}.tmp")
    facts = {name: getattr(claim, name) for name in (*_WORDS, "at")}
    handle = open_in_private(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(handle, dumps(facts).encode("ascii"))
        finally:
            os.close(handle)
        os.utime(scratch, ns=(claim.at, claim.at))
        os.link(scratch, claim.path)
    except FileExistsError:
        return False  # another session was first
    finally:
        _remove(scratch)
    return True


def _renew(standing: Claim, own: Claim) -> bool:
    """Set the time of the holder's last write; return True if the claim still exists after that."""
    try:
        os.utime(standing.path, ns=(own.at, own.at))
    except FileNotFoundError:
        return False  # removed by another process just now
    standing.written = own.at
    again = _read(standing.path)
    return again is not None and _is_own(again, own)


def _remove(path: str) -> None:
    try:
        clear_place(path)
        os.remove(path)
    except FileNotFoundError:
        return  # removed by another process, or a folder that was moved away


def _same(one: Claim, other: Claim) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in (*_WORDS, "at", "written"))


def _is_own(claim: Claim, own: Claim) -> bool:
    return claim.is_of(own.runtime, own.session_id, own.agent)


def _gives_way(claim: Claim, own: Claim, is_void: Callable[[Claim], bool] | None) -> bool:
    """Return True if `own` may replace `claim`: the caller's own, void, or rejected by `is_void`."""
    return _is_own(claim, own) or claim.is_over(own.at) or bool(is_void and is_void(claim))


class _Alone:
    """Exclusive access to existing claims, by a file lock. Raises OSError if it cannot be had in time."""

    def __enter__(self) -> None:
        self._handle = -1
        if os.name != "posix":
            return  # Windows opens no folder
        self._handle = os.open(state_dir(), os.O_RDONLY | os.O_CLOEXEC)
        try:
            lock_alone(self._handle)
        except OSError:
            os.close(self._handle)
            raise

    def __exit__(self, *_exception: object) -> None:
        if self._handle >= 0:
            os.close(self._handle)
