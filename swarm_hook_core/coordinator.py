"""The coordinator's command, ``swarm-mcp``: its place, its release that uv fetches, and its errands for hooks.

There are other programs of that name, one of them on the package index. ``swarm-locks``, the name of our distribution,
is a second name of the command that no other program has. Installers' scripts for our entry point name the module that
they start, so they need not be run. Any other Python script is another program. A stand-in for a command (of a version
manager, or one's own) is run, once for each state of its file: it gets a word in the environment that only our command
gives back. ``integrations/coordinator.sh`` does the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from swarm_hook_core import DISTRIBUTION, __version__, process
from swarm_hook_core.json_text import loads
from swarm_hook_core.state import read_private, state_dir, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.denial import Denial, Loss, Notice
    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.tenants import Eviction
    from swarm_hook_core.traces.trail import Owner

NAME = "swarm-mcp"
MODULE = b"swarm_mcp.cli.main"
WORD = "SWARM_SAY_BACK"  # variable with the word that `swarm-mcp --version` prints at its end
SECONDS = 1.5
REFUSED_SECONDS = 600  # an answer that was not ours is asked for again after this
MOST_ALSO = 20  # further files of a refusal that it records
LONGEST_WORDS = 1000  # characters of the words to a model, and of a command, that it records
_READ = 1024 * 1024


_own: list[str] = []  # the command of this process's installation, where `use` has told it


def use(words: list[str]) -> None:
    """Have `command` return this argv prefix in place of a plugin's record: this process is of no plugin."""
    _own[:] = words


def command() -> list[str]:
    """Return the coordinator's argv prefix; empty if there is no coordinator.

    In order: ``SWARM_MCP_BIN`` (words as a shell splits them), the command that `swarm-mcp install` wrote into the
    plugin, ``swarm-mcp`` or ``swarm-locks`` on PATH if that is this program, and the release that uv has fetched.
    """
    return chosen_command() or _installed() or _on_path() or fetched_command()


def chosen_command() -> list[str]:
    """Return the command in ``SWARM_MCP_BIN``, if it can be run; else empty."""
    setting = os.environ.get("SWARM_MCP_BIN", "").strip()
    if not setting:
        return []
    words = setting.split()
    if any(mark in setting for mark in "'\"\\"):
        import shlex

        try:
            words = shlex.split(setting)
        except ValueError:  # an open quote
            return []
    return _words_on_path(words)


def recorded(name: str) -> object:
    """Return the value that `swarm-mcp install` recorded as `name` at the plugin's root; None if it cannot be read."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.path.join(root, "install.json")
    if not os.path.isfile(path):  # a pipe of that name would keep us waiting
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:  # nothing is recorded
        return None

    try:
        record = loads(text)
    except (ValueError, RecursionError):  # a person has edited it
        return None
    if isinstance(record, dict):
        return record.get(name)
    return None


def _installed() -> list[str]:
    """The command that `swarm-mcp install` recorded at the plugin's root, if it still exists."""
    words = _own or recorded("coordinator")
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        return []
    needed = [word for word in words if os.path.isabs(word)]
    if all(os.path.exists(word) for word in needed):
        return words
    return []


def _on_path() -> list[str]:
    ours, _other = find_on_path()
    if ours:
        return [ours]
    return []


def _words_on_path(words: list[str]) -> list[str]:
    if not words:
        return []
    first = words[0]
    if first.endswith((".ts", ".js")) and os.path.isfile(first):
        program = _words_on_path(["bun" if first.endswith(".ts") else "node"])
        if program:
            return program + words
        return []
    if os.sep in first:
        if os.access(first, os.X_OK) and not os.path.isdir(first):
            return words
        return []
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(folder, first)
        if folder and os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return [candidate, *words[1:]]
    return []


def find_on_path() -> tuple[str, str]:
    """Return ``(ours, other)``: the first command on PATH that is ours, and the first one before it that is not."""
    other = ""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for name in (NAME, DISTRIBUTION) if folder else ():
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                if is_ours(path):
                    return path, other
                other = other or path
    return "", other


