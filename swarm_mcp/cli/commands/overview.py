"""The sessions of a checkout and its state at a glance."""

from __future__ import annotations

from itertools import islice

from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.liveness import SERVER_RUNTIME
from swarm_hook_core.untrusted_text import quoted
from swarm_mcp.acting_session import find_acting_session, viewer_identity
from swarm_mcp.answer_size import fitted, printed
from swarm_mcp.cli import lock_columns
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, START, TOGETHER, Arguments, Usage, verb
from swarm_mcp.cli.lock_columns import with_waiting
from swarm_mcp.cli.output import listing, presence, say, show, state_of
from swarm_mcp.cli.pages import PAGES, printed_page, say_rest
from swarm_mcp.cli.reader import HIDDEN, Reader
from swarm_mcp.domain.lock import Denial
from swarm_mcp.domain.session import TEAM, Session, onlooker
from swarm_mcp.domain.task import TERMINAL
from swarm_mcp.faults import recorded_faults
from swarm_mcp.folders import current_scope
from swarm_mcp.overview.refusal_words import why_refused
from swarm_mcp.store import Store
from swarm_mcp.views import name_of, public_instance, registration, short
from swarm_mcp.visibility import veiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.overview.timeline import Happening, Refused

DAY_SECONDS = 86400
HOUR_SECONDS = 3600
LOCKS, SESSIONS, STORMS, REFUSED = 20, 100, 20, 5  # shown by `status`


@verb(
    Usage(ABSOLUTE, *ACTING),
    group=START,
)
def status(args: Arguments) -> int:
    """status: sessions, locks and recent denials at a glance

    Shows up to 100 sessions, and up to 20 locks: first those of your own session, then those with a queue, then the
    newest. `swarm-mcp instances` and `swarm-mcp locks` list all of them. Tasks, messages and shared values are counted.
    Last come the sessions that were denied the same file ten times or more within minutes, and the five files of the
    last denials in the past hour, with the lock or the uncommitted change behind each.

    A session is guarded if its client runs our hooks; `swarm-mcp doctor` proves that locks are enforced.

    In a clone that has joined a team it shows if the data about other machines is fresh, and lists the machines: their
    sessions, their connection, and the number of changes they have not received yet.

    With --json, `instance_count` and `lock_count` are the totals, and the repeated denials are `storms`: [{"file",
    "times", "denied_at", "instance_id", "label", "holder_id", "holder_label"}]. The files of the last denials are
    `refusals`: [{"file", "events", "at", "instance_id", "name", "holder_id", "holder_name", "reason"}], with the reason
    in words.

    example: swarm-mcp status
    """
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        now = store.now()
        viewer = viewer_identity(store, args)
        sessions = veiled([row for _, row in islice(store.instances.walk(scope), SESSIONS)], viewer)
        here = len(sessions) if len(sessions) < SESSIONS else store.instances.count(scope)
        reader = Reader(args, store, viewer)
        me = store.instances.get(reader.own_id) if reader.own_id else None
        waiting = store.queue.lengths()
        held, locks = store.locks.foremost(scope, viewer, LOCKS, me.id if me else "", waiting)
        locks = list(with_waiting(locks, waiting))
        tasks = store.tasks.counts(onlooker(viewer, scope))
        messages = store.messages.counts(scope, now - DAY_SECONDS, viewer)
        values = store.kv.count(scope, f"identity:{viewer}" if viewer else None)
        storms = [_seen(one, viewer) for one in store.storms.known(scope, STORMS)]
        from swarm_mcp.overview.machines import team_now  # The other verbs here do not need these two.
        from swarm_mcp.overview.timeline import refused_files

        team = team_now(store, scope)
        refused = refused_files(store, scope, reader.people, now - HOUR_SECONDS, REFUSED)
        names = {storm[name]: reader.called(storm[name]) for storm in storms for name in ("instance_id", "holder_id")}
    faults = len([fault for fault in recorded_faults() if fault["at"] > now - DAY_SECONDS])
    open_tasks = {status: number for status, number in tasks.items() if number and status not in TERMINAL}
    if args.json:
        me_shown = public_instance(me) if me else None
        shown = [
            {**public_instance(row), "state": row.state, "last_seen": row.last_seen, "guarded": _guarded(row)}
            for row in sessions
        ]
        numbers = {"open_tasks": open_tasks, "tasks": tasks, "messages": messages, "values": values, "faults": faults}
        numbers = {"lock_count": held, "instance_count": here, **numbers}
        numbers.update({"team": team.shown} if team else {})
        lists = {
            "instances": shown,
            "locks": locks,
            "storms": storms,
            "refusals": [_of_refused(one) for one in refused],
        }
        show(fitted({"scope": scope, "me": me_shown, **lists, **numbers}, measure=printed))
        return 0
    say(f"scope {scope}")
    say(f"{_count(here, 'session')}, {_count(held, 'lock')}, {_count(values, 'value')}")
    if team:
        say(f"team: {team.repository}, {team.freshness}" + ("" if team.is_fresh else ": swarm-mcp team status"))
    by_status = ", ".join(f"{number} {status}" for status, number in tasks.items() if number)
    say(f"tasks: {by_status or 'none'}")
    say(f"messages: {messages['unread']} unread, {messages['recent']} in the last day")
    cells, plain = [], []
    for row in sessions:
        who, state, seen = reader.session(row), row.state or "live", reader.when(row.last_seen or row.heartbeat)
        if row.runtime == TEAM:  # when it was seen there is not told here
            state, seen = "live", "elsewhere"
        bare = "" if _guarded(row) else "not guarded"
        cells.append((who, state, seen, token(row.label or "", "role"), bare))
        plain.append(
            f"  {who}  {state:<8} {'' if row.runtime == TEAM else 'seen '}{seen}{f'  ({bare})' if bare else ''}"
        )
    listing(("session", "state", "seen", "role", ""), cells, plain)
    if here > len(sessions):
        say(f"  and {_count(here - len(sessions), 'more session')}: swarm-mcp instances")
    if team and team.machines:
        shown_machines = [(one.name, one.person, _count(one.sessions, "session"), one.state) for one in team.machines]
        plain = [f"  machine  {'  '.join(filter(None, row))}" for row in shown_machines]
        listing(("machine", "person", "sessions", "state"), shown_machines, plain)
    cells, plain = [], []
    for lock in locks:
        note = f" ({quoted(lock['content'])})" if lock["content"] else ""
        file, who, since = reader.path(lock["file"]), reader.holder(lock), reader.when(lock["created_at"])
        cells.append((file, who, since, *lock_columns.cells(lock, now), lock["content"]))
        plain.append(f"  locked  {file}  by {who}, {since}{note}{lock_columns.suffix(lock, now)}")
    listing(("file", "who", "since", *lock_columns.HEADERS, "note"), cells, plain)
    if held > len(locks):
        say(f"  and {_count(held - len(locks), 'more lock')}: swarm-mcp locks")
    for storm in storms:
        who, holder = names[storm["instance_id"]], names[storm["holder_id"]]
        file, last = reader.path(storm["file"]), reader.when(storm["denied_at"])
        say(f"  refused {storm['times']} times  {file}  to {who}, held by {holder}, last {last}")
    for one in refused:
        newest, times = one.last, f" ({one.times} times)" if one.times > 1 else ""
        who = f"  refused  {reader.path(newest.file)}  to {newest.name}{times}, {reader.when(newest.at)}"
        say(f"{who}: {_reason(newest)}")
    if faults:
        say(f"  {_count(faults, 'fault')} in the last day: swarm-mcp doctor")
    if not here and not held:
        say("No sessions and no locks here. Next steps:")
        say("  start an agent here: it takes part by itself after swarm-mcp install")
        say("  lock a file yourself: swarm-mcp lock FILE --note WHY")
        say("  see that locks are enforced: swarm-mcp doctor, or swarm-mcp demo")
    return 0


