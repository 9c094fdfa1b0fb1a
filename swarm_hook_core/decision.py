"""The decision that every runtime shares: may this session make this call now?"""

MOST_PATCHED = 2000  # files of a patch in a shell command, which are all looked at


class Loss:
    """Another session's work, committed by nobody, that a refused call would have harmed.

    why   ``uncommitted``: the file was changed after the session last saw it; ``moment``: it is being written just
          now; ``sweep``: a git command meets it; ``stash``: it is an entry of the stash
    held  a ``lookup.Held`` that says whose work it is
    deed  what the call would have done to it, as a verb: ``overwrite``
    by    the part of a command that does so, empty for a tool
    at    when it was done, in Unix seconds
    also  paths of more files for which the call is refused
    """

    __slots__ = ("why", "held", "deed", "by", "at", "also")

    def __init__(self, why: str, held, deed: str, by: str = "", at: float = 0, also=()):
        self.why = why
        self.held = held
        self.deed = deed
        self.by = by
        self.at = int(at)
        self.also = list(also)


class Denial:
    """A refused call: the `path` it would have written, the lock (`held`) or the `loss`, and the `reason`.

    certain  True if the call would write the file, False if it only may
    times    how many denials of this path there were lately, with this one; 0 if that is not known
    is_news  True if the coordinator is to be told of it (``storms``)
    file     the file that the session waits for; of a pattern no more than this path
    brief    the reason for a client that has no room for more, and `rest`, what else its model is to hear; both empty
             for other clients (``brief_reason``)
    short    the reason in fewer words, for a denial that is repeated; empty if there are none
    deed     the attempt, if it is a person's alone to do (``protected``); then there is neither `held` nor `loss`
    """

    __slots__ = ("path", "held", "loss", "reason", "certain", "times", "is_news", "brief", "rest", "short", "deed")

    def __init__(self, path, held, reason, certain=True, loss=None):
        self.path = path
        self.held = held
        self.loss = loss
        self.reason = reason
        self.certain = certain
        self.times = 0
        self.is_news = True
        self.brief = self.rest = self.short = self.deed = ""

    @property
    def file(self) -> str:
        return self.path if self.held is None or self.held.pattern else self.held.file


class Verdict:
    """What is to be done about a call: a `denial` or None, a line for the model (`notice`, may be empty), and the
    locks (`watched`) whose files are to be compared afterwards. `failed`: the call could not be checked.

    `plan` (``kernel.plans``): what the kernel is to hold while the call runs, None for nothing; `entry`, what is to be
    put in front of its command for that, empty where nothing is (``kernel.statement``). `owners`: what sessions are to
    hear whose uncommitted changes it meets (``Trail.owners``)."""

    __slots__ = ("denial", "notice", "watched", "failed", "plan", "entry", "owners")

    def __init__(self, denial=None, notice="", watched=(), failed=False):
        self.denial = denial
        self.notice = notice
        self.watched = watched
        self.failed = failed
        self.plan = None
        self.entry = ""
        self.owners = ()


def decide(config, session, call, peers, now: float):
    """A Denial of `call`, a ToolCall, or None to let it pass: by the files that it says it writes. Changes nothing.

    Raises ValueError where the call writes files but its paths cannot be read.
    """
    if call.tool in config.write_tools:  # most calls: nothing more need be loaded for them
        targets = [(call.folder, path) for path in config.extract_paths(call.input)]
        if not peers.any():
            return None  # mostly nobody else has a lock at all: then nothing is asked about any of the files
    else:
        from swarm_hook_core.targets import write_targets

        # What else such a patch writes is a guess: who reads shell commands finds more effects than can be kept.
        targets = write_targets(config, call.tool, call.input, call.folder)[:MOST_PATCHED]
        if not targets:
            return None
    from swarm_hook_core.collisions import first_collision

    collision = first_collision(session, targets, peers)
    if collision is None:
        return None
    from swarm_hook_core.labels import token
    from swarm_hook_core.wording import reason

    path, held, _place, within = collision
    words = reason(
        call.client_tool, path, held, token(session.label, "identity"), now,
        within=within, own_id=session.instance_id, waiting=peers.waiting_for(path),
    )  # fmt: skip
    return Denial(path, held, words)
