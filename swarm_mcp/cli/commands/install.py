"""Giving swarm to agent clients, to a project or to a folder, and taking it back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from swarm_hook_core import settings
from swarm_hook_core.coordinator import launcher
from swarm_hook_core.state import config_dir, config_path, describe, state_dir, store_path
from swarm_mcp import __version__
from swarm_mcp.answers.size import folded
from swarm_mcp.cli.arguments import (
    FOLDERS,
    INTERNAL,
    JSON,
    MORE_SETUP,
    SETUP,
    START,
    Arguments,
    Option,
    Usage,
    Word,
    verb,
)
from swarm_mcp.cli.output import agreed, answer, complain, line_width, say, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.cli.words import clause
from swarm_mcp.doctor import enforcement
from swarm_mcp.errors import ClientFailed, SwarmError, UsageError
from swarm_mcp.folders import clean
from swarm_mcp.guard import projects
from swarm_mcp.hooks.protection_watch import remember, tell_lowered
from swarm_mcp.installation import marketplace_folder, plugin_source
from swarm_mcp.runtimes import NAMES, chosen, client_settings, hook_config, installed, runtime, user_settings
from swarm_mcp.runtimes.base import Begun, InPlace, Interrupted, Runtime, SideBySide, Steps
from swarm_mcp.runtimes.bundle import leave_launcher, left, remove_ours, remove_theirs
from swarm_mcp.runtimes.bundle import write as write_bundle
from swarm_mcp.runtimes.client_settings import add_server
from swarm_mcp.runtimes.installed import Entry
from swarm_mcp.runtimes.users_file import read_record, remove_folder, write_whole
from swarm_mcp.server.app import forget_records
from swarm_mcp.sessions.acting import require_person
from swarm_mcp.store import Store

# Work for several agent clients side by side, with a line for every step.


def for_each(
    clients: list[Runtime],
    work: Callable[[Runtime, Steps], None],
    ending: Callable[[dict[str, Any]], str],
    progress: Progress,
) -> list[dict[str, Any]]:
    """Do `work` for all of `clients`; return ``{"client", "ok", "steps", "error"}`` for each.

    A failure for one client does not stop the others. `ending` turns a result into the last line about its client.
    """
    results: dict[str, dict[str, Any]] = {
        client.name: {"client": client.name, "ok": True, "steps": [], "error": None} for client in clients
    }

    def work_for(client: Runtime, tell: Callable[[str], None]) -> None:
        result, steps = results[client.name], Steps(tell)
        try:
            work(client, steps)
        except Interrupted:
            raise
        except ClientFailed as error:
            result.update(ok=False, error=str(error))
        except Exception as error:
            result.update(ok=False, error=describe(error))
        result["steps"] = steps.done
        tell(ending(result))

    loaded_before_threads(clients)
    with SideBySide(clients, work_for) as working:
        for client, words in working.told():
            if isinstance(words, Begun):
                progress.begin(words, client.title)
            else:
                progress.end(words, client.title)
    return list(results.values())


def loaded_before_threads(clients: list[Runtime]) -> None:
    """Load the clients' hook settings before the threads start: imports in several threads block each other."""
    for client in clients:
        with suppress(Exception):  # the client's own thread meets it again, and reports it
            hook_config(client.name)


# The notes of `swarm-mcp install` on an upgrade: the earlier release of each client, and the changes since.

ROWS = 12  # lines of a terminal, and entries in JSON
# Kinds of change in the order of the notes: first those that may need action.
_KINDS = ("Changed", "Removed", "Deprecated", "Security", "Added", "Fixed")


def upgraded(versions: dict[str, str]) -> dict[str, str]:
    """Return the clients of `versions` (name -> its earlier release, empty for a new client) whose release was not this
    one.
    """
    return {name: version for name, version in versions.items() if version and version != __version__}


def lines(versions: dict[str, str], room: int) -> list[str]:
    """Return at most ROWS lines of at most `room` cells on the upgrade of these clients (title -> release it had)."""
    if not versions:
        return []
    had = "; ".join(
        f"{_listed([title for title in versions if versions[title] == release])} had {release}"
        for release in sorted(set(versions.values()))
    )
    everything = _in_turns(_since(versions))
    heading = folded(f"swarm {__version__} is installed; {had}." + " Changes:" * bool(everything), room)
    shown, rows = [], len(heading)
    for entry in everything:
        parts = folded(f"  {entry.kind}: {entry.first_sentence}", room)
        if rows + len(parts) > ROWS - 1:
            break
        shown.append((entry, parts))
        rows += len(parts)
    below = [part for _, parts in sorted(shown, key=lambda pair: _rank(pair[0])) for part in parts]
    left = len(everything) - len(shown)
    if left:
        number = f"and {left} more"
        if not shown:
            number = f"{left} changes"
        below.append(f"  {number}: {installed.file()}")
    return [*heading, *below]


