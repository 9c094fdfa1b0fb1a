"""The level of protection for uncommitted changes."""

from __future__ import annotations

from swarm_hook_core import settings
from swarm_hook_core.state import config_dir
from swarm_hook_core.traces import KEEP, LEVELS, NOTICE, OFF, TURN
from swarm_mcp.cli.arguments import JSON, LOCKS, Arguments, Option, Usage, choice, verb
from swarm_mcp.cli.output import say, show
from swarm_mcp.errors import UsageError
from swarm_mcp.hooks.protection_watch import tell_lowered
from swarm_mcp.runtimes import user_settings
from swarm_mcp.sessions.person import require_person

NAME = "auto"
MEANS = {
    OFF: "only locks count",
    NOTICE: "a session that edits a file with another session's uncommitted change is told about it",
    KEEP: "a call that would destroy another session's uncommitted change is denied",
    TURN: "the first write of a file locks it until its session's turn ends",
}


@verb(
    Usage(
        choice(*LEVELS, about="level", optional=True),
        Option("--user", "for all checkouts of this user, not only the one here"),
        Option("--unset", "remove the setting"),
        JSON,
    ),
    group=LOCKS,
)
def auto(args: Arguments) -> int:
    """auto: the level of protection for uncommitted changes

    Without a level, prints the level in force here and its source. With a level, sets it for this checkout (the git
    root of this folder), or with --user for all checkouts without a level of their own. SWARM_AUTO overrides both;
    SWARM_CC_AUTO, SWARM_CODEX_AUTO and the like override it for one client.

    Each level includes the ones before it. off: only locks count. notice: a session that edits a file with another live
    session's uncommitted change is told about it. keep (default): a call that would destroy such a change is denied: an
    overwrite, a removal, or a git command that sweeps many files. turn: the first write to a file locks it until the
    turn ends.

    Only a person may lower the level: a lower level, or an --unset that lowers it, is refused from an agent's shell
    (exit 1). Running sessions are told of the change.

    The level is kept in config.json of the configuration folder; nothing is written into the checkout. An unreadable
    config.json is left as it is: exit 1.

    example: swarm-mcp auto notice --user
    """
    level, checkout = "".join(args.words), user_settings.checkout_here()
    unset, of_user = args.given("--unset"), args.given("--user")
    if level and unset:
        raise UsageError("auto: either a level or --unset")
    if of_user and not level and not unset:
        raise UsageError("auto: --user wants a level, or --unset")
    place, words, result = checkout, "this checkout", {"ok": True}
    if of_user:
        place, words = "", "the user"
    if level or unset:
        result["changed"] = _change(level, place)
    found, others = user_settings.in_force(NAME, checkout)
    if args.json:
        clients = {name: user_settings.described(one) for name, one in others.items()}
        show({**result, **user_settings.described(found), "checkout": checkout, "clients": clients})
        return 0
    say(f"{found.value} in {checkout}, {user_settings.whose(found)}: {MEANS[found.value]}")
    for name, one in others.items():
        say(f"{one.value} for {name}, {user_settings.whose(one)}")
    if level and found.value != level:
        say(f"{level} is set for {words} now, and overridden here")
    return 0


def _change(level: str, checkout: str) -> bool:
    """Set the level for this checkout, or for the user if `checkout` is empty; an empty `level` removes the setting.

    Return True if that changed anything. Raises PersonOnly if an agent lowers the level.
    """
    before = settings.in_file(NAME, checkout).value
    after = level or settings.without(NAME, checkout)
    is_lower = LEVELS.index(after) < LEVELS.index(before)
    where, command = "in this checkout", f"swarm-mcp {NAME} {level or '--unset'}"
    if not checkout:
        where, command = "in all checkouts", f"{command} --user"
    if is_lower:
        effect = f"lowers the protection of all sessions {where} from {before} to {after}"
        require_person(command, effect, config_dir())
    changed = user_settings.change(NAME, level, checkout)
    if is_lower and changed:
        tell_lowered(NAME, f"the level of protection is {after} now, and was {before} (`{command}`)", bool(checkout))
    return changed
