"""The locks of other live sessions, as one session may ask for them."""

from swarm_hook_core.paths import NO_CASE, contains

NEAR = 200  # locks near a call that are watched or named at most
SOME_AGENT = "*"  # one of the session's agents, or none, where nobody says which: none of them is kept from another


class Peers:
    """What `reader` (a ``LockReader``) knows of the locks of others than `own_id` who have not gone.

    A session without an id of its own could not be registered. What its client's MCP server locked for
    it is then not held against it. What another of its agents holds than `own_agent` counts as a peer's.
    """

    def __init__(self, reader, own_id: str, now: float, own_agent: str = ""):
        self.reader = reader
        self.own_id = own_id
        self.own_agent = own_agent
        self.now = now
        self._gone: dict = {}  # instance -> whether it has

    def any(self) -> bool:
        """Whether anybody else has a lock at all; those of sessions that have gone still count."""
        return self.reader.others_hold(self.own_id)

    def on(self, keys, over=()) -> list:
        """The Held locks under any of `keys`, on patterns that cover what has such a key, and under any key of `over`.

        `over`, the folders over those paths: a pattern that fits a folder does not hold what is in it.
        """
        found = self.reader.locks_on([*keys, *over]) + self.reader.patterns_over(keys)
        return self._live(found + self.reader.worktree_locks_over([*keys, *over]))

    def under(self, folders, limit: int = NEAR) -> list:
        """The Held locks of files and folders below any of these (spellings and keys, see ``paths``)."""
        found = self.reader.locks_under(folders, self.own_id, limit, self.own_agent)
        return self._live(found + self.reader.worktree_locks_under(folders, self.own_id, limit))

    def patterns(self, folders) -> list:
        """The Held locks on patterns that may cover something below any of these folders."""
        return self._live(self.reader.patterns_near(folders, self.own_id))

    def over(self, roots) -> list:
        """The Held locks on any of these, and on the folders over them."""
        return self.on(roots, list(dict.fromkeys(key for root in roots for key in above(root))))

    def around(self, roots, limit: int = NEAR) -> list:
        """`under`, `over` and `patterns`, each lock once."""
        found = self.under(roots, limit) + self.over(roots) + self.patterns(roots)
        return list({(held.file, held.instance_id, held.agent): held for held in found}.values())

    def waiting_for(self, path: str) -> int:
        """How many wait for a lock on `path` already."""
        return self.reader.waiting_for(path)

    def was_denied(self, held, path: str, seconds: float) -> bool:
        """Whether it was noted in the last `seconds` that this lock kept this session from writing `path`."""
        return self.reader.was_denied(self.own_id, held, self.now - seconds, path)

    def _live(self, found) -> list:
        rows = [held for held in found if self._is_peers(held)]
        if not rows:
            return rows
        return [held for held in rows if held.evidence is None or not self._is_void(held)]

    def _is_peers(self, held) -> bool:
        if held.instance_id != self.own_id:
            return True
        return held.agent not in ("", self.own_agent) and self.own_agent != SOME_AGENT

    def _is_void(self, held) -> bool:
        if self._has_gone(held) or self._has_lapsed(held):
            return True
        if (held.agent or "").startswith("hold:") or held.evidence["runtime"] == "hold":
            from swarm_hook_core.lookup.process_holders import has_ended, runs_inside
            from swarm_hook_core.process import host_id

            return has_ended(held.agent, host_id()) or runs_inside(held.agent, held.evidence)
        return False

    def _has_lapsed(self, held) -> bool:
        if held.lease is None:
            return False
        from swarm_hook_core.clock import left
        from swarm_hook_core.process import host_id

        return left(*held.lease, host_id(), self.now) <= 0

    def _has_gone(self, held) -> bool:
        if held.instance_id not in self._gone:
            from swarm_hook_core.liveness import departed, served_by
            from swarm_hook_core.process import client_process, host_id

            here = host_id()
            gone = departed(held.evidence, self.now, here)
            if not gone and not self.own_id:
                gone = served_by(held.evidence, here, *client_process())
            self._gone[held.instance_id] = gone
        return self._gone[held.instance_id]


def above(key: str) -> list[str]:
    """The keys of the folders over the path with this key: a lock on one of them covers it."""
    mark = NO_CASE if key.startswith(NO_CASE) else ""
    path = key[len(mark) :]
    found = []
    while True:
        path = path.rpartition("/")[0]
        if not path:
            return found
        found.append(mark + path)


def below(key: str, root: str) -> "str | None":
    """What `key` adds to `root`, the key of a folder over it: ``/a.py``; empty where they are one, None where not."""
    return key[len(root) :] if contains(root, key) else None
