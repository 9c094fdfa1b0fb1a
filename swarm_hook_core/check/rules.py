"""The rules for a tool call, in order.

`RULES` are asked from top to bottom, up to the first one that denies. Each is a function from a Check to a Verdict, or
to None if it has nothing to say. ``rules`` follow once the verdict stands. The order matters:

- `harmless` comes first: nothing is looked up for a call that cannot write.
- Protections come next: they hold for a session that is alone, without a store, and while swarm is switched off.
- `alone` finds the session and the store. Rules before it know neither; those after it are asked only with both.
- `turn_files` comes before locks. Of two sessions that write a file at the same moment, the second one then meets the
  first.
- How fresh shared locks are is read before the locks. If they were fresh then, the locks found are all there are.
- The kernel comes after the locks: their verdict has the plan. Without the kernel they are asked once more.
- Uncommitted work comes last: it is the most expensive question, and a denied call leaves no trace.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from swarm_hook_core import EDIT, REMOVE, state
from swarm_hook_core.check import OTHERS_CHANGES, PERSONS_CHANGES, Check
from swarm_hook_core.config import SHELL_TOOLS
from swarm_hook_core.hooks import ToolCall, Verdict, joined
from swarm_hook_core.lookup import Held, Peers, Session
from swarm_hook_core.paths import all_keys, git_root, real_path
from swarm_hook_core.state import (
    absolute_setting,
    end_by_mark,
    has_settings,
    has_turn_files,
    hook_starter,
    is_watching,
    local_store,
    shares_locks,
)
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.untrusted_text import token
from swarm_hook_core.watching import records

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.core import HookCore
    from swarm_hook_core.denial import Denial
    from swarm_hook_core.shell.model import Effects, Write
    from swarm_hook_core.traces.versions.stored import Kept


def judge(check: Check) -> Verdict | None:
    """Return the Verdict on a call, or None if it needs none; do what follows from it.

    Raises any fault of a rule that does not stand alone, and NotChecked (``fail_closed``).
    """
    verdict = ask(check)
    if check.call.tool in SHELL_TOOLS and (verdict is None or verdict.denial is None) and not check.is_part:
        _expect_failure(check.core, check.call)
    if verdict is None or (verdict.denial is not None and verdict.denial.deed):
        return verdict  # a denied attempt on a protection concerns no other session

    for follow in AFTERWARDS:
        follow(check, verdict)
    return verdict


def _expect_failure(core: HookCore, call: ToolCall) -> None:
    """Have the end of a test or a build looked at."""
    from swarm_hook_core.check import may_build

    if not call.session_id or not may_build(call):
        return
    from swarm_hook_core import failures

    try:
        failures.expect(core.config, call)
    except OSError as error:  # a full disk: nothing is said if the command fails
        core.record_fault("failures", error)


def ask(check: Check) -> Verdict | None:
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


def beside_locks(check: Check, error: BaseException) -> Verdict | None:
    """Return the Verdict on a call after its check ended in `error`: it says so, and locked files are watched.

    None if no other session has a lock in its reach, or that is not known either.
    """
    from swarm_hook_core.denial import Notice, without_owner
    from swarm_hook_core.wording import named_locks

    config, why = check.config, state.describe(error)
    try:
        session, locks = _locks_in_reach(check)
        if session is None or not locks:
            return None
        named = named_locks(locks, token(session.label, "identity"), session.instance_id)
    except Exception as second:
        if state.describe(second) != why:
            check.core.record_fault("pre_tool_use", second)
        return None
    words = (
        f"swarm: this call could not be checked ({why[:300]}), and other sessions hold {named}. It goes ahead, but it"
        " must leave those files alone, and they are compared afterwards. `swarm-mcp doctor` in a terminal says how to"
        " mend it."
    )
    from swarm_hook_core.watching import watch

    watch.begin(config, check.call, locks, time.time(), _kept)
    check.core.record_fault("pre_tool_use", error)
    verdict = Verdict(None, words, locks, failed=True)
    verdict.noted = [Notice(locks[0].file, without_owner("unchecked", "write", why), words)]
    return verdict


def _locks_in_reach(check: Check) -> tuple[Session | None, list[Held]]:
    """Return the session, and the locks of others around its folder or by name in the call."""
    from swarm_hook_core.lookup.sqlite import StoreReader
    from swarm_hook_core.opaque_calls import shell_text
    from swarm_hook_core.registration import session_of_call

    config, call, file = check.config, check.call, local_store()
    if not file:
        return None, []
    reader = StoreReader(file, check.core.driver, waits=True)
    session = reader.session(config.runtime_name, call.session_id) or session_of_call(config, call, "")
    peers = Peers(reader, session.instance_id, time.time(), call.agent)
    folders = [call.folder, *map(os.path.dirname, check.writes.paths)]
    roots = dict.fromkeys(key for folder in folders for key in all_keys(session, git_root(folder), "/"))
    found = peers.around(list(roots))
    command = shell_text(call.tool, call.input)
    if command:
        found += [held for held in peers.under(["/"]) if held.file in command or os.path.dirname(held.file) in command]
    return session, list({held.mark: held for held in found}.values())


class Rule:
    """A function of a Check, and the treatment of its faults.

    part     the name under which a fault is recorded, and the next rules are asked; empty: the fault ends the check
    unknown  the facts that are unknown after a fault, which denies the call if a person wants that (``fail_closed``)
    """

    __slots__ = ("function", "part", "unknown")

    def __init__(self, function: Callable[[Check], Verdict | None], part: str = "", unknown: str = ""):
        self.function = function
        self.part = part
        self.unknown = unknown

    def ask(self, check: Check) -> Verdict | None:
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
        if end_by_mark(hook_starter(check.config.runtime_name))[0] and check.trail is not None:
            _leave(check, check.trail)  # else the end of this call would count as that of the one before
        check.end()


def protections(check: Check) -> Verdict | None:
    """Protect the files and commands that keep sessions apart: swarm's settings, its store, its hooks, the guard.

    They are a person's alone. A call whose text names nothing of the kind is not looked at, unless it is read anyway.
    """
    writes, call = check.writes, check.call
    try:
        if writes.has_names:
            if not any(_may_be_protected(real_path(os.path.join(*place))) for place in writes.named):
                return None
            changes, effects = writes.changes, None
        else:
            is_suspect = not check.is_part and any(map(_speaks_of_protection, _texts_in(call.input)))
            if not is_suspect and not check.is_beside_others:
                return None
            changes, effects = [], writes.effects
            if effects is None or not (effects.deeds or effects.writes or effects.trees):
                return None
            if not (is_suspect or effects.deeds or effects.trees) and not any(map(_writes_protected, effects.writes)):
                return None
    except ValueError:  # the rule about locks raises it again
        return None
    from swarm_hook_core import protected

    try:
        return _denied(protected.denial_of(call, changes, effects))
    except Exception as error:
        check.failed("protected", "", error)
        return None


def silent(check: Check) -> None:
    """Let every call pass while a person has switched swarm off here (`swarm-mcp protect off --for`)."""
    if not has_settings():
        return
    from swarm_hook_core.settings import is_silent

    if is_silent(check.call.folder):
        check.end()


def alone(check: Check) -> Verdict | None:
    """Let a shell call pass unread if no other session has a lock, a file for its turn or a change in its reach.

    Its text is noted, for a session that comes later.
    """
    check.find_session()
    if check.is_joined:
        return None
    if check.is_known and not _is_left_unread(check, check.trail):
        if check.look_again():
            return protections(check)  # the call has to be read after all
        if check.trail is not None:  # nor is there a store to ask by now: what was withdrawn is noted anew
            check.trail.note_unread()
            _leave(check, check.trail)
    check.end()
    return None


def own_marks(check: Check) -> None:
    """Mark the session's own writes while other calls are watched, so that the watch does not blame those calls."""
    if check.is_question or not check.session.instance_id or not is_watching():
        return

    files = check.writes.paths if check.writes.has_names else ()
    key = records.call_key(check.config.runtime_name, check.call)
    records.mark_own(check.session.instance_id, files, key, time.time_ns(), check.call.agent)