def is_ours(path: str) -> bool:
    """Return True if the executable at `path` is this program, of any release."""
    try:
        with open(path, "rb") as file:
            text = file.read(_READ)
        found = os.stat(path)
    except OSError:  # it has just gone
        return False
    if MODULE in text:
        return True
    if text.startswith(b"#!") and b"python" in text.partition(b"\n")[0]:
        return False
    state = f"{found.st_mtime_ns} {found.st_size} {path}"
    known = _remembered(state)
    if known is None:
        word = f"{os.getpid()}-{time.time_ns()}"
        words = process.run([path, "--version"], SECONDS, environment={WORD: word}).stdout.split()
        known = words[:1] == [NAME] and words[-1] == word
        _remember(f"{'ours' if known else 'other'} {state}")
    return known


def _memory() -> str:
    return os.path.join(state_dir(), "command")


def _remembered(state: str) -> bool | None:
    """Return True or False if the file in this `state` was run before, else None."""
    try:
        memory = read_private(_memory(), 8192).decode("utf-8", "surrogateescape")
        answer, _, of = memory.rstrip("\n").partition(" ")
        age = time.time() - os.stat(_memory()).st_mtime
    except OSError:  # it was never asked
        return None
    if of != state or (answer != "ours" and not 0 <= age < REFUSED_SECONDS):
        return None
    return answer == "ours"


def _remember(line: str) -> None:
    try:
        write_private(_memory(), line + "\n")
    except OSError:
        return  # it is asked again then


# The coordinator's release that uv fetches for a plugin from a repository alone.
#
# If this machine has uv and no `swarm-mcp`, a session's start says so, once, and then has uv fetch the release with the
# plugin's own number, in the background. The release itself then leaves a launcher in the state folder (``swarm-mcp
# fetched``). Hooks and ``integrations/coordinator.sh`` start that, never uv, which may use the network.

AGAIN_SECONDS = 600  # between two attempts to fetch it
PLACES = ("~/.local/bin", "~/.cargo/bin", "/opt/homebrew/bin", "/usr/local/bin")  # of uv, beside those on PATH


def launcher() -> str:
    """Return the path of the launcher of the fetched release. It need not be there."""
    return os.path.join(state_dir(), "fetched", f"swarm-mcp-{__version__}")


def fetched_command() -> list[str]:
    """Return the argv prefix of the fetched release; empty if it was not fetched, or a person forbids it."""
    path = launcher()
    if not os.access(path, os.X_OK):
        return []
    if not may_fetch():
        try:
            os.remove(path)  # the server's launcher cannot read settings
        except FileNotFoundError:
            pass  # another process was faster
        return []
    return [path]


def may_fetch(prefix: str = "", folder: str = "") -> bool:
    """Return True unless a person's settings forbid uv to fetch the release."""
    from swarm_hook_core import settings

    return bool(settings.uvx(prefix, folder).value != "off")


def uv_path() -> str:
    """Return the path of uv; empty if it is not installed."""
    for folder in (*os.environ.get("PATH", os.defpath).split(os.pathsep), *map(os.path.expanduser, PLACES)):
        path = os.path.join(folder, "uv")
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def is_fetching_news(of_fetching: bool) -> bool:
    """Return True, once, if the user has not been told that this release is fetched, or that it cannot be."""
    if of_fetching:
        told = f"{launcher()}.told"
    else:
        told = os.path.join(os.path.dirname(launcher()), "told-none")
    if os.path.exists(told):
        return False
    try:
        write_private(told, "")
    except OSError:
        pass  # nowhere to remember it: it is said again
    return True


def fetch() -> None:
    """Have uv fetch the release, in the background; do nothing soon after another attempt.

    Raises OSError.
    """
    program, tried = uv_path(), f"{launcher()}.tried"
    if not program or (os.path.exists(tried) and 0 <= time.time() - os.stat(tried).st_mtime < AGAIN_SECONDS):
        return
    write_private(tried, "")

    # From a folder that no repository has a say in.
    line = 'cd / && exec "$0" tool run --quiet --from "$1" swarm-mcp fetched >"$2" 2>&1'
    process.start_detached(["/bin/sh", "-c", line, program, f"{DISTRIBUTION}=={__version__}", fetching_log()])


def fetching_log() -> str:
    """Return the path of uv's output of the last attempt. It need not be there."""
    return f"{launcher()}.log"


# The errands on which hooks send the command, without waiting: mostly reports of what they decided.

MOST_OWNERS = 20  # overwritten files of one call with an owner who is told


