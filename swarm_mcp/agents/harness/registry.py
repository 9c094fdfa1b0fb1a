"""Harnesses by name, of this package and of other installed packages; and their fitness on this machine.

A module is loaded at the first use of its harness: a broken one breaks no other. A package adds an adapter by an entry
point of the group ``swarm_mcp.harnesses``, with the harness's name and the adapter's class::

  [project.entry-points."swarm_mcp.harnesses"]
  parrot = "parrot_harness:Parrot"
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

import swarm_mcp
from swarm_hook_core.environment import first_set, identity
from swarm_hook_core.state import describe
from swarm_mcp.agents.harness.adapter import ERROR, INFO, WARN, Check, HarnessAdapter
from swarm_mcp.agents.harness.query import as_string, as_string_array, parse_object
from swarm_mcp.errors import Refused
from swarm_mcp.folders import here
from swarm_mcp.runtimes.user_settings import Settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


# Name -> (module, class). To add a harness: one module, one line here, and its recorded streams among the tests.
ADAPTERS: dict[str, tuple[str, str]] = {
    "claude": ("swarm_mcp.agents.harness.claude", "Claude"),
    "codex": ("swarm_mcp.agents.harness.codex", "Codex"),
    "pi": ("swarm_mcp.agents.harness.pi", "Pi"),
    "gemini": ("swarm_mcp.agents.harness.gemini", "Gemini"),
    "opencode": ("swarm_mcp.agents.harness.opencode", "OpenCode"),
    "hs": ("swarm_mcp.agents.harness.hs", "Hs"),
    "loop": ("swarm_mcp.agents.loop.adapter", "Loop"),
    "acp": ("swarm_mcp.agents.harness.acp", "Acp"),
    "process": ("swarm_mcp.agents.harness.adapter", "Process"),
}
DEFAULT = "claude"
GROUP = "swarm_mcp.harnesses"
_made: dict[str, HarnessAdapter] = {}


def names() -> list[str]:
    """Return the names of all harnesses: this package's, then those of others."""
    return [*ADAPTERS, *(name for name in sorted(_offered()) if name not in ADAPTERS)]


def has(name: str) -> bool:
    """Return True if there is a harness of that name."""
    return name in ADAPTERS or name in _offered()


def chosen_name(name: str = "") -> str:
    """Return the harness to use: `name`, else ``HARNESS_PROVIDER``, else claude. Raises Refused."""
    wanted = name.strip() or first_set("HARNESS_PROVIDER") or DEFAULT
    if not has(wanted):
        raise Refused(f'Unknown HARNESS_PROVIDER: "{wanted[:40]}". Supported: {", ".join(names())}')
    return wanted


def get(name: str) -> HarnessAdapter:
    """Return the adapter of that name. Raises Refused, and errors of its module."""
    wanted = chosen_name(name)
    if wanted not in _made:
        _made[wanted] = _of_this_package(wanted) if wanted in ADAPTERS else _of_another(_offered()[wanted])
    return _made[wanted]


def adapter_of(harness: object) -> HarnessAdapter:
    """Return the adapter that a caller gave, itself or by its name. Raises Refused for a wrong type, too."""
    if isinstance(harness, str):
        return get(harness)
    if isinstance(harness, HarnessAdapter):
        return harness
    raise Refused(f"a run wants a harness by its name, or an adapter, not {type(harness).__name__}")


def get_all(broken: Callable[[str, Exception], object] | None = None) -> list[HarnessAdapter]:
    """Return all adapters that can be loaded; `broken` is called with the name of each other and why."""
    found = []
    for name in names():
        try:
            found.append(get(name))
        except Exception as error:
            if broken:
                broken(name, error)
    return found


def check_all(config: Mapping[str, object] = {}) -> dict[str, dict[str, Any]]:
    """Return name -> findings about each harness on this machine (``checks.environment_test``)."""
    return {adapter.name: environment_test(adapter, config) for adapter in get_all()}


def register(adapter: HarnessAdapter) -> None:
    """Make another harness known to this process alone. Raises Refused where its name is taken."""
    if has(adapter.name):
        raise Refused(f"a harness called {adapter.name!r} is there already")
    kind = type(adapter)
    ADAPTERS[adapter.name] = (kind.__module__, kind.__name__)
    _made[adapter.name] = adapter


