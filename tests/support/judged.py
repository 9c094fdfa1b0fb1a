"""The effects of a call, judged beside the locks of a peer, without a client's payload."""

import time
from pathlib import Path
from typing import Any

from support.fixtures import Ground
from swarm_hook_core.collisions import judge
from swarm_hook_core.lookup import Peers, Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.shell import effects_of
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.state import store_path
from swarm_mcp.store.lock_request import request


class Scene:
    """A session `me` that wants to do something in `repo`, and a `peer` that holds `locked`; `given`: of each lock."""

    def __init__(self, ground: Ground, repo: Path, *locked: str, **given: Any):
        self.repo = repo
        self.me, self.peer = ground.session("me"), ground.session("peer")
        self.session = Session(self.me["id"], self.me["label"], str(repo), str(repo))
        with ground.store() as store:
            for name in locked:
                store.locks.acquire_all(self.peer, request(self.peer, [name or "."], note="surgery", **given))

    @property
    def peers(self) -> Peers:
        """The locks of others at this moment."""
        return Peers(StoreReader(store_path()), self.me["id"], time.time())

    def judged(self, *asked: Any, strict: bool = False, cwd: str | Path = "") -> Any:
        """Return the verdict on a shell command, on Effects, or on single effects, in the folder `cwd` of the checkout."""
        place = str(self.repo / cwd)
        effects = Effects()
        for one in asked:
            if isinstance(one, str):
                effects = effects_of(one, place)
            elif isinstance(one, Effects):
                effects = one
            else:
                effects.add(one)
        return judge(self.session, "Bash", effects, place, self.peers, time.time(), strict)