def as_json(versions: dict[str, str]) -> dict[str, Any] | None:
    """Return the notes as a JSON value (clients by name), or None if nothing was upgraded."""
    if not versions:
        return None
    everything = _in_turns(_since(versions))
    changes = [{"release": one.release, "kind": one.kind, "text": one.text} for one in everything[:ROWS]]
    return {"from": versions, "to": __version__, "changes": changes, "not_shown": len(everything) - len(changes)}


def _listed(titles: list[str]) -> str:
    *others, last = titles
    return clause("{} and ", ", ".join(others)) + last


def _since(versions: dict[str, str]) -> list[Entry]:
    """The changes since the oldest release among the clients."""
    earlier = [version for version in set(versions.values()) if installed.newer(__version__, version)]
    return max((installed.since(version) for version in earlier), key=len, default=[])


def _in_turns(entries: Iterable[Entry]) -> list[Entry]:
    """The first entry of each kind, then the second of each: each section of the changelog begins with the most
    important.
    """
    seen: dict[str, int] = {}
    placed = []
    for entry in entries:
        seen[entry.kind] = seen.get(entry.kind, 0) + 1
        placed.append((seen[entry.kind], _rank(entry), entry))
    return [entry for _, _, entry in sorted(placed, key=lambda one: one[:2])]


def _rank(entry: Entry) -> int:
    return [*_KINDS, entry.kind].index(entry.kind)


CLIENT = Option(
    "--client NAMES",
    f"one client, or several with commas between: {', '.join(NAMES)} (default: all that are found; --host is the same)",
    also="--host",
    source=(*NAMES, "all"),
)

_ON = {True: "on", False: "off"}


@verb(
    Usage(
        CLIENT,
        Option(
            "--kernel",
            "let the kernel keep locked files read-only during commands that cannot be analysed: Linux; Claude Code,"
            " and tested releases of Codex. A lasting setting for all your sessions",
        ),
        Option("--no-kernel", "remove that setting"),
        Option(
            "--statusline",
            "show other sessions, their uncommitted files and locks in the status line of Claude Code, Qwen Code, Kimi"
            " Code and Grok Build",
        ),
        Option("--no-statusline", "take that out again"),
        Option("--dry-run", "print the steps, and do nothing"),
        Option("--no-skills", "changes nothing: the skills are part of the plugin", also="--no-skill"),
        Option("--transport HOW", hidden=True),
        JSON,
    ),
    group=START,
)
def install(args: Arguments) -> int:
    """install: put the plugin into the agent clients found here

    Writes the plugin into a folder of its own in your data folder, with the paths of this interpreter and this
    swarm-mcp in it, and has each client install it from there. Run it again at any time, and to upgrade. In Codex it
    also trusts the plugin's hooks; without that Codex would skip them without a word.

    example: swarm-mcp install --client codex
    """
    for name in ("kernel", "statusline"):
        if args.given(f"--{name}") and args.given(f"--no-{name}"):
            raise UsageError(f"either --{name} or --no-{name}")
    clients = chosen(args.value("--client") or args.value("--host"))
    folder = marketplace_folder()
    if not clients:
        raise SwarmError(f"no agent client was found on PATH (looked for {_named(map(runtime, NAMES))})")
    missing = [client for client in clients if not client.program()]
    if missing:
        raise SwarmError(f"the command `{missing[0].executable}` was not found on PATH")
    if args.given("--no-skill") or args.given("--no-skills"):
        complain("swarm-mcp install: the plugin carries the skills; it is installed with them")
    if args.given("--transport"):
        complain("swarm-mcp install: --transport is gone; each write is checked by a command. Leave the option out")
    if args.given("--dry-run"):
        return _dry_run(args, clients, folder)
    try:
        return _install(args, clients, folder)
    except KeyboardInterrupt:
        complain("swarm-mcp install: interrupted; run it again to finish")
        return 130


