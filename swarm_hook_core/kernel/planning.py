"""The decision if the kernel holds locked files while a call runs, the plan for it, and what was refused.

Loaded when a shell call cannot be parsed and others hold locks in its reach.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence

from swarm_hook_core import settings
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.denial import Denial, Loss
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.kernel import namespace, plans, statement
from swarm_hook_core.kernel.plans import NOT_HELD, Plan
from swarm_hook_core.lookup import Held, Peers, Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.opaque_calls import shell_text
from swarm_hook_core.paths import git_root, keys_for
from swarm_hook_core.shell import effects_of
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.state import local_store, name_of, store_path
from swarm_hook_core.untrusted_text import named, token
from swarm_hook_core.watching.records import call_key
from swarm_hook_core.watching.report import quoted
from swarm_hook_core.wording import named_locks

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.core import HookCore

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

    if not namespace.works():
        return None
    # The folders in which the call may write: repositories around its own folder and around its guesses
    folders = [call.folder, *(guess.folder for guess in effects.guesses if guess.folder)]
    roots = list(dict.fromkeys(git_root(folder) for folder in folders))[:8]
    paths, are_all = plans.paths_of(session, peers, roots)
    if not paths or (is_strict and not are_all):
        return None

    text = plans.print_of(shell_text(call.tool, call.input))
    whose = config.runtime_name, call.session_id, session.instance_id, call.agent
    return Plan(*whose, text, is_strict, roots, paths, store_path())


def leave_for_call(config: RuntimeConfig, call: ToolCall, plan: Plan) -> str:
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

    if namespace.works() or namespace.again() == "":
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


# One line for the model after a call: writes that the kernel has refused.

# words of programs for such an error, in lower case
MARKS = ("read-only file system", "erofs", "resource busy", "ebusy")
NAMED = 3


def words_after(core: HookCore, call: ToolCall) -> str:
    """Return the notice about a call whose plan the kernel has held, mostly "". The plan is removed.

    The plan of a command that goes on in the background stays: its shell may not have read it yet.
    """
    try:
        name = name_of_call(core.config, call)
        plan = plans.load(os.path.join(plans.folder_of(call.session_id), name))
        if plan is None:
            return ""
        if not call.goes_on:
            plans.drop(call.session_id, name)
        output = text_of(call.response)
        words = ""
        if _is_by_us(plan, output):
            words = _words(core, call, plan, output)
        return "\n".join(filter(None, (plan.words, words)))
    except Exception as error:
        core.record_fault("kernel", error)
        return ""


def _is_by_us(plan: Plan, output: str) -> bool:
    """Return True if the command's output suggests that a held path was refused.

    Clients' own sandboxes refuse with the same words, mostly for paths elsewhere.
    """
    if NOT_HELD in output:
        return False
    return any(_may_be_ours(plan, line) for line in output.splitlines() if any(mark in line.lower() for mark in MARKS))


def _may_be_ours(plan: Plan, line: str) -> bool:
    named = re.findall(r"(?<![^\s'\"`=(\[])/[^\s'\"`:,)]+", line)
    return not named or any(path.startswith(root) for path in named for root in [*plan.roots, *plan.paths])


def text_of(response: object, levels: int = 4) -> str:
    """Return all text in a client's report about a call's end."""
    if isinstance(response, str):
        return response
    if levels and isinstance(response, dict):
        response = list(response.values())
    if levels and isinstance(response, list):
        return "\n".join(text_of(one, levels - 1) for one in response)
    return ""


def _words(core: HookCore, call: ToolCall, plan: Plan, output: str) -> str:
    """Return the words about the refused files, and have the refusal recorded."""

    paths = [path for path in plan.paths if os.path.basename(path) in output] or plan.paths
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    file = local_store()
    locks: list[Held] = []
    session = Session(plan.instance)
    if file:
        reader = StoreReader(file, core.driver)
        session = reader.session(plan.runtime, plan.session) or session
        peers = Peers(reader, plan.instance, time.time(), plan.agent)
        for path in paths[:NAMED]:
            locks += peers.over(keys_for(path, "/"))[:1]
    identity = token(session.label, "identity")
    if locks:
        what = named_locks(locks, identity, plan.instance)
    else:
        what = _named(paths[:NAMED])
    said = (
        f"swarm: the kernel kept this command from writing files that other sessions have locked: {what}{more}. Its"
        " other effects are done. Do not write these files another way: work on something else, message the holder, or"
        " wait in line for the lock, and then run it again."
    )
    if locks:
        denial = Denial(locks[0].file, None, said, loss=Loss("kernel", locks[0], "write"))
        core.note_denial(call, denial)
    return said


def _named(paths: list[str]) -> str:
    return ", ".join(map(named, paths))


# The second layer for our own harnesses: they start a command inside its plan themselves.


def inside(place: str, argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv` with the paths of the plan in the file `place` read-only."""
    enter = os.path.join(os.path.dirname(os.path.abspath(__file__)), "enter.py")
    return [sys.executable, "-E", "-s", "-S", enter, place, *argv]


def plan_place(call: ToolCall, config: RuntimeConfig) -> str:
    """Return the path of a call's plan; the file need not exist."""
    return os.path.join(plans.folder_of(call.session_id), name_of_call(config, call))


def plain_config(runtime: str) -> RuntimeConfig:
    """Return a RuntimeConfig for a session without a client, for checking parts of its commands."""
    name = runtime.upper().replace("-", "_")
    return RuntimeConfig(runtime, name, f"swarm-{runtime}", (), lambda given: [], kernel=DIRECTLY)


def keeps_out(command: str, folder: str) -> str:
    """Return one of the command's programs that fails in a user namespace, or ""."""
    return min(kept_out(effects_of(command, folder).programs), default="")


def plan_of_process(whose: tuple[str, str, str], folder: str, is_strict: bool, store: str) -> tuple[Plan | None, bool]:
    """Return ``(Plan or None, True if it names all locks)`` for a process that works in `folder`.

    `whose`: the session's runtime, its id, and its row in `store`.
    """
    plan = plans.Plan(*whose, is_strict=is_strict, roots=[git_root(folder)], store=store)
    plan.paths, are_all = plans.held_now(plan)
    return (plan if plan.paths else None), are_all
