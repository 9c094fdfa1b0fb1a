"""The decision if the kernel holds locked files while a call runs, and the plan for that.

Loaded when a shell call cannot be parsed and others hold locks in its reach.
"""

from __future__ import annotations

import os

from swarm_hook_core import settings
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.kernel import plans, probe, reach, statement
from swarm_hook_core.kernel.plans import Plan
from swarm_hook_core.paths import git_root
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.state import name_of, store_path
from swarm_hook_core.targets import shell_text
from swarm_hook_core.watching.records import call_key
from swarm_hook_core.watching.report import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import Peers, Session

# ways into the namespace, by client: RuntimeConfig.kernel
SHELL, STATEMENT, DIRECTLY = "shell", "statement", "directly"
# Programs that fail in a user namespace: it has no other users, and no rights outside.
BROKEN = frozenset(
    "ssh scp sftp mosh ssh-copy-id sudo sudoedit doas su pkexec runuser newgrp sg chgrp docker podman nerdctl"
    " docker-compose podman-compose buildah tmux screen zellij lsof fuser strace ltrace gdb perf unshare nsenter bwrap"
    " mount umount fusermount fusermount3 flatpak snap crontab at".split()
)
# git commands that may use ssh
OVER_SSH = frozenset(f"git {verb}" for verb in "clone fetch pull push ls-remote remote submodule archive".split())
# They start processes that must see locks come and go.
OWN = frozenset(("swarm-mcp", "swarm-locks"))


def plan_of(
    config: RuntimeConfig, call: ToolCall, session: Session, effects: Effects, peers: Peers, is_strict: bool
) -> Plan | None:
    """Return the Plan of a call with these Effects, or None if the kernel holds nothing for it.

    A strict call gets a plan only if that holds all locks.
    """
    if not _may_enter(config, call, effects):
        return None

    if not probe.works():
        return None
    # The folders in which the call may write: repositories around its own folder and around its guesses
    folders = [call.folder, *(guess.folder for guess in effects.guesses if guess.folder)]
    roots = list(dict.fromkeys(git_root(folder) for folder in folders))[:8]
    paths, are_all = reach.paths_of(session, peers, roots)
    if not paths or (is_strict and not are_all):
        return None

    text = plans.print_of(shell_text(call.tool, call.input))
    whose = config.runtime_name, call.session_id, session.instance_id, call.agent
    return Plan(*whose, text, is_strict, roots, paths, store_path())


def leave(config: RuntimeConfig, call: ToolCall, plan: Plan) -> str:
    """Write the plan for the call's shell. Return the file to source, or "" if the shell looks for plans itself.

    Raises OSError.
    """
    entry = plans.leave(plan, name_of_call(config, call), alone=config.kernel != SHELL)
    if config.kernel == STATEMENT:
        return entry
    return ""


def name_of_call(config: RuntimeConfig, call: ToolCall) -> str:
    """Return the name of a call's plan, the same before and after the call."""
    if call.id:
        return name_of(call.id)
    return call_key(config.runtime_name, call)


def _may_enter(config: RuntimeConfig, call: ToolCall, effects: Effects) -> bool:
    """Return True if the call's command works in a namespace and its client can be told to enter one."""
    if not call.session_id or os.name != "posix" or kept_out(effects.programs):
        return False
    if config.kernel == SHELL:
        return os.path.exists(plans.wired_file(call.session_id))
    if config.kernel == STATEMENT:
        return statement.may_precede(config, call)
    return True


def kept_out(programs: set[str]) -> set[str]:
    """Return those of these programs that fail in this user's namespaces; root needs no user namespace."""
    return programs & (OWN if os.geteuid() == 0 else OWN | BROKEN | OVER_SSH)


# ------------------------------------------------------------------------------ a session whose shells look themselves


def wire(config: RuntimeConfig, event: SessionEvent) -> None:
    """Have the shells of a session look for plans, if its client lets a hook add text before each command.

    Claude Code puts the text of the file CLAUDE_ENV_FILE before each command of its shell, and leaves the command
    unchanged. Raises OSError.
    """
    file = os.environ.get("CLAUDE_ENV_FILE", "")
    if config.kernel != SHELL or not file or not event.session_id:
        return
    if not settings.kernel(config.env_prefix, event.cwd):
        return

    if probe.works() or probe.again() == "":
        entry = plans.write_entry(event.session_id)
        there = f"[ -d {quoted(plans.folder_of(event.session_id))} ] && [ -e {quoted(entry)} ]"
        line = f"if {there}; then . {quoted(entry)}; fi\n"
        with open(file, "a+", encoding="utf-8", errors="surrogateescape") as shared:
            shared.seek(0)
            if line not in shared.read():
                shared.write(line)


def forget(session_id: str) -> None:
    """Remove the session's plans and its shells' entry."""
    plans.drop(session_id)
    try:
        os.remove(plans.wired_file(session_id))
    except OSError:
        pass  # never written
