"""Checks of this installation: program, store, scope, sessions, skills, plugins, environment, libraries, checkers,
folders, settings, git hooks, the kernel's hold, faults.

They need only the standard library, because the other libraries may be broken.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import swarm_mcp
from swarm_hook_core import DISTRIBUTION, coordinator
from swarm_hook_core.coordinator import chosen_command, find_on_path
from swarm_hook_core.paths import git_root
from swarm_hook_core.settings import WORDS, read
from swarm_hook_core.state import (
    config_path,
    describe,
    fault_log,
    open_private,
    read_private,
    state_dir,
    store_path,
    write_all,
)
from swarm_hook_core.traces import traces_dir
from swarm_hook_core.untrusted_text import one_line
from swarm_mcp import __version__, contributions, installation
from swarm_mcp.answers.people import veiled
from swarm_mcp.checker import checkers_dir, is_living
from swarm_mcp.doctor import enforcement, recorded_faults
from swarm_mcp.domain import STALE_SECONDS
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import current_scope, here, names_in
from swarm_mcp.guard import hooks
from swarm_mcp.installation import coordinator_command, interpreter, marketplace_folder, plugin_source
from swarm_mcp.runtimes import bundle, client_settings, user_settings
from swarm_mcp.runtimes.base import Finding, Runtime
from swarm_mcp.runtimes.bundle import COORDINATOR, is_launched
from swarm_mcp.runtimes.users_file import differing, object_in, read_record
from swarm_mcp.sessions.acting import onlooker_identity
from swarm_mcp.store import Store, driver
from swarm_mcp.store.messages import name_of, seconds_since

# Several copies of swarm-mcp may be on a machine: the one that runs here, and the one of a client's plugin.


def which_copy() -> str:
    """Return the kind and the place of the copy that this process runs."""
    packages = os.path.dirname(os.path.dirname(os.path.abspath(swarm_mcp.__file__)))
    if os.path.exists(os.path.join(packages, "pyproject.toml")):
        return f"a checkout: {packages}"
    if is_launched(packages):
        return f"the plugin's own, fetched by uv: {packages}"
    return f"installed in {sys.prefix}"


def of_plugin(client: Runtime, root: Path) -> Finding:
    """Return the copy that the plugin of `client` in `root` runs as its server and registers sessions with."""
    name, install = f"{client.name} command", f"swarm-mcp install --client {client.name}"
    chosen, recorded = chosen_command(), _recorded(client, root)
    if chosen:
        return Finding(name, "info", f"SWARM_MCP_BIN: {' '.join(chosen)}")
    if recorded:
        if recorded == coordinator_command():
            return Finding(name, "ok", "this one, as `swarm-mcp install` has named it")
        missing = [word for word in recorded if os.path.isabs(word) and not os.path.exists(word)]
        if missing:
            return Finding(name, "fail", f"the plugin was installed with {missing[0]}, and that is gone", install)
        text = "another copy, named by `swarm-mcp install`"
        return Finding(name, "info", text, install, {"command": recorded})
    on_path, other = find_on_path()
    if on_path:
        return Finding(name, "ok", f"found on PATH: {on_path}")
    fetched = coordinator.fetched_command()
    if fetched:
        return Finding(name, "ok", f"the plugin's own, fetched by uv: {fetched[0]}")
    if coordinator.uv_path() and coordinator.may_fetch():
        said = _last_attempt()
        if said:
            return Finding(name, "warn", f"none; uv could not fetch it: {said}", f"see {coordinator.fetching_log()}")
        return Finding(name, "info", "none yet; the next session's start has uv fetch it")
    text = "none"
    if other:
        text = f"none: {other} is another program"
    return Finding(name, "warn", f"{text}; its sessions can lock nothing", "pipx install swarm-locks")


def _last_attempt() -> str:
    """The first line that uv has said of its last attempt to fetch the release; empty where it has said nothing."""
    try:
        said = read_private(coordinator.fetching_log(), 4096).decode("utf-8", "replace")
    except OSError:  # no attempt yet
        return ""
    return one_line(said.strip().partition("\n")[0])


def _recorded(client: Runtime, root: Path) -> list[str]:
    """The command that `swarm-mcp install` has named in a plugin; empty where that looks for one.

    Codex's copy has no record of it, but its server is started so.
    """
    record = read_record(root).get("coordinator")
    if isinstance(record, list) and record:
        return [str(word) for word in record]
    servers = object_in(root / client.folder / "mcp.json").get("mcpServers")
    server = None
    if isinstance(servers, dict):
        server = next(iter(servers.values()), None)
    if not isinstance(server, dict) or not isinstance(server.get("args"), list):
        return []
    words = [str(server.get("command")), *map(str, server["args"])]
    if "serve" not in words or any(word.endswith(COORDINATOR) for word in words):
        return []
    return words[: words.index("serve")]


# Write access to this user's folders of swarm: its state, its store and the plugin's folder.
#
# Without the state folder hooks note neither changes nor reads of sessions. A store that can be read, in a folder that
# is closed, is a sandbox as a rule, and processes outside of it write the store. So that is a warning, as is a closed
# plugin folder.

PROBE_BYTES = 4096
MOST_NAMED_FILES = 3
MEND = (
    "make room on the disk, or give the folder back to this user; or set SWARM_STATE_DIR, SWARM_DB_PATH and"
    " XDG_DATA_HOME to places that can be written"
)


def finding() -> Finding:
    """Find out if the state folder, its journals, and the folders of store and plugin can be written."""
    folder, store, plugin = state_dir(), os.path.dirname(store_path()), str(marketplace_folder())
    wrong = _of_folder(folder) or _of_journals()
    closed = {what: why for what, place in (("store", store), ("plugin", plugin)) if (why := _why_closed(place))}
    details = {"path": folder, "store": store, "plugin": plugin, "wrong": wrong, "closed": closed}
    said = []
    if wrong:
        if len(wrong) > MOST_NAMED_FILES:
            more = f" and {len(wrong) - MOST_NAMED_FILES} more"
        else:
            more = ""
        said.append(
            f"hooks cannot note changes by sessions: {'; '.join(wrong[:MOST_NAMED_FILES])}{more}. Until that is mended,"
            " calls go ahead over uncommitted changes of others; locks hold"
        )
    said += [f"the {what}'s folder cannot be written: {why}" for what, why in closed.items()]
    if said:
        is_broken = wrong or ("store" in closed and not os.path.exists(store_path()))
        return Finding("state", "fail" if is_broken else "warn", "; ".join(said), MEND, details)
    if os.path.isdir(folder):
        return Finding("state", "ok", f"state, store and plugin can be written ({folder})", details=details)
    return Finding("state", "ok", f"{folder} will be made when it is needed", details=details)


def _why_closed(folder: str) -> str:
    """Why nothing can be written into a folder that is there, or could be made; empty where it can."""
    place = folder
    while not os.path.lexists(place) and os.path.dirname(place) != place:
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        return f"{place} is no folder"
    if os.access(place, os.W_OK | os.X_OK):
        return ""
    return f"{place} may not be written by this user, or is read-only"


def _of_folder(folder: str) -> list[str]:
    """Return the reason that no file can be made in `folder` (one line), or nothing."""
    if not os.path.lexists(folder):
        why = _why_closed(folder)
        if why:
            return [f"{folder} cannot be made: {why}"]
        return []
    path = os.path.join(folder, f"probe.{os.getpid()}.tmp")
    try:
        handle = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except OSError as error:
        return [f"{folder}: {error.strerror}"]
    try:
        write_all(handle, b"\0" * PROBE_BYTES)
        return []
    except OSError as error:
        return [f"{folder}: {error.strerror}"]
    finally:
        os.close(handle)
        os.remove(path)


def _of_journals() -> list[str]:
    """Return the reasons that journals cannot be added to, a line each."""
    wrong: list[str] = []
    base = traces_dir()
    if os.path.lexists(base) and not os.path.isdir(base):
        return [f"{base} is no folder"]
    for place in (os.path.join(base, name) for name in names_in(base)):
        if not os.path.isdir(place) or not os.access(place, os.W_OK | os.X_OK):
            wrong.append(f"{place}: no journal can be made in it")
            continue
        for path in (os.path.join(place, name) for name in names_in(place)):
            if not os.path.isfile(path) or os.path.islink(path):
                wrong.append(f"{path} is no ordinary file")
            elif not os.access(path, os.W_OK):
                wrong.append(f"{path}: no permission to write")
    return wrong


RECENT_SECONDS = 86400
MOST_NAMED = 100  # sessions of one scope
AGAIN = f"install it again: pipx install --force {DISTRIBUTION}"
# library -> names taken from it, with their module
_NEEDED = {
    "platformdirs": ("platformdirs", "user_data_path"),
    "sqlite-utils": ("sqlite_utils", "Database"),
    "jsonschema": ("jsonschema", "Draft202012Validator"),
}


class Asked(NamedTuple):
    """The question to a check: the value of ``--scope``, empty if not given, and the agent clients to look at."""

    scope_flag: str
    clients: Sequence[Runtime]


def findings(scope_flag: str, clients: Sequence[Runtime] = ()) -> Iterator[Finding]:
    """Yield the findings of all packages' checks, each as soon as it is ready.

    A check is a function of an `Asked`. It returns a finding, or a list of them.
    """
    asked = Asked(scope_flag, clients)
    for name, check in contributions.table("CHECKS").items():
        yield from looked(name, partial(_call, check, asked))


def _call(check: str, asked: Asked) -> Finding | list[Finding]:
    found: Finding | list[Finding] = contributions.function_named(check)(asked)
    return found


def looked(name: str, check: Callable[[], Finding | list[Finding]]) -> list[Finding]:
    """Return the findings of `check`, or the finding that it failed."""
    try:
        found = check()
    except Exception as error:
        mend = ""
        if isinstance(error, ImportError):
            mend = AGAIN
        return [Finding(name, "fail", f"cannot be looked at: {describe(error)}", mend)]
    if isinstance(found, list):
        return found
    return [found]


def binary(_asked: Asked) -> Finding:
    """Return the release, its copy and its Python."""
    copy = which_copy()
    build = _build()
    details = {"bin_path": sys.argv[0], "version": __version__, "build": build, "python": interpreter(), "copy": copy}
    if build == __version__:
        release = __version__
    else:
        release = f"{__version__} (build {build})"
    text = f"swarm-mcp v{release} on Python {sys.version.split()[0]}, {copy}"
    return Finding("binary", "ok", text, details=details)


def _build() -> str:
    """The number of the installed package: the release's, with the commit behind it for any other build."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return __version__  # a checkout, or a copy that nothing has installed


