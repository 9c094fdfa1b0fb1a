"""Notices to sessions about their overwritten changes, sent by a detached command."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm_hook_core.config import RuntimeConfig
    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.traces.trail import Owner

MOST = 20  # files of one call


def tell(config: RuntimeConfig, call: ToolCall, owners: list[Owner], coordinator: Sequence[str] | None = None) -> None:
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
