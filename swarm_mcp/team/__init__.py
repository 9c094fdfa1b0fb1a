"""Locks that hold on other machines too: a team's PostgreSQL server, and this machine's copy of what is held there.

Everything here that opens a connection is for the team agent, the `team` verbs and git-lfs; hooks and ordinary verbs
read the local store, and ask the agent over its socket (``agent_client``).
"""