def send(
    verb: Sequence[str], runtime: str, session_id: str, words: Sequence[str],
    prefix: Sequence[str] | None = None,
) -> bool:  # fmt: skip
    """Start the coordinator's `verb` about a session in the background, with these further words.

    `prefix`: the argv prefix of its command, if the caller has it. Return False without a coordinator, or without an id
    of the session. Raises OSError.
    """
    argv = (prefix or command()) if session_id else ()
    if not argv:
        return False

    process.start_detached([*argv, *verb, "--runtime", runtime, "--session-id", session_id, *words])
    return True


def note_denial(runtime: str, call: ToolCall, denial: Denial) -> None:
    """Have a denial recorded, and the session wait for a locked file. Raises OSError.

    Facts that explain the decision later go along, such as the path of the write.
    """
    loss = denial.loss
    held = loss.held if loss is not None else denial.held
    assert held is not None
    facts = {"--target": denial.path, "--directory": call.cwd, "--agent": call.agent}
    facts["--fence"] = str(held.fence) if isinstance(held.fence, int) else ""
    facts["--times"] = str(denial.times) if denial.times > 1 else ""
    words = [*_holder(held.instance_id), *_options(facts), *(_of_loss(loss, denial.reason) if loss is not None else ())]
    send(["denied"], runtime, call.session_id, [*words, "--tool", call.tool, "--", denial.file or call.folder])


def note_notice(runtime: str, call: ToolCall, notice: Notice) -> None:
    """Have a notice recorded. Raises OSError."""
    words = [*_holder(notice.loss.held.instance_id), *_options({"--directory": call.cwd, "--agent": call.agent})]
    words += [*_of_loss(notice.loss, notice.reason), "--tool", call.tool, "--", notice.path or call.folder]
    send(["denied", "--notice"], runtime, call.session_id, words)


def note_attempt(runtime: str, call: ToolCall, denial: Denial) -> None:
    """Have the attempt at a person's matter recorded. Raises OSError."""
    target = _options({"--target": denial.path if denial.path != denial.deed else ""})
    send(["attempted"], runtime, call.session_id, ["--tool", call.tool, *target, "--", denial.deed])


def tell_owners(runtime: str, call: ToolCall, owners: list[Owner], prefix: Sequence[str] | None = None) -> None:
    """Have each owner of overwritten changes told (``Trail.owners``). Raises OSError."""
    argv = prefix or command()
    for trace, how, by, kept, times in owners[:MOST_OWNERS] if argv else ():
        facts = {"--how": how, "--kept": kept, "--tool": call.client_tool, "--command": by}
        facts["--times"] = str(times) if times else ""
        words = ["--owner", trace.held.instance_id, *_options(facts), "--", trace.path]
        send(["overwritten"], runtime, call.session_id, words, argv)


def tell_tenants(runtime: str, call: ToolCall, evictions: list[Eviction], prefix: Sequence[str] | None = None) -> None:
    """Have each session told whose work tree the call takes away, or was to (``tenants``). Raises OSError."""
    argv = prefix or command()
    if not argv:
        return
    for one in evictions:
        words = _options({"--deed": one.deed, "--command": one.by[:LONGEST_WORDS], "--main": one.main})
        if one.is_denied:
            words.append("--denied")
        for commit in (one.commits or ())[:MOST_ALSO]:
            words.append(f"--commit={commit.name} {commit.subject}"[:LONGEST_WORDS])
        for held in one.tenants:
            send(["evicted"], runtime, call.session_id, ["--owner", held.instance_id, *words, "--", one.root], argv)


def _holder(instance_id: str) -> list[str]:
    return ["--holder", instance_id] if instance_id else []


def _of_loss(loss: Loss, reason: str) -> list[str]:
    """Return the options of ``denied`` about an obstacle, and about the words for the model."""
    told = {"--why": loss.why, "--deed": loss.deed, "--command": loss.by[:LONGEST_WORDS]}
    told["--said"] = reason.partition("\n")[0][:LONGEST_WORDS]
    told["--changed"] = str(loss.at) if loss.at else ""
    return _options(told) + [f"--also={path}" for path in loss.also[:MOST_ALSO]]


def _options(facts: dict[str, str]) -> list[str]:
    """Return the facts that are not empty as options."""
    return [f"{flag}={value}" for flag, value in facts.items() if value]
