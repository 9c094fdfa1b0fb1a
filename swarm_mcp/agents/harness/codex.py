"""Codex: ``codex exec --json``, everything else by ``-c`` for one run alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swarm_mcp import runtimes
from swarm_mcp.agents.harness import codex_overrides, codex_stream, events
from swarm_mcp.agents.harness.adapter import (
    ERROR,
    INFO,
    PERMISSIONS,
    WARN,
    Capabilities,
    Check,
    CommandPlace,
    HarnessAdapter,
    Launch,
    asks,
    bridged,
)
from swarm_mcp.agents.harness.codex_overrides import configured_servers, override, server_overrides, settings_files
from swarm_mcp.agents.harness.conclusion import fits
from swarm_mcp.agents.harness.environment import FILE, described, plugin_folder
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import Cost, Ending, Price
from swarm_mcp.agents.harness.query import READ_ONLY, YOLO, Query, as_string, parse_json, parse_object
from swarm_mcp.agents.harness.registry import command_of
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.folders import names_in
from swarm_mcp.installation import plugin_source
from swarm_mcp.runtimes.codex import home

# Skills for one run of Codex: named to the model, and put into the prompt where the prompt asks for one.
#
# Codex looks for skills in its own home, in the user's and in the project, and takes no further folder on its command
# line. Nothing is written to any of those: the model is told the name, the purpose and the place of each skill (it
# reads the file when the work calls for it), and a prompt that begins with ``/name`` or ``$name`` has the text itself.

_ASKED = re.compile(r"\s*([/$])([A-Za-z0-9:_-]+)(?=\s|\Z)[ \t]*")
LARGEST_SKILL = 200_000  # characters
_HEADING = """\
## Skills for this run
Each of these files tells how to do one kind of work. When what you are about to do fits a description, read that \
file first and follow it; names in it are relative to its folder.
"""


class Prompt(NamedTuple):
    """The prompt for Codex, and notes for the watching person."""

    text: str
    notes: tuple[str, ...] = ()


def with_skill(prompt: str, skills: Sequence[str], folders: Iterable[str]) -> Prompt:
    """Return `prompt` with the text of the skill that it begins with. `skills` are the run's own;
    `folders` hold the user's.

    ``$name`` of one of the user's skills stays: Codex knows it. ``/name`` of an unknown skill stays too, with a
    note: it may well be no skill at all.
    """
    asked = _ASKED.match(prompt)
    if not asked:
        return Prompt(prompt)
    sign, name = asked.groups()
    own = next((folder for folder in skills if name in (os.path.basename(folder), described(folder)[0])), None)
    if own is None and sign == "$":
        return Prompt(prompt)
    folder = own or next(filter(_has_skill, (os.path.join(base, name) for base in folders)), None)
    if folder:
        try:
            with open(os.path.join(folder, FILE), encoding="utf-8", errors="replace") as file:
                text = file.read(LARGEST_SKILL)
        except OSError:  # unreadable, so no skill
            text = None
    else:
        text = None
    if text is None:
        return Prompt(prompt, (f"swarm: there is no skill called {name[:80]!r}; the prompt goes as it is",))
    rest = prompt[asked.end() :]
    return Prompt(f"{text.rstrip()}\n\nFolder of this skill: {folder}\nUser request: {rest}")


def listed_in_prompt(skills: Sequence[str], folders: Iterable[str]) -> str:
    """Return the text for the model about the run's skills, without those that Codex finds by itself."""
    lines = []
    known = {name for base in folders for name in names_in(base) if _has_skill(os.path.join(base, name))}
    for folder in skills:
        name, description = described(folder)
        if os.path.basename(folder) not in known:
            lines.append(f"- {name}: {description or 'no description'} (file: {os.path.join(folder, FILE)})")
    if lines:
        return _HEADING + "\n".join(lines)
    return ""


def user_folders(home: str, codex_home: str, cwd: str) -> list[str]:
    """Return where Codex itself looks for skills, and where ``CODEX_SKILLS_DIR`` says that there are some."""
    named = os.environ.get("CODEX_SKILLS_DIR", "").strip()
    places = [os.path.join(codex_home, "skills"), os.path.join(home, ".agents", "skills"),
              os.path.join(cwd, ".agents", "skills")]  # fmt: skip
    if named:
        return [os.path.expanduser(named), *places]
    return places


