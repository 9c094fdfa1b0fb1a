"""Notices to sessions about their overwritten changes, sent by a detached command."""

MOST = 20  # files of one call


def tell(config, call, owners, coordinator=None) -> None:
    """Start the command that tells each owner in `owners` (see ``Trail.owners``). Raises OSError."""
    from swarm_hook_core.coordinator import command
    from swarm_hook_core.spawn import start_detached

    argv = list(coordinator or command())
    for trace, how, by, kept, times in owners[:MOST] if argv and call.session_id else ():
        words = ["--runtime", config.runtime_name, "--session-id", call.session_id, "--owner", trace.held.instance_id]
        facts = {"--how": how, "--kept": kept, "--tool": call.client_tool, "--command": by}
        facts["--times"] = str(times) if times else ""
        words += [f"{flag}={value}" for flag, value in facts.items() if value]
        start_detached([*argv, "overwritten", *words, "--", trace.path])
