"""Giving swarm to agent clients, and taking it back."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from swarm_hook_core import settings
from swarm_hook_core.state import config_dir, config_path, state_dir, store_path
from swarm_mcp.cli import upgrade_notes
from swarm_mcp.cli.arguments import JSON, SETUP, START, Arguments, Option, Usage, verb
from swarm_mcp.cli.client_work import for_each
from swarm_mcp.cli.output import complain, line_width, say, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.cli.words import clause
from swarm_mcp.doctor import enforcement, kernel
from swarm_mcp.errors import ClientFailed, SwarmError, UsageError
from swarm_mcp.guard import projects
from swarm_mcp.hooks.protection_watch import remember, tell_lowered
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes import NAMES, chosen, runtime, server_name, state_folder, user_settings
from swarm_mcp.runtimes.base import Runtime
from swarm_mcp.runtimes.bundle import write as write_bundle
from swarm_mcp.runtimes.owned_folder import read_record, remove
from swarm_mcp.runtimes.steps import Steps
from swarm_mcp.server.old_records import forget_records
from swarm_mcp.sessions.person import require_person
from swarm_mcp.store import Store

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
    clients = chosen(args.value("--client") or args.value("--host"))
    folder = marketplace_folder()
    if not clients:
        raise SwarmError(f"no agent client was found on PATH (looked for {_named(map(runtime, NAMES))})")
    missing = [client for client in clients if not client.program()]
    if missing:
        raise SwarmError(f"the command `{missing[0].executable}` was not found on PATH")
    if args.given("--no-skill") or args.given("--no-skills"):
        complain("swarm-mcp install: the plugin carries the skills; it is installed with them")
    if args.given("--kernel") and args.given("--no-kernel"):
        raise UsageError("install: either --kernel or --no-kernel")
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
        servers = server_name.other_names(clients, folder)
        changed = write_bundle(folder, local=True, servers=servers)
        progress.end(("already current", "written")[changed], place)
        results = for_each(clients, partial(_install_into, folder=folder), _ending, progress)
    _make_store()
    earlier = upgrade_notes.upgraded({one["client"]: versions[one["client"]] for one in results if one["ok"]})
    if args.json:
        about = upgrade_notes.as_json(earlier)
        show(
            {
                "dry_run": False, "marketplace": str(folder), "changed": changed, "results": results,
                "absent": [client.name for client in _absent(args)], "upgrade": about, "kernel": of_kernel,
            }
        )  # fmt: skip
    else:
        titles = {client.title: earlier[client.name] for client in clients if client.name in earlier}
        for line in upgrade_notes.lines(titles, line_width()):
            say(line)
        _say_absent(args)
        if of_kernel:
            say(f"kernel: {of_kernel['message']}")
        say("Check with: swarm-mcp doctor --play")
    return int(not all(result["ok"] for result in results))


def _make_store() -> None:
    """Make the store if there is none: a check that is the first call of all would take longer for it than it may."""
    try:
        Store().close()
    except SwarmError:
        pass  # `swarm-mcp doctor` tells what is wrong with it


def _set_kernel(args: Arguments, clients: list[Runtime]) -> dict[str, Any] | None:
    """Switch the kernel's locks on or off for `clients` if a flag asks for it, and return the result as JSON has it."""
    if not args.given("--kernel") and not args.given("--no-kernel"):
        return None
    wanted = args.given("--kernel")
    if not wanted and settings.in_file(kernel.NAME, "").value:
        effect = "takes the kernel's hold on locked files away from all sessions"
        require_person("swarm-mcp install --no-kernel", effect, config_dir())
    result: dict[str, Any] = {"on": wanted, "changed": user_settings.change(kernel.NAME, wanted)}
    if not wanted and result["changed"]:
        tell_lowered(kernel.NAME, "the kernel no longer holds locked files (`swarm-mcp install --no-kernel`)", False)
    message = f"{_ON[wanted]} in {config_path()}, for sessions started from now on"
    overrider = kernel.overridden(wanted)
    if overrider.startswith("SWARM"):
        overrider = f"by {overrider}"
    message += clause(" (otherwise here, {})", overrider)
    if wanted:
        found = kernel.ability()
        message += f"; it {found.said()}"
        held: list[str] = []
        others: list[str] = []
        if not found.why:
            held, others = kernel.whose(clients)
        message += kernel.said_of(held, others)
        result.update(works=not found.why, why=found.why or None, mend=found.mend or None, held=held, not_held=others)
    return {**result, "message": message}


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
    try:
        installed = client.install(folder, steps)
    except ClientFailed as error:
        mend = client.too_old(client.release())
        raise ClientFailed(f"{error}; {mend}" if mend else str(error)) from error
    renamed = server_name.said(client, folder)
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
        _say_absent(args)
    return 0


@verb(
    Usage(
        CLIENT,
        Option("--projects", "also remove the guard's git hooks and the files of `init` from all projects"),
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
    --projects removes them from all projects, and needs this command to do it. While workers run, the state folder is
    left alone. Only a person may uninstall: refused (exit 1) from an agent's shell.

    example: swarm-mcp uninstall
    """
    wanted = args.value("--client") or args.value("--host")
    everything = wanted in ("", "all")
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
        if everything and args.given("--projects"):
            for one in projects.left():
                say(f"would take out of {one.folder}: {one.what}")
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
        results = for_each(clients, lambda client, steps: client.uninstall(steps), _farewell, progress)
        for found in unreachable:
            why = f"has the plugin, but its command `{found.executable}` is not on PATH: nothing was done to it"
            results.append({"client": found.name, "ok": False, "steps": [], "error": why})
            progress.end(why, found.title)
    fine = all(result["ok"] for result in results)
    remember()
    removed = everything and fine and remove(folder)
    working = everything and fine and _workers_run()
    if everything and fine and not working:
        forget_records()
        state_folder.remove_ours()
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
    for why in stuck:
        complain(f"swarm-mcp uninstall: could not be taken out of {why}")
    return int(not fine)


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
    return {**{path: what for path, what in about.items() if os.path.exists(path)}, **state_folder.left()}
