"""The level of protection for uncommitted changes."""

from __future__ import annotations

import time

from swarm_hook_core import settings
from swarm_hook_core.state import config_dir
from swarm_hook_core.traces import LEVELS
from swarm_mcp.cli.arguments import JSON, LOCKS, Arguments, Option, Usage, choice, verb
from swarm_mcp.cli.output import say, show
from swarm_mcp.errors import UsageError
from swarm_mcp.hooks.protection_watch import tell_lowered
from swarm_mcp.runtimes import user_settings
from swarm_mcp.sessions.acting import require_person

NAME, FENCE, MERGE, AUTHORSHIP = "protect", "fence", "merge", "authorship"
SWITCHES = {  # name -> its name in words, the effect of a change, the news of a lower protection
    FENCE: (
        "the fence",
        "lets sessions {where} write into other work trees",
        "sessions may leave their work trees now",
    ),
    MERGE: (
        "merging",
        "changes the fate of outdated texts of sessions {where}",
        "outdated texts are merged now where the client allows it",
    ),
    AUTHORSHIP: ("the record of authors", "changes the record of the authors of commits {where}", ""),
}
MINUTE, HOUR, LONGEST = 60, 3600, 24 * 3600


@verb(
    Usage(
        choice(*LEVELS, about="level", optional=True),
        Option("--user", "for all checkouts of this user, not only the one here"),
        Option("--unset", "remove the setting"),
        Option("--for DURATION", "the level holds for that time only: 5m, 90s, 2h; then the one before holds again"),
        Option("--fence SWITCH", "on or off: a session stays in its linked work tree"),
        Option("--merge SWITCH", "on or off: an outdated text is merged where the client allows it"),
        Option("--authorship SWITCH", "on or off (default): commits get notes on the authors of their lines"),
        JSON,
    ),
    Usage(
        choice(MERGE, AUTHORSHIP, about="level"),
        choice("on", "off", about="switch", optional=True),
        Option("--user", "for all checkouts of this user, not only the one here"),
        JSON,
    ),
    group=LOCKS,
)
def protect(args: Arguments) -> int:
    """protect: the level of protection for uncommitted changes

    Without a level, prints the level in force here and its source. With a level, sets it for this checkout (the git
    root of this folder), or with --user for all checkouts without a level of their own. SWARM_PROTECT overrides both;
    SWARM_CC_PROTECT, SWARM_CODEX_PROTECT and the like override it for one client. The older names of verb, key and
    variables have `auto` in place of `protect`, and work as before.

    Each level includes the ones before it. off: only locks count. notice: a session that edits a file with another live
    session's uncommitted change is told about it. keep (default): a call that would destroy such a change, or a
    person's, is denied: an overwrite, a removal, or a git command that sweeps many files. turn: the first write to a
    file locks it until the turn ends.

    With --for the level holds for a time (at most 24 hours), in this checkout. `protect off --for 1h` switches swarm
    off for sessions that work here, locks and git hooks included: nothing is denied or said, and changes made meanwhile
    have no author afterwards. It ends by itself.

    With --merge off, or `protect merge off`, a whole text that would drop others' lines is denied; with on (default) it
    goes ahead with these lines merged into it, where nothing is in conflict and the client still asks its user's rules.
    SWARM_MERGE overrides it.

    With --fence off a session that began in a linked work tree may write into other work trees of the repository; with
    on (default) it is denied once for each. SWARM_FENCE overrides it.

    With --authorship on, or `protect authorship on`, `swarm-mcp commit` records who wrote the lines of a commit, as
    git notes that `blame` shows. Type `swarm-mcp guard install` afterwards to have plain commits recorded, and notes
    kept by amend, rebase and cherry-pick. No variable overrides it.

    Only a person may lower the protection: a lower level, an --unset that lowers it, --fence off, or a change of
    --merge or --authorship, is refused from an agent's shell (exit 1). Running sessions are told of a lower protection.

    The level is kept in config.json of the configuration folder; nothing is written into the checkout. An unreadable
    config.json is left as it is: exit 1.

    example: swarm-mcp protect off --for 5m
    """
    level, checkout = "".join(args.words), user_settings.checkout_here()
    unset, of_user = args.given("--unset"), args.given("--user")
    if level and unset:
        raise UsageError("either a level or --unset")
    switches = {name: args.value(f"--{name}") for name in SWITCHES if args.given(f"--{name}")}
    if args.words[:1] in ([MERGE], [AUTHORSHIP]):
        level, switches = "", {args.words[0]: "".join(args.words[1:])}
    if of_user and not (level or unset or switches):
        raise UsageError("--user wants a level, or --unset")
    seconds = _seconds_of(args.value("--for")) if args.given("--for") else 0
    if seconds and (of_user or not level):
        raise UsageError("--for wants a level, and goes without --user")
    place, words, result = checkout, "this checkout", {"ok": True}
    if of_user:
        place, words = "", "the user"
    if switches:
        if level or unset or len(switches) > 1:
            raise UsageError(f"--{next(iter(switches))} goes without a level, and alone")
        return _switch(*next(iter(switches.items())), place, args.json)
    if level or unset:
        result["changed"] = _change(level, place, seconds)
    found, others = user_settings.in_force(NAME, checkout)
    if args.json:
        clients = {name: user_settings.described(one) for name, one in others.items()}
        show({**result, **user_settings.described(found), "checkout": checkout, "clients": clients})
        return 0
    value, meaning = user_settings.level_in_words(found)
    say(f"{value} in {checkout}, {user_settings.whose(found)}: {meaning}")
    for name, one in others.items():
        say(f"{one.value} for {name}, {user_settings.whose(one)}")
    merges = user_settings.in_force(MERGE, checkout)[0]
    if merges.value == "off":
        say(f"merging is off, {user_settings.whose(merges)}")
    records = user_settings.in_force(AUTHORSHIP, checkout)[0]
    if records.value == "on":
        say(f"the authors of commits are recorded in git notes, {user_settings.whose(records)}")
    if level and found.value != level:
        say(f"{level} is set for {words} now, and overridden here")
    return 0


