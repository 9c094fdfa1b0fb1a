"""The bash harness (wedow/harness) as a harness."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from swarm_mcp.agents.harness import events, outcome
from swarm_mcp.agents.harness.adapter import (
    ERROR,
    INFO,
    WARN,
    Capabilities,
    Check,
    CommandPlace,
    HarnessAdapter,
    Launch,
)
from swarm_mcp.agents.harness.environment import plugin_folder
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import Cost, Ending, Unsupported, code_of
from swarm_mcp.agents.harness.query import READ_ONLY, Query, parse_json, parse_object
from swarm_mcp.agents.harness.registry import command_of, environment_of
from swarm_mcp.errors import Refused
from swarm_mcp.runtimes.hs import GUARDED, home, root_of, shadows

# Sessions of the bash harness: a folder with ``session.conf`` and ``messages/NNNN-role.md``.
#
# A message is frontmatter between two lines of ``---``, and its text. An assistant's text has blocks `` ```tool_call
# id=ID name=NAME `` with JSON in them, and `` ```thinking signature=... ``. Source: docs/PROTOCOLS.md of wedow/harness.
# Unreadable parts are skipped.

LARGEST = 8 * 1024 * 1024  # bytes of a message that are read
CALL, THOUGHT, END = "```tool_call ", "```thinking", "```"


_COUNTS = ("tokens_in", "tokens_out", "tokens_cache_read", "tokens_cache_write")


class Message(NamedTuple):
    """One message: its frontmatter and its text."""

    facts: dict[str, str]
    text: str


class Reading:
    """The messages of a session, as they come; the first `skip` are old. Known so far: the assistant's `last_words`,
    its last `stop` reason, its `model` and `provider`, and its number of `turns`.
    """

    def __init__(self, path: str = "", skip: int = 0):
        self.path = path
        self.last_words = self.stop = self.model = self.provider = ""
        self.turns = 0
        self._skip = skip
        self._done: set[str] = set()
        self._counts: dict[str, int] = {}

    def news(self) -> list[Event]:
        """Return the events of messages that are new. One that is still being written is left for the next time."""
        told: list[Event] = []
        for name in files(self.path)[self._skip :]:
            if name in self._done:
                continue
            message = read(os.path.join(self.path, "messages", name))
            if message is None:
                break
            self._done.add(name)
            told += self._events(message)
        return told

    def cost(self, model: str | None) -> Cost:
        """Return the cost of all turns; None: not counted."""
        read, written, *cache = map(self._counts.get, _COUNTS)
        return Cost(None, read, written, cache[0], cache[1], self.turns or None, model)

    def error(self) -> str:
        """Return the last error in the session's stream file; empty for none."""
        try:
            with open(os.path.join(self.path, ".stream"), encoding="utf-8", errors="replace") as file:
                lines = file.read(LARGEST).splitlines()
        except OSError:  # no stream file
            return ""
        for line in reversed(lines):
            event = parse_object(line)
            if event.get("type") == "error":
                return str(event.get("message") or "")
        return ""

    def _events(self, message: Message) -> list[Event]:
        facts, role = message.facts, message.facts.get("role")
        if role == "assistant":
            return self._spoken(message)
        if role == "tool_result":
            failed = facts.get("error") == "true"
            return [events.tool_end(facts.get("call_id", ""), facts.get("tool", ""), message.text, failed)]
        return []  # the user's words are known

    def _spoken(self, message: Message) -> list[Event]:
        facts, told = message.facts, []
        self.turns += 1
        self.stop = facts.get("stop", "")
        self.model, self.provider = facts.get("model") or self.model, facts.get("provider") or self.provider
        counts = {name: int(text) for name, text in facts.items() if name.startswith("tokens_") and text.isdecimal()}
        for name, count in counts.items():
            self._counts[name] = self._counts.get(name, 0) + count
        words = []
        for kind, content, head in blocks(message.text, self.stop in ("tool_calls", "")):
            if kind == "call":
                told.append(events.tool_start(head.get("id", ""), head.get("name", ""), content))
            elif content.strip():
                if kind == "thought":
                    thinking = {"thinking": True}
                else:
                    thinking = {}
                told.append(events.message("assistant", content.strip("\n"), **thinking))
                words += [] if thinking else [content.strip("\n")]
        self.last_words = "\n".join(words) or self.last_words
        if "tokens_in" in counts:
            used = counts["tokens_in"] + counts.get("tokens_cache_read", 0) + counts.get("tokens_out", 0)
            usage: dict[str, Any] = {"context_used_tokens": used, "context_total_tokens": None, "context_percent": None}
            spent = self.cost(self.model or None).to_dict()
            usage.update(output_tokens=counts.get("tokens_out"), spent=spent)
            told.append(Event(events.CONTEXT_USAGE, usage))
        return told


