"""The decision if the kernel holds locked files while a call runs, the plan, the way to it, and what was refused.

Loaded when a shell call cannot be parsed and others hold locks in its reach.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from swarm_hook_core import environment, settings
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.denial import Denial, Loss
from swarm_hook_core.hooks import SessionEvent, ToolCall, text_of
from swarm_hook_core.kernel import namespace, plans
from swarm_hook_core.kernel.plans import NOT_HELD, Plan, in_quotes, kernel_dir, print_of
from swarm_hook_core.lookup import Held, Peers, Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.opaque_calls import shell_text
from swarm_hook_core.paths import git_root, keys_for
from swarm_hook_core.shell import effects_of
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.state import PLAIN, local_store, name_of, store_path
from swarm_hook_core.untrusted_text import as_word, named, token
from swarm_hook_core.watching.records import call_key
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
    if not call.session_id or os.name != "posix" or _kept_out(effects.programs):
        return False
    if config.kernel == SHELL:
        return os.path.exists(plans.wired_file(call.session_id))
    if config.kernel == STATEMENT:
        return _may_precede(config, call)
    return True


def _kept_out(programs: set[str]) -> set[str]:
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
        there = f"[ -d {as_word(plans.folder_of(event.session_id))} ] && [ -e {as_word(entry)} ]"
        line = f"if {there}; then . {as_word(entry)}; fi\n"
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
    return min(_kept_out(effects_of(command, folder).programs), default="")


def plan_of_process(whose: tuple[str, str, str], folder: str, is_strict: bool, store: str) -> tuple[Plan | None, bool]:
    """Return ``(Plan or None, True if it names all locks)`` for a process that works in `folder`.

    `whose`: the session's runtime, its id, and its row in `store`.
    """
    plan = plans.Plan(*whose, is_strict=is_strict, roots=[git_root(folder)], store=store)
    plan.paths, are_all = plans.held_now(plan)
    return (plan if plan.paths else None), are_all


# Codex: a statement before the command has its shell look for the plan, and the user's rules allow it.
#
# The command itself stays unchanged after it, so that the client's rules still see it; ``bash -c '...'`` around it
# would hide it from them. Approvals and forbidding rules were seen to hold with such a statement in certain releases.
# In other releases no statement is added.

# User rules that may let a command out of the sandbox, which a statement before the command would undo.
#
# Codex runs a command outside its sandbox if an ``allow`` rule matches each of its parts; no rule matches the
# statement. Rules that ask or forbid hold in spite of the statement. The rules are Starlark, a subset of Python:
# ``prefix_rule(pattern=["make", ["a", "b"]], decision="allow")``.

LARGEST_RULES = 1 << 20


def may_allow(command: str, folder: str) -> bool:
    """Return True if a rule in force in `folder` may allow `command`. An unreadable rule may."""
    files = [file for place in _places(folder) for file in _files(place)]
    if not files:
        return False
    seen = print_of(command)
    return any(_allows(file, seen) for file in files)


def _places(folder: str) -> Iterator[str]:
    """Yield the folders of rules: the machine's, the user's, and those of the projects around `folder`."""
    yield "/etc/codex/rules"
    yield os.path.join(os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex"), "rules")
    while True:
        yield os.path.join(folder, ".codex", "rules")
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _files(place: str) -> list[str]:
    try:
        return [os.path.join(place, name) for name in os.listdir(place) if name.endswith(".rules")]
    except OSError:
        return []  # no rules there


def _allows(file: str, seen: str) -> bool:
    """Return True if a rule in `file` may allow a command: the command has all the rule's words.

    `seen`: the command's text from `print_of`.
    """
    import ast

    try:
        with open(file, encoding="utf-8") as opened:
            tree = ast.parse(opened.read(LARGEST_RULES))
        rules = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_rule(node.func)]
        if len(rules) < sum(_is_rule(node) for node in ast.walk(tree)):
            return True  # a rule under another name
        for rule in rules:
            given = {one.arg: ast.literal_eval(one.value) for one in rule.keywords}
            if rule.args or given.get("decision", "allow") == "allow":
                words = [[word] if isinstance(word, str) else word for word in given["pattern"]]
                if all(any(print_of(one) in seen for one in word) for word in words):
                    return True
        return False
    except (OSError, ValueError, KeyError, TypeError, SyntaxError, RecursionError):
        return True  # unreadable: it may allow the command


def _is_rule(node: object) -> bool:
    return getattr(node, "id", "") == "prefix_rule"


_SHELLS = ("bash", "zsh")  # shells that know their own command text, and can run it again


def _may_precede(config: RuntimeConfig, call: ToolCall) -> bool:
    """Return True if a statement may be put before this call's command."""
    command = shell_text(call.tool, call.input)
    if not isinstance(call.input, dict) or not isinstance(call.input.get("command"), str) or not command.strip():
        return False
    if "apply_patch" in command or "applypatch" in command:
        return False  # Codex applies a patch itself if it finds one in a command
    if _shell() not in _SHELLS or environment.client_version(config) not in config.kernel_versions:
        return False

    return not may_allow(command, call.folder)


def preceded(tool_input: dict[str, Any], entry: str) -> dict[str, Any]:
    """Return the input of a call with the statement before its command."""
    return {**tool_input, "command": f". {in_quotes(entry)}; {tool_input['command']}"}


def without(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` with its command as it was before the statement was added; ``Dialect.amend`` of Codex.

    Only for a call that has ended: before that the command is all from the model, and all of it is checked.
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
    """Return the name of the shell that runs this user's commands."""
    import pwd

    try:
        return os.path.basename(pwd.getpwuid(os.getuid()).pw_shell)
    except KeyError:
        return os.path.basename(os.environ.get("SHELL", ""))  # a user without an account entry
