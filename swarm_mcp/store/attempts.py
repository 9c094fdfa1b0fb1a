"""Refused requests and writes, as they are noted. A lock that is granted loads nothing of this."""

from __future__ import annotations

from swarm_hook_core.coordinator import LONGEST_WORDS, MOST_ALSO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple

    from swarm_hook_core.denial import Denial
    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.lock_request import LockRequest
else:
    from swarm_mcp.domain.record import NamedValues as NamedTuple

MOST_NAMED = 20  # of the files of one request, in the record of its refusal


class Attempt(NamedTuple):
    """A write, or a request for locks, that was refused; or a write that went ahead with a notice.

    tool    the tool of the write or the request
    path    the absolute path as it would have been written, empty for not known
    cwd     the folder of the call
    agent   the subagent that tried, empty for the session itself
    fence   of the lock that the hook saw in the way, None for not known
    mode    the kind of lock that was asked for, empty for a write
    wanted  the files of a request for several
    times   how many refused writes of `path` there were lately with this one, 0 for not known

    Of all but a lock in the way (``denial.Loss``):

    why         the kind of the obstacle, empty for a lock
    is_notice   True if the write went ahead, and its model was told
    deed        the effect of the call on it, as a verb
    command     the part of the command with that effect
    changed_at  Unix seconds: when the other session wrote, 0 for not known
    also        paths of more files that the call was refused for
    said        the words that the model was told
    """

    tool: str
    path: str = ""
    cwd: str = ""
    agent: str = ""
    fence: int | None = None
    mode: str = ""
    wanted: tuple[str, ...] = ()
    times: int = 0
    why: str = ""
    deed: str = ""
    command: str = ""
    changed_at: int = 0
    also: tuple[str, ...] = ()
    said: str = ""
    is_notice: bool = False


def of_denial(denial: Denial, tool: str, cwd: str) -> Attempt:
    """Return the attempt that a check has refused, by `tool` in the folder `cwd`."""
    held, loss = denial.held, denial.loss
    if loss is None:
        if held is not None and isinstance(held.fence, int):
            fence = held.fence
        else:
            fence = None
        return Attempt(tool, denial.path, cwd, fence=fence, times=denial.times)
    told: dict[str, Any] = {
        "why": loss.why,
        "deed": loss.deed,
        "command": loss.by[:LONGEST_WORDS],
        "changed_at": loss.at,
    }
    said = denial.reason.partition("\n")[0][:LONGEST_WORDS]
    also = tuple(loss.also[:MOST_ALSO])
    return Attempt(tool, denial.path, cwd, times=denial.times, also=also, said=said, **told)


def of_request(instance: Session, wanted: LockRequest) -> Attempt:
    """Return the attempt of a session that asked for locks."""
    files = tuple(reach.file for reach in wanted.reaches)
    if len(files) > 1:
        more = files[:MOST_NAMED]
    else:
        more = ()
    return Attempt(wanted.tool, files[0], instance.directory, wanted.agent, None, wanted.mode, more)
