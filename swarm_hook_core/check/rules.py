"""The rules for a tool call, in order.

`RULES` are asked from top to bottom, up to the first one that denies. Each is a function from a Check to a Verdict, or
to None if it has nothing to say. `AFTERWARDS` follow once the verdict stands. The order matters:

- Protections come first: they hold for a session that is alone, and without a store.
- Claims come before locks. Of two sessions that write a file at the same moment, the second one then meets the claim of
  the first.
- How fresh shared locks are is read before the locks. If they were fresh then, the locks found are all there are.
- Uncommitted work comes last: it is the most expensive question, and a denied call leaves no trace.
"""

import os
import time

from swarm_hook_core.change import EDIT
from swarm_hook_core.check import OTHERS_CHANGES, PERSONS_CHANGES, Check
from swarm_hook_core.hooks import Verdict, joined
from swarm_hook_core.state import absolute_setting, has_claims, is_watching, shares_locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from swarm_hook_core.check import Writes
    from swarm_hook_core.denial import Denial
    from swarm_hook_core.lookup import Held, Peers, Session
    from swarm_hook_core.shell.model import Effects
    from swarm_hook_core.traces import Trail


def judge(check: Check) -> "Verdict | None":
    """Return the Verdict on a call, or None if it needs none; do what follows from it.

    Raises any fault of a rule that does not stand alone, and NotChecked (``fail_closed``).
    """
    verdict = ask(check)
    # A denied attempt on a protection concerns no other session.
    if verdict is not None and not (verdict.denial is not None and verdict.denial.deed):
        for follow in AFTERWARDS:
            follow(check, verdict)
    return verdict


def ask(check: Check) -> "Verdict | None":
    """Ask the rules, and do nothing about their verdict."""
    for rule in RULES:
        found = rule.ask(check)
        if check.is_over:
            return None
        if found is not None:
            check.verdict.add(found)
            if found.denial is not None:
                break
    return check.verdict


class Rule:
    """A function of a Check, and the treatment of its faults.

    part     the name under which a fault is recorded, and the next rules are asked; empty: the fault ends the check
    unknown  the facts that are unknown after a fault, which denies the call if a person wants that (``fail_closed``)
    """

    __slots__ = ("function", "part", "unknown")

    def __init__(self, function: "Callable[[Check], Verdict | None]", part: str = "", unknown: str = ""):
        self.function = function
        self.part = part
        self.unknown = unknown

    def ask(self, check: Check) -> "Verdict | None":
        """Return the rule's Verdict, or None."""
        try:
            return self.function(check)
        except Exception as error:
            if not self.part:
                raise
            check.failed(self.part, self.unknown, error)
            return None


# ------------------------------------------------------------------------------------------------ the rules


def harmless(check: Check) -> None:
    """Let a call pass that cannot write."""
    if not check.writes.are_possible():
        if not check.call.tool:
            raise ValueError("the payload names no tool")
        check.end()


def protections(check: Check) -> "Verdict | None":
    """Protect the files and commands that keep sessions apart: swarm's settings, its store, its hooks, the guard.

    They are a person's alone. A call whose text names nothing of the kind is not looked at, unless it is read anyway.
    """
    writes, call = check.writes, check.call
    try:
        if writes.has_names:
            if not any(_may_be_protected(os.path.realpath(os.path.join(*place))) for place in writes.named):
                return None
            changes, effects = writes.changes, None
        else:
            is_suspect = not check.is_part and any(map(_speaks_of_protection, _texts_in(call.input)))
            if not is_suspect and not check.is_beside_others:
                return None
            changes, effects = [], writes.effects
    except ValueError:  # the rule about locks raises it again
        return None
    from swarm_hook_core import protected

    try:
        return _denied(protected.denial_of(call, changes, effects))
    except Exception as error:
        check.failed("protected", "", error)
        return None


def alone(check: Check) -> "Verdict | None":
    """Let a shell call pass unread if no other session has a lock, a claim or a change in its reach.

    Its text is noted, for a session that comes later.
    """
    check.find_session()
    if check.is_joined:
        return None
    if check.is_known and not _is_left_unread(check, check.trail):
        check.look_again()
        return _protections_again(check)
    check.end()
    return None


