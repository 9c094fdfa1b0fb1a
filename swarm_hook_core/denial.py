"""The reasons for which a call is denied."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.lookup import Held, Peers, Session


class Loss:
    """Work without a lock that a denied call would have harmed.

    why   ``uncommitted``: the file was changed after the session last saw it; ``moment``: it is being written just
          now; ``sweep``: a git command meets it; ``stash``: it is an entry of the stash. Without an owner
          (`without_owner`): ``person``: it is a person's; ``fence``: it is in another work tree; ``head``: it is the
          HEAD, index or stash that sessions share
    held  a ``lookup.Held`` with the owner of the work; its `instance_id` is empty if that is no session
    deed  the call's effect on it, as a verb: ``overwrite``
    by    the part of a command that does so, empty for a tool
    at    when it was done, in Unix seconds
    also  paths of more files for which the call is denied
    """

    __slots__ = ("why", "held", "deed", "by", "at", "also")

    def __init__(self, why: str, held: "Held", deed: str, by: str = "", at: float = 0, also: "Iterable[str]" = ()):
        self.why = why
        self.held = held
        self.deed = deed
        self.by = by
        self.at = int(at)
        self.also = list(also)


def without_owner(why: str, deed: str, by: str = "", also: "Iterable[str]" = ()) -> Loss:
    """Return the Loss of work that belongs to no session."""
    from swarm_hook_core.lookup import Held

    return Loss(why, Held("", ""), deed, by, also=also)


class Denial:
    """A denied call: the `path` of its write, the lock (`held`) or the `loss`, and the `reason`.

    certain  True if the call would write the file, False if it only may
    times    the number of recent denials of this path, with this one; 0 if that is not known
    is_news  True if the coordinator is to be told of it (``storms``)
    file     the file that the session waits for; for a pattern this path only
    brief    the reason for a client that has no room for more, and `rest`, further words for its model; both empty
             for other clients (``brief_reason``)
    short    the reason in fewer words, for a denial that is repeated; may be empty
    question the question to the person, if the person may let the call pass at the client (``persons``); may be empty
    deed     the attempt, if only a person may do that (``protected``); then there is neither `held` nor `loss`
    """

    __slots__ = ("path", "held", "loss", "reason", "certain", "times", "is_news", "brief", "rest", "short", "deed",
                 "question")  # fmt: skip

    def __init__(self, path: str, held: "Held | None", reason: str, certain: bool = True, loss: "Loss | None" = None):
        self.path = path
        self.held = held
        self.loss = loss
        self.reason = reason
        self.certain = certain
        self.times = 0
        self.is_news = True
        self.brief = self.rest = self.short = self.deed = self.question = ""

    @property
    def file(self) -> str:
        return self.path if self.held is None or self.held.pattern else self.held.file


def of_lock(
    collision: "tuple[str, Held, int, bool]", session: "Session", call: "ToolCall", peers: "Peers", now: float
) -> Denial:
    """Return the Denial of a call that names a locked file; `collision` as ``first_collision`` returns it."""
    from swarm_hook_core.labels import token
    from swarm_hook_core.wording import reason

    path, held, _place, within = collision
    words = reason(
        call.client_tool, path, held, token(session.label, "identity"), now,
        within=within, own_id=session.instance_id, waiting=peers.waiting_for(path),
    )  # fmt: skip
    return Denial(path, held, words)