def _install(args: Arguments, clients: list[Runtime], folder: Path) -> int:
    of_kernel = _set_kernel(args, clients)  # first: where the settings cannot be changed, nothing is
    # before the folder changes: some clients run from it
    versions = {client.name: client.version() for client in clients}
    with Progress(args.json) as progress:
        place = f"marketplace folder {folder}"
        progress.begin("writing", place)
        servers = client_settings.other_names(clients, folder)
        changed = write_bundle(folder, local=True, servers=servers)
        progress.end(("already current", "written")[changed], place)
        results = for_each(clients, partial(_install_into, folder=folder), _ending, progress)
    # Make the store if there is none: a check that is the first call of all would take longer for it than it may.
    try:
        Store().close()
    except SwarmError:
        pass  # `swarm-mcp doctor` tells what is wrong with it
    of_status_line = _set_status_line(args, clients)
    earlier = upgraded({one["client"]: versions[one["client"]] for one in results if one["ok"]})
    if args.json:
        about = as_json(earlier)
        show(
            {
                "dry_run": False, "marketplace": str(folder), "changed": changed, "results": results,
                "absent": [client.name for client in _absent(args)], "upgrade": about, "kernel": of_kernel,
                "statusline": of_status_line or None,
            }
        )  # fmt: skip
    else:
        titles = {client.title: earlier[client.name] for client in clients if client.name in earlier}
        for line in lines(titles, line_width()):
            say(line)
        _say_absent(args)
        if of_kernel:
            say(f"kernel: {of_kernel['message']}")
        say(of_status_line or _offer(clients))
        say("Check with: swarm-mcp doctor --play")
    return int(not all(result["ok"] for result in results))


def _set_kernel(args: Arguments, clients: list[Runtime]) -> dict[str, Any] | None:
    """Switch the kernel's locks on or off for `clients` if a flag asks for it, and return the result as JSON has it."""
    if not args.given("--kernel") and not args.given("--no-kernel"):
        return None
    wanted = args.given("--kernel")
    if not wanted and settings.in_file(enforcement.NAME, "").value:
        effect = "takes the kernel's hold on locked files away from all sessions"
        require_person("swarm-mcp install --no-kernel", effect, config_dir())
    result: dict[str, Any] = {"on": wanted, "changed": user_settings.change(enforcement.NAME, wanted)}
    if not wanted and result["changed"]:
        tell_lowered(
            enforcement.NAME, "the kernel no longer holds locked files (`swarm-mcp install --no-kernel`)", False
        )
    message = f"{_ON[wanted]} in {config_path()}, for sessions started from now on"
    overrider = enforcement.overridden(wanted)
    if overrider.startswith("SWARM"):
        overrider = f"by {overrider}"
    message += clause(" (otherwise here, {})", overrider)
    if wanted:
        found = enforcement.ability()
        message += f"; it {found.said()}"
        held: list[str] = []
        others: list[str] = []
        if not found.why:
            held, others = enforcement.whose(clients)
        message += enforcement.said_of(held, others)
        result.update(works=not found.why, why=found.why or None, mend=found.mend or None, held=held, not_held=others)
    return {**result, "message": message}


NOTIFY_OFFER = "`swarm-mcp watch --notify` tells you when something is refused, or an agent waits for you"


def _offer(clients: list[Runtime]) -> str:
    """Return the sentence about options that were not taken, for these clients."""
    titles = [client.title for client in clients if client.status_line()]
    if not titles:
        return f"Not taken: {NOTIFY_OFFER}"
    place = f"the status line of {_listed(titles)}"
    return f"Not taken: `swarm-mcp install --statusline` shows others' work in {place}; {NOTIFY_OFFER}"


def _set_status_line(args: Arguments, clients: list[Runtime]) -> str:
    """Set or remove the status line of `clients` if an option asks for it. Return a sentence about each."""
    if not args.given("--statusline") and not args.given("--no-statusline"):
        return ""
    told = []
    for line in filter(None, (client.status_line() for client in clients)):
        try:
            told.append(line.set(args.given("--statusline")))
        except (OSError, SwarmError) as error:
            told.append(f"the status line could not be changed: {error}")
    if args.given("--statusline") and not told:
        return f"no status line: {_listed([client.title for client in clients])} has no setting for a command there"
    return "; ".join(filter(None, told)) or "there was no status line of ours"


def _take_out(client: Runtime, steps: Steps) -> None:
    """Take the plugin and our status line out of `client`."""
    client.uninstall(steps)
    line = client.status_line()
    if line and (told := line.set(False)):
        steps.add(told)


def _absent(args: Arguments) -> list[Runtime]:
    """The clients that are not on this machine, where all that are found were meant."""
    if (args.value("--client") or args.value("--host")) not in ("", "all"):
        return []
    return [client for client in map(runtime, NAMES) if not client.program()]


