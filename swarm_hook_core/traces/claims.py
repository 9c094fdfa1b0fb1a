"""Claims: at level ``turn`` the first write to a file keeps it from all others until the turn ends.

    <state>/claims/<digest of the file's key>   a claim, as JSON; its mtime is its holder's last write to that file
    <state>/claims/.<random>.tmp                one that is being written

A claim is put in its place whole and at once (``os.link``): of two hooks one gets it, and nobody reads half of one.
A hook makes its own claim first and then looks at those of others and at the store; the coordinator, which turns claims
into locks of its store, removes one after the lock is there. So nobody misses both.

What stands is removed or replaced under a lock on the state folder, where it is read again. The times are those of the
holders' clocks: a claim is void once nobody has written for `HOLD_SECONDS`.
"""

import os
import time

from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.state import (
    NotOrdinary,
    claims_dir,
    clear_place,
    has_claims,
    open_in_private,
    open_private,
    state_dir,
    write_all,
)

HOLD_SECONDS = 600  # after the last write to the file
_NEARLY_NS = (HOLD_SECONDS - 10) * 10**9  # from here on others may be about to replace it
_PATIENCE, _PAUSE = 0.5, 0.002  # seconds to wait for whoever changes claims just now
_LEFTOVER_SECONDS = 60
_LONGEST = 65536
_TRIES = 5
_WORDS = ("key", "file", "runtime", "session_id", "agent", "tool")


class Claim:
    """One claim on a file.

    key, file   the key that the file is locked under, and its absolute path
    runtime, session_id, agent   whose it is: the client's session, and which of its agents (empty for the session)
    tool        what it was first written with
    at, written the first write and the last one (ns)
    path        where the claim itself is
    is_new      whether this very process has just made it
    """

    __slots__ = (*_WORDS, "at", "written", "path", "is_new")

    def __init__(self, key, file, runtime, session_id, agent="", tool="", at=0, written=0, path="", is_new=False):
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
        """Whether it does not keep this agent out: what a session has claimed, its agents may write."""
        return (self.runtime, self.session_id) == (runtime, session_id) and self.agent in ("", agent)

    def is_over(self, now_ns: int) -> bool:
        """Whether nobody has written for so long that it is void, or it is none of ours."""
        return not self.session_id or abs(now_ns - self.written) > HOLD_SECONDS * 10**9


def make(key, file, runtime, session_id, agent, tool, now_ns, is_void=None):
    """The Claim that stands on the file with `key` from now on: the caller's own, or somebody else's that did before.

    The caller's is renewed where it stands already. `is_void`: whether a Claim of somebody else counts no more, though
    it `is_over` not. Raises OSError.
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


def take_back(claim) -> None:
    """Remove a claim that the caller has just made, since the call was denied. Raises OSError.

    It stays where it is another's, was there before, or was renewed by another call of the session meanwhile.
    """
    if claim.is_new:
        drop([claim])


def drop(gone) -> list:
    """Remove these claims where they still stand as they were read; those that did not. Raises OSError."""
    left = []
    with _Alone():
        for claim in gone:
            standing = _claim_at(claim.path)
            if standing is not None and _same(standing, claim):
                _remove(claim.path)
            else:
                left.append(claim)
    return left


def others(runtime, session_id, agent, keys, now_ns) -> list:
    """The claims on files with any of `keys` that keep this agent of a session out. Those of sessions that have gone
    are among them."""
    names = set(_names())
    if not names:
        return []
    found = [_claim_at(os.path.join(claims_dir(), name)) for name in {_name_of(key) for key in keys} & names]
    return _keeping_out(filter(None, found), runtime, session_id, agent, now_ns)


def all_of_others(runtime, session_id, agent, now_ns) -> list:
    """The same of all files. Reads every claim there is."""
    return _keeping_out(standing(), runtime, session_id, agent, now_ns)


def below(found, folders) -> list:
    """Those of the claims `found` that are on files below folders with these keys."""
    starts = tuple(folder.rstrip("/") + "/" for folder in folders)
    return [one for one in found if one.key.startswith(starts)]


def _keeping_out(found, runtime, session_id, agent, now_ns) -> list:
    return [one for one in found if not one.is_over(now_ns) and not one.is_of(runtime, session_id, agent)]


def standing() -> list:
    """Every claim there is, void ones too."""
    found = []
    for name in _names():
        try:
            found.append(_read(os.path.join(claims_dir(), name)))
        except OSError:
            continue  # no claim of ours: a folder of that name, somebody's link
    return [one for one in found if one is not None]


def end(runtime, session_id, agent=None, before_ns=None) -> list:
    """A turn is over: remove the claims of this `agent` (None: of the session and all its agents); those removed.

    `before_ns`: when it ended; what was written since is of the next turn. Raises OSError.
    """
    if not has_claims():
        return []
    mine = [one for one in standing() if is_ended(one, runtime, session_id, agent, before_ns)]
    left = drop(mine) if mine else []
    sweep()
    return [one for one in mine if one not in left]


def is_ended(claim, runtime, session_id, agent=None, before_ns=None) -> bool:
    """Whether a turn's end, as in `end`, ends this claim."""
    if (claim.runtime, claim.session_id) != (runtime, session_id) or agent not in (None, claim.agent):
        return False
    return before_ns is None or claim.written <= before_ns