def _seen(storm: Denial, viewer: str) -> dict:
    """A storm as `viewer` may see it: sessions of another identity have no labels."""
    names = ("file", "times", "denied_at", "instance_id", "label", "holder_id", "holder_label")
    shown = {**{name: storm[name] for name in names}, "file": storm.path or storm.file}
    for name, instance in (("label", "instance_id"), ("holder_label", "holder_id")):
        known = same_circle(viewer, token(shown[name] or "", "identity"))
        shown[name] = shown[name] or short(shown[instance]) if known else None
    return shown


def _reason(last: Happening) -> str:
    """The reason of a denial in words, or the note of another event."""
    if last.what != "denied":
        return last.note
    return why_refused(last.details, last.at, last.other_name) or f"held by {last.other_name or HIDDEN}"


def _of_refused(one: Refused) -> dict:
    """A refused file for machines."""
    last = one.last
    shown = {"file": last.file, "events": one.times, "at": last.at, "instance_id": last.instance_id, "name": last.name}
    return {**shown, "holder_id": last.other, "holder_name": last.other_name, "reason": _reason(last)}


def _guarded(row: Session) -> bool:
    """Return True if hooks registered this session; a bare MCP connection or command has none."""
    return row.last_seen is not None and row.runtime != SERVER_RUNTIME


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


@verb(
    Usage(*PAGES, ABSOLUTE, *ACTING),
    group=TOGETHER,
)
def instances(args: Arguments) -> int:
    """instances: the sessions of this scope

    example: swarm-mcp instances --scope ~/src/shop
    """
    scope = current_scope(args.value("--scope"))
    rows: list[Session] = []
    with Store(read_only=True) as store:
        now, viewer = store.now(), viewer_identity(store, args)
        reader = Reader(args, store, viewer)

        def shown(row: Session) -> dict:
            rows.extend(veiled([row], viewer))
            return store.panes.with_session(public_instance(rows[-1]))

        found = printed_page(
            args, lambda after: store.instances.walk(scope, after), shown, lambda: store.instances.count(scope)
        )
    if args.json:
        show(found.rows)
        say_rest(args, found)
        return 0
    cells, plain = [], []
    for row, public in zip(rows, found.rows):
        pane = public.get("pane_id") or ""
        who, folder = reader.session(row), reader.path(row.directory)
        seen = reader.when(row.last_seen or row.heartbeat)
        cells.append((who, short(row.id), state_of(row, now), seen, row.pid, pane, folder))
        line = f"  {short(row.id)}  {who}  pid={row.pid}  {presence(row, now)}  {folder}"
        plain.append(f"{line}  pane={pane}" if pane else line)
    listing(
        ("session", "id", "state", "seen", "pid", "pane", "directory"), cells, plain,
        title=f"scope: {scope}", empty=f"(no instances in scope {scope})",
    )  # fmt: skip
    say_rest(args, found)
    return 0


@verb(
    Usage(*ACTING),
    group=TOGETHER,
)
def whoami(args: Arguments) -> int:
    """whoami: the session this command would act as

    The session is WHO, if given; else SWARM_MCP_INSTANCE_ID; else the session around this shell; else the only session
    of the scope.

    example: swarm-mcp whoami --json
    """
    with Store(read_only=True) as store:
        row = find_acting_session(store, args, reads=True)
    if args.json:
        show(registration(row))
    else:
        say(f"{row.id}  {name_of(row)}  scope={row.scope}")
    return 0