def _of_this_package(name: str) -> HarnessAdapter:
    module, kind = ADAPTERS[name]
    __import__(module)
    made: HarnessAdapter = getattr(sys.modules[module], kind)()
    return made


def _of_another(entry: EntryPoint) -> HarnessAdapter:
    """Return the adapter in the package of `entry`. Raises Refused for anything else."""
    kind = entry.load()
    if isinstance(kind, type):
        adapter = kind()
    else:
        adapter = kind
    if not isinstance(adapter, HarnessAdapter) or adapter.name != entry.name:
        raise Refused(f"{entry.value} is no adapter of a harness called {entry.name!r} (docs/dev/adding-a-harness.md)")
    return adapter


@functools.cache
def _offered() -> dict[str, EntryPoint]:
    """Name -> entry point of the adapters that other packages bring; looked up once in a process."""
    from importlib.metadata import entry_points

    if sys.flags.no_site:
        # Servers and supervisors are started so, for speed. Packages that are installed for being worked on are found
        # by the files that `site` reads.
        site.addsitedir(os.path.dirname(os.path.dirname(os.path.abspath(swarm_mcp.__file__))))
    return {entry.name: entry for entry in entry_points(group=GROUP)}


# A harness's fitness on this machine: structured findings, without side effects, in under 5 s.

VERSION_SECONDS = 3.5
URL_VARIABLES = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL", "OPENAI_BASE_URL", "OPENAI_API_URL")
# Beside the adapter's own, the folders that even `--version` may write to (codex makes a folder of helpers).
_SCRATCH = ("XDG_CACHE_HOME", "XDG_STATE_HOME")


def status_of(checks: list[Check]) -> str:
    """Return ``fail`` where anything is an error, ``warn`` where anything is a warning, else ``pass``."""
    levels = {check.level for check in checks}
    if ERROR in levels:
        return "fail"
    if WARN in levels:
        return "warn"
    return "pass"