def _say_absent(args: Arguments) -> None:
    absent = _absent(args)
    if absent:
        say(f"Not found on PATH, and left alone: {_named(absent)}")


def _named(clients: Iterable[Runtime]) -> str:
    return ", ".join(f"{client.title} ({client.executable})" for client in clients)


def _install_into(client: Runtime, steps: Steps, folder: Path) -> None:
    if isinstance(client, InPlace) and client.oldest:  # no command of its own would refuse the plugin
        mend = client.too_old(client.release())
        if mend:
            raise ClientFailed(mend)
    try:
        installed = client.install(folder, steps)
    except ClientFailed as error:
        mend = client.too_old(client.release())
        raise ClientFailed(f"{error}; {mend}" if mend else str(error)) from error
    renamed = client_settings.server_said(client, folder)
    if renamed:
        steps.add(renamed)
    steps.begin("trying a write to a locked file; its hooks must deny it")
    proof = enforcement.prove(client, installed)
    if proof.status != "ok":
        raise ClientFailed(proof.message)
    steps.add(proof.message)


def _ending(result: dict[str, Any]) -> str:
    if not result["ok"]:
        return f"FAILED: {result['error']}"
    return "done; sessions started from now on take part"


def _dry_run(args: Arguments, clients: list[Runtime], folder: Path) -> int:
    wanted = None
    if args.given("--kernel") or args.given("--no-kernel"):
        wanted = args.given("--kernel")
    if args.json:
        results = [{"client": client.name, "program": client.program()} for client in clients]
        absent = [client.name for client in _absent(args)]
        show({"dry_run": True, "marketplace": str(folder), "results": results, "absent": absent, "kernel": wanted})
    else:
        if wanted is not None:
            say(f"would set `kernel` {_ON[wanted]} in {config_path()}")
        say(f"would write the marketplace folder {folder}")
        for client in clients:
            say(f"would install the plugin from it into {client.title} ({client.program()})")
            line = client.status_line()
            if line and args.given("--statusline"):
                say(f"would put the status line into {line.path}")
        _say_absent(args)
    return 0


@verb(
    Usage(
        CLIENT,
        Option("--projects", "also remove the guard's git hooks and the files of `init` from all projects"),
        Option("--purge", "then list all that is left, your data too, and remove it after a question"),
        Option("--yes", "with --purge: no question"),
        Option("--dry-run", "print the steps, and do nothing"),
        JSON,
    ),
    group=SETUP,
)
def uninstall(args: Arguments) -> int:
    """uninstall: take the plugin out of the clients, and remove swarm's own files

    After the last client its plugin folder is removed too, with swarm's own files in the state folder. Your data stays,
    and is named: the store with its locks and messages, contents kept for `swarm-mcp restore`, records of workers,
    config.json. Files in projects stay as well: git hooks of `swarm-mcp guard`, and files of `swarm-mcp init`;
    --projects removes them from all projects, and needs this command to do it. --purge lists all of it, and removes it
    after a question, also if the plugins went earlier; without a terminal it wants --yes. Work trees stay. While
    workers run, the state folder is left alone. Only a person may uninstall: refused (exit 1) from an agent's shell.

    example: swarm-mcp uninstall
    """
    wanted = args.value("--client") or args.value("--host")
    everything = wanted in ("", "all")
    if args.given("--purge") and (args.json or not everything):
        raise UsageError("--purge goes without --client and --json")
    if args.given("--yes") and not args.given("--purge"):
        raise UsageError("--yes answers the question of --purge; there is no other one")
    candidates = [runtime(name) for name in NAMES]
    if not everything:
        candidates = chosen(wanted)
    clients = [found for found in candidates if found.program()]
    unreachable = [found for found in candidates if not found.program() and found.traces()]
    folder = marketplace_folder()
    if not clients and not everything:
        raise SwarmError(f"the command of {wanted} was not found on PATH")
    if args.given("--dry-run") and args.json:
        names = [found.name for found in clients]
        answer: dict[str, Any] = {"dry_run": True, "clients": names, "marketplace": None}
        if everything:
            answer["marketplace"] = str(folder)
        show(answer)
        return 0
    if args.given("--dry-run"):
        for found in clients:
            say(f"would take the plugin out of {found.title}")
        if everything:
            say(f"would remove {folder}")
        if everything and (args.given("--projects") or args.given("--purge")):
            for one in projects.left():
                say(f"would take out of {one.folder}: {one.what}")
        if args.given("--purge"):
            for path, what in _left().items():
                if what and not path.endswith("worktrees"):
                    say(f"would remove {path} ({what})")
        return 0
    command = "swarm-mcp uninstall"
    if not everything:
        command += f" --client {wanted}"
    require_person(command, "ends the protection of all sessions of those clients")
    try:
        return _uninstall(args, clients, unreachable, everything)
    except KeyboardInterrupt:
        complain("swarm-mcp uninstall: interrupted; run it again to finish")
        return 130


