"""install: put the plugin into the agent clients found here

Writes a self-contained marketplace folder into your data folder, with this interpreter and this
swarm-mcp named by their real paths, and hands it to each client's own plugin command. Safe to run
again, and the way to upgrade. In Codex it also trusts the plugin's hooks, which would otherwise be
skipped without a word.

example: swarm-mcp install --client codex
"""

from __future__ import annotations

from swarm_hook_core.faults import describe
from swarm_mcp.cli.arguments import JSON, Arguments, Option, Usage
from swarm_mcp.cli.output import complain, say, show
from swarm_mcp.doctor import enforcement
from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes import NAMES, bundle, chosen
from swarm_mcp.runtimes.owned_folder import read_record
from swarm_mcp.runtimes.transport import COMMAND, MCP_TOOL, known
from swarm_mcp.server.priming import prime

USAGES = (
    Usage(
        Option(
            "--client NAMES",
            f"one client or several with commas between: {', '.join(NAMES)}; --host is another name for it"
            " (default: all that are found)",
            also="--host",
            source=(*NAMES, "all"),
        ),
        Option(
            "--transport HOW",
            f"how the check before a write is asked in these clients: by a command of its own ({COMMAND}), or faster,"
            f" by a tool of the session's MCP server ({MCP_TOOL}), with the command standing in where that is not"
            f" running. What was chosen stays so until another is named; to begin with, {COMMAND}",
            source=(COMMAND, MCP_TOOL),
        ),
        Option("--dry-run", "say what would be done"),
        Option("--no-skills", "understood, and changes nothing: the skills are part of the plugin", also="--no-skill"),
        JSON,
    ),
)


def run(args: Arguments) -> int:
    """Install everywhere that was asked for; exit 1 where a client could not be served."""
    clients = chosen(args.value("--client") or args.value("--host"))
    folder = marketplace_folder()
    if not clients:
        raise SwarmError(f"no agent client was found on PATH (looked for {' and '.join(NAMES)})")
    missing = [client for client in clients if not client.program()]
    if missing:
        raise SwarmError(f"the command `{missing[0].executable}` was not found on PATH")
    if args.given("--no-skill") or args.given("--no-skills"):
        complain("swarm-mcp install: the plugin carries the skills; it is installed with them")
    transports = _transports(args, clients, folder)
    if args.given("--dry-run"):
        return _dry_run(args, clients, folder, transports)
    changed = bundle.write(folder, local=True, transports=transports)
    results = []
    for client in clients:
        result: dict = {"client": client.name, "ok": True, "steps": [], "error": None}
        result["transport"] = transports.get(client.name, COMMAND)
        try:
            result["steps"] = client.install(folder)
            proof = enforcement.prove(client)
            result.update(ok=proof.status == "ok", error=None if proof.status == "ok" else proof.message)
            result["steps"] += [proof.message] if result["ok"] else []
            result["steps"] += prime(client, folder, tell_failure=args.json)
        except ClientFailed as error:
            result.update(ok=False, error=str(error))
        except Exception as error:
            result.update(ok=False, error=describe(error))
        results.append(result)
    if args.json:
        show({"dry_run": False, "marketplace": str(folder), "changed": changed, "results": results})
    else:
        say(f"marketplace folder {folder}: {'written' if changed else 'already current'}")
        for client, result in zip(clients, results):
            for step in result["steps"]:
                say(f"{client.title}: {step}")
            if result["ok"]:
                say(f"{client.title}: done; sessions started from now on take part")
            else:
                say(f"{client.title}: FAILED: {result['error']}")
        say("Check with: swarm-mcp doctor")
    return 0 if all(result["ok"] for result in results) else 1


def _transports(args, clients, folder) -> dict[str, str]:
    """How each client's check is to ask: as told now, else as it does already."""
    wanted = known(args.value("--transport")) if args.given("--transport") else ""
    kept = bundle.transports_of(read_record(folder))
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
        show({"dry_run": True, "marketplace": str(folder), "results": results})
    else:
        say(f"would write the marketplace folder {folder}")
        for client in clients:
            how = transports.get(client.name, COMMAND)
            say(f"would install the plugin from it into {client.title} ({client.program()}), transport {how}")
    return 0