def database(_asked: Asked) -> Finding:
    """Return the state of the store: missing, readable, writable."""
    path = store_path()
    details: dict[str, Any] = {
        "path": path,
        "source": "env" if os.environ.get("SWARM_DB_PATH", "").strip() else "default",
    }
    if not os.path.exists(path):
        return Finding("database", "info", f"{path} does not exist yet; the first session creates it", details=details)
    details["size_bytes"] = os.path.getsize(path)
    try:
        with Store(read_only=True) as store:
            store.check_reading()
            wrong = _inside(store, path, details)
        if wrong:
            return wrong
        # Nothing is written: taking the write lock and giving it back proves that it can be had.
        if os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK):
            with Store() as store:
                store.check_writing()
            text = f"{path} ({details['size_bytes']} bytes, readable and writable)"
            return Finding("database", "ok", text, details=details)
    except SwarmError as error:
        mend = f"move {path} away; a new store is made by itself"
        return Finding("database", "fail", str(error), mend, details)
    return Finding("database", "warn", f"{path} can be read but not written from here", details=details)


def _inside(store: Store, path: str, details: dict[str, Any]) -> Finding | None:
    """Return a finding about damaged pages, and about tables, columns and indexes that are not there; None without."""
    from swarm_mcp.store.schema import inside

    found = inside(store)
    if found is None or not found.words:  # without a library: the check of the libraries says so
        return None
    state = "warn"
    if found.damage:
        state = "fail"
    mend = f"move {path} away; a new store is made by itself"
    return Finding("database", state, f"{path}: {found.words}", mend, {**details, **found._asdict()})


