"""doctor: is everything in order, and are locks really enforced?

Looks at this installation and its store, then at every agent client found: plugin there, enabled,
trusted and current, and a canary lock denied by the very hook command the client would run. Each
finding that needs mending names the command that does it. Exit 1 when a check fails. It needs
Python alone: broken libraries are what it is for.

example: swarm-mcp doctor
"""

from __future__ import annotations

from functools import partial

from swarm_mcp.cli.arguments import JSON, SCOPE, Arguments, Option, Usage
from swarm_mcp.cli.output import say, show
from swarm_mcp.doctor import enforcement, own_checks
from swarm_mcp.errors import ClientFailed
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes import chosen
from swarm_mcp.runtimes.base import Finding
from swarm_mcp.scope import current_scope

USAGES = (Usage(SCOPE, Option("--no-clients", "look at no agent clients"), JSON),)


def run(args: Arguments) -> int:
    """Look, report, and fail where something must be mended."""
    found = own_checks.findings(args.value("--scope"))
    if not args.given("--no-clients"):
        found += _clients()
    failed = [finding for finding in found if finding.status == "fail"]
    scope = current_scope(args.value("--scope"))
    if args.json:
        checks = [
            {"name": f.name, "status": f.status, "message": f.message, "mend": f.mend or None, "details": f.details}
            for f in found
        ]
        show({"ok": not failed, "failed": len(failed), "scope": scope, "checks": checks})
        return 1 if failed else 0
    say(f"swarm-mcp doctor, scope {scope}")
    say()
    for finding in found:
        say(f"  [{finding.status.upper():<4}] {finding.name}: {finding.message}")
        if finding.mend and finding.status != "ok":
            say(f"         mend: {finding.mend}")
    say()
    say(f"{len(failed)} of {len(found)} checks failed." if failed else "Nothing failed.")
    return 1 if failed else 0


def _clients() -> list[Finding]:
    found: list[Finding] = []
    for client in chosen("all"):
        try:
            looked = client.findings(marketplace_folder())
            found += looked
            if not any(finding.message == "not installed" for finding in looked):
                found.append(enforcement.transport(client))
                found += own_checks.looked(f"{client.name} enforcement", partial(enforcement.prove, client))
        except ClientFailed as error:
            found.append(Finding(f"{client.name} plugin", "fail", str(error)))
    return found or [Finding("clients", "info", "no agent client was found on PATH")]
