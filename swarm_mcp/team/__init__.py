"""Locks that also hold on other machines: a team's PostgreSQL server, and this machine's copy of its locks.

protocol      the messages between machine and server, and the overlap of regions; needs no PostgreSQL
server        connections to the team's server, and its calls, one round trip each
migrations    its schema: ``schema/``, applied by ``swarm-mcp team init``
places        the object of a lock as a path from the top of a work tree
replica       the server's log, applied to this machine's store
store_rows    locks, places and sessions of other machines in the store; ``store_documents`` has the rest
mirror        the difference between this machine and the server, and its posting
talk          the talk with one server, in three threads
agent         the team agent: it answers verbs (``agent_client``), and keeps a talk with each server
contributes   all that the other packages take from this one; none of them imports it

Only the team agent and the `team` verbs open connections; hooks and ordinary verbs read the local store, and ask the
agent over its socket (``agent_client``).
"""

from __future__ import annotations

from swarm_mcp.errors import Refused, SwarmError


class TeamRefused(Refused):
    """The team's server says no: the request is not allowed, or impossible."""


class TeamUnreachable(SwarmError):
    """The team's server cannot be asked now. The request may have been carried out."""
