"""Telling sessions what becomes of the changes that they have not committed, by a command that nobody waits for."""

MOST = 20  # files of one call


def tell(config, call, owners, coordinator=None) -> None:
    """Have the owner of each of these files told, as ``Trail.owners`` has them. Raises OSError."""
    from swarm_hook_core.coordinator import command
    from swarm_hook_core.spawn import start_detached

    argv = list(coordinator or command())
    for trace, how, by, kept, times in owners[:MOST] if argv and call.session_id else ():
        words = ["--runtime", config.runtime_name, "--session-id", call.session_id, "--owner", trace.held.instance_id]
        facts = {"--how": how, "--kept": kept, "--tool": call.client_tool, "--command": by}
        facts["--times"] = str(times) if times else ""
        words += [f"{flag}={value}" for flag, value in facts.items() if value]
        start_detached([*argv, "overwritten", *words, "--", trace.path])
