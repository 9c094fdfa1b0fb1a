"""Claims for one call: it makes its own, and finds those of others as locks.

claimed = Claimed(runtime, call, reader, now_ns)
claimed.claim_files(paths)            first: from then on other sessions are kept out
claimed.on(keys), claimed.under(...)  then, beside the store's locks
claimed.take_back()                   after a denial
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

from swarm_hook_core import caller
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.liveness import departed
from swarm_hook_core.lookup import AUTO, Held
from swarm_hook_core.paths import key_of
from swarm_hook_core.process import host_id
from swarm_hook_core.traces import claims
from swarm_hook_core.traces.claims import Claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import LockReader

MOST_CLAIMS = 100  # files of one call that get a claim
NOTE = "editing it in this turn"


class Claimed:
    """The claims around `call`, a ToolCall of the runtime with this name; `reader`: the store's LockReader."""

    def __init__(self, runtime: str, call: ToolCall, reader: LockReader, now_ns: int):
        self.runtime = runtime
        self.call = call
        self.reader = reader
        self.now_ns = now_ns
        self.own: list[Claim] = []
        self._met: list[Claim] = []
        self._others: list[Claim] | None = None  # all claims of others, read once and before the store
        self._holders: dict[tuple[str, str], tuple[str, str, Any] | None] = {}

    def claim_files(self, paths: list[str]) -> None:
        """Claim the first `MOST_CLAIMS` of these files, as `claim` does."""
        self.claim([(key_of(path), path) for path in paths[:MOST_CLAIMS]])

    def claim(self, targets: list[tuple[str, str]]) -> None:
        """Claim these files, pairs of key and absolute path, for the session of this call. Raises OSError.

        A file that another session has claimed stays theirs; `on` reports it even if that claim ends meanwhile. Folders
        are not claimed: to create or remove one is no work on all files in it.
        """
        caller.demand_waiting()
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
        """Remove the claims that `claim` has newly made. Raises OSError."""
        made, self.own = self.own, []
        for one in made:
            claims.take_back(one)

    def any(self) -> bool:
        """Return True if another session has any claim; those of departed sessions count."""
        return bool(self._met or self._all())  # a claim that was met counts, though it may have ended since

    def on(self, keys: Collection[str]) -> list[Held]:
        """Return a Held for each claim of others on a file with one of these keys, void ones too."""
        met = {one.key: one for one in self._met if one.key in keys}
        met.update((one.key, one) for one in claims.others(*self._who(), keys, self.now_ns))
        return self._as_locks(met.values())

    def under(self, folders: Iterable[str]) -> list[Held]:
        """Return a Held for each claim of others on files below the folders with these keys."""
        return self._as_locks(claims.below(self._all(), folders))

    def _all(self) -> list[Claim]:
        if self._others is None:
            self._others = claims.all_of_others(*self._who(), self.now_ns)
        return self._others

    def _who(self) -> tuple[str, str, str]:
        return self.runtime, self.call.session_id, self.call.agent

    def _as_locks(self, found: Iterable[Claim]) -> list[Held]:
        return [held for claim in found if (held := held_of(claim, self._holder(claim)))]

    def _holder(self, claim: Claim) -> tuple[str, str, Any] | None:
        who = claim.runtime, claim.session_id
        if who not in self._holders:
            self._holders[who] = self.reader.holder(*who)
        return self._holders[who]

    def _is_void(self, claim: Claim) -> bool:
        """Return True if the claim's session has departed, or was never in the store."""
        found = self._holder(claim)
        if found is None:
            return True

        return departed(found[2], self.now_ns / 10**9, host_id())


def held_of(claim: Claim, holder: tuple[str, str, Any] | None) -> Held | None:
    """Return the claim as a lock. None if `holder`, the result of ``LockReader.holder``, is None."""
    if holder is None:
        return None
    instance_id, label, evidence = holder
    lease = (claims.HOLD_SECONDS, None, None, claim.written / 10**9 + claims.HOLD_SECONDS)
    return Held(
        claim.file, instance_id, label, NOTE, claim.at / 10**9, names=(claim.key,), agent=claim.agent, mode=AUTO,
        lease=lease, evidence=evidence, path_key=claim.key,
    )  # fmt: skip