def turn_files(check: Check) -> None:
    """Take the files of the call for its turn, at level `turn`; find those that other sessions have for theirs."""
    trail = check.trail
    if trail is None or not trail.is_by_turn or check.is_question:
        trail = None  # the call takes nothing itself
    if trail is None and not has_turn_files():
        return
    from swarm_hook_core.traces.turn_files import TurnFiles

    check.turn_files = TurnFiles(check.config.runtime_name, check.call, check.reader, int(check.now * 1e9))
    if trail is not None:
        check.turn_files.take(trail, [target[1] for target in trail.targets_of(check.effects_if_read)])


def shared_trees(check: Check) -> None:
    """Read how fresh the locks of other machines are here, if a clone on this machine shares its locks with them.

    A machine that has just slept asks for them first.
    """
    if shares_locks():
        check.shared_trees = check.glance.shared_trees()
    if check.shared_trees:
        from swarm_hook_core.team import hear_anew

        hear_anew(check)


def locks(check: Check) -> Verdict | None:
    """Protect files that other sessions, or other agents of the session, have locked or have for their turns."""
    has_names = bool(check.writes.named) and check.writes.has_names  # raises ValueError for an unreadable input
    if not check.meets_locks():  # mostly; then no question is asked about any of the files
        return None
    from swarm_hook_core.collisions import denied_by_lock

    denial = denied_by_lock(check.writes, check.session, check.peers, check.now)
    if denial is not None or has_names:
        return _denied(denial)
    return _beside_locks(check, with_kernel=True)


