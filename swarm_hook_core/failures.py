"""A test or a build that fails beside others' uncommitted lines: its agent is told of `swarm-mcp try`.

The check of a call that may be one leaves a mark, so that the hook after the call does not end at once:

    <state>/awaited/<runtime>.<session>.<key of the call>

That hook finds out if the command has failed, and whose uncommitted files may matter to it. The session's journal has
an entry of kind ``red`` about what its agent was told: it hears of the same contents once.
"""

from __future__ import annotations

import os
import re
import time

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall, text_of
from swarm_hook_core.lookup import LockReader, Session
from swarm_hook_core.state import awaited_dir, local_store, open_in_private
from swarm_hook_core.traces import journal, journal_name, state_of
from swarm_hook_core.traces.endings import forget
from swarm_hook_core.watching.records import call_key, digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.core import HookCore
    from swarm_hook_core.stakes.owners import Stake
    from swarm_hook_core.traces.trail import Trail

KIND = "red"
MOST_FILES = 500  # uncommitted files with an author looked up
NAMED = 3  # owners that are named, and files of each
LONGEST = 120  # characters of a command that is repeated
# Programs that only read the project's code, with the ends of the files that can matter to them. Those that run it
# (pytest, make, npm test, cargo) are rows of the shell reader: `Effects.runs`.
_PYTHON = (".py", ".pyi", ".toml", ".cfg", ".ini")
_SCRIPTS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".vue", ".svelte")
_C = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inc")
CHECKS = {
    **dict.fromkeys(("mypy", "pyright", "ruff", "flake8", "pylint"), _PYTHON),
    **dict.fromkeys(("tsc", "eslint", "biome"), _SCRIPTS),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _C),
    "rustc": (".rs",),
    "javac": (".java",),
}
# What runs in the first ones sees other files than a try's; the last ones would be lost in it.
_APART = frozenset(("swarm-mcp", "docker", "docker-compose", "podman", "kubectl", "ssh", "git commit", "git push"))
_PROSE = (".md", ".rst", ".adoc", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf")  # what no build reads
# A client's words about the exit code, where its hook gets the whole answer to the model as text.
_CODE = r"(?i)exit(?:ed)?(?: with)?(?: exit)? code:? (\d+)"
# Lines of tests and builds that have failed, for a pipeline: its exit code is that of its last program.
_FAILED = (
    r"(?m)^(?:FAIL(?:ED|URE)?|ERROR|E )\b|\b[1-9]\d* (?:failed|failing|failures?|errors?)\b|\berror(?:\[\w+\]| TS\d+)?:"
    r"|\*\*\* .*\bError \d|\bBUILD FAIL|^Traceback \(most recent"
)
_SIGNS = r"[;&|<>()$`*?\[\]{}~#!\\\n'\"]|^\w+="  # of a command that takes a shell


def mark(config: RuntimeConfig, call: ToolCall) -> str:
    """Return the path of the mark of a call."""
    name = journal_name(config.runtime_name, call.session_id)
    return os.path.join(awaited_dir(), f"{name}.{call_key(config.runtime_name, call)}")


def expect(config: RuntimeConfig, call: ToolCall) -> None:
    """Have the end of a call looked at. Raises OSError."""
    os.close(open_in_private(mark(config, call), os.O_WRONLY | os.O_CREAT))


def words_after(core: HookCore, call: ToolCall) -> str:
    """Return the line about a test or a build that has failed beside others' uncommitted lines, mostly ""."""
    path = mark(core.config, call)
    if not call.session_id or not os.path.lexists(path):
        return ""
    forget(path)
    output = text_of(call.response)
    if call.goes_on or not _has_failed(core.config, call, output):
        return ""
    from swarm_hook_core.lookup.sqlite import StoreReader
    from swarm_hook_core.traces.trail import trail_of

    trail = trail_of(core.config, call)
    file = local_store()
    ends = _ends_that_matter(call)
    if trail is None or ends is None or not file:
        return ""

    reader = StoreReader(file, core.driver)
    session = reader.session(core.config.runtime_name, call.session_id)
    if session is None:
        return ""
    return _words(trail, reader, session, ends, output)


# ------------------------------------------------------------------------------------------- the command


def _ends_that_matter(call: ToolCall) -> tuple[str, ...] | None:
    """Return the ends of the files that can matter to the command, () for all; None if it is no test and no build."""
    from swarm_hook_core.opaque_calls import effects_of

    effects = effects_of(call)
    if effects is None or not _APART.isdisjoint(effects.programs):
        return None
    checks = effects.programs & CHECKS.keys()
    if effects.runs:
        return ()
    if not checks:
        return None
    return tuple(end for name in sorted(checks) for end in CHECKS[name])


def _has_failed(config: RuntimeConfig, call: ToolCall, output: str) -> bool:
    """Return True if the command has failed, as far as the client tells.

    Claude Code and most others have an event for it. Codex gives its hook the output alone, and has the exit code in
    its log by then. A pipeline has failed if a line of its output says so.
    """
    if call.name == "PostToolUseFailure":
        return True
    code: object = None
    if config.transcript == "rollout":
        code = _code_in_log(call)
    elif isinstance(call.response, dict):
        code = call.response.get("exit_code", call.response.get("exitCode"))
    if code is None and (found := re.search(_CODE, output)) and not _is_plain(call):
        code = int(found[1])
    if code:
        return True
    return "|" in _text_of(call) and re.search(_FAILED, output) is not None


def _is_plain(call: ToolCall) -> bool:
    """Return True if the client's answer is the command's output alone: words about exit codes in it are not its."""
    return isinstance(call.response, str) or (isinstance(call.response, dict) and "stdout" in call.response)


def _code_in_log(call: ToolCall) -> int | None:
    from swarm_hook_core.traces.transcript import exit_code

    return exit_code(call.transcript, call.session_id, call.agent, call.id)


def _text_of(call: ToolCall) -> str:
    from swarm_hook_core.opaque_calls import shell_text

    return shell_text(call.tool, call.input) or ""


# ------------------------------------------------------------------------------------------- the others


def _words(trail: Trail, reader: LockReader, session: Session, ends: tuple[str, ...], output: str) -> str:
    from swarm_hook_core.repository import tree_over
    from swarm_hook_core.untrusted_text import command, named
    from swarm_hook_core.wording import and_more

    call = trail.call
    tree = tree_over(os.path.realpath(call.folder))
    if tree is None:
        return ""
    owners: dict[str, list[str]] = {}
    for who, path in _others(trail, reader, session, tree.top):
        name = os.path.relpath(path, tree.top)
        if _can_matter(name, ends) or os.path.basename(name) in output:
            owners.setdefault(who, []).append(name)
    if not owners:
        return ""
    states = [f"{who} {name} {state_of(os.path.join(tree.top, name))}" for who in owners for name in owners[who]]
    digest = digest_of("\n".join(sorted(states)).encode("utf-8", "replace"), 12)
    own = journal.read_own(os.path.join(trail.place_of(tree.top), trail.own_name))
    told = next((one for one in journal.newest_first(own, tree.top, (KIND,)) if one.agent == call.agent), None)
    if told is not None and told.text == digest:
        return ""
    trail.note_at(tree.top, KIND, digest)
    trail.leave()
    said = [
        f"{who}: {', '.join(map(named, names[:NAMED]))}{and_more(len(names) - NAMED)}"
        for who, names in list(owners.items())[:NAMED]
    ]
    return (
        f"swarm: others have uncommitted lines here ({'; '.join(said)}{and_more(len(owners) - NAMED)});"
        f" {command(f'swarm-mcp try -- {_again(_text_of(call))}')} runs it with yours alone"
    )


def _others(trail: Trail, reader: LockReader, session: Session, top: str) -> list[tuple[str, str]]:
    """Return ``[(owner, path)]`` of the files with uncommitted lines of others. Agents of the session are no others."""
    from swarm_hook_core import EDIT
    from swarm_hook_core.git_repository import NoAnswer
    from swarm_hook_core.stakes.owners import Authors, Changed, Stake
    from swarm_hook_core.traces.meetings import Meetings
    from swarm_hook_core.untrusted_text import token
    from swarm_hook_core.wording import holder

    try:
        below = Changed().below(top, top)
    except NoAnswer:
        return []  # git is too slow here
    stakes = [Stake(path, EDIT, "", is_new) for path, is_new in below.items()][:MOST_FILES]
    authors = Authors(Meetings(trail, reader, time.time()))
    authors.find_sessions(stakes, are_changed=True)
    authors.find([one for one in stakes if one.trace is None])
    identity = token(session.label, "identity")

    def owner(stake: Stake) -> str:
        if stake.trace is not None and not stake.trace.held.kin:
            return holder(stake.trace.held, identity)[0]
        return "a person" * stake.is_persons

    return [(who, one.path) for one in stakes if (who := owner(one))]


def _can_matter(name: str, ends: tuple[str, ...]) -> bool:
    if ends:
        return name.endswith(ends)
    return not name.lower().endswith(_PROSE)


def _again(text: str) -> str:
    """Return a command as `swarm-mcp try` takes it."""
    text = text.strip()
    if re.search(_SIGNS, text):
        import shlex

        text = f"sh -c {shlex.quote(text)}"
    if len(text) > LONGEST:
        return "COMMAND"
    return text