def _uninstall(args: Arguments, clients: list[Runtime], unreachable: list[Runtime], everything: bool) -> int:
    folder = marketplace_folder()
    with Progress(args.json) as progress:
        results = for_each(clients, _take_out, _farewell, progress)
        for found in unreachable:
            why = f"has the plugin, but its command `{found.executable}` is not on PATH: nothing was done to it"
            results.append({"client": found.name, "ok": False, "steps": [], "error": why})
            progress.end(why, found.title)
    fine = all(result["ok"] for result in results)
    remember()
    removed = everything and fine and remove_folder(folder)
    working = everything and fine and _workers_run()
    if everything and fine and not working:
        forget_records()
        remove_ours()
    if removed and folder.parent.is_dir() and not any(folder.parent.iterdir()):
        folder.parent.rmdir()
    stuck: list[str] = []
    if args.given("--projects"):
        stuck = projects.take_out()
    in_projects, left = [], {}
    if everything:
        in_projects, left = projects.left(), _left()
    fine = fine and not stuck
    if args.json:
        there = [one._asdict() for one in in_projects]
        show({"results": results, "marketplace_removed": removed, "left": list(left), "projects": there,
              "failed": stuck})  # fmt: skip
        return int(not fine)
    failed = [runtime(result["client"]).title for result in results if not result["ok"]]
    if removed:
        say(f"removed {folder}")
    elif everything and failed and read_record(folder):
        start = "start" + "s" * (len(failed) == 1)
        say(
            f"{folder} stays, and what is in {state_dir()}: {', '.join(failed)} still {start} them. Repair the errors"
            " above, and type `swarm-mcp uninstall` again"
        )
    elif not results:
        say("no agent client was found on PATH, and no client has the plugin")
    if working:
        say("workers are running, so the state folder stays as it is: once they have ended, uninstall again")
    for path, what in left.items():
        say(f"left, for you to keep or to remove: {path}" + clause(" ({})", what))
    for one in in_projects:
        say(f"left in {one.folder}: {one.what}; to remove it: {one.mend}")
    if args.given("--purge") and fine and not working:
        stuck = _purge(left, bool(in_projects), args.given("--yes"))
    for why in stuck:
        complain(f"swarm-mcp uninstall: could not be taken out of {why}")
    return int(not fine or bool(stuck))


def _purge(left: dict[str, str], in_projects: bool, is_sure: bool) -> list[str]:
    """Remove all that is left, and has been listed, after a question. Return the failures, in sentences."""
    if not left and not in_projects:
        say("nothing is left")
        return []
    agreement = True if is_sure else agreed("Remove all of it? It cannot be brought back.")
    if not agreement:
        say("it stays" if agreement is False else "it stays: without a terminal to ask, --yes removes it")
        return []
    stuck = projects.take_out()
    gone = [store_path(), config_path(), *remove_theirs()]
    for path in gone:
        for one in (path, f"{path}-wal", f"{path}-shm"):
            with suppress(OSError):
                os.remove(one)
    for folder in {os.path.dirname(path) for path in gone}:
        with suppress(OSError):
            os.rmdir(folder)  # unless something of others is in it
    say("removed")
    for path in _left():
        say(f"it stays: {path}")
    return stuck


def _farewell(result: dict[str, Any]) -> str:
    if not result["ok"]:
        return f"FAILED: {result['error']}"
    if not result["steps"]:
        return "nothing was installed"
    return "done"


def _workers_run() -> bool:
    """Return True if workers of any checkout are running; their supervisors need the state folder."""
    if not os.path.exists(store_path()):
        return False
    try:
        with Store(read_only=True) as store:
            return bool(store.runs.live())
    except SwarmError:
        return False  # a broken store must not prevent uninstalling


def _left() -> dict[str, str]:
    """The paths that stay behind, each with a few words about it."""
    about = {store_path(): "the store: locks, messages, tasks", config_path(): "your settings"}
    return {**{path: what for path, what in about.items() if os.path.exists(path)}, **left()}


