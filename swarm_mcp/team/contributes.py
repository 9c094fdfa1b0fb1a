"""The verb, doctor check, tables and reactions of a team; see ``contributions``."""

from __future__ import annotations

VERBS = {"team": "swarm_mcp.team.verb"}
PLACES = {"team": "watch"}
OTHER_WORDS = {"join": "team"}
CHECKS = {"team": "swarm_mcp.team.standing:findings"}
REACTIONS = {
    "committed": "swarm_mcp.team.agent_client:tell_agent",
    "message added": "swarm_mcp.team.store_documents:send_away",
    "session wanted": "swarm_mcp.team.store_documents:ask_to_wake",
    "locks granted": "swarm_mcp.team.agent_client:confirm_locks",
    "task claimed": "swarm_mcp.team.agent_client:confirm_task",
    "push begins": "swarm_mcp.team.agent_client:asked",
    "machines": "swarm_mcp.team.standing:machines_of",
    "repository name": "swarm_mcp.team.agent_client:repository_name",
}
TABLES = {
    # Repositories shared with other machines: how far this machine's replica has come (`version` and `mark` of the
    # server's log, in `epoch`), and until when by the boot clock, in the start `booted`, nothing newer counts. In
    # `scope` are sessions, tasks and values of other machines.
    "swarm_team_repositories": """
        id TEXT PRIMARY KEY, epoch TEXT, version INTEGER NOT NULL DEFAULT 0, mark INTEGER NOT NULL DEFAULT 0,
        fresh_until REAL, booted TEXT, state TEXT NOT NULL, said_at INTEGER, scope TEXT""",
    # Work trees of this machine that take part, and their repositories.
    "swarm_team_trees": "top TEXT PRIMARY KEY, repository TEXT NOT NULL",
    # Messages, tasks and values that a team's server has, and their state here when both were the same. Version 0: a
    # message that is to be posted.
    "swarm_team_documents": """
        repository TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, body TEXT,
        noted_at INTEGER NOT NULL, PRIMARY KEY (repository, kind, key)""",
}
INDEXES = {"swarm_team_unposted_idx": "swarm_team_documents(repository, kind) WHERE version = 0"}
