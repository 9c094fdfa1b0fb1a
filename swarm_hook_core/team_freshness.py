"""Whether what is known here of a team's locks is fresh, in work trees that have joined one.

The team agent writes down until when it is: as long as the server waits for this machine before it lets a grant on
another one count. Once that is over, somebody may hold what nobody here knows of. Loaded only where a clone has joined.
"""

import os

from swarm_hook_core import clock
from swarm_hook_core.process import host_id
from swarm_hook_core.state import name_of, read_private, state_dir, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.check import Writes

KEPT_SECONDS = 86400  # of what sessions were told


class Stale:
    """A work tree of which the locks on other machines are not known any more.

    top         its folder, links resolved
    repository  what the team calls it
    said_at     Unix seconds: when the server was last heard of, None for never
    mark        tells this time without news from another one
    """

    __slots__ = ("top", "repository", "said_at", "mark")

    def __init__(self, top, repository, said_at, mark):
        self.top = top
        self.repository = repository
        self.said_at = said_at
        self.mark = mark


def stale_trees(rows) -> list:
    """The Stale work trees on this machine, of the `rows` of ``LockReader.team_trees``. Nearly always none."""
    if not rows:
        return []
    here = clock.boot(host_id())
    return [
        Stale(top, repository, said_at, f"{booted} {until}")
        for top, repository, until, booted, said_at in rows
        if not isinstance(until, (int, float)) or booted != here or until < clock.now()
    ]


def concern(stale: "list[Stale]", writes: "Writes") -> "Stale | None":
    """Return the first of these trees that a call may write in, or None."""
    call, effects = writes.call, writes.effects
    if writes.has_names:
        places = writes.paths
    elif effects is None or not (effects.size or effects.runs):
        return None
    else:
        places = [os.path.join(write.folder or call.folder, write.path) for write in effects.writes]
        places += [tree.root for tree in effects.trees] + [git.folder for git in effects.git]
        # What a command does not name it writes where it runs, as far as anybody can tell.
        places += [guess.folder or call.folder for guess in effects.guesses] + [call.folder] * effects.runs
    for place in dict.fromkeys(places):
        real = os.path.realpath(place) + os.sep
        for one in stale:
            if real.startswith(one.top.rstrip(os.sep) + os.sep):
                return one
    return None


def words(tool: str, one, now: float, is_denied: bool) -> str:
    """What a model is told of a call in a Stale tree: that it goes ahead, or that it `is_denied`."""
    from swarm_hook_core.untrusted_text import named
    from swarm_hook_core.wording import duration

    since = f"for {duration(now - one.said_at)}" if isinstance(one.said_at, (int, float)) else "since it has joined"
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


def is_news(call, one) -> bool:
    """Whether the session, or its agent, that makes a call has not been told of this time without news yet.

    From now on it has.
    """
    folder = os.path.join(state_dir(), "team", "told")
    path = os.path.join(folder, name_of(f"{call.session_id}-{call.agent}"))
    try:
        if read_private(path, 1024).decode() == one.mark:
            return False
    except (OSError, ValueError):
        pass
    try:
        _forget_old(folder)
        write_private(path, one.mark)
    except OSError:
        return True  # a sandbox: better told too often
    return True


def _forget_old(folder: str) -> None:
    from time import time

    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        if os.path.getmtime(path) < time() - KEPT_SECONDS:
            os.remove(path)