def environment_test(adapter: HarnessAdapter, config: Mapping[str, object]) -> dict[str, Any]:
    """Return all findings about a harness: ``{"adapter_type", "status", "checks", "tested_at"}``.

    `config` as in ``configuration``. `tested_at` is an ISO time in UTC. Never raises over a finding; a warning never
    prevents a run.
    """
    found = common(adapter, config)
    try:
        found += adapter.checks(config)
    except Exception as error:
        found.append(Check("checks_failed", WARN, f"{adapter.label or adapter.name} could not be looked at", "",
                           describe(error)))  # fmt: skip
    return {
        "adapter_type": adapter.name,
        "status": status_of(found),
        "checks": [check.to_dict() for check in found],
        "tested_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def common(adapter: HarnessAdapter, config: Mapping[str, object]) -> list[Check]:
    """Return the checks that every harness has: its folder, its command, its addresses.

    Codes: cwd_ok, cwd_relative, cwd_missing, cwd_unreadable; command_ok, command_builtin, command_invalid,
    command_missing, command_broken; version, version_unknown, version_slow; url_invalid.
    """
    return [_folder(config), *_command(adapter, config), *_addresses(adapter, config)]


def environment_of(config: Mapping[str, object]) -> dict[str, str]:
    """Return the environment of a run with this configuration."""
    return {**os.environ, **{str(name): str(value) for name, value in parse_object(config.get("env")).items()}}


def program_of(adapter: HarnessAdapter) -> str:
    """Return the absolute path of the harness's program; empty if there is none."""
    try:
        words = command_of(adapter)
    except Refused:  # it has no command
        return ""
    if not words or not adapter.program:
        return ""
    return shutil.which(words[0]) or ""


def command_of(adapter: HarnessAdapter, config: Mapping[str, object] = {}) -> tuple[str, ...]:
    """Return the words that start the harness: the configuration's, else ``SWARM_HARNESS_<NAME>``, else its program.

    Raises Refused.
    """
    given = config.get("command")
    if isinstance(given, str):
        try:
            return tuple(shlex.split(given))
        except ValueError as error:
            raise Refused(f"the command cannot be split into words: {error}") from None
    words = as_string_array(given) or tuple(Settings(identity("MCP")).harness_command(adapter.name))
    if words != (adapter.name,):
        return words
    if adapter.program:
        return (adapter.program,)
    return ()


def version_of(adapter: HarnessAdapter) -> str | None:
    """Return the version line of an installed harness; None without one within VERSION_SECONDS."""
    found = _command(adapter, {})[-1:]
    if found and found[0].code == "version":
        return found[0].message
    return None


def _folder(config: Mapping[str, object]) -> Check:
    cwd = as_string(config.get("cwd")) or here()
    if not os.path.isabs(cwd):
        return Check("cwd_relative", ERROR, f"the working folder {cwd} is not absolute", "give its whole path")
    try:
        os.listdir(cwd)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return Check("cwd_missing", ERROR, f"there is no folder {cwd}", "make it, or name another with --directory")
    except OSError as error:
        return Check("cwd_unreadable", ERROR, f"the folder {cwd} cannot be read", "", error.strerror or str(error))
    return Check("cwd_ok", INFO, f"works in {cwd}")


def _command(adapter: HarnessAdapter, config: Mapping[str, object]) -> list[Check]:
    try:
        words = command_of(adapter, config)
    except Refused as refusal:
        return [Check("command_invalid", ERROR, str(refusal))]
    if not words:
        if adapter.example:
            told = "runs the command that it is given"
        else:
            told = "part of this installation"
        return [Check("command_builtin", INFO, told)]
    program = shutil.which(words[0], path=as_string(parse_object(config.get("env")).get("PATH")) or None)
    if not program:
        return [Check("command_missing", ERROR, f"there is no command {words[0][:200]} on PATH", adapter.instructions)]
    found = [Check("command_ok", INFO, f"{words[0]} is {program}")]
    if adapter.program:
        found.append(_version(adapter, (program, *words[1:])))
    return found


def _version(adapter: HarnessAdapter, words: tuple[str, ...]) -> Check:
    """Return the harness's own version. It runs in an empty folder, with the settings of one."""
    with tempfile.TemporaryDirectory(prefix="swarm-version-", ignore_cleanup_errors=True) as scratch:
        env = {**os.environ, **dict.fromkeys((*adapter.home_variables, *_SCRATCH), scratch)}
        # Files, not pipes: a leftover process would keep pipes open; pi prints it on standard error.
        with open(os.path.join(scratch, "out"), "w+b") as out, open(os.path.join(scratch, "err"), "w+b") as err:
            try:
                child = subprocess.Popen(
                    [*words, "--version"], cwd=scratch, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                    start_new_session=True,
                )  # fmt: skip
                code = child.wait(VERSION_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                return Check("version_slow", WARN, f"{adapter.name} told no version in {VERSION_SECONDS:g} s")
            except OSError as error:
                why = error.strerror or str(error)
                return Check("command_broken", ERROR, f"{words[0]} cannot be run", adapter.instructions, why)
            said = [_beginning(out), _beginning(err)]
    lines = [line.strip() for text in said for line in text.splitlines() if line.strip()]
    if code or not lines:
        return Check("version_unknown", WARN, f"{adapter.name} --version failed", "", f"exit code {code}")
    return Check("version", INFO, lines[0][:200])


def _beginning(file: BinaryIO) -> str:
    file.seek(0)
    return file.read(4096).decode("utf-8", "replace")


def _addresses(adapter: HarnessAdapter, config: Mapping[str, object]) -> list[Check]:
    named = {name: value for name, value in config.items() if name == "url" or name.endswith("_url")}
    env = parse_object(config.get("env"))
    if adapter.name != "process":
        named.update({name: os.environ[name] for name in URL_VARIABLES if os.environ.get(name, "").strip()})
    named.update({name: value for name, value in env.items() if name.endswith(("_BASE_URL", "_API_URL"))})
    servers = config.get("mcp_servers")
    for name, server in servers.items() if isinstance(servers, Mapping) else ():
        if isinstance(server, Mapping):
            url = server.get("url")
        else:
            url = getattr(server, "url", "")
        if url:
            named[f"the server {name}"] = url
    return [
        Check("url_invalid", ERROR, f"{name} is no address: {str(url)[:100]}", "it begins with http:// or https://")
        for name, url in named.items()
        if not is_address(url)
    ]


def is_address(url: object) -> bool:
    """Return True for an http or https address with a host."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no address
        return False