# Swarm's files elsewhere than in a client: a marketplace folder of one's own, a project's server file and skills.


@verb(
    Usage(
        Word("DIR", "the folder", source=FOLDERS),
        Option(
            "--local",
            "name this machine's interpreter and swarm-mcp by path, as `install` does; without it the folder starts"
            " python3 and swarm-mcp by name and can be published as a git repository",
        ),
        Option("--force", "write into a folder that holds other files of the same names"),
        JSON,
    ),
    group=INTERNAL,
)
def bundle(args: Arguments) -> int:
    """bundle: write the marketplace folder that clients install from

    example: swarm-mcp bundle ~/swarm-marketplace
    """
    target = Path(args.words[0]).expanduser().resolve()
    try:
        changed = write_bundle(target, args.given("--local"), args.given("--force"))
    except OSError as error:
        raise SwarmError(f"cannot write {error.filename or target}: {error.strerror}") from None
    state = "already current"
    if changed:
        state = "written"
    return answer(
        args,
        {"directory": str(target), "changed": changed, "files": read_record(target)["files"]},
        f"{target}: {state}",
    )


@verb(
    Usage(JSON),
    group=INTERNAL,
)
def fetched(args: Arguments) -> int:
    """fetched: have plugins without a command run this copy (uv starts this)

    On a machine without swarm-mcp, a plugin that was installed from a repository has uv fetch the release with the
    plugin's own number, and uv runs this command. It leaves a launcher of this copy in the state folder, for the
    plugin's hooks and its MCP server. SWARM_UVX=off prevents all of it.

    example: swarm-mcp fetched
    """
    try:
        path = leave_launcher()
    except OSError as error:
        raise SwarmError(f"cannot write {error.filename or launcher()}: {error.strerror}") from None
    return answer(args, {"launcher": path}, path)


@verb(
    Usage(
        Option("--dir DIR", "the project (default: here); made where it is missing", source=FOLDERS),
        Option("--force", "overwrite skills that are there, and another server called swarm"),
        Option("--no-skills", "leave .claude/skills alone", also="--no-skill"),
        JSON,
    ),
    group=MORE_SETUP,
)
def init(args: Arguments) -> int:
    """init: set one project up for clients that have no plugin of ours

    Adds the server `swarm` to DIR/.mcp.json (`swarm-locks` beside another server called so), leaving everything else
    in it as it is, and copies the skills into DIR/.claude/skills. Such sessions can lock and talk to each other, but no
    hook stops their writes. The plugin does that (`swarm-mcp install`), and where it is installed this is not needed.
    `swarm-mcp uninstall --projects` takes it out again.

    example: swarm-mcp init --dir ~/src/shop
    """
    folder = Path(clean(args.value("--dir") or "."))
    if folder.exists() and not folder.is_dir():
        raise SwarmError(f"{folder} is not a folder")
    force = args.given("--force")
    server = folder / ".mcp.json"
    steps = [{"action": add_server(server, force), "path": str(server)}]
    if not (args.given("--no-skills") or args.given("--no-skill")):
        for name in projects.SKILLS:
            target = folder / ".claude" / "skills" / name
            steps.append({"action": _copy_skill(name, target, force), "path": str(target)})
    projects.note(str(folder))
    for step in steps:
        if step["action"] == "skipped":
            step["note"] = "already there"
            if step["path"] != str(server):
                step["note"] += "; --force renews it"
    return answer(
        args,
        {"directory": str(folder), "steps": steps},
        f"Setting up {folder} for swarm",
        *(f"  {step['action']} {step['path']}" + clause(" ({})", step.get("note")) for step in steps),
        "",
        "Done. Restart the agent client there; it may ask if you trust the server.",
    )


def _copy_skill(name: str, target: Path, force: bool) -> str:
    """Copy one of our skills; ``wrote``, ``updated`` or ``skipped``."""
    there = target.exists() or target.is_symlink()
    if there and not force:
        return "skipped"
    if target.is_symlink() or (there and not target.is_dir()):
        # Writing through a user's link would change another project's files.
        raise SwarmError(f"{target} is a link or a file; remove it first")
    source = plugin_source() / "skills" / name
    changed = False
    for path in sorted(source.rglob("*")):
        if path.is_file():
            copy, content = target / path.relative_to(source), path.read_bytes()
            if not copy.is_file() or copy.read_bytes() != content:
                write_whole(copy, content, through_link=False)
                changed = True
    if not there:
        return "wrote"
    if changed:
        return "updated"
    return "skipped"