def kernel(check: Check) -> Verdict | None:
    """Have the kernel hold locked files while a command runs that cannot be read, if a person wants that.

    If that cannot be arranged, the command is judged again without it.
    """
    verdict = check.verdict
    if verdict.plan is None or check.is_part:
        return None
    from swarm_hook_core.kernel import planning

    try:
        verdict.entry = planning.leave_for_call(check.config, check.call, verdict.plan)
        return None
    except (OSError, ValueError) as error:  # a full disk; text that no file can hold
        check.failed("kernel", "", error)
        verdict.plan, verdict.notice = None, ""
        return _beside_locks(check, with_kernel=False)


def team(check: Check) -> Verdict | None:
    """Warn of locks of other machines that may be unknown here."""
    if not check.shared_trees:
        return None
    from swarm_hook_core.team import hear_anew, judge

    if hear_anew(check):  # the machine has slept since it looked for locks
        check.forget_locks()
        found = locks(check)
        if found is not None and found.denial is not None:
            return found
    return judge(check)


def tenants(check: Check) -> Verdict | None:
    """Stop a call once before it removes or moves a folder in which another live session works."""
    effects = check.effects_if_read
    if effects is None or not (effects.moves or _may_evict(effects)):
        return None
    from swarm_hook_core import tenants as rule

    return rule.judge(check, effects) or rule.told_of_moves(check, effects)


def lost_tree(check: Check) -> Verdict | None:
    """Stop the first command of a session after its work tree has gone: git would use the checkout around it."""
    if check.writes.has_names or not check.has_lost_tree():
        return None
    from swarm_hook_core import tenants as rule

    return rule.judge_gone(check)


def processes(check: Check) -> Verdict | None:
    """Stop a command once before it ends a process of another live session."""
    if check.is_part or not check.may_end_processes:
        return None
    from swarm_hook_core import kills

    return kills.judge(check)


def fence(check: Check) -> Verdict | None:
    """Stop a session of a linked work tree once before it writes into another work tree of its repository."""
    if not check.is_in_linked_tree():
        return None
    from swarm_hook_core import fence as rule

    return rule.judge(check)


