"""Subagents of a session: they may hold locks of their own, which go with them."""

from swarm_hook_core.payload import text_field
from swarm_hook_core.untrusted_text import LABEL, cut


def greeting(payload: dict) -> str:
    """What a subagent is told when it starts: its id, and what that is good for. Empty where it has none."""
    agent = cut(text_field(payload, "agent_id"), LABEL)
    if not agent:
        return ""
    return (
        f"swarm: you are agent `{agent}` of this session. What the session locks is yours to write, and its other"
        f" agents'. To keep a file from those as well, lock it for yourself: lock_file with agent_id `{agent}`, or"
        f" `swarm-mcp lock FILE --agent {agent}`. Such locks end with you, or with unlock_file."
    )


def end(config, payload: dict, coordinator=None, driver=None) -> None:
    """Have the locks of a subagent that has ended released, by a command that nobody waits for. Raises OSError."""
    from swarm_hook_core.coordinator import command, start_detached
    from swarm_hook_core.lookup.sqlite import StoreReader
    from swarm_hook_core.state import local_store

    session_id, agent = text_field(payload, "session_id"), text_field(payload, "agent_id")
    file = local_store() if session_id and agent else ""
    if not file:
        return
    store = StoreReader(file, driver)
    session = store.session(config.runtime_name, session_id)
    argv = coordinator or command()
    if session and argv and store.holds_as(session.instance_id, agent):
        words = ["--runtime", config.runtime_name, "--session-id", session_id, "--agent", agent]
        start_detached([*argv, "agent-ended", *words])