def blocks(text: str, has_calls: bool) -> Iterator[tuple[str, Any, dict[str, str]]]:
    """Yield ``(kind, content, head)`` of each part of a text: ``text``, ``thought`` or ``call``. A call's content is
    its parsed input (the text itself if it is no JSON), and its head has ``id`` and ``name``.
    """
    kind = "text"
    head: dict[str, str] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if has_calls and line.startswith(CALL):
            opened = "call"
        elif line.startswith(THOUGHT):
            opened = "thought"
        else:
            opened = ""
        if kind == "text" and opened:
            yield kind, "\n".join(lines), {}
            pairs = (word.partition("=") for word in line.split()[1:])
            kind, head, lines = opened, {name: value for name, _, value in pairs}, []
        elif kind != "text" and line == END:
            content = "\n".join(lines)
            yield kind, parse_json(content, content) if kind == "call" else content, head
            kind, head, lines = "text", {}, []
        else:
            lines.append(line)
    content = "\n".join(lines)
    yield kind, parse_json(content, content) if kind == "call" else content, head


def read(path: str) -> Message | None:
    """Return the message in a file; None for an incomplete one."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LARGEST)
    except OSError:  # removed meanwhile
        return None
    begin, mark, rest = text.partition("---\n")
    head, closed, body = rest.partition("\n---\n")
    if begin.strip() or not mark or not closed:
        return None
    facts = dict(line.partition(": ")[::2] for line in head.splitlines())
    return Message({name: value.strip() for name, value in facts.items()}, body.removesuffix("\n"))


def files(path: str) -> list[str]:
    """Return the names of a session's messages, in order."""
    try:
        return sorted(name for name in os.listdir(os.path.join(path, "messages")) if name.endswith(".md"))
    except OSError:  # no messages yet
        return []


def settings(path: str) -> dict[str, str]:
    """Return the values in a session's ``session.conf``; empty without one."""
    try:
        with open(os.path.join(path, "session.conf"), encoding="utf-8", errors="replace") as file:
            return dict(line.rstrip("\n").partition("=")[::2] for line in file)
    except OSError:  # no settings
        return {}


def folder_of(session_id: str, cwd: str, env: Mapping[str, str]) -> str:
    """Return where a session of that name is, for a harness started in `cwd`."""
    values = {**os.environ, **env}
    nested = values.get("HARNESS_PARENT_SESSION") and "HARNESS_SESSIONS" not in env
    if values.get("HARNESS_SESSIONS") and not nested:
        sessions = values["HARNESS_SESSIONS"]
    else:
        home = os.path.expanduser(values.get("HARNESS_HOME") or "~/.harness")
        sessions = nearest_sessions(os.path.abspath(cwd) if cwd else "", home)
    return os.path.join(sessions, session_id)


def nearest_sessions(folder: str, home: str) -> str:
    """Return the folder that keeps the sessions of a run in `folder`."""
    while folder != os.path.dirname(folder):
        candidate = os.path.join(folder, ".harness", "sessions")
        if os.path.isdir(candidate):
            return candidate
        folder = os.path.dirname(folder)
    return os.path.join(home, "sessions")