def at_stake(check: Check) -> Verdict | None:
    """Protect others' uncommitted work from git commands, and a person's from any call; also of a lone session."""
    writes, effects = check.writes, check.effects_if_read
    if writes.has_names:
        if not any(how != EDIT and os.path.lexists(os.path.join(*place)) for *place, how in check.writes.changes):
            return None
    elif effects is None or not (effects.git or effects.trees or any(one.how != EDIT for one in effects.writes)):
        return None
    from swarm_hook_core.stakes.verdict import Judgement

    trail = check.trail
    if trail is None and not check.is_question:
        trail = check.unnoted_trail()
    if trail is None:
        return None
    return Judgement(check.session, trail, effects, check.reader, check.now).verdict()


def uncommitted_work(check: Check) -> Verdict | None:
    """Protect changes of other sessions that are not committed, and their HEAD; note the changes of this call.

    By level (``traces``), a call that would lose such a change, or move HEAD under them (``head``), is denied or
    warned. The looks go from the cheapest on, and most calls end early: a call that was not read, a session that is
    alone; then the comparison.
    """
    trail = check.trail
    if trail is None:
        return None
    if not check.writes.has_names and check.effects_if_read is None and _is_left_unread(check, trail):
        return None
    effects = check.writes.effects
    neighbours = _neighbours(check, effects)
    if not neighbours and trail.note_alone(effects) and _is_left_alone(check, trail):
        return None
    if effects is not None and effects.git and trail.sweeps is None:  # it had no company just before
        found = at_stake(check)
        if found is not None and found.denial is not None:
            return found
    from swarm_hook_core.stakes.writes import Judgement

    verdict = Judgement(check.session, trail, effects, check.reader, check.now, neighbours).verdict()
    _leave(check, trail)
    return verdict


RULES = (
    Rule(harmless),
    Rule(protections),
    Rule(silent),
    Rule(alone),
    Rule(own_marks, part="watch"),
    Rule(turn_files, part="traces", unknown=OTHERS_CHANGES),
    Rule(shared_trees),
    Rule(locks),
    Rule(kernel),
    Rule(team, part="team", unknown="what is known of the team's locks"),
    Rule(lost_tree, part="traces"),
    Rule(tenants, part="traces"),
    Rule(processes, part="traces"),
    Rule(fence, part="traces"),
    Rule(at_stake, part="persons", unknown=PERSONS_CHANGES),
    Rule(uncommitted_work, part="traces", unknown=OTHERS_CHANGES),
)


# ------------------------------------------------------------------------------------------------ parts of rules


def _denied(denial: Denial | None) -> Verdict | None:
    return Verdict(denial) if denial is not None else None


def _beside_locks(check: Check, with_kernel: bool) -> Verdict | None:
    """Return the Verdict on the effects of a call beside the locks in its reach, or None."""
    if not check.meets_locks():
        return None
    from swarm_hook_core import collisions

    call, session, peers = check.call, check.session, check.peers
    if not collisions.concerns(call, session, peers):
        return None
    effects = check.writes.effects
    if effects is None or not (effects.size or effects.runs):
        return None
    return collisions.judge_call(check.config, session, call, effects, peers, check.now, with_kernel)


def _may_evict(effects: Effects) -> bool:
    """Return True if a call with these Effects may take a folder away. Costs a look at each path that it removes."""
    if any(tree.how != EDIT for tree in effects.trees) or any(_may_take(call.words) for call in effects.git):
        return True
    for write in effects.writes:
        if write.how == REMOVE and (
            write.path.endswith(".git") or os.path.isdir(os.path.join(write.folder, write.path))
        ):
            return True
    return False


def _may_take(words: list[str]) -> bool:
    """Return True if ``git <words>`` may remove or move a work tree, or delete a branch."""
    if words[0] in ("branch", "update-ref"):
        return any(word.startswith(("-d", "-D", "--delete", "-fd", "-fD")) for word in words)
    return words[0] in _TAKES_TREES


