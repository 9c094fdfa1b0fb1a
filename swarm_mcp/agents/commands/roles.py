"""The roles of sessions, and the role of this one."""

from __future__ import annotations

import os

from swarm_hook_core.labels import token
from swarm_mcp.cli.arguments import ACTING, WORKER, Arguments, Usage, verb
from swarm_mcp.cli.output import say, show
from swarm_mcp.errors import UnknownInstance
from swarm_mcp.folders import current_scope, here
from swarm_mcp.runtimes import NAMES, hook_config
from swarm_mcp.sessions.acting import find_acting_session
from swarm_mcp.store import Store

MODES = {
    "worker": "The default. Takes tasks, edits files, reports results; starts no other sessions.",
    "gateway": "A lead session. Hands tasks out, may start workers, watches results; usually role planner.",
}


ROLES = {
    "planner": "Cuts work into tasks with dependencies, hands them out, and follows them to the end.",
    "implementer": "Takes the next open task, locks the files it needs, edits, and reports.",
    "reviewer": "Reads finished work and names the changes it needs; edits nothing.",
    "researcher": "Finds out facts for others, in the code and outside; edits nothing.",
    "generalist": "Takes any open task. The role of sessions without a role in their label.",
}


@verb(
    Usage(*ACTING),
    group=WORKER,
)
def roles(args: Arguments) -> int:
    """roles: the roles a session can take, and the role of this one

    example: swarm-mcp worker roles
    """
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        try:
            row = find_acting_session(store, args, reads=True)
        except UnknownInstance:  # a person outside of any session may ask as well
            row = None
    label, mode = "", None
    if row:
        label, mode = row.label or "", "worker"
    # The variables that can give a session its role: each runtime's own, and those of all
    prefixes = [hook_config(name).env_prefix for name in NAMES]
    variables = [*(f"SWARM_{prefix}_AGENT_ROLE" for prefix in prefixes), "SWARM_AGENT_ROLE", "SWARM_ROLE"]
    current = {
        "instance_id": row and row.id,
        "label": label or None,
        "routing_role": token(label, "role") or None,
        "mode": token(label, "mode") or mode,
        "env": {name: os.environ.get(name) for name in variables},
        "swarm_role_file": _role_file(scope),
        "cwd": here(),
        "scope": scope,
    }
    if args.json:
        modes = [{"name": name, "summary": text, "invoke": _mode_ways(name)} for name, text in MODES.items()]
        roles = [{"name": name, "summary": text, "invoke": _role_ways(name)} for name, text in ROLES.items()]
        show({"plugin_modes": modes, "routing_roles": roles, "current": current})
        return 0
    for heading, table, ways in (("modes", MODES, _mode_ways), ("roles", ROLES, _role_ways)):
        say(f"{heading}:")
        for name, text in table.items():
            say(f"  {name:<12} {text}")
            say(f"  {'':<12} {'; '.join(ways(name))}")
    say(f"here: role {current['routing_role'] or 'none'}, mode {current['mode'] or 'not registered'}, scope {scope}")
    return 0


def _mode_ways(name: str) -> list[str]:
    return [f"SWARM_ROLE={name}"]


def _role_ways(name: str) -> list[str]:
    return [f"SWARM_AGENT_ROLE={name}", f"echo {name} > .swarm-role"]


def _role_file(scope: str) -> dict[str, str] | None:
    """The nearest ``.swarm-role`` from here up to the scope: ``{path, content}``."""
    folder = here()
    while True:
        path = os.path.join(folder, ".swarm-role")
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return {"path": path, "content": file.read(4096).strip()}
        except OSError:  # no such file here: look one folder above
            parent = os.path.dirname(folder)
        if folder in (scope, parent):
            return None
        folder = parent