# The bash harness (wedow/harness), run as ``hs agent``.
#
# Measured on the states of 2026 up to 0.3: its answer is plain text and its exit code always 0, so failures are read
# from its output and from the session's own messages; an unknown session id would become part of the prompt; its
# standard output is silent until the end, so progress is read from the messages after each line of standard error.
#
# The harness takes its bundled plugins from ``$HARNESS_ROOT/plugins``. A worker is given a root of links: all entries
# of the real one, and our plugin beside it, ranked in front of all (``tools``). The user's ``~/.harness`` with its
# plugins, settings and credentials stays in its place and in force. An installed plugin of ours does not run twice: of
# hooks with one name the harness runs one.

FAILED = "error: "  # the harness's first word if it has no answer
_CHATTER = ("session: ", "provider: ", "model: ", "[harness] tool pre-dispatched")  # on standard error, no complaints
_BEFORE = "before"  # in the run's folder: how many messages the session had


class Hs(HarnessAdapter):
    """The harness ``hs``."""

    name = "hs"
    label = "the bash harness"
    program = "hs"
    instructions = (
        "git clone https://github.com/wedow/harness, put its bin/hs on PATH (bash 4, jq and curl are needed), and set"
        " ANTHROPIC_API_KEY or OPENAI_API_KEY, or run: hs auth"
    )
    session_pattern = r"[0-9]{8}-[0-9]{6}-[0-9]+"
    capabilities = Capabilities(
        resume=True, read_only=True, append_system_prompt=True, native_skills=True, locks=True, model=True, effort=True,
        max_turns=True,
    )  # fmt: skip
    doc = """\
Runs the bash harness once. Locks come to it by the swarm's plugin folder, which workers find in front of all others;
so do skills and what is added to the system prompt. The swarm's tools are its own command, swarm-mcp, in the shell.
Use when plugins are to be plain executables, or when the model is behind any endpoint of the two usual kinds.
Do not use when the work needs MCP servers or client tools (it has none), a sandbox, or many calls in little time:
each costs the harness itself about a second.
Settings: model (HARNESS_MODEL, HS_DEFAULT_MODEL; default: the provider's), effort (low, medium, high, max; default:
none), mode (edit; read-only closes the four tools that write, the shell among them), skills, append_system_prompt
(system_prompt is put there too), max_turns (100), resume_session_id, command (default: hs), env (HARNESS_PROVIDER
names the provider), timeout_seconds (0: none), grace_seconds (15). No additional_args: what stands behind its name
is its prompt."""

    def launch(self, query: Query, folder: Path) -> Launch:
        if query.additional_args:
            raise Refused("hs has no options: what stands behind its name would be its prompt")
        words = query.command or (self.program,)
        argv = [*words, "agent"]
        if query.resume_session_id:
            argv.append(query.resume_session_id)
            session = folder_of(query.resume_session_id, query.cwd, query.env)
            (folder / _BEFORE).write_text(str(len(files(session))), encoding="utf-8")
        env = _plugin_environment(query, words[0], folder)
        if query.mode == READ_ONLY and "HARNESS_ROOT" not in env and not is_installed():
            raise Unsupported(
                f"hs cannot be kept from writing here: where {words[0]} is installed cannot be told, so it has no"
                " guards; set HARNESS_ROOT to its folder"
            )
        chosen = {
            "HARNESS_MODEL": self.model(query),
            "HARNESS_THINKING": query.effort,
            "HARNESS_MAX_TURNS": str(query.max_turns or ""),
            "SWARM_HS_READ_ONLY": "1" if query.mode == READ_ONLY else "",
        }
        env.update({name: value for name, value in chosen.items() if value})
        if os.environ.get("HARNESS_PARENT_SESSION"):
            return Launch(tuple(argv), env, query.prompt, ("HARNESS_SESSIONS",))
        return Launch(tuple(argv), env, query.prompt)

    def parse(self, line: str, state: dict[str, Any]) -> list[Event]:
        state.setdefault("lines", []).append(line)
        return []

    def parse_stderr(self, line: str, state: dict[str, Any]) -> list[Event]:
        name, _, value = line.partition(": ")
        query: Query | None = state.get("query")
        if name == "session" and "session_path" not in state:
            given = value.strip()
            if query and "/" not in given:  # some releases print its folder, some its name
                given = folder_of(given, query.cwd, query.env)
            state["session_path"] = os.path.expanduser(given)
        elif name in ("provider", "model"):
            state.setdefault(name, value.strip())
        elif "exceeded max iterations" in line:
            state["stopped"] = line.strip()
        return self._news(state)

    def finish(self, state: dict[str, Any]) -> list[Event]:
        told = self._news(state)
        answer = "\n".join(state.get("lines", ())).strip()
        seen: Reading = state.get("reading") or Reading()
        failed = answer.startswith(FAILED) and answer != seen.last_words.strip()
        if failed or seen.stop == "error" or state.get("stopped"):
            if failed:
                said = answer.removeprefix(FAILED)
            else:
                said = state.get("stopped") or seen.error() or "hs has failed"
            code = _code(said)
            told.append(events.error(said, code))
            return [*told, events.result(None, True, code, error_message=said, **self._facts(state, seen))]
        if not answer and not seen.last_words.strip():
            return told  # no answer: the process's end tells its meaning
        return [*told, events.result(answer or seen.last_words, **self._facts(state, seen))]

    def error_of(self, ending: Ending) -> tuple[str, str] | None:
        result = ending.result
        if result is not None and result.get("is_error"):
            return str(result.get("error_category") or outcome.UNKNOWN), str(result.get("error_message"))
        if result is not None and not ending.signal and not ending.exit_code:
            return None
        said = "\n".join(line for line in ending.stderr.splitlines() if not line.startswith(_CHATTER))
        found = super().error_of(ending._replace(stderr=said))
        last = said.strip().splitlines()[-1:] or ["hs ended without an answer"]
        return found or (outcome.PROCESS_CRASHED, last[0])

    def can_resume(self, session_id: str, cwd: str) -> bool | None:
        """Return True if the session's own record names `cwd` as its folder."""
        path = folder_of(session_id, cwd, {})
        facts = settings(path)
        return bool(facts) and os.path.realpath(facts.get("cwd") or cwd) == os.path.realpath(cwd)

    def format_command(self, name: str) -> str:
        return f"Use the skill {name}."

    def command_places(self, cwd: str) -> list[CommandPlace]:
        return harness_skills(str(home()), cwd)

    def checks(self, config: Mapping[str, object]) -> list[Check]:
        values = environment_of(config)
        missing = [name for name in NEEDED if not shutil.which(name, path=values.get("PATH"))]
        found = [Check(f"{name}_missing", ERROR, f"hs needs {name}", f"install {name}") for name in missing]
        named = [name for name in _KEYS if values.get(name, "").strip()]
        if named:
            provider = Check("provider", INFO, f"{named[0]} is set")
        elif (home() / ".auth-cache.json").is_file():
            provider = Check("provider", INFO, f"signed in: {home() / '.auth-cache.json'}")
        else:
            hint = "set ANTHROPIC_API_KEY or OPENAI_API_KEY, or run: hs auth"
            provider = Check("no_provider", WARN, "no provider of the harness has credentials here", hint)
        return [*found, provider, _guards(self, config, values)]

    # ----------------------------------------------------------------- innards

    def _news(self, state: dict[str, Any]) -> list[Event]:
        """Return new events from the session's messages."""
        query: Query | None = state.get("query")
        told: list[Event] = []
        if "session_path" not in state and query and query.resume_session_id:
            state["session_path"] = folder_of(query.resume_session_id, query.cwd, query.env)
            state["skip"] = _number(Path(str(state.get("folder") or "")) / _BEFORE)
        path = state.get("session_path")
        if not path:
            return told
        if "reading" not in state:
            state["reading"] = Reading(path, state.get("skip", 0))
            more = {name: state[name] for name in ("model", "provider") if state.get(name)}
            told.append(events.session_init(os.path.basename(path.rstrip("/")), **more))
        return [*told, *state["reading"].news()]

    def _facts(self, state: dict[str, Any], seen: Reading) -> dict[str, Any]:
        model = seen.model or state.get("model")
        return {"cost": seen.cost(model), "model": model, "provider": seen.provider or state.get("provider")}