def own_marks(check: Check) -> None:
    """Mark the session's own writes while other calls are watched, so that the watch does not blame those calls."""
    if check.is_question or not check.session.instance_id or not is_watching():
        return
    from swarm_hook_core.watching import records

    files = check.writes.paths if check.writes.has_names else ()
    key = records.call_key(check.config.runtime_name, check.call)
    records.mark_own(check.session.instance_id, files, key, time.time_ns(), check.call.agent)


def claims(check: Check) -> None:
    """Claim the files of the call for this turn, at level `turn`; find the claims of other sessions."""
    trail = check.trail
    if trail is None or not trail.is_by_turn or check.is_question:
        trail = None  # the call claims nothing itself
    if trail is None and not has_claims():
        return
    from swarm_hook_core.traces.claimed import Claimed

    check.claimed = Claimed(check.config.runtime_name, check.call, check.reader, int(check.now * 1e9))
    if trail is not None:
        check.claimed.claim(trail.claims_of(check.effects))


def shared_trees(check: Check) -> None:
    """Read how fresh the locks of other machines are here, if a clone on this machine shares its locks with them."""
    if shares_locks():
        check.shared_trees = check.reader.shared_trees()


def locks(check: Check) -> "Verdict | None":
    """Protect locked and claimed files from writes of other sessions, and of other agents of the session."""
    denial = denied_by_lock(check.writes, check.session, check.peers, check.now)
    if denial is not None or check.writes.has_names:
        return _denied(denial)
    return _beside_locks(check, with_kernel=True)


def kernel(check: Check) -> "Verdict | None":
    """Have the kernel hold locked files while a command runs that cannot be read, if a person wants that.

    If that cannot be arranged, the command is judged again without it.
    """
    verdict = check.verdict
    if verdict.plan is None or check.is_part:
        return None
    from swarm_hook_core.kernel import planning

    try:
        verdict.entry = planning.leave(check.config, check.call, verdict.plan)
        return None
    except (OSError, ValueError) as error:  # a full disk; text that no file can hold
        check.failed("kernel", "", error)
        verdict.plan, verdict.notice = None, ""
        return _beside_locks(check, with_kernel=False)


def team(check: Check) -> "Verdict | None":
    """Warn of locks of other machines that may be unknown here."""
    if not check.shared_trees:
        return None
    from swarm_hook_core.team import judge

    return judge(check)


def fence(check: Check) -> "Verdict | None":
    """Stop a session of a linked work tree once before it writes into another work tree of its repository."""
    if not check.is_in_linked_tree():
        return None
    from swarm_hook_core import fence as rule

    return rule.judge(check)


def persons_work(check: Check) -> "Verdict | None":
    """Protect a person's uncommitted work from a call that would lose it, also if the session is alone."""
    writes, effects = check.writes, check.effects
    if writes.has_names:
        if not any(how != EDIT and os.path.lexists(os.path.join(*place)) for *place, how in check.writes.changes):
            return None
    elif effects is None or not (effects.git or effects.trees or any(one.how != EDIT for one in effects.writes)):
        return None
    from swarm_hook_core.persons.verdict import judge as of_person

    trail = check.trail
    if trail is None and not check.is_question:
        trail = check.unnoted_trail()
    if trail is None:
        return None
    return of_person(trail, effects, check.reader, check.now)


def uncommitted_work(check: Check) -> "Verdict | None":
    """Protect changes of other sessions that are not committed, and their HEAD; note the changes of this call.

    By level (``traces``), a call that would lose such a change, or move HEAD under them (``head``), is denied or
    warned.
    """
    trail = check.trail
    if trail is None:
        return None
    if not check.writes.has_names and check.effects is None and _is_left_unread(check, trail):
        return None
    effects = check.writes.effects
    neighbours = _neighbours(check, effects)
    if not neighbours and trail.note_alone(effects) and _is_left_alone(check, trail):
        return None
    from swarm_hook_core.traces.verdict import judge as by_level

    denial, words = by_level(check.session, trail, effects, check.reader, check.now, neighbours)
    _leave(check, trail)
    verdict = Verdict(denial, words)
    verdict.owners = trail.owners
    return verdict


RULES = (
    Rule(harmless),
    Rule(protections),
    Rule(alone),
    Rule(own_marks, part="watch"),
    Rule(claims, part="traces", unknown=OTHERS_CHANGES),
    Rule(shared_trees),
    Rule(locks),
    Rule(kernel),
    Rule(team, part="team", unknown="what is known of the team's locks"),
    Rule(fence, part="traces"),
    Rule(persons_work, part="persons", unknown=PERSONS_CHANGES),
    Rule(uncommitted_work, part="traces", unknown=OTHERS_CHANGES),
)


