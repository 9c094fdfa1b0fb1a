"""What is the bash harness's alone: the tools that write files, who a session is, and where it works."""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
# Installed, the core is beside this plugin's folders; in a bundle it is at the bundle's root.
for _root in (os.path.join(_HERE, ".."), os.path.join(_HERE, "..", "..", "..")):
    if os.path.isdir(os.path.join(_root, "swarm_hook_core")):
        sys.path.insert(1, os.path.abspath(_root))
        break

from swarm_hook_core.config import RuntimeConfig, paths_under_keys
from swarm_hook_core.core import HookCore

SHELL_TOOL = "bash"
core = HookCore(
    RuntimeConfig(
        runtime_name="hs",
        env_prefix="HS",
        scratch_dir_name="swarm-hs",
        write_tools={"write_file", "str_replace", "edit_file"},
        extract_paths=paths_under_keys("path"),
        # The harness is a script: what ends with the session is the process that runs one of its commands.
        client_marks=("/commands/",),
    )
)
write_paths_for_tool = core.write_paths_for_tool


def session_id() -> str:
    """The session's id, which is the name of its folder; empty outside of one."""
    return os.path.basename(os.environ.get("HARNESS_SESSION", "").rstrip("/"))


def session_folder() -> str:
    """Where the session works: as its ``session.conf`` says, else ``HARNESS_CWD``, else here."""
    try:
        path = os.path.join(os.environ["HARNESS_SESSION"], "session.conf")
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            told = [line[4:].rstrip("\n") for line in file if line.startswith("cwd=")]
    except (OSError, KeyError):
        told = []
    return (told[0] if told else "") or os.environ.get("HARNESS_CWD", "") or os.getcwd()


def is_sub_agent() -> bool:
    """Whether another session of the harness has started this one, whose environment it has inherited."""
    return bool(os.environ.get("HARNESS_PARENT_SESSION"))


def payload(event: str, cwd: str = "", **more) -> dict:
    """What the core wants to know of an event, as clients with hooks of their own tell it."""
    return {"hook_event_name": event, "session_id": session_id(), "cwd": cwd or session_folder(), **more}


def call(event: str, tool: str, tool_input, call_id: str, cwd: str = "") -> dict:
    """The payload of a tool call. The core knows a shell by the name that other clients give it."""
    name = "Bash" if tool == SHELL_TOOL else tool
    return payload(event, cwd, tool_name=name, tool_input=tool_input, tool_use_id=call_id)
