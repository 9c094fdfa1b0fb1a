"""Checks of this installation: program, store, scope, sessions, skills, plugins, environment, libraries, folders,
settings, git hooks, the kernel's hold, faults.

They need only the standard library, because the other libraries may be broken.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import Any, NamedTuple

from swarm_hook_core import DISTRIBUTION
from swarm_hook_core.faults import describe, fault_log
from swarm_hook_core.paths import git_root
from swarm_hook_core.settings import WORDS, read
from swarm_hook_core.state import config_path, store_path
from swarm_mcp import __version__, contributions
from swarm_mcp.answers.views import name_of, seconds_since, veiled
from swarm_mcp.doctor import kernel, state_folder
from swarm_mcp.doctor.copies import which_copy
from swarm_mcp.doctor.faults import recorded_faults
from swarm_mcp.domain.session import STALE_SECONDS
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import current_scope, here
from swarm_mcp.guard import hooks
from swarm_mcp.installation import interpreter, marketplace_folder, plugin_source
from swarm_mcp.runtimes import bundle, server_name, user_settings
from swarm_mcp.runtimes.base import Finding, Runtime
from swarm_mcp.runtimes.owned_folder import differing, read_record
from swarm_mcp.sessions.acting import onlooker_identity
from swarm_mcp.store import Store, driver

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
    try:
        from swarm_mcp.store.inside import inside
    except Exception:  # a library is broken: the check of the libraries says so
        return None
    found = inside(store)
    if not found.words:
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
    wanted = bundle.contents(folder, server_name.in_bundle(folder))
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
    return state_folder.finding()


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
    return kernel.finding(asked.clients)


def faults(_asked: Asked) -> Finding:
    """Return the faults that hooks recorded in the last day."""
    rows = recorded_faults()
    recent = [row for row in rows if row["at"] > time.time() - RECENT_SECONDS]
    if not recent:
        return Finding("faults", "ok", "hooks recorded no fault in the last day", details={"log": fault_log()})
    last = recent[-1]
    text = f"{len(recent)} in the last day; the newest, {last['runtime']} {last['hook']}: {last['fault']}"
    return Finding("faults", "warn", text, f"see {fault_log()}", {"log": fault_log(), "newest": recent[-5:]})