def sweep() -> None:
    """Remove claims that are void for their age, and what processes left that were killed while they wrote.

    Raises OSError.
    """
    now_ns = time.time_ns()
    old = [one for one in standing() if one.is_over(now_ns)]
    if old:
        drop(old)
    for name in _entries():
        if name.startswith("."):
            path = os.path.join(claims_dir(), name)
            try:
                if abs(now_ns / 10**9 - os.lstat(path).st_mtime) > _LEFTOVER_SECONDS:
                    os.remove(path)
            except OSError:
                continue  # its maker has just removed it


# --------------------------------------------------------------------------------------------------- the files


def _name_of(key: str) -> str:
    from swarm_hook_core.watching.snapshot import digest_of

    return digest_of(key.encode("utf-8", "surrogatepass"), 16)


def _path_of(key: str) -> str:
    return os.path.join(claims_dir(), _name_of(key))


def _entries() -> list:
    try:
        return os.listdir(claims_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _names() -> list:
    return [name for name in _entries() if not name.startswith(".")]


def _read(path: str):
    """The Claim in this place, None where there is none; one of nobody where what is there is no claim."""
    try:
        handle = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        text = os.read(handle, _LONGEST).decode("utf-8", "replace")
        written = os.fstat(handle).st_mtime_ns
    finally:
        os.close(handle)
    try:
        told = loads(text)
    except (ValueError, RecursionError):
        told = None
    facts = {name: told.get(name) for name in (*_WORDS, "at")} if isinstance(told, dict) else {}
    at = facts.pop("at", None)
    if isinstance(at, int) and all(isinstance(word, str) for word in facts.values()):
        return Claim(**facts, at=at, written=written, path=path)
    return Claim("", "", "", "", written=written, path=path)


def _claim_at(path: str):
    """As `_read`; what is no ordinary file is a claim of nobody, which the next one takes the place of."""
    try:
        return _read(path)
    except NotOrdinary:
        return Claim("", "", "", "", path=path)


def _put(claim) -> bool:
    """Put a claim in its place; whether nobody's was there."""
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
        return False
    finally:
        _remove(scratch)
    return True


def _renew(standing, own) -> bool:
    """Note one more write by the holder of `standing`; whether that still stands."""
    try:
        os.utime(standing.path, ns=(own.at, own.at))
    except FileNotFoundError:
        return False
    standing.written = own.at
    again = _read(standing.path)
    return again is not None and _is_own(again, own)


def _remove(path: str) -> None:
    try:
        clear_place(path)
        os.remove(path)
    except FileNotFoundError:
        return  # somebody else did, or it was no file


def _same(one, other) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in (*_WORDS, "at", "written"))


def _is_own(claim, own) -> bool:
    return claim.is_of(own.runtime, own.session_id, own.agent)


def _gives_way(claim, own, is_void) -> bool:
    """Whether `own` may take the place of `claim`: void, or the caller's and nearly so."""
    return _is_own(claim, own) or claim.is_over(own.at) or bool(is_void and is_void(claim))


class _Alone:
    """Nobody else changes claims that stand meanwhile. Raises OSError where that cannot be had in time."""

    def __enter__(self):
        self._handle = -1
        try:
            import fcntl
        except ImportError:
            return
        end = time.monotonic() + _PATIENCE
        self._handle = os.open(state_dir(), os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                if time.monotonic() > end:
                    os.close(self._handle)
                    raise
            time.sleep(_PAUSE)

    def __exit__(self, *_exception):
        if self._handle >= 0:
            os.close(self._handle)
