"""Grok Build: the tools that write files, and how it spells payloads."""

import os

from swarm_hook_core.config import Dialect, RuntimeConfig, paths_under_keys

_CALLS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
_TURN_ENDS = ("Stop", "StopFailure", "StopCancelled")


def _mcp_tool(name):
    """Grok's ``server__tool`` as the core has it."""
    return f"mcp__{name}" if "__" in name and not name.startswith("mcp__") else ""


def _amended(payload):
    """Put down to a session what its sub-agents do, which have sessions of their own here; drop what is not its own."""
    event, is_agent = payload.get("hook_event_name"), bool(payload.get("subagentType"))
    given = payload.get("tool_input")
    if isinstance(given, dict) and "tool_input" in given and given.get("tool_name") == payload.get("toolName"):
        payload["tool_input"] = given["tool_input"]  # a server's tool is called through one that calls them all
    if event == "Notification":
        payload["notification_type"] = payload.get("notificationType")
    if is_agent and (event in _CALLS or event == "SubagentStop"):
        child = payload.get("session_id")
        parent = _parent_of(child, payload.get("transcript_path"))
        if parent:
            payload.update(session_id=parent, agent_id=child)
    # A sub-agent's turns and end are not those of the session. Nor is the stop that follows a session's end a turn's,
    # which would bring it back: it alone belongs to no prompt.
    elif is_agent or (event in _TURN_ENDS and not payload.get("promptId")):
        payload["session_id"] = ""
    return payload


def _parent_of(child, transcript):
    """The session that has started the sub-agent `child`, by the folder that Grok makes for it beforehand.

    ``sessions/PROJECT/SESSION/subagents/CHILD``; empty where it is not found. `transcript` lies two folders below
    ``sessions/PROJECT``, where PROJECT is another one if the sub-agent has a worktree of its own.
    """
    if not isinstance(child, str) or not isinstance(transcript, str) or not child:
        return ""
    project = os.path.dirname(os.path.dirname(transcript))
    sessions, own = os.path.split(project)
    try:
        for name in (own, *os.listdir(sessions)):
            folder = os.path.join(sessions, name)
            # Ids begin with the time: the parent is one of the newest that are older.
            for session in sorted((one for one in _entries(folder) if one < child), reverse=True):
                if os.path.isdir(os.path.join(folder, session, "subagents", child)):
                    return session
    except OSError:
        return ""
    return ""


def _entries(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


RUNTIME = RuntimeConfig(
    runtime_name="grok",
    env_prefix="GROK",
    scratch_dir_name="swarm-grok",
    write_tools={"write", "search_replace"},
    replaces={"write"},
    extract_paths=paths_under_keys("file_path"),
    harmless_tools={"todo_write"},
    dialect=Dialect(tools={"run_terminal_command": "Bash", "monitor": "Monitor"}, mcp_tool=_mcp_tool, amend=_amended),
)
