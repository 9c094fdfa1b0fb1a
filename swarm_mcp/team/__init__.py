"""Locks that hold on other machines too: a team's PostgreSQL server, and this machine's copy of what is held there.

    protocol      what goes over the wire, and how two regions meet; needs no PostgreSQL
    server        the calls of the team's server, one round trip each
    migrations    its schema: ``schema/``, applied by ``swarm-mcp team init``
    places        what a lock is on, told from the top of a work tree
    replica       the server's log, applied to this machine's store (whose part is ``store.team_rows``)
    comparison    what of this machine the server is to have, and has not
    following     one repository: take in, post, have locks confirmed
    agent         the team agent, which does so for all; ``agent_client`` asks it

Everything here that opens a connection is for the team agent, the `team` verbs and git-lfs; hooks and ordinary verbs
read the local store, and ask the agent over its socket (``agent_client``).
"""
