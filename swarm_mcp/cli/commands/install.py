"""Giving swarm to agent clients, and taking it back."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from swarm_hook_core import settings
from swarm_hook_core.state import config_dir, config_path, state_dir, store_path
from swarm_mcp import projects, state_folder
from swarm_mcp.cli import upgrade_notes
from swarm_mcp.cli.arguments import JSON, SETUP, START, Arguments, Option, Usage, verb
from swarm_mcp.cli.client_work import for_each
from swarm_mcp.cli.output import complain, line_width, say, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.doctor import enforcement
from swarm_mcp.errors import ClientFailed, SwarmError, UsageError
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.person import require_person
from swarm_mcp.protection_watch import remember, tell_lowered
from swarm_mcp.runtimes import NAMES, chosen, runtime, server_name
from swarm_mcp.runtimes.base import Runtime
from swarm_mcp.runtimes.bundle import transports_of
from swarm_mcp.runtimes.bundle import write as write_bundle
from swarm_mcp.runtimes.owned_folder import read_record, remove
from swarm_mcp.runtimes.steps import Steps
from swarm_mcp.runtimes.transport import COMMAND, MCP_TOOL, known
from swarm_mcp.server.old_records import forget_records
from swarm_mcp.store import Store

CLIENT = Option(
    "--client NAMES",
    f"one client, or several with commas between: {', '.join(NAMES)} (default: all that are found; --host is the same)",
    also="--host",
    source=(*NAMES, "all"),
)


@verb(
    Usage(
        CLIENT,
        Option(
            "--transport HOW",
            f"how these clients ask before a write: by a command of its own ({COMMAND}, the default), or by a tool of"
            f" the session's MCP server ({MCP_TOOL}: some 10 ms less for each write, 5 s more where that server hangs;"
            " the command stands in while it is not running). A later `install` keeps what was chosen",
            source=(COMMAND, MCP_TOOL),
        ),
        Option(
            "--kernel",
            "have the kernel keep locked files read-only while a command runs that nobody can read: Linux; Claude Code,"
            " and tested releases of Codex. A setting for all your sessions, which stays",
        ),
        Option("--no-kernel", "take that setting back"),
        Option("--dry-run", "say what would be done"),
        Option("--no-skills", "changes nothing: the skills are part of the plugin", also="--no-skill"),
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
    transports = _transports(args, clients, folder)
    if args.given("--dry-run"):
        return _dry_run(args, clients, folder, transports)
    try:
        return _install(args, clients, folder, transports)
    except KeyboardInterrupt:
        complain("swarm-mcp install: interrupted; run it again to finish")
        return 130


def _install(args: Arguments, clients: list[Runtime], folder: Path, transports: dict[str, str]) -> int:
    kernel = _set_kernel(args, clients)  # first: where the settings cannot be changed, nothing is
    versions = {client.name: client.version() for client in clients}  # before the folder changes, which some run
    with Progress(args.json) as progress:
        place = f"marketplace folder {folder}"
        progress.begin("writing", place)
        servers = server_name.other_names(clients, folder)
        changed = write_bundle(folder, local=True, transports=transports, servers=servers)
        progress.end("written" if changed else "already current", place)
        results = for_each(clients, partial(_install_into, folder=folder), _ending, progress)
    for result in results:
        result["transport"] = transports.get(result["client"], COMMAND)
    earlier = upgrade_notes.upgraded({one["client"]: versions[one["client"]] for one in results if one["ok"]})
    if args.json:
        about = upgrade_notes.as_json(earlier)
        show(
            {
                "dry_run": False, "marketplace": str(folder), "changed": changed, "results": results,
                "absent": [client.name for client in _absent(args)], "upgrade": about, "kernel": kernel,
            }
        )  # fmt: skip
    else:
        titles = {client.title: earlier[client.name] for client in clients if client.name in earlier}
        for line in upgrade_notes.lines(titles, line_width()):
            say(line)
        _say_absent(args)
        if kernel:
            say(f"kernel: {kernel['message']}")
        say("Check with: swarm-mcp doctor")
    return 0 if all(result["ok"] for result in results) else 1


def _set_kernel(args: Arguments, clients: list[Runtime]) -> dict | None:
    """Switch on or off what the kernel holds for `clients`, where that is asked for, and return what came of it."""
    if not args.given("--kernel") and not args.given("--no-kernel"):
        return None
    from swarm_mcp import user_settings
    from swarm_mcp.doctor import kernel

    wanted = args.given("--kernel")
    if not wanted and settings.in_file(kernel.NAME, "").value:
        effect = "takes the kernel's hold on locked files away from all sessions"
        require_person("swarm-mcp install --no-kernel", effect, config_dir())
    told: dict = {"on": wanted, "changed": user_settings.change(kernel.NAME, wanted)}
    if not wanted and told["changed"]:
        tell_lowered(kernel.NAME, "the kernel no longer holds locked files (`swarm-mcp install --no-kernel`)", False)
    message = f"{'on' if wanted else 'off'} in {config_path()}, for sessions started from now on"
    overrider = kernel.overridden(wanted)
    if overrider:
        message += f" (otherwise here, {'by ' if overrider.startswith('SWARM') else ''}{overrider})"
    if wanted:
        found = kernel.ability()
        message += f"; it {found.said()}"
        held, others = ([], []) if found.why else kernel.whose(clients)
        message += kernel.said_of(held, others)
        told.update(works=not found.why, why=found.why or None, mend=found.mend or None, held=held, not_held=others)
    return {**told, "message": message}


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
    installed = client.install(folder, steps)
    renamed = server_name.said(client, folder)
    if renamed:
        steps.add(renamed)
    steps.begin("writing to a locked file, which its hooks must deny")
    proof = enforcement.prove(client, installed)
    if proof.status != "ok":
        raise ClientFailed(proof.message)
    steps.add(proof.message)


def _ending(result: dict) -> str:
    return "done; sessions started from now on take part" if result["ok"] else f"FAILED: {result['error']}"


def _transports(args, clients, folder) -> dict[str, str]:
    """How each client's check is to ask: as told now, else as it does already."""
    wanted = known(args.value("--transport")) if args.given("--transport") else ""
    kept = transports_of(read_record(folder))
    able = [client.name for client in clients if client.check_tool]
    for client in clients:
        if wanted == MCP_TOOL and client.name not in able:
            complain(f"swarm-mcp install: {client.title} has no transport {wanted}; its check is a command")
    return {**kept, **(dict.fromkeys(able, wanted) if wanted else {})}