def _is_left_unread(check: Check, trail: Trail | None) -> bool:
    """Leave the text of a call that was not read. Return True if the session is alone here, still after that."""
    if trail is None:
        return True
    try:
        trail.note_unread()
    except Exception as error:  # a fault in the traces of a session that is alone
        check.core.record_fault("traces", error)
        return True
    return _is_left_alone(check, trail)


def _is_left_alone(check: Check, trail: Trail) -> bool:
    """Leave the traces of a call. Return True if the session is alone here, still after that.

    The look afterwards finds a session that has begun a call at the same moment.
    """
    _leave(check, trail)
    try:
        if not trail.has_company():
            return True
        trail.withdraw()
    except Exception as error:  # a folder that cannot be listed
        check.core.record_fault("traces", error)
        return True
    _leave(check, trail)
    return False


def _neighbours(check: Check, effects: Effects | None) -> dict[str, list[Held]]:
    """Return the sessions that share a HEAD with this one (``head``), if the call has git commands or removes files."""
    if effects is None or not (effects.git or any(write.path.endswith(".lock") for write in effects.writes)):
        removed = [] if effects is None else [tree for tree in effects.trees if tree.how == REMOVE]
        if not any(not tree.is_whole or "/.git" in tree.root for tree in removed):
            return {}
    return check.neighbours


def _leave(check: Check, trail: Trail) -> None:
    try:
        trail.leave()
    except Exception as error:  # a full disk: the call itself was checked
        check.core.record_fault("traces", error)


_TAKES_TREES = ("worktree", "submodule", "rm", "clean")  # git commands that may remove or move a work tree
# Names and words of a call that may concern a protection. Few calls have one, and only they load ``protected``.
_SETTINGS = ("settings.json", "config.toml", "config.yaml", "hooks.json", "mcp.json", "_marketplaces.json",
             "_plugins.json", "-enablement.json", "disabled-hooks")  # fmt: skip
_WORDS = ("swarm-mcp", "swarm_mcp", "swarm-locks", ".swarm", "swarm.db", "swarm@", "SWARM_", "swarm-hooks", "hookspath",
          "hooksPath", "include.path", "includeIf.", "includeif.", ".git/hooks", ".git/config", *_SETTINGS)  # fmt: skip
_REMOVING = ("rm ", "mv ", "delete", "rmtree", "rm\t", "rename", "remove", "unlink")
_PLACES = ("~", "HOME", ".local", ".config", ".claude", ".codex", "XDG_")


def _may_be_protected(path: str) -> bool:
    """Return True if absolute `path`, without links, may be a file that keeps sessions apart."""
    if "swarm" in path or "/.git/" in path or path.endswith(_SETTINGS):
        return True
    return any(path.startswith(os.path.realpath(place)) for place in _chosen_places())


def _writes_protected(write: Write) -> bool:
    """Return True if a write of a command may be of such a file, by its path with and without links."""
    path = os.path.join(write.folder, write.path)
    return "\0" not in path and any(map(_may_be_protected, (path, real_path(path))))


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


def _chosen_places() -> list[str]:
    """Return swarm's folders and files that a setting has moved; their names need not contain `swarm`."""
    return [path for path in map(absolute_setting, ("SWARM_STATE_DIR", "SWARM_CONFIG_DIR", "SWARM_DB_PATH")) if path]


