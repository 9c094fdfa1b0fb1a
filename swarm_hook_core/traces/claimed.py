"""The claims around one call: those that it makes itself, and those of others as locks that a check can meet.

claimed = Claimed(runtime, call, reader, now_ns)
claimed.claim([(key, file), ...])     first: from now on nobody else passes
claimed.on(keys), claimed.under(...)  then, beside the store's locks
claimed.take_back()                   where the call is denied
"""

import os

from swarm_hook_core.lookup import AUTO, Held
from swarm_hook_core.traces import claims

NOTE = "editing it in this turn"


class Claimed:
    """The claims that concern `call`, a ToolCall of the runtime with this name; `reader`: the LockReader it asks."""

    def __init__(self, runtime: str, call, reader, now_ns: int):
        self.runtime = runtime
        self.call = call
        self.reader = reader
        self.now_ns = now_ns
        self.own: list = []
        self._met: list = []
        self._others: list | None = None  # all claims of others, once somebody asked; made before it looks at the store
        self._holders: dict = {}

    def claim(self, targets) -> None:
        """Claim these files, pairs of key and absolute path, for the session of this call. Raises OSError.

        One that somebody else has claimed stays theirs: `on` finds it, also where it has ended since. A folder is not
        claimed: whoever makes one, or removes it, is not at work on all that is in it.
        """
        call = self.call
        for key, file in targets:
            if os.path.isdir(file):
                continue
            made = claims.make(
                key, file, self.runtime, call.session_id, call.agent, call.tool, self.now_ns, self._is_void
            )
            if made.is_new:
                self.own.append(made)
            elif not made.is_of(*self._who()):
                self._met.append(made)

    def take_back(self) -> None:
        """Remove what `claim` has newly made. Raises OSError."""
        made, self.own = self.own, []
        for one in made:
            claims.take_back(one)

    def any(self) -> bool:
        """Whether anybody else has claimed anything; those of sessions that have gone still count."""
        return bool(self._met or self._all())  # a claim that was met counts, though it may have ended since

    def on(self, keys) -> list:
        """The Held of each claim of others on a file with one of these keys; void ones too, as ``Peers`` has them."""
        met = {one.key: one for one in self._met if one.key in keys}
        met.update((one.key, one) for one in claims.others(*self._who(), keys, self.now_ns))
        return self._as_locks(met.values())

    def under(self, folders) -> list:
        """The same of files below folders with these keys."""
        return self._as_locks(claims.below(self._all(), folders))

    def _all(self) -> list:
        if self._others is None:
            self._others = claims.all_of_others(*self._who(), self.now_ns)
        return self._others

    def _who(self) -> "tuple[str, str, str]":
        return self.runtime, self.call.session_id, self.call.agent

    def _as_locks(self, found) -> list:
        return [held for claim in found if (held := held_of(claim, self._holder(claim)))]

    def _holder(self, claim):
        who = claim.runtime, claim.session_id
        if who not in self._holders:
            self._holders[who] = self.reader.holder(*who)
        return self._holders[who]

    def _is_void(self, claim) -> bool:
        """Whether the session that claims has gone, or was never in the store."""
        found = self._holder(claim)
        if found is None:
            return True
        from swarm_hook_core.liveness import departed
        from swarm_hook_core.process import host_id

        return departed(found[2], self.now_ns / 10**9, host_id())


def held_of(claim, holder):
    """A claim as a lock; None where its holder, what ``LockReader.holder`` says of it, is not in the store."""
    if holder is None:
        return None
    instance_id, label, evidence = holder
    lease = (claims.HOLD_SECONDS, None, None, claim.written / 10**9 + claims.HOLD_SECONDS)
    return Held(
        claim.file, instance_id, label, NOTE, claim.at / 10**9, names=(claim.key,), agent=claim.agent, mode=AUTO,
        lease=lease, evidence=evidence, path_key=claim.key,
    )  # fmt: skip
