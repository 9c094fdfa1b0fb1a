"""The decision about a call that would lose a person's uncommitted work, by the level in force.

From `keep` on the call is denied, or the person is asked if the client can ask. Below, it goes ahead: at `notice` its
model is told. Contents that may go, and that are neither in git nor certainly the session's own, are kept first.
"""

from __future__ import annotations

import os

from swarm_hook_core import REPLACE
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.labels import token
from swarm_hook_core.persons.losses import Loss, Losses
from swarm_hook_core.persons.owners import BUILT, PERSON, Authors
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.traces import NOTICE, OFF, keeping
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.trail import Trail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import LockReader, Session

MOST_FILES = 500  # files of one call with an author looked up, and with contents kept
MOST_BYTES = 32 * 1024 * 1024  # contents of one call: older ones are not all pushed out by it


def judge(
    session: Session, trail: Trail, effects: Effects | None, reader: LockReader, now: float
) -> Verdict | None:  # fmt: skip
    """Return the Verdict on a call, or None if no work of a person is at stake.

    `effects`: effects of a shell or MCP call; None: the call names its files.
    """
    meetings = Meetings(trail, reader, now, effects.budget if effects is not None else None)
    authors, looks = Authors(meetings), Looks(meetings)
    is_noted = trail.level != OFF  # else the session's own calls are not known, nor kept as versions
    losses = Losses(
        trail, effects, lambda loss: is_noted and authors.is_own(loss.path), lambda loss: is_noted and looks.cover(loss)
    )
    identity = token(session.label, "identity")
    stash = _stash(meetings, authors, effects, identity, now)
    if not (losses.found or losses.free or losses.late or losses.taken):
        return stash
    from swarm_hook_core.persons import answers

    known = authors.of_each(list(losses.found.values())[:MOST_FILES])
    known = [(loss, author) for loss, author in known if not _is_kept_by(meetings, effects, loss)]
    theirs = [(loss, author) for loss, author in known if author.who == PERSON]
    denied = [one for one in theirs if one[0].is_certain and not looks.cover(one[0])]
    denies = trail.level not in (OFF, NOTICE)
    if denies:
        denied = [one for one in denied if not _is_merged(meetings, effects, one[0])]
    verdict = None
    if denies and (denied or losses.late):
        verdict = Verdict(answers.denial(meetings, authors, denied, known, losses, identity, now))
    elif stash is not None and stash.denial is not None:
        return stash
    elif theirs and trail.level == NOTICE:
        verdict = answers.notice(trail, authors, theirs)
    may_pass = verdict is None or verdict.denial is None or can_ask(trail.config, trail.call)
    if verdict is None and is_noted:
        taken = [loss for loss in list(losses.taken.values())[:MOST_FILES] if loss.is_certain]
        verdict = answers.along(meetings, authors, taken, identity, now)
    if may_pass and not trail.is_asked:
        _keep(trail, [loss for loss, author in [*theirs, *known] if author.who in (PERSON, BUILT)], losses.free)
    return verdict or stash


def _stash(
    meetings: Meetings, authors: Authors, effects: Effects | None, identity: str, now: float
) -> Verdict | None:  # fmt: skip
    """Return the Verdict on the call's stash commands, or None."""
    if effects is None or not effects.git:
        return None
    from swarm_hook_core.shell.programs.git.table import is_subcommand

    if not any(one.words[0] == "stash" or not is_subcommand(one.words[0]) for one in effects.git):
        return None
    from swarm_hook_core.traces import stash

    return stash.judge(meetings, authors, effects, identity, now)


class Looks:
    """The looks of the session at the files of one call; each file is looked up once."""

    def __init__(self, meetings: Meetings):
        self._meetings = meetings
        self._covered: dict[str, bool] = {}  # path -> True if the session has read the file

    def cover(self, loss: Loss) -> bool:
        """Return True if the call replaces a whole file that its session has read as it is now."""
        if loss.how != REPLACE or loss.words:
            return False
        if loss.path not in self._covered:
            from swarm_hook_core.traces.looks import has_read

            self._covered[loss.path] = has_read(self._meetings, loss.spelled, loss.path)
        return self._covered[loss.path]


def can_ask(config: RuntimeConfig, call: ToolCall) -> bool:
    """Return True if the client asks its user about a call when a hook wants that."""
    return config.asks is not None and config.asks(call)


def _is_kept_by(meetings: Meetings, effects: Effects | None, loss: Loss) -> bool:
    """Return True if the call's new content of the file keeps all uncommitted lines."""
    if loss.how != REPLACE or loss.words:
        return False
    from swarm_hook_core.traces import new_text

    trail = meetings.trail
    return new_text.keeps(trail.config, trail.call, effects, loss.spelled, loss.path, meetings)


def _is_merged(meetings: Meetings, effects: Effects | None, loss: Loss) -> bool:
    """Return True if the call's new content of the file is merged with the uncommitted lines."""
    if loss.how != REPLACE or loss.words:
        return False
    from swarm_hook_core.traces import merged_writes

    return merged_writes.is_merged(meetings.trail, effects, loss.spelled, loss.path, meetings)


def _keep(trail: Trail, losses: list[Loss], free: list[Loss]) -> None:
    """Keep the contents of these files for `swarm-mcp restore`, up to the limits."""
    left = MOST_BYTES
    for path in list(dict.fromkeys(loss.path for loss in [*losses, *free]))[:MOST_FILES]:
        try:
            size = os.lstat(path).st_size
        except (OSError, ValueError):
            continue  # gone
        if size <= left and keeping.lost(trail, path):
            left -= size