def harness_skills(users: str, cwd: str) -> list[CommandPlace]:
    """Return where the bash harness, and the embedded loop, find skills."""
    bases = [os.path.join(cwd, ".harness"), os.path.join(cwd, ".agents"), users]
    return [CommandPlace(os.path.join(base, "skills")) for base in bases]


def _code(said: str) -> str:
    if "exceeded max iterations" in said:
        return outcome.BUDGET
    missing_key = " not set" in said and ("hs auth" in said or "API_KEY" in said)
    if missing_key:
        return outcome.AUTH_FAILED
    return code_of(said) or outcome.UNKNOWN


def _number(path: Path) -> int:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # nothing was counted before
        return 0


PACK = "swarm"


def _plugin_environment(query: Query, program: str, folder: Path) -> dict[str, str]:
    """Return the variables that give the child our plugin, made below `folder`, and our command."""
    bundle = plugin_folder()
    path = query.env.get("PATH") or os.environ.get("PATH") or os.defpath
    env = {"PATH": os.pathsep.join((str(bundle / "bin"), path))}
    found = shutil.which(program, path=path)
    root = found and root_of(found)
    if root:
        env["HARNESS_ROOT"] = str(_linked(root, bundle, folder / "harness", query))
    return env


def is_installed() -> bool:
    """Return True if the user has installed our plugin."""
    return (home() / "plugins" / PACK / "tools" / GUARDED[0]).is_file()


