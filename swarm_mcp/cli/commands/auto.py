"""The level of protection for uncommitted changes."""

from __future__ import annotations

from swarm_hook_core.traces import KEEP, LEVELS, NOTICE, OFF, TURN
from swarm_mcp.cli.arguments import JSON, LOCKS, Arguments, Option, Usage, choice, verb
from swarm_mcp.cli.output import say, show
from swarm_mcp.errors import UsageError

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
    from swarm_mcp import user_settings

    level, checkout = args.words[0] if args.words else "", user_settings.checkout_here()
    if level and args.given("--unset"):
        raise UsageError("auto: either a level or --unset")
    if not level and args.given("--user") and not args.given("--unset"):
        raise UsageError("auto: --user wants a level, or --unset")
    changed = None
    if level or args.given("--unset"):
        changed = _change(level, "" if args.given("--user") else checkout)
    found, others = user_settings.in_force(NAME, checkout)
    if args.json:
        clients = {name: user_settings.described(one) for name, one in others.items()}
        told = {**user_settings.described(found), "checkout": checkout, "clients": clients}
        show({"ok": True, **({} if changed is None else {"changed": changed}), **told})
        return 0
    say(f"{found.value} in {checkout}, {user_settings.whose(found)}: {MEANS[found.value]}")
    for name, one in others.items():
        say(f"{one.value} for {name}, {user_settings.whose(one)}")
    if level and found.value != level:
        say(f"{level} is set for {'the user' if args.given('--user') else 'this checkout'} now, and overridden here")
    return 0


def _change(level: str, checkout: str) -> bool:
    """Set the level for this checkout, or for the user if `checkout` is empty; an empty `level` removes the setting.

    Return True if that changed anything. Raises PersonOnly if an agent lowers the level.
    """
    from swarm_hook_core import settings
    from swarm_hook_core.state import config_dir
    from swarm_mcp import user_settings

    def in_force() -> str:
        return settings.in_file(NAME, checkout).value

    before = in_force()
    after = level or settings.without(NAME, checkout)
    is_lower = LEVELS.index(after) < LEVELS.index(before)
    deed = " ".join(["swarm-mcp", NAME, level or "--unset", *([] if checkout else ["--user"])])
    if is_lower:
        from swarm_mcp.person import require_person

        where = "in this checkout" if checkout else "in all checkouts"
        effect = f"lowers the protection of all sessions {where} from {before} to {after}"
        require_person(deed, effect, config_dir())
    changed = user_settings.change(NAME, level, checkout)
    if is_lower and changed:
        from swarm_mcp.protection_watch import tell_lowered

        tell_lowered(NAME, f"the level of protection is {after} now, and was {before} (`{deed}`)", bool(checkout))
    return changed
