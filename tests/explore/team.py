"""A machine of a team: its agent follows a server, and a session of another machine holds a file.

Server and other machine are a stand-in in the agent's own process. No verb here reaches the agent: its locks hold on this
machine only until the agent posts them.
"""

import math
import os
import time

from support.fake_team import FakeServer, FakeTeam

from explore.dealings import FILE, HELD_SECONDS
from explore.process import Process
from swarm_hook_core.state import clones_dir
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store
from swarm_mcp.team import TeamRefused, TeamUnreachable, agent_client, protocol
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.replica import Replica
from swarm_mcp.team.talk import Following

REPOSITORY, FAR, GRACE = "example.org/app", "far", 60.0
TRIES, AGAIN_SECONDS = 6, 0.2


def no_agent(*_given: object) -> None:
    """Stand for the way to the agent: no verb reaches it, nor waits for it."""
    raise FileNotFoundError


def unreachable() -> None:
    """Let no verb reach the agent, nor start one."""
    agent_client._ask, agent_client.start = no_agent, lambda: None


class Agent:
    """The agent of this machine; `far`: the other machine's way to the server."""

    def __init__(self, me: Process, store: Store):
        self.me, self.team = me, FakeTeam()
        with store.database.writing():
            TeamRows(store).set_trees({me.ground.work: REPOSITORY})
        here = self.team.server("here")
        self.following = Following(store, here, Replica(store, REPOSITORY, "here", [me.ground.work]))
        self.far: FakeServer = self.team.server("elsewhere")

    def follow(self) -> None:
        """Apply the server's changes, and post those that were made here."""
        mirror = self.following.mirror
        for left in reversed(range(TRIES)):
            mirror.beaten = -math.inf
            try:
                self.following.follow(poked=True)
                return
            except (SwarmError, TeamUnreachable, TeamRefused, OSError):
                mirror.lose()
                if not left:
                    raise
                time.sleep(AGAIN_SECONDS)

    def greet(self) -> None:
        """Have the other machine greet the server, and name its session."""
        self.far.hello(REPOSITORY)
        told = {"session": FAR, "label": "claude-code session:far", "lease": protocol.SESSION_LEASE}
        self.far.beat(REPOSITORY, None, 0, [told])

    def take(self, again: bool = False) -> tuple[int, int]:
        """Have that session ask the server for the file. Return number and fence of its lock; zeros: another has it."""
        wanted = {**protocol.want(FILE, note="far away"), "again": again}
        answer = self.far.acquire(REPOSITORY, FAR, [wanted], self.team.repositories[REPOSITORY].version, 0)
        if not answer["ok"]:
            return 0, 0
        return answer["locks"][0], answer["fences"][0]

    def lose_grants(self) -> tuple[int, int]:
        """Let the server lose all, and the other machine come back later than this one. Return its lock as `take`."""
        self.team.void(REPOSITORY, GRACE)
        self.follow()
        time.sleep(HELD_SECONDS)
        self.greet()
        lock = self.take(again=True)
        self.far.complete(REPOSITORY)
        self.team.grace = 0.0
        self.follow()
        return lock


def follows_team(me: Process) -> None:
    """Follow a team's server: a session elsewhere takes the file twice; once the server loses all meanwhile."""
    os.makedirs(clones_dir(), mode=0o700, exist_ok=True)
    with Store(me.ground.store, tells=False) as store:
        agent = Agent(me, store)
        agent.follow()
        agent.greet()
        for count in range(2):
            for _ in range(TRIES):
                me.say("far", "asks", FILE)
                lock = agent.take()
                if lock[0]:
                    break
                me.say("far", "refused", FILE)
                time.sleep(HELD_SECONDS)
                agent.follow()
            else:
                return
            agent.follow()
            me.say("far", "has", FILE)
            time.sleep(HELD_SECONDS)
            if count:
                lock = agent.lose_grants()
                time.sleep(HELD_SECONDS)
            me.say("far", "frees", FILE)
            agent.far.release(REPOSITORY, [lock])
            agent.follow()
            me.say("far", "freed", FILE)
            time.sleep(HELD_SECONDS)
