"""The hook core's part in a team: how fresh this machine's knowledge of the other machines' locks is.

The team agent writes down until when its knowledge is fresh: as long as the server waits for this machine before it
lets a grant on another machine count. After that, there may be locks that are unknown here. Loaded only if a clone on
this machine has joined a team (``state.shares_locks``).
"""

from __future__ import annotations

import os
from time import sleep, time
from typing import Any

from swarm_hook_core import clock
from swarm_hook_core.denial import Denial, Notice, without_owner
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.lookup import FirstLook
from swarm_hook_core.process import host_id
from swarm_hook_core.settings import strict
from swarm_hook_core.state import name_of, read_private, remove_older, state_dir, team_socket, write_private
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.wording import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.check import Check, Writes

KEPT_SECONDS = 86400  # of the marks for told sessions
FOLLOWING = "following"  # the state of a repository whose server the team agent has not lost
SLEPT_SECONDS = 30.0  # without an answer by the time of day: a machine that slept, whatever its other clock says
ANEW_SECONDS = 2.0  # that checks wait for news after a sleep
LOOK_SECONDS = 0.02


class Stale:
    """A work tree without fresh knowledge of the locks on other machines.

    top         its folder, links resolved
    repository  the team's name of it
    said_at     Unix seconds of the server's last answer, None for never
    mark        tells this time without news from another one
    is_followed  the team agent has not lost the server: this machine has slept, or was stopped
    """

    __slots__ = ("top", "repository", "said_at", "mark", "is_followed")

    def __init__(self, top: str, repository: Any, said_at: object, mark: str, is_followed: bool):
        self.top = top
        self.repository = repository
        self.said_at = said_at
        self.mark = mark
        self.is_followed = is_followed


def may_miss_locks(reader: FirstLook) -> bool:
    """Return True if locks of other machines may be unknown here, in one of the joined work trees."""
    return bool(stale_trees(reader.shared_trees()))


def hear_anew(check: Check) -> bool:
    """Wait for news of other machines' locks if the call concerns them and this machine has slept.

    Return True if the news have come: locks that were looked up before are to be looked up again.
    """
    stale = stale_trees(check.shared_trees)
    if check.is_question or not any(one.is_followed for one in stale):
        return False
    tree = concern(stale, check.writes)
    if tree is None or not tree.is_followed or not _call_agent():
        return False
    until = _waits_until(tree.mark)
    while clock.now() < until:
        sleep(LOOK_SECONDS)
        check.shared_trees = check.glance.shared_trees()
        found = [one for one in stale_trees(check.shared_trees) if one.top == tree.top]
        if not found:
            return True
        if not found[0].is_followed:
            break
    return False


def _call_agent() -> bool:
    """Have this machine's team agent ask its server now. Return False if there is no agent."""
    import socket

    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(0.2)
            connection.connect(team_socket())
            connection.sendall(b'{"ask": "poke"}\n')
    except (OSError, AttributeError):  # none runs, or this system has no such sockets
        return False
    return True


def _waits_until(mark: str) -> float:
    """Return until when (``clock.now``) checks wait in this time without news: the first of them sets it."""
    path, until = os.path.join(state_dir(), "team", "awaited"), clock.now() + ANEW_SECONDS
    try:
        known, _, end = read_private(path, 1024).decode().rpartition(" ")
        if known == mark:
            return min(until, float(end))
    except (OSError, ValueError):  # the first one
        pass
    try:
        write_private(path, f"{mark} {until}")
    except OSError:  # a sandbox: the next one waits, too
        pass
    return until


def judge(check: Check) -> Verdict | None:
    """Return the Verdict on a call that may write where locks of other machines may be unknown here, or None.

    It is a notice, and with ``strict`` a denial.
    """
    call = check.call
    stale = stale_trees(check.shared_trees)
    tree = concern(stale, check.writes) if stale else None
    if tree is None:
        return None

    unknown = without_owner("team", "write")
    if strict(check.config.env_prefix, call.folder):
        said = words(call.client_tool, tree, check.now, True)
        return Verdict(Denial(tree.top, None, said, certain=False, loss=unknown))
    if not check.is_question and not is_news(call, tree):
        return None
    verdict = Verdict(None, words(call.client_tool, tree, check.now, False))
    verdict.noted = [Notice(tree.top, unknown, verdict.notice)]
    return verdict


def stale_trees(rows: list[tuple[Any, ...]]) -> list[Stale]:
    """Return the Stale work trees on this machine among `rows` of ``LockReader.shared_trees``. Nearly always empty."""
    if not rows:
        return []
    here, now = clock.boot(host_id()), clock.now()
    long_ago = time() - SLEPT_SECONDS
    return [
        Stale(top, repository, said_at, f"{booted} {until}", state == FOLLOWING)
        for top, repository, until, booted, said_at, state in rows
        if not isinstance(until, (int, float))
        or (booted != here or until < now)
        or (isinstance(said_at, (int, float)) and said_at < long_ago)
    ]


def concern(stale: list[Stale], writes: Writes) -> Stale | None:
    """Return the first of these trees that a call may write in, or None."""
    call, effects = writes.call, writes.effects
    if writes.has_names:
        places = writes.paths
    elif effects is None or not (effects.size or effects.runs):
        return None
    else:
        places = [os.path.join(write.folder or call.folder, write.path) for write in effects.writes]
        places += [tree.root for tree in effects.trees] + [git.folder for git in effects.git]
        # Writes that a command does not name count for the folder it runs in.
        places += [guess.folder or call.folder for guess in effects.guesses] + [call.folder] * effects.runs
    for place in dict.fromkeys(places):
        real = os.path.realpath(place) + os.sep
        for one in stale:
            if real.startswith(one.top.rstrip(os.sep) + os.sep):
                return one
    return None


def words(tool: str, one: Stale, now: float, is_denied: bool) -> str:
    """Return the words for the model about a call in a Stale tree: it goes ahead, or it `is_denied`."""
    if isinstance(one.said_at, (int, float)):
        since = f"for {duration(now - one.said_at)}"
    else:
        since = "since it has joined"
    said = (
        f"swarm: this machine has not heard from the server of {named(one.repository)} {since}: what sessions on other"
        " machines have locked since then is not known here."
    )
    if is_denied:
        return (
            f"{said} This {tool} call was denied, since `strict` is on; nothing was written. Do not write it another"
            " way: do what needs no write there, or tell the user. `swarm-mcp team status` says what is wrong."
        )
    return (
        f"{said} What was known still denies, and this call goes ahead. `swarm-mcp team status` says what is wrong; a"
        " lock that must hold on all machines is one whose answer says `team` with a `fence`."
    )


def is_news(call: ToolCall, one: Stale) -> bool:
    """Return True, once, if the session or agent of a call has not been told of this time without news."""
    folder = os.path.join(state_dir(), "team", "told")
    path = os.path.join(folder, name_of(f"{call.session_id}-{call.agent}"))
    try:
        if read_private(path, 1024).decode() == one.mark:
            return False
    except (OSError, ValueError):  # nothing was told yet
        pass
    try:
        remove_older(folder, time() - KEPT_SECONDS)
        write_private(path, one.mark)
    except OSError:
        return True  # a sandbox: better told too often
    return True