# ------------------------------------------------------------------------------------------------ afterwards


def count(check: Check, verdict: Verdict) -> None:
    """Count a denial. The third of one file within minutes is said in fewer words, and the holder is told."""
    if verdict.denial is None:
        return
    from swarm_hook_core import storms

    try:
        storms.weigh(verdict.denial, check.session, check.call, check.peers, check.now)
    except Exception as error:  # it is denied, though not counted
        check.core.record_fault("pre_tool_use", error)


def drop_plan(check: Check, verdict: Verdict) -> None:
    """Drop the kernel's plan for a denied call."""
    if verdict.denial is None or verdict.plan is None or check.is_part:
        return
    from swarm_hook_core.kernel import planning, plans

    plans.drop(check.call.session_id, planning.name_of_call(check.config, check.call))
    verdict.plan, verdict.entry = None, ""


def drop_claims(check: Check, verdict: Verdict) -> None:
    """Take back the claims of a call that is denied."""
    if verdict.denial is not None and check.claimed is not None:
        check.claimed.take_back()


def merge(check: Check, verdict: Verdict) -> None:
    """Put merged texts into the call's input, and tell its model."""
    merges = check.merges
    if verdict.denial is not None or not merges:
        return
    from swarm_hook_core.labels import token
    from swarm_hook_core.traces import merged_writes

    verdict.input = merged_writes.input_with(check.config, check.call, merges.values())
    words = merged_writes.words(merges, token(check.session.label, "identity"))
    verdict.notice = joined(words, verdict.notice)


def watch_command(check: Check, verdict: Verdict) -> None:
    """Have locked files compared after a command that may write them unseen."""
    if verdict.denial is not None or not verdict.watched or check.is_part:
        return
    from swarm_hook_core.watching import watch

    watch.begin(check.config, check.call, verdict.watched, check.now)


def watch_edit(check: Check, verdict: Verdict) -> None:
    """Have locked files around an edit compared at the next hook: another plugin may run a formatter after it."""
    if verdict.denial is not None or not check.writes.has_names or check.is_part or not check.peers.any():
        return
    from swarm_hook_core.watching import edits, watch

    core = check.core
    breaches = edits.begin(check.config, check.call, check.session, check.peers, check.now)
    if breaches:
        words = watch.report(check.config, check.call, breaches, core.registrar.command, core.driver)
        verdict.notice = joined(words, verdict.notice)


def tell_news(check: Check, verdict: Verdict) -> None:
    """Tell the session of its locks and its mail; renew its leases if it is time."""
    if not check.peers.own_id:
        return
    words = joined(_news_of_locks(check), check.core.mail_for(check.call, check.peers.reader, check.session))
    if words and verdict.denial is not None:
        verdict.denial.reason += "\n" + words  # a client that is denied a call is told nothing else
    elif words:
        verdict.notice = joined(words, verdict.notice)


def shorten(check: Check, verdict: Verdict) -> None:
    """Say a denial in few words to a client that has no room for more."""
    if verdict.denial is not None:
        check.core.shorten(verdict.denial, check.call, check.session)


AFTERWARDS = (count, drop_plan, drop_claims, merge, watch_command, watch_edit, tell_news, shorten)


# ------------------------------------------------------------------------------------------------ parts of rules


def _protections_again(check: Check) -> "Verdict | None":
    """Ask about protections once more, since the call has to be read after all."""
    if check.is_joined:
        return protections(check)
    check.end()
    return None


def _denied(denial: "Denial | None") -> "Verdict | None":
    return Verdict(denial) if denial is not None else None


def denied_by_lock(writes: "Writes", session: "Session", peers: "Peers", now: float) -> "Denial | None":
    """Return the Denial of a call that names a file under a lock of another session, or None.

    Raises ValueError if the input of a write tool cannot be read.
    """
    targets = writes.named
    # Mostly no other session has a lock at all. Then no question is asked about any of the files.
    if not targets or (writes.has_names and not peers.any()):
        return None
    from swarm_hook_core.collisions import first_collision

    collision = first_collision(session, targets, peers)
    if collision is None:
        return None
    from swarm_hook_core.denial import of_lock

    return of_lock(collision, session, writes.call, peers, now)


