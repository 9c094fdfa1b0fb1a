"""Checking the installation, demonstrating a denial, and cleaning up the store."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from swarm_mcp.cli.arguments import JSON, MORE_SETUP, SCOPE, SETUP, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.commands.install import loaded_before_threads
from swarm_mcp.cli.output import answer, flush, say, say_marked, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.doctor import enforcement, own_checks
from swarm_mcp.doctor.demo import NEXT, play
from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import clean, current_scope
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes import NAMES, chosen, client_settings
from swarm_mcp.runtimes.base import Begun, Finding, Runtime, SideBySide, Steps
from swarm_mcp.store import Store

OURSELVES = "swarm-mcp"
PLAY = "That the clients start their hooks is shown by: swarm-mcp doctor --play"


@verb(
    Usage(SCOPE, Option("--no-clients", "look at no agent clients"), JSON),
    Usage(
        Option("--play", "start the clients themselves, and have scripted models write locked files", required=True),
        Word("CLIENT", "one client; without it, all with the plugin", optional=True, choices=NAMES),
        Option("--mode MODE", "a permission mode of the client, or `all` (default: the one that it starts in)"),
        JSON,
    ),
    group=SETUP,
)
def doctor(args: Arguments) -> int:
    """doctor: check the installation, and prove that locks are enforced

    Checks this installation and its store, then each agent client on PATH: is the plugin there, enabled, trusted and
    current, do settings or policies switch hooks off, and does the hook deny a write to a locked file when it is
    started by hand? Each problem is printed with the command that repairs it. Exit 1 if a check fails. doctor runs on
    Python alone, so that it also finds broken libraries.

    --play proves it in the client itself: it starts, with your settings, those of the project here and the machine's
    policies, on a scripted model on this machine, without a key, an account or a cost. The model writes locked files
    with each of its tools, in the shell and by another MCP server, and throws away a line of yours. Settings are copied
    into a home of the play, and nothing of yours is changed. Your other hooks and plugins run in it, too.

    example: swarm-mcp doctor --play claude-code
    """
    is_played = args.given("--play")
    scope = current_scope(args.value("--scope"))
    clients = []
    if not args.given("--no-clients"):
        clients = chosen(",".join(args.words))
    if not args.json:
        say(f"swarm-mcp doctor, scope {scope}")
        say()
    loaded_before_threads(clients)
    found: list[Finding] = []
    of_clients: dict[str, list[Finding]] = {client.name: [] for client in clients}
    work = partial(_look_at, folder=marketplace_folder())
    if is_played:
        work = partial(_play_in, mode=args.value("--mode"))
    with Progress(args.json, margin="  [ .. ] ") as progress, SideBySide(clients, work) as looking:
        if not is_played:
            progress.begin("looking at this installation", OURSELVES)
            for finding in own_checks.findings(args.value("--scope"), clients):
                found.append(finding)
                _say_finding(args, finding)
            progress.end(who=OURSELVES)
        for client, told in looking.told():
            if isinstance(told, Finding):
                of_clients[client.name].append(told)
                progress.end(who=client.name)
                _say_finding(args, told)
            elif isinstance(told, Begun):
                progress.begin(told, client.name)
    found += [finding for findings in of_clients.values() for finding in findings]
    if not clients and not args.given("--no-clients"):
        found.append(Finding("clients", "info", "no agent client was found on PATH"))
        _say_finding(args, found[-1])
    failed = [finding for finding in found if finding.status == "fail"]
    if args.json:
        checks = [
            {"name": f.name, "status": f.status, "message": f.message, "mend": f.mend or None, "details": f.details}
            for f in found
        ]
        show({"ok": not failed, "failed": len(failed), "scope": scope, "checks": checks})
    elif failed:
        say()
        say(f"{len(failed)} of {len(found)} checks failed.")
    else:
        say()
        say(_without_a_failure(clients, of_clients, is_played))
    return int(bool(failed))


def _without_a_failure(clients: list[Runtime], found: dict[str, list[Finding]], is_played: bool = False) -> str:
    """Return the last line of a report without a failed check: its proof, and the limits of that."""
    if not clients:
        return "No check failed, but no agent client was looked at."
    doubts = [finding.name for findings in found.values() for finding in findings if finding.status == "warn"]
    shown = PLAY
    if is_played:
        shown = ""
    if doubts:
        return f"No check failed, but writes may go unchecked. See above: {', '.join(doubts)}. {shown}".rstrip()
    proved = [name for name, findings in found.items() if any(finding.status == "ok" for finding in findings)]
    if is_played:
        return f"No locked file was written, and no line of yours was lost, in: {', '.join(proved) or 'no client'}."
    return f"No check failed: each hook denies a write when it is started by hand. {shown}"


def _say_finding(args: Arguments, finding: Finding) -> None:
    """Print a finding as soon as it is there; as JSON all of them come in the end."""
    if args.json:
        return
    say_marked(
        f"  [{finding.status.upper():<4}] {finding.name}: {finding.message}", finding.status.upper(), finding.status
    )
    if finding.mend and finding.status != "ok":
        word = "to change that" if finding.status == "info" else "mend"
        say(f"         {word}: {finding.mend}")
    flush()


def _look_at(client: Runtime, tell: Callable[[Finding | str], None], folder: Path) -> None:
    steps = Steps(tell)
    try:
        look = client.look(folder, steps)
        for finding in look.findings:
            tell(finding)
        if look.installed is None:
            return
        tell(enforcement.coverage(client))
        tell(own_checks.of_plugin(client, look.installed.root))
        for finding in enforcement.earlier_checks(client, look.installed):
            tell(finding)
        named = client_settings.server_finding(client, folder)
        if named:
            tell(named)
        steps.begin("trying a write to a locked file; its hooks must deny it")
        prove = partial(enforcement.prove, client, look.installed)
        for finding in own_checks.looked(f"{client.name} enforcement", prove):
            if finding.status == "ok" and any(seen.status == "fail" for seen in look.findings):
                text = f"the client does not run it: {finding.message}"
                finding = Finding(finding.name, "warn", text, details=finding.details)
            tell(finding)
    except ClientFailed as error:
        tell(Finding(f"{client.name} plugin", "fail", str(error), client.too_old(client.release())))


def _play_in(client: Runtime, tell: Callable[[Finding | str], None], mode: str) -> None:
    from swarm_mcp.play import playing  # `doctor` itself does without a model

    try:
        for finding in playing.findings(client, mode, Steps(tell)):
            tell(finding)
    except ClientFailed as error:
        tell(Finding(f"{client.name} play", "fail", str(error), client.too_old(client.release())))


@verb(
    Usage(JSON),
    group=SETUP,
)
def demo(args: Arguments) -> int:
    """demo: watch agents being refused, in a folder of the demo's own

    An agent that would throw away your uncommitted lines, or those of another agent, is refused; then a lock. Two
    sessions are played, through the plugin's real hooks. It needs no client, and reads and changes nothing of yours.
    Exit 1 if a step ends in another way than it should.

    example: swarm-mcp demo
    """
    lines: list[str] = []
    with Progress(args.json) as progress:

        def tell(line: str, mark: str, style: str) -> None:
            lines.append(line)
            progress.end()
            if not args.json:
                say_marked(line, mark, style)
                flush()

        fine = play(tell, progress.note)
    ending = ["Next:", *(f"   {line}" for line in NEXT)]
    if not fine:
        ending = ["This is not as it must be. `swarm-mcp doctor` looks for the cause."]
    answer(args, {"ok": fine, "scene": lines}, "", *ending)
    return int(not fine)


COUNTERS = {  # as in JSON -> as in text
    "instances_reclaimed": "instances reclaimed",
    "tasks_reopened": "tasks reopened",
    "task_assignees_cleared": "task assignees cleared",
    "locks_deleted": "locks deleted",
    "terminal_spawn_locks_deleted": "terminal spawn locks deleted",
    "messages_deleted": "messages deleted",
    "terminal_tasks_deleted": "terminal tasks deleted",
    "non_lock_context_rows_deleted": "legacy context rows deleted",
    "events_deleted": "events deleted",
    "kv_deleted": "kv rows deleted",
}


@verb(
    Usage(SCOPE, Option("--dry-run", "print the numbers, and remove nothing"), JSON),
    Usage(Option("--due", "a little of what is due, for a hook", hidden=True), hidden=True),
    group=MORE_SETUP,
)
def cleanup(args: Arguments) -> int:
    """cleanup: remove expired sessions, messages, tasks and events

    Removes sessions whose client is gone, messages older than an hour, finished tasks and events older than a day, and
    values of sessions that are gone. Without --scope (or SWARM_MCP_SCOPE) in all scopes.

    example: swarm-mcp cleanup --dry-run
    """
    if args.given("--due"):
        with Store() as store:
            store.cleanup.some()
        return 0
    chosen = args.value("--scope").strip() or os.environ.get("SWARM_MCP_SCOPE", "").strip()
    scope = None
    if chosen:
        scope = clean(chosen)
    with Store() as store:
        report = store.cleanup.clean(scope, args.given("--dry-run"))
    if args.json:
        show(report)
        return 0
    done = "cleaned"
    if args.given("--dry-run"):
        done = "would clean"
    say(f"{done} {scope or 'all scopes'}")
    for name, words in COUNTERS.items():
        say(f"  {words}: {report[name]}")
    return 0