def _texts_in(given: object, depth: int = 6) -> Iterator[str]:
    """Yield the texts in a tool's input."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, (dict, list)) and depth:
        for value in given.values() if isinstance(given, dict) else given:
            yield from _texts_in(value, depth - 1)


# The consequences of a verdict, in order: `AFTERWARDS`.
#
# Each is a function from a Check and its Verdict. They put merged texts into the call's input, count a denial, drop the
# plan and the taken files of a denied call, begin watches, and add words for the model. The order matters:
#
# - Merges are told before `count`, which weighs all notices.
# - `count` may replace a denial's reason by a shorter one, so it comes before words are added to that.
# - `shorten` comes last: it cuts the whole reason, with the news behind it.


def count(check: Check, verdict: Verdict) -> None:
    """Count a denial. The third of one file within minutes is said in fewer words, and the holder is told.

    A notice is recorded once in a while.
    """
    if verdict.denial is None and not verdict.noted:
        return
    from swarm_hook_core.denial import weigh, weigh_notice

    try:
        if verdict.denial is None:
            for notice in verdict.noted:
                weigh_notice(notice, check.session, check.now)
            return
        weigh(verdict.denial, check.session, check.call, check.peers, check.now)
    except Exception as error:  # it is denied, though not counted
        check.core.record_fault("pre_tool_use", error)


def drop_plan(check: Check, verdict: Verdict) -> None:
    """Drop the kernel's plan for a denied call."""
    if verdict.denial is None or verdict.plan is None or check.is_part:
        return
    from swarm_hook_core.kernel import planning, plans

    plans.drop(check.call.session_id, planning.name_of_call(check.config, check.call))
    verdict.plan, verdict.entry = None, ""


def give_back(check: Check, verdict: Verdict) -> None:
    """Take back that a denied call has taken files for its turn."""
    if verdict.denial is not None and check.turn_files is not None:
        check.turn_files.take_back()


def merge(check: Check, verdict: Verdict) -> None:
    """Put merged texts into the call's input, and tell its model."""
    merges = check.merges
    if verdict.denial is not None or not merges:
        return
    from swarm_hook_core.traces import whole_writes

    verdict.input = whole_writes.input_with(check.config, check.call, merges.values())
    words = whole_writes.words(merges, token(check.session.label, "identity"))
    verdict.notice = joined(words, verdict.notice)
    verdict.noted += whole_writes.notices(merges, words)


def watch_command(check: Check, verdict: Verdict) -> None:
    """Have locked files compared after a command that may write them unseen."""
    if verdict.denial is not None or not verdict.watched or check.is_part:
        return
    from swarm_hook_core.watching import watch

    watch.begin(check.config, check.call, verdict.watched, check.now, _kept)


def watch_edit(check: Check, verdict: Verdict) -> None:
    """Have locked files around an edit compared at the next hook: another plugin may run a formatter after it."""
    if verdict.denial is not None or not check.writes.has_names or check.is_part or not check.meets_locks():
        return
    from swarm_hook_core.watching import edits

    core = check.core
    breaches = edits.begin(check.config, check.call, check.writes.paths, check.session, check.peers, _kept)
    if breaches:
        from swarm_hook_core.watching import watch

        words = watch.report(check.config, check.call, breaches, core.registrar.command, core.driver)
        verdict.notice = joined(words, verdict.notice)


def _kept() -> Kept:
    """Open the store of contents of locked files."""
    from swarm_hook_core.traces.versions.stored import Kept

    return Kept()


def tell_news(check: Check, verdict: Verdict) -> None:
    """Tell the session of its locks and its mail; renew its leases if it is time."""
    if not check.session.instance_id:
        return
    words = joined(_news_of_locks(check), check.core.mail_for(check.call, check.glance, check.session))
    if words and verdict.denial is not None:
        verdict.denial.reason += "\n" + words  # a client that is denied a call is told nothing else
    elif words:
        verdict.notice = joined(words, verdict.notice)


def shorten(check: Check, verdict: Verdict) -> None:
    """Say a denial in few words to a client that has no room for more."""
    if verdict.denial is not None:
        check.core.shorten(verdict.denial, check.call, check.session)


def _news_of_locks(check: Check) -> str:
    call = check.call
    try:
        leases, has_news = check.glance.leases_and_news(check.session.instance_id)
        if not leases and not has_news:
            return ""
        from swarm_hook_core import session_memory

        return session_memory.renew(check.config, call.session_id, leases, has_news, check.core.coordinator)
    except Exception as error:  # the next call renews them
        check.core.record_fault("pre_tool_use", error)
        return ""


AFTERWARDS = (merge, count, drop_plan, give_back, watch_command, watch_edit, tell_news, shorten)