def scope(asked: Asked) -> Finding:
    """Return the scope of commands in this folder, and its source."""
    flag, here_scope = asked.scope_flag, current_scope(asked.scope_flag)
    root = git_root(here())
    in_git = os.path.lexists(os.path.join(root, ".git"))
    if flag.strip():
        source = "flag"
    elif os.environ.get("SWARM_MCP_SCOPE", "").strip():
        source = "env"
    else:
        source = ""
    source = source or ("git_root" if in_git else "cwd_fallback")
    details = {"cwd": here(), "git_root": root if in_git else None, "scope": here_scope, "scope_source": source}
    if source == "cwd_fallback":
        return Finding("scope", "warn", f"no git root above {here()}: the scope is this folder", details=details)
    return Finding("scope", "ok", f"{here_scope} ({source})", details=details)


def instances(asked: Asked) -> list[Finding]:
    """Return the live sessions of the scope, and the quiet and gone ones."""
    scope = current_scope(asked.scope_flag)
    try:
        with Store(read_only=True) as store:
            now = store.now()
            rows = veiled([row for _, row in islice(store.instances.walk(scope), MOST_NAMED)], onlooker_identity(store))
            more = 0
            if len(rows) == MOST_NAMED:
                more = store.instances.count(scope) - len(rows)
            gone = store.instances.gone()
    except (SwarmError, ImportError) as error:
        return [Finding(name, "fail", str(error)) for name in ("live_instances", "stale_instances")]
    names = ", ".join(name_of(row) for row in rows) + (f" and {more} more" if more else "")
    listed = [{"id": row.id, "label": row.label, "pid": row.pid, "state": row.state} for row in rows]
    live = Finding(
        "live_instances", "info", f"{len(rows) + more} live{': ' if names else ''}{names}",
        details={"count": len(rows) + more, "instances": listed},
    )  # fmt: skip
    quiet = [row for row in rows if row.last_seen is None and seconds_since(row.heartbeat, now) > STALE_SECONDS]
    text = f"{len(quiet)} quiet for more than {STALE_SECONDS} s, {len(gone)} gone and waiting to be removed"
    mend = ""
    if gone:
        mend = "swarm-mcp cleanup"
    details = {"count": len(quiet), "gone": [row.id for row in gone]}
    return [live, Finding("stale_instances", "warn" if quiet else "ok", text, mend, details)]