def _dry_run(args, clients, folder, transports) -> int:
    if args.json:
        results = [
            {"client": client.name, "program": client.program(), "transport": transports.get(client.name, COMMAND)}
            for client in clients
        ]
        absent = [client.name for client in _absent(args)]
        kernel = True if args.given("--kernel") else False if args.given("--no-kernel") else None
        show({"dry_run": True, "marketplace": str(folder), "results": results, "absent": absent, "kernel": kernel})
    else:
        if args.given("--kernel") or args.given("--no-kernel"):
            say(f"would set `kernel` {'on' if args.given('--kernel') else 'off'} in {config_path()}")
        say(f"would write the marketplace folder {folder}")
        for client in clients:
            how = transports.get(client.name, COMMAND)
            say(f"would install the plugin from it into {client.title} ({client.program()}), transport {how}")
        _say_absent(args)
    return 0


@verb(
    Usage(
        CLIENT,
        Option("--projects", "also take the guard's git hooks and what `init` has put there out of all projects"),
        Option("--dry-run", "say what would be done"),
        JSON,
    ),
    group=SETUP,
)
def uninstall(args: Arguments) -> int:
    """uninstall: take the plugin out of the clients, and remove swarm's own files

    Once no client has the plugin any more, its folder goes too, and what swarm keeps for itself in the state folder.
    What is yours stays, and is named: the store with its locks and messages, contents kept for `swarm-mcp restore`,
    records of workers, config.json. So is what projects have: git hooks of `swarm-mcp guard`, and files of `swarm-mcp
    init`; --projects takes that out of all of them, as long as this command is there to do it. While workers run, the
    state folder is left alone. It is a person's to do: refused (exit 1) from an agent's shell.

    example: swarm-mcp uninstall
    """
    wanted = args.value("--client") or args.value("--host")
    everyone = [runtime(name) for name in NAMES] if wanted in ("", "all") else chosen(wanted)
    clients = [found for found in everyone if found.program()]
    unreachable = [found for found in everyone if not found.program() and found.traces()]
    folder = marketplace_folder()
    everything = wanted in ("", "all")
    if not clients and not everything:
        raise SwarmError(f"the command of {wanted} was not found on PATH")
    if args.given("--dry-run") and args.json:
        names = [found.name for found in clients]
        show({"dry_run": True, "clients": names, "marketplace": str(folder) if everything else None})
        return 0
    if args.given("--dry-run"):
        for found in clients:
            say(f"would take the plugin out of {found.title}")
        if everything:
            say(f"would remove {folder}")
            for one in projects.left() if args.given("--projects") else ():
                say(f"would take out of {one.folder}: {one.what}")
        return 0
    deed = "swarm-mcp uninstall" + ("" if everything else f" --client {wanted}")
    require_person(deed, "ends the protection of all sessions of those clients")
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
    stuck = projects.take_out() if args.given("--projects") else []
    in_projects = projects.left() if everything else []
    left = _left() if everything else {}
    fine = fine and not stuck
    if args.json:
        there = [one._asdict() for one in in_projects]
        show({"results": results, "marketplace_removed": removed, "left": list(left), "projects": there,
              "failed": stuck})  # fmt: skip
        return 0 if fine else 1
    failed = [runtime(result["client"]).title for result in results if not result["ok"]]
    if removed:
        say(f"removed {folder}")
    elif everything and failed and read_record(folder):
        how = "starts" if len(failed) == 1 else "start"
        say(
            f"{folder} stays, and what is in {state_dir()}: {', '.join(failed)} still {how} them. Mend what is said"
            " above, and type `swarm-mcp uninstall` again"
        )
    elif not results:
        say("no agent client was found on PATH, and none has the plugin")
    if working:
        say("workers are running, so the state folder stays as it is: once they have ended, uninstall again")
    for path, what in left.items():
        say(f"left, for you to keep or to remove: {path}" + (f" ({what})" if what else ""))
    for one in in_projects:
        say(f"left in {one.folder}: {one.what}; to take it out: {one.mend}")
    for why in stuck:
        complain(f"swarm-mcp uninstall: could not be taken out of {why}")
    return 0 if fine else 1


def _farewell(result: dict) -> str:
    if not result["ok"]:
        return f"FAILED: {result['error']}"
    return "done" if result["steps"] else "nothing was installed"


def _workers_run() -> bool:
    """Whether workers of any checkout are running; their supervisors need the state folder."""
    if not os.path.exists(store_path()):
        return False
    try:
        with Store(read_only=True) as store:
            return bool(store.runs.live())
    except SwarmError:
        return False  # a broken store keeps nobody from uninstalling


def _left() -> dict[str, str]:
    """What stays behind, by its paths, each with a few words on what it is."""
    about = {store_path(): "the store: locks, messages, tasks", config_path(): "your settings"}
    return {**{path: what for path, what in about.items() if os.path.exists(path)}, **state_folder.left()}