def _switch(name: str, switch: str, place: str, as_json: bool) -> int:
    """Switch one of SWITCHES for the checkout `place`, or for the user if that is empty.

    An empty `switch` shows the setting as it is, but for the fence. Raises PersonOnly, UsageError.
    """
    said, effect, news = SWITCHES[name]
    if switch not in settings.WORDS[name] and (switch or name == FENCE):
        raise UsageError(f"--{name} wants on or off, and goes without a level")
    changed = False
    if switch:
        before, command = settings.in_file(name, place).value, f"swarm-mcp {NAME} --{name} {switch}"
        where = "in this checkout"
        if not place:
            where, command = "in all checkouts", f"{command} --user"
        is_lower = (name, before, switch) in ((FENCE, "on", "off"), (MERGE, "off", "on"))
        if is_lower or (name != FENCE and before != switch):
            require_person(command, effect.format(where=where), config_dir())
        changed = user_settings.change(name, switch, place)
        if is_lower and changed:
            tell_lowered(name, f"{news} (`{command}`)", bool(place))
    found = user_settings.in_force(name, user_settings.checkout_here())[0]
    if as_json:
        show({"ok": True, "changed": changed, name: user_settings.described(found)})
    else:
        say(f"{said} is {found.value} here, {user_settings.whose(found)}")
    return 0


def _seconds_of(text: str) -> int:
    """Return the seconds of a duration such as ``5m``. Raises UsageError."""
    unit = {"s": 1, "m": MINUTE, "h": HOUR}.get(text[-1:].lower())
    number = text if unit is None else text[:-1]
    if not number.isdecimal() or not 0 < (seconds := int(number) * (unit or 1)) <= LONGEST:
        raise UsageError(f"--for {text}: not a duration of up to 24 hours, such as 90s, 5m, 2h")
    return seconds


def _change(level: str, checkout: str, seconds: int = 0) -> bool:
    """Set the level for this checkout, or for the user if `checkout` is empty; an empty `level` removes the setting.

    seconds  the level holds that long, and then the one before; 0: until it is changed

    Return True if that changed anything. Raises PersonOnly if an agent lowers the level.
    """
    before = settings.in_file(NAME, checkout).value
    after = level or settings.without(NAME, checkout)
    is_lower = LEVELS.index(after) < LEVELS.index(before)
    limit = f" --for {seconds}s" if seconds else ""
    where, command = "in this checkout", f"swarm-mcp {NAME} {level or '--unset'}{limit}"
    if not checkout:
        where, command = "in all checkouts", f"{command} --user"
    if is_lower:
        effect = f"lowers the protection of all sessions {where} from {before} to {after}"
        require_person(command, effect, config_dir())
    if seconds:
        changed = user_settings.change_for_a_while(NAME, level, int(time.time()) + seconds, checkout)
    else:
        changed = user_settings.change(NAME, level, checkout)
    if is_lower and changed:
        tell_lowered(NAME, f"the level of protection is {after} now, and was {before} (`{command}`)", bool(checkout))
    return changed