def skills(_asked: Asked) -> Finding:
    """Return the skills that ship with the plugin."""
    try:
        folder = plugin_source() / "skills"
    except SwarmError as error:
        return Finding("skill_discovery", "fail", str(error), AGAIN)
    names = sorted(path.parent.name for path in folder.glob("*/SKILL.md"))
    if not names:
        return Finding("skill_discovery", "fail", f"no skills in {folder}", AGAIN)
    return Finding("skill_discovery", "ok", f"{', '.join(names)} ship with the plugin", details={"skills": names})


def plugins(_asked: Asked) -> Finding:
    """Return the state of the plugin that was installed from here."""
    folder = marketplace_folder()
    record = read_record(folder)
    if not record:
        return Finding("plugin_discovery", "info", "no plugin has been installed from here", "swarm-mcp install")
    wanted = bundle.contents(folder, client_settings.in_bundle(folder))
    different = differing(folder, wanted)
    details = {"folder": str(folder), "version": record.get("version"), "different": different}
    if different:
        text = f"{folder} differs from this swarm-mcp in {len(different)} files"
        return Finding("plugin_discovery", "warn", text, "swarm-mcp install", details)
    return Finding("plugin_discovery", "ok", f"{folder}, version {record.get('version')}, current", details=details)


def environment(_asked: Asked) -> Finding:
    """Return the variables of swarm in this environment."""
    names = sorted(name for name in os.environ if name.startswith("SWARM_") or name == "AGENT_IDENTITY")
    text = ", ".join(f"{name}={os.environ[name]}" for name in names) or "no swarm variable is set"
    return Finding("env", "info", text, details={name: os.environ[name] for name in names})


def libraries(_asked: Asked) -> Finding:
    """Load the libraries of commands and of the server beside the standard library."""
    broken = {}
    gc.disable()  # the SDK is very many objects that stay: looking for garbage among them is a quarter of doctor's time
    for name, (module, part) in _NEEDED.items():
        try:
            getattr(import_module(module), part)
        except Exception as error:
            broken[name] = describe(error)
    gc.freeze()
    gc.enable()
    if broken:
        text = "; ".join(f"{name}: {why}" for name, why in broken.items())
        return Finding("libraries", "fail", f"cannot be loaded: {text}", AGAIN, {"broken": broken})
    driver.load()
    if find_spec("pysqlite3") and "pysqlite3._sqlite3" not in sys.modules:
        text = "pysqlite3 is there and cannot be loaded; the interpreter's own SQLite serves"
        return Finding("libraries", "warn", text, AGAIN)
    return Finding("libraries", "ok", f"{', '.join(_NEEDED)} can be loaded")