def _has_skill(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, FILE))


SHORT = {
    "sol": "gpt-6.1-sol",
    "terra": "gpt-6.1-terra",
    "luna": "gpt-6-luna",
    "astra": "gpt-6-astra",
}
# Standard service, requests of up to 272,000 tokens of input, as on developers.openai.com/api/docs/pricing at the date
# given. The surcharges of long requests, fast or flexible services, regions and subscriptions are not in the stream, so
# they are not in here. An unlisted model costs None.
PRICES = {
    "gpt-6.1-sol": Price(2.0, 0.10, 10.0, "2026-10-01", cache_write=2.50),
    "gpt-6.1-terra": Price(1.0, 0.05, 5.0, "2026-10-26", cache_write=1.25),
    "gpt-6-sol": Price(2.0, 0.20, 10.0, "2026-09-22", cache_write=2.50),
    "gpt-6-luna": Price(0.10, 0.01, 0.50, "2026-09-22", cache_write=0.125),
    "gpt-6-astra": Price(10.0, 1.0, 50.0, "2026-09-05", cache_write=12.50),
    "gpt-5.6-sol": Price(5.0, 0.50, 30.0, "2026-08-01", cache_write=6.25),
    "gpt-5.6-terra": Price(2.0, 0.20, 12.0, "2026-08-01", cache_write=2.50),
    "gpt-5.6-luna": Price(0.20, 0.02, 1.20, "2026-08-01", cache_write=0.25),
    "gpt-5.5": Price(5.0, 0.50, 30.0, "2026-06-04"),
}
# `codex debug models --bundled` of 0.169, for where Codex itself cannot be asked.
WINDOWS = {name: 500_000 if name == "gpt-6.1-terra" else 272_000 for name in PRICES}
_WITHOUT_MAX = frozenset({"gpt-5.5"})
_LIST_SECONDS = 5


def effort(asked: str, model: str) -> str:
    """Return Codex's name of an effort: ``max`` is ``xhigh`` of models that have nothing above it."""
    if asked == "max" and model in _WITHOUT_MAX:
        return "xhigh"
    return asked


def _catalog(program: str) -> dict[str, int | None]:
    """Name -> window, as the installed Codex has it built in; empty where it cannot be asked."""
    with tempfile.TemporaryDirectory(prefix="swarm-codex-", ignore_cleanup_errors=True) as scratch:
        env = {**os.environ, "CODEX_HOME": scratch}
        try:
            done = subprocess.run(
                [program, "debug", "models", "--bundled"], cwd=scratch, env=env, stdin=subprocess.DEVNULL,
                capture_output=True, timeout=_LIST_SECONDS, start_new_session=True,
            )  # fmt: skip
            models = json.loads(done.stdout)["models"]
            return {str(m["slug"]): m.get("context_window") for m in models if m.get("visibility") != "hide"}
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            subprocess.TimeoutExpired,
            RecursionError,
        ):  # an older or broken Codex: no list
            return {}


_SANDBOX = {READ_ONLY: "read-only", YOLO: "danger-full-access"}
ANSWER = "answer.json"
# A user who silences Codex's log would silence denials too. The other parts report its waits before a retry, and MCP
# servers that have not started.
LOG = "error,codex_core::responses_retry=warn,codex_mcp::rmcp_client=warn"


