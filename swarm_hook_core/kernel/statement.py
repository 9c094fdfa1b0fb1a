"""Codex: a statement in front of the command has its shell look for the plan.

The command itself stays as it is behind it, so that the client's rules still see it; ``bash -c '...'`` around it would
hide it from them. That approvals and forbidden rules hold nevertheless was seen in certain releases, and nothing is put
in front of a command in any other.
"""

import os

from swarm_hook_core.kernel.plans import in_quotes, kernel_dir
from swarm_hook_core.state import PLAIN
from swarm_hook_core.targets import shell_text

SHELLS = ("bash", "zsh")  # those that know the text that they were given, and can run it once more
VERSION_SECONDS = 1.0


def may_precede(config, call) -> bool:
    """Whether a statement may be put in front of this call's command."""
    command = shell_text(call.tool, call.input)
    if not isinstance(call.input, dict) or not isinstance(call.input.get("command"), str) or not command.strip():
        return False
    if "apply_patch" in command or "applypatch" in command:
        return False  # Codex carries a patch out itself, where it finds one in a command as it knows them
    if _shell() not in SHELLS or client_version(config) not in config.kernel_versions:
        return False
    from swarm_hook_core.kernel.rules import may_allow

    return not may_allow(command, call.folder)


def preceded(tool_input: dict, entry: str) -> dict:
    """The input of a call with the statement in front of its command."""
    return {**tool_input, "command": f". {in_quotes(entry)}; {tool_input['command']}"}


def without(payload: dict) -> dict:
    """`payload` with the command as it was before the statement was put in front of it; ``Dialect.amend`` of Codex.

    Only of a call that is over: before it the command is its model's, all of which is to be checked.
    """
    tool_input = payload.get("tool_input")
    if not isinstance(tool_input, dict) or payload.get("hook_event_name") == "PreToolUse":
        return payload
    command, ours = tool_input.get("command"), ". " + in_quotes(os.path.join(kernel_dir(), ""))[:-1]
    if not isinstance(command, str) or not command.startswith(ours):
        return payload
    name, mark, rest = command[len(ours) :].partition(".sh'; ")
    if not mark or name.count("/") != 1 or set(name) - PLAIN - set("_/"):
        return payload
    return {**payload, "tool_input": {**tool_input, "command": rest}}


def _shell() -> str:
    """The name of the shell that runs this user's commands."""
    import pwd

    try:
        return os.path.basename(pwd.getpwuid(os.getuid()).pw_shell)
    except KeyError:
        return os.path.basename(os.environ.get("SHELL", ""))


def client_version(config) -> str:
    """The release of the client that started this hook, empty where it cannot be told: asked once for each program."""
    from swarm_hook_core.process import client_process
    from swarm_hook_core.state import read_private, write_private

    pid, _ = client_process(config.client_marks)
    program = f"/proc/{pid}/exe" if os.path.isdir("/proc/self") else ""
    try:
        state = os.stat(program)
    except OSError:
        return ""
    mark = f"{state.st_dev} {state.st_ino} {state.st_mtime_ns}"
    known = os.path.join(kernel_dir(), f"{config.runtime_name}-version")
    try:
        told, _, version = read_private(known, 1000).decode().partition("\n")
        if told == mark:
            return version
    except (OSError, ValueError):
        pass
    from swarm_hook_core.spawn import run

    said = run([os.readlink(program), "--version"], VERSION_SECONDS).stdout.split()
    version = said[-1] if said else ""
    write_private(known, f"{mark}\n{version}")
    return version
