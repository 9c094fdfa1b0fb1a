"""Subagents of a session: they may hold locks of their own, which go with them."""

from swarm_hook_core.untrusted_text import LABEL, cut


def greeting(agent_id: str) -> str:
    """What a subagent is told when it starts: its id, and what that is good for. Empty where it has none."""
    agent = cut(agent_id, LABEL)
    if not agent:
        return ""
    return (
        f"swarm: you are agent `{agent}` of this session. What the session locks is yours to write, and its other"
        f" agents'. To keep a file from those as well, lock it for yourself: lock_file with agent_id `{agent}`, or"
        f" `swarm-mcp lock FILE --agent {agent}`. Such locks end with you, or with unlock_file."
    )


def end(config, event, coordinator=None, driver=None) -> None:
    """Have the locks of a subagent that has ended released, by a command that nobody waits for. Raises OSError."""
    from swarm_hook_core.coordinator import command
    from swarm_hook_core.lookup.sqlite import StoreReader
    from swarm_hook_core.spawn import start_detached
    from swarm_hook_core.state import local_store

    file = local_store() if event.session_id and event.agent else ""
    if not file:
        return
    store = StoreReader(file, driver)
    session = store.session(config.runtime_name, event.session_id)
    argv = coordinator or command()
    if session and argv and store.holds_as(session.instance_id, event.agent):
        words = ["--runtime", config.runtime_name, "--session-id", event.session_id, "--agent", event.agent]
        start_detached([*argv, "agent-ended", *words])