def journal(_asked: Asked) -> Finding:
    """Return the release of SQLite, and the journal mode of the store."""
    library = driver.load()
    release, safe = library.sqlite_version, driver.wal_is_safe(driver.version(library))
    mode = ""
    if os.path.exists(store_path()):
        try:
            with Store(read_only=True) as store:
                mode = store.journal()
        except SwarmError:
            mode = "unreadable"
    details = {"sqlite": release, "wal_safe": safe, "journal_mode": mode}
    if safe or mode not in ("wal",):
        text = f"SQLite {release} writes, journal mode {mode or 'not chosen yet'}"
        return Finding("sqlite", "ok", text, details=details)
    text = f"SQLite {release} can lose commits in the write-ahead-log mode this store is in"
    mend = "pip install pysqlite3, or close all sessions and run swarm-mcp cleanup"
    return Finding("sqlite", "warn", text, mend, details)


def state(_asked: Asked) -> Finding:
    """Return the state of the state folder."""
    return finding()


def settings(_asked: Asked) -> Finding:
    """Return the state of the user's settings file."""
    config = read(config_path())
    is_strict = bool(config.user.get("strict"))
    details = {"path": config.path, "strict": is_strict, "writers": len(config.writers), "faults": config.faults}
    if config.faults:
        text = f"{config.path}: {'; '.join(config.faults)}; the rest of it is in force"
        return Finding("settings", "warn", text, f"edit {config.path}", details)
    if not config.there:
        return Finding("settings", "ok", f"none; {config.path} would have them", details=details)
    what = f"{'strict, ' if is_strict else ''}{len(config.writers)} writers of one's own"
    return Finding("settings", "ok", f"{config.path}: {what}", details=details)


def protection(_asked: Asked) -> Finding:
    """Return the level of automatic locks for sessions in this folder."""
    return _setting("protect", "`swarm-mcp protect` sets it")


def failed_checks(_asked: Asked) -> Finding:
    """Return the answer of hooks in this folder to a write that cannot be checked."""
    return _setting("fail", "closed: a write that cannot be checked is denied")


def merging(_asked: Asked) -> Finding:
    """Return the clients in which outdated texts are merged in this folder."""
    on, off = found = user_settings.merging(user_settings.checkout_here())
    text, details = user_settings.merging_in_words(found), {"on": on, "off": off}
    unknown = user_settings.unknown_words("merge")
    if unknown:
        return Finding("merge", "warn", f"{text}; not understood: {', '.join(unknown)}", "set it to on or off", details)
    return Finding("merge", "ok", f"{text} (`swarm-mcp protect merge` sets it)", details=details)


def authorship(_asked: Asked) -> Finding:
    """Return the state of the record of authors in git notes for this folder."""
    return _setting("authorship", "on: commits get notes on the authors of their lines")


def _setting(name: str, about: str) -> Finding:
    """Return the value of ``auto`` or ``fail`` for sessions in this folder, and its source."""
    found, others = user_settings.in_force(name, user_settings.checkout_here())
    says = [f"{found.value}, {user_settings.whose(found)}"]
    says += [f"{one.value} for {client}, {user_settings.whose(one)}" for client, one in others.items()]
    clients = {client: user_settings.described(one) for client, one in others.items()}
    details = {**user_settings.described(found), "clients": clients}
    unknown = user_settings.unknown_words(name)
    if unknown:
        text = f"{'; '.join(says)}; not understood: {', '.join(unknown)}"
        return Finding(name, "warn", text, f"set it to one of {', '.join(WORDS[name])}", details)
    return Finding(name, "ok", f"{'; '.join(says)} ({about})", details=details)


def guard(_asked: Asked) -> Finding:
    """Return the state of the git hooks of this checkout."""
    try:
        found = hooks.state(here())
    except SwarmError as error:
        return Finding("guard", "info", f"no git hooks can be had here: {error}")
    details = {"way": found.way, "folder": found.folder}
    if found.way == "passed over":
        text = f"git looks for hooks in {found.folder} and finds none of ours"
        return Finding("guard", "warn", text, "swarm-mcp guard install", details)
    if not found.way:
        text = "git commits here are not checked against locks"
        return Finding("guard", "info", text, "swarm-mcp guard install", details)
    return Finding("guard", "ok", f"commits and pushes are checked by {found.folder}", details=details)


