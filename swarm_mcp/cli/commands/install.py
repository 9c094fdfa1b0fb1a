"""install: put the plugin into the agent clients found here

usage: swarm-mcp install [--client claude-code|codex|all] [--dry-run] [--json]

Writes a self-contained marketplace folder into your data folder, with this interpreter and this
swarm-mcp named by their real paths, and hands it to each client's own plugin command. Safe to run
again, and the way to upgrade. In Codex it also trusts the plugin's hooks, which would otherwise be
skipped without a word.

example: swarm-mcp install --client codex
"""

from __future__ import annotations

from swarm_hook_core.faults import describe
from swarm_mcp import bundle
from swarm_mcp.cli.output import say, show
from swarm_mcp.clients import NAMES, chosen
from swarm_mcp.clients.folder import marketplace_folder
from swarm_mcp.doctor import canary
from swarm_mcp.errors import ClientFailed, SwarmError


def run(args) -> int:
    """Install everywhere that was asked for; exit 1 where a client could not be served."""
    wanted = args.value("--client")
    clients = chosen(wanted)
    folder = marketplace_folder()
    if not clients:
        raise SwarmError(f"no agent client was found on PATH (looked for {' and '.join(NAMES)})")
    missing = [client for client in clients if not client.program()]
    if missing:
        raise SwarmError(f"the command `{missing[0].executable}` was not found on PATH")
    if args.has("--dry-run"):
        return _dry_run(args, clients, folder)
    changed = bundle.write(folder, local=True)
    results = []
    for client in clients:
        result: dict = {"client": client.name, "ok": True, "steps": [], "error": None}
        try:
            result["steps"] = client.install(folder)
            proof = canary.prove(client)
            result.update(ok=proof.status == "ok", error=None if proof.status == "ok" else proof.message)
            result["steps"] += [proof.message] if result["ok"] else []
        except ClientFailed as error:
            result.update(ok=False, error=str(error))
        except Exception as error:  # noqa: BLE001 - one odd client must not keep the plugin from the others
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


def _dry_run(args, clients, folder) -> int:
    if args.json:
        results = [{"client": client.name, "program": client.program()} for client in clients]
        show({"dry_run": True, "marketplace": str(folder), "results": results})
    else:
        say(f"would write the marketplace folder {folder}")
        for client in clients:
            say(f"would install the plugin from it into {client.title} ({client.program()})")
    return 0