def _linked(root: Path, bundle: Path, target: Path, query: Query) -> Path:
    """Return a root like `root`, with our plugin from `bundle` among the bundled ones."""
    packs = target / "plugins"
    packs.mkdir(parents=True)
    for entry in root.iterdir():
        if entry.name != packs.name:
            (target / entry.name).symlink_to(entry)
    for entry in (root / packs.name).iterdir():
        if entry.name != PACK:
            (packs / entry.name).symlink_to(entry)
    ours = packs / PACK
    (ours / "skills").mkdir(parents=True)
    for part in ("tools", "hooks.d"):
        (ours / part).symlink_to(bundle / "integrations" / "hs" / part)
    for skill in query.skills:
        link = ours / "skills" / os.path.basename(skill.rstrip("/"))
        if not link.is_symlink():
            link.symlink_to(os.path.abspath(skill))
    text = "\n\n".join(filter(None, (query.system_prompt, query.append_system_prompt)))
    if text:
        (ours / "prompts").mkdir()
        (ours / "prompts" / "500-run.md").write_text(text, encoding="utf-8")
    return target


NEEDED = ("bash", "jq", "curl")
_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_API_URL", "HARNESS_PROVIDER")


def _guards(adapter: HarnessAdapter, config: Mapping[str, object], values: Mapping[str, str]) -> Check:
    """Check that a worker's writes are checked: by its own plugin, else by an installed one."""
    try:
        words = command_of(adapter, config)
    except Refused:
        words = ()
    program = words and shutil.which(words[0], path=values.get("PATH"))
    if program and root_of(program):
        return Check("guarded", INFO, f"workers find the guards in front of every {', '.join(GUARDED)}")
    plugin = home() / "plugins" / PACK
    if not is_installed():
        why = "where the harness is installed cannot be told, so a worker cannot be given the guards"
        hint = "set HARNESS_ROOT to its folder, or: swarm-mcp install --client hs"
        return Check("unguarded", WARN, why, hint)
    before = shadows(str(config.get("cwd") or Path.cwd()), plugin)
    if before:
        return Check("guard_shadowed", WARN, f"{before[0]} stands in front of the guard of its name", "rename it")
    return Check("guarded", INFO, f"the guards in {plugin} are in front")