def _beside_locks(check: Check, with_kernel: bool) -> "Verdict | None":
    """Return the Verdict on the effects of a call beside the locks in its reach, or None."""
    from swarm_hook_core import opaque_calls

    call, session, peers = check.call, check.session, check.peers
    if not peers.any() or not opaque_calls.concerns(call, session, peers):
        return None
    effects = check.writes.effects
    if effects is None:
        return None
    return opaque_calls.judge(check.config, session, call, effects, peers, check.now, with_kernel)


def _is_left_unread(check: Check, trail: "Trail | None") -> bool:
    """Leave the text of a call that was not read. Return True if the session is alone here, still after that."""
    if trail is None:
        return True
    try:
        trail.note_unread()
    except Exception as error:  # a fault in the traces of a session that is alone
        check.core.record_fault("traces", error)
        return True
    return _is_left_alone(check, trail)


def _is_left_alone(check: Check, trail: "Trail") -> bool:
    """Leave the traces of a call. Return True if the session is alone here, still after that.

    The look afterwards finds a session that has begun a call at the same moment.
    """
    _leave(check, trail)
    try:
        return not trail.has_company()
    except Exception as error:  # a folder that cannot be listed
        check.core.record_fault("traces", error)
        return True


def _neighbours(check: Check, effects: "Effects | None") -> "dict[str, list[Held]]":
    """Return the sessions that share a HEAD with this one (``head``), if the call has git commands or removes files."""
    if effects is None or not (effects.git or any(write.path.endswith(".lock") for write in effects.writes)):
        return {}
    return check.neighbours


def _leave(check: Check, trail: "Trail") -> None:
    try:
        trail.leave()
    except Exception as error:  # a full disk: the call itself was checked
        check.core.record_fault("traces", error)


def _news_of_locks(check: Check) -> str:
    peers, call = check.peers, check.call
    try:
        leases, has_news = peers.reader.leases_and_news(peers.own_id)
        if not leases and not has_news:
            return ""
        from swarm_hook_core import lease_renewal

        return lease_renewal.renew(check.config, call.session_id, leases, has_news, check.core.coordinator)
    except Exception as error:  # the next call renews them
        check.core.record_fault("pre_tool_use", error)
        return ""


# Names and words of a call that may concern a protection. Few calls have one, and only they load ``protected``.
_SETTINGS = ("settings.json", "config.toml", "config.yaml", "hooks.json", "mcp.json", "_marketplaces.json",
             "_plugins.json", "-enablement.json", "disabled-hooks")  # fmt: skip
_WORDS = ("swarm-mcp", "swarm_mcp", "swarm-locks", ".swarm", "swarm.db", "swarm@", "SWARM_", "swarm-hooks", "hookspath",
          "hooksPath", ".git/hooks", ".git/config", *_SETTINGS)  # fmt: skip
_REMOVING = ("rm ", "mv ", "delete", "rmtree", "rm\t", "rename", "remove", "unlink")
_PLACES = ("~", "HOME", ".local", ".config", ".claude", ".codex", "XDG_")


def _may_be_protected(path: str) -> bool:
    """Return True if absolute `path`, without links, may be a file that keeps sessions apart."""
    if "swarm" in path or "/.git/" in path or path.endswith(_SETTINGS):
        return True
    return any(path.startswith(os.path.realpath(place)) for place in _chosen_places())


def _speaks_of_protection(text: str) -> bool:
    """Return True if the text of a command may concern such a file. Costs a few searches."""
    if any(word in text for word in _WORDS):
        return True
    if any(word in text for word in _REMOVING) and (any(place in text for place in _PLACES) or _names_home(text)):
        return True
    return any(os.path.basename(place) in text for place in _chosen_places())


def _names_home(text: str) -> bool:
    """Return True if `text` has the home folder's path, and no ordinary name behind it: checkouts lie below it, too."""
    home = os.path.expanduser("~").rstrip("/")
    rests = text.split(home)[1:] if home else ()
    return any(not (rest[:1] == "/" and rest[1:2].isalnum()) for rest in rests)


def _chosen_places() -> "list[str]":
    """Return swarm's folders and files that a setting has moved; their names need not contain `swarm`."""
    return [path for path in map(absolute_setting, ("SWARM_STATE_DIR", "SWARM_CONFIG_DIR", "SWARM_DB_PATH")) if path]


def _texts_in(given: object, depth: int = 6) -> "Iterator[str]":
    """Yield the texts in a tool's input."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, (dict, list)) and depth:
        for value in given.values() if isinstance(given, dict) else given:
            yield from _texts_in(value, depth - 1)