class Codex(HarnessAdapter):
    """The harness ``codex``."""

    name = "codex"
    label = "Codex"
    program = "codex"
    home_variables = ("CODEX_HOME",)
    instructions = "npm install -g @openai/codex, then codex login (or set CODEX_API_KEY)"
    models = SHORT
    prices = PRICES
    cumulative = frozenset({"tokens"})
    tells_stderr = True
    capabilities = Capabilities(
        resume=True, fork=True, read_only=True, system_prompt=True, append_system_prompt=True, mcp=True,
        client_tools=True, output_schema=True, locks=True, model=True, effort=True, directories=True,
        read_only_servers=True, streaming_tokens=True, permissions=True, images=True,
    )  # fmt: skip
    doc = """\
Runs OpenAI's Codex without a terminal (codex exec), with our hooks, our MCP server and our skills for that run alone:
nothing is written to its settings, nor to the folder it works in.
Use when a task is to be done by one of OpenAI's models, or under a sandbox of the operating system.
Do not use when a person must be asked (a call that needs approval fails; from Python, on_permission decides), or when
the cost has to be exact: it is worked out from a table of list prices, and is not known for a model that is not in it.
Settings: model (CODEX_DEFAULT_MODEL; default: its own), effort (low, medium, high, max; default: its own), mode
(read-only, edit, yolo; default edit: it writes below its folder, below additional_directories, and in the folder for
temporary files), system_prompt (takes the place of its own instructions), append_system_prompt (told at the session's
start), additional_directories, resume_session_id, fork_session, output_schema (it
must say "additionalProperties": false), mcp_servers, skills (named to the model; /name or $name at the beginning of a
prompt puts one in; CODEX_SKILLS_DIR is one more folder of them), additional_args, command (what to start instead of
codex; SWARM_HARNESS_CODEX), env, timeout_seconds (0: none), grace_seconds (15). It says only at the end
what it took, and counts no turns: max_cost_usd and max_turns are refused.
In mode read-only tools of MCP servers run where they call themselves read-only; swarm's always do. In the sandbox the
agent's own commands cannot write swarm's store: it speaks to the others through MCP tools."""

    def launch(self, query: Query, folder: Path) -> Launch:
        if query.resume_session_id and not fits(self, query.resume_session_id):
            # Codex would begin a new session under such a name, and say nothing.
            raise Refused(f"{query.resume_session_id[:60]!r} is no session id of codex")
        words = list(query.command or (self.program,))
        model, codex_home = self.model(query), home(query.env)
        skills = user_folders(query.env.get("HOME") or os.path.expanduser("~"), codex_home, query.cwd)
        prompt = with_skill(query.prompt, query.skills, skills)
        servers = server_overrides(
            {name: server for name, server in query.mcp_servers.items() if name != PERMISSIONS},
            approved=query.mode != READ_ONLY,
            taken=configured_servers(*settings_files(codex_home, query.cwd)),
        )
        is_asked = asks(query)
        settings = [
            override("approval_policy", "on-request" if is_asked else "never"),
            override("features.hooks", True),
        ]
        if query.effort:
            settings.append(override("model_reasoning_effort", effort(query.effort, model)))
        if query.system_prompt:
            path = folder / "instructions.md"
            path.write_text(query.system_prompt, encoding="utf-8")
            settings.append(override("model_instructions_file", str(path)))
        added = [text for text in (query.append_system_prompt, listed_in_prompt(query.skills, skills)) if text]
        told = {}
        if added:
            told = codex_overrides.written_words("\n\n".join(added), folder)
        settings += [*servers.overrides, *self._hooks(words, query.env)]
        env = {**servers.env, **told, "RUST_LOG": LOG}
        if (is_asked or query.stream_text) and shutil.which(words[0], path=query.env.get("PATH") or None):
            bridged, secrets = _bridge(query, folder, [*words, "app-server"], settings, model)
            return Launch(bridged, {**env, **secrets}, prompt.text, (), prompt.notes)
        argv = [*words, "exec", "--json", "--skip-git-repo-check", "-s", _SANDBOX.get(query.mode, "workspace-write")]
        argv += [part for image in query.images for part in ("-i", os.path.join(query.cwd, image))]
        argv += ["-C", query.cwd, *(part for extra in query.additional_directories for part in ("--add-dir", extra))]
        argv += ["-m", model] if model else []
        argv += [part for setting in settings for part in ("-c", setting)]
        if query.output_schema is not None:
            schema = folder / "schema.json"
            schema.write_text(json.dumps(query.output_schema), encoding="utf-8")
            argv += ["--output-schema", str(schema), "-o", str(folder / ANSWER)]
        argv += query.additional_args
        # Folder and sandbox options count for a resumed session only before this word.
        if query.resume_session_id:
            argv += ["fork" if query.fork_session else "resume", query.resume_session_id]
        return Launch((*argv, "-"), env, prompt.text, (), prompt.notes)

    def parse(self, line: str, state: dict[str, Any]) -> list[Event]:
        return codex_stream.parse(line, state)

    def parse_stderr(self, line: str, state: dict[str, Any]) -> list[Event]:
        return codex_stream.parse_stderr(line, state)

    def finish(self, state: dict[str, Any]) -> list[Event]:
        """Return events for facts that the stream left out: the model, the use of its context, and the answer by
        schema.
        """
        query: Query | None = state.get("query")
        if query is None:
            return []
        told, path = codex_stream.Turn(), self._record_of(state.get("session_id") or "", home(query.env))
        if path:
            told = codex_stream.last_turn(path)
        model = told.model or self.model(query) or None
        usage = state.get("usage") or told.session_usage  # a run that was cut off has only its record's figures
        found: list[Event] = []
        if told.used_tokens is not None:
            found.append(_context(told, model, usage))
        if state.get("completed"):
            more: dict[str, Any] = {}
            if path:
                more["provider"] = codex_stream.opening(path, "model_provider")
            if query.output_schema is not None:
                # The answer by schema, from Codex's file for it, else from its last words; None without one
                try:
                    text = Path(str(state.get("folder") or ""), ANSWER).read_text(encoding="utf-8")
                except (OSError, ValueError):
                    text = str(state.get("words") or "")
                more["structured"] = parse_json(text)
            cost = codex_stream.cost_of(state.get("usage"), model).to_dict()
            found.append(events.result(state.get("words"), cost=cost, model=model, **more))
        return found

    def error_of(self, ending: Ending) -> tuple[str, str] | None:
        return codex_stream.error_of(ending)

    def can_resume(self, session_id: str, cwd: str) -> bool | None:
        path = self._record_of(session_id, home())
        if path is None:
            return False
        began = codex_stream.opening(path, "cwd")
        # Codex would continue from any folder; its memory of files is true for one folder only.
        return not (cwd and began) or os.path.realpath(began) == os.path.realpath(cwd)

    def session_cost(self, session_id: str) -> Cost:
        path = self._record_of(session_id, home())
        if path:
            return codex_stream.cost_of(codex_stream.last_turn(path).session_usage)
        return Cost()

    def command_places(self, cwd: str) -> list[CommandPlace]:
        return [CommandPlace(folder) for folder in user_folders(os.path.expanduser("~"), home(), cwd)]

    def checks(self, config: Mapping[str, object]) -> list[Check]:
        words = command_of(self, config)
        env = {str(name): str(value) for name, value in parse_object(config.get("env")).items()}
        program = words and shutil.which(words[0], path=env.get("PATH") or None)
        codex_home = home(env)
        named = env.get("CODEX_HOME") or os.environ.get("CODEX_HOME")
        if named and not os.path.isdir(named):
            text = f"CODEX_HOME is {named}, which is no folder"
            return [Check("codex_home_missing", ERROR, text, "make it, or unset it")]
        taken = configured_servers(*settings_files(codex_home, as_string(config.get("cwd")) or os.getcwd()))
        if taken.get("swarm") != "url":
            clashes = []
        else:
            text = "its settings have an MCP server called swarm at an address; that of workers is called swarm_run"
            clashes = [Check("codex_server_renamed", WARN, text, "codex mcp remove swarm")]
        if runtimes.runtime("codex").traces():
            plugin = Check(
                "codex_plugin", INFO, "the plugin is installed; workers run with a copy of their own instead"
            )
        else:
            hint = "swarm-mcp install --client codex"
            plugin = Check("codex_plugin_missing", INFO, "the plugin is not installed: only workers obey locks", hint)
        return [_signed_in(codex_home, env), plugin, *clashes, *(_hooks(program) if program else [])]

    def listed_models(self) -> list[dict[str, Any]]:
        shorts = {name: short for short, name in self.models.items()}
        windows: Mapping[str, int | None] = _catalog(self.program) or WINDOWS
        return [
            {"name": name, "short": shorts.get(name, ""), "context_tokens": window} for name, window in windows.items()
        ]

    def _record_of(self, session_id: str, codex_home: str) -> str | None:
        """Return the path of Codex's own record of a session; None without one."""
        if fits(self, session_id):
            return codex_stream.path_of(session_id, codex_home)
        return None

    def _hooks(self, words: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
        """Our hooks and the trust in them, and the user's copy of the plugin off: no hook runs twice."""
        hooks = codex_overrides.with_words(codex_overrides.plugin_hooks(plugin_folder()))
        program = None
        if len(words) == 1:  # a user's own words (a wrapper, npx) are not started twice
            program = shutil.which(words[0], path=env.get("PATH") or None)
        trust = codex_overrides.trust_for(program or "", hooks)
        return (codex_overrides.WITHOUT_THE_USERS_COPY, *codex_overrides.hook_overrides(hooks, trust))


def _bridge(
    query: Query, folder: Path, words: list[str], settings: list[str], model: str
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the start of a run behind the app-server, which asks and streams: argv, and variables with secrets."""
    if query.additional_directories:
        settings = [*settings, override("sandbox_workspace_write.writable_roots", query.additional_directories)]
    words = [*words, *(part for setting in settings for part in ("-c", setting)), *query.additional_args]
    params: dict[str, Any] = {"cwd": query.cwd, "sandbox": _SANDBOX.get(query.mode, "workspace-write")}
    if model:
        params["model"] = model
    method = "thread/start"
    if query.resume_session_id:
        method = "thread/fork" if query.fork_session else "thread/resume"
        params["threadId"] = query.resume_session_id
    images = [{"type": "localImage", "path": os.path.join(query.cwd, image)} for image in query.images]
    turn: dict[str, Any] = {"input": images}
    if query.output_schema is not None:
        turn["outputSchema"] = query.output_schema
    return bridged("codex", folder, query, {"argv": words, "method": method, "params": params, "turn": turn})


def _context(told: codex_stream.Turn, model: str | None, usage: object) -> Event:
    used, window = told.used_tokens, told.window_tokens or WINDOWS.get(model or "")
    data = {
        "context_used_tokens": used,
        "context_total_tokens": window,
        "context_percent": round(100 * used / window, 1) if used is not None and window else None,
        "output_tokens": codex_stream.cost_of(usage).output_tokens,
        "spent": codex_stream.cost_of(usage, model).to_dict(),
    }
    return Event(events.CONTEXT_USAGE, data)


_KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_ACCESS_TOKEN")


def _signed_in(codex_home: str, env: Mapping[str, str]) -> Check:
    settings, _ = settings_files(codex_home, "")
    if os.path.isfile(os.path.join(codex_home, "auth.json")):
        return Check("codex_signed_in", INFO, f"credentials in {codex_home}/auth.json")
    name = next((key for key in _KEYS if env.get(key) or os.environ.get(key, "").strip()), "")
    if name:
        return Check("codex_key", INFO, f"credentials in {name}")
    try:
        with open(settings, encoding="utf-8", errors="replace") as file:
            provider_keys = re.findall(
                r"""^\s*env_key\s*=\s*["']([A-Za-z_][A-Za-z0-9_]*)["']""", file.read(), re.MULTILINE
            )
    except OSError:  # no settings
        provider_keys = []
    for variable in provider_keys:
        if env.get(variable) or os.environ.get(variable, "").strip():
            return Check("codex_provider_key", INFO, f"credentials of a provider of its settings in {variable}")
    hint = "codex login, or set CODEX_API_KEY, or the env_key of a model provider in config.toml"
    return Check("codex_signed_out", WARN, "no credentials for Codex were found", hint)


def _hooks(program: str) -> list[Check]:
    """Check that this build of Codex hashes trusted hooks as we do: it skips untrusted ones silently."""
    try:
        hooks = codex_overrides.with_words(codex_overrides.plugin_hooks(plugin_source()))
    except SwarmError as error:
        return [Check("codex_hooks_broken", ERROR, str(error), "install swarm-mcp again")]
    said, ours = codex_overrides.hashes_from_codex(program, hooks), codex_overrides.hashes(hooks)
    if not said:
        text = "codex app-server could not be asked about hooks; locks may not hold in workers"
        return [Check("codex_hooks_unknown", WARN, text, "codex features list shows whether hooks are on")]
    if said.keys() != ours.keys():
        text = f"Codex sees {len(said)} of our {len(ours)} hooks; locks may not hold in workers"
        return [Check("codex_hooks_missing", WARN, text, "use a Codex that knows all of them: 0.169 does")]
    if said != ours:
        text = "this Codex counts the trust in hooks in another way; workers give it as it wants it"
        return [Check("codex_hooks_counted", INFO, text)]
    return [Check("codex_hooks", INFO, f"{len(ours)} hooks, handed over and trusted for each run alone")]
