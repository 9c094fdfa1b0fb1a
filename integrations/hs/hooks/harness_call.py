"""The session of the harness that a stage or a tool runs in, as its environment tells, put as a hook's payload."""

import os
import sys

_PLUGIN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Installed, the core is beside this plugin's folders; in a bundle it is at the bundle's root.
for _root in (_PLUGIN, os.path.dirname(os.path.dirname(_PLUGIN))):
    if os.path.isdir(os.path.join(_root, "swarm_hook_core")):
        sys.path[1:1] = [_PLUGIN, _root]
        break

from runtime import RUNTIME  # noqa: E402

from swarm_hook_core.core import HookCore  # noqa: E402
from swarm_hook_core.hooks import ToolCall, tool_call  # noqa: E402

SHELL_TOOL = "bash"
core = HookCore(RUNTIME)


def session_id() -> str:
    """Return the session's id, the name of its folder. Empty outside of one."""
    return os.path.basename(os.environ.get("HARNESS_SESSION", "").rstrip("/"))


def session_folder() -> str:
    """Return where the session works: as its ``session.conf`` says, else ``HARNESS_CWD``, else here."""
    try:
        path = os.path.join(os.environ["HARNESS_SESSION"], "session.conf")
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            told = [line[4:].rstrip("\n") for line in file if line.startswith("cwd=")]
    except (OSError, KeyError):
        told = []
    return (told[0] if told else "") or os.environ.get("HARNESS_CWD", "") or os.getcwd()


def is_sub_agent() -> bool:
    """Return True if another session of the harness has started this one, and passed its environment on."""
    return bool(os.environ.get("HARNESS_PARENT_SESSION"))


def payload(event: str, cwd: str = "", **more: object) -> dict[str, object]:
    """Return the payload of a client with hooks for `event`, in the core's words."""
    found = {"hook_event_name": event, "session_id": session_id(), "cwd": cwd or session_folder(), **more}
    return RUNTIME.dialect.read(found)


def call(event: str, tool: str, tool_input: object, call_id: str, cwd: str = "") -> ToolCall:
    """Return a tool call as the core takes it."""
    return tool_call(payload(event, cwd, tool_name=tool, tool_input=tool_input, tool_use_id=call_id))