def kernel_hold(asked: Asked) -> Finding:
    """Return the state of the kernel's hold for the clients."""
    return enforcement.finding(asked.clients)


def faults(_asked: Asked) -> Finding:
    """Return the faults that hooks recorded in the last day."""
    rows = recorded_faults()
    recent = [row for row in rows if row["at"] > time.time() - RECENT_SECONDS]
    if not recent:
        return Finding("faults", "ok", "hooks recorded no fault in the last day", details={"log": fault_log()})
    last = recent[-1]
    text = f"{len(recent)} in the last day; the newest, {last['runtime']} {last['hook']}: {last['fault']}"
    return Finding("faults", "warn", text, f"see {fault_log()}", {"log": fault_log(), "newest": recent[-5:]})


# The checkers of writes: the relay of the hooks here, the checkers that answer, their speed, and hooks alone.


_CHECKER = "checker"
DAY_SECONDS = 86400
_WHY_ALONE = {
    "none": "their client had no checker", "busy": "the checker was busy or starting",
    "not taken": "the checker stopped", "not answered": "the checker stopped",
}  # fmt: skip


def checkers(_asked: Asked) -> list[Finding]:
    """Return the findings about the relay, and about the checkers of the clients that run now."""
    found = [_relay_in_use()]
    names = [name for name in names_in(checkers_dir()) if name[:1].isdigit() and "." not in name]
    living = [name for name in names if is_living(name)]
    alone = _hooks_alone()
    details = {"clients": living, "alone": dict(alone)}
    if not names and not alone:
        text = "no client is running; its first session starts a checker"
        return [*found, Finding(_CHECKER, "info", text, details=details)]
    text = f"{len(living)} client{'s' * (len(living) != 1)} with a checker now"
    count, spent_ns = [sum(numbers) for numbers in zip(*(_answered(name) for name in living), (0, 0))]
    details["answered"] = count
    if count:
        text += f". They answered {count} hooks in {spent_ns / count / 1e6:.1f} ms each"
    if alone:
        whys = ", ".join(f"{count} because {_WHY_ALONE.get(why, why)}" for why, count in alone.most_common())
        text += f"; hooks that ran as processes of their own today: {whys}"
    return [*found, Finding(_CHECKER, "ok", text, details=details)]


def _relay_in_use() -> Finding:
    program = installation.relay()
    if program:
        return Finding("relay", "ok", "hooks are handed to a checker by a program in C", details={"program": program})
    again = f"install it again: pipx install --force {DISTRIBUTION}"
    if os.path.lexists(installation.RELAY):
        return Finding("relay", "warn", f"{installation.RELAY} cannot be run: hooks use the relay in Python", again)
    try:
        with open(installation.NOT_COMPILED, encoding="utf-8") as file:
            why = file.read().strip()
    except OSError:  # a wheel for all platforms
        return Finding("relay", "info", "hooks use the relay in Python: this package was built without the one in C")
    text = f"hooks use the relay in Python: when this was installed, {why}"
    return Finding("relay", "info", text, f"mend that, and {again}")


def _answered(name: str) -> tuple[int, int]:
    """Return the number of a checker's answers since it started, and the nanoseconds for all."""
    try:
        with open(os.path.join(checkers_dir(), f"{name}.answered"), encoding="ascii", errors="replace") as file:
            count, spent_ns, _processor_ns = file.readline().split()
        return int(count), int(spent_ns)
    except (OSError, ValueError):  # it has not started yet
        return 0, 0


def _hooks_alone() -> Counter[str]:
    """Return the reasons why hooks ran as processes of their own within a day, and how often each."""
    found: Counter[str] = Counter()
    try:
        with open(os.path.join(checkers_dir(), "alone"), encoding="utf-8", errors="replace") as file:
            for line in file:
                at, _, why = line.strip().partition(" ")
                if at.isdigit() and int(at) > time.time() - DAY_SECONDS:
                    found[why] += 1
    except OSError:  # no server has started yet
        pass
    return found
